"""The score of predictions: each is compared with the return that is realised later, with a bounded memory.

The return that a prediction at sample t is about is known only later:

    G_t = C_{t+1} + γ_{t+1}·G_{t+1} = C_{t+1} + γ_{t+1}·C_{t+2} + …

So predictions wait. While sample t waits, samples t + 1 … t + n add to its sum, and the weight γ_{t+1}⋯γ_{t+n} says how much of the
return is still open. After `window` samples the prediction is *scored* if at most 1 % of the weight is open, and *truncated*
otherwise. When the stream breaks off, the predictions that still wait are scored or truncated by the same rule.

Adding each sample to the sums of all waiting samples would cost `window` operations for each sample and question. But the step
from G_{t+1} to G_t is an affine map, and maps can be composed in any grouping. So the waiting samples form two halves. In the
*older* half each sample keeps the composition of its own map with all later maps of that half. The *newer* half keeps only the
composition as a whole. The oldest return is then one multiplication and one addition away. When the older half is used up, one
pass backwards turns the newer half into the older half. Every sample is touched twice, for any window, and nothing is ever
divided or subtracted.

The kernels and the class that calls them stand in one file, because both follow this one picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.core.forms import pointer
from trueonline.inputs import MAX_COUNT
from trueonline.streams.accuracy.queues import HEAD, OLDER, WAITING, Queued, queues_of

KNOWN_WEIGHT = 0.01  # a return is known when at most this share of its weight is open
EXACT_WEIGHT = 1e-4  # the weight that is open when a sample has waited for its whole window, if the memory allows
MEMORY_BYTES = 2**26  # bytes for all waiting samples
MOVING_WINDOW = 100_000  # the window if γ is a signal or follows the time, because nobody knows how fast the weight falls

ABSOLUTE, SQUARED, MEAN, SPREAD, RECENT = range(5)  # rows of the totals, which have one column for each question
SCORED, TRUNCATED = range(2)  # columns of the counts, which have one row for each queue
# Columns of the plan, which has one row for each queue (`queues.Queued`); the last says whether returns are means.
QUESTION, SIZE, SPACE, SLOT, PLACE, MOST, MEANS = range(7)


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def turn(sums, at, size, weights, room, head, maps):
    """Turn the newer half into the older half: compose each map with all later maps. A slot has `size` sums."""
    for k in range(maps - 2, -1, -1):
        i = (head + k) % room
        j = (i + 1) % room
        own, later = pointer(sums, at + i * size), pointer(sums, at + j * size)
        for q in range(size):
            own[q] += weights[i] * later[q]
        weights[i] *= weights[j]


@kernel
def score(known, weight, newer, whole, made, totals, first, size, questions, share, rate):
    """Compare the predictions of a sample with what is known of its returns: errors, and the mean and spread of returns."""
    fading = max(share, rate)
    for q in range(size):
        total = pointer(totals, first + q)
        realised = (known[q] + weight * newer[q]) / whole
        error, away = abs(made[q] - realised), realised - total[MEAN * questions]
        mean = total[MEAN * questions] + away * share
        total[ABSOLUTE * questions] += error
        total[SQUARED * questions] += error * error
        total[MEAN * questions] = mean
        total[SPREAD * questions] += away * (realised - mean)
        total[RECENT * questions] += (error - total[RECENT * questions]) * fading


@kernel
def receive(own, cumulant, back, back_weight, size):
    """Give the newest sample the sums of its map, G = C + γ·(the later return), and the newer half the same as a whole."""
    for q in range(size):
        own[q] = cumulant[q]
        back[q] += back_weight * cumulant[q]


@kernel
def clear(numbers, size):
    """Set numbers to zero."""
    for q in range(size):
        numbers[q] = 0.0


def follow(
    plan, kept, sums, weights, newer, newer_weight, rings, opened, counts, totals, rate, ending,
    predictions, cumulants, gammas, starts,
):  # fmt: skip
    """Give the cumulants of new samples to the waiting samples, and let the new predictions wait. `ending`: the stream ends.

    The oldest sample is removed, scored or truncated, when nothing that matters is open any more, when there is no more
    room, and when the stream breaks off. A mean is that of what is known. One loop does all this, because every copy would
    be compiled again.
    """
    samples, questions = starts.size, newer.size
    for g in range(plan.shape[0]):
        queue, ring, count = pointer(plan, g * plan.shape[1]), pointer(rings, g * 3), pointer(counts, g * 2)
        first, size, room, at = queue[QUESTION], queue[SIZE], queue[SPACE], queue[PLACE]
        weight, back = pointer(weights, queue[SLOT]), pointer(newer, first)
        head, waiting, older, back_weight = ring[HEAD], ring[WAITING], ring[OLDER], newer_weight[g]
        for t in range(samples + ending):
            breaks = t == samples or starts[t]
            waiting -= breaks  # now the number of samples that have their map, or get it: the newest has no return at all
            if waiting > 0 and not breaks:
                i = (head + waiting - 1) % room
                receive(pointer(sums, at + i * size), pointer(cumulants, t * questions + first), back, back_weight, size)
                weight[i] = gammas[t, g]
                back_weight *= weight[i]
            while waiting > 0:
                if not (breaks or waiting == room or (weight[head] if older > 0 else 1.0) * back_weight <= EXACT_WEIGHT):
                    break
                if older == 0:
                    turn(sums, at, size, weight, room, head, waiting)
                    older, back_weight = waiting, 1.0
                    clear(back, size)
                left = weight[head] * back_weight  # the weight that is still open
                if left <= KNOWN_WEIGHT:
                    count[SCORED] += 1
                    opened[g] += left
                    own, made = pointer(sums, at + head * size), pointer(kept, at + head * size)
                    whole = 1.0 - left * queue[MEANS]
                    score(own, weight[head], back, whole, made, totals, first, size, questions, 1.0 / count[SCORED], rate)
                else:
                    count[TRUNCATED] += 1
                head = (head + 1) % room
                waiting -= 1
                older -= 1
            if breaks:
                count[TRUNCATED] += waiting + 1
                waiting = 0
            if t < samples:
                i = (head + waiting) % room
                made, prediction = pointer(kept, at + i * size), pointer(predictions, t * questions + first)
                for q in range(size):
                    made[q] = prediction[q]
                waiting += 1
        ring[HEAD], ring[WAITING], ring[OLDER], newer_weight[g] = head, waiting, older, back_weight


_FOLLOW = specialise(follow, "returns")


# --- In Python ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """The quality of the answers to one question, over the scored samples. Numbers are None if no sample is scored.

    Attributes
    ----------
    scored : int
        The number of samples whose return is known to within 1 %.
    truncated : int
        The number of samples that the stream, or the memory, did not follow for long enough.
    open_weight : float or None
        The share of the returns' weight that is missing, on average over the scored samples.
    mean_absolute_return_error : float or None
        The mean absolute difference between prediction and return.
    root_mean_square_return_error : float or None
        The root of the mean squared difference.
    recent_absolute_return_error : float or None
        The mean absolute difference, with the newest samples weighted most.
    mean_return : float or None
        The mean of the return.
    return_deviation : float or None
        The standard deviation of the return: the error of a forecast that knows only the mean.
    """

    scored: int
    truncated: int
    open_weight: float | None
    mean_absolute_return_error: float | None
    root_mean_square_return_error: float | None
    recent_absolute_return_error: float | None
    mean_return: float | None
    return_deviation: float | None


class Returns(Queued):
    """Scores the predictions of many questions. Questions with the same discount wait in one queue.

    Parameters
    ----------
    discounts : sequence of float or str
        γ of each question, or the name of the signal whose value is γ.
    memory : int
        Bytes for the waiting samples. If they do not suffice for returns that are exact to 1e-4, windows are shorter, the
        longest first.
    recent : float
        The number of samples over which the recent error fades.
    means : sequence of bool, optional
        Whether the return of each question is a weighted mean, so that what is known of it stands for the rest. Questions with the
        same discount must agree. None: no return is.

    Attributes
    ----------
    discounts : tuple of float or str
        The different discounts: one queue for each.

    Examples
    --------
    >>> returns = Returns([0.5])
    >>> returns.follow(np.array([[1.0], [2.0]]), np.array([[0.0], [4.0]]), starts=np.array([True, False]))
    >>> returns.scores()[0].truncated, returns.windows  # of both returns, half or more is still open
    (2, (14,))
    """

    def __init__(
        self,
        discounts: Sequence[float | str],
        memory: int = MEMORY_BYTES,
        recent: float = 1000.0,
        means: Sequence[bool] | None = None,
    ) -> None:
        self.discounts, self._order, sizes, _ = queues_of(discounts)
        self._windows = _windows(self.discounts, sizes, memory)
        flags = dict(zip(discounts, means or [False] * len(discounts), strict=True))
        self._rate = 1.0 / recent
        queues, questions = len(sizes), len(self._order)
        # Waiting samples, in rings (prediction, sum, weight), then the newer half as a whole, then counts and totals.
        shapes = {"kept": (1, True), "sums": (1, True), "weights": (1, False)}
        self._state: dict[str, np.ndarray] = {
            **self._set_up(discounts, self._windows, shapes, [flags[discount] for discount in self.discounts]),
            "newer": np.zeros(questions),
            "newer_weight": np.ones(queues),
            "rings": np.zeros((queues, 3), np.int64),
            "opened": np.zeros(queues),
            "counts": np.zeros((queues, 2), np.int64),
            "totals": np.zeros((5, questions)),
        }

    @property
    def windows(self) -> tuple[int, ...]:
        """The number of samples that a prediction waits for, for each of `discounts`."""
        return tuple(self._windows.tolist())

    def follow(
        self, predictions: np.ndarray, cumulants: np.ndarray, starts: np.ndarray, gammas: np.ndarray | None = None
    ) -> None:
        """Take T samples of the stream.

        Parameters
        ----------
        predictions, cumulants : array of shape (T, questions)
            Finite numbers. The caller has checked them.
        starts : array of shape (T,)
            Booleans that mark where a new stream begins.
        gammas : array of shape (T, discounts), optional
            γ at each sample, in the order of `discounts`. Needed if a discount is the name of a signal.
        """
        if gammas is None:
            gammas = np.tile(np.array(self.discounts, float), (len(starts), 1))
        V, C = predictions.take(self._order, axis=1), cumulants.take(self._order, axis=1)
        done = 0
        while done < len(starts):
            part = slice(done, done + self._make_room(len(starts) - done))
            self._update(self._state, V[part], C[part], gammas[part], starts[part], False)
            done = part.stop

    def _update(
        self, state: dict, V: np.ndarray, C: np.ndarray, gammas: np.ndarray, starts: np.ndarray, end: bool
    ) -> None:
        call(_FOLLOW, self._plan, *state.values(), self._rate, end, V, C, gammas, starts)

    def scores(self) -> list[Score]:
        """The score of each question so far, as if the stream ended here. The state does not change."""
        state = {name: array.copy() for name, array in self._state.items()}
        nothing = np.empty((0, len(self._order)))
        self._update(state, nothing, nothing, np.empty((0, len(self.discounts))), np.empty(0, np.bool_), True)
        return self._scores(state)

    def so_far(self) -> dict[str, np.ndarray]:
        """The mean error, the recent error and the number of scored samples of each question. NaN if nothing is scored yet.

        Waiting samples are left out, which makes this cheap enough for a look every now and then.
        """
        scored = np.repeat(self._state["counts"][:, SCORED], np.diff(self._firsts))
        totals, back = self._state["totals"], np.argsort(self._order)
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = {"error": totals[ABSOLUTE] / scored, "recent_error": np.where(scored > 0, totals[RECENT], np.nan)}
        return {**{name: values[back] for name, values in errors.items()}, "scored": scored[back]}

    def _scores(self, state: dict[str, np.ndarray]) -> list[Score]:
        scores: list[Score] = [None] * len(self._order)  # type: ignore[list-item]
        for g in range(len(self.discounts)):
            n, truncated = state["counts"][g].tolist()
            for place in range(self._firsts[g], self._firsts[g + 1]):
                absolute, squared, mean, spread, recent = state["totals"][:, place].tolist()
                known = (
                    float(state["opened"][g]) / n, absolute / n, math.sqrt(squared / n), recent, mean, math.sqrt(spread / n)
                ) if n else (None,) * 6  # fmt: skip
                scores[self._order[place]] = Score(n, truncated, *known)
        return scores

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {
            "rings": self._rings_possible(saved["rings"]),
            "counts": (saved["counts"] >= 0) & (saved["counts"] <= MAX_COUNT),
            **{name: (saved[name] >= 0.0) & (saved[name] <= 1.0) for name in ("weights", "newer_weight")},
            **{name: np.isfinite(saved[name]) for name in ("kept", "sums", "newer", "opened", "totals")},
            "sums of errors": saved["totals"][[ABSOLUTE, SQUARED, SPREAD]] >= 0.0,
        }


def _windows(discounts: Sequence[float | str], sizes: np.ndarray, memory: int) -> np.ndarray:
    """For each discount, the samples after which the weight is below EXACT_WEIGHT, or fewer if the memory is too small."""
    wanted = np.array([_window(discount) for discount in discounts])
    cost = 8.0 * (2 * sizes + 1)  # bytes for a waiting sample
    most = float(wanted.max(initial=1.0))
    while (cost * np.minimum(wanted, most)).sum() > memory and most > 1.0:
        most *= 0.99
    return np.maximum(np.minimum(wanted, most), 1.0).astype(np.int64)


def _window(discount: float | str) -> float:
    if isinstance(discount, str):
        return MOVING_WINDOW
    if discount <= EXACT_WEIGHT:
        return 1.0
    return math.ceil(math.log(EXACT_WEIGHT) / math.log(discount)) if discount < 1.0 else 2.0**40
