"""Limits of what a forecast of a signal can be: the range seen so far, and the bounds that the user knows.

A mean of coming values seldom leaves the range of those so far. After n values the next is beyond the largest with a probability of
1/(n + 1), so the range reaches by 1/n of its width further on both sides. Counts that were never below zero are forecast to be at
least about zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline.inputs import Resumable

LOW, HIGH, COUNT = range(3)
ROUNDING = 1e-12  # of the largest value, or of 1: a signal that never changes has bands too


class Limits(Resumable):
    """The limits of some signals.

    Parameters
    ----------
    signals : int
        The number of signals.
    minimum, maximum : float, optional
        Bounds that no forecast crosses.

    Examples
    --------
    >>> low, high = Limits(1, minimum=0.0).follow(np.array([[4.0], [0.0], [2.0], [1.0]]))
    >>> low[:, 0].round(6).tolist(), high[:, 0].round(6).tolist()
    ([0.0, 4.0, 0.0, 0.0, 0.0], [inf, 4.0, 6.0, 5.333333, 5.0])
    """

    def __init__(self, signals: int, minimum: float | None = None, maximum: float | None = None) -> None:
        self._minimum, self._maximum = -math.inf if minimum is None else minimum, math.inf if maximum is None else maximum
        self._state = {"seen": np.repeat([[math.inf], [-math.inf], [0.0]], signals, axis=1)}

    def follow(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take T samples.

        Parameters
        ----------
        values : array of shape (T, signals)
            Finite numbers. The caller has checked them.

        Returns
        -------
        low, high : array of shape (T + 1, signals)
            The limits before the first sample, and after each of them.
        """
        seen = self._state["seen"]
        low = np.minimum.accumulate(np.vstack([seen[LOW], values]))
        high = np.maximum.accumulate(np.vstack([seen[HIGH], values]))
        count = seen[COUNT] + np.arange(len(values) + 1)[:, None]
        seen[LOW], seen[HIGH], seen[COUNT] = low[-1], high[-1], count[-1]
        known = count > 0
        largest = np.where(known, np.maximum(np.abs(low), np.abs(high)), 1.0)
        further = np.where(known, high - low, 0.0) / np.maximum(count, 1.0) + ROUNDING * np.where(
            largest > 0.0, largest, 1.0
        )
        low, high = np.where(known, low - further, -math.inf), np.where(known, high + further, math.inf)
        return np.clip(low, self._minimum, self._maximum), np.clip(high, self._minimum, self._maximum)

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        low, high, count = saved["seen"]
        return {"seen": (count >= 0) & np.where(count > 0, np.isfinite(low) & np.isfinite(high) & (low <= high), True)}
