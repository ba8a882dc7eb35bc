"""Off-policy problems with known answers: the behaviour acts, and the learner predicts for the target.

>>> from trueonline.problems import counterexamples as off_policy
>>> problem = off_policy.random_mdp(10, 3, 2, 0.1, distance=0.5, seed=1)
>>> problem
OffPolicyProblem(10 states, 3 actions, 10 features, discount=0.99)
>>> problem.trajectory(4, seed=1).ratios
array([0.5, 0.5, 2. , 0.5])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.inputs import count, one_seed, unit
from trueonline.problems.off_policy_problem import OffPolicyProblem

__all__ = ["baird", "collision", "random_mdp", "two_state"]

# The active features of the eight states of the Collision task in the first of its published runs.
COLLISION = ((2, 4, 5), (0, 1, 2), (1, 2, 5), (0, 2, 3), (0, 1, 4), (1, 2, 3), (0, 1, 5), (0, 2, 5))


def two_state(discount: float = 0.9) -> OffPolicyProblem:
    """The counterexample with two states, on which TD(0) diverges in expectation.

    A single feature is 1 in the first state and 2 in the second, so their values are θ and 2θ. The action right leads to
    the second state, and left to the first. The behaviour takes either action, and the target always goes right. All
    rewards are 0, so θ = 0 is correct. Learning begins at θ = 1.

    Parameters
    ----------
    discount : float
        The discount γ.

    Returns
    -------
    OffPolicyProblem
        The problem.

    Notes
    -----
    The process is in each state half of the time. Going right pulls θ up by 2γθ − θ in the first state, and down by
    2(2θ − 2γθ) in the second. Together A = (6γ − 5)/2. So TD(0) diverges in expectation for γ > 5/6 at every step-size.

    The features are those of Tsitsiklis & Van Roy (1996, *Feature-Based Methods for Large Scale Dynamic Programming*). In
    Sutton & Barto (2018), *Reinforcement Learning*, they are in section 11.2 and example 11.1, with the same threshold of
    5/6 when both states are fitted at once and there is no end. Actions and policies are those of Sutton, Mahmood & White
    (2016), *An Emphatic Approach to the Problem of Off-policy TD Learning*, with γ = 0.9. Here a run always begins in the
    first state.

    Examples
    --------
    >>> two_state().expected_update()[0].round(3)
    array([[0.2]])
    """
    left, right = [1.0, 0.0], [0.0, 1.0]
    return OffPolicyProblem(
        transitions=[[left, right], [left, right]],
        rewards=np.zeros((2, 2, 2)),
        behaviour=[[0.5, 0.5], [0.5, 0.5]],
        target=[[0.0, 1.0], [0.0, 1.0]],
        features=[[1.0], [2.0]],
        discount=discount,
        initial_weights=[1.0],
    )


def baird(discount: float = 0.99) -> OffPolicyProblem:
    """Baird's counterexample with seven states, from Sutton & Barto (2018), *Reinforcement Learning*, section 11.2.

    From every state, action 0 (dashed) leads to one of the first six states, and action 1 (solid) to the seventh. The
    behaviour is dashed with probability 6/7, so it visits all states equally often. The target is always solid. The first
    six states have the values 2w_i + w_8, the seventh has w_7 + 2w_8. All rewards are 0, so w = 0 is correct, and so are
    all weights with 2w_i = −w_8 and w_7 = −2w_8. Learning begins at (1, 1, 1, 1, 1, 1, 10, 1).

    Parameters
    ----------
    discount : float
        The discount γ.

    Returns
    -------
    OffPolicyProblem
        The problem.

    Notes
    -----
    The idea is from Baird (1995), *Residual Algorithms: Reinforcement Learning with Function Approximation*. The book
    begins in any state with the same probability, and here a run always begins in the first state. From the first
    transition on, the state is uniformly distributed in both.

    Examples
    --------
    >>> problem = baird()
    >>> problem.values.max(), problem.error(problem.initial_weights)
    (np.float64(0.0), 1.0)
    """
    features = np.zeros((7, 8))
    features[np.arange(6), np.arange(6)] = 2.0
    features[:6, 7] = 1.0
    features[6, 6:] = 1.0, 2.0
    dashed, solid = np.append(np.full(6, 1.0 / 6.0), 0.0), np.append(np.zeros(6), 1.0)
    return OffPolicyProblem(
        transitions=np.tile([dashed, solid], (7, 1, 1)),
        rewards=np.zeros((7, 2, 7)),
        behaviour=np.tile([6.0 / 7.0, 1.0 / 7.0], (7, 1)),
        target=np.tile([0.0, 1.0], (7, 1)),
        features=features,
        discount=discount,
        initial_weights=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 10.0, 1.0],
    )


def collision(seed: Any = None) -> OffPolicyProblem:
    """The Collision task: a vehicle drives towards a wall, and may turn away on the way.

    Eight states lie in a row. Action 0 (forward) leads to the next state, and from the last one into the wall, with reward
    1. Action 1 (retreat) ends the episode with reward 0. Episodes begin in one of the first four states, each with the
    same probability. The behaviour always goes forward in these four, and retreats with probability 1/2 in the others. The
    target always goes forward. γ = 0.9, so the values are 0.9⁷, 0.9⁶, … 1. Each state has three of six binary features.

    Parameters
    ----------
    seed : int, numpy.random.SeedSequence or numpy.random.Generator, optional
        The seed of the features. For each state, three of six are drawn. By default the features are those of the first
        of the 50 published runs.

    Returns
    -------
    OffPolicyProblem
        The problem.

    Raises
    ------
    ValueError
        If `seed` is a list.

    Notes
    -----
    The task is from Ghiassian & Sutton (2021), *An Empirical Comparison of Off-policy Prediction Learning Algorithms on the
    Collision Task*. There each of 50 runs has features of its own. The error is the root of the mean squared error,
    weighted by how often the behaviour visits a state (`stationary`). It is 0.689 at the beginning, with any features. With
    the features of the first run it is 0.528 at the fixed point of TD(0), 0.182 at that of emphatic TD(0), and 0.078 for
    the best weights. Over features that are drawn, the means of these three are about 0.316, 0.110 and 0.071. Levels of
    0.306, 0.111 and 0.071 are reported for the published features. They agree with means over 50 draws.

    Examples
    --------
    >>> problem = collision()
    >>> def level(weights):
    ...     return float(np.sqrt(problem.stationary @ (problem.features @ weights - problem.values) ** 2).round(3))
    >>> level(problem.initial_weights), level(problem.fixed_point())
    (0.689, 0.528)
    >>> level(problem.fixed_point(weighting=problem.emphasis())), level(problem.lms_weights)
    (0.182, 0.078)
    """
    k, n_features = 8, 6
    features = np.zeros((k, n_features))
    if seed is None:
        active = np.array(COLLISION)
    else:
        rng = np.random.default_rng(one_seed(seed))
        active = np.array([rng.choice(n_features, 3, replace=False) for _ in range(k)])
    np.put_along_axis(features, active, 1.0, axis=1)
    transitions, rewards = np.zeros((k, 2, k + 1)), np.zeros((k, 2, k + 1))
    transitions[np.arange(k), 0, np.arange(1, k + 1)] = 1.0  # beyond the last state is the end
    transitions[:, 1, k] = 1.0
    rewards[k - 1, 0, k] = 1.0
    return OffPolicyProblem(
        transitions,
        rewards,
        behaviour=[[1.0, 0.0]] * 4 + [[0.5, 0.5]] * 4,
        target=[[1.0, 0.0]] * k,
        features=features,
        discount=0.9,
        start=[0.25] * 4 + [0.0] * 4,
    )


def random_mdp(
    n_states: int,
    n_actions: int,
    branching: int,
    sigma: float,
    *,
    distance: float = 0.5,
    discount: float = 0.99,
    seed: Any = 0,
) -> OffPolicyProblem:
    """Draw a random Markov decision process with two policies.

    The process is drawn as in `random_mrp`, with next states and rewards for each state and action instead of each state.
    A process that falls into several parts under the behaviour is drawn again. With one action it is the process that
    `random_mrp` draws for the same seed.

    The paper has no actions, so the policies are our choice. The behaviour takes all n actions equally often. The target
    does the same with probability 1 − `distance`, and otherwise takes one action, drawn for each state.

    Parameters
    ----------
    n_states : int
        The number of states.
    n_actions : int
        The number of actions.
    branching : int
        The number of possible next states of each state and action, at most `n_states`.
    sigma : float
        The standard deviation of the rewards around their expectations.
    distance : float
        The distance of the target from the behaviour, from 0 (on-policy) to 1 (a deterministic target).
    discount : float
        The discount γ.
    seed : int, numpy.random.SeedSequence or numpy.random.Generator
        The seed of the process. One call draws one process, so a list of seeds is refused.

    Returns
    -------
    OffPolicyProblem
        The problem, with one feature for each state. Its method `with_features` gives it other features.

    Raises
    ------
    ValueError
        If an argument is out of range, or if `seed` is a list.

    Notes
    -----
    Ratios are bounded: 1 + distance·(n − 1) for the preferred action and 1 − distance for the others. Their variance in a
    state is distance²·(n − 1).

    Examples
    --------
    >>> random_mdp(10, 3, 2, 0.1, seed=1)
    OffPolicyProblem(10 states, 3 actions, 10 features, discount=0.99)
    """
    k, n, b = count("n_states", n_states), count("n_actions", n_actions), count("branching", branching)
    if b > k:
        raise ValueError(f"branching must be at most n_states = {k}, got {b}")
    apart = unit("distance", distance)
    rng = np.random.default_rng(one_seed(seed))
    uniform = np.full((k, n), 1.0 / n)
    while True:
        P = np.zeros((k, n, k))
        for s, a in np.ndindex(k, n):
            cuts = np.sort(rng.random(b - 1))
            P[s, a, rng.choice(k, size=b, replace=False)] = np.diff(cuts, prepend=0.0, append=1.0)
        rewards = np.where(P > 0.0, rng.normal(size=P.shape), 0.0)
        problem = OffPolicyProblem(P, rewards, uniform, uniform, sigma, discount=discount)
        if problem.is_ergodic:
            break
    preferred = np.eye(n)[rng.integers(n, size=k)]
    return OffPolicyProblem(P, rewards, uniform, (1.0 - apart) * uniform + apart * preferred, sigma, discount=discount)
