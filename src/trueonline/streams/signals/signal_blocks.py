"""Checks of blocks of samples and of saved states, for derived signals and for bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

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


def blank_rows(blank: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Room for as many rows as another array has. For a single row, a copy is faster than np.empty."""
    rows = like.shape[0] if like.ndim else 0
    return blank.copy() if rows == 1 else np.empty((rows, blank.shape[1]))


def check_finite(name: str, array: np.ndarray) -> None:
    """ValueError, with the first position, unless all numbers are finite."""
    wrong = np.argwhere(~np.isfinite(array))
    if wrong.size:
        where = tuple(wrong[0].tolist())
        raise ValueError(f"{name} must be finite, got {array[where]} at position {', '.join(map(str, where))}")


def state_arrays(state: Mapping[str, Any], names: Sequence[str], **own: np.ndarray) -> list[np.ndarray]:
    """The arrays of a state, in the order of `own`. ValueError unless names, dtypes and shapes are the same as in `own`."""
    try:
        state_names, arrays = np.asarray(state["names"]).tolist(), [state[name] for name in own]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"this is not a state: {error!r} in {state!r:.80}") from None
    if state_names != np.array(names).tolist():
        raise ValueError(f"the state is of {state_names!r:.200}, not of the signals {', '.join(names)}")
    for (name, mine), theirs in zip(own.items(), arrays, strict=True):
        if not isinstance(theirs, np.ndarray) or theirs.dtype != mine.dtype or theirs.shape != mine.shape:
            got = f"{theirs.dtype} of shape {theirs.shape}" if isinstance(theirs, np.ndarray) else f"{theirs!r:.80}"
            raise ValueError(f"the state does not fit: {name} must be {mine.dtype} of shape {mine.shape}, got {got}")
    return arrays
