"""Streams of features: checked, and in one of the package's forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trueonline.inputs.feature_inputs import array_of, as_pair, dense, features, is_dense, same
from trueonline.inputs.kinds import MAX_FEATURES, ONE, Features, Stream
from trueonline.inputs.numbers import flag, shown


def stream(X: Any, n: int) -> tuple[Stream, int]:
    """A stream of features in one of the package's forms, and its number of rows. Values are checked later, in bulk."""
    if hasattr(X, "tocsr"):  # any SciPy sparse matrix or array, without importing SciPy
        csr = X.tocsr()
        if csr.ndim != 2 or csr.shape[1] != n:
            raise ValueError(f"X must have n_features = {n} columns, got shape {csr.shape}")
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        data = array_of(csr.data, "the values of X").astype(np.float64)
        return (csr.indptr.astype(np.int64), csr.indices.astype(np.int64), data), csr.shape[0]
    if isinstance(X, tuple) and len(X) == 2:
        where, what = array_of(X[0], "the indices of X"), array_of(X[1], "the values of X")
        if where.ndim != 2 or where.shape != what.shape or where.dtype.kind not in "iu":
            raise ValueError(
                "X as a pair must be 2-D integer indices and values of the same shape, "
                f"got {where.dtype} {where.shape} and {what.dtype} {what.shape}"
            )
        return _rows(where, what.astype(np.float64).ravel()), len(where)
    if isinstance(X, Sequence) and not isinstance(X, str | bytes) and _differ(X):
        return _ragged(X, n)
    array = array_of(X, "X")
    if array.shape == (0,):
        raise ValueError("X has no rows, the stream is empty: give one row of features per step")
    if array.ndim == 1 and array.dtype.kind in "iu":
        array = array[:, None]  # the state at each step
    if array.ndim != 2:
        raise ValueError(f"X must have one row of features per step, got shape {array.shape}")
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.size and array.max() > MAX_FEATURES:
            raise ValueError(f"X has index {array.max()}, but indices go from 0 to n_features − 1 = {n - 1}")
        return _rows(array, ONE), len(array)
    if array.shape[1] != n:
        raise ValueError(f"each row of X must have n_features = {n} values, got {array.shape[1]}")
    return np.require(array, np.float64, ("C", "A", "W")), len(array)


def _rows(indices: np.ndarray, values: np.ndarray) -> Stream:
    """Rows with the same number of indices as a CSR triple."""
    starts = np.arange(len(indices) + 1, dtype=np.int64) * indices.shape[1]
    return starts, np.require(indices, np.int64, ("C", "A", "W")).ravel(), values


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
        return (X[1][piece], X[2][piece]) if len(X[1]) == len(X[2]) else X[1][piece]
    return X[t]


def begins(resume: Any, restarts: bool, here: Any, first: Any, alike: Callable[[Any, Any], bool] = same) -> bool:
    """Whether `run` starts at its first row. ValueError if it shall continue, and the learner is in another state.

    `here` is the state of the learner, or None, and `restarts` whether the first row is marked as the beginning of an episode.
    """
    if flag("resume", resume) and here is not None and not restarts and not alike(here, first):
        raise ValueError(
            f"resume=True continues from the state of the learner, {shown(here)}, but X[0] is {shown(first)}: "
            "begin X with the last row of the piece before, or leave out resume"
        )
    return not resume or restarts or here is None


def stream_like(X: Stream, Y: Stream, n: int) -> Stream:
    """The same for all rows of a stream."""
    if is_dense(X) == is_dense(Y):
        return X
    rows = [row(X, t) for t in range(len(X[0]) - 1 if isinstance(X, tuple) else len(X))]
    return np.array([dense(x, n) for x in rows]) if is_dense(Y) else _joined([as_pair(x) for x in rows])
