"""Tile coding: overlapping grids over the observations; the tile of each grid in which an observation lies is active."""

# Kernels are typed by Numba.
# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import count as counting
from itertools import islice
from operator import index
from typing import Any, NamedTuple

import numpy as np

from trueonline.core.forms import pointer
from trueonline.core.kernels import call, kernel, specialise
from trueonline.features.scaling import QUICK, Scaling, as_given, beyond, finite, shown, unit
from trueonline.inputs import MAX_FEATURES, count

MAX_TILINGS = 2**16
MAX_TILES = 2**62  # a tile's number is a 64-bit integer
MAX_KEYS = 2**27  # up to as many tiles each have a bit of their own that says whether it was seen: 16 MB

# The header of `places`: what there is, where its parts begin, and what has been counted.
SIZE, TILINGS, GROUPS, TILES, ACTIVE, BIAS, ROOM, COLLISIONS = range(8)
FINE, SHIFTS, LAYOUT, SEEN, TAKEN = range(8, 13)
HEADER = 16  # followed by how often each dimension was clipped

# The increment and the two multipliers of splitmix64 (Steele, Lea and Flood 2014).
GOLDEN, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

HASHED = False  # a placeholder in the templates below


# --- In kernels -----------------------------------------------------------------------------------


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
    """Write the indices that are active at observation x; return how many they are.

    ValueError, without a reason, before anything is counted. (To make the array here and return it would take longer than
    all the rest.)
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
    """Write the indices that are active at each row of X, which has been checked; return how many there are in all."""
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
    """Write the number of every tile in which x lies, and count what is clipped; return how many tiles there are."""
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
    """Put an index in place of every tile's number, each index once; count collisions; return how many indices are left."""
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
    """Set bit i; return whether it was set before."""
    word, bit = bits[i >> 6], np.int64(1) << (i & 63)
    bits[i >> 6] = word | bit
    return word & bit != 0


@kernel
def biased(plan, active, length):
    """Add the feature that is always active, if there is one; return how many are active."""
    if plan.head[BIAS] < 0:
        return length
    active[length] = plan.head[BIAS]
    return length + 1


_ONE = {each: specialise(one, f"tiles_{each}", HASHED=each) for each in (False, True)}
_MANY = {each: specialise(many, f"tiles_{each}", HASHED=each) for each in (False, True)}


# --- Seen from Python -----------------------------------------------------------------------------


class TileCoder:
    """From an observation of d numbers to the indices of the active tiles.

    Tile coding (Sutton and Barto 2018, section 9.5.4): `tilings` grids over the range of the observations, shifted
    against each other. Near observations share tiles, so that what is learned at one is learned at the other in part.

    **Observations** have the shape of `low` and `high` (numbers, for one number) and are flattened in row-major order.
    Numbers beyond a bound are moved to it, and `clipped` counts them. Dimensions without bounds are squashed by an
    arctan of x / scale, with `scales` one number or one for each dimension: see `features.scaling` for the formula of
    u ∈ [0, 1]. A bound of magnitude 1e9 or more is none. Observations that are not finite are refused.

    **Cells.** Every tiling has exactly bins_i cells in dimension i, so that there are tilings · ∏ bins_i tiles, as the
    paper counts them. All tiles are equally wide; those at the edges are cut by them. With n = tilings,

        F_i = n·(bins_i − 1) + 1                             steps into which the range is divided evenly
        f_i = min(⌊F_i·u_i⌋, F_i − 1)                        the step in which the number lies
        c_i = ⌊(f_i + (k·m_i mod n)) / n⌋                    its cell in tiling k = 0 … n − 1

    So the resolution is 1/F_i of the range and a tile is n/F_i wide. With one tiling the range is split evenly into
    bins_i cells; bins_i = 1 ignores the dimension. Every tiling covers the whole range and every cell can be reached:
    u = 0 lies in cell 0 of every tiling, and u = 1 in its last. (The alternatives are worse. Tiles 1/bins wide overhang
    the range when shifted: with a cell more for that, there would be (1 + 1/bins)^d times as many, and with the overhang
    put to the edge cell, no tiling would tell apart what lies in the last 1/bins of the range.)

    **Shifts.** m_i are the first odd numbers 1, 3, 5, … for the dimensions in their order (Miller and Glanz 1996), which
    avoids the diagonal artefacts of equal shifts. Those that share a divisor with n are left out, because they would
    leave tilings unshifted against each other; for n = 2, 4, 8, … none are. Two observations whose steps differ by s in
    one dimension, and in no other, share max(n − s, 0) tiles. The literature advises n to be a power of two and at least
    4d.

    **Indices.** In row-major order, the last dimension fastest: tile (c_1, …, c_d) of tiling k has the number
    k·∏bins + (…(c_1·bins_2 + c_2)·bins_3 + …) + c_d. The active ones are given tiling by tiling.

    **Groups.** `groups=[(0,), (1,), (0, 1)]` makes a joint grid for each group of dimensions instead of one for all. Each
    has its own tilings, with shifts 1, 3, 5, … for its dimensions as listed, and its tiles are numbered after those of
    the groups before it. A dimension in no group is ignored (but still has to be finite).

    **Hashing.** With `size`, there are that many features, and tile t has the index ⌊h·M / 2³²⌋, where h is the upper half
    of splitmix64(t) (see `mixed`) and M is the size, less 1 for a bias. A tile that was not seen before, on an index that
    another tile had taken, is a collision; `collisions` counts them. (It is exact up to 2²⁷ tiles. If there are more,
    tiles are told apart by 27 bits of their hash, and it may be too low.) Two tiles of one observation may hash to the same
    index: it is then given only once, and fewer than `n_active` features are active.

    **Bias.** With `bias`, the last index, n_features − 1, is always active, and no tile's.

    >>> coder = TileCoder(low=[0.0, -1.0], high=[1.0, 1.0], bins=4, tilings=2)
    >>> coder.n_features, coder.n_active
    (32, 2)
    >>> coder([0.0, 0.0])                       # F = 7 and f = (0, 3): cells (0, 1) and (0, 2)
    array([ 1, 18])
    >>> coder.many([[0.0, 0.0], [1.0, 1.0]])
    array([[ 1, 18],
           [15, 31]])
    """

    def __init__(
        self,
        low: Any,
        high: Any,
        *,
        bins: Any = 8,
        tilings: int = 8,
        bias: bool = False,
        size: int | None = None,
        groups: Any = None,
        scales: Any = None,
        kind: str = "tiles",
    ) -> None:
        if kind != "tiles":
            raise ValueError(f"kind must be 'tiles' for a TileCoder, got {kind!r}; features.restore takes every kind")
        if not isinstance(bias, bool | np.bool_):
            raise ValueError(f"bias must be True or False, got {bias!r}")
        self._scaling = Scaling.of(low, high, scales)
        self._bins = _bins(bins, self._scaling.size)
        self._tilings = count("tilings", tilings, MAX_TILINGS)
        self._bias = bool(bias)
        self._groups = _groups(groups, self._scaling.size)
        self._size = None if size is None else count("size", size)
        self._tiles = self._tilings * sum(math.prod(self._bins[i] for i in group) for group in self._groups)
        self._refuse_sizes()
        self._bounds = self._scaling.bounds()
        self._places = self._laid_out()
        self._blank = np.zeros(self.n_active, np.int64)
        self._quick_types = QUICK if len(self._scaling.shape) == 1 else ()
        self._quick = partial(_ONE[self._size is not None], self._bounds, self._places)

    def _refuse_sizes(self) -> None:
        if self._size is not None and self._size <= self._bias:
            raise ValueError(f"size must leave an index beside the bias, got {self._size}")
        most = MAX_FEATURES - self._bias if self._size is None else MAX_TILES
        if self._tiles > most:
            raise ValueError(
                f"bins={self._bins} and tilings={self._tilings} make {self._tiles:,} tiles, but there may be {most:,}; "
                "give fewer bins, groups of fewer dimensions, or a size to hash them to"
            )

    def _laid_out(self) -> np.ndarray:
        """All that `attach` looks for."""
        d, n = self._scaling.size, self._tilings
        multipliers = islice((m for m in counting(1, 2) if math.gcd(m, n) == 1), max(map(len, self._groups)))
        layout: list[int] = []
        first = 0
        for group in self._groups:
            bins = [self._bins[i] for i in group]
            layout += [len(group), first, math.prod(bins)]
            for j, i in enumerate(group):
                layout += [i, math.prod(bins[j + 1 :])]
            first += n * math.prod(bins)
        parts = {
            FINE: [n * (b - 1) + 1 for b in self._bins],
            SHIFTS: [k * m % n for m in multipliers for k in range(n)],
            LAYOUT: layout,
        }
        hashing = self._size is not None
        room = self.n_features - self._bias
        begins = np.cumsum([HEADER + d, *map(len, parts.values())])
        bits = (min(self._tiles, MAX_KEYS) // 64 + 1, room // 64 + 1) if hashing else (0, 0)
        places = np.zeros(begins[-1] + sum(bits), np.int64)  # committed by the operating system only where it is written
        for (name, values), begin in zip(parts.items(), begins[:-1], strict=True):
            places[name] = begin
            places[begin : begin + len(values)] = values
        places[[SIZE, TILINGS, GROUPS, TILES]] = d, n, len(self._groups), self._tiles
        places[[ACTIVE, BIAS, ROOM]] = self.n_active, self.n_features - 1 if self._bias else -1, room
        places[[SEEN, TAKEN]] = begins[-1], begins[-1] + bits[0]
        return places

    @property
    def n_features(self) -> int:
        """How many features there are, a bias among them."""
        return self._tiles + self._bias if self._size is None else self._size

    @property
    def n_active(self) -> int:
        """How many of them are active at most."""
        return len(self._groups) * self._tilings + self._bias

    @property
    def clipped(self) -> np.ndarray:
        """How many numbers of each dimension were moved to a bound so far."""
        return self._places[HEADER : HEADER + self._scaling.size].copy()

    @property
    def collisions(self) -> int:
        """How many tiles, of those seen so far, were hashed to an index that another tile had taken."""
        return int(self._places[COLLISIONS])

    def __call__(self, x: Any) -> np.ndarray:
        """The active indices at observation x: a fresh array."""
        active = self._blank.copy()  # quicker than np.empty
        length = -1
        if type(x) is np.ndarray and x.dtype in self._quick_types and x.flags.carray:
            try:
                length = self._quick(x, active)
            except (TypeError, ValueError):
                length = -1  # not compiled yet, or a bad observation; nothing was counted, and the long way finds out
        if length < 0:
            values = as_given(x, self._scaling.observation(x))
            length = call(_ONE[self._size is not None], self._bounds, self._places, values, active)
        return active if length == active.size else active[:length]

    def many(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """The active indices at each row of X, in one compiled call, as `Learner.run` takes them.

        A 2-D array with a row for each observation. Only where hashing left some rows with fewer indices than others: a
        list of arrays.
        """
        rows = self._scaling.observations(X)
        active, lengths = np.empty((len(rows), self.n_active), np.int64), np.empty(len(rows), np.int64)
        total = call(_MANY[self._size is not None], self._bounds, self._places, rows, active, lengths)
        if total == active.size:
            return active
        return [row[:length] for row, length in zip(active, lengths.tolist(), strict=True)]

    def settings(self) -> dict[str, Any]:
        """JSON-able: `TileCoder(**settings)` is the same coder, with nothing counted yet."""
        joint = self._groups == _groups(None, self._scaling.size)
        return {
            "kind": "tiles",
            **self._scaling.settings(),
            "bins": self._bins[0] if len(set(self._bins)) == 1 else list(self._bins),
            "tilings": self._tilings,
            "bias": self._bias,
            "size": self._size,
            "groups": None if joint else [list(group) for group in self._groups],
        }

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings(), "places": self._places}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["settings"])  # type: ignore[misc]
        self._places[:] = state["places"]

    def __repr__(self) -> str:
        return shown(self)


def _bins(bins: Any, d: int) -> tuple[int, ...]:
    if not isinstance(bins, Sequence | np.ndarray) or np.ndim(bins) == 0:
        return (count("bins", bins),) * d
    if len(bins) != d:
        raise ValueError(f"bins must be one number or {d}, one for each dimension, got {len(bins)}")
    return tuple(count(f"bins[{i}]", each) for i, each in enumerate(bins))


def _groups(groups: Any, d: int) -> tuple[tuple[int, ...], ...]:
    if groups is None:
        return (tuple(range(d)),)
    try:
        listed = [tuple(index(i) for i in group) for group in groups]
    except TypeError:
        raise ValueError(
            f"groups must be a list of groups of dimensions, such as [(0,), (0, 1)], got {groups!r:.80}"
        ) from None
    if not listed:
        raise ValueError("groups must hold at least one group of dimensions, got none")
    for group in listed:
        if not group or len(set(group)) < len(group) or not all(0 <= i < d for i in group):
            raise ValueError(f"a group must be different dimensions from 0 to {d - 1}, got {group}")
    if len({frozenset(group) for group in listed}) < len(listed):
        raise ValueError(f"groups must differ from each other, got {groups!r:.80}")
    return tuple(listed)
