"""Features for an environment, from its observation space; and back from their settings.

Gymnasium is not imported: a space is known by what it has. All makers of features are callables with `n_features`,
`n_active`, `many` for whole batches, and `settings()`, a JSON-able dict from which `restore` makes the same maker again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from trueonline.features.fourier import Fourier
from trueonline.features.scaling import shown
from trueonline.features.tiles import TileCoder
from trueonline.inputs import MAX_FEATURES, count

TABLE = 200_000  # tiles, at most, unless asked for more
BINS = 8
JOINT = 6  # dimensions, at most, in one joint grid
IMAGE = 64  # an observation of more numbers is taken for an image
COUPLED = 4096  # Fourier features, at most, unless asked for more

SUPPORTED = "Discrete, MultiDiscrete, Tuple of Discrete, and Box of up to 64 numbers"


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
    """From a whole number, or from several, to the one active feature of that state.

    `Table(n)` is for the numbers start … start + n − 1. `Table((n_1, n_2, …))` is for tuples of such numbers; their
    states are numbered in row-major order, the last number fastest.

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
        """The index of state x, as a fresh array of length 1."""
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
        """The index of each row of X: a 2-D array with one column."""
        array = np.asarray(X)
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
        """JSON-able: `Table(**settings)` is the same table."""
        several = self._several
        start = self._starts[0] if len(set(self._starts)) == 1 else list(self._starts)
        return {"kind": "table", "n": list(self._sizes) if several else self._sizes[0], "start": start}

    def __repr__(self) -> str:
        return shown(self)


def from_space(space: Any, kind: str = "auto", **options: Any) -> Maker:
    """A maker of features for the observations of a Gymnasium space.

    | space                                  | kind                    | features                              |
    |----------------------------------------|-------------------------|---------------------------------------|
    | Discrete, MultiDiscrete                | "table" (or "auto")     | `Table`: one for each state           |
    | Tuple of Discrete, such as Blackjack's | "table" (or "auto")     | `Table`: one for each combination     |
    | Box of up to 64 numbers                | "tiles" (or "auto")     | `TileCoder(low, high, **options)`     |
    | the same                               | "fourier"               | `Fourier(low, high, **options)`       |

    Everything else is refused. A Box's numbers are flattened, and its bounds are taken from it.

    Where the options say nothing of bins and groups, tiles are joint grids of 8 bins for up to 4 dimensions, and of as many
    as leave 200,000 tiles for 5 (7 bins) and 6 (5 bins), with 8 tilings. For more dimensions there is a grid for each
    dimension and each pair of them, while these make no more than 200,000 tiles, and beyond that (29 dimensions) for each
    dimension alone. Where they say nothing of `coupled`, a Fourier basis is coupled while it has up to 4,096 features.
    """
    kinds = ("auto", "table", "tiles", "fourier")
    if kind not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)}, got {kind!r}")
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
    if low.size > IMAGE:
        raise ValueError(
            f"an observation of {low.size:,} numbers ({space!r:.80}) is too long for tiles or waves, and may be an image; for "
            "Atari use the screen's own features (trueonline.control), otherwise write your own function"
        )
    if kind == "fourier":
        defaults = {"coupled": (count("order", options.get("order", 3)) + 1) ** low.size <= COUPLED}
        return Fourier(low, high, **{**defaults, **options})
    return TileCoder(low, high, **{**_grids(low.size, options), **options})


def _table(space: Any) -> Table | None:
    """The table for a space of finitely many states; None for another. MultiBinary has an n too, but a shape with it."""
    if isinstance(getattr(space, "n", None), Integral) and getattr(space, "shape", ()) == ():
        return Table(space.n, getattr(space, "start", 0))
    if hasattr(space, "nvec"):
        n = np.asarray(space.nvec)
        if n.ndim == 1:
            return Table(n.tolist(), np.broadcast_to(getattr(space, "start", 0), n.shape).tolist())
    parts = getattr(space, "spaces", None)
    if isinstance(parts, Sequence) and isinstance(space, Sequence):  # OneOf has a tuple of spaces too, and is no sequence
        tables = [table for part in parts if (table := _table(part)) is not None and not table._several]
        if parts and len(tables) == len(parts):
            return Table([each.n_features for each in tables], [each._starts[0] for each in tables])
    return None


def _grids(d: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Groups and bins for d dimensions, where the options say nothing of them."""
    tilings = count("tilings", options.get("tilings", 8))
    if "bins" in options or "groups" in options:
        return {}
    if d <= JOINT:
        fitting = (b for b in range(BINS, 1, -1) if tilings * b**d <= TABLE)
        return {"bins": next(fitting, 2)}
    alone, pairs = [(i,) for i in range(d)], list(combinations(range(d), 2))
    fits = tilings * (d * BINS + len(pairs) * BINS**2) <= TABLE
    return {"bins": BINS, "groups": [*alone, *pairs] if fits else alone}


def restore(settings: Mapping[str, Any]) -> Maker:
    """The maker of features whose `settings()` these are."""
    makers = {"table": Table, "tiles": TileCoder, "fourier": Fourier}
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
