"""Beyond the paper — learning about one policy from another

Section 7 of the paper names methods that learn about one policy, the target, while another policy, the
behaviour, acts. Which of these methods converge, how fast, and is the true online form better? The methods are off-policy
TD(λ), GTD(λ) and emphatic TD(λ), each with its true online form. Off-policy TD(λ) is GTD(λ) without second weights (β = 0).

On the counterexamples TD(0) diverges in expectation at every step-size. They are two states with the features 1 and 2, and
Baird's seven states. Runs have 5,000 steps. By default there are 50. They begin with the initial weights of the
literature, at which the error is 1. The error at the end is the mean over the last 500 steps. If it is above 1, learning
made the weights worse.

The random MDPs have 10 states, 3 actions, 3 next states for each state and action, and σ =
0.1. The behaviour is uniform. The distance of the target from the behaviour is 0 if both are the same, and 1 if the
target is deterministic. Each MDP has 2 runs of 1,000 steps, and by default there are 30 MDPs, with tabular
features and with the binary code of the state. Weights begin at zero, and the error is the mean over all steps. One setting of the
parameters is chosen for all MDPs.

The grid has 16 step-sizes from 2⁻¹⁴ to 2, and λ = 0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95 and 1. GTD(λ) also has η = β/α = 1/16,
1/4, 1, 4 and 16, so its best is chosen from five times as many settings. All methods see the same trajectories. Grids and
claims were fixed before the first results were looked at.

The best setting is the one with the smallest mean over runs (or MDPs), where a diverged run counts as 10¹². Intervals come
from 1,000 bootstrap samples. Each sample has its own best setting. At λ = 0 a method and its true online form are the same.
Lines over time use the parameters that are best over all steps. Values beyond the axes of the figure are drawn at the edge.

Divergence in expectation and divergence of a run are different. On the two states a step of TD(0) multiplies the weight by
1 + 1.6α, by 1 − 0.8α or by 1. A run almost surely converges to 0 if (1 + 1.6α)·|1 − 0.8α| < 1, that is for 0.625 < α < 1.6.
The mean over runs still grows without bound, because ever rarer runs become ever larger.

Question: Which methods can learn about one way of acting while they watch another?

Paper: The paper has no such figure, but names the methods. TD(λ) may diverge here. Gradient and emphatic methods are made not
to.

Look: Lower is better, and 1 is the error at the beginning. A line that rises above 1 belongs to a method that learning made
worse.

Exceptions: A method may converge on average over infinitely many runs and diverge in every run that one can see, and the other
way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trueonline import study
from trueonline.features import binary_code, tabular
from trueonline.inputs.seeds import seed_of
from trueonline.lab.experiment import Settings
from trueonline.problems import OffPolicyProblem, baird, off_policy, random_mdp

ALPHAS = 2.0 ** np.arange(-14, 2)
LAMS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0])
ETAS = (0.0625, 0.25, 1.0, 4.0, 16.0)  # β/α

COUNTEREXAMPLES: dict[str, Callable[[], OffPolicyProblem]] = {"two states": off_policy.two_state, "Baird": baird}
STEPS, RUNS = 5_000, 50  # of the counterexamples
LAST_STEPS = STEPS // 10  # the number of steps that count as the end
GONE_SHARE = 0.01  # an error below this share of the initial error counts as gone
TIMES = np.unique(np.geomspace(1, STEPS, 100).round().astype(int))  # of a line over time

STATES, ACTIONS, BRANCHING, SIGMA = 10, 3, 3, 0.1  # of the random MDPs
DISTANCES = (0.0, 0.25, 0.5, 1.0)
REPRESENTATIONS = {"tabular": tabular, "binary": binary_code}
MDPS, MDP_RUNS, MDP_STEPS = 30, 2, 1_000

PAIRS = {
    "off_policy": "true_online_off_policy",
    "gtd": "true_online_gtd",
    "emphatic": "true_online_emphatic",
}  # a method → its true online form
FAMILY = tuple(name for pair in PAIRS.items() for name in pair)
VARIANTS = {name: ETAS if "gtd" in name else (0.0,) for name in FAMILY}


def case(problem: OffPolicyProblem, runs: int, steps: int, seed: int, after: int = 0) -> study.Case:
    """The sweep of all methods on a problem."""
    methods: dict[str, Any] = {}
    for name, etas in VARIANTS.items():
        if has_eta(name):
            methods |= {f"{name}, η = {eta:g}": study.SweptMethod(name, second=eta) for eta in etas}
        else:
            methods[name] = None
    return study.Case(problem, methods, tuple(ALPHAS), tuple(LAMS), runs, steps, seed, after=after)


def has_eta(method: str) -> bool:
    """Whether a method has a second step-size to choose."""
    return len(VARIANTS[method]) > 1


def mdp(number: int, distance: float, representation: str, settings: Settings) -> OffPolicyProblem:
    """The same process at every distance and in every representation."""
    seed = np.random.SeedSequence(seed_of("off-policy MDPs", settings.seed, number))
    process = random_mdp(STATES, ACTIONS, BRANCHING, SIGMA, distance=distance, seed=seed)
    return process.with_features(REPRESENTATIONS[representation](STATES))
