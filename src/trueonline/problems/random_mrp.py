"""Random Markov reward processes (k, b, σ), as section 5.1 makes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.inputs import count
from trueonline.problems.finite_mrp import FiniteMRP


def random_mrp(k: int, b: int, sigma: float, *, discount: float = 0.99, seed: Any = 0) -> FiniteMRP:
    """k states, each with b possible next states, and rewards with standard deviation σ around their expectations.

    The next states are drawn without replacement; their probabilities are the parts of the unit interval cut at b − 1
    uniform points; expected rewards are standard normal. There is no end. A process that falls into several parts has no
    unique stationary distribution and is drawn again (the paper does not say what it does with such).

    >>> random_mrp(10, 3, 0.1, seed=1)
    FiniteMRP(10 states, 10 features, discount=0.99)
    """
    k, b = count("k", k), count("b", b)
    if b > k:
        raise ValueError(f"b must be at most k = {k}, got {b}")
    rng = np.random.default_rng(seed)
    while True:
        P = np.zeros((k, k))
        for s in range(k):
            cuts = np.sort(rng.random(b - 1))
            P[s, rng.choice(k, size=b, replace=False)] = np.diff(cuts, prepend=0.0, append=1.0)
        rewards = np.where(P > 0.0, rng.normal(size=(k, k)), 0.0)
        mrp = FiniteMRP(P, rewards, sigma, discount=discount)
        if mrp.is_ergodic:
            return mrp
