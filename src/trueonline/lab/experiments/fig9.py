"""Figure 9: the summary. The error at the best α and λ, relative to the error of TD(0) at its best α."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.lab.experiment import (
    FAILS,
    HOLDS,
    NOISE,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_least,
    interval,
    table,
)
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.random_mrps import MRPS, Errors
from trueonline.lab.style import COLOURS, MARKERS, NAMES, figure, legend_above


def run(settings: Settings) -> Outcome:
    results = random_mrps.run(settings)
    rows = []
    for each in results:
        weights = random_mrps.bootstrap(each, settings)
        for method in each.by_method:
            ratio = each.best(method) / each.best_td0()
            low, high = interval(each.best(method, weights) / each.best_td0(weights))
            domain = f"{each.mrp} {each.representation}"
            rows.append((domain, each.mrp, each.representation, method, float(ratio[0]), low, high))
    names = ("domain", "mrp", "representation", "method", "error", "low", "high")
    data = table(names, rows)
    return Outcome(data, {"figure": _picture(rows)}, [], _claims(results, settings))


def _picture(rows: list[tuple]) -> Any:
    domains = list(dict.fromkeys(row[0] for row in rows))
    drawing, ((axes,),) = figure(1, 1, width=7.4, height=0.9 + 0.36 * len(domains))
    shift = {"accumulate": -0.22, "replace": 0.0, "true_online": 0.22}
    for domain, _, _, method, error, low, high in rows:
        y = domains.index(domain) + shift[method]
        axes.plot([low, high], [y, y], color=COLOURS[method], linewidth=1.2)
        axes.plot(error, y, MARKERS[method], color=COLOURS[method], ms=5, label=NAMES[method])
    axes.axvline(1.0, color="#999999", linewidth=0.9, zorder=0)
    axes.set(xlabel="error at the best α and λ, over the error of TD(0) (bars: 95 %)", xlim=(0.0, 1.05))
    axes.set_yticks(range(len(domains)), domains)
    axes.invert_yaxis()
    legend_above(drawing, [axes])
    return drawing


def _advantage(each: Errors, weights: np.ndarray | None = None) -> np.ndarray:
    """The best error of accumulate TD(λ) less that of true online TD(λ), as a share of the error of TD(0)."""
    td0 = each.best_td0(weights)
    return (each.best("accumulate", weights) - each.best("true_online", weights)) / td0


def _claims(results: list[Errors], settings: Settings) -> list[Claim]:
    mean: dict[str, float] = {}
    samples: dict[str, np.ndarray] = {}
    for kind, mrp in enumerate(MRPS):
        group = [each for each in results if each.mrp == mrp and each.representation in random_mrps.PAPERS]
        mean[mrp] = float(np.mean([_advantage(each)[0] for each in group]))
        # MRPs are independent of each other, so each is resampled separately.
        weights = random_mrps.resample(group[0].runs, seed=settings.seed + 1000 * (kind + 1))
        samples[mrp] = np.mean([_advantage(each, weights) for each in group], axis=0)
    small, noisy, calm = MRPS
    claims = [
        _larger(small, noisy, mean, samples, "it has fewer states", results[0].runs),
        _larger(small, calm, mean, samples, "it has fewer states", results[0].runs),
        _larger(calm, noisy, mean, samples, "it is less stochastic", results[0].runs),
    ]
    each = next(each for each in results if each.mrp == small and each.representation == "non-binary")
    weights = random_mrps.bootstrap(each, settings)
    ratios = {name: each.best(name, weights) / each.best_td0(weights) for name in ("accumulate", "true_online")}
    accumulate, ours = interval(ratios["accumulate"]), interval(ratios["true_online"])
    ineffective = accumulate[1] >= 0.99
    effective = ours[1] < 0.95
    claims.append(
        Claim(
            f"MRP {small}, non-binary: accumulate TD(λ) is ineffective, true online TD(λ) considerably better than TD(0)",
            HOLDS if ineffective and effective else NOISE if accumulate[1] >= 0.97 and ours[0] < 0.95 else FAILS,
            {
                "accumulate over TD(0)": float((each.best("accumulate") / each.best_td0())[0]),
                "its interval": list(accumulate),
                "true online over TD(0)": float((each.best("true_online") / each.best_td0())[0]),
                "interval of that": list(ours),
                "holds if": "accumulate reaches 0.99 within its interval and true online stays below 0.95",
            },
            each.runs,
        )
    )
    return claims


def _larger(more: str, less: str, mean: dict, samples: dict, why: str, runs: int) -> Claim:
    low, high = interval(samples[more] - samples[less])
    return Claim(
        f"The advantage over accumulate TD(λ) is larger on MRP {more} than on {less}, because {why}",
        at_least(low, high),
        {
            f"mean advantage on {more}, in TD(0) errors": mean[more],
            f"on {less}": mean[less],
            "95 % interval of the difference": [low, high],
        },
        runs,
    )


EXPERIMENT = Experiment(
    "fig9",
    "Figure 9 — summary of the random MRPs",
    """The figure shows the error of each method at its best α and λ, relative to the error of TD(0) at its best α. This
ratio cannot exceed 1, because λ = 0 is one of the settings. A ratio of 1 means that traces are not effective (section 5.4).
The paper's figure also has the prosthetic arm and Asterix.""",
    run,
)
