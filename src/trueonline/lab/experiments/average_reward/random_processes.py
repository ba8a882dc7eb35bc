"""Prediction: differential TD(λ) on random processes, against the exact solution and against a method that discounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline import TrueOnlineDifferentialTD, study
from trueonline.forward import OnlineDifferentialReturn
from trueonline.lab.claims import EQUAL, ROUNDING, Claim, Errors, Estimate, decided
from trueonline.lab.experiment import Settings, largest_difference
from trueonline.lab.experiments.average_reward import spec
from trueonline.problems import AverageReward, Trajectory


def alpha(t: int) -> float:
    """The step-size of the long runs."""
    return 0.5 / (1.0 + t / 1_000.0)


def beta(t: int) -> float:
    """The step-size of R̄ in the long runs."""
    return 0.1 * alpha(t)


class Discounted:
    """The same process, and the same error, for a method that discounts."""

    discount = spec.DISCOUNT

    def __init__(self, problem: AverageReward) -> None:
        self.problem = problem
        self.features, self.metric, self.lms_weights = problem.features, problem.metric, problem.lms_weights

    def trajectory(self, steps: int, seed: Any) -> Trajectory:
        run = self.problem.trajectory(steps, seed)
        return Trajectory(run.states, run.rewards, np.full(steps, spec.DISCOUNT))


def course(problem: AverageReward, seed: Any) -> np.ndarray:
    """|R̄ − r̄| and the error of the values, at the checkpoints of a long run; each at zero weights comes first."""
    states, rewards, _ = problem.trajectory(spec.LONG_RUN, seed)
    learner = TrueOnlineDifferentialTD(spec.K, alpha, spec.LAM, second_step_size=beta)
    found, done = [(abs(problem.reward_rate), problem.error(np.zeros(spec.K)))], 0
    for upto in spec.CHECKPOINTS:
        learner.run(states[done : upto + 1], rewards[done:upto], resume=True)
        found.append((abs(learner.reward_rate - problem.reward_rate), problem.error(learner.weights)))
        done = upto
    return np.array(found).T


def sweeps(problems: list[AverageReward], settings: Settings) -> dict[str, Errors]:
    """The mean squared error of each method, relative to that of zero weights: process × η × α × λ."""
    grid = (spec.STEP_SIZES, spec.TRACE_DECAYS, spec.RUNS_OF_SWEEP, spec.SHORT_RUN, settings.seed)
    methods = {f"{spec.DIFFERENTIAL}, η = {eta:g}": study.SweptMethod(spec.DIFFERENTIAL, second=eta) for eta in spec.ETAS}
    cases = {
        spec.DIFFERENTIAL: [study.Case(problem, methods, *grid) for problem in problems],
        spec.DISCOUNTED: [study.Case(Discounted(problem), {spec.DISCOUNTED: None}, *grid) for problem in problems],
    }
    settings.sweep([case for some in cases.values() for case in some])
    shape = (-1, spec.RUNS_OF_SWEEP, len(spec.STEP_SIZES), len(spec.TRACE_DECAYS))
    found = {}
    for name, some in cases.items():
        results = [settings.gathered(case.tasks())["error"].to_numpy().reshape(shape).mean(axis=1) for case in some]
        found[name] = Errors({name: np.stack(results)}, settings.seed)
    return found


def exactness(problem: AverageReward, settings: Settings) -> Claim:
    states, rewards, _ = problem.trajectory(200, [settings.seed, 1])
    numbers: Any = {"step_size": 0.5, "trace_decay": spec.LAM, "discount": 1.0, "second_step_size": 0.05}
    learners = [each(spec.K, **numbers) for each in (TrueOnlineDifferentialTD, OnlineDifferentialReturn)]
    off = largest_difference(learners, states, rewards)
    return Claim(
        "True online differential TD(λ) equals the online differential λ-return algorithm at every step",
        decided(off <= EQUAL),
        {"largest difference of a weight or of R̄ over 200 steps": off},
    )


def convergence(courses: np.ndarray, seed: int) -> list[Claim]:
    """What is left of the initial errors after a long run, as a root mean square over processes."""
    squares = Estimate.mean(courses**2, seed)
    about = ("R̄ approaches the exact reward rate", "The values approach the exact differential values, up to a constant")
    claims = []
    for part, claim in enumerate(about):
        left = Estimate(np.sqrt((squares[part, -1] / squares[part, 0]).rows))
        numbers = {
            "holds if": f"after {spec.LONG_RUN:,} steps at most {spec.REST:g} of the initial error is left (RMS over processes)",
            "left": left.value,
            "95 % interval": left.interval,
            "processes": len(courses),
        }
        claims.append(Claim(claim, left.judge(at_most=spec.REST), numbers, len(courses)))
    return claims


def comparisons(swept: Mapping[str, Errors]) -> list[Claim]:
    """Differential TD(λ) against λ = 0, and against a method that discounts, each at its best parameters."""
    ours = swept[spec.DIFFERENTIAL].estimate(spec.DIFFERENTIAL)  # over η, α and λ
    theirs = swept[spec.DISCOUNTED].best(spec.DISCOUNTED)
    processes = swept[spec.DIFFERENTIAL].samples
    claims = []
    for claim, one, other, name in (
        (
            "Differential TD(λ) with λ > 0 is at least as good as with λ = 0, at the best α and η",
            ours[..., 1:].best(),
            ours[..., 0].best(),
            "λ = 0",
        ),
        (
            f"Differential TD(λ) is at least as good as true online TD(λ) with γ = {spec.DISCOUNT}, each at its best parameters",
            ours.best(),
            theirs,
            f"γ = {spec.DISCOUNT}",
        ),
    ):
        ratio = one / other - 1.0
        numbers = {
            "mean squared error over the first 1,000 steps (initial = 1)": one.value,
            f"the same with {name}": other.value,
            "95 % interval of the ratio, less 1": ratio.interval,
            "processes": processes,
        }
        claims.append(Claim(claim, ratio.judge(at_most=ROUNDING), numbers, processes))
    return claims
