"""The study of section 5.1, which Figure 4, Appendix C and Figure 9 show: three random MRPs with several kinds of features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import study
from trueonline.features import binary_code, random_unit, tabular
from trueonline.inputs.seeds import seed_of
from trueonline.lab.claims import Errors
from trueonline.lab.experiment import Settings, stacked, table
from trueonline.problems import random_mrp
from trueonline.words import count

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
        mrp = random_mrp(k, b, sigma, seed=sequence("paper's MRPs", settings.seed, kind, number))
        features_seed = sequence("features of the paper's MRPs", settings.seed, kind, number)
        all_cases += [case(mrp, label, name, features_seed, runs, steps, settings.seed) for name in representations]
    return all_cases


def case(mrp: Any, label: str, representation: str, features_seed: Any, runs: int, steps: int, seed: int) -> study.Case:
    """The sweep of all methods on an MRP with some features, over the paper's grids."""
    seen = mrp.with_features(REPRESENTATIONS[representation](mrp.n_states, features_seed))
    methods, labels = dict.fromkeys(study.applicable(seen)), {"mrp": label, "representation": representation}
    return study.Case(seen, methods, study.STEP_SIZES, study.TRACE_DECAYS, runs, steps, seed, labels)


def sequence(purpose: str, *numbers: int) -> np.random.SeedSequence:
    """The seed for a purpose."""
    return np.random.SeedSequence(seed_of(purpose, *numbers))


def errors(case: study.Case, settings: Settings) -> Errors:
    """The errors of a case that has been run: an array over run, α and λ for each method."""
    arrays = (
        settings.gathered(case.tasks())["error"].to_numpy().reshape(len(case.methods), case.runs, len(ALPHAS), len(LAMS))
    )
    return Errors(dict(zip(case.methods, arrays, strict=True)), settings.seed, case.labels)


def results(settings: Settings) -> list[Errors]:
    """All errors of the study. Figures share them: `settings.shared(results)`."""
    study_cases = cases(0, settings, settings.number(RUNS), tuple(REPRESENTATIONS))
    settings.sweep(study_cases)
    return [errors(case, settings) for case in study_cases]


def of_paper(results: list[Errors], mrp: str | None = None) -> list[Errors]:
    """The errors with the paper's three representations, on all MRPs or on one."""
    return [each for each in results if each.labels["representation"] in PAPERS and mrp in (None, each.labels["mrp"])]


def best_setting(errors: Errors, method: str) -> tuple[float, float]:
    """The best α and λ of a method."""
    i, j = errors.place(method)
    return float(ALPHAS[i]), float(LAMS[j])


def td0(errors: Errors) -> Errors:
    """The errors at λ = 0, where all methods are TD(0)."""
    return errors.at(slice(None), slice(0, 1))


def note(settings: Settings) -> str:
    """How the study was run."""
    return f"Here there are {count(settings.number(RUNS), 'run')} of each setting."


# --- Many MRPs of each class ----------------------------------------------------------------------


Place = tuple[str, str, str]  # class, representation and method


def bests(make: Callable[[int], list[study.Case]], mrps: int, at_once: int, settings: Settings) -> pa.Table:
    """Sweep the cases that `make` returns for MRP 1, 2, …: a row for the best of each method on each MRP and representation.

    Some MRPs are swept at once. Only their cases are in memory, and only the errors of one case. `over_td0` is the error over that
    of TD(0) at its best.
    """
    rows = []
    for first in range(1, mrps + 1, at_once):
        numbers = range(first, min(first + at_once, mrps + 1))
        made = [(number, case) for number in numbers for case in make(number)]

        def progress(task: Any, done: int, of: int, numbers: range = numbers) -> None:
            each = of // len(numbers)  # all MRPs have the same number of tasks
            settings.progress(task, (numbers[0] - 1) * each + done, mrps * each)

        settings.sweep([case for _, case in made], progress=progress)
        for number, case in made:
            found = errors(case, settings)
            least = float(td0(found).mean("true_online").min())
            for method in found.by_method:
                error = float(found.mean(method).min())
                rows.append((number, *found.labels.values(), method, error, error / least, *best_setting(found, method)))
    names = ("number", "mrp", "representation", "method", "error", "over_td0", "step_size", "trace_decay")
    return table(names, rows)


def by_place(found: pa.Table) -> dict[Place, dict[str, np.ndarray]]:
    """The numbers of each place, by their columns, in the order of the MRPs."""
    rows: dict[Place, list[dict[str, Any]]] = {}
    for row in found.to_pylist():
        rows.setdefault((row["mrp"], row["representation"], row["method"]), []).append(row)
    numbers = found.column_names[4:]
    return {place: {name: np.array([row[name] for row in some]) for name in numbers} for place, some in rows.items()}


# --- Tables ---------------------------------------------------------------------------------------


def all_means(results: list[Errors]) -> pa.Table:
    """Mean and standard error for every setting."""
    tables = []
    alpha, lam = (grid.ravel() for grid in np.meshgrid(ALPHAS, LAMS, indexing="ij"))
    for each in results:
        columns = {}
        for method, errors in each.by_method.items():
            values = errors.reshape(len(errors), -1)
            with np.errstate(invalid="ignore", over="ignore"):
                error, deviation = values.mean(axis=0), values.std(axis=0, ddof=min(1, len(values) - 1))
            columns[method] = {
                "step_size": alpha,
                "trace_decay": lam,
                "error": error,
                "standard_error": deviation / np.sqrt(len(values)),
                "diverged_runs": np.isinf(values).sum(axis=0),
            }
        tables.append(stacked(columns, **each.labels))
    return pa.concat_tables(tables)


def at_best_alpha(results: list[Errors]) -> pa.Table:
    """For each λ the error at the best step-size, with its 95 % interval over runs.

    The interval has the central 95 % of 1,000 bootstrap samples of the runs, each of which chooses its own best step-size.
    """
    tables = []
    for each in results:
        columns = {}
        for method in each.by_method:
            numbers = each.best_by_lam(method).columns("error")
            alphas = ALPHAS[each.mean(method).argmin(axis=0)]
            columns[method] = {"trace_decay": LAMS, "error": numbers.pop("error"), "step_size": alphas, **numbers}
        labels = {"mrp": f"MRP {each.labels['mrp']}", "representation": each.labels["representation"]}
        tables.append(stacked(columns, **labels))
    return pa.concat_tables(tables)
