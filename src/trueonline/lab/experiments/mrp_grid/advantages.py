"""The numbers of the grid: the best errors of each class, and the advantage of true online TD(λ) in them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from trueonline.lab import experiment
from trueonline.lab.claims import ROUNDING, Estimate
from trueonline.lab.experiments.mrp_grid import spec
from trueonline.lab.experiments.random_mrps import Place

Numbers = Mapping[Place, Mapping[str, np.ndarray]]


def log_ratios(each: Numbers, representation: str, other: str) -> np.ndarray:
    """ln of the best error of true online over that of the other method: MRP by class. Below 0, true online is better."""
    logs = {
        method: np.log([each[spec.label(*kind), representation, method]["error"] for kind in spec.classes()])
        for method in ("true_online", other)
    }
    return (logs["true_online"] - logs[other]).T


def table(each: Numbers, weights: np.ndarray, runs: int) -> pa.Table:
    """A row for each class, representation and other method. Means of errors are geometric, parameters are medians."""
    rows = []
    for representation, other in spec.COMPARISONS:
        logs = log_ratios(each, representation, other)
        advantage = Estimate(1.0 - np.exp(Estimate.mean(logs, 0, weights).rows))
        lows, highs = advantage.bounds
        for place, (k, b, sigma) in enumerate(spec.classes()):
            both = [each[spec.label(k, b, sigma), representation, method] for method in ("true_online", other)]
            errors = [float(np.exp(np.log(bests["error"]).mean())) for bests in both]
            over_td0 = [float(np.exp(np.log(bests["over_td0"]).mean())) for bests in both]
            settings = [float(np.median(bests[name])) for bests in both for name in ("step_size", "trace_decay")]
            here = logs[:, place]
            rows.append(
                (
                    *(k, b, sigma, spec.STEPS_PER_STATE * k, representation, other, len(here), runs),
                    *(float(each_class[place]) for each_class in (advantage.value, lows, highs)),
                    *(float((here < -ROUNDING).mean()), float((here <= ROUNDING).mean())),
                    *(*errors, *over_td0, *settings),
                )
            )
    names = (
        *("k", "b", "sigma", "steps", "representation", "other", "mrps", "runs", "advantage", "low", "high"),
        *("share_better", "share_no_worse", "error", "other_error", "over_td0", "other_over_td0"),
        *("median_step_size", "median_trace_decay", "other_median_step_size", "other_median_trace_decay"),
    )
    return experiment.table(names, rows)
