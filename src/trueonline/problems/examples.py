"""The small examples of section 3. Their pictures are lost; rewards and values are fixed by the text."""

from __future__ import annotations

import numpy as np

from trueonline.problems.finite_mrp import FiniteMRP

# The text says that at λ = 1 accumulate TD(λ) does best at α ≈ 0.15 and the online λ-return algorithm at α = 1. By
# equation (V_T = V_0 + Tα(1 − V_0)) an episode of length T multiplies the error of accumulate TD(λ) by 1 − αT. With
# termination probability p, T is geometric, E[T] = 1/p, E[T²] = (2 − p)/p², and the mean squared error after any number
# of episodes is least at α = E[T]/E[T²] = p/(2 − p). α = 0.15 gives p = 0.26, so p = 1/4, which gives α = 1/7 ≈ 0.14.
ONE_STATE_TERMINATION = 0.25


def random_walk() -> FiniteMRP:
    """Figure 1: ten states in a row and the end beyond the left-most; 70 % left, 30 % right; all rewards 1; γ = 1.

    State 0 is the left-most. The right-most is the first, and stays where it is when it would go right.
    """
    k = 10
    P = np.zeros((k, k + 1))
    for s in range(k):
        P[s, s - 1 if s > 0 else k] = 0.7
        P[s, min(s + 1, k - 1)] += 0.3
    return FiniteMRP(P, np.ones_like(P), discount=1.0, start=k - 1)


def one_state() -> FiniteMRP:
    """Figure 2: one state with value 1. The reward is 1 at the end and 0 before; γ = 1."""
    p = ONE_STATE_TERMINATION
    return FiniteMRP([[1.0 - p, p]], [[0.0, 1.0]], discount=1.0)


def two_state() -> FiniteMRP:
    """Figure 3: two states with values 2 and 0, one after the other, with a single feature that is 1 in both; γ = 1."""
    return FiniteMRP([[0, 1, 0], [0, 0, 1]], [[0, 2, 0], [0, 0, 0]], features=[[1.0], [1.0]], discount=1.0)
