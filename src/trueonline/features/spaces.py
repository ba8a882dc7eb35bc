"""Features for an environment, made from its observation space or restored from their settings.

Gymnasium is not imported: a space is recognised by its attributes. All makers of features are callables with `n_features`,
`n_active`, `many` for whole batches, and `settings()`, a dictionary from which `restore` makes the same maker again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from trueonline.features.bits import Bits
from trueonline.features.fourier import Fourier
from trueonline.features.scaling import shown
from trueonline.features.tiles import TileCoder
from trueonline.inputs import MAX_FEATURES, as_array, count

DEFAULT_MAX_TILES = 200_000  # the default limit of tiles
DEFAULT_BINS = 8
MAX_JOINT_DIMENSIONS = 6  # the default limit of dimensions in one joint grid
MAX_BOX_SIZE = 64  # a longer observation is taken for an image
MAX_COUPLED_FEATURES = 4096  # the default limit of coupled Fourier features

SUPPORTED = "Discrete, MultiDiscrete, Tuple of Discrete, MultiBinary, Box of booleans, and Box of up to 64 numbers"


class Maker(Protocol):
    """From observations to features."""

    @property
    def n_features(self) -> int: ...

    @property
    def n_active(self) -> int: ...

    def __call__(self, x: Any, /) -> np.ndarray: ...

    def many(self, X: Any, /) -> Any: ...

    def settings(self) -> dict[str, Any]: ...


class Table:
    """One feature for each state, where a state is a whole number or a tuple of whole numbers.

    Parameters
    ----------
    n : int or sequence of int
        The number of states. With several numbers, an observation is a tuple, and the combinations are numbered in
        row-major order, the last number fastest.
    start : int or sequence of int
        The smallest number of an observation, the same for all or one for each entry of `n`.
    kind : str
        Always "table". It is here so that `settings` can be passed back.

    Raises
    ------
    ValueError
        If `n` or `start` is not made of whole numbers, or if there would be too many states.

    Examples
    --------
    >>> Table(16)(3), Table(6, start=1)(1)
    (array([3]), array([0]))
    >>> Table((32, 11, 2))((1, 0, 1))           # Blackjack
    array([23])
    """

    n_active = 1

    def __init__(self, n: Any, start: Any = 0, *, kind: str = "table") -> None:
        if kind != "table":
            raise ValueError(f"kind must be 'table' for a Table, got {kind!r}; features.restore takes every kind")
        self._several = isinstance(n, Sequence | np.ndarray) and np.ndim(n) > 0
        sizes = n if self._several else (n,)
        self._sizes = tuple(count(f"n[{i}]" if self._several else "n", each) for i, each in enumerate(sizes))
        self.n_features = math.prod(self._sizes)
        if not self._sizes or self.n_features > MAX_FEATURES:
            raise ValueError(f"n must make 1 to {MAX_FEATURES:,} states, got {n!r:.80}")
        starts = start if isinstance(start, Sequence | np.ndarray) and np.ndim(start) > 0 else (start,) * len(self._sizes)
        if len(starts) != len(self._sizes) or not all(_whole(each) and abs(int(each)) < 2**62 for each in starts):
            raise ValueError(f"start must be one whole number, or as many as n has, got {start!r:.80}")
        self._starts = tuple(int(each) for each in starts)

    def __call__(self, x: Any) -> np.ndarray:
        """The index of the feature that is active in a state.

        Parameters
        ----------
        x : int or sequence of int
            The state.

        Returns
        -------
        numpy.ndarray
            A new array of length 1.

        Raises
        ------
        ValueError
            If `x` is not one of the states.
        """
        given = x if self._several else (x,)
        if not isinstance(given, Sequence | np.ndarray) or len(given) != len(self._sizes):
            raise ValueError(f"the observation must be {len(self._sizes)} whole numbers, got {x!r:.80}")
        state = 0
        for i, (each, size, start) in enumerate(zip(given, self._sizes, self._starts, strict=True)):
            if not _whole(each) or not 0 <= (place := int(each) - start) < size:
                where = f" at position {i}" if self._several else ""
                raise ValueError(
                    f"the observation must be a whole number from {start} to {start + size - 1}, got {each!r:.80}{where}"
                )
            state = state * size + place
        return np.array([state])

    def many(self, X: Any) -> np.ndarray:
        """The indices of the features that are active in many states.

        Parameters
        ----------
        X : array_like of int
            One state per row.

        Returns
        -------
        numpy.ndarray
            A 2-D array with one column.

        Raises
        ------
        ValueError
            If a row is not one of the states.
        """
        array = as_array("X", X)
        rows = array if self._several else array[..., None]
        if array.dtype.kind not in "iu" or rows.ndim != 2 or rows.shape[1] != len(self._sizes):
            wanted = f"a 2-D array of {len(self._sizes)} whole numbers a row" if self._several else "whole numbers"
            raise ValueError(f"X must be {wanted}, got {array.dtype} of shape {array.shape}")
        states = np.zeros(len(rows), np.int64)
        for i, (size, start) in enumerate(zip(self._sizes, self._starts, strict=True)):
            bad = np.flatnonzero((rows[:, i] < start) | (rows[:, i] >= start + size))
            if bad.size:
                raise ValueError(
                    f"X must hold whole numbers from {start} to {start + size - 1}"
                    f"{f' in column {i}' if self._several else ''}, got {rows[bad[0], i]} in row {bad[0]}"
                )
            states = states * size + (rows[:, i].astype(np.int64) - start)
        return states[:, None]

    def settings(self) -> dict[str, Any]:
        """The settings of this table, as a dictionary that JSON can hold.

        Returns
        -------
        dict
            `Table(**settings)` is the same table.
        """
        several = self._several
        start = self._starts[0] if len(set(self._starts)) == 1 else list(self._starts)
        return {"kind": "table", "n": list(self._sizes) if several else self._sizes[0], "start": start}

    def __repr__(self) -> str:
        return shown(self)


def from_space(space: Any, kind: str = "auto", **options: Any) -> Maker:
    """Choose features for the observations of a Gymnasium space.

    Parameters
    ----------
    space : gymnasium.Space
        The observation space.
    kind : str
        "auto", "table", "tiles", "fourier" or "bits".
    **options
        Arguments of `TileCoder` or `Fourier`, apart from the bounds, or `n_active` of `Bits`.

    Returns
    -------
    Table, TileCoder, Fourier or Bits
        A callable from an observation to its features.

    Raises
    ------
    ValueError
        If there are no features for this space, or not of this kind.

    Notes
    -----
    | space                                  | kind                    | features                              |
    |----------------------------------------|-------------------------|---------------------------------------|
    | Discrete, MultiDiscrete                | "table" (or "auto")     | `Table`: one for each state           |
    | Tuple of Discrete, such as Blackjack's | "table" (or "auto")     | `Table`: one for each combination     |
    | Box of up to 64 numbers                | "tiles" (or "auto")     | `TileCoder(low, high, **options)`     |
    | the same                               | "fourier"               | `Fourier(low, high, **options)`       |
    | MultiBinary, Box of booleans           | "bits" (or "auto")      | `Bits`: one for each bit              |

    Other spaces are refused. The numbers of a Box are flattened, and the bounds are those of the Box.

    Without the options `bins` and `groups`, tiles form one joint grid for up to 6 dimensions: 8 bins for up to 4 dimensions,
    7 bins for 5 and 5 bins for 6, so that 8 tilings have at most 200,000 tiles. For more dimensions there is a grid for each
    dimension and for each pair of dimensions. If these would have more than 200,000 tiles (from 29 dimensions), there is a
    grid for each dimension alone. Without the option `coupled`, a Fourier basis is coupled if it then has at most 4,096
    features.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from_space(SimpleNamespace(n=16, shape=()))      # as Gymnasium's Discrete(16)
    Table(n=16)
    """
    kinds = ("auto", "table", "tiles", "fourier", "bits")
    if kind not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)}, got {kind!r}")
    shape = getattr(space, "shape", None) or ()
    binary = shape != () and (getattr(space, "dtype", None) == np.dtype(bool) or hasattr(space, "n"))
    if kind == "bits" or (binary and kind == "auto"):
        if not binary:
            raise ValueError(f"{space!r:.80} is not made of bits: kind 'bits' is for MultiBinary and Box of booleans")
        return Bits(math.prod(shape), **options)
    table = _table(space)
    box = table is None and all(hasattr(space, name) for name in ("low", "high", "shape"))
    if table is None and not box:
        raise ValueError(
            f"there are no features for {space!r:.80}; supported are {SUPPORTED}; or write your own function"
        )
    if table is not None:
        if kind not in ("auto", "table") or options:
            raise ValueError(f"{space!r:.80} gets a table, without options, got kind={kind!r} and {options!r:.80}")
        return table
    if kind == "table":
        raise ValueError(f"{space!r:.80} holds numbers, not states: kind must be 'tiles' or 'fourier', got 'table'")
    low, high = np.asarray(space.low), np.asarray(space.high)
    if low.ndim > 1 and all((ends == ends[0]).all() for ends in (low, high)) and np.ptp(np.nan_to_num(high[0])) > 0.0:
        raise ValueError(
            f"{type(space).__name__} of shape {low.shape} has equal rows, as the space of {len(low)} environments side by side: "
            "give the single_observation_space of a vector environment, and flatten other observations to one row"
        )
    if low.size > MAX_BOX_SIZE:
        raise ValueError(
            f"an observation of {low.size:,} numbers ({space!r:.80}) is too long for tiles or waves, and may be an image; for "
            "Atari use the screen's own features (trueonline.control), otherwise write your own function"
        )
    if kind == "fourier":
        defaults = {"coupled": (count("order", options.get("order", 3)) + 1) ** low.size <= MAX_COUPLED_FEATURES}
        return Fourier(low, high, **{**defaults, **options})
    return TileCoder(low, high, **{**_grids(low.size, options), **options})


def _table(space: Any) -> Table | None:
    """The table for a space of finitely many states, otherwise None. MultiBinary also has an n, but a shape with it."""
    if isinstance(getattr(space, "n", None), Integral) and getattr(space, "shape", ()) == ():
        return Table(space.n, getattr(space, "start", 0))
    if hasattr(space, "nvec"):
        n = np.asarray(space.nvec)
        if n.ndim == 1:
            return Table(n.tolist(), np.broadcast_to(getattr(space, "start", 0), n.shape).tolist())
    parts = getattr(space, "spaces", None)
    if isinstance(parts, Sequence) and isinstance(
        space, Sequence
    ):  # OneOf also has a tuple of spaces, but is not a sequence
        tables = [table for part in parts if (table := _table(part)) is not None and not table._several]
        if parts and len(tables) == len(parts):
            return Table([each.n_features for each in tables], [each._starts[0] for each in tables])
    return None


def _grids(d: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The default groups and bins for d dimensions; empty if the options have bins or groups."""
    tilings = count("tilings", options.get("tilings", 8))
    if "bins" in options or "groups" in options:
        return {}
    if d <= MAX_JOINT_DIMENSIONS:
        fitting = (b for b in range(DEFAULT_BINS, 1, -1) if tilings * b**d <= DEFAULT_MAX_TILES)
        return {"bins": next(fitting, 2)}
    alone, pairs = [(i,) for i in range(d)], list(combinations(range(d), 2))
    fits = tilings * (d * DEFAULT_BINS + len(pairs) * DEFAULT_BINS**2) <= DEFAULT_MAX_TILES
    return {"bins": DEFAULT_BINS, "groups": [*alone, *pairs] if fits else alone}


def restore(settings: Mapping[str, Any]) -> Maker:
    """Make features again from their settings.

    Parameters
    ----------
    settings : mapping
        The result of `settings()` of a `Table`, `TileCoder`, `Fourier` or `Bits`.

    Returns
    -------
    Table, TileCoder, Fourier or Bits
        The same features, with counts at zero.

    Raises
    ------
    ValueError
        If these are not the settings of any features.

    Examples
    --------
    >>> restore(Table(6, start=1).settings())
    Table(n=6, start=1)
    """
    makers = {"table": Table, "tiles": TileCoder, "fourier": Fourier, "bits": Bits}
    kind = settings.get("kind") if isinstance(settings, Mapping) else None
    if kind not in makers:
        raise ValueError(f"settings must be a dict whose kind is one of {', '.join(makers)}, got {settings!r:.80}")
    try:
        return makers[kind](**settings)
    except TypeError as error:
        raise ValueError(f"settings of kind {kind!r} do not fit: {error}") from None


def _whole(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iu"
    return isinstance(value, Integral) and not isinstance(value, bool)
