"""`Judge`: which errors there are at each sample, and how surprising they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueonline.inputs import Resumable
from trueonline.streams.accuracy.surprise import Surprise

ROUNDING = 1e-12  # of a value: smaller errors are none


class Judge(Resumable):
    """Judges samples by three kinds of errors.

    - The news about each outlook, which is the TD error (1 − γ)·x_t + γ·p_t − p_{t−1}.
    - Each value against the mean that was predicted, x_t − p_{t−1}. A question that has no mean has no such error.
    - Each value against the next value that was expected, where there are such forecasts.

    Parameters
    ----------
    has_mean : sequence of bool
        Whether each question is about a mean over a horizon.
    expected : sequence of int
        For each forecast of a next value, a question about the same target.
    """

    def __init__(self, has_mean: Sequence[bool], expected: Sequence[int]) -> None:
        every = range(len(has_mean))
        self._question = np.array([*every, *every, *expected])  # of each error
        self._no_mean = np.flatnonzero(~np.array(has_mean)) + len(has_mean)
        self._surprise = Surprise(len(self._question))
        self._parts = {"surprise": self._surprise}
        self._state = {"before": np.full(len(has_mean), np.nan)}  # the predictions at the last sample

    def follow(
        self,
        predictions: np.ndarray,
        outlook: np.ndarray,
        values: np.ndarray,
        expected_next: np.ndarray,
        starts: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Judge a block of samples.

        Parameters
        ----------
        predictions, outlook, values : array of shape (T, questions)
            p_t, (1 − γ)·x_t + γ·p_t, and x_t of each question.
        expected_next : array of shape (T, forecasts)
            The expectation for each sample, one sample before.
        starts : array of bool, of shape (T,)
            True at each sample where something new begins.

        Returns
        -------
        dict from str to array of shape (T,)
            `surprise`, `suspect`, `expected`, `usual` and `error`, as in `Answers`.
        """
        before = np.vstack([self._state["before"], predictions[:-1]])
        self._state["before"][:] = predictions[-1]
        forecasts = np.hstack([before, before, expected_next])
        errors = values.take(self._question, axis=1) - forecasts
        errors[:, : before.shape[1]] = outlook - before
        errors[:, self._no_mean] = np.nan
        errors[np.abs(errors) < ROUNDING * np.abs(values).take(self._question, axis=1)] = 0.0
        errors[starts] = np.nan
        surprise, odd, usual = self._surprise.follow(errors, starts)
        rows, known = np.arange(len(odd)), odd >= 0
        return {
            "surprise": surprise,
            "suspect": np.where(known, self._question[odd], -1),
            "expected": np.where(known, forecasts[rows, odd], np.nan),
            "usual": usual,
            "error": np.where(known, errors[rows, odd], np.nan),
        }

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {"before": ~np.isinf(saved["before"])}
