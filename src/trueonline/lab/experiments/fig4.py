"""Figure 4: the error during early learning on three random MRPs, at the best step-size for each λ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.lab.experiment import (
    FAILS,
    HOLDS,
    ROUNDING,
    Chart,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_most,
    interval,
    overall,
)
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.random_mrps import LAMS, MRPS, PAPERS, Errors
from trueonline.lab.style import band, figure, legend_above, line


def run(settings: Settings) -> Outcome:
    results = random_mrps.run(settings)
    data = random_mrps.at_best_alpha(results, settings)
    chart = Chart(
        data,
        "trace_decay",
        "error",
        "method",
        "λ",
        "MSE (initial = 1)",
        rows="representation",
        columns="mrp",
        low="low",
        high="high",
        y_domain=(0.0, 1.3),
    )
    pictures = {"figure": picture(data, PAPERS), "unit-length": picture(data, ("binary, unit length",))}
    return Outcome(data, pictures, [chart], claims(results, settings))


def picture(data: pa.Table, representations: tuple[str, ...]) -> Any:
    """MSE against λ at the best step-size, with 95 % bands: representations down, MRPs across."""
    drawing, axes = figure(
        len(representations), 3, width=8.2, height=0.7 + 2.1 * len(representations), sharex=True, sharey="row"
    )
    columns = [f"MRP {mrp}" for mrp in MRPS]
    curves = data.group_by(["representation", "mrp", "method"], use_threads=False).aggregate(
        [(name, "list") for name in ("trace_decay", "error", "low", "high")]
    )
    for curve in curves.to_pylist():
        if curve["representation"] in representations:
            panel = axes[representations.index(curve["representation"]), columns.index(curve["mrp"])]
            band(panel, curve["trace_decay_list"], curve["low_list"], curve["high_list"], curve["method"])
            line(panel, curve["trace_decay_list"], curve["error_list"], curve["method"])
    for panel in axes.flat:
        panel.set(xlim=(0.0, 1.0), ylim=(0.0, 1.3))
    for panel, title in zip(axes[0], columns, strict=True):
        panel.set_title(title)
    for panel, representation in zip(axes[:, 0], representations, strict=True):
        panel.set_ylabel(f"{representation}\nMSE (initial = 1)")
    for panel in axes[-1]:
        panel.set_xlabel("λ (bands: 95 %)")
    legend_above(drawing, axes.flat)
    return drawing


def claims(results: list[Errors], settings: Settings) -> list[Claim]:
    """True online TD(λ) at its best is at least as good as the others at theirs, in every case."""
    details, verdicts = [], []
    for each in results:
        weights = random_mrps.bootstrap(each, settings)
        ours, ours_samples = each.best("true_online")[0], each.best("true_online", weights)
        for other in each.by_method:
            if other == "true_online":
                continue
            theirs, their_samples = each.best(other)[0], each.best(other, weights)
            low, high = interval(ours_samples / their_samples - 1.0)
            verdict = at_most(low, high, ROUNDING)
            if each.representation in PAPERS:
                verdicts.append(verdict)
            details.append(
                Claim(
                    f"MRP {each.mrp}, {each.representation}: true online is at least as good as {other} at its best",
                    verdict,
                    {
                        "true online": float(ours),
                        other: float(theirs),
                        "relative difference": float(ours / theirs - 1.0),
                        "95 % interval, runs paired": [low, high],
                        "α and λ of true online": list(each.best_setting("true_online")),
                        f"α and λ of {other}": list(each.best_setting(other)),
                    },
                    each.runs,
                )
            )
    counts = {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))}
    summary = Claim(
        "The optimal performance of true online TD(λ) is at least as good as that of accumulate and replace TD(λ), on all "
        "domains and representations",
        overall(verdicts),
        {"comparisons, with the paper's three representations": len(verdicts), **counts},
        results[0].runs,
    )
    return [summary, small_lambda(results), *details]


def small_lambda(results: list[Errors]) -> Claim:
    """Section 4.2: performance differences are significant only when λ is large."""
    small, large = {}, {}
    for each in results:
        if each.representation in PAPERS:
            ours, theirs = each.mean("true_online").min(axis=0), each.mean("accumulate").min(axis=0)
            difference = np.abs(ours / theirs - 1.0)
            case = f"{each.mrp} {each.representation}"
            small[case], large[case] = float(difference[LAMS <= 0.3].max()), float(difference[LAMS >= 0.9].max())
    exceptions = [case for case in small if small[case] >= large[case]]
    return Claim(
        "Performance differences from accumulate TD(λ) are significant only when λ is large",
        FAILS if exceptions else HOLDS,
        {
            "holds if": "in every case the largest relative difference for λ ≤ 0.3 is smaller than that for λ ≥ 0.9",
            "cases, with the paper's three representations": len(small),
            "exceptions": exceptions or "none",
            "largest difference for λ ≤ 0.3, case by case": list(small.values()),
            "largest difference for λ ≥ 0.9, case by case": list(large.values()),
        },
        results[0].runs,
    )


EXPERIMENT = Experiment(
    "fig4",
    "Figure 4 — random MRPs",
    """The chart shows the mean squared error against the least-mean-squares solution during early learning: the first 100
steps for k = 10, and the first 1,000 for k = 100. The error is relative to that of zero weights and averaged over 50 runs.
Each λ is at the best of 30 step-sizes (section 5.1). An MRP (k, b, σ) has k states, b possible next states for each, and
rewards with standard deviation σ.

The binary features are the binary code of the state's number, as in the text. The published program of the experiments
scales them to unit length, which the text does not mention. The chart shows both. Replace TD(λ) is defined only for
features 0 and 1, so it is left out for unit length.

Bands are 95 % intervals over runs: the central 95 % of 1,000 bootstrap samples of the runs, each of which chooses its own
best step-size for each λ. All methods see the same runs, so two bands may overlap although the difference run by run, which
decides a verdict, is clear. If an error exceeds 1, learning does harm at every step-size of the grid, and
the smallest step-size is the best.

Each verdict compares the methods at their best α and λ. Its interval comes from 1,000 bootstrap samples of the runs. Each
sample has its own best α and λ.""",
    run,
)
