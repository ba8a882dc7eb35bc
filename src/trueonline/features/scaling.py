"""Observations scaled to [0, 1]. Tile coding and the Fourier basis begin with this.

A number x of a dimension with low, high and scale becomes

| bounds           | u                                        |
|------------------|------------------------------------------|
| low and high     | (x − low) / (high − low)                 |
| low alone        | (2/π)·arctan((x − low) / scale)          |
| high alone       | 1 − (2/π)·arctan((high − x) / scale)     |
| none             | 1/2 + arctan(x / scale) / π              |

An x beyond a bound is first moved to that bound, and counted. The scale is the distance from the bound (or from 0) that is
mapped to half of the range on that side. Choose the size of ordinary values. Dimensions with two bounds ignore the scale.

Some environments write "unbounded" as the largest float32. So low ≤ −1e9 means −∞, and high ≥ 1e9 means ∞.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import kernel
from trueonline.inputs import as_array, floats, number, positive

UNBOUNDED = 1e9  # a bound of this magnitude means that there is no bound

# The types that entry points are compiled for. Gymnasium's observations are float32. (A call with another type takes 100 µs.)
FAST_TYPES = (np.dtype(np.float64), np.dtype(np.float32))


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def finite(x, size):
    """Whether all numbers of an observation are finite."""
    wrong = 0
    for i in range(size):
        wrong += not np.isfinite(x[i])
    return wrong == 0


@kernel
def beyond(bounds, i, x):
    """Whether x lies outside the bounds of dimension i."""
    return x < bounds[3 * i] or x > bounds[3 * i + 1]


@kernel
def unit(bounds, i, x):
    """u in [0, 1] for the number x of dimension i."""
    low, high, scale = bounds[3 * i], bounds[3 * i + 1], bounds[3 * i + 2]
    if -np.inf < low and high < np.inf:
        return (min(max(x, low), high) - low) / (high - low)
    if -np.inf < low:
        return (2.0 / math.pi) * math.atan((max(x, low) - low) / scale)
    if high < np.inf:
        return 1.0 - (2.0 / math.pi) * math.atan((high - min(x, high)) / scale)
    return 0.5 + math.atan(x / scale) / math.pi


# --- Seen from Python -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scaling:
    """The bounds of observations of one shape, checked. An observation of d numbers is flattened in row-major order."""

    shape: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, low: Any, high: Any, scales: Any = None) -> Scaling:
        """From a user's numbers, nested lists or arrays, in which infinity may be written "inf" or "-inf"."""
        lows, highs = _numbers("low", low, _bound), _numbers("high", high, _bound)
        try:
            shape = np.broadcast_shapes(lows.shape, highs.shape)
        except ValueError:
            raise ValueError(f"low and high must have one shape, got {lows.shape} and {highs.shape}") from None
        if 0 in shape:
            raise ValueError(f"low and high must hold at least one number, got shape {shape}")
        factors = _numbers("scales", 1.0 if scales is None else scales, positive)
        if factors.shape not in ((), shape):
            raise ValueError(f"scales must be one number or have the shape {shape} of low, got shape {factors.shape}")
        lows, highs, factors = (np.broadcast_to(each, shape).ravel() for each in (lows, highs, factors))
        lows, highs = np.where(lows <= -UNBOUNDED, -np.inf, lows), np.where(highs >= UNBOUNDED, np.inf, highs)
        for i, (a, b) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
            if not a < b:
                raise ValueError(f"low must be below high, got low = {a} and high = {b} at position {i}")
            if a >= UNBOUNDED or b <= -UNBOUNDED:
                raise ValueError(
                    f"bounds must lie within ±{UNBOUNDED:g} or have infinity between them, got low = {a} and high = {b} "
                    f"at position {i}; rescale the observations"
                )
        return cls(shape, lows, highs, factors)

    @property
    def size(self) -> int:
        """d, the length of an observation."""
        return len(self.low)

    def bounds(self) -> np.ndarray:
        """Low, high and scale of one dimension after the other, for `unit`."""
        return np.stack([self.low, self.high, self.scales], axis=1).ravel()

    def settings(self) -> dict[str, Any]:
        """A dictionary that JSON can hold, with infinities as strings. `of` takes it back."""
        low, high, scales = (_listed(each.reshape(self.shape).tolist()) for each in (self.low, self.high, self.scales))
        return {"low": low, "high": high, "scales": None if (self.scales == 1.0).all() else scales}

    def observation(self, x: Any) -> np.ndarray:
        """One observation as d contiguous floats. A ValueError says what is wrong with a bad one."""
        return self._checked(x, self.shape, "the observation").ravel()

    def observations(self, X: Any) -> np.ndarray:
        """A batch of observations, one row each. A ValueError says what is wrong with the first bad one."""
        array = floats("X", X)
        if array.ndim != len(self.shape) + 1 or array.shape[1:] != self.shape:
            raise ValueError(f"each row of X must have shape {self.shape}, got X of shape {array.shape}")
        rows = array.reshape(len(array), self.size)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if bad.size:
            self._checked(array[bad[0]], self.shape, f"X[{bad[0]}]")
        return rows

    @staticmethod
    def _checked(x: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
        array = floats(name, x)
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got shape {array.shape}")
        bad = np.flatnonzero(~np.isfinite(array))
        if bad.size:
            raise ValueError(f"{name} must be finite, got {array.flat[bad[0]]} at position {bad[0]}")
        return array


def as_given(x: Any, values: np.ndarray) -> np.ndarray:
    """x itself if an entry point can take it, otherwise its values."""
    return x if type(x) is np.ndarray and x.dtype in FAST_TYPES and x.flags.carray and x.ndim == 1 else values


def shown(maker: Any) -> str:
    """The repr of a maker of features: its settings, without those that have their default."""
    defaults = {"tilings": 8, "bias": False, "size": None, "groups": None, "scales": None, "coupled": True, "start": 0}
    settings = {name: value for name, value in maker.settings().items() if name != "kind"}
    parts = (f"{name}={value!r}" for name, value in settings.items() if name not in defaults or value != defaults[name])
    return f"{type(maker).__name__}({', '.join(parts)})"


def _numbers(name: str, values: Any, check: Callable[[str, Any], float]) -> np.ndarray:
    """Numbers in their original shape, each checked."""
    array = as_array(name, values, object)
    checked = [check(f"{name}[{i}]" if array.shape else name, value) for i, value in enumerate(array.flat)]
    return np.array(checked, np.float64).reshape(array.shape)


def _bound(name: str, value: Any) -> float:
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    return number(name, value, "a number, inf or -inf", lambda v: not math.isnan(v))


def _listed(values: Any) -> Any:
    """Nested lists with infinities as strings, since JSON has no infinity."""
    if isinstance(values, list):
        return [_listed(each) for each in values]
    return values if math.isfinite(values) else str(values)
