"""Bands around predictions: intervals that hold a given share of what comes true, for any stream.

A prediction p_k is about M_k = C_{k+1} + γ_{k+1}·M_{k+1}, which is known only later. After samples k + 1 … t,

    M_k = A + W·M_t,   W = γ_{k+1}⋯γ_t

where A is known. As soon as the open weight W is at most `MAX_OPEN_WEIGHT`, or as many samples wait as the memory holds,
A + W·p_t stands for M_k. W is large, so that bands learn soon what happened. If predictions are right, the differences from one
prediction to the next are uncorrelated, and the known part of the error has √(1 − W²) of the size. If a prediction is wrong and
stays wrong, it has 1 − W of it. Most predictions are between the two. So the error that counts is

    e_k = (A + W·p_t − p_k) / ((1 + W)^½·(1 − W)^0.6)

The band is [p_t − d, p_t + u]. Here u is a quantile of the last errors that came true, and d is one of the last negative errors,
each side on its own. Errors of neighbouring samples are almost equal when predictions look far ahead. So one error is kept for each
sixteenth of the time that a prediction waits.

Quantiles of the past alone promise nothing about the future. So each side counts its *excess*, the misses beyond those that are
due: with α = (1 − coverage) / 2,

    E ← max(E + s·([e_k beyond the band that was given] − α),  −ln(½/α)/η)    level = α·exp(−ηE)    s = min(1, 16/w)

where w is the number of samples that a prediction waits. A band that turns out too narrow was given w times before that shows, so
a step of 1 for each of many would widen the band by far too much. The band leaves out the share `level` of the errors in memory. If
n errors are fewer than 1/level, the largest one b is stretched to b / ((n + 1)·level)^ξ. So misses widen the band until nothing is
missed, and hits narrow it, at most to the median error.

**The first bands.** Errors of neighbouring samples say almost the same, so a stream has only about one error a wait that is worth
its name. Until there are twelve of them, the range of the signal so far stands in: a mean of coming values seldom leaves it.
After n values it reaches from the least to the largest, and by 1/n of this further, because the next value is beyond the largest
of n with the probability 1/(n + 1). A band reaches the share 0.6·(1 − errors / 12) of the way from its own end to that of the
range, if that is further out. So the first band comes with the second sample.

**Guarantee.** Let the errors of one side be at most B, and let the largest error in memory be at least b > 0. Above
E* = (ln(α(n + 1)) + ln(B/b)/ξ)/η nothing is missed, apart from the w bands that were given before. The excess is never less than
the sum of what was added to it. So among the first N predictions that come true

    misses of the side ≤ αN + max(E*, 0)/s + w + 1

for every sequence, even if an adversary chooses it who knows the bands. The share of misses is at most α in the long run. It is
exactly α unless even the narrowest band is missed less often.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.core.forms import pointer
from trueonline.inputs import unit
from trueonline.streams.accuracy.queues import HEAD, OLDER, WAITING, Queued, queues_of
from trueonline.streams.accuracy.realised_returns import (
    MOST,
    PLACE,
    QUESTION,
    SIZE,
    SLOT,
    SPACE,
    clear,
    receive,
    turn,
)

MAX_OPEN_WEIGHT = 0.6  # an error counts when at most this share of the return's weight is open
KNOWN_POWER = 0.6  # from ½, for errors that know nothing of each other, to 1, for an error that stays
UNKNOWN_WEIGHT = 0.995  # nothing is known of a return of which more is open
MAX_WAITING = 1024  # samples
MAX_ERRORS = 512  # errors in memory, for each question
ERRORS_PER_WAIT = 16  # errors that are kept of as many samples as a prediction waits
FIRST_ERRORS = 20  # the first errors, which are all kept
MIN_ERRORS = 4  # errors in memory when the first band is given
LEVEL_RATE = 0.2  # η: a miss beyond those that are due lowers the level by this share
TAIL_EXPONENT = 0.25  # ξ: the tail beyond the largest error, as heavy as one with barely a finite fourth moment
MAX_LEVEL = 0.5  # the largest level: the band shrinks to the median error
MIN_WIDTH = 1e-12  # of the prediction, or of 1 if that is 0: no band is narrower
SURE_ERRORS = 12.0  # errors after which the range of the signal no longer widens a band
RANGE_SHARE = 0.6  # how far a first band reaches towards the ends of the range, which holds nearly everything
LOWEST, HIGHEST, VALUES = range(3)  # columns of the ranges: of the signal so far, and how many values there were

SINCE = 3  # a column of the rings behind those of `queues`: the errors that came true since one was kept
PREDICTION, LOW, HIGH, SUM = range(4)  # what a waiting sample has for each question
ABOVE, BELOW = range(2)
FILLED, NEXT = range(2)  # columns of the memory: how many errors there are, and the slot of the next
JUDGED, INSIDE = range(2)  # columns of the counts: bands that were judged, and those that contained what came true


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def quantile(errors, n, level, side):
    """The error that a share `level`, at most ½, of the n sorted errors exceeds. For BELOW: of the negative errors."""
    sign, start = 1 - 2 * side, side * (n - 1)  # the smallest error, or the largest, is the first
    rank = (1.0 - level) * (n + 1)
    if rank >= n:
        largest = sign * errors[start + sign * (n - 1)]
        return largest + abs(largest) * (((n + 1) * level) ** -TAIL_EXPONENT - 1.0)
    whole = int(rank)
    part = rank - whole
    return sign * errors[start + sign * (whole - 1)] * (1.0 - part) + sign * errors[start + sign * whole] * part


@kernel
def keep(error, ordered, recent, memory):
    """Put an error into the sorted memory, in the place of the oldest if the memory is full."""
    n, slot = memory[FILLED], memory[NEXT]
    memory[FILLED], memory[NEXT] = n + (n < MAX_ERRORS), (slot + 1) % MAX_ERRORS
    k = n  # the place that is free
    if n == MAX_ERRORS:
        k, end = n - MAX_ERRORS, n
        while k < end:
            middle = (k + end) // 2
            if ordered[middle] < recent[slot]:
                k = middle + 1
            else:
                end = middle
    while k + 1 < n and ordered[k + 1] <= error:
        ordered[k] = ordered[k + 1]
        k += 1
    while k > 0 and ordered[k - 1] > error:
        ordered[k] = ordered[k - 1]
        k -= 1
    ordered[k] = recent[slot] = error


@kernel
def judge(own, each, error, step, alpha, least, excess, other, count):
    """Count whether the band that was given held what came true, and the misses of each side beyond those that are due."""
    low, high, true = own[LOW * each], own[HIGH * each], own[PREDICTION] + error
    if low <= high:  # a band was given
        above, below = true > high, true < low
        excess[0] = max(excess[0] + step * (above - alpha), least)
        excess[other] = max(excess[other] + step * (below - alpha), least)
        count[JUDGED] += 1
        count[INSIDE] += 1 - above - below


@kernel
def come_true(
    maps, left, weight, newest, newer, first, size, slots, oldest, each, ring, ordered, recent, memory, excess, counts,
    alpha, least,
):  # fmt: skip
    """Take the oldest waiting sample, of `maps` that have their map, for true: learn from its errors."""
    ring[SINCE] += 1
    kept, step = ERRORS_PER_WAIT * ring[SINCE] >= maps, min(1.0, ERRORS_PER_WAIT / maps)
    known = math.sqrt(1.0 + left) * (1.0 - left) ** KNOWN_POWER
    for q in range(size):
        own, k = pointer(slots, oldest + q), first + q
        note = pointer(memory, 2 * k)
        error = (own[SUM * each] + weight * newer[q] + left * newest[q] - own[PREDICTION]) / known
        if math.isfinite(error):
            if kept or note[FILLED] < FIRST_ERRORS:
                keep(error, pointer(ordered, k * MAX_ERRORS), pointer(recent, k * MAX_ERRORS), note)
            judge(own, each, error, step, alpha, least, pointer(excess, k), excess.shape[1], pointer(counts, 2 * k))
    if kept:
        ring[SINCE] = 0


@kernel
def see(x, seen):
    """Widen the range of the signal."""
    seen[LOWEST] = min(seen[LOWEST], x) if seen[VALUES] > 0.0 else x
    seen[HIGHEST] = max(seen[HIGHEST], x) if seen[VALUES] > 0.0 else x
    seen[VALUES] += 1.0


@kernel
def give(p, n, unsure, ordered, alpha, excess, seen, other, end, beside, own, each):
    """Give the band of a prediction, and let both wait. `unsure` is how far it reaches towards the end of the range."""
    own[PREDICTION] = p
    for side in range(2):
        sign = 1 - 2 * side
        if n >= MIN_ERRORS or seen[VALUES] >= 2.0:
            away = 0.0
            if n >= MIN_ERRORS:
                level = min(alpha * math.exp(-LEVEL_RATE * excess[side * other]), MAX_LEVEL)
                away = quantile(ordered, n, level, side)
            if seen[VALUES] >= 2.0:
                farthest = sign * (seen[HIGHEST - side] - p) + (seen[HIGHEST] - seen[LOWEST]) / seen[VALUES]
                away += unsure * max(farthest - away, 0.0)
            end[side * beside] = p + sign * (away + MIN_WIDTH * (abs(p) if p != 0.0 else 1.0))
        own[(HIGH - side) * each] = end[side * beside]


def follow(
    plan, alpha, means, slots, weights, newer, newer_weight, rings, ordered, recent, memory, excess, counts, ranges,
    predictions, cumulants, gammas, starts, ends,
):  # fmt: skip
    """Learn from what comes true at each sample, and give the bands of its predictions: all upper ends, then all lower."""
    samples, questions = starts.size, newer.size
    least = -math.log(MAX_LEVEL / alpha) / LEVEL_RATE
    for g in range(plan.shape[0]):
        queue, ring = pointer(plan, g * plan.shape[1]), pointer(rings, g * 4)
        first, size, room, at = queue[QUESTION], queue[SIZE], queue[SPACE], 4 * queue[PLACE]
        each = room * size  # the predictions that wait; as many ends of bands and sums are behind them
        weight, back = pointer(weights, queue[SLOT]), pointer(newer, first)
        head, waiting, older, back_weight = ring[HEAD], ring[WAITING], ring[OLDER], newer_weight[g]
        for t in range(samples):
            prediction = pointer(predictions, t * questions + first)
            if starts[t]:  # what waits will never come true
                waiting, older, back_weight = 0, 0, 1.0
                clear(back, size)
            if waiting > 0:
                i = (head + waiting - 1) % room
                own = pointer(slots, at + SUM * each + i * size)
                receive(own, pointer(cumulants, t * questions + first), back, back_weight, size)
                weight[i] = gammas[t, g]
                back_weight *= weight[i]
            while waiting > 0:
                if not ((weight[head] if older > 0 else 1.0) * back_weight <= MAX_OPEN_WEIGHT or waiting == room):
                    break
                if older == 0:
                    turn(slots, at + SUM * each, size, weight, room, head, waiting)
                    older, back_weight = waiting, 1.0
                    clear(back, size)
                left = weight[head] * back_weight
                if left <= UNKNOWN_WEIGHT:
                    oldest = at + head * size
                    come_true(waiting, left, weight[head], prediction, back, first, size, slots, oldest, each, ring, ordered,
                              recent, memory, excess, counts, alpha, least)  # fmt: skip
                head = (head + 1) % room
                waiting -= 1
                older -= 1
            i = (head + waiting) % room
            waiting += 1
            for q in range(size):
                k, own = first + q, pointer(slots, at + i * size + q)
                end, errors = pointer(ends, t * questions + k), pointer(ordered, k * MAX_ERRORS)
                seen, n = pointer(ranges, 3 * k), memory[k, FILLED]
                if means[g] and gammas[t, g] < 1.0:
                    see(cumulants[t, k] / (1.0 - gammas[t, g]), seen)
                unsure = RANGE_SHARE * max(1.0 - n / (SURE_ERRORS * min(max(queue[MOST] - 1, 1), ERRORS_PER_WAIT)), 0.0)
                give(prediction[q], n, unsure, errors, alpha, pointer(excess, k), seen, questions, end, samples * questions,
                     own, each)  # fmt: skip
        ring[HEAD], ring[WAITING], ring[OLDER], newer_weight[g] = head, waiting, older, back_weight


_FOLLOW = specialise(follow, "bands")


# --- In Python ------------------------------------------------------------------------------------


class Bands(Queued):
    """Intervals around the predictions of many questions. Questions with the same discount wait in one queue.

    Parameters
    ----------
    discounts : sequence of float or str
        γ of each question, or the name of the signal whose value is γ.
    coverage : float
        The share of what comes true that a band should contain, above 0 and below 1.
    means : sequence of bool, optional
        Whether each question is about a mean of values, so that their range says something. Questions with the same discount must
        agree. None: no question is.

    Attributes
    ----------
    discounts : tuple of float or str
        The different discounts: one queue for each.
    coverage : float
        The share of what comes true that a band should contain.

    Examples
    --------
    >>> bands = Bands([0.0])
    >>> x = np.random.default_rng(0).normal(size=(2000, 1))
    >>> low, high = bands.follow(0 * x, x, starts=np.arange(2000) == 0)
    >>> round(float(high[-1, 0]), 1)  # the 0.95 quantile of a normal distribution is 1.64
    1.7
    """

    def __init__(
        self, discounts: Sequence[float | str], coverage: float = 0.9, means: Sequence[bool] | None = None
    ) -> None:
        self.coverage = unit("coverage", coverage)
        if not 0.0 < self.coverage < 1.0:
            raise ValueError(f"coverage must be above 0 and below 1, got {coverage}: 0.9 gives bands that hold 90 %")
        self.discounts, self._order, sizes, _ = queues_of(discounts)
        flags = dict(zip(discounts, means or [False] * len(discounts), strict=True))
        self._means = np.array([flags[discount] for discount in self.discounts], np.bool_)
        queues, questions = len(sizes), len(self._order)
        # Waiting samples in rings, the newer half as a whole, then the errors that came true and what they say.
        most = np.array([_room(discount) for discount in self.discounts], np.int64)
        self._state: dict[str, np.ndarray] = {
            **self._set_up(discounts, most, {"slots": (4, True), "weights": (1, False)}),
            "newer": np.zeros(questions),
            "newer_weight": np.ones(queues),
            "rings": np.zeros((queues, 4), np.int64),
            "ordered": np.zeros((questions, MAX_ERRORS)),
            "recent": np.zeros((questions, MAX_ERRORS)),
            "memory": np.zeros((questions, 2), np.int64),
            "excess": np.zeros((2, questions)),
            "counts": np.zeros((questions, 2), np.int64),
            "ranges": np.zeros((questions, 3)),
        }

    def follow(
        self, predictions: np.ndarray, cumulants: np.ndarray, starts: np.ndarray, gammas: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take T samples of the stream, and give the bands of their predictions.

        Parameters
        ----------
        predictions, cumulants : array of shape (T, questions)
            Finite numbers. The caller has checked them.
        starts : array of shape (T,)
            Booleans that mark where a new stream begins.
        gammas : array of shape (T, discounts), optional
            γ at each sample, in the order of `discounts`. Needed if a discount is the name of a signal.

        Returns
        -------
        low, high : array of shape (T, questions)
            The ends of the bands. NaN until four errors came true, or, for a mean, until there are two values.
        """
        if gammas is None:
            gammas = np.tile(np.array(self.discounts, float), (len(starts), 1))
        V, C = predictions.take(self._order, axis=1), cumulants.take(self._order, axis=1)
        parts, done = [np.empty((2, 0, V.shape[1]))], 0
        alpha = (1.0 - self.coverage) / 2.0
        while done < len(starts):
            part = slice(done, done + self._make_room(len(starts) - done))
            ends = np.full((2, *V[part].shape), np.nan)
            block = V[part], C[part], gammas[part], starts[part]
            call(_FOLLOW, self._plan, alpha, self._means, *self._state.values(), *block, ends)
            parts.append(ends)
            done = part.stop
        high, low = np.concatenate(parts, axis=1).take(np.argsort(self._order), axis=2)
        return low, high

    def inside(self) -> np.ndarray:
        """The share of bands that contained what came true, for each question. NaN if no band has been judged yet.

        The errors that count are the e_k of this module: at most `OPEN` of the return is replaced by the newest prediction.
        """
        judged, inside = self._state["counts"][np.argsort(self._order)].T
        return np.where(judged > 0, inside / np.maximum(judged, 1), np.nan)

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        rings, memory, counts = saved["rings"], saved["memory"], saved["counts"]
        return {
            "rings": self._rings_possible(rings) and (rings[:, SINCE] <= MAX_WAITING).all(),
            "counts": (counts >= 0).all() and (counts[:, INSIDE] <= counts[:, JUDGED]).all(),
            "memory": (memory >= 0).all()
            and (memory[:, FILLED] <= MAX_ERRORS).all()
            and (memory[:, NEXT] < MAX_ERRORS).all(),
            **{name: (saved[name] >= 0.0) & (saved[name] <= 1.0) for name in ("weights", "newer_weight")},
            **{name: np.isfinite(saved[name]) for name in ("newer", "ordered", "recent", "excess", "ranges")},
            "values in the ranges": saved["ranges"][:, VALUES] >= 0.0,
            "slots": ~np.isinf(saved["slots"]),  # a band may be NaN
            "order of the errors": (np.diff(saved["ordered"]) >= 0.0) | (np.arange(1, MAX_ERRORS) >= memory[:, :1]),
        }


def _room(discount: float | str) -> int:
    """As many samples as wait until the open weight is small enough, and one more, if the memory allows."""
    if isinstance(discount, str) or discount >= 1.0:
        return MAX_WAITING
    waits = 1 if discount <= MAX_OPEN_WEIGHT else math.ceil(math.log(MAX_OPEN_WEIGHT) / math.log(discount))
    return min(waits + 1, MAX_WAITING)
