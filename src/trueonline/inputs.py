"""Checks of user input. Every error names the argument, the value given, and the fix.

Inside the package features have one of three contiguous forms: a float64 array of length n_features, an int64 array of active
indices, or a pair of both. A stream of features is a 2-D float64 array, a 2-D int64 array, or a CSR triple.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike


class SparseMatrix(Protocol):
    """A SciPy sparse matrix or array. The core does not import SciPy."""

    def tocsr(self) -> Any: ...


# User input. Features are a float array, integer indices, one integer, or (indices, values). A stream has one row of features per
# step: a 2-D float array, a 2-D integer array, a 1-D array of states, a SciPy sparse matrix, a pair, or a list of features.
FeaturesLike: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike]
FeatureStream: TypeAlias = ArrayLike | SparseMatrix | tuple[ArrayLike, ArrayLike] | Sequence[FeaturesLike]

# The package's own forms: contiguous arrays.
Features: TypeAlias = np.ndarray | tuple[np.ndarray, np.ndarray]
Stream: TypeAlias = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]
Schedule: TypeAlias = Callable[[int], float]

SINGULAR = {
    "ratios": "ratio",
    "interests": "interest",
    "expected": "x_expected",
}  # a part of a transition, and of a stream

MAX_FEATURES = 2**31 - 2  # places in the memory are 32-bit
EMPTY = "the stream is empty: give at least two rows of features and one reward"


# --- Numbers --------------------------------------------------------------------------------------


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
        raise ValueError(f"{name} must be {wanted}, got {_shown(value)}")
    return result


def positive(name: str, value: Any) -> float:
    """`value` as a finite float > 0."""
    return number(name, value, "a finite number > 0", lambda v: 0.0 < v < math.inf)


def unit(name: str, value: Any) -> float:
    """`value` as a float in [0, 1]."""
    return number(name, value, "a number in [0, 1]", lambda v: 0.0 <= v <= 1.0)


def count(name: str, value: Any, most: int = MAX_FEATURES) -> int:
    """`value` as a whole number from 1 to `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= int(value) <= most:
        raise ValueError(f"{name} must be a whole number from 1 to {most:,}, got {_shown(value)}")
    return int(value)


def one_seed(seed: Any, name: str = "seed") -> Any:
    """A seed that NumPy takes. NumPy would take a list of seeds for one seed, so a list is refused."""
    whole = isinstance(seed, Integral) and not isinstance(seed, bool | np.bool_) and int(seed) >= 0
    if seed is None or whole or isinstance(seed, np.random.SeedSequence | np.random.BitGenerator | np.random.Generator):
        return seed
    advice = "; call once for each seed" if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str) else ""
    raise ValueError(f"{name} must be a whole number ≥ 0, got {_shown(seed)}{advice}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# --- Arguments by other names ----------------------------------------------------------------------

MEANT = {  # how papers and other libraries call an argument
    **dict.fromkeys(("alpha", "lr", "learning_rate", "stepsize", "eta"), "step_size"),
    **dict.fromkeys(("lam", "lambda_", "lambd", "lamda", "lmbda", "trace"), "trace_decay"),
    "lambda": "trace_decay",
    **dict.fromkeys(("gamma", "discount_factor", "gamma_"), "discount"),
    **dict.fromkeys(("beta", "second_stepsize"), "second_step_size"),
    **dict.fromkeys(("theta", "meta_stepsize"), "meta_step_size"),
    **dict.fromkeys(("n", "num_features", "features"), "n_features"),
    **dict.fromkeys(("num_actions", "actions"), "n_actions"),
    **dict.fromkeys(("epsilon", "eps"), "policy=trueonline.control.EpsilonGreedy(…)"),
}
Init = TypeVar("Init", bound=Callable[..., None])


def explains_arguments(init: Init) -> Init:
    """Let a constructor name the class in its errors, and the argument that a user of other names probably means."""
    parameters = [name for name in inspect.signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: Any, *arguments: Any, **named: Any) -> None:
        unknown = [name for name in named if name not in parameters and name not in getattr(self, "options", ())]
        if unknown:
            name, kind = unknown[0], type(self).__name__
            meant = MEANT.get(name.lower())
            if meant is not None and meant.partition("=")[0] in parameters:
                raise TypeError(f"{kind} takes no argument {name!r}: use {meant}")
            raise TypeError(f"{kind} takes no argument {name!r}; it takes {', '.join(parameters)}")
        try:
            inspect.signature(init).bind(self, *arguments, **named)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}; it takes {', '.join(parameters)}") from None
        init(self, *arguments, **named)

    return checked  # type: ignore[return-value]


# --- Parameters of a learner ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Parameters:
    """The checked parameters of every learner."""

    n_features: int
    step_size: float | Schedule
    trace_decay: float
    discount: float
    initial_weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "n_features": count("n_features", self.n_features),
            "trace_decay": unit("trace_decay", self.trace_decay),
            "discount": unit("discount", self.discount),
        }
        if not callable(self.step_size):
            checked["step_size"] = positive("step_size", self.step_size)
        if self.initial_weights is not None:
            given = np.asarray(self.initial_weights)
            if given.dtype.kind not in "fiu" or given.shape != (self.n_features,) or not np.isfinite(given).all():
                raise ValueError(
                    f"initial_weights must be {self.n_features} finite numbers, "
                    f"got {given.dtype} of shape {given.shape}{'' if given.dtype.kind != 'f' else _first_bad(given)}"
                )
            checked["initial_weights"] = given.astype(np.float64)
            checked["initial_weights"].flags.writeable = False
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def alpha(self, t: int) -> float:
        """α_t."""
        return at("step_size", self.step_size, t, positive)

    def alphas(self, t: int, learned: np.ndarray) -> np.ndarray:
        """α of each coming transition that is learned from, or a single number for all of them."""
        return along("step_size", self.step_size, t, learned, positive)


class Parametrised:
    """A learner or an agent with parameters that can be read."""

    _parameters: Parameters

    @property
    def step_size(self) -> float | Schedule:
        """The step-size α, or its schedule."""
        return self._parameters.step_size

    @property
    def trace_decay(self) -> float:
        """The trace decay λ, the default of every transition."""
        return self._parameters.trace_decay

    @property
    def discount(self) -> float:
        """The discount γ, the default of every transition."""
        return self._parameters.discount


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


# --- Features -------------------------------------------------------------------------------------

FLOATS, INTEGERS = np.dtype(np.float64), np.dtype(np.int64)


def native(x: Any) -> bool:
    """Whether a kernel may read x. Numba would misread other byte orders, and is slow to refuse."""
    if type(x) is np.ndarray:
        return x.dtype is FLOATS or x.dtype is INTEGERS
    return type(x) is tuple and len(x) == 2 and native(x[0]) and native(x[1])


def features(x: Any, n: int, *, binary: bool = False, name: str = "x") -> Features:
    """Features in one of the package's forms, fully checked; ValueError otherwise."""
    if isinstance(x, Integral) and not isinstance(x, bool | np.bool_):
        if 0 <= int(x) < n:
            return np.array([x], np.int64)
        x = np.array([x])
    if isinstance(x, tuple):
        if len(x) != 2:
            raise ValueError(f"{name} as a tuple must be (indices, values), got {len(x)} items")
        return _pairs(x[0], x[1], n, binary, name)
    array = _array(x, name)
    if array.ndim != 1:
        hint = "a single state is given as an integer" if array.ndim == 0 else "only run takes many at once"
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}; {hint}")
    if array.dtype.kind in "iu":
        return _indices(array, n, name)
    if array.shape != (n,):
        raise ValueError(
            f"{name} must have n_features = {n} values, got {array.size}; to give active features, use integer indices"
        )
    return _values(array, binary, name)


def _array(x: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers, got {_shown(x)} ({error})") from None
    if array.dtype.kind == "b":
        raise ValueError(f"{name} must be floats or integer indices, got booleans; use {name}.astype(float)")
    if array.dtype.kind not in "fiu":
        end = "; only update takes None, at the end of an episode" if x is None else ""
        raise ValueError(f"{name} must be floats or integer indices, got dtype {array.dtype}: {_shown(x)}{end}")
    return array


def _values(array: np.ndarray, binary: bool, name: str) -> np.ndarray:
    values = np.require(array, np.float64, ("C", "A", "W"))
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite{_first_bad(values)}")
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
            f"zeros and ones use floats, {name}.astype(float), or np.flatnonzero({name}); for all features, np.ones({n})"
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
            f"value is not 1. (Integers are indices: for {n} values use floats, {name}.astype(float).)"
        )
    return indices


def _pairs(indices: Any, values: Any, n: int, binary: bool, name: str) -> tuple[np.ndarray, np.ndarray]:
    where, what = _array(indices, f"the indices of {name}"), _array(values, f"the values of {name}")
    if where.size and where.dtype.kind not in "iu":
        raise ValueError(f"the indices of {name} must be integers, got {where.dtype}")
    if where.ndim != 1 or where.shape != what.shape:
        raise ValueError(f"{name} must pair indices with values one to one, got shapes {where.shape} and {what.shape}")
    return _distinct(where.astype(np.int64), n, name), _values(what, binary, f"the values of {name}")


def _first_bad(array: np.ndarray) -> str:
    bad = np.flatnonzero(~np.isfinite(array))
    return f", got {array[bad[0]]} at position {bad[0]}" if bad.size else ""


def dense(x: Features, n: int) -> np.ndarray:
    """The same features as a vector of n floats: a fresh copy."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return x.copy()
    result = np.zeros(n)
    indices, values = x if isinstance(x, tuple) else (x, 1.0)
    result[indices] = values
    return result


def length(x: Features) -> int:
    """The number of entries of the features."""
    return len(x[0]) if isinstance(x, tuple) else len(x)


def alike(x: Features, y: Features, n: int) -> tuple[Features, Features]:
    """Both features in one form: dense if y is dense, pairs if the two forms differ otherwise."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.dtype == y.dtype:
        return x, y
    if isinstance(y, np.ndarray) and y.dtype.kind == "f":
        return dense(x, n), y
    return as_pair(x), as_pair(y)


def is_dense(x: Features | Stream) -> bool:
    """Whether features, or those of a stream, have all their values."""
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def like(x: Features, y: Features, n: int) -> Features:
    """The features x, dense if y is dense, and sparse otherwise."""
    return x if is_dense(x) == is_dense(y) else dense(x, n) if is_dense(y) else as_pair(x)


def stream_like(X: Stream, Y: Stream, n: int) -> Stream:
    """The same for all rows of a stream."""
    if is_dense(X) == is_dense(Y):
        return X
    rows = [row(X, t) for t in range(len(X[0]) - 1 if isinstance(X, tuple) else len(X))]
    return np.array([dense(x, n) for x in rows]) if is_dense(Y) else _joined([as_pair(x) for x in rows])


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


# --- Streams --------------------------------------------------------------------------------------


def stream(X: Any, n: int) -> tuple[Stream, int]:
    """A stream of features in one of the package's forms, and its number of rows. Values are checked later, in bulk."""
    if hasattr(X, "tocsr"):  # any SciPy sparse matrix or array, without importing SciPy
        csr = X.tocsr()
        if csr.ndim != 2 or csr.shape[1] != n:
            raise ValueError(f"X must have n_features = {n} columns, got shape {csr.shape}")
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        data = _array(csr.data, "the values of X").astype(np.float64)
        return (csr.indptr.astype(np.int64), csr.indices.astype(np.int64), data), csr.shape[0]
    if isinstance(X, tuple) and len(X) == 2:
        where, what = _array(X[0], "the indices of X"), _array(X[1], "the values of X")
        if where.ndim != 2 or where.shape != what.shape or where.dtype.kind not in "iu":
            raise ValueError(
                "X as a pair must be 2-D integer indices and values of the same shape, "
                f"got {where.dtype} {where.shape} and {what.dtype} {what.shape}"
            )
        starts = np.arange(len(where) + 1, dtype=np.int64) * where.shape[1]
        return (starts, where.astype(np.int64).ravel(), what.astype(np.float64).ravel()), len(where)
    if isinstance(X, Sequence) and not isinstance(X, str | bytes) and _differ(X):
        return _ragged(X, n)
    array = _array(X, "X")
    if array.shape == (0,):
        raise ValueError(EMPTY)
    if array.ndim == 1 and array.dtype.kind in "iu":
        array = array[:, None]  # the state at each step
    if array.ndim != 2:
        raise ValueError(f"X must have one row of features per step, got shape {array.shape}")
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.size and array.max() > MAX_FEATURES:
            raise ValueError(f"X has index {array.max()}, but indices go from 0 to n_features − 1 = {n - 1}")
        return np.ascontiguousarray(array, np.int64), len(array)
    if array.shape[1] != n:
        raise ValueError(f"each row of X must have n_features = {n} values, got {array.shape[1]}")
    return np.ascontiguousarray(array, np.float64), len(array)


def _differ(X: Sequence) -> bool:
    """Whether the features in a list differ in form or length, or are pairs, and so do not make an array."""
    if any(isinstance(x, tuple) for x in X):
        return True
    try:
        return len({(np.asarray(x).dtype.kind, np.shape(x)) for x in X}) > 1
    except ValueError:  # an item is not an array; `features` says which
        return True


def _ragged(X: Sequence, n: int) -> tuple[Stream, int]:
    rows = [as_pair(features(x, n, name=f"X[{t}]")) for t, x in enumerate(X)]
    return _joined(rows), len(rows)


def _joined(rows: list[tuple[np.ndarray, np.ndarray]]) -> Stream:
    """Rows of pairs as a CSR triple."""
    starts = np.cumsum([0, *(len(indices) for indices, _ in rows)])
    return starts, np.concatenate([i for i, _ in rows]), np.concatenate([v for _, v in rows])


def row(X: Stream, t: int) -> Features:
    """Row t of a stream."""
    if isinstance(X, tuple):
        piece = slice(X[0][t], X[0][t + 1])
        return X[1][piece], X[2][piece]
    return X[t]


def rewards(values: Any, rows: int) -> np.ndarray:
    """R_1, …, R_T for a stream of T + 1 rows."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.ndim != 1:
        raise ValueError(f"rewards must be a one-dimensional array of numbers, got {array.dtype} of shape {array.shape}")
    if array.size == 0 or rows < 2:
        raise ValueError(EMPTY)
    if array.size != rows - 1:
        raise ValueError(
            f"rewards must be one fewer than the rows of X (one per transition), got {array.size} rewards for {rows} rows"
        )
    array = np.ascontiguousarray(array, np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"rewards must be finite{_first_bad(array)}")
    return array


def ratio(name: str, value: Any) -> float:
    """An importance ratio."""
    return number(name, value, "a finite number ≥ 0", lambda v: math.isfinite(v) and v >= 0.0)


def ratios(name: str, values: Any, length: int) -> np.ndarray:
    """An importance ratio for each step; 1 by default."""
    if values is None:
        return np.ones(1)
    array = np.asarray(values)
    if array.shape != (length,) or array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be {length} numbers, got shape {array.shape} of {array.dtype}")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise ValueError(f"{name} must be finite numbers ≥ 0, got {array[bad[0]]} at position {bad[0]}")
    return np.require(array, np.float64, ["C", "A", "W"])


def units(name: str, values: Any, steps: int, default: float) -> np.ndarray:
    """One number in [0, 1] per transition, or a single one for all."""
    if values is None:
        return np.array([default])
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.shape not in ((), (steps,)):
        raise ValueError(f"{name} must be {steps} numbers, one per transition, got {array.dtype} of shape {array.shape}")
    array = np.ascontiguousarray(array, np.float64).reshape(-1)
    wrong = np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))
    if wrong.size:
        raise ValueError(f"{name} must lie in [0, 1], got {array[wrong[0]]} at position {wrong[0]}")
    return array


def marks(name: str, values: Any, rows: int) -> np.ndarray:
    """One boolean per row."""
    if values is None:
        return np.zeros(rows, np.bool_)
    array = np.asarray(values)
    if array.dtype.kind != "b" or array.shape != (rows,):
        raise ValueError(f"{name} must be {rows} booleans, one per row of X, got {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array)
