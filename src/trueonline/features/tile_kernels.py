"""The kernels of tile coding: from an observation to the numbers of its tiles, and from those to hashed indices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trueonline.core.compiling.kernels import kernel, specialise
from trueonline.core.forms import pointer
from trueonline.features.scaling import beyond, finite, unit

MAX_KEYS = 2**27  # up to this many tiles, each tile has a bit that says whether it was seen: 16 MB

# The header of `places`: what there is, where its parts begin, and what has been counted.
SIZE, TILINGS, GROUPS, TILES, ACTIVE, BIAS, ROOM, COLLISIONS = range(8)
FINE, SHIFTS, LAYOUT, SEEN, TAKEN = range(8, 13)
HEADER = 16  # followed by how often each dimension was clipped

# The increment and the two multipliers of splitmix64 (Steele, Lea and Flood 2014).
GOLDEN, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

HASHED = False  # a placeholder in the templates below


class Plan(NamedTuple):
    """The grids inside a kernel: pointers into `places`."""

    head: Any
    clipped: Any  # per dimension
    fine: Any  # F per dimension
    shifts: Any  # per place in a group and tiling
    layout: Any  # per group: its size, its first tile, its tiles per tiling, and of each member its dimension and stride
    seen: Any  # a bit per tile
    taken: Any  # a bit per index


def one(bounds, places, x, active):
    """Write the indices that are active at observation x, and return how many there are.

    A bad observation is a ValueError without a message, raised before anything is counted. (To allocate the array here
    would take longer than all the rest.)
    """
    plan = attach(places)
    here = pointer(x, 0)
    if x.size != plan.head[SIZE] or not finite(here, x.size):
        raise ValueError
    row = pointer(active, 0)
    length = tiles(plan, pointer(bounds, 0), here, row)
    if HASHED:
        length = hashed(plan, row, length)
    return biased(plan, row, length)


def many(bounds, places, X, active, lengths):
    """Write the indices that are active at each row of X, which has been checked. Return how many there are in total."""
    plan = attach(places)
    total = 0
    for t in range(X.shape[0]):
        row = pointer(active, t * plan.head[ACTIVE])
        length = tiles(plan, pointer(bounds, 0), pointer(X, t * X.shape[1]), row)
        if HASHED:
            length = hashed(plan, row, length)
        lengths[t] = biased(plan, row, length)
        total += lengths[t]
    return total


@kernel
def attach(places):
    head = pointer(places, 0)
    return Plan(
        head,
        pointer(places, HEADER),
        pointer(places, head[FINE]),
        pointer(places, head[SHIFTS]),
        pointer(places, head[LAYOUT]),
        pointer(places, head[SEEN]),
        pointer(places, head[TAKEN]),
    )


@kernel
def tiles(plan, bounds, x, active):
    """Write the number of every tile in which x lies, and count clipped numbers. Return how many tiles there are."""
    n = plan.head[TILINGS]
    for i in range(plan.head[SIZE]):
        plan.clipped[i] += beyond(bounds, i, x[i])
    length = at = 0
    for _ in range(plan.head[GROUPS]):
        members, first, per_tiling = plan.layout[at], plan.layout[at + 1], plan.layout[at + 2]
        at += 3
        for k in range(n):
            active[length + k] = first + k * per_tiling
        for j in range(members):
            i, stride = plan.layout[at], plan.layout[at + 1]
            at += 2
            f = min(np.int64(plan.fine[i] * unit(bounds, i, x[i])), plan.fine[i] - 1)
            cell = f // n
            rest = f - cell * n
            for k in range(n):  # ⌊(f + shift) / n⌋ without a division for every tiling
                active[length + k] += stride * (cell + (rest + plan.shifts[j * n + k] >= n))
        length += n
    return length


@kernel
def hashed(plan, active, length):
    """Replace the numbers of tiles by indices, each index once, and count collisions. Return how many indices are left."""
    kept = 0
    for j in range(length):
        word = mixed(active[j])
        index = np.int64(((word >> np.uint64(32)) * np.uint64(plan.head[ROOM])) >> np.uint64(32))
        key = active[j] if plan.head[TILES] <= MAX_KEYS else np.int64(word & np.uint64(MAX_KEYS - 1))
        if not raised(plan.seen, key):
            plan.head[COLLISIONS] += raised(plan.taken, index)
        new = True
        for other in range(kept):
            new &= active[other] != index
        if new:
            active[kept] = index
            kept += 1
    return kept


@kernel
def mixed(number):
    """64 bits that all depend on all bits of a number: splitmix64."""
    z = np.uint64(number) + GOLDEN
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


@kernel
def raised(bits, i):
    """Set bit i, and return whether it was set before."""
    word, bit = bits[i >> 6], np.int64(1) << (i & 63)
    bits[i >> 6] = word | bit
    return word & bit != 0


@kernel
def biased(plan, active, length):
    """Add the feature that is always active, if there is one. Return how many are active."""
    if plan.head[BIAS] < 0:
        return length
    active[length] = plan.head[BIAS]
    return length + 1


ONE = {each: specialise(one, f"tiles_{each}", HASHED=each) for each in (False, True)}
MANY = {each: specialise(many, f"tiles_{each}", HASHED=each) for each in (False, True)}
