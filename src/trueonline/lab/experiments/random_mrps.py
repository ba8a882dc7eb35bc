"""The study of section 5.1, which Figure 4, Appendix C and Figure 9 show: three random MRPs with several kinds of features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import study
from trueonline.features import binary_code, random_unit, tabular
from trueonline.inputs.seeds import seed_of
from trueonline.lab.experiment import Settings, gathered, resample
from trueonline.problems import random_mrp

CLASSES = ((10, 3, 0.1, 100), (100, 10, 0.1, 1000), (100, 3, 0.0, 1000))  # k, b, σ and steps
RUNS = 50
REPRESENTATIONS: dict[str, Callable[[int, Any], np.ndarray]] = {
    "tabular": lambda k, seed: tabular(k),
    "binary": lambda k, seed: binary_code(k),
    "non-binary": lambda k, seed: random_unit(k, seed=seed),
    "binary, unit length": lambda k, seed: binary_code(k, unit_length=True),
}
PAPERS = ("tabular", "binary", "non-binary")
MRPS = tuple(f"({k}, {b}, {sigma:g})" for k, b, sigma, _ in CLASSES)
ALPHAS, LAMS = np.array(study.STEP_SIZES), np.array(study.TRACE_DECAYS)


def cases(number: int, settings: Settings, runs: int, representations: tuple[str, ...]) -> list[study.Case]:
    """The MRPs with this number, one of each class. Number 0 is *the* MRP of Figure 4."""
    all_cases = []
    for kind, (label, (k, b, sigma, steps)) in enumerate(zip(MRPS, CLASSES, strict=True)):
        mrp = random_mrp(k, b, sigma, seed=_seed("paper's MRPs", settings.seed, kind, number))
        for name in representations:
            seen = mrp.with_features(
                REPRESENTATIONS[name](k, _seed("features of the paper's MRPs", settings.seed, kind, number))
            )
            methods = dict.fromkeys(study.applicable(seen))
            labels = {"mrp": label, "representation": name}
            all_cases.append(
                study.Case(seen, methods, study.STEP_SIZES, study.TRACE_DECAYS, runs, steps, settings.seed, labels)
            )
    return all_cases


def _seed(purpose: str, *numbers: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed_of(purpose, *numbers))


@dataclass(frozen=True)
class Errors:
    """The errors of each method on one MRP and representation: an array over run, α and λ."""

    mrp: str
    representation: str
    by_method: dict[str, np.ndarray]

    @property
    def runs(self) -> int:
        return len(self.by_method["true_online"])

    def mean(self, method: str) -> np.ndarray:
        return self.by_method[method].mean(axis=0)

    def best(self, method: str, weights: np.ndarray | None = None) -> np.ndarray:
        """The error at the best α and λ, for the mean over runs or for each bootstrap sample of runs."""
        errors = np.minimum(self.by_method[method], 1e12).reshape(len(self.by_method[method]), -1)
        means = errors.mean(axis=0, keepdims=True) if weights is None else weights @ errors
        return means.min(axis=1)

    def by_lam(self, method: str, weights: np.ndarray | None = None) -> np.ndarray:
        """The error at the best α of each λ: sample by λ, for the mean over runs or for each bootstrap sample of runs."""
        errors = np.minimum(self.by_method[method], 1e12)
        means = errors.mean(axis=0, keepdims=True) if weights is None else np.tensordot(weights, errors, axes=1)
        return means.min(axis=1)

    def best_setting(self, method: str) -> tuple[float, float]:
        """The best α and λ."""
        means = np.minimum(self.by_method[method], 1e12).mean(axis=0)
        i, j = np.unravel_index(int(means.argmin()), means.shape)
        return float(ALPHAS[i]), float(LAMS[j])

    def best_td0(self, weights: np.ndarray | None = None) -> np.ndarray:
        """The same at λ = 0, where all methods are TD(0)."""
        errors = np.minimum(self.by_method["true_online"][:, :, 0], 1e12)
        means = errors.mean(axis=0, keepdims=True) if weights is None else weights @ errors
        return means.min(axis=1)


def errors(case: study.Case, settings: Settings) -> Errors:
    table = gathered(study.gather_tasks(case.tasks(), settings.tasks))
    arrays = table["error"].to_numpy().reshape(len(case.methods), case.runs, len(ALPHAS), len(LAMS))
    return Errors(case.labels["mrp"], case.labels["representation"], dict(zip(case.methods, arrays, strict=True)))


def run(settings: Settings) -> list[Errors]:
    """All errors of the study. Results that another figure has computed are read."""
    study_cases = cases(0, settings, settings.number(RUNS), tuple(REPRESENTATIONS))
    study.execute(
        study_cases, settings.tasks, engine=settings.engine, threads=settings.threads, progress=settings.progress
    )
    return [errors(case, settings) for case in study_cases]


@dataclass(frozen=True)
class Best:
    """The best of a method on one MRP and representation."""

    number: int  # of the MRP
    mrp: str  # its class
    representation: str
    method: str
    error: float
    over_td0: float  # the error over that of TD(0) at its best
    step_size: float
    trace_decay: float


def bests(make: Callable[[int], list[study.Case]], mrps: int, at_once: int, settings: Settings) -> Iterator[Best]:
    """Sweep the cases that `make` returns for MRP 1, 2, … and yield the best of each.

    Some MRPs are swept at once. Only their cases are in memory, and only the errors of one case.
    """
    for first in range(1, mrps + 1, at_once):
        numbers = range(first, min(first + at_once, mrps + 1))
        made = [(number, case) for number in numbers for case in make(number)]

        def progress(task: Any, done: int, of: int, numbers: range = numbers) -> None:
            each = of // len(numbers)  # all MRPs have the same number of tasks
            settings.progress(task, (numbers[0] - 1) * each + done, mrps * each)

        cases = [case for _, case in made]
        study.execute(cases, settings.tasks, engine=settings.engine, threads=settings.threads, progress=progress)
        for number, case in made:
            found = errors(case, settings)
            td0 = float(found.best_td0()[0])
            for method in found.by_method:
                error, setting = float(found.best(method)[0]), found.best_setting(method)
                yield Best(number, found.mrp, found.representation, method, error, error / td0, *setting)


def bootstrap(errors: Errors, settings: Settings) -> np.ndarray:
    return resample(errors.runs, seed=settings.seed)


def all_means(results: list[Errors]) -> pa.Table:
    """Mean and standard error for every setting."""
    tables = []
    alpha, lam = np.meshgrid(ALPHAS, LAMS, indexing="ij")
    for each in results:
        for method, values in each.by_method.items():
            with np.errstate(invalid="ignore", over="ignore"):
                error, deviation = values.mean(axis=0), values.std(axis=0, ddof=min(1, len(values) - 1))
            columns = {
                "mrp": [each.mrp] * alpha.size,
                "representation": [each.representation] * alpha.size,
                "method": [method] * alpha.size,
                "step_size": alpha.ravel(),
                "trace_decay": lam.ravel(),
                "error": error.ravel(),
                "standard_error": (deviation / np.sqrt(len(values))).ravel(),
                "diverged_runs": np.isinf(values).sum(axis=0).ravel(),
            }
            tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def at_best_alpha(results: list[Errors], settings: Settings) -> pa.Table:
    """For each λ the error at the best step-size, with its 95 % interval over runs.

    The interval has the central 95 % of 1,000 bootstrap samples of the runs, each of which chooses its own best step-size.
    """
    tables = []
    for each in results:
        weights = bootstrap(each, settings)
        for method in each.by_method:
            low, high = np.quantile(each.by_lam(method, weights), [0.025, 0.975], axis=0)
            columns = {
                "mrp": [f"MRP {each.mrp}"] * len(LAMS),
                "representation": [each.representation] * len(LAMS),
                "method": [method] * len(LAMS),
                "trace_decay": LAMS,
                "error": each.by_lam(method)[0],
                "step_size": ALPHAS[each.mean(method).argmin(axis=0)],
                "low": low,
                "high": high,
            }
            tables.append(pa.table(columns))
    return pa.concat_tables(tables)
