"""The errors of the off-policy study, gathered from its sweeps, and the error over time at the best parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trueonline import catalog, study
from trueonline.lab.experiment import Settings, gathered
from trueonline.lab.experiments.offpolicy import spec

DIVERGED = 1e12  # a larger error counts as this, so that a mean over runs is finite


@dataclass(frozen=True)
class Errors:
    """The errors of each method on one problem, over (unit, η, α, λ). The bootstrap resamples units: runs, or MDPs."""

    by_method: dict[str, np.ndarray]

    @property
    def units(self) -> int:
        return len(next(iter(self.by_method.values())))

    def mean(self, method: str, weights: np.ndarray | None = None) -> np.ndarray:
        """The mean over units for each setting: (sample, settings)."""
        errors = np.minimum(self.by_method[method], DIVERGED).reshape(self.units, -1)
        return errors.mean(axis=0, keepdims=True) if weights is None else weights @ errors

    def best(self, method: str, weights: np.ndarray | None = None) -> np.ndarray:
        """The mean error at the best parameters. Each bootstrap sample has its own best parameters."""
        return self.mean(method, weights).min(axis=1)

    def best_setting(self, method: str) -> tuple[float, float, float]:
        """The best η, α and λ."""
        h, i, j = np.unravel_index(int(self.mean(method).argmin()), self.by_method[method].shape[1:])
        return spec.VARIANTS[method][h], float(spec.ALPHAS[i]), float(spec.LAMS[j])

    def at_best_eta(self, method: str) -> np.ndarray:
        """(unit, α, λ), with the best η for each α and λ."""
        errors = np.minimum(self.by_method[method], DIVERGED)
        best = errors.mean(axis=0).argmin(axis=0)
        return np.take_along_axis(errors, best[None, None], axis=1)[:, 0]

    def at_lambda_0(self) -> Errors:
        return Errors({name: errors[..., :1] for name, errors in self.by_method.items()})

    def parameters(self, method: str) -> str:
        """The best parameters in words."""
        eta, alpha, lam = self.best_setting(method)
        return f"α = {alpha:g}, λ = {lam:g}" + (f", η = {eta:g}" if spec.has_eta(method) else "")


def over_runs(case: study.Case, settings: Settings) -> Errors:
    """The errors of a case, which has been run. Units are runs."""
    table = gathered(study.gather(case, settings.tasks))
    arrays = iter(table["error"].to_numpy().reshape(-1, case.runs, len(spec.ALPHAS), len(spec.LAMS)))
    return Errors({name: np.stack([next(arrays) for _ in etas], axis=1) for name, etas in spec.VARIANTS.items()})


def over_mdps(cases: Sequence[study.Case], settings: Settings) -> Errors:
    """The errors of several cases. Units are MDPs, each with the mean over its runs."""
    each = [over_runs(case, settings).by_method for case in cases]
    means = [{name: np.minimum(errors, DIVERGED).mean(axis=0) for name, errors in one.items()} for one in each]
    return Errors({name: np.stack([one[name] for one in means]) for name in spec.FAMILY})


def over_time(case: study.Case, errors: Errors) -> dict[str, np.ndarray]:
    """For each method an array over run and time, at the parameters whose mean error over all steps is smallest."""
    problem, lines = case.problem, {}
    for name in spec.FAMILY:
        method = catalog.METHODS[name]
        eta, alpha, lam = errors.best_setting(name)
        second = {"second_step_size": eta * alpha} if spec.has_eta(name) else {}
        options = {**method.options, **second}
        lines[name] = np.empty((case.runs, len(spec.TIMES)))
        for run in range(case.runs):
            states, rewards, discounts, ratios = case.trajectory(run)
            learner = method.resolve("learner")(
                problem.n_features, alpha, lam, problem.discount, problem.initial_weights, **options
            )
            for point, (start, stop) in enumerate(pairwise((0, *spec.TIMES))):
                X = problem.features[states[start : stop + 1]]
                piece = slice(start, stop)
                learner.run(X, rewards[piece], discounts[piece], ratios=ratios[piece], resume=True)
                w = learner.weights
                lines[name][run, point] = problem.error(w) if np.isfinite(w).all() else np.inf
    return lines
