"""The cost of the rest of the family beside true online TD(λ), and against the number of features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import streams
from benchmarks.report import Ratio, Section, Settings, Table, at_most
from benchmarks.timing import race
from trueonline import TrueOnlineTD, catalog

SIZES = (2_000, 200_000, 20_000_000)
DISTINCT = 2_000
# A step-size at which all of them stay finite: the emphasis is some (1 − λ)/(1 − γ) = 10 here.
PARAMETERS = {"step_size": 0.001, "trace_decay": 0.9, "discount": 0.99}
BASELINE = "true online TD(λ)"
SECOND = {"second_step_size": 0.001}
# All learners of the catalogue but those of the paper, which have benchmarks of their own, and WIS-GTD (see below).
METHODS: dict[str, Callable[..., Any]] = {
    row.title: partial(row.resolve("learner"), **(SECOND if "second_step_size" in row.settings else {}))
    for row in catalog.classes("learners").values()
    if row.name not in ("accumulate", "replace", "true_online") and row.memory != "two and usage"
}
HELPED: dict[str, Callable[..., Any]] = {
    "true online TD(λ), bound": partial(TrueOnlineTD, bound=1.0),
    "true online TD(λ), bound and meta-gradient": partial(TrueOnlineTD, bound=1.0, meta_step_size=0.1),
}


def measure(settings: Settings) -> Section:
    steps = 10_000 if settings.quick else 50_000
    section = Section(
        "The rest of the family",
        f"`run` with {streams.ACTIVE} active features, {steps:,} steps, λ = 0.9, γ = 0.99; {DISTINCT:,} distinct features spread "
        "over all n. On-policy, ρ = 1, so that all traces are as long as that of true online TD(λ) (that of Monte Carlo, which has "
        f"no λ, is longer). φ̄ of provisional Q(λ) has {streams.ACTIVE} active features of its own. “Against” is the ratio to true "
        "online TD(λ) with as many features, in the same race; the last column is that of the largest n to the smallest.",
    )
    given = {n: streams.few(n, steps, DISTINCT) for n in SIZES}
    plain = {n: _run(TrueOnlineTD, n, *given[n]) for n in SIZES}
    rows: list[list[Any]] = []
    flat: dict[str, Ratio] = {}
    for name, method in (METHODS | HELPED).items():
        # A race for each method, as the memories of all of them for the largest n would take many gigabytes.
        runs = {f"{BASELINE} {n}": plain[n] for n in SIZES} | {f"{name} {n}": _run(method, n, *given[n]) for n in SIZES}
        times = race(runs, rounds=settings.rounds, tries=3)
        for what in (name,) if rows else (BASELINE, name):
            cells: list[Any] = [what]
            for n in SIZES:
                against = times.ratio(f"{what} {n}", f"{BASELINE} {n}") if what != BASELINE else "1"
                cells += [times.per_step(f"{what} {n}", steps), against]
            flat[what] = times.ratio(f"{what} {SIZES[-1]}", f"{what} {SIZES[0]}")
            rows.append([*cells, flat[what]])
    columns = ["method", *(column for n in SIZES for column in (f"n = {n:,}", "against")), "largest n to smallest"]
    section.tables.append(Table(columns, rows))
    worst = max(flat, key=lambda what: flat[what].median)
    name = f"flat in the number of features, n = {SIZES[-1]:,} against n = {SIZES[0]:,}: the worst, {worst}"
    section.targets.append(at_most(name, 2.0, flat[worst]))
    section.notes.append(
        "What grows with n is what the caches cost, as in the section `flat`, where the loop in C pays for it too. A method with "
        "several memories (GTD, provisional: two; true online GTD, WIS-TD: three; WIS-TO-GTD: four) has as many entries "
        "for a feature, each in a place of its own. WIS-GTD, which passes over all traced features, is not in this table."
    )
    return section


def _run(method: Callable[..., Any], n: int, X: np.ndarray, rewards: np.ndarray) -> Callable[[], object]:
    """The function to time: it learns from the stream once more. Predictions must be finite: infinities take another time."""
    learner = method(n, **PARAMETERS)
    more = {"expected": np.ascontiguousarray(X[::-1])} if "x_expected" in learner.takes else {}
    for _ in range(3):
        if not np.isfinite(learner.run(X, rewards, **more)).all():
            raise ValueError(
                f"{type(learner).__name__} diverges with step_size={PARAMETERS['step_size']}: take a smaller one"
            )
    return partial(learner.run, X, rewards, **more)
