"""The small examples of section 3, and the random walks of the textbooks.

Only the text of the paper was at hand, not its pictures of the examples. The text determines the rewards and values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.inputs import count, number
from trueonline.problems.finite_mrp import FiniteMRP

# The text says that at λ = 1 accumulate TD(λ) does best at α ≈ 0.15 and the online λ-return algorithm at α = 1. By
# equation (V_T = V_0 + Tα(1 − V_0)) an episode of length T multiplies the error of accumulate TD(λ) by 1 − αT. With
# termination probability p, T is geometric, E[T] = 1/p, E[T²] = (2 − p)/p², and the mean squared error after any number
# of episodes is least at α = E[T]/E[T²] = p/(2 − p). α = 0.15 gives p = 0.26, so p = 1/4, which gives α = 1/7 ≈ 0.14.
ONE_STATE_TERMINATION = 0.25


def random_walk(n_states: int | None = None, end_rewards: Any = None) -> FiniteMRP:
    """A random walk over states in a row: that of the paper, or one of the textbooks'.

    Without arguments it is the walk of Figure 1. It has ten states, and the end lies beyond the left-most state. The walk
    goes left with probability 0.7 and right with 0.3. Every reward is 1. An episode begins in the right-most state, which
    stays where it is when it would go right.

    With `n_states` it is the walk of Sutton and Barto (2018, Examples 6.2 and 7.1). There is an end beyond either side.
    The walk goes left or right with the same probability. The only rewards are those at the ends. An episode begins in the
    middle.

    In both, γ = 1 and state 0 is the left-most.

    Parameters
    ----------
    n_states : int, optional
        The number of states of a textbook walk, such as 5 or 19.
    end_rewards : pair of float, optional
        The rewards at the left and the right end of a textbook walk. The default is the book's: (0, 1) for 5 states, and
        (−1, 1) for every other number.

    Returns
    -------
    FiniteMRP
        The problem.

    Raises
    ------
    ValueError
        If `end_rewards` is given without `n_states`, or is not a pair of numbers.

    Examples
    --------
    >>> random_walk()
    FiniteMRP(10 states, 10 features, discount=1.0)
    >>> random_walk(5).values.round(3)
    array([0.167, 0.333, 0.5  , 0.667, 0.833])
    >>> random_walk(19).values.round(3)[[0, 9, 18]]
    array([-0.9,  0. ,  0.9])
    """
    if n_states is not None:
        return _two_ended_walk(count("n_states", n_states), end_rewards)
    if end_rewards is not None:
        raise ValueError(f"end_rewards are for a walk with two ends: give n_states too, got end_rewards={end_rewards!r}")
    k = 10
    P = np.zeros((k, k + 1))
    for s in range(k):
        P[s, s - 1 if s > 0 else k] = 0.7
        P[s, min(s + 1, k - 1)] += 0.3
    return FiniteMRP(P, np.ones_like(P), discount=1.0, start=k - 1)


def _two_ended_walk(k: int, end_rewards: Any) -> FiniteMRP:
    """The textbooks' walk. The last column is the end, on either side."""
    if k < 2:
        raise ValueError(f"n_states must be at least 2, so that the two ends have states of their own, got {k}")
    rewards = ((0.0, 1.0) if k == 5 else (-1.0, 1.0)) if end_rewards is None else end_rewards
    if not isinstance(rewards, tuple | list | np.ndarray) or len(rewards) != 2:
        raise ValueError(f"end_rewards must be two numbers, for the left and the right end, got {end_rewards!r:.80}")
    left, right = (number(f"end_rewards[{i}]", reward) for i, reward in enumerate(rewards))
    P, R = np.zeros((k, k + 1)), np.zeros((k, k + 1))
    for s in range(k):
        P[s, s - 1 if s > 0 else k] += 0.5
        P[s, s + 1] += 0.5  # beyond the last state is the column of the end
    R[0, k], R[k - 1, k] = left, right
    return FiniteMRP(P, R, discount=1.0, start=k // 2)


def one_state() -> FiniteMRP:
    """The example of Figure 2: one state with value 1.

    The reward is 1 at the end of an episode and 0 before. γ = 1. The probability of ending is `ONE_STATE_TERMINATION`.

    Returns
    -------
    FiniteMRP
        The problem.

    Examples
    --------
    >>> one_state().values
    array([1.])
    """
    p = ONE_STATE_TERMINATION
    return FiniteMRP([[1.0 - p, p]], [[0.0, 1.0]], discount=1.0)


def two_state() -> FiniteMRP:
    """The example of Figure 3: two states with values 2 and 0, one after the other.

    A single feature is 1 in both states, and γ = 1. (The counterexample of the same name is
    `trueonline.problems.off_policy.two_state`.)

    Returns
    -------
    FiniteMRP
        The problem.

    Examples
    --------
    >>> two_state().values, two_state().lms_weights
    (array([2., 0.]), array([1.]))
    """
    return FiniteMRP([[0, 1, 0], [0, 0, 1]], [[0, 2, 0], [0, 0, 0]], features=[[1.0], [1.0]], discount=1.0)
