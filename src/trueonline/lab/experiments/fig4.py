"""Figure 4 — random MRPs

The figure shows the mean squared error against the least-mean-squares solution during early learning: the first 100
steps for k = 10, and the first 1,000 for k = 100. The error is relative to that of zero weights and averaged over runs, of
which the paper has 50. Each λ is at the best of 30 step-sizes (section 5.1). An MRP (k, b, σ) has k states, b possible next
states for each, and rewards with standard deviation σ.

The binary features are the binary code of the state's number, as in the text. The published program of the experiments
scales them to unit length, which the text does not mention. There is a figure for each. Replace TD(λ) is defined only for
features 0 and 1, so it is left out for unit length.

Bands are 95 % intervals over runs: the central 95 % of 1,000 bootstrap samples of the runs, each of which chooses its own
best step-size for each λ. All methods see the same runs, so two bands may overlap although the difference run by run, which
decides a verdict, is clear. If an error exceeds 1, learning does harm at every step-size of the grid, and
the smallest step-size is the best.

Each verdict compares the methods at their best α and λ. Its interval comes from 1,000 bootstrap samples of the runs. Each
sample has its own best α and λ.

Question: Is true online TD(λ) the better choice when nothing about the task is known in advance?

Paper: On three random tasks, each described in three ways, true online TD(λ) at its best settings is never worse than the two
older methods at theirs. The three differ only if the memory is long (λ near 1).

Look: Each task is a random *Markov reward process*, MRP (k, b, σ): k states, fixed probabilities of moving from each to b
others, and rewards with noise of standard deviation σ. Lower is better: the MSE is the mean squared error, and 1 is that of a
learner that does not learn. Follow each line to its lowest point, and compare these points. At the right end, where the
memory is long, the lines differ most.

Exceptions: Every class has one random task here, as in the paper, and tasks of the same class differ more than methods do. So
which comparisons fail depends on the random task. `trueonline reproduce many-mrps` repeats the study on 100 tasks of each
class. There, true online TD(λ) is better on average in every comparison, but not on every single task.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import ROUNDING, Claim, Errors, Estimate, counts, overall
from trueonline.lab.experiment import Experiment, Outcome, Settings
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.random_mrps import LAMS, MRPS, PAPERS
from trueonline.lab.style import band, figure, legend_above, line

SMALL, LARGE = LAMS <= 0.3, LAMS >= 0.9


def run(settings: Settings) -> Outcome:
    results = settings.shared(random_mrps.results)
    data = random_mrps.at_best_alpha(results)
    pictures = {"figure": lambda: picture(data, PAPERS), "unit-length": lambda: picture(data, ("binary, unit length",))}
    return Outcome(data, pictures, claims(results), note=random_mrps.note(settings))


def picture(data: pa.Table, representations: tuple[str, ...]) -> Any:
    """MSE against λ at the best step-size, with 95 % bands: representations down, MRPs across."""
    rows = len(representations)
    drawing, axes = figure(rows, 3, width=8.2, height=0.7 + 2.1 * rows, sharex=True, sharey="row")
    columns = [f"MRP {mrp}" for mrp in MRPS]
    curves = data.group_by(["representation", "mrp", "method"], use_threads=False).aggregate(
        [(name, "list") for name in ("trace_decay", "error", "low", "high")]
    )
    for curve in curves.to_pylist():
        if curve["representation"] in representations:
            panel = axes[representations.index(curve["representation"]), columns.index(curve["mrp"])]
            band(panel, curve["trace_decay_list"], (curve["low_list"], curve["high_list"]), curve["method"])
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


def claims(results: list[Errors]) -> list[Claim]:
    """True online TD(λ) at its best is at least as good as the others at theirs, in every case."""
    details = {
        (each.labels["representation"], each.labels["mrp"], other): _no_worse(each, other)
        for each in results
        for other in each.by_method
        if other != "true_online"
    }
    verdicts = [claim.verdict for (representation, *_), claim in details.items() if representation in PAPERS]
    summary = Claim(
        "The optimal performance of true online TD(λ) is at least as good as that of accumulate and replace TD(λ), on all "
        "domains and representations",
        overall(verdicts),
        {"comparisons, with the paper's three representations": len(verdicts), **counts(verdicts)},
        results[0].samples,
    )
    return [summary, small_lambda(random_mrps.of_paper(results)), *details.values()]


def _no_worse(errors: Errors, other: str) -> Claim:
    ratio = errors.ratio("true_online", other)
    return Claim(
        f"MRP {', '.join(errors.labels.values())}: true online is at least as good as {other} at its best",
        ratio.judge(at_most=ROUNDING),
        {
            "true online": errors.best("true_online").value,
            other: errors.best(other).value,
            "relative difference": ratio.value,
            "95 % interval, runs paired": ratio.interval,
            "α and λ of true online": list(random_mrps.best_setting(errors, "true_online")),
            f"α and λ of {other}": list(random_mrps.best_setting(errors, other)),
        },
        errors.samples,
    )


def small_lambda(results: list[Errors]) -> Claim:
    """Section 4.2: performance differences are significant only when λ is large."""
    small, large, gaps = [], [], {}
    for each in results:
        ratios = each.best_by_lam("true_online") / each.best_by_lam("accumulate") - 1.0
        differences = Estimate(np.abs(ratios.rows))
        small.append(differences[SMALL].largest())
        large.append(differences[LARGE].largest())
        gaps[" ".join(each.labels.values())] = small[-1] - large[-1]
    verdicts = {case: gap.judge(at_most=0.0) for case, gap in gaps.items()}
    return Claim(
        "Performance differences from accumulate TD(λ) are significant only when λ is large",
        overall(list(verdicts.values())),
        {
            "holds if": "in every case the largest relative difference for λ ≤ 0.3 is smaller than that for λ ≥ 0.9, by the "
            "95 % interval of how far it is below",
            "cases, with the paper's three representations": len(verdicts),
            **counts(list(verdicts.values())),
            "exceptions": [case for case, gap in gaps.items() if gap.value >= 0.0] or "none",
            "largest difference for λ ≤ 0.3, case by case": [each.value for each in small],
            "largest difference for λ ≥ 0.9, case by case": [each.value for each in large],
            "95 % interval of the first less the second": [gap.interval for gap in gaps.values()],
        },
        results[0].samples,
    )


EXPERIMENT = Experiment("fig4", __doc__, run, BestRows(("mrp", "representation", "method"), "error"), main=2)
