"""`QuestionSamples`: a block of samples, with everything that is needed to answer questions about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class QuestionSamples(NamedTuple):
    """A block of samples.

    Attributes
    ----------
    seconds : array of shape (T,)
        The times by the clock on the wall.
    observed : array of shape (T, signals)
        All signals, in the order of `Predictor.observed`.
    cumulants : array of shape (T, questions)
        The terms of the return of each question.
    gammas, elapsed : sequence of array of shape (T,)
        For each question, γ of the step into each sample, and its duration in units of the usual one.
    starts : array of bool, of shape (T,)
        True at each sample where something new begins.
    """

    seconds: np.ndarray
    observed: np.ndarray
    cumulants: np.ndarray
    gammas: Sequence[np.ndarray]
    elapsed: Sequence[np.ndarray]
    starts: np.ndarray
