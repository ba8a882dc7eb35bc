"""The score of predictions beside that of naive forecasts: what came true, the newest value, and the mean so far.

Everything is measured as means over the horizon, and reported in the unit of the predictions. A sample is scored when at least 99 %
of its weight has come true. Its mean is that of what has come true, so that a constant signal has no error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, specialise
from trueonline.inputs import Resumable
from trueonline.streams.accuracy.realised_returns import Returns, Score

RECENT_SAMPLES = 500.0  # samples over which the recent error fades


@dataclass(frozen=True)
class Naive:
    """Mean absolute errors of the naive forecasts. None if nothing is scored yet, or a question has no naive forecast.

    Attributes
    ----------
    hold : float or None
        The newest value stays.
    mean : float or None
        The mean so far stays.
    """

    hold: float | None
    mean: float | None


@dataclass(frozen=True)
class ForecastErrors:
    """The mean absolute error of predictions, beside that of the naive forecasts.

    Attributes
    ----------
    error : float or None
        The mean absolute error. None if nothing is scored yet.
    naive : Naive
        The errors of the naive forecasts on the same samples.
    skill : float or None
        The share by which the error is smaller than that of the better naive forecast: 1 − error / min(hold, mean).
    """

    error: float | None
    naive: Naive
    skill: float | None


@dataclass(frozen=True)
class QuestionScore:
    """The quality of the predictions for one question, over the scored samples.

    Attributes
    ----------
    scored : int
        The number of samples of which at least 99 % has come true.
    truncated : int
        The number of samples that the stream, or the memory, did not follow for long enough.
    error, naive, skill
        As in `ForecastErrors`, over all scored samples.
    rms_error : float or None
        The root of the mean squared error.
    mean, deviation : float or None
        Mean and standard deviation of what came true.
    recent : ForecastErrors
        The same, with the newest samples weighted most.
    """

    scored: int
    truncated: int
    error: float | None
    rms_error: float | None
    mean: float | None
    deviation: float | None
    naive: Naive
    skill: float | None
    recent: ForecastErrors


def skill(error: float | None, naive: Naive) -> float | None:
    """1 − error / the error of the better naive forecast. None if that is unknown, or not positive."""
    errors = [each for each in (naive.hold, naive.mean) if each is not None]
    best = min(errors, default=0.0)
    return 1.0 - error / best if error is not None and best > 0.0 else None


def means(state, values, out):
    """The mean of all values up to each sample."""
    for t in range(len(values)):
        state[0] += 1.0
        for j in range(values.shape[1]):
            state[1 + j] += (values[t, j] - state[1 + j]) / state[0]
            out[t, j] = state[1 + j]


_MEANS = specialise(means, "naive")


class Scores(Resumable):
    """Scores predictions and naive forecasts, block by block.

    Parameters
    ----------
    discounts : sequence of float or str
        γ of each question, or the name under which `follow` gets it.
    factors : sequence of float
        The factor from a mean over the horizon to the unit of the predictions, for each question.
    has_mean : sequence of bool
        Whether a question is about a mean over a horizon. If not, it has no naive forecasts.
    """

    def __init__(self, discounts: Sequence[float | str], factors: Sequence[float], has_mean: Sequence[bool]) -> None:
        self._factors, self._has_mean = np.array(factors), np.array(has_mean)
        self.returns = Returns([*discounts] * 3, recent=RECENT_SAMPLES, means=[*has_mean] * 3)
        self._parts = {"returns": self.returns}
        self._state = {"means": np.zeros(1 + len(factors))}  # of the targets, with the number of samples before them

    @property
    def discounts(self) -> tuple[float | str, ...]:
        """The different discounts, in the order in which `follow` expects γ."""
        return self.returns.discounts

    def follow(
        self, predictions: np.ndarray, values: np.ndarray, cumulants: np.ndarray, starts: np.ndarray, gammas: np.ndarray
    ) -> None:
        """Take a block of samples.

        Parameters
        ----------
        predictions, values, cumulants : array of shape (T, questions)
            Predictions as means over the horizon, the targets, and what the questions sum up.
        starts : array of bool, of shape (T,)
            True at each sample where something new begins.
        gammas : array of shape (T, discounts)
            γ of the step into each sample.
        """
        running = np.empty(values.shape)
        call(_MEANS, self._state["means"], values, running)
        forecasts = np.hstack(
            [predictions, np.where(self._has_mean, values, 0.0), np.where(self._has_mean, running, 0.0)]
        )
        self.returns.follow(forecasts, np.hstack([cumulants] * 3), starts, gammas)

    def scores(self) -> list[QuestionScore]:
        """The score of each question so far, as if the stream ended here. Nothing changes."""
        scores, n = self.returns.scores(), len(self._factors)
        return [
            _score(scores[q], scores[q + n], scores[q + 2 * n], float(self._factors[q]), bool(self._has_mean[q]))
            for q in range(n)
        ]

    def so_far(self) -> dict[str, np.ndarray]:
        """The errors of each question over the samples that no longer wait, which is cheap. NaN if nothing is scored yet.

        Returns
        -------
        dict from str to array of shape (questions,)
            `error`, `hold` and `mean`, the same with `recent_` before them, and `scored`.
        """
        errors, n = self.returns.so_far(), len(self._factors)
        found = {"scored": errors["scored"][:n]}
        for prefix in ("", "recent_"):
            values = errors[f"{prefix}error"].reshape(3, n) * self._factors
            values[1:, ~self._has_mean] = np.nan
            found |= {f"{prefix}{name}": row for name, row in zip(("error", "hold", "mean"), values, strict=True)}
        return found

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {"means": np.isfinite(saved["means"]), "samples": saved["means"][0] >= 0.0}


def _score(own: Score, hold: Score, mean: Score, factor: float, has_mean: bool) -> QuestionScore:
    def scaled(number: float | None) -> float | None:
        return None if number is None else number * factor

    def errors(name: str) -> ForecastErrors:
        error = scaled(getattr(own, name))
        naive = Naive(*(scaled(getattr(each, name)) if has_mean else None for each in (hold, mean)))
        return ForecastErrors(error, naive, skill(error, naive))

    overall, recent = errors("mean_absolute_return_error"), errors("recent_absolute_return_error")
    return QuestionScore(
        own.scored,
        own.truncated,
        overall.error,
        scaled(own.root_mean_square_return_error),
        scaled(own.mean_return),
        scaled(own.return_deviation),
        overall.naive,
        overall.skill,
        recent,
    )
