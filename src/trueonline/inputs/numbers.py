"""Checks of numbers, and of one number per transition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np

from trueonline import words
from trueonline.inputs.kinds import EMPTY_STREAM, MAX_FEATURES, Schedule

ROUNDING = 1e-12  # by so much a probability may exceed its ratio: both were rounded
FLAGS = (bool, np.bool_)  # made once: steps of networks check two of them


def number(
    name: str, value: Any, wanted: str = "a finite number", fits: Callable[[float], bool] = math.isfinite
) -> float:
    """`value` as a float that `fits`; ValueError otherwise. A boolean is not a number."""
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    try:
        result = float(value) if is_number else math.nan
    except OverflowError:
        result = math.nan
    if not (is_number and fits(result)):
        raise ValueError(f"{name} must be {wanted}, got {shown(value)}")
    return result


def positive(name: str, value: Any) -> float:
    """`value` as a finite float > 0."""
    return number(name, value, "a finite number > 0", lambda v: 0.0 < v < math.inf)


def unit(name: str, value: Any) -> float:
    """`value` as a float in [0, 1]."""
    return number(name, value, "a number in [0, 1]", lambda v: 0.0 <= v <= 1.0)


def flag(name: str, value: Any) -> bool:
    """`value` as True or False."""
    if not isinstance(value, FLAGS):
        raise ValueError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def count(name: str, value: Any, most: int = MAX_FEATURES) -> int:
    """`value` as a whole number from 1 to `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= int(value) <= most:
        raise ValueError(f"{name} must be a whole number from 1 to {most:,}, got {shown(value)}")
    return int(value)


@contextmanager
def room_for(what: str, size: float) -> Iterator[None]:
    """Turn a MemoryError into a ValueError that names the argument that asks for so much, and how many bytes it is."""
    try:
        yield
    except MemoryError:
        raise ValueError(
            f"{what} would take {words.size(size)} of memory, which this machine does not give; use fewer features"
        ) from None


def one_seed(seed: Any, name: str = "seed") -> Any:
    """A seed that NumPy takes. NumPy would take a list of seeds for one seed, so a list is refused."""
    whole = isinstance(seed, Integral) and not isinstance(seed, bool | np.bool_) and int(seed) >= 0
    if seed is None or whole or isinstance(seed, np.random.SeedSequence | np.random.BitGenerator | np.random.Generator):
        return seed
    advice = "; call once for each seed" if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str) else ""
    raise ValueError(f"{name} must be a whole number ≥ 0, got {shown(seed)}{advice}")


def joint_seed(seed: Any) -> Any:
    """The same, or several numbers that are one seed together."""
    several = isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str)
    return [one_seed(each) for each in seed] if several else one_seed(seed)


def unmasked(name: str, values: Any) -> Any:
    """The values. ValueError for a masked array, because its mask would be ignored."""
    parts = values if isinstance(values, list | tuple) else (values,)
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise ValueError(
            f"{name} must not be masked, because the mask would be ignored: give {name}.filled(…), or leave the masked entries out"
        )
    return values


def as_array(name: str, values: Any, dtype: Any = None) -> np.ndarray:
    """The values as an array. ValueError if they are none, or masked."""
    values = unmasked(name, values)
    try:
        return np.asarray(values, dtype)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers, got {shown(values)} ({error})") from None


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, which nobody can write into any more."""
    array.flags.writeable = False
    return array


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def at(name: str, given: float | Schedule, t: int, check: Callable[[str, Any], float]) -> float:
    """A number, or the value of a schedule at time t."""
    if not callable(given):
        return given
    value = given(t)
    return value if type(value) is float and 0.0 < value < math.inf else check(f"{name}({t})", value)


def along(
    name: str, given: float | Schedule, t: int, learned: np.ndarray, check: Callable[[str, Any], float]
) -> np.ndarray:
    """The same from time t on, for each transition that is learned from, or a single number for all of them."""
    if not callable(given):
        return np.array([given])
    result = np.ones(len(learned))
    result[learned] = [at(name, given, t + i, check) for i in range(int(learned.sum()))]
    return result


def rewards(values: Any, rows: int) -> np.ndarray:
    """R_1, …, R_T for a stream of T + 1 rows."""
    array = as_array("rewards", values)
    if array.dtype.kind not in "fiu" or array.ndim != 1:
        raise ValueError(f"rewards must be a one-dimensional array of numbers, got {array.dtype} of shape {array.shape}")
    if array.size == 0 or rows < 2:
        raise ValueError(EMPTY_STREAM)
    if array.size != rows - 1:
        raise ValueError(
            f"rewards must be one fewer than the rows of X (one per transition), got {array.size} rewards for {rows} rows"
        )
    array = np.require(array, np.float64, ("C", "A", "W"))
    if not np.isfinite(array).all():
        raise ValueError(f"rewards must be finite{first_bad(array)}")
    return array


def ratio(name: str, value: Any) -> float:
    """An importance ratio."""
    return number(name, value, "a finite number ≥ 0", lambda v: math.isfinite(v) and v >= 0.0)


def ratios(name: str, values: Any, length: int) -> np.ndarray:
    """An importance ratio for each step; 1 by default."""
    if values is None:
        return np.ones(1)
    array = as_array(name, values)
    if array.shape != (length,) or array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be {length} numbers, got shape {array.shape} of {array.dtype}")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise ValueError(f"{name} must be finite numbers ≥ 0, got {array[bad[0]]} at position {bad[0]}")
    return np.require(array, np.float64, ["C", "A", "W"])


def probability(name: str, value: Any, rho: float) -> float:
    """π(A|S) of an action with the ratio ρ = π(A|S) / b(A|S). It is at most ρ, because b(A|S) is at most 1."""
    most = min(rho, 1.0)
    wanted = f"a number from 0 to {most:g}, which is 1 or, if that is smaller, the ratio"
    return number(name, value, wanted, lambda v: 0.0 <= v <= most + ROUNDING)


def probabilities(name: str, values: Any, length: int, rhos: np.ndarray) -> np.ndarray:
    """π(A|S) of each action; min(1, ρ) by default."""
    most = np.minimum(rhos, 1.0)
    if values is None:
        return most
    array = ratios(name, values, length)
    bad = np.flatnonzero(~(array <= most + ROUNDING))
    if bad.size:
        raise ValueError(f"{name} must be at most 1, and at most the ratio, got {array[bad[0]]} at position {bad[0]}")
    return array


def units(name: str, values: Any, steps: int, default: float) -> np.ndarray:
    """One number in [0, 1] per transition, or a single one for all."""
    if values is None:
        return np.array([default])
    array = as_array(name, values)
    if array.dtype.kind not in "fiu" or array.shape not in ((), (steps,)):
        raise ValueError(f"{name} must be {steps} numbers, one per transition, got {array.dtype} of shape {array.shape}")
    array = np.require(array, np.float64, ("C", "A", "W")).reshape(-1)
    wrong = np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))
    if wrong.size:
        raise ValueError(f"{name} must lie in [0, 1], got {array[wrong[0]]} at position {wrong[0]}")
    return array


def marks(name: str, values: Any, rows: int) -> np.ndarray:
    """So many booleans. False by default."""
    if values is None:
        return np.zeros(rows, np.bool_)
    array = as_array(name, values)
    if array.dtype.kind != "b" or array.shape != (rows,):
        raise ValueError(f"{name} must be {rows} booleans, got {array.dtype} of shape {array.shape}")
    return np.require(array, np.bool_, ("C", "A", "W"))


def first_bad(array: np.ndarray) -> str:
    bad = np.flatnonzero(~np.isfinite(array))
    return f", got {array.reshape(-1)[bad[0]]} at position {bad[0]}" if bad.size else ""


def floats(name: str, values: Any) -> np.ndarray:
    """The values as an array of float64. ValueError unless they are numbers."""
    array = as_array(name, values)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be numbers, got dtype {array.dtype}: {values!r:.80}")
    # Contiguous, aligned and writable: an array of another sort would need entry points of its own.
    return np.require(array, np.float64, ["C", "A", "W"])
