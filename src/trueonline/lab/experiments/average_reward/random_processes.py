"""Prediction: differential TD(λ) on random processes, against the exact solution and against a method that discounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline import TrueOnlineDifferentialTD, study
from trueonline.forward import OnlineDifferentialReturn
from trueonline.lab.experiment import (
    ROUNDING,
    Claim,
    Settings,
    at_most,
    exactly,
    gathered,
    interval,
    resample,
)
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
    states, rewards, _ = problem.trajectory(spec.LONG, seed)
    learner = TrueOnlineDifferentialTD(spec.K, alpha, spec.LAM, second_step_size=beta)
    found, done = [(abs(problem.reward_rate), problem.error(np.zeros(spec.K)))], 0
    for upto in spec.CHECKPOINTS:
        learner.run(states[done : upto + 1], rewards[done:upto])
        found.append((abs(learner.reward_rate - problem.reward_rate), problem.error(learner.weights)))
        done = upto
    return np.array(found).T


def sweeps(problems: list[AverageReward], settings: Settings) -> dict[str, np.ndarray]:
    """The mean squared error of each method: λ × process × (η and α), relative to that of zero weights."""
    grid: Any = {
        "step_sizes": spec.STEP_SIZES,
        "trace_decays": spec.TRACE_DECAYS,
        "runs": spec.RUNS_OF_SWEEP,
        "steps": spec.SHORT,
    }
    grid |= {"seed": settings.seed}
    methods = {f"{spec.DIFFERENTIAL}, η = {eta:g}": study.SweptMethod(spec.DIFFERENTIAL, second=eta) for eta in spec.ETAS}
    cases = {
        spec.DIFFERENTIAL: [study.Case(problem, methods, **grid) for problem in problems],
        spec.DISCOUNTED: [study.Case(Discounted(problem), {spec.DISCOUNTED: None}, **grid) for problem in problems],
    }
    options: Any = {"engine": settings.engine, "threads": settings.threads, "progress": settings.progress}
    study.execute([case for some in cases.values() for case in some], settings.tasks, **options)
    found = {}
    for name, some in cases.items():
        shape = (len(some), -1, spec.RUNS_OF_SWEEP, len(spec.STEP_SIZES), len(spec.TRACE_DECAYS))
        results = [gathered(study.gather(case, settings.tasks))["error"].to_numpy() for case in some]
        errors = np.array(results).reshape(shape).mean(axis=2)  # process × η × α × λ
        found[name] = errors.reshape(len(some), -1, len(spec.TRACE_DECAYS)).transpose(2, 0, 1)
    return found


def exactness(problem: AverageReward, settings: Settings) -> Claim:
    states, rewards, _ = problem.trajectory(200, [settings.seed, 1])
    numbers: Any = {
        "n_features": spec.K,
        "step_size": 0.5,
        "trace_decay": spec.LAM,
        "discount": 1.0,
        "second_step_size": 0.05,
    }
    ours, definition = TrueOnlineDifferentialTD(**numbers), OnlineDifferentialReturn(**numbers)
    off = 0.0
    for each in (ours, definition):
        each.start(int(states[0]))
    for state, reward in zip(states[1:], rewards, strict=True):
        for each in (ours, definition):
            each.update(float(reward), int(state))
        off = max(off, np.abs(ours.weights - definition.weights).max(), abs(ours.reward_rate - definition.reward_rate))
    return Claim(
        "True online differential TD(λ) equals the online differential λ-return algorithm at every step",
        exactly(float(off)),
        {"largest difference of a weight or of R̄ over 200 steps": float(off)},
    )


def convergence(problems: list[AverageReward], courses: np.ndarray, settings: Settings) -> list[Claim]:
    weights = resample(len(courses), seed=settings.seed)
    squares = courses**2
    about = ("R̄ approaches the exact reward rate", "The values approach the exact differential values, up to a constant")
    claims = []
    for part, claim in enumerate(about):
        first, last = squares[:, part, 0], squares[:, part, -1]
        low, high = interval(np.sqrt((weights @ last) / (weights @ first)))
        numbers = {
            "holds if": f"after {spec.LONG:,} steps at most {spec.CLOSE:g} of the initial error is left (RMS over processes)",
            "left": float(np.sqrt(last.mean() / first.mean())),
            "95 % interval": [low, high],
            "processes": len(problems),
        }
        claims.append(Claim(claim, at_most(low, high, spec.CLOSE), numbers, len(problems)))
    return claims


def comparisons(swept: Mapping[str, np.ndarray], settings: Settings) -> list[Claim]:
    ours = swept[spec.DIFFERENTIAL]
    weights = resample(ours.shape[1], seed=settings.seed)

    def best(errors: np.ndarray) -> tuple[float, np.ndarray]:
        """The least mean over processes, of all parameters; and the same in each bootstrap sample."""
        flat = errors.transpose(1, 0, 2).reshape(errors.shape[1], -1)
        with np.errstate(invalid="ignore"):
            samples = np.nan_to_num(weights @ np.where(np.isfinite(flat), flat, 1e300), nan=np.inf)
        return float(flat.mean(axis=0).min()), samples.min(axis=1)

    mine, samples = best(ours)
    claims = []
    for claim, other, name in (
        ("Differential TD(λ) with λ > 0 is at least as good as with λ = 0, at the best α and η", ours[:1], "λ = 0"),
        (
            f"Differential TD(λ) is at least as good as true online TD(λ) with γ = {spec.DISCOUNT}, each at its best parameters",
            swept[spec.DISCOUNTED],
            f"γ = {spec.DISCOUNT}",
        ),
    ):
        one, own = best(ours[1:]) if name == "λ = 0" else (mine, samples)
        theirs, their_samples = best(other)
        low, high = interval(own / their_samples - 1.0)
        numbers = {
            "mean squared error over the first 1,000 steps (initial = 1)": one,
            f"the same with {name}": theirs,
            "95 % interval of the ratio, less 1": [low, high],
            "processes": ours.shape[1],
        }
        claims.append(Claim(claim, at_most(low, high, ROUNDING), numbers, ours.shape[1]))
    return claims
