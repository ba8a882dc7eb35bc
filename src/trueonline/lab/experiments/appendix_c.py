"""Appendix C — random MRPs in detail

The study of Figure 4 for every step-size. The top row of a figure shows the error at the best step-size. The rows
below show each method's error against the step-size, with a line for each of some λ. The table has every λ.

The paper says that accumulate TD(λ) is much more sensitive to its parameters than the others. Here sensitivity is the share
of the 600 settings of α and λ whose error is above the error without learning, averaged over the representations.

Question: How much does it matter which settings one chooses?

Paper: The older TD(λ) is much more sensitive to its settings than the other two methods.

Look: The random tasks are those of Figure 4. The top row repeats it. Each row below shows one method, with a line for each λ,
and the step-size from small to large. Look for how wide the valleys are. A line that leaves the picture at the top is a
setting with which learning does harm.

Exceptions: On the task (100, 3, 0) most settings do harm with any method, so the methods hardly differ.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import Claim, Errors, Estimate
from trueonline.lab.experiment import Experiment, Outcome, Settings
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.random_mrps import ALPHAS, LAMS, MRPS
from trueonline.lab.style import NAMES, figure, line, lines_over_lam

SHOWN_TRACE_DECAYS = (0.0, 0.4, 0.8, 0.9, 0.95, 0.99, 1.0)
ROWS = ("best", "true_online", "accumulate", "replace")  # of a figure


def run(settings: Settings) -> Outcome:
    results = settings.shared(random_mrps.results)
    pictures = {
        f"figure-{number}" if number > 1 else "figure": partial(_picture, random_mrps.of_paper(results, mrp), mrp)
        for number, mrp in enumerate(MRPS, 1)
    }
    return Outcome(random_mrps.all_means(results), pictures, _claims(results), note=random_mrps.note(settings))


def _picture(results: list[Errors], mrp: str) -> Any:
    """Top: the error at the best α against λ. Below, for each method: the error against α, a line for each λ."""
    drawing, axes = figure(4, 3, width=8.6, height=9.6, sharey=True)
    places = [int(abs(LAMS - lam).argmin()) for lam in SHOWN_TRACE_DECAYS]
    for each, column in zip(results, axes.T, strict=True):
        for name, panel in zip(ROWS, column, strict=True):
            panel.set(ylim=(0.0, 1.2))
            if name == "best":
                for method in each.by_method:
                    line(panel, LAMS, each.mean(method).min(axis=0), method)
                panel.set(xlim=(0.0, 1.0), xlabel="λ", title=each.labels["representation"])
            elif name in each.by_method:
                lines_over_lam(panel, ALPHAS, each.mean(name)[:, places].T, SHOWN_TRACE_DECAYS)
                panel.set(xscale="log", xlim=(1e-3, 2.0), xlabel="α")
            else:
                panel.set_axis_off()
                panel.text(0.5, 0.5, "not defined for\nnon-binary features", ha="center", color="#777777")
    for name, panel in zip(ROWS, axes[:, 0], strict=True):
        panel.set_ylabel(f"{'at the best α' if name == 'best' else NAMES[name]}\nMSE (initial = 1)")
    axes[0, 0].legend(loc="lower left")
    axes[1, 0].legend(loc="lower left", ncols=2, fontsize=7)
    drawing.suptitle(f"MRP {mrp}")
    return drawing


def _claims(results: list[Errors]) -> list[Claim]:
    """Section 5.4: accumulate TD(λ) is more sensitive to its parameters. The measure is how many settings do harm."""
    claims = []
    for mrp in MRPS:
        for other in ("true_online", "replace"):
            group = [each for each in random_mrps.of_paper(results, mrp) if other in each.by_method]
            theirs, ours = (_harmful(group, method) for method in ("accumulate", other))
            claims.append(
                Claim(
                    f"MRP {mrp}: accumulate TD(λ) is more sensitive to its parameters than {NAMES[other]}",
                    (ours - theirs).judge(at_most=0.0),
                    {
                        "share of settings worse than not learning, accumulate": theirs.value,
                        f"the same, {other}": ours.value,
                        "95 % interval of the difference": (ours - theirs).interval,
                    },
                    results[0].samples,
                )
            )
    return claims


def _harmful(results: list[Errors], method: str) -> Estimate:
    """The share of all α and λ whose mean error is above the initial error: the mean over some cases."""
    shares = [(each.estimate(method).rows > 1.0).mean(axis=(1, 2)) for each in results]
    return Estimate(np.mean(shares, axis=0))


EXPERIMENT = Experiment("appendix-c", __doc__, run, BestRows(("mrp", "representation", "method"), "error"))
