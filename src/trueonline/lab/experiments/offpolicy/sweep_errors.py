"""The errors of the off-policy study, gathered from its sweeps, and the error over time at the best parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trueonline import catalog, study
from trueonline.lab.claims import Errors
from trueonline.lab.experiment import Settings
from trueonline.lab.experiments.offpolicy import spec


def over_runs(case: study.Case, settings: Settings) -> Errors:
    """The errors of a case that has been run: an array over run, η, α and λ for each method."""
    table = settings.gathered(case.tasks())
    arrays = iter(table["error"].to_numpy().reshape(-1, case.runs, len(spec.ALPHAS), len(spec.LAMS)))
    by_method = {name: np.stack([next(arrays) for _ in etas], axis=1) for name, etas in spec.VARIANTS.items()}
    return Errors(by_method, settings.seed)


def over_mdps(cases: Sequence[study.Case], settings: Settings) -> Errors:
    """The errors of several cases: an array over MDP, η, α and λ. Each MDP has the mean over its runs."""
    each = [over_runs(case, settings) for case in cases]
    return Errors({name: np.stack([one.mean(name) for one in each]) for name in spec.FAMILY}, settings.seed)


def best_setting(errors: Errors, method: str) -> tuple[float, float, float]:
    """The best η, α and λ."""
    h, i, j = errors.place(method)
    return spec.VARIANTS[method][h], float(spec.ALPHAS[i]), float(spec.LAMS[j])


def parameters(errors: Errors, method: str) -> str:
    """The best parameters in words."""
    eta, alpha, lam = best_setting(errors, method)
    return f"α = {alpha:g}, λ = {lam:g}" + (f", η = {eta:g}" if spec.has_eta(method) else "")


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
    for name in spec.FAMILY:
        method = catalog.METHODS[name]
        eta, alpha, lam = best_setting(errors, name)
        second = {"second_step_size": eta * alpha} if spec.has_eta(name) else {}
        lines[name] = np.empty((case.runs, len(spec.TIMES)))
        for run in range(case.runs):
            states, rewards, discounts, chances = case.trajectory(run)
            learner = method.resolve("learner")(
                problem.n_features, alpha, lam, problem.discount, problem.initial_weights, **method.options, **second
            )
            for point, (start, stop) in enumerate(pairwise((0, *spec.TIMES))):
                X = problem.features[states[start : stop + 1]]
                piece = slice(start, stop)
                learner.run(X, rewards[piece], discounts[piece], ratios=chances[piece, 0], resume=True)
                w = learner.weights
                lines[name][run, point] = problem.error(w) if np.isfinite(w).all() else np.inf
    return lines
