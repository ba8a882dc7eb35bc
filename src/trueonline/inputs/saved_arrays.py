"""Checks of what comes from a file, before anything is done with it. Kernels index by some of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

MOST = 2**53  # counts beyond this are no longer whole numbers in double precision


def saved_array(parts: Mapping[str, Any], name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of a saved state. ValueError unless it is there, with this shape and this type."""
    array = parts.get(name)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"its {name} does not fit: it is missing")
    if array.shape != shape or array.dtype != np.dtype(dtype):
        wanted = f"{np.dtype(dtype)} of shape {shape}"
        raise ValueError(f"its {name} does not fit: it must be {wanted}, got {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array) if array.ndim else array


def saved_count(name: str, value: Any, most: int = MOST) -> int:
    """A whole number from 0 to `most` that a file holds, as an integer, a float or an array of one. ValueError otherwise."""
    value = value.item() if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value <= most and value == int(value)):
        raise ValueError(f"its {name} must be a whole number from 0 to {most:,}, got {value!r:.80}")
    return int(value)


def check_saved(fits: Mapping[str, Any]) -> None:
    """ValueError that names the first part that does not fit. `fits` says of each part whether it does."""
    wrong = [name for name, fit in fits.items() if not np.all(fit)]
    if wrong:
        raise ValueError(f"its {wrong[0]} does not fit: it holds numbers that are impossible there")


def saved_parts(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A state whose names are PART/NAME, part by part."""
    parts: dict[str, dict[str, Any]] = {}
    for name, array in state.items():
        part, _, inner = name.partition("/")
        parts.setdefault(part, {})[inner] = array
    return parts
