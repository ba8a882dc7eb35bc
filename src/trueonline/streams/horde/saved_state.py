"""The arrays of a horde's memory that a file keeps, and the checks when they are read back."""

from __future__ import annotations

import numpy as np

from trueonline.inputs import MAX_COUNT, check_saved, saved_array, saved_count
from trueonline.streams.horde.buffers import pages, with_rows
from trueonline.streams.horde.horde_layout import AGE, GAMMA, LAM, METHOD, TURN, HordeBuffers

NOT_SAVED = ("mark", "room", "room_x")  # what a call needs only while it runs


def dump(memory: HordeBuffers) -> dict[str, np.ndarray]:
    """All arrays that `restore` needs. Rows that are not taken are left out."""
    taken, length = memory.counts
    parts = memory._asdict() | {name: getattr(memory, name)[:taken] for name in ("u", "z", "since")}
    parts |= {"at": memory.at[:length], "at_x": memory.at_x[:length]}
    return {name: array for name, array in parts.items() if name not in NOT_SAVED}


def restore(fresh: HordeBuffers, room: int, parts: dict[str, np.ndarray]) -> HordeBuffers:
    """The memory that `dump` wrote, for the questions of `fresh`. ValueError if the parts do not fit together."""
    n, (m, g) = len(fresh.rows), (len(fresh.order), fresh.z.shape[1])
    taken, length = (saved_count("counts", count, n) for count in saved_array(parts, "counts", (2,), np.int64))
    check_saved({"counts": length <= taken <= room <= n})
    shapes = {"u": (taken, m), "z": (taken, g), "since": (taken, g), "owing": (pages(room), m), "faded": (pages(room), g)}
    kept = {}
    for name, array in fresh._asdict().items():
        if name not in NOT_SAVED:
            shape = shapes.get(name, (length,) if name in ("at", "at_x") else array.shape)
            kept[name] = saved_array(parts, name, shape, array.dtype)
    room_for_features = {"room": np.zeros((3, length), np.int64), "room_x": np.zeros((2, length))}
    saved = HordeBuffers(**kept, mark=fresh.mark, **room_for_features)
    age, since, traced, at = saved.places[AGE], saved.since, saved.z != 0.0, saved.at
    check_saved(
        {
            "order": np.array_equal(saved.order, fresh.order),
            "places": np.array_equal(saved.places[: METHOD + 1], fresh.places[: METHOD + 1])
            and ((age >= 0) & (age <= MAX_COUNT)).all()
            and ((saved.places[TURN] >= 0) & (saved.places[TURN] < max(room, 1))).all(),
            "numbers": np.array_equal(saved.numbers[: LAM + 1], fresh.numbers[: LAM + 1])
            and ((saved.numbers >= 0.0) & (saved.numbers <= 1.0))[GAMMA:].all(),
            "since": (since >= 0) & (since <= age) & ((since > age - len(saved.owing)) | ~traced),
            "faded": (saved.faded >= 0.0) & (saved.faded <= 1.0),
            "rows": np.array_equal(np.sort(saved.rows[saved.rows != -1]), np.arange(taken)),
            "at": ((at >= 0) & (at < n)).all() and (saved.rows[at % n] >= 0).all() and len(np.unique(at)) == length,
            "at_x": np.isfinite(saved.at_x),
        }
    )
    parts = {name: with_rows(getattr(saved, name), room) for name in ("u", "z", "since")}
    return saved._replace(**parts, mark=np.zeros((room, 2)))
