"""Random Markov reward processes (k, b, σ), drawn as in section 5.1."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.inputs import count, one_seed
from trueonline.problems.finite_mrp import FiniteMRP


def random_mrp(k: int, b: int, sigma: float, *, discount: float = 0.99, seed: Any = 0) -> FiniteMRP:
    """Draw a random Markov reward process, as in section 5.1.

    The next states of a state are drawn without replacement. Uniform random points cut the unit interval into their
    probabilities. Expected rewards are standard normal. There are no episodes.

    A process that falls into several parts has no unique stationary distribution, and is drawn again. (The paper does not
    say how it treats such processes.)

    Parameters
    ----------
    k : int
        The number of states.
    b : int
        The number of possible next states of each state, at most `k`.
    sigma : float
        The standard deviation of the rewards around their expectations.
    discount : float
        The discount γ.
    seed : int, numpy.random.SeedSequence or numpy.random.Generator
        The seed of the process. One call draws one process, so a list of seeds is refused.

    Returns
    -------
    FiniteMRP
        The process, with one feature for each state.

    Raises
    ------
    ValueError
        If an argument is out of range, or if `seed` is a list.

    Examples
    --------
    >>> random_mrp(10, 3, 0.1, seed=1)
    FiniteMRP(10 states, 10 features, discount=0.99)
    """
    k, b = count("k", k), count("b", b)
    if b > k:
        raise ValueError(f"b must be at most k = {k}, got {b}")
    rng = np.random.default_rng(one_seed(seed))
    while True:
        cuts, to = np.empty((k, b - 1)), np.empty((k, b), np.int64)
        for s in range(k):
            cuts[s] = rng.random(b - 1)
            to[s] = rng.choice(k, size=b, replace=False)
        P = np.zeros((k, k))
        np.put_along_axis(P, to, np.diff(np.sort(cuts, axis=1), axis=1, prepend=0.0, append=1.0), axis=1)
        rewards = np.where(P > 0.0, rng.normal(size=(k, k)), 0.0)
        mrp = FiniteMRP(P, rewards, sigma, discount=discount)
        if mrp.is_ergodic:
            return mrp
