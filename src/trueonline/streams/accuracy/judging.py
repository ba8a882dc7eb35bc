"""`Judge`: which errors there are at each sample, how surprising they are, and why.

A fault shows in the value itself or in what it does to forecasts, and nobody knows in which. So a sample is seen from several
sides, whatever question was asked. Each side expects a value, or has an outlook:

    news     the TD error of a question, (1 − γ)·x_t + γ·p_t − p_{t−1}: how much the outlook has changed
    next     x_t minus the forecast of the next value
    level    x_t minus the mean so far, against which a drift shows however slow it is
    jump     x_t minus x_{t−1}
    hour     x_t minus the usual value at this time of the day

A usual value at this time of the day is the mean of what was measured in this half hour on earlier days, the last ten or so. The
present day counts only when the half hour is over, so that a fault is not compared with itself.

**A drift.** What falls slowly enough is never odd beside what came just before. So each value is also compared with the range of
all that was seen until about a day ago, in blocks of a day (at least `MIN_BLOCK` samples, at most `MAX_BLOCK`). After n blocks
the next one leaves their range with a probability of about 1/n. A value that is a distance d beyond a range of width r gets p =
(1 + 4·d/r)⁻⁵ / n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.core.forms import pointer
from trueonline.inputs import Resumable
from trueonline.streams.accuracy.surprise import BURST, NEW, RUN, SILENCE, Surprise

ROUNDING = 1e-12  # of a value: smaller errors are none
SLOTS = 48  # of a day
DAY = 86400.0  # seconds
SLOT_SECONDS = DAY / SLOTS
DAY_RATE = 0.1  # of the usual values: about ten days
LEVEL, JUMP, HOUR = range(3)  # the views of a value itself
MIN_BLOCK, MAX_BLOCK = 256, 4096  # samples
# Of a signal: what is known of its past and of the present slot; then the time when the present block began and its size; the range
# of that block, of the block before, and of all blocks before these, and their number.
MEAN, LAST, LOW, HIGH, COUNT, SLOT, SUM, SIZE, BEGAN, BLOCK, BLOCK_LOW, BLOCK_HIGH = range(12)
BEFORE_LOW, BEFORE_HIGH, OLD_LOW, OLD_HIGH, BLOCKS = range(12, 17)
PAST = 17
USUAL, DAYS = range(2)  # of a slot

# Why a sample is unusual. The words are in `REASONS`.
NOTHING, NEW_LEVEL, FAR_LEVEL, A_JUMP, WRONG_HOUR, UNFORESEEN, A_RUN, A_BURST, FLAT, QUIET = range(10)
REASONS = (
    "",
    "a level never seen",
    "far from the usual level",
    "a jump",
    "unusual at this time of day",
    "not foreseen",
    "a run of errors to one side",
    "a run of large errors",
    "a flat line",
    "a run of small errors",
)


@kernel
def outside(x, own):
    """The probability of a value, or one further out, by the range of all blocks but the newest two."""
    if own[BLOCKS] < 2.0 or own[OLD_HIGH] == own[OLD_LOW]:
        return 1.0
    away = max(own[OLD_LOW] - x, x - own[OLD_HIGH])
    return (1.0 + 4.0 * away / (own[OLD_HIGH] - own[OLD_LOW])) ** -5.0 / own[BLOCKS] if away > 0.0 else 1.0


@kernel
def end_block(own, seconds):
    """Let the newest block be the one before, and that one a part of the old range."""
    if own[BLOCKS] > 0.0:
        own[OLD_LOW] = min(own[OLD_LOW], own[BEFORE_LOW]) if own[BLOCKS] > 1.0 else own[BEFORE_LOW]
        own[OLD_HIGH] = max(own[OLD_HIGH], own[BEFORE_HIGH]) if own[BLOCKS] > 1.0 else own[BEFORE_HIGH]
    own[BEFORE_LOW], own[BEFORE_HIGH] = own[BLOCK_LOW], own[BLOCK_HIGH]
    own[BLOCKS] += 1.0
    own[BLOCK], own[BEGAN] = 0.0, seconds


def look_back(past, slots, values, seconds, expected, beyond, new_levels):
    """For each value the mean so far, the value before, the usual value at this time of the day, and how new its level is."""
    for t in range(seconds.size):
        slot = math.floor(seconds[t] / SLOT_SECONDS) % SLOTS
        for j in range(values.shape[1]):
            x, own, here = values[t, j], pointer(past, PAST * j), pointer(expected, (t * values.shape[1] + j) * 3)
            if own[COUNT] > 0.0:
                if slot != own[SLOT]:
                    done = pointer(slots, 2 * int(j * SLOTS + own[SLOT]))
                    done[DAYS] += 1.0
                    done[USUAL] += max(DAY_RATE, 1.0 / done[DAYS]) * (own[SUM] / own[SIZE] - done[USUAL])
                    own[SUM], own[SIZE] = 0.0, 0.0
                here[LEVEL], here[JUMP] = own[MEAN], own[LAST]
                now = pointer(slots, 2 * int(j * SLOTS + slot))
                if now[DAYS] > 0.0:
                    here[HOUR] = now[USUAL]
                beyond[t, j] = x < own[LOW] or x > own[HIGH]
            else:
                own[LOW], own[HIGH], own[BEGAN] = x, x, seconds[t]
            new_levels[t, j] = outside(x, own)
            own[BLOCK_LOW] = min(own[BLOCK_LOW], x) if own[BLOCK] > 0.0 else x
            own[BLOCK_HIGH] = max(own[BLOCK_HIGH], x) if own[BLOCK] > 0.0 else x
            own[BLOCK] += 1.0
            if own[BLOCK] >= MAX_BLOCK or (own[BLOCK] >= MIN_BLOCK and seconds[t] - own[BEGAN] >= DAY):
                end_block(own, seconds[t])
            own[COUNT] += 1.0
            own[MEAN] += (x - own[MEAN]) / own[COUNT]
            own[LAST], own[LOW], own[HIGH] = x, min(own[LOW], x), max(own[HIGH], x)
            own[SLOT], own[SUM], own[SIZE] = slot, own[SUM] + x, own[SIZE] + 1.0


_LOOK_BACK = specialise(look_back, "judging")


class Judge(Resumable):
    """Judges samples by errors of several kinds.

    Parameters
    ----------
    targets : sequence of str
        The target of each question.
    has_mean : sequence of bool
        Whether each question is about a mean over a horizon.
    expected : sequence of int
        For each forecast of a next value, a question about the same target.
    """

    def __init__(self, targets: Sequence[str], has_mean: Sequence[bool], expected: Sequence[int]) -> None:
        names, questions = list(dict.fromkeys(targets)), len(targets)
        self._first = np.array([targets.index(name) for name in names])  # a question about each target
        views = len(names) * 3
        self._question = np.array([*range(questions), *expected, *np.repeat(self._first, 3)])  # of each row
        self._next, self._views = questions, questions + len(expected)  # where these rows begin
        self._has_mean = np.array(has_mean)
        forecast = {targets[question]: self._next + i for i, question in enumerate(expected)}
        self._tells = np.array(
            [*(forecast.get(name, k) for k, name in enumerate(targets)), *range(self._next, self._views + views)]
        )
        sides = [4 + (name in forecast) for name in targets]
        shares = [1.0 / (sides[k] * targets.count(targets[k])) for k in range(questions)]
        shares += [1.0 / sides[k] for k in self._question[questions:]]
        self._owners = np.array([names.index(targets[k]) for k in self._question])
        levels = [self._views + 3 * i + LEVEL for i in range(len(names))]
        lasts = [k < self._views for k in range(len(shares))]
        self._surprise = Surprise(shares, lasts, self._owners.tolist(), self._tells.tolist(), levels)
        self._parts = {"surprise": self._surprise}
        self._state = {
            "before": np.full(questions, np.nan),  # the predictions at the last sample
            "past": np.zeros((len(names), PAST)),
            "slots": np.zeros((len(names), SLOTS, 2)),
        }

    def follow(
        self,
        predictions: np.ndarray,
        outlook: np.ndarray,
        values: np.ndarray,
        expected_next: np.ndarray,
        seconds: np.ndarray,
        starts: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Judge a block of samples.

        Parameters
        ----------
        predictions, outlook, values : array of shape (T, questions)
            p_t, (1 − γ)·x_t + γ·p_t, and x_t of each question.
        expected_next : array of shape (T, forecasts)
            The expectation for each sample, one sample before.
        seconds : array of shape (T,)
            The times by the clock on the wall.
        starts : array of bool, of shape (T,)
            True at each sample where something new begins.

        Returns
        -------
        dict from str to array of shape (T,)
            `surprise`, `suspect`, `reason`, `expected`, `usual` and `error`, as in `Answers`.
        """
        T, own = len(starts), values.take(self._first, axis=1)
        before = np.vstack([self._state["before"], predictions[:-1]])
        self._state["before"][:] = predictions[-1]
        views, beyond = np.full((T, own.shape[1], 3), np.nan), np.zeros(own.shape, np.bool_)
        new_levels = np.ones(own.shape)
        call(_LOOK_BACK, self._state["past"], self._state["slots"], own, seconds, views, beyond, new_levels)
        forecasts = np.hstack([before, expected_next, views.reshape(T, -1)])
        misses = values.take(self._question, axis=1) - forecasts
        errors = misses.copy()
        errors[:, : self._next] = outlook - before
        errors[np.abs(errors) < ROUNDING * np.abs(values).take(self._question, axis=1)] = 0.0
        errors[starts] = np.nan
        surprise, odd, figure, usual = self._surprise.follow(errors, starts, new_levels)
        rows, known = np.arange(T), odd >= 0
        told = self._tells[odd]
        outlook_told = told < self._next  # because no next value is forecast
        adds_up = ~outlook_told | self._has_mean[self._question[told]]  # else there is no value that was expected
        return {
            "surprise": surprise,
            "suspect": np.where(known, self._question[odd], -1),
            "reason": np.where(known, self._reasons(odd, figure, beyond, own == views[:, :, JUMP]), NOTHING),
            "expected": np.where(known & adds_up, forecasts[rows, told], np.nan),
            "usual": np.where(outlook_told & adds_up, np.nan, usual),
            "error": np.where(known, np.where(adds_up, misses[rows, told], errors[rows, told]), np.nan),
        }

    def _reasons(self, odd: np.ndarray, figure: np.ndarray, beyond: np.ndarray, same: np.ndarray) -> np.ndarray:
        """Why each sample is unusual: the row and the figure that speak."""
        rows, view = np.arange(len(odd)), odd - self._views
        target = self._owners[odd]
        levels = np.where(beyond[rows, target], NEW_LEVEL, FAR_LEVEL)
        of_view = np.select([view < 0, view % 3 == LEVEL, view % 3 == JUMP], [UNFORESEEN, levels, A_JUMP], WRONG_HOUR)
        silent = np.where(same[rows, target], FLAT, QUIET)
        return np.select(
            [figure == RUN, figure == BURST, figure == SILENCE, figure == NEW],
            [A_RUN, A_BURST, silent, NEW_LEVEL],
            of_view,
        )

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        past, slots = saved["past"], saved["slots"]
        return {
            "before": ~np.isinf(saved["before"]),
            "past": np.isfinite(past),
            "the present slots": (past[:, SLOT] >= 0)
            & (past[:, SLOT] < SLOTS)
            & (past[:, COUNT] >= 0.0)
            & (past[:, SIZE] >= 0.0),
            "blocks": past[:, [BLOCK, BLOCKS]] >= 0.0,
            "slots": np.isfinite(slots).all() and (slots[:, :, DAYS] >= 0.0).all(),
        }
