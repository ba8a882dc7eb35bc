"""Tile coding: overlapping grids over the observations. The tile of each grid in which an observation lies is active."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count as counting
from itertools import islice
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueonline.core.compiling.kernels import call
from trueonline.features import tile_kernels as kernels
from trueonline.features.scaling import FAST_TYPES, Scaling, as_given, shown
from trueonline.inputs import MAX_FEATURES, Resumable, count, flag, room_for

MAX_TILINGS = 2**16
MAX_TILES = 2**62  # a tile's number is a 64-bit integer


class TileCoder(Resumable):
    """Tile coding: from an observation of d numbers to the indices of the active tiles.

    Tile coding (Sutton and Barto 2018, section 9.5.4) lays `tilings` grids over the range of the observations. The grids
    are shifted against each other. Observations that are near each other share tiles, so a learner generalises between
    them.

    Parameters
    ----------
    low, high : array_like
        The bounds of an observation, as numbers or as arrays of the observation's shape. A bound of magnitude 1e9 or more
        means that there is no bound.
    bins : int or sequence of int
        The number of cells in each dimension, the same for all dimensions or one for each.
    tilings : int
        The number of grids.
    bias : bool
        Whether to add a feature that is always active. It has the last index.
    size : int, optional
        Hash the tiles to this many features. By default every tile has a feature.
    groups : sequence of sequences of int, optional
        Dimensions that share a joint grid, such as ``[(0,), (1,), (0, 1)]``. By default all dimensions share one grid.
    scales : array_like, optional
        The size of ordinary values in dimensions without bounds, as one number or one for each dimension. The default is 1.
    kind : str
        Always "tiles". It is here so that `settings` can be passed back.

    Raises
    ------
    ValueError
        If an argument is out of range, or if there would be too many tiles.

    Notes
    -----
    **Observations** have the shape of `low` and `high` and are flattened in row-major order. A number beyond a bound is
    moved to the bound, and `clipped` counts it. A dimension without bounds is squashed by an arctan of x / scale
    (`features.scaling` has the formula of u ∈ [0, 1]). Observations that are not finite are refused.

    **Cells.** Every tiling has exactly bins_i cells in dimension i, so there are tilings · ∏ bins_i tiles, as the paper
    counts them. All tiles are equally wide. The range truncates the tiles at its edges. With n = tilings,

        F_i = n·(bins_i − 1) + 1                             steps into which the range is divided evenly
        f_i = min(⌊F_i·u_i⌋, F_i − 1)                        the step in which the number lies
        c_i = ⌊(f_i + (k·m_i mod n)) / n⌋                    its cell in tiling k = 0 … n − 1

    The resolution is 1/F_i of the range, and a tile is n/F_i wide. With one tiling the range is split evenly into bins_i
    cells. With bins_i = 1 the dimension is ignored. Every tiling covers the whole range and every cell can be reached:
    u = 0 lies in cell 0 of every tiling, and u = 1 in the last cell. (The alternatives are worse. Tiles of width 1/bins
    overhang the range when they are shifted. With one more cell for the overhang there would be (1 + 1/bins)^d times as
    many tiles. With the overhang added to the edge cell, no tiling could tell apart observations in the last 1/bins of
    the range.)

    **Shifts.** m_i are the first odd numbers 1, 3, 5, … for the dimensions in their order (Miller and Glanz 1996). They
    avoid the diagonal artefacts of equal shifts. Odd numbers that share a divisor with n are skipped, because they would
    leave some tilings unshifted against each other. For n = 2, 4, 8, … none is skipped. Two observations whose steps
    differ by s in one dimension only share max(n − s, 0) tiles. The literature advises that n be a power of two and at
    least 4d.

    **Indices** are in row-major order, the last dimension fastest. Tile (c_1, …, c_d) of tiling k has the number
    k·∏bins + (…(c_1·bins_2 + c_2)·bins_3 + …) + c_d. The active indices are listed tiling by tiling.

    **Groups.** Each group of dimensions has a joint grid with tilings of its own, with shifts 1, 3, 5, … for its
    dimensions as listed. Its tiles are numbered after those of the groups before it. A dimension in no group is ignored,
    but it still has to be finite.

    **Hashing.** With `size`, tile t has the index ⌊h·M / 2³²⌋. Here h is the upper half of splitmix64(t) and M is the
    size, less 1 for a bias. A tile that is seen for the first time at an index that another tile has taken is a
    collision, and `collisions` counts it. (The count is exact up to 2²⁷ tiles. Beyond that, tiles are distinguished by 27
    bits of their hash, and the count may be too low.) Two tiles of one observation may hash to the same index. The index
    is then listed once, and fewer than `n_active` features are active.

    Examples
    --------
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
        self._scaling = Scaling.of(low, high, scales)
        self._bins = _bins(bins, self._scaling.size)
        self._tilings = count("tilings", tilings, MAX_TILINGS)
        self._bias = flag("bias", bias)
        self._groups = _groups(groups, self._scaling.size)
        self._size = None if size is None else count("size", size)
        self._tiles = self._tilings * sum(math.prod(self._bins[i] for i in group) for group in self._groups)
        self._refuse_sizes()
        self._bounds = self._scaling.bounds()
        self._places = self._layout()
        self._state = {"places": self._places}
        self._blank = np.zeros(self.n_active, np.int64)
        self._quick_types = FAST_TYPES if len(self._scaling.shape) == 1 else ()
        self._quick = partial(kernels.ONE[self._size is not None], self._bounds, self._places)

    def _refuse_sizes(self) -> None:
        if self._size is not None and self._size <= self._bias:
            raise ValueError(f"size must leave an index beside the bias, got {self._size}")
        most = MAX_FEATURES - self._bias if self._size is None else MAX_TILES
        if self._tiles > most:
            raise ValueError(
                f"bins={self._bins} and tilings={self._tilings} make {self._tiles:,} tiles, but there may be {most:,}; "
                "give fewer bins, groups of fewer dimensions, or a size to hash them to"
            )

    def _layout(self) -> np.ndarray:
        """The array of places: the header, the counts, and the parts that `attach` points to."""
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
            kernels.FINE: [n * (b - 1) + 1 for b in self._bins],
            kernels.SHIFTS: [k * m % n for m in multipliers for k in range(n)],
            kernels.LAYOUT: layout,
        }
        hashing = self._size is not None
        room = self.n_features - self._bias
        begins = np.cumsum([kernels.HEADER + d, *map(len, parts.values())])
        bits = (min(self._tiles, kernels.MAX_KEYS) // 64 + 1, room // 64 + 1) if hashing else (0, 0)
        length = int(begins[-1]) + sum(bits)
        with room_for(f"bins={self._bins} and tilings={n}", 8.0 * length):
            places = np.zeros(length, np.int64)  # committed by the operating system only where it is written
        for (name, values), begin in zip(parts.items(), begins[:-1], strict=True):
            places[name] = begin
            places[begin : begin + len(values)] = values
        places[[kernels.SIZE, kernels.TILINGS, kernels.GROUPS, kernels.TILES]] = d, n, len(self._groups), self._tiles
        bias = self.n_features - 1 if self._bias else -1
        places[[kernels.ACTIVE, kernels.BIAS, kernels.ROOM]] = self.n_active, bias, room
        places[[kernels.SEEN, kernels.TAKEN]] = begins[-1], begins[-1] + bits[0]
        return places

    @property
    def n_features(self) -> int:
        """The number of features, including a bias."""
        return self._tiles + self._bias if self._size is None else self._size

    @property
    def n_active(self) -> int:
        """The largest number of features that can be active at a time."""
        return len(self._groups) * self._tilings + self._bias

    @property
    def clipped(self) -> np.ndarray:
        """For each dimension, how many numbers have been moved to a bound so far."""
        return self._places[kernels.HEADER : kernels.HEADER + self._scaling.size].copy()

    @property
    def collisions(self) -> int:
        """The number of tiles seen so far that were hashed to an index of another tile."""
        return int(self._places[kernels.COLLISIONS])

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The indices of the features that are active at an observation.

        Parameters
        ----------
        x : array_like
            An observation of the shape of `low`.

        Returns
        -------
        numpy.ndarray
            A new array of indices.

        Raises
        ------
        ValueError
            If `x` has another shape, or is not finite.
        """
        active = self._blank.copy()  # quicker than np.empty
        length = -1
        if type(x) is np.ndarray and x.dtype in self._quick_types and x.flags.carray:
            try:
                length = self._quick(x, active)
            except (TypeError, ValueError):
                length = -1  # not compiled yet, or a bad observation: nothing was counted, and the checks below find out
        if length < 0:
            values = as_given(x, self._scaling.observation(x))
            length = call(kernels.ONE[self._size is not None], self._bounds, self._places, values, active)
        return active if length == active.size else active[:length]

    def many(self, X: ArrayLike) -> np.ndarray | list[np.ndarray]:
        """The active indices at many observations, in one compiled call.

        Parameters
        ----------
        X : array_like
            One observation per row.

        Returns
        -------
        numpy.ndarray or list of numpy.ndarray
            A 2-D array with a row of indices for each observation, as `Learner.run` takes it. It is a list of arrays if
            hashing left some rows with fewer indices than others.

        Raises
        ------
        ValueError
            If a row has the wrong shape, or is not finite.
        """
        rows = self._scaling.observations(X)
        active, lengths = np.empty((len(rows), self.n_active), np.int64), np.empty(len(rows), np.int64)
        total = call(kernels.MANY[self._size is not None], self._bounds, self._places, rows, active, lengths)
        if total == active.size:
            return active
        return [row[:length] for row, length in zip(active, lengths.tolist(), strict=True)]

    def settings(self) -> dict[str, Any]:
        """The settings of this coder, as a dictionary that JSON can hold.

        Returns
        -------
        dict
            `TileCoder(**settings)` is the same coder, with its counts at zero.
        """
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
        self.restore(state)

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Saved places differ from those of this coder in counts and in the bits of hashing only."""
        places, own = saved["places"], self._places
        counts = [kernels.COLLISIONS, *range(kernels.HEADER, kernels.HEADER + self._scaling.size)]
        laid_out = np.arange(own[kernels.SEEN])
        fixed = np.delete(laid_out, counts)
        return {"places": np.array_equal(places[fixed], own[fixed]) and (places[counts] >= 0).all()}

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
