"""The types of user input, and the forms that the package converts it to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike


class SparseMatrix(Protocol):
    """A SciPy sparse matrix or array. The core does not import SciPy."""

    def tocsr(self) -> Any: ...


# User input. Features are a float array, integer indices, one integer, or (indices, values). A stream has one row
# of features per step: a 2-D float array, a 2-D integer array, a 1-D array of states, a SciPy sparse matrix, a
# pair, or a list of features.
FeaturesLike: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike]
FeatureStream: TypeAlias = ArrayLike | SparseMatrix | tuple[ArrayLike, ArrayLike] | Sequence[FeaturesLike]

# The package's own forms: contiguous, aligned and writable arrays. The values of a stream in CSR form may be `ONE`, for all.
Features: TypeAlias = np.ndarray | tuple[np.ndarray, np.ndarray]
Stream: TypeAlias = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]
Schedule: TypeAlias = Callable[[int], float]

SINGULAR_NAMES = {
    "ratios": "ratio",
    "interests": "interest",
    "probabilities": "probability",
    "expected": "x_expected",
}  # a part of a transition, and of a stream

MAX_FEATURES = 2**31 - 2  # places in the memory are 32-bit
EMPTY_STREAM = "the stream is empty: give at least two rows of features and one reward"
ONE = np.ones(1)  # the value of all active features that have no values
