"""The arrays of a horde's memory that a file keeps, and the checks when they are read back."""

from __future__ import annotations

import numpy as np

from trueonline.nexting.shared_traces.buffers import pages, with_rows
from trueonline.nexting.shared_traces.horde_layout import AGE, GAMMA, LAM, METHOD, TURN, Buffers


def dump(memory: Buffers) -> dict[str, np.ndarray]:
    """All arrays that `restore` needs. Rows that are not taken are left out."""
    taken, length = memory.counts
    parts = memory._asdict() | {name: getattr(memory, name)[:taken] for name in ("u", "z", "since")}
    del parts["mark"]
    return parts | {"at": memory.at[:length], "at_x": memory.at_x[:length]}


def restore(fresh: Buffers, room: int, parts: dict[str, np.ndarray]) -> Buffers:
    """The memory that `dump` wrote, for the questions of `fresh`. ValueError or KeyError if the parts do not fit together."""
    n, (m, g) = len(fresh.rows), (len(fresh.order), fresh.z.shape[1])
    taken, length = (int(count) for count in parts["counts"])
    if not 0 <= length <= taken <= room <= n:
        raise ValueError("its sizes do not fit together")
    shapes = {"u": (taken, m), "z": (taken, g), "since": (taken, g), "owing": (pages(room), m), "faded": (pages(room), g)}
    for name, array in fresh._asdict().items():
        if name != "mark":
            shape = shapes.get(name, (length,) if name in ("at", "at_x") else array.shape)
            if parts[name].shape != shape or parts[name].dtype != array.dtype:
                raise ValueError(f"its {name} does not fit")
    saved = Buffers(
        **{name: np.ascontiguousarray(parts[name]) for name in fresh._fields if name != "mark"}, mark=fresh.mark
    )
    age, since, traced = saved.places[AGE], saved.since, saved.z != 0.0
    sound = {
        "order": np.array_equal(saved.order, fresh.order),
        "places": np.array_equal(saved.places[: METHOD + 1], fresh.places[: METHOD + 1])
        and (age >= 0).all() and ((saved.places[TURN] >= 0) & (saved.places[TURN] < max(room, 1))).all(),
        "numbers": np.array_equal(saved.numbers[: LAM + 1], fresh.numbers[: LAM + 1])
        and ((saved.numbers >= 0.0) & (saved.numbers <= 1.0))[GAMMA:].all(),
        "since": ((since <= age) & (since > age - len(saved.owing)) | ~traced).all(),
        "rows": np.array_equal(np.sort(saved.rows[saved.rows != -1]), np.arange(taken)),
        "at": ((saved.at >= 0) & (saved.at < n)).all() and (saved.rows[saved.at % n] >= 0).all(),
    }  # fmt: skip
    wrong = [name for name, fits in sound.items() if not fits]
    if wrong:
        raise ValueError(f"its {wrong[0]} does not fit")
    parts = {name: with_rows(getattr(saved, name), room) for name in ("u", "z", "since")}
    return saved._replace(**parts, mark=np.zeros((room, 2)))
