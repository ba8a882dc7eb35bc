"""Feature matrices for the states of a finite process, with one row for each state (section 5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.inputs import count, one_seed


def tabular(k: int) -> np.ndarray:
    """One feature for each state.

    Parameters
    ----------
    k : int
        The number of states.

    Returns
    -------
    numpy.ndarray
        The k × k identity matrix.

    Examples
    --------
    >>> tabular(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return np.eye(count("k", k))


def binary_code(k: int, *, unit_length: bool = False) -> np.ndarray:
    """The binary code of a state's number, counted from 1, with the most significant digit first.

    The paper's text uses the digits 0 and 1. The published program of its experiments scales them to unit length.

    Parameters
    ----------
    k : int
        The number of states.
    unit_length : bool
        Whether to scale each row to unit length.

    Returns
    -------
    numpy.ndarray
        A matrix with a row for each state and a column for each digit.

    Examples
    --------
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
    """Normal random numbers for each state, scaled to unit length.

    Parameters
    ----------
    k : int
        The number of states.
    n : int
        The number of features.
    seed : int, numpy.random.SeedSequence or numpy.random.Generator
        The seed of the random numbers.

    Returns
    -------
    numpy.ndarray
        A k × n matrix.

    Examples
    --------
    >>> np.linalg.norm(random_unit(3, seed=1), axis=1).round(12)
    array([1., 1., 1.])
    """
    values = np.random.default_rng(one_seed(seed)).normal(size=(count("k", k), count("n", n)))
    return values / np.linalg.norm(values, axis=1, keepdims=True)
