"""Bands around predictions: intervals that hold a given share of what comes true, for any stream.

A prediction p_k is about M_k = C_{k+1} + γ_{k+1}·M_{k+1}, which is known only later. After samples k + 1 … t,

    M_k = A + W·M_t,   W = γ_{k+1}⋯γ_t

where A is known. As soon as the open weight W is at most `OPEN`, or as many samples wait as the memory holds, A + W·p_t stands for
M_k. If predictions are right, the differences from one prediction to the next are uncorrelated, and the part of the error that is
known has 1 − W² of the variance. So the error that counts is

    e_k = (A + W·p_t − p_k) / √(1 − W²)

The band is [p_t − d, p_t + u]. Here u is a quantile of the last errors that came true, and d is one of the last negative errors,
each side on its own. Errors of neighbouring samples are almost equal when predictions look far ahead. So one error is kept for each
sixteenth of the time that a prediction waits.

Quantiles of the past alone promise nothing about the future. So each side counts its *excess*, the misses beyond those that are
due: with α = (1 − coverage) / 2,

    E ← max(E + s·([e_k beyond the band that was given] − α),  −ln(½/α)/η)    level = α·exp(−ηE)    s = min(1, 64/w)

where w is the number of samples that a prediction waits. A band that turns out too narrow was given w times before that shows, so
a step of 1 for each of many would widen the band by far too much. The band leaves out the share `level` of the errors in memory. If
n errors are fewer than 1/level, the largest one b is stretched to b / ((n + 1)·level)^ξ. So misses widen the band until nothing is
missed, and hits narrow it, at most to the median error.

**Guarantee.** Let the errors of one side be at most B, and let the largest error in memory be at least b > 0. Above
E* = (ln(α(n + 1)) + ln(B/b)/ξ)/η nothing is missed, apart from the w bands that were given before. The excess is never less than
the sum of what was added to it. So among the first N predictions that come true

    misses of the side ≤ αN + max(E*, 0)/s + w + 1

for every sequence, even if an adversary chooses it who knows the bands. The share of misses is at most α in the long run. It is
exactly α unless even the narrowest band is missed less often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trueonline.core.kernels import call, kernel, specialise
from trueonline.inputs import check_saved, saved_array, unit
from trueonline.nexting.realised_returns import queues_of, turn

OPEN = 0.2  # an error counts when at most this share of the return's weight is open
UNKNOWABLE = 0.995  # nothing is known of a return of which more is open
MOST_WAITING = 1024  # samples
KEPT = 512  # errors in memory, for each question
SPACING = 16  # errors that are kept of as many samples as a prediction waits
COUNTED = 64  # misses that count in full while a prediction waits
EVERY = 20  # the first errors, which are all kept
FIRST = 4  # errors in memory when the first band is given
SPEED = 0.03  # η: a miss beyond those that are due lowers the level by this share
STRETCH = 0.5  # ξ: the tail beyond the largest error, as heavy as one with barely a finite variance
NARROWEST = 0.5  # the largest level: the band shrinks to the median error
ROUNDING = 1e-12  # of the prediction: no band is narrower

# Columns of the rings, which have one row for each queue: the oldest slot, the samples that wait, those of the older half (see
# `realised_returns`), and the errors that came true since one was kept.
HEAD, WAITING, OLDER, SINCE = range(4)
PREDICTION, LOW, HIGH, SUM = range(4)  # what a waiting sample has for each question
ABOVE, BELOW = range(2)
JUDGED, INSIDE = range(2)  # columns of the counts: bands that came true well enough, and those that held what came true


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def quantile(errors, n, level, side):
    """The error that a share `level` of the n sorted errors exceeds. For BELOW: of the negative errors."""
    rank = (1.0 - level) * (n + 1)
    if rank >= n:
        largest = errors[n - 1] if side == ABOVE else -errors[0]
        return largest + abs(largest) * (((n + 1) * level) ** -STRETCH - 1.0)
    whole = max(int(rank), 1)
    part = max(rank - whole, 0.0)
    if side == ABOVE:
        return errors[whole - 1] * (1.0 - part) + errors[whole] * part
    return -errors[n - whole] * (1.0 - part) - errors[n - 1 - whole] * part


@kernel
def keep(error, ordered, recent, at):
    """Put an error into the sorted memory, in the place of the oldest if the memory is full. `at`: errors in memory, next slot."""
    n = at[0]
    if n == KEPT:
        n -= 1
        for k in range(np.searchsorted(ordered, recent[at[1]]), n):
            ordered[k] = ordered[k + 1]
    k = n
    while k > 0 and ordered[k - 1] > error:
        ordered[k] = ordered[k - 1]
        k -= 1
    ordered[k] = recent[at[1]] = error
    at[0] = n + 1
    at[1] = (at[1] + 1) % KEPT


@kernel
def open_weight(ring, weights, newer_weight):
    """The open weight of the oldest waiting sample."""
    return newer_weight if ring[OLDER] == 0 else weights[ring[HEAD]] * newer_weight


@kernel
def come_true(
    g, maps, newest, alpha, rings, slots, weights, newer, newer_weight, ordered, recent, memory, excess, counts
):
    """Take the oldest waiting sample, of `maps` that have their map, for true: learn from its errors."""
    ring = rings[g]
    head, room = ring[HEAD], weights.size
    if ring[OLDER] == 0:
        turn(slots[SUM], weights, head, maps)
        ring[OLDER] = maps
        newer_weight[g] = 1.0
        newer[:] = 0.0
    left = weights[head] * newer_weight[g]
    if left <= UNKNOWABLE:
        least = -math.log(NARROWEST / alpha) / SPEED
        ring[SINCE] += 1
        kept = SPACING * ring[SINCE] >= maps
        step = min(1.0, COUNTED / maps)
        for q in range(newer.size):
            p = slots[PREDICTION, head, q]
            error = (slots[SUM, head, q] + weights[head] * newer[q] + left * newest[q] - p) / math.sqrt(1.0 - left * left)
            if not math.isfinite(error):
                continue
            if kept or memory[q, 0] < EVERY:
                keep(error, ordered[q], recent[q], memory[q])
            low, high = slots[LOW, head, q], slots[HIGH, head, q]
            if low <= high:  # a band was given
                above, below = 1.0 if p + error > high else 0.0, 1.0 if p + error < low else 0.0
                excess[ABOVE, q] = max(excess[ABOVE, q] + step * (above - alpha), least)
                excess[BELOW, q] = max(excess[BELOW, q] + step * (below - alpha), least)
                counts[q, JUDGED] += 1
                counts[q, INSIDE] += above + below == 0.0
        if kept:
            ring[SINCE] = 0
    ring[HEAD] = (head + 1) % room
    ring[WAITING] -= 1
    ring[OLDER] -= 1


def follow(
    firsts, rooms, alpha, slots, weights, newer, newer_weight, rings, ordered, recent, memory, excess, counts,
    predictions, cumulants, gammas, starts, low, high,
):  # fmt: skip
    """Learn from what comes true at each sample, and give the bands of its predictions."""
    at = slot = 0
    for g in range(rooms.size):
        first, last, room = firsts[g], firsts[g + 1], rooms[g]
        size = room * (last - first)
        waiting = slots[4 * at : 4 * (at + size)].reshape(4, room, last - first)
        w, ring, back = weights[slot : slot + room], rings[g], newer[first:last]
        at, slot = at + size, slot + room
        for t in range(starts.size):
            if starts[t]:  # what waits will never come true
                ring[WAITING] = ring[OLDER] = 0
                newer_weight[g] = 1.0
                back[:] = 0.0
            elif ring[WAITING] > 0:  # the newest gets its map: M = C + γ·(the later M)
                i = (ring[HEAD] + ring[WAITING] - 1) % room
                w[i] = gammas[t, g]
                for q in range(back.size):
                    waiting[SUM, i, q] = cumulants[t, first + q]
                    back[q] += newer_weight[g] * cumulants[t, first + q]
                newer_weight[g] *= w[i]
                while ring[WAITING] > 0 and (open_weight(ring, w, newer_weight[g]) <= OPEN or ring[WAITING] == room):
                    come_true(
                        g, ring[WAITING], predictions[t, first:last], alpha, rings, waiting, w, back, newer_weight,
                        ordered[first:last], recent[first:last], memory[first:last], excess[:, first:last],
                        counts[first:last],
                    )  # fmt: skip
                if ring[WAITING] == 0:
                    newer_weight[g] = 1.0
                    back[:] = 0.0
            i = (ring[HEAD] + ring[WAITING]) % room
            ring[WAITING] += 1
            for q in range(first, last):
                p = predictions[t, q]
                if memory[q, 0] >= FIRST:
                    tolerance = ROUNDING * abs(p)
                    share = alpha * math.exp(-SPEED * excess[ABOVE, q])
                    high[t, q] = p + quantile(ordered[q], memory[q, 0], min(share, NARROWEST), ABOVE) + tolerance
                    share = alpha * math.exp(-SPEED * excess[BELOW, q])
                    low[t, q] = p - quantile(ordered[q], memory[q, 0], min(share, NARROWEST), BELOW) - tolerance
                waiting[PREDICTION, i, q - first] = p
                waiting[LOW, i, q - first] = low[t, q]
                waiting[HIGH, i, q - first] = high[t, q]


_FOLLOW = specialise(follow, "bands")


# --- In Python ------------------------------------------------------------------------------------


class Bands:
    """Intervals around the predictions of many questions. Questions with the same discount wait in one queue.

    Parameters
    ----------
    discounts : sequence of float or str
        γ of each question, or the name of the signal whose value is γ.
    coverage : float
        The share of what comes true that a band should hold, above 0 and below 1.

    Attributes
    ----------
    discounts : tuple of float or str
        The different discounts: one queue for each.
    coverage : float
        The share of what comes true that a band should hold.

    Examples
    --------
    >>> bands = Bands([0.0])
    >>> x = np.random.default_rng(0).normal(size=(2000, 1))
    >>> low, high = bands.follow(0 * x, x, starts=np.arange(2000) == 0)
    >>> round(float(high[-1, 0]), 1)  # the 0.95 quantile of a normal distribution is 1.64
    1.6
    """

    def __init__(self, discounts: Sequence[float | str], coverage: float = 0.9) -> None:
        self.coverage = unit("coverage", coverage)
        if not 0.0 < self.coverage < 1.0:
            raise ValueError(f"coverage must be above 0 and below 1, got {coverage}: 0.9 gives bands that hold 90 %")
        self.discounts, self._order, sizes, self._firsts = queues_of(discounts)
        self._rooms = np.array([_room(discount) for discount in self.discounts], np.int64)
        queues, questions = len(sizes), len(self._order)
        # Waiting samples in rings, the newer half as a whole, then the errors that came true and what they say.
        self._state: dict[str, np.ndarray] = {
            "slots": np.zeros(4 * int((self._rooms * sizes).sum())),
            "weights": np.zeros(int(self._rooms.sum())),
            "newer": np.zeros(questions),
            "newer_weight": np.ones(queues),
            "rings": np.zeros((queues, 4), np.int64),
            "ordered": np.zeros((questions, KEPT)),
            "recent": np.zeros((questions, KEPT)),
            "memory": np.zeros((questions, 2), np.int64),
            "excess": np.zeros((2, questions)),
            "counts": np.zeros((questions, 2), np.int64),
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
            The ends of the bands. NaN until four errors came true.
        """
        if gammas is None:
            gammas = np.tile(np.array(self.discounts, float), (len(starts), 1))
        V, C = predictions.take(self._order, axis=1), cumulants.take(self._order, axis=1)
        low, high = np.full((2, *V.shape), np.nan)
        alpha = (1.0 - self.coverage) / 2.0
        call(_FOLLOW, self._firsts, self._rooms, alpha, *self._state.values(), V, C, gammas, starts, low, high)
        back = np.argsort(self._order)
        return low.take(back, axis=1), high.take(back, axis=1)

    def inside(self) -> np.ndarray:
        """The share of what came true that the bands have held, for each question. NaN if nothing has come true yet."""
        judged, inside = self._state["counts"][np.argsort(self._order)].T
        return np.where(judged > 0, inside / np.maximum(judged, 1), np.nan)

    def state(self) -> dict[str, np.ndarray]:
        """Copy everything that `restore` needs to resume exactly."""
        return {name: array.copy() for name, array in self._state.items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Resume from a state of the same questions. ValueError if the state does not fit."""
        own = {name: saved_array(state, name, array.shape, array.dtype).copy() for name, array in self._state.items()}
        rings, memory = own["rings"], own["memory"]
        check_saved(
            {
                "rings": (rings >= 0).all()
                and (rings[:, HEAD] < self._rooms).all()
                and (rings[:, WAITING] <= self._rooms).all()
                and (rings[:, OLDER] <= rings[:, WAITING]).all()
                and (rings[:, SINCE] <= MOST_WAITING).all(),
                "counts": (own["counts"] >= 0).all() and (own["counts"][:, INSIDE] <= own["counts"][:, JUDGED]).all(),
                "memory": (memory >= 0).all() and (memory[:, 0] <= KEPT).all() and (memory[:, 1] < KEPT).all(),
                **{name: (own[name] >= 0.0) & (own[name] <= 1.0) for name in ("weights", "newer_weight")},
                **{name: np.isfinite(own[name]) for name in ("newer", "ordered", "recent", "excess")},
                "slots": ~np.isinf(own["slots"]),  # a band may be NaN
                "order of the errors": (np.diff(own["ordered"]) >= 0.0) | (np.arange(1, KEPT) >= memory[:, :1]),
            }
        )
        self._state = own


def _room(discount: float | str) -> int:
    """As many samples as wait until the open weight is small enough, and one more, if the memory allows."""
    if isinstance(discount, str) or discount >= 1.0:
        return MOST_WAITING
    waits = 1 if discount <= OPEN else math.ceil(math.log(OPEN) / math.log(discount))
    return min(waits + 1, MOST_WAITING)
