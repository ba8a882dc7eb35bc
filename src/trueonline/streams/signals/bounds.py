"""The bounds of signals, fixed or running, and the scaling of each signal to [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.inputs import FLOATS, Resumable, floats, number
from trueonline.streams.signals.signal_blocks import BIG, all_finite, bounded, check_finite
from trueonline.streams.sources.sample import named


def scale(fixed, low, high, clipped, widened, values, out):
    """Scale each value by the bounds of its signal. Return False, with nothing changed, if the values do not fit."""
    if values.shape[1] != low.size or not all_finite(values):
        return False
    for k in range(values.shape[0]):
        for j in range(low.size):
            x = bounded(values[k, j])
            if np.isnan(low[j]):
                low[j] = high[j] = x
            elif not fixed[j] and x > high[j]:
                high[j] = min(x, further(high[j], high[j] - low[j], np.inf))
                widened[j] += 1
            elif not fixed[j] and x < low[j]:
                low[j] = max(x, further(low[j], low[j] - high[j], -np.inf))
                widened[j] += 1
            clipped[j] += x < low[j] or x > high[j]
            width = high[j] - low[j]
            out[k, j] = (min(max(x, low[j]), high[j]) - low[j]) / width if width > 0.0 else 0.5
    return True


@kernel
def further(edge, distance, end):
    """How far a bound may move: anywhere while the range is empty, and always to the next number at least."""
    if distance == 0.0 or edge + distance == edge:
        return end if distance == 0.0 else np.nextafter(edge, end)
    return edge + distance


_SCALE = specialise(scale, "signals")


class Bounds(Resumable):
    """Scales signals to [0, 1] by their bounds, block by block.

    A signal has fixed or running bounds:

    - **Fixed** bounds, low < high: u = (x − low) / (high − low). A value outside is moved to the bound and counted.
    - **Running** bounds, for all other signals. The first value sets both, and u = 0.5 while they are equal. A value outside
      moves its bound towards it, by at most the width of the range so far (by any distance while the width is 0, and always
      to the next number at least). The range never narrows. A value that is still outside is moved to the bound and counted.
      So one spike at most doubles the range, and a change of level by c widths is covered after log₂(1 + c) samples.

    Bounds move first, then the value is scaled. Numbers beyond ±1e100 are taken as ±1e100. The division of samples into
    blocks makes no difference.

    Parameters
    ----------
    names : sequence of str
        The signals.
    fixed : mapping from str to (low, high), optional
        The bounds of some signals. The others have running bounds.

    Raises
    ------
    ValueError
        If a name is given twice, or bounds are not a pair of numbers low < high within ±1e100.

    Examples
    --------
    >>> bounds = Bounds(["force", "angle"], {"force": (0.0, 10.0)})
    >>> bounds.scale(np.array([[5.0, 1.0], [20.0, 2.0], [0.0, 9.0]]))
    array([[0.5, 0.5],
           [1. , 1. ],
           [0. , 1. ]])
    >>> bounds.low, bounds.high, bounds.clipped, bounds.widened
    (array([0., 1.]), array([10.,  3.]), array([1, 1]), array([0, 2]))
    """

    def __init__(self, names: Sequence[str], fixed: Mapping[str, tuple[float, float]] | None = None) -> None:
        self.names = named(names)
        size = len(self.names)
        self._low, self._high = np.full(size, math.nan), np.full(size, math.nan)
        self._fixed = np.zeros(size, np.bool_)
        for name, pair in (fixed or {}).items():
            if name not in self.names:
                raise ValueError(f"there is no signal {name!r} to bound; there are {', '.join(self.names)}")
            i = self.names.index(name)
            self._low[i], self._high[i] = _checked_pair(name, pair)
            self._fixed[i] = True
        self._clipped, self._widened = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._arrays = (self._fixed, self._low, self._high, self._clipped, self._widened)
        names_of_arrays = ("fixed", "low", "high", "clipped", "widened")
        self._state = {"names": np.array(self.names), **dict(zip(names_of_arrays, self._arrays, strict=True))}
        self._quick = partial(_SCALE, *self._arrays)

    @property
    def low(self) -> np.ndarray:
        """The lower bound of each signal, NaN before the first value."""
        return self._low.copy()

    @property
    def high(self) -> np.ndarray:
        """The upper bound of each signal, NaN before the first value."""
        return self._high.copy()

    @property
    def clipped(self) -> np.ndarray:
        """The number of values of each signal that lay outside its bounds."""
        return self._clipped.copy()

    @property
    def widened(self) -> np.ndarray:
        """How often a bound of each signal moved."""
        return self._widened.copy()

    def scale(self, values: Any) -> np.ndarray:
        """Scale a block of samples.

        Parameters
        ----------
        values : array of shape (samples, signals)
            Finite numbers.

        Returns
        -------
        array of shape (samples, signals)
            The place of each value within the bounds of its signal, in [0, 1].

        Raises
        ------
        ValueError
            If the values do not fit. No bound has moved then.
        """
        if type(values) is np.ndarray and values.dtype is FLOATS and values.ndim == 2:
            out = np.empty((len(values), len(self.names)))
            try:
                if self._quick(values, out):
                    return out
            except TypeError:
                pass  # not compiled yet, or another layout. Nothing has changed, and the checks below find out
        values = floats("values", values)
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise ValueError(
                f"values must have rows of {len(self.names)}, one for each of {', '.join(self.names)}, "
                f"got shape {values.shape}"
            )
        check_finite("values", values)
        out = np.empty(values.shape)
        call(_SCALE, *self._arrays, values, out)
        return out

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        fixed, low, high = saved["fixed"], saved["low"], saved["high"]
        for i, name in enumerate(self.names):
            theirs, own = (fixed[i], low[i], high[i]), (self._fixed[i], self._low[i], self._high[i])
            if (fixed[i] or self._fixed[i]) and theirs != own:
                raise ValueError(f"it has other bounds for {name}; give the same bounds as before")
        ranges = ((low <= high) & (low >= -BIG) & (high <= BIG)) | (np.isnan(low) & np.isnan(high))
        return {"low and high": ranges, **{name: saved[name] >= 0 for name in ("clipped", "widened")}}


def _checked_pair(name: str, pair: Any) -> tuple[float, float]:
    if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        raise ValueError(f"the bounds of {name} must be a pair (low, high), got {pair!r}")
    low, high = (
        number(f"{end} of {name}", value, "a number within ±1e100", lambda v: -BIG <= v <= BIG)
        for end, value in zip(("low", "high"), pair, strict=True)
    )
    if not low < high:
        raise ValueError(f"low must be below high, got low = {low} and high = {high} for {name}")
    return low, high
