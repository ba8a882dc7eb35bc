"""Problems on which one policy is followed and another one is asked about, with known answers.

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

from trueonline.inputs import count, unit
from trueonline.problems.off_policy_problem import OffPolicyProblem


def two_state(discount: float = 0.9) -> OffPolicyProblem:
    """Two states with the one feature 1 and 2, so with values θ and 2θ; going right leads to the second, left to the first.

    The behaviour goes either way, the target always right. All rewards are 0, so θ = 0 is right, and learning begins at
    θ = 1. The process is in each state half of the time; going right pulls θ up by 2γθ − θ in the first state, and down by
    2(2θ − 2γθ) in the second. Together A = (6γ − 5)/2. So TD(0) diverges in expectation for γ > 5/6, however small the
    step-size.

    The features are those of Tsitsiklis & Van Roy (1996, *Feature-Based Methods for Large Scale Dynamic Programming*), in
    Sutton & Barto (2018), *Reinforcement Learning*, section 11.2 and example 11.1, whose threshold for fitting both states
    at once, when there is no end, is 5/6 too. Actions and policies are those of Sutton, Mahmood & White (2016), *An Emphatic
    Approach to the Problem of Off-policy TD Learning*, whose γ is 0.9. Here a run always begins in the first state.

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
    """Baird's counterexample with seven states, as Sutton & Barto (2018), *Reinforcement Learning*, section 11.2 have it.

    Action 0 (dashed) leads to one of the first six states, action 1 (solid) to the seventh, from wherever. The behaviour is
    dashed with probability 6/7, so it is everywhere equally often; the target is always solid. The first six states have
    the values 2w_i + w_8, the seventh w_7 + 2w_8. All rewards are 0, so w = 0 is right, as are all weights with 2w_i = −w_8
    and w_7 = −2w_8. Learning begins at (1, 1, 1, 1, 1, 1, 10, 1). The idea is that of Baird (1995), *Residual Algorithms:
    Reinforcement Learning with Function Approximation*.

    The book begins in any state with the same probability; here a run always begins in the first. From the first
    transition on the state is uniformly distributed in both.

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
    """A random process as in section 5.1, with actions: what `random_mrp` draws for a state is drawn for a state and action.

    The next states (`branching` of them) are drawn without replacement; their probabilities are the parts of the unit
    interval cut at uniform points; expected rewards are standard normal, rewards normal around them with σ. There is no
    end. A process that falls into several parts under the behaviour is drawn again. With one action it is the process that
    `random_mrp` makes of the same seed.

    The section has no actions, so policies are a choice made here. The behaviour takes all n actions equally often. The
    target does the same with probability 1 − `distance`, and otherwise takes one action, drawn for each state. So distance
    0 is on-policy, at 1 the target is deterministic, and ratios are bounded: 1 + distance·(n − 1) for that action and
    1 − distance for the others. Their variance in a state is distance²·(n − 1).

    Features are one for each state; `with_features` sees it through others, such as those of `trueonline.features`.
    """
    k, n, b = count("n_states", n_states), count("n_actions", n_actions), count("branching", branching)
    if b > k:
        raise ValueError(f"branching must be at most n_states = {k}, got {b}")
    apart = unit("distance", distance)
    rng = np.random.default_rng(seed)
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
