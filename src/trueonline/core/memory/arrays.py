"""A memory seen from Python: copies of its vectors, its saving and its restoring."""

from __future__ import annotations

import numpy as np

from trueonline.core.memory.layout import COUNT, DENSE, GAMMA, HEADER, PLACE, V_OLD, Buffers, C, S, _stride, parts, size


def trace(one: Buffers) -> np.ndarray:
    """A dense copy of e."""
    head = one.numbers
    _, z, _, _, owner = parts(one)
    if head[DENSE]:
        return head[S] * z[1:]
    listed = slice(1, int(head[COUNT]) + 1)
    e = np.zeros(size(one))
    e[owner[listed]] = head[S] * z[listed]
    return e


def weights(one: Buffers) -> np.ndarray:
    """A dense copy of w."""
    head = one.numbers
    u, z, y, _, owner = parts(one)
    if head[DENSE]:
        return u + head[C] * z[1:]
    listed = slice(1, int(head[COUNT]) + 1)
    w = u.copy()
    w[owner[listed]] += y[listed] + head[C] * z[listed]
    return w


def begin(all_of_it: Buffers) -> None:
    """e ← 0 and V_old ← 0: the beginning of an episode. Traces beside the first decay by γ = 0 at the next step."""
    all_of_it.numbers[[V_OLD, GAMMA, PLACE + S]] = 0.0


def snapshot(one: Buffers) -> tuple[np.ndarray, np.ndarray]:
    """A copy for `undo`; in the dense layout, of the parts in use."""
    if one.numbers[DENSE]:
        return one.numbers[: HEADER + 2 * _stride.py_func(size(one))].copy(), one.places[:0]
    return one.numbers.copy(), one.places.copy()


def undo(one: Buffers, before: tuple[np.ndarray, ...]) -> None:
    """Restore the copy of `snapshot`."""
    for now, then in zip(one, before, strict=True):
        now[: len(then)] = then


def dump(one: Buffers) -> dict[str, np.ndarray]:
    """Everything that determines how learning continues, as a few arrays: the memory can be rebuilt bit for bit."""
    head = one.numbers[:HEADER].copy()
    u, z, y, _, owner = parts(one)
    if head[DENSE]:
        return {"head": head, "u": u.copy(), "z": z[1:].copy()}
    listed = slice(1, int(head[COUNT]) + 1)
    return {"head": head, "u": u.copy(), "z": z[listed].copy(), "y": y[listed].copy(), "owner": owner[listed].copy()}


def rebuild(one: Buffers, saved: dict[str, np.ndarray]) -> None:
    """Turn an empty memory into the one that `dump` described; ValueError if the parts do not fit together."""
    n = size(one)
    head, listed = saved["head"], saved["z"]
    dense = bool(head[DENSE]) if head.shape == (HEADER,) else False
    sound = head.shape == (HEADER,) and head.dtype == np.float64 and saved["u"].shape == (n,)
    sound = sound and listed.ndim == 1 and len(listed) == (n if dense else head[COUNT])
    if sound and not dense:
        owner = saved["owner"]
        sound = owner.shape == saved["y"].shape == listed.shape and len(np.unique(owner)) == len(owner)
        sound = sound and np.issubdtype(owner.dtype, np.integer) and bool(np.all((owner >= 0) & (owner < n)))
    if not sound:
        raise ValueError("the parts of the memory do not fit together")
    one.numbers[:HEADER] = head
    u, z, y, slot, owner_ = parts(one)
    u[:] = saved["u"]
    z[1 : len(listed) + 1] = listed
    if not dense:
        y[1 : len(listed) + 1] = saved["y"]
        owner_[1 : len(listed) + 1] = saved["owner"]
        slot[saved["owner"]] = np.arange(1, len(listed) + 1)
