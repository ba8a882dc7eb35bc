"""The states of a run of a finite process, sampled by a compiled loop, or by a plain one where runs are few."""

from __future__ import annotations

from bisect import bisect

import numpy as np

from trueonline.core.compiling.kernels import call, specialise
from trueonline.problems.array_checks import first_states

MAX_PLAIN_STEPS = 200_000  # steps of the plain loop: a tenth of the time in which Numba loads its first kernel


class MarkovChain:
    """The outcomes of each state, and their probabilities. The next state is the remainder of an outcome modulo `width`.

    Parameters
    ----------
    shares : numpy.ndarray
        ``shares[s, o]`` is the probability of outcome o in state s. Outcomes that never happen take no room.
    width : int
        The number of next states. One that is not a state is the end of an episode.
    rest : int, optional
        The outcome that takes what the probabilities lack to 1 by rounding, by default the last one that is possible.
    """

    _stepped = 0  # of all runs of this program so far

    def __init__(self, shares: np.ndarray, width: int, rest: int | None = None) -> None:
        kept = shares > 0.0
        if rest is not None:
            kept[:, rest] = True
        counts = kept.sum(axis=1)
        states, outcomes = np.nonzero(kept)
        places = np.arange(len(states)) - np.repeat(np.cumsum(counts) - counts, counts)
        self._width = width
        self._outcomes = np.zeros((len(shares), counts.max()), np.int64)
        self._outcomes[states, places] = outcomes
        # A distribution function for each state. Its last step is not needed, and infinite, so that nothing comes after it.
        self._cumulative = np.full(self._outcomes.shape, np.inf)
        self._cumulative[states, places] = np.cumsum(shares, axis=1)[states, outcomes]
        self._cumulative[np.arange(len(shares)), counts - 1] = np.inf

    def sample(
        self, steps: int, start: int | np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sample a run.

        Parameters
        ----------
        steps : int
            The number of transitions.
        start : int or numpy.ndarray
            The state in which every episode begins, or for each state the probability that an episode begins there.
        rng : numpy.random.Generator
            The source of all random numbers.

        Returns
        -------
        states, outcomes, noise : numpy.ndarray
            The ``steps + 1`` states, the outcome of each step, and a standard normal number for each step.
        """
        choices, noise = rng.random(steps), rng.normal(size=steps)
        first = first_states(start, steps + 1, rng)
        states, outcomes = np.empty(steps + 1, np.int64), np.empty(steps, np.int64)
        MarkovChain._stepped += steps
        if MarkovChain._stepped > MAX_PLAIN_STEPS:
            call(_WALK, self._cumulative, self._outcomes, self._width, choices, first, states, outcomes)
        else:
            self._walk_plainly(choices, first, states, outcomes)
        return states, outcomes, noise

    def _walk_plainly(self, choices: np.ndarray, first: np.ndarray, states: np.ndarray, outcomes: np.ndarray) -> None:
        """Do the same as `walk`, without compiled code."""
        cumulative, possible, begins = self._cumulative.tolist(), self._outcomes.tolist(), first.tolist()
        states[0] = here = begins[0]
        for t, choice in enumerate(choices.tolist()):
            outcomes[t] = outcome = possible[here][bisect(cumulative[here], choice)]
            here = outcome % self._width
            if here >= len(cumulative):
                here = begins[t + 1]
            states[t + 1] = here


def walk(
    cumulative: np.ndarray,
    possible: np.ndarray,
    width: int,
    choices: np.ndarray,
    first: np.ndarray,
    states: np.ndarray,
    outcomes: np.ndarray,
) -> None:
    """Follow the choices, numbers from 0 to 1. When an episode ends, the next state is the first of another one."""
    states[0] = here = first[0]
    for t in range(choices.size):
        # Bisection for the first outcome whose cumulative probability exceeds the choice: one of `left`, from `low` on. A product
        # instead of a branch, because nobody can foretell which half it is in.
        low, left = 0, cumulative.shape[1]
        while left > 1:
            half = left // 2
            low += half * (cumulative[here, low + half - 1] <= choices[t])
            left -= half
        outcomes[t] = possible[here, low]
        here = outcomes[t] % width
        if here >= cumulative.shape[0]:
            here = first[t + 1]
        states[t + 1] = here


_WALK = specialise(walk, "chain")
