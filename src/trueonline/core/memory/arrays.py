"""A memory seen from Python: copies of its vectors, its saving and its restoring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline.core.memory.layout import (
    CARRIED,
    COUNT,
    DENSE,
    GAMMA,
    GREEDY,
    HEADER,
    LAM,
    LENGTH,
    NOT_BINARY,
    NOTED,
    RHO_OLD,
    ROOM,
    SAVED,
    SAVED_PLACE,
    SCALE,
    SPARE,
    STEPS,
    UNSCALE,
    V_OLD,
    Buffers,
    C,
    S,
    _stride,
    features,
    first_memory,
    parts,
    size,
)
from trueonline.inputs.saved_arrays import MAX_COUNT, check_saved, saved_array, saved_count


@np.errstate(over="ignore", invalid="ignore")  # of a learner that diverged
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


@np.errstate(over="ignore", invalid="ignore")
def weights(one: Buffers) -> np.ndarray:
    """A dense copy of w."""
    head = one.numbers
    u, z, y, _, owner = parts(one)
    if head[DENSE]:
        return head[SCALE] * (u + head[C] * z[1:])
    listed = slice(1, int(head[COUNT]) + 1)
    w = u.copy()
    w[owner[listed]] += y[listed] + head[C] * z[listed]
    return w if head[SCALE] == 1.0 else head[SCALE] * w


def set_weights(one: Buffers, value: float) -> None:
    """w_i ← value for every i, in a memory that is new."""
    parts(one)[0][:] = value


def begin(all_of_it: Buffers) -> None:
    """e ← 0 and V_old ← 0: the beginning of an episode. Traces beside the first decay by γ = 0 at the next step."""
    numbers = all_of_it.numbers
    numbers[V_OLD] = numbers[GAMMA] = numbers[first_memory(features(all_of_it)) + S] = 0.0


def snapshot(one: Buffers) -> tuple[np.ndarray, np.ndarray]:
    """A copy for `undo`; in the dense layout, of the parts in use."""
    if one.numbers[DENSE]:
        return one.numbers[: HEADER + 2 * _stride.py_func(size(one))].copy(), one.places[:0]
    return one.numbers.copy(), one.places.copy()


def undo(one: Buffers, before: tuple[np.ndarray, ...]) -> None:
    """Restore the copy of `snapshot`."""
    for now, then in zip(one, before, strict=True):
        now[: len(then)] = then


def traced(one: Buffers) -> np.ndarray:
    """The entries on the list, or in the dense layout those that carry trace."""
    _, z, _, _, owner = parts(one)
    return np.flatnonzero(z[1:]) if one.numbers[DENSE] else owner[1 : int(one.numbers[COUNT]) + 1]


@np.errstate(over="ignore", invalid="ignore")
def lay_out(one: Buffers, dense: bool, owners: np.ndarray | None = None) -> None:
    """Bring a memory into the layout for dense features, or back to a list: of these entries, or of all that carry trace.

    In the dense layout z_k belongs to entry k − 1, and slot, owner and y are not used. Neither e nor w changes.
    """
    head = one.numbers
    if bool(head[DENSE]) == dense:
        return
    u, z, y, slot, owner = parts(one)
    if dense:
        listed = slice(1, int(head[COUNT]) + 1)
        owners, traces = owner[listed], z[listed].copy()
        u[owners] += y[listed]
        z[1:] = 0.0  # all of them: beyond the list z holds what entries left behind
        z[owners + 1] = traces
    else:
        owners = traced(one) if owners is None else owners
        count = len(owners)
        z[1 : count + 1], y[1 : count + 1], owner[1 : count + 1] = z[owners + 1], 0.0, owners
        slot[:] = 0
        slot[owners] = np.arange(1, count + 1)
        head[[COUNT, ROOM]] = count, 2 * count + SPARE
    head[DENSE] = dense


@np.errstate(over="ignore", invalid="ignore")
def pay(one: Buffers) -> None:
    """y ← y + c·z over the list, and c ← 0."""
    head = one.numbers
    if not head[DENSE]:
        _, z, y, _, _ = parts(one)
        listed = slice(1, int(head[COUNT]) + 1)
        y[listed] += head[C] * z[listed]
        head[C] = 0.0


def dump(one: Buffers) -> dict[str, np.ndarray]:
    """Everything that determines how learning continues, as a few arrays: the memory can be rebuilt bit for bit."""
    head = one.numbers[:SAVED].copy()
    u, z, y, _, owner = parts(one)
    if head[DENSE]:
        return {"head": head, "u": u.copy(), "z": z[1:].copy()}
    listed = slice(1, int(head[COUNT]) + 1)
    return {"head": head, "u": u.copy(), "z": z[listed].copy(), "y": y[listed].copy(), "owner": owner[listed].copy()}


def rebuild(one: Buffers, saved: dict[str, np.ndarray]) -> None:
    """Turn an empty memory into the one that `dump` described. ValueError if the parts do not fit together.

    Weights and traces may be any numbers, because learners diverge. Everything that kernels count or index by is checked.
    """
    n = size(one)
    head = saved_array(saved, "head", (SAVED,), np.float64)
    head[SCALE] = head[SCALE] or 1.0  # files of older versions hold 0
    count = saved_count("list", head[COUNT], n)
    fits = head[DENSE] in (0.0, 1.0) and head[ROOM] >= 0.0 and head[NOTED] == head[NOT_BINARY] == 0.0
    check_saved({"head": fits})
    listed = n if head[DENSE] else count
    numbers = saved_array(saved, "u", (n,), np.float64), saved_array(saved, "z", (listed,), np.float64)
    one.numbers[:SAVED], one.numbers[UNSCALE] = head, 1.0 / head[SCALE]
    u, z, y, slot, owner = parts(one)
    u[:], z[1 : listed + 1] = numbers
    if not head[DENSE]:
        owners = saved_array(saved, "owner", (count,), np.int32)
        check_saved({"owner": len(np.unique(owners)) == count and ((owners >= 0) & (owners < n)).all()})
        y[1 : count + 1] = saved_array(saved, "y", (count,), np.float64)
        owner[1 : count + 1] = owners
        slot[owners] = np.arange(1, count + 1)


def checked_place(parts: Mapping[str, Any], n: int) -> np.ndarray:
    """The place of a learner with n features, from a file. ValueError if a number in it is impossible."""
    old = np.size(parts.get("place", ())) == 24  # the files of 0.2: three carried numbers, and settings
    place = saved_array(parts, "place", (24 if old else SAVED_PLACE,), np.float64)
    place = np.append(place[: CARRIED + 3], 0.0) if old else place
    saved_count("steps", place[STEPS], MAX_COUNT)
    saved_count("number of active features", place[LENGTH], n)
    decays = place[[GAMMA, LAM]]
    fits = ((decays >= 0.0) & (decays <= 1.0)).all() and 0.0 <= place[RHO_OLD] < np.inf and place[GREEDY] in (0.0, 1.0)
    check_saved({"place": fits})
    return place
