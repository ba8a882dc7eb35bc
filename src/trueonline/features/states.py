"""Feature matrices for the states of a finite process, one row per state (section 5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.inputs import count


def tabular(k: int) -> np.ndarray:
    """A feature for each state.

    >>> tabular(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return np.eye(count("k", k))


def binary_code(k: int, *, unit_length: bool = False) -> np.ndarray:
    """The binary code of the state's index, counted from 1, most significant digit first.

    The paper's text takes it as it is; the published program of its experiments scales it to unit length.

    >>> binary_code(10)[:3].astype(int)
    array([[0, 0, 0, 1],
           [0, 0, 1, 0],
           [0, 0, 1, 1]])
    """
    k = count("k", k)
    digits = np.arange(k.bit_length() - 1, -1, -1)
    code = ((np.arange(1, k + 1)[:, None] >> digits) & 1).astype(float)
    return code / np.linalg.norm(code, axis=1, keepdims=True) if unit_length else code


def random_unit(k: int, n: int = 5, *, seed: Any = 0) -> np.ndarray:
    """n normal numbers for each state, scaled to unit length.

    >>> np.linalg.norm(random_unit(3, seed=1), axis=1).round(12)
    array([1., 1., 1.])
    """
    values = np.random.default_rng(seed).normal(size=(count("k", k), count("n", n)))
    return values / np.linalg.norm(values, axis=1, keepdims=True)
