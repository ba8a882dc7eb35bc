"""Checks of the cumulants and discounts that a horde gets, and one form for all streams of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.core.compiling.kernels import call
from trueonline.inputs import FLOATS, INTEGERS
from trueonline.streams.horde.entry_points import FINITE

Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


# --- Cumulants and discounts ----------------------------------------------------------------------


def checked_cumulants(cumulants: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Cumulants as a contiguous array of that shape. ValueError unless they are finite numbers, and not masked."""
    cumulants = inputs.unmasked("cumulants", cumulants)
    try:
        array = np.asarray(cumulants)
    except ValueError:  # its rows differ in length
        array = np.asarray(None)
    if shape[0] == 0 == array.size:
        return np.empty(shape)
    if array.dtype.kind in "fiu" and array.shape == shape:
        C = np.require(array, np.float64, ("C", "A", "W"))
        if call(FINITE, C.reshape(-1)):
            return C
    rows = f"{shape[0]} rows of " if len(shape) > 1 else ""
    got = f"{array.dtype} of shape {array.shape}" if len(shape) > 1 else f"{cumulants!r:.80}"
    raise ValueError(f"cumulants must be {rows}{shape[-1]} finite numbers, one for each question, got {got}")


def checked_mapping(discounts: Any) -> Mapping[str, Any]:
    """The discounts by name. ValueError unless they are a mapping, or None for no discounts."""
    if discounts is None:
        return {}
    if not isinstance(discounts, Mapping):
        raise ValueError(f"discounts must map the name of each discount to its value, got {discounts!r:.80}")
    return discounts


def discounts_along(
    constant: np.ndarray, named: Sequence[tuple[int, str]], discounts: Mapping[str, Any], steps: int
) -> np.ndarray:
    """γ for each step and group. `named` has the groups whose discount is a name."""
    gammas = np.empty((steps, len(constant)))
    gammas[:] = constant
    for group, name in named:
        given = inputs.unmasked(f"the discount {name!r}", _of_name(discounts, name))
        try:
            values = np.asarray(given, float)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (steps,) or not ((values >= 0.0) & (values <= 1.0)).all():
            raise ValueError(f"the discount {name!r} must be {steps} numbers in [0, 1], got {discounts[name]!r:.80}")
        gammas[:, group] = values
    return gammas


def discounts_now(constant: np.ndarray, named: Sequence[tuple[int, str]], discounts: Mapping[str, Any]) -> np.ndarray:
    """γ for each group at a single step."""
    gammas = constant.copy()
    for group, name in named:
        gammas[group] = inputs.unit(f"the discount {name!r}", _of_name(discounts, name))
    return gammas


def _of_name(discounts: Mapping[str, Any], name: str) -> Any:
    if name not in discounts:
        raise ValueError(
            f"discounts must have {name!r}, the discount of some questions; got {', '.join(map(str, discounts)) or 'none'}"
        )
    return discounts[name]


# --- Features -------------------------------------------------------------------------------------


def is_ready(x: Any, dtype: np.dtype) -> bool:
    """Whether x is an array that a kernel can check. Numba is slow to refuse others."""
    return type(x) is np.ndarray and x.dtype is dtype and x.ndim == 1 and x.flags.carray


def is_sparse(x: Any) -> bool:
    """Whether x is indices, or a pair of indices and values, that a kernel can check."""
    if type(x) is tuple:
        return len(x) == 2 and is_ready(x[0], INTEGERS) and is_ready(x[1], FLOATS) and len(x[0]) == len(x[1])
    return is_ready(x, INTEGERS)


def list_of_indices(X: Any) -> tuple[Triple, int] | None:
    """Rows of indices that differ in length, as a tile coder returns them. None for any other stream."""
    if type(X) is list and X and all(type(x) is np.ndarray and x.dtype is INTEGERS and x.ndim == 1 for x in X):
        indices = np.concatenate(X)
        return (_ends([len(x) for x in X]), indices, inputs.ONE), len(X)
    return None


def compressed(X: inputs.Stream) -> Triple:
    """Any stream in one form: where rows end, indices and values. They are copies, to which no other thread can write."""
    if isinstance(X, tuple):
        ends, indices, values = (part.copy() for part in X)
        return ends, indices, values
    rows, indices = np.nonzero(X)
    return _ends(np.bincount(rows, minlength=len(X))), np.ascontiguousarray(indices), X[rows, indices]


def _ends(lengths: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
