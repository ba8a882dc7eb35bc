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

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from trueonline import catalog, study
from trueonline.features import binary_code, tabular
from trueonline.inputs.seeds import seed_of
from trueonline.lab.claims import Errors
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


# --- The errors of sweeps -------------------------------------------------------------------------


def over_runs(case: study.Case, settings: Settings) -> Errors:
    """The errors of a case that has been run: an array over run, η, α and λ for each method."""
    table = settings.gathered(case.tasks())
    arrays = iter(table["error"].to_numpy().reshape(-1, case.runs, len(ALPHAS), len(LAMS)))
    by_method = {name: np.stack([next(arrays) for _ in etas], axis=1) for name, etas in VARIANTS.items()}
    return Errors(by_method, settings.seed)


def over_mdps(cases: Sequence[study.Case], settings: Settings) -> Errors:
    """The errors of several cases: an array over MDP, η, α and λ. Each MDP has the mean over its runs."""
    each = [over_runs(case, settings) for case in cases]
    return Errors({name: np.stack([one.mean(name) for one in each]) for name in FAMILY}, settings.seed)


def best_setting(errors: Errors, method: str) -> tuple[float, float, float]:
    """The best η, α and λ."""
    h, i, j = errors.place(method)
    return VARIANTS[method][h], float(ALPHAS[i]), float(LAMS[j])


def parameters(errors: Errors, method: str) -> str:
    """The best parameters in words."""
    eta, alpha, lam = best_setting(errors, method)
    return f"α = {alpha:g}, λ = {lam:g}" + (f", η = {eta:g}" if has_eta(method) else "")


def at_best_eta(errors: Errors, method: str) -> np.ndarray:
    """The errors over sample, α and λ, with the best η for each α and λ."""
    best = errors.mean(method).argmin(axis=0)
    return np.take_along_axis(errors.finite(method), best[None, None], axis=1)[:, 0]


def at_lambda_0(errors: Errors) -> Errors:
    """The errors at λ = 0 only."""
    return errors.at(slice(None), slice(None), slice(0, 1))


def over_time(case: study.Case, errors: Errors) -> dict[str, np.ndarray]:
    """For each method an array over run and time, at the parameters whose mean error over all steps is smallest."""
    problem, lines = case.problem, {}
    for name in FAMILY:
        method = catalog.METHODS[name]
        eta, alpha, lam = best_setting(errors, name)
        second = {"second_step_size": eta * alpha} if has_eta(name) else {}
        lines[name] = np.empty((case.runs, len(TIMES)))
        for run in range(case.runs):
            states, rewards, discounts, chances = case.trajectory(run)
            learner = method.resolve("learner")(
                problem.n_features, alpha, lam, problem.discount, problem.initial_weights, **method.options, **second
            )
            for point, (start, stop) in enumerate(pairwise((0, *TIMES))):
                X = problem.features[states[start : stop + 1]]
                piece = slice(start, stop)
                learner.run(X, rewards[piece], discounts[piece], ratios=chances[piece, 0], resume=True)
                w = learner.weights
                lines[name][run, point] = problem.error(w) if np.isfinite(w).all() else np.inf
    return lines
