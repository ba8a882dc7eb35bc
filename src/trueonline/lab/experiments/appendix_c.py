"""Appendix C: the results of Figure 4 in detail, for every step-size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from trueonline.lab.experiment import Chart, Claim, Experiment, Outcome, Settings, at_most, interval
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.random_mrps import ALPHAS, LAMS, MRPS, PAPERS, Errors
from trueonline.lab.style import NAMES, figure, line

SHOWN = (0.0, 0.4, 0.8, 0.9, 0.95, 0.99, 1.0)


def run(settings: Settings) -> Outcome:
    results = random_mrps.run(settings)
    data = random_mrps.all_means(results)
    drawn = data.filter((pc.field("error") <= 2.0) & (pc.field("representation") != "binary, unit length"))
    chart = Chart(
        drawn,
        "step_size",
        "error",
        "method",
        "step-size α",
        "MSE (initial = 1)",
        rows="representation",
        columns="mrp",
        choose="trace_decay",
        log_x=True,
        y_domain=(0.0, 1.5),
    )
    pictures = {"figure": _picture(results, MRPS[0])}
    pictures |= {f"figure-{number}": _picture(results, mrp) for number, mrp in enumerate(MRPS[1:], 2)}
    return Outcome(data, pictures, [chart], _claims(results, settings))


def _picture(results: list[Errors], mrp: str) -> Any:
    """Top: the error at the best α against λ. Below, for each method: the error against α, a line for each λ."""
    import matplotlib as mpl

    shades = mpl.colormaps["viridis"]
    rows = ("best", "true_online", "accumulate", "replace")
    drawing, axes = figure(4, 3, width=8.6, height=9.6, sharey=True)
    for each in results:
        if each.mrp != mrp or each.representation not in PAPERS:
            continue
        column = PAPERS.index(each.representation)
        for row, name in enumerate(rows):
            panel = axes[row, column]
            panel.set(ylim=(0.0, 1.2))
            if name == "best":
                for method in each.by_method:
                    line(panel, LAMS, each.mean(method).min(axis=0), method)
                panel.set(xlim=(0.0, 1.0), xlabel="λ", title=each.representation)
            elif name in each.by_method:
                mean = each.mean(name)
                for position, lam in enumerate(SHOWN):
                    shade = shades(position / (len(SHOWN) - 1) * 0.92)
                    at = int(abs(LAMS - lam).argmin())
                    panel.plot(ALPHAS, mean[:, at], color=shade, linewidth=1.3, label=f"λ = {lam:g}")
                panel.set(xscale="log", xlim=(1e-3, 2.0), xlabel="α")
            else:
                panel.set_axis_off()
                panel.text(0.5, 0.5, "not defined for\nnon-binary features", ha="center", color="#777777")
            if column == 0:
                panel.set_ylabel(f"{'at the best α' if name == 'best' else NAMES[name]}\nMSE (initial = 1)")
    axes[0, 0].legend(loc="lower left")
    axes[1, 0].legend(loc="lower left", ncols=2, fontsize=7)
    drawing.suptitle(f"MRP {mrp}")
    return drawing


def _claims(results: list[Errors], settings: Settings) -> list[Claim]:
    """Section 5.4: accumulate TD(λ) is more sensitive to its parameters. The measure is how many settings do harm."""
    claims = []
    for mrp in MRPS:
        for other in ("true_online", "replace"):
            ours, theirs, samples = [], [], []
            for each in results:
                if each.mrp == mrp and each.representation in PAPERS and other in each.by_method:
                    weights = random_mrps.bootstrap(each, settings)
                    harm = {name: _harmful(each, name, weights) for name in ("accumulate", other)}
                    theirs.append(harm["accumulate"][0])
                    ours.append(harm[other][0])
                    samples.append(harm[other][1] - harm["accumulate"][1])
            low, high = interval(sum(samples) / len(samples))
            claims.append(
                Claim(
                    f"MRP {mrp}: accumulate TD(λ) is more sensitive to its parameters than {NAMES[other]}",
                    at_most(low, high),
                    {
                        "share of settings worse than not learning, accumulate": float(sum(theirs) / len(theirs)),
                        f"the same, {other}": float(sum(ours) / len(ours)),
                        "95 % interval of the difference": [low, high],
                    },
                    results[0].runs,
                )
            )
    return claims


def _harmful(each: Errors, method: str, weights: Any) -> tuple[float, Any]:
    """The share of (α, λ) whose mean error is above the initial error, and the same for bootstrap samples."""
    errors = np.minimum(each.by_method[method], 1e12).reshape(len(each.by_method[method]), -1)
    return float((errors.mean(axis=0) > 1.0).mean()), (weights @ errors > 1.0).mean(axis=1)


EXPERIMENT = Experiment(
    "appendix-c",
    "Appendix C — random MRPs in detail",
    """The study of Figure 4 for every step-size. The slider of the chart chooses λ. In the figures, the top row shows the
error at the best step-size. The rows below show each method's error against the step-size, with a line for each of some λ.

The paper says that accumulate TD(λ) is much more sensitive to its parameters than the others. Here sensitivity is the share
of the 600 settings of α and λ whose error is above the error without learning, averaged over the representations.""",
    run,
)
