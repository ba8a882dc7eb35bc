"""`Answers`: samples, and what is predicted and judged at each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """Samples, and the predictions at each sample from what was learned up to it.

    Attributes
    ----------
    times : array of shape (T,)
        The times of the samples in seconds.
    starts : array of shape (T,)
        Booleans that mark where a new stream begins.
    signals : array of shape (T, signals)
        The signals in the order of `Predictor.observed`.
    predictions : array of shape (T, questions)
        The predictions in the order of `Predictor.names`.
    low, high : array of shape (T, questions), optional
        The band around each prediction. NaN while it is unknown.
    surprise : array of shape (T,), optional
        How unusual each sample is, in [0, 1].
    suspect : array of int of shape (T,), optional
        The number of a question about the signal that is the most unusual. −1 while nothing can be said.
    reason : array of int of shape (T,), optional
        Why it is unusual, a place in `REASONS` of `accuracy.surprise`.
    expected : array of shape (T,), optional
        The value that was expected: the forecast of the next value, the mean so far, or the usual value at this time of the day,
        whichever the reason is about.
    usual : array of shape (T,), optional
        The usual size of its error.
    error : array of shape (T,), optional
        By how much the value differs from what was expected.
    codes : array of shape (T,), optional
        Which signal of a fleet each sample is of (`sources.labels`).
    """

    times: np.ndarray
    starts: np.ndarray
    signals: np.ndarray
    predictions: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    surprise: np.ndarray | None = None
    suspect: np.ndarray | None = None
    reason: np.ndarray | None = None
    expected: np.ndarray | None = None
    usual: np.ndarray | None = None
    error: np.ndarray | None = None
    codes: np.ndarray | None = None

    def table(self) -> np.ndarray:
        """Put the numbers side by side, as outputs write them.

        Returns
        -------
        array of shape (T, columns)
            Each prediction with the ends of its band, and the surprise.
        """
        low, high = (np.full_like(self.predictions, np.nan) if each is None else each for each in (self.low, self.high))
        columns = np.stack([self.predictions, low, high], axis=2).reshape(len(low), 3 * low.shape[1])
        return np.column_stack([columns, np.full(len(self.times), np.nan) if self.surprise is None else self.surprise])
