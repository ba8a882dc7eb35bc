"""Predictions set against the returns that come true later, with a bounded memory.

What a prediction made at sample t is about is known only later:

    G_t = C_{t+1} + γ_{t+1}·G_{t+1} = C_{t+1} + γ_{t+1}·C_{t+2} + …

So predictions wait. While sample t waits, samples t + 1 … t + n give it a sum, and the weight γ_{t+1}⋯γ_{t+n} says how much of the
return is still open. After `window` samples it is *scored* if at most 1 % of the weight is open, and *truncated* otherwise; so
are those that wait when the stream breaks off.

To add each sample to the sums of all that wait would cost `window` operations a sample and question. The step from G_{t+1} to G_t
is an affine map, and a composition of maps may be bracketed at will: so there are two halves. In the *older* half each sample has
the composition of its own map with all later ones of that half. Of the *newer* half only the composition as a whole is kept.
The oldest return is then one multiplication and one addition away. When the older half is used up, the newer one becomes the
older by one pass backwards. Every sample is touched twice, whatever the window, and nothing is ever divided or subtracted.
"""

# Kernels are typed by Numba.
# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueonline.core.kernels import call, kernel, specialise
from trueonline.inputs import unit

KNOWN = 0.01  # a return is known when at most this share of its weight is open
EXACT = 1e-6  # what is open when a sample has waited for its whole window, where the memory allows
MEMORY = 2**26  # bytes for all that waits
UNTOLD = 10_000  # the window where γ is a signal, and nothing tells how long it takes to fall

ABSOLUTE, SQUARED, MEAN, SPREAD, RECENT = range(5)  # of the totals for each question
SCORED, TRUNCATED = range(2)  # of the counts for each queue
HEAD, WAITING, OLDER = range(
    3
)  # of the ring of each queue: the oldest slot, how many wait, how many are in the older half


# --- In a kernel ----------------------------------------------------------------------------------


@kernel
def turn(sums, weights, head, maps):
    """The newer half becomes the older: compose each map with all later ones."""
    room = weights.size
    for k in range(maps - 2, -1, -1):
        i, j = (head + k) % room, (head + k + 1) % room
        for q in range(sums.shape[1]):
            sums[i, q] += weights[i] * sums[j, q]
        weights[i] *= weights[j]


@kernel
def score(g, i, kept, sums, weights, newer, newer_weight, opened, counts, totals, recent):
    """Set the predictions of the sample in slot i against what is known of its returns."""
    left = weights[i] * newer_weight[g]  # the weight that is still open
    if not left <= KNOWN:
        counts[g, TRUNCATED] += 1
        return
    counts[g, SCORED] += 1
    opened[g] += left
    share, fading = 1.0 / counts[g, SCORED], 1.0 / min(counts[g, SCORED], recent)
    for q in range(newer.size):
        found = sums[i, q] + weights[i] * newer[q]
        error = abs(kept[i, q] - found)
        totals[ABSOLUTE, q] += error
        totals[SQUARED, q] += error * error
        away = found - totals[MEAN, q]
        totals[MEAN, q] += away * share
        totals[SPREAD, q] += away * (found - totals[MEAN, q])
        totals[RECENT, q] += (error - totals[RECENT, q]) * fading


@kernel
def leave(g, maps, rings, kept, sums, weights, newer, newer_weight, opened, counts, totals, recent):
    """The oldest of the samples that wait goes, scored or truncated. `maps` of them have their map."""
    head = rings[g, HEAD]
    if rings[g, OLDER] == 0:
        turn(sums, weights, head, maps)
        rings[g, OLDER] = maps
        newer_weight[g] = 1.0
        newer[:] = 0.0
    score(g, head, kept, sums, weights, newer, newer_weight, opened, counts, totals, recent)
    rings[g, HEAD] = (head + 1) % weights.size
    rings[g, WAITING] -= 1
    rings[g, OLDER] -= 1


@kernel
def let_go(g, rings, kept, sums, weights, newer, newer_weight, opened, counts, totals, recent):
    """The stream breaks off: all go, the newest of them without any return."""
    for maps in range(rings[g, WAITING] - 1, 0, -1):
        leave(g, maps, rings, kept, sums, weights, newer, newer_weight, opened, counts, totals, recent)
    counts[g, TRUNCATED] += rings[g, WAITING]
    rings[g, WAITING] = rings[g, OLDER] = 0
    newer_weight[g] = 1.0
    newer[:] = 0.0


def follow(
    firsts, windows, kept, sums, weights, newer, newer_weight, rings, opened, counts, totals, recent, ending,
    predictions, cumulants, gammas, starts,
):  # fmt: skip
    """Samples go by: their cumulants for those that wait, and their predictions to wait. `ending`: no more will come."""
    at = slot = 0
    for g in range(windows.size):
        first, last, room = firsts[g], firsts[g + 1], windows[g]
        size = room * (last - first)
        v, a = kept[at : at + size].reshape(room, last - first), sums[at : at + size].reshape(room, last - first)
        p = weights[slot : slot + room]
        back, total = newer[first:last], totals[:, first:last]
        at, slot = at + size, slot + room
        for t in range(starts.size):
            if starts[t]:
                let_go(g, rings, v, a, p, back, newer_weight, opened, counts, total, recent)
            elif rings[g, WAITING] > 0:  # the newest gets its map: G = C + γ·(what comes after)
                i = (rings[g, HEAD] + rings[g, WAITING] - 1) % room
                p[i] = gammas[t, g]
                for q in range(back.size):
                    a[i, q] = cumulants[t, first + q]
                    back[q] += newer_weight[g] * a[i, q]
                newer_weight[g] *= p[i]
                if rings[g, WAITING] == room:
                    leave(g, room, rings, v, a, p, back, newer_weight, opened, counts, total, recent)
            i = (rings[g, HEAD] + rings[g, WAITING]) % room
            for q in range(back.size):
                v[i, q] = predictions[t, first + q]
            rings[g, WAITING] += 1
        if ending:
            let_go(g, rings, v, a, p, back, newer_weight, opened, counts, total, recent)


_FOLLOW = specialise(follow, "returns")


# --- Seen from Python -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """How well a question was answered, over the samples whose return is known to within 1 %. None where there are none."""

    scored: int  # samples whose return is known to within 1 %
    truncated: int  # samples that the stream, or the memory, did not follow for long enough
    open_weight: float | None  # the share of the returns' weight that is left out, on average over those scored
    mean_absolute_return_error: float | None
    root_mean_square_return_error: float | None
    recent_absolute_return_error: float | None  # the newest counting most
    mean_return: float | None
    return_deviation: float | None  # standard deviation of the return: the error of one who knows its mean and no more


class Returns:
    """Follows the predictions of many questions. Questions with one discount wait in one queue.

    `discounts[q]` is γ of question q, or the name of the signal whose value it is. `memory` bounds, in bytes, what waits: where
    it is too small for returns that are exact to 1e-6, windows are shorter, the longest first.

    >>> returns = Returns([0.5])
    >>> returns(np.array([[1.0], [2.0]]), np.array([[0.0], [4.0]]), starts=np.array([True, False]))
    >>> returns.scores()[0].truncated, returns.windows  # both are still open by half and more
    (2, (20,))
    """

    def __init__(self, discounts: Sequence[float | str], memory: int = MEMORY, recent: float = 1000.0) -> None:
        keys = list(dict.fromkeys(discounts))
        self.discounts = tuple(d if isinstance(d, str) else unit("discount", d) for d in keys)
        member = np.array([keys.index(discount) for discount in discounts], np.int64)
        self._order = np.argsort(member, kind="stable")  # place → question
        sizes = np.bincount(member, minlength=len(keys))
        self._firsts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._windows = _windows(self.discounts, sizes, memory)
        self._recent = recent
        room, slots = int((self._windows * sizes).sum()), int(self._windows.sum())
        queues, questions = len(keys), len(member)
        # What changes: the samples that wait, in rings (prediction, sum, weight); the newer half as a whole; what was counted.
        self._state: dict[str, np.ndarray] = {
            "kept": np.zeros(room),
            "sums": np.zeros(room),
            "weights": np.zeros(slots),
            "newer": np.zeros(questions),
            "newer_weight": np.ones(queues),
            "rings": np.zeros((queues, 3), np.int64),
            "opened": np.zeros(queues),
            "counts": np.zeros((queues, 2), np.int64),
            "totals": np.zeros((5, questions)),
        }

    @property
    def windows(self) -> tuple[int, ...]:
        """How many samples a prediction waits for, for each of `discounts`."""
        return tuple(self._windows.tolist())

    def __call__(
        self, predictions: np.ndarray, cumulants: np.ndarray, starts: np.ndarray, gammas: np.ndarray | None = None
    ) -> None:
        """T samples: predictions and cumulants (T × questions), and where the stream begins anew.

        `gammas` (T × discounts, in the order of `discounts`) is needed where γ is a signal. All are finite: the caller has seen
        to it.
        """
        if gammas is None:
            gammas = np.tile(np.array(self.discounts, float), (len(starts), 1))
        V, C = predictions.take(self._order, axis=1), cumulants.take(self._order, axis=1)
        self._go(self._state, V, C, gammas, starts, False)

    def _go(self, state: dict, V: np.ndarray, C: np.ndarray, gammas: np.ndarray, starts: np.ndarray, end: bool) -> None:
        call(_FOLLOW, self._firsts, self._windows, *state.values(), self._recent, end, V, C, gammas, starts)

    def scores(self) -> list[Score]:
        """How well each question was answered so far, as if the stream ended here. It goes on undisturbed."""
        state = {name: array.copy() for name, array in self._state.items()}
        nothing = np.empty((0, len(self._order)))
        self._go(state, nothing, nothing, np.empty((0, len(self.discounts))), np.empty(0, np.bool_), True)
        return self._scores(state)

    def at_a_glance(self) -> dict[str, np.ndarray]:
        """The recent error and the mean return of each question, NaN where nothing is scored yet, and how much is scored.

        Without those that wait: cheap, for a look now and then.
        """
        scored = np.repeat(self._state["counts"][:, SCORED], np.diff(self._firsts))
        found = {"error": self._state["totals"][RECENT], "mean_return": self._state["totals"][MEAN], "scored": scored}
        back = np.argsort(self._order)
        return {
            name: values[back] if name == "scored" else np.where(scored > 0, values, np.nan)[back]
            for name, values in found.items()
        }

    def _scores(self, state: dict[str, np.ndarray]) -> list[Score]:
        found: list[Score] = [None] * len(self._order)  # type: ignore[list-item]
        for g in range(len(self.discounts)):
            n, truncated = state["counts"][g].tolist()
            for place in range(self._firsts[g], self._firsts[g + 1]):
                absolute, squared, mean, spread, recent = state["totals"][:, place].tolist()
                known = (
                    state["opened"][g] / n, absolute / n, math.sqrt(squared / n), recent, mean, math.sqrt(spread / n)
                ) if n else (None,) * 6  # fmt: skip
                found[self._order[place]] = Score(n, truncated, *known)
        return found

    def state(self) -> dict[str, np.ndarray]:
        """What `restore` needs to go on exactly."""
        return {name: array.copy() for name, array in self._state.items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a state of the same questions and memory."""
        for name, own in self._state.items():
            if name not in state or state[name].shape != own.shape or state[name].dtype != own.dtype:
                raise ValueError(f"the state of the returns does not fit these questions: {name}")
        self._state = {name: state[name].copy() for name in self._state}


def _windows(discounts: Sequence[float | str], sizes: np.ndarray, memory: int) -> np.ndarray:
    """For each discount, after how many samples the weight is below EXACT; less where the memory does not suffice."""
    wanted = np.array([_window(discount) for discount in discounts])
    cost = 8.0 * (2 * sizes + 1)  # bytes for a sample that waits
    most = float(wanted.max(initial=1.0))
    while (cost * np.minimum(wanted, most)).sum() > memory and most > 1.0:
        most *= 0.99
    return np.maximum(np.minimum(wanted, most), 1.0).astype(np.int64)


def _window(discount: float | str) -> float:
    if isinstance(discount, str):
        return UNTOLD
    if discount <= EXACT:
        return 1.0
    return math.ceil(math.log(EXACT) / math.log(discount)) if discount < 1.0 else 2.0**40
