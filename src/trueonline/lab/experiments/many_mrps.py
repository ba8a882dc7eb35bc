"""Beyond the paper — many random MRPs of each class

The paper uses one MRP of each class. Here the same grids of α and λ are run on many different MRPs of each class.
Every method is at its best α and λ on each MRP. The figure shows on how many MRPs each method is the best.

Question: Is true online TD(λ) better on random tasks in general, or only on the three that the paper drew?

Paper: The paper compares the methods on one random task of each of three classes, and finds true online TD(λ) at least as good
on all.

Look: Each bar is a class of tasks with one kind of features. Its parts show on which share of the random tasks each method is
the best, with its own best settings.

Exceptions: A claim about every task is stricter than one about the average. On some tasks another method is better, mostly by
little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import ENOUGH, FAILS, HOLDS, NOISE, ROUNDING, Claim, Estimate
from trueonline.lab.experiment import Experiment, Outcome, Settings
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.random_mrps import PAPERS
from trueonline.lab.style import COLOURS, NAMES, figure, legend_above
from trueonline.words import count

MRPS_OF_A_CLASS, RUNS = 100, 10
MRPS_AT_ONCE = 100  # MRPs of each class

Group = Mapping[str, np.ndarray]  # method → for each MRP of a class the best error relative to TD(0)


def run(settings: Settings) -> Outcome:
    mrps, runs = settings.options.get("mrps") or MRPS_OF_A_CLASS, settings.number(RUNS)
    found = random_mrps.bests(lambda n: random_mrps.cases(n, settings, runs, PAPERS), mrps, MRPS_AT_ONCE, settings)
    groups: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for (mrp, representation, method), numbers in random_mrps.by_place(found).items():
        groups.setdefault((mrp, representation), {})[method] = numbers["over_td0"]
    figures = {"figure": lambda: _picture(groups, settings.seed)}
    data = found.drop_columns(["step_size", "trace_decay"])
    return Outcome(data, figures, claims(groups, settings.seed, runs), note=note(mrps, runs))


def note(mrps: int, runs: int) -> str:
    """How the experiment was run."""
    return f"Here there are {mrps:,} MRPs of each class, with {count(runs, 'run')} on each."


def _shares(group: Group) -> dict[str, np.ndarray]:
    """For each method and MRP, whether the method is the best on it. Ties are shared."""
    stacked = np.array(list(group.values()))
    best = stacked <= stacked.min(axis=0) * (1.0 + ROUNDING)
    return dict(zip(group, best / best.sum(axis=0), strict=True))


def _picture(groups: Mapping[tuple[str, str], Group], seed: int) -> Any:
    """The share of MRPs on which each method is best."""
    drawing, ((axes,),) = figure(1, 1, width=7.4, height=4.6)
    edge = f"95 % interval of where {NAMES['true_online']} begins"
    for y, group in enumerate(groups.values()):
        left, shares = 0.0, _shares(group)
        for method, share in shares.items():
            width = float(share.mean())
            axes.barh(y, width, left=left, color=COLOURS[method], label=NAMES[method], height=0.7)
            if width > 0.06:
                middle = {"ha": "center", "va": "center", "color": "white", "fontsize": 8}
                axes.text(left + width / 2, y, f"{100 * width:.0f} %", **middle)
            left += width
        low, high = Estimate.mean(shares["true_online"], seed).interval
        ends = [1.0 - high, 1.0 - low]
        axes.plot(ends, [y + 0.43, y + 0.43], "|-", ms=4, color="black", linewidth=1.0, label=edge)
    axes.set_yticks(range(len(groups)), [", ".join(place) for place in groups])
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set(
        xlabel="share of the MRPs on which a method has the smallest error (a tie is shared)",
        ylabel="class of MRPs (k, b, σ), features",
        xlim=(0.0, 1.0),
    )
    legend_above(drawing, [axes])
    return drawing


def claims(groups: Mapping[tuple[str, str], Group], seed: int, runs: int) -> list[Claim]:
    """Whether true online TD(λ) is as good on every MRP, and on average over those of a class."""
    details = [
        _on_average(f"MRPs {', '.join(place)}", group, other, seed)
        for place, group in groups.items()
        for other in group
        if other != "true_online"
    ]
    better_others = [np.min([group[m] for m in group if m != "true_online"], axis=0) for group in groups.values()]
    ratios = np.concatenate([group["true_online"] for group in groups.values()]) / np.concatenate(better_others)
    worse = ratios > 1.0 + ROUNDING
    enough = all(len(group["true_online"]) >= ENOUGH for group in groups.values())
    summary = Claim(
        "On every random MRP true online TD(λ) at its best is at least as good as the better of the other two",
        FAILS if worse.any() else HOLDS if enough else NOISE,  # one MRP is enough to refute it
        {
            "MRPs and representations": len(ratios),
            "share where it is worse": float(worse.mean()),
            "where worse, by (median)": float(np.median(ratios[worse]) - 1.0) if worse.any() else 0.0,
            "where better, by (median)": 0.0 if worse.all() else float(1.0 - np.median(ratios[~worse])),
        },
        runs,
    )
    return [summary, *details]


def _on_average(place: str, group: Group, other: str, seed: int) -> Claim:
    ratio = group["true_online"] / group[other]
    mean = Estimate(np.exp(Estimate.mean(np.log(ratio), seed).rows) - 1.0)
    best = Estimate.mean(_shares(group)["true_online"], seed)
    return Claim(
        f"{place}: true online is on average at least as good as {other}",
        mean.judge(at_most=ROUNDING),
        {
            "MRPs": len(ratio),
            "mean relative difference": mean.value,
            "95 % interval": mean.interval,
            "share of MRPs where true online is no worse": float((ratio <= 1.0 + ROUNDING).mean()),
            "share where true online is best of all": best.value,
            "95 % interval of that": best.interval,
            "most it loses on an MRP": float(ratio.max() - 1.0),
        },
        len(ratio),
    )


EXPERIMENT = Experiment(
    "many-mrps", __doc__, run, BestRows(("mrp", "representation", "method"), "over_td0", mean_over="number")
)
