"""Features of one state: checked, and in one of the package's forms."""

from __future__ import annotations

from numbers import Integral, Number
from typing import Any

import numpy as np

from trueonline.inputs.kinds import ONE, Features, Stream
from trueonline.inputs.numbers import as_array, first_bad, shown

FLOATS, INTEGERS = np.dtype(np.float64), np.dtype(np.int64)


def native(x: Any) -> bool:
    """Whether a kernel may read x. Numba would misread other byte orders, and is slow to refuse."""
    if type(x) is np.ndarray:
        return (x.dtype is FLOATS or x.dtype is INTEGERS) and x.flags.carray
    return type(x) is tuple and len(x) == 2 and native(x[0]) and native(x[1]) and len(x[0]) == len(x[1])


def given(x: Features) -> tuple[np.ndarray, np.ndarray | None]:
    """Features as kernels take them: floats and None, or indices and their values, or one value for all."""
    if isinstance(x, tuple):
        return x
    return (x, None) if x.dtype is FLOATS else (x, ONE)


def features(x: Any, n: int, *, binary: bool = False, name: str = "x") -> Features:
    """Features in one of the package's forms, fully checked; ValueError otherwise."""
    if isinstance(x, Integral) and not isinstance(x, bool | np.bool_):
        if 0 <= int(x) < n:
            return np.array([x], np.int64)
        x = np.array([x])
    if isinstance(x, tuple):
        if len(x) != 2 or isinstance(x[0], Number):
            raise ValueError(
                f"{name} as a tuple must be (indices, values), got {shown(x)}; give a vector as a list or an array"
            )
        return _pairs(x[0], x[1], n, binary, name)
    array = array_of(x, name)
    if array.ndim != 1:
        hint = "a single state is given as an integer" if array.ndim == 0 else "only run takes many at once"
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}; {hint}")
    if array.dtype.kind in "iu":
        return _indices(array.copy(), n, name)  # what is checked stays as it is when another thread writes to the array
    if array.shape != (n,):
        raise ValueError(
            f"{name} must have n_features = {n} values, got {array.size}; to give active features, use integer indices"
        )
    return _values(array, binary, name)


def array_of(x: Any, name: str) -> np.ndarray:
    """An array of floats or integers."""
    array = as_array(name, x)
    if array.dtype.kind == "b":
        raise ValueError(f"{name} must be floats or integer indices, got booleans; use np.asarray({name}, float)")
    if array.dtype.kind not in "fiu":
        end = "; only update takes None, at the end of an episode" if x is None else ""
        raise ValueError(f"{name} must be floats or integer indices, got dtype {array.dtype}: {shown(x)}{end}")
    return array


def _values(array: np.ndarray, binary: bool, name: str) -> np.ndarray:
    values = np.require(array, np.float64, ("C", "A", "W"))
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite{first_bad(values)}")
    if binary and not np.isin(values, (0.0, 1.0)).all():
        worst = values[~np.isin(values, (0.0, 1.0))][0]
        raise ValueError(
            f"{name} must be binary (0 or 1) for replacing traces, got {worst}; use an accumulating or a true online method"
        )
    return values


def _indices(array: np.ndarray, n: int, name: str) -> np.ndarray:
    if array.size == n > 1:
        raise ValueError(
            f"{name} has {n} integers, as many as there are features: integers are indices of active features. For a vector of "
            f"zeros and ones use floats, np.asarray({name}, float), or np.flatnonzero({name}); for all features, np.ones({n})"
        )
    return _distinct(array, n, name)


def _distinct(array: np.ndarray, n: int, name: str) -> np.ndarray:
    outside = array[(array < 0) | (array >= n)]
    if outside.size:
        raise ValueError(f"{name} has index {outside[0]}, but indices go from 0 to n_features − 1 = {n - 1}")
    indices = np.require(array, np.int64, ("C", "A", "W"))
    if len(set(indices.tolist())) < indices.size:
        found, times = np.unique(indices, return_counts=True)
        raise ValueError(
            f"{name} has index {found[times > 1][0]} more than once; give each feature once, as (indices, values) if its "
            f"value is not 1. (Integers are indices: for {n} values use floats, np.asarray({name}, float).)"
        )
    return indices


def _pairs(indices: Any, values: Any, n: int, binary: bool, name: str) -> tuple[np.ndarray, np.ndarray]:
    where, what = array_of(indices, f"the indices of {name}"), array_of(values, f"the values of {name}")
    if where.size and where.dtype.kind not in "iu":
        raise ValueError(f"the indices of {name} must be integers, got {where.dtype}")
    if where.ndim != 1 or where.shape != what.shape:
        raise ValueError(f"{name} must pair indices with values one to one, got shapes {where.shape} and {what.shape}")
    return _distinct(where.astype(np.int64), n, name), _values(what, binary, f"the values of {name}")


def dense(x: Features, n: int) -> np.ndarray:
    """The same features as a vector of n floats: a fresh copy."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return x.copy()
    result = np.zeros(n)
    indices, values = x if isinstance(x, tuple) else (x, 1.0)
    result[indices] = values
    return result


def copied(x: Features) -> Features:
    """A copy of the features."""
    return (x[0].copy(), x[1].copy()) if isinstance(x, tuple) else x.copy()


def length(x: Features) -> int:
    """The number of entries of the features."""
    return len(x[0]) if isinstance(x, tuple) else len(x)


def is_dense(x: Features | Stream) -> bool:
    """Whether features, or those of a stream, have all their values."""
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def like(x: Features, y: Features, n: int) -> Features:
    """The features x, dense if y is dense, and sparse otherwise."""
    return x if is_dense(x) == is_dense(y) else dense(x, n) if is_dense(y) else as_pair(x)


def same(x: Features, y: Features) -> bool:
    """Whether two features, in any form, are the same vector."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.dtype.kind == y.dtype.kind == "f":
        return np.array_equal(x, y)
    return all(np.array_equal(a, b) for a, b in zip(_sorted_pairs(x), _sorted_pairs(y), strict=True))


def _sorted_pairs(x: Features) -> tuple[np.ndarray, np.ndarray]:
    indices, values = as_pair(x)
    order = np.argsort(indices)
    order = order[values[order] != 0.0]
    return indices[order], values[order]


def as_pair(x: Features) -> tuple[np.ndarray, np.ndarray]:
    """Features as (indices, values)."""
    if isinstance(x, tuple):
        return x
    if x.dtype.kind == "f":
        indices = np.flatnonzero(x)
        return indices, x[indices]
    return x, np.ones(x.size)
