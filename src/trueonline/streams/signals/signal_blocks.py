"""Checks of blocks of samples, for derived signals and for bounds."""

from __future__ import annotations

import math

import numpy as np

from trueonline.core.compiling.kernels import kernel
from trueonline.core.forms import pointer

BIG = 1e100  # numbers beyond are moved here
BOOLEANS = np.dtype(np.bool_)


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def bounded(x):
    """x, moved to within ±BIG."""
    return min(max(x, -BIG), BIG)


@kernel
def all_finite(values):
    """Whether all numbers of a matrix are finite."""
    wrong, all_values = False, pointer(values, 0)
    for k in range(values.size):
        wrong |= not math.isfinite(all_values[k])
    return not wrong


# --- In Python ------------------------------------------------------------------------------------


def check_finite(name: str, array: np.ndarray) -> None:
    """ValueError, with the first position, unless all numbers are finite."""
    wrong = np.argwhere(~np.isfinite(array))
    if wrong.size:
        where = tuple(wrong[0].tolist())
        raise ValueError(f"{name} must be finite, got {array[where]} at position {', '.join(map(str, where))}")
