"""Beyond the paper: the study of Figure 4 on many random MRPs of each class instead of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline import study
from trueonline.lab.experiment import (
    ENOUGH,
    FAILS,
    HOLDS,
    NOISE,
    ROUNDING,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_most,
    interval,
    resample,
    table,
)
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.random_mrps import MRPS, PAPERS
from trueonline.lab.style import COLOURS, NAMES, figure, legend_above

MRPS_OF_A_CLASS, RUNS = 100, 10
AT_ONCE = 100  # MRPs of each class


def run(settings: Settings) -> Outcome:
    mrps, runs = settings.mrps or MRPS_OF_A_CLASS, settings.number(RUNS)
    found = random_mrps.bests(lambda n: random_mrps.cases(n, settings, runs, PAPERS), mrps, AT_ONCE, settings)
    rows = [(each.number, each.mrp, each.representation, each.method, each.error, each.over_td0) for each in found]
    names = ("number", "mrp", "representation", "method", "error", "over_td0")
    data = table(names, rows)
    groups = {(mrp, rep): _group(rows, mrp, rep) for mrp in MRPS for rep in PAPERS}
    note = f"Here there are {mrps:,} MRPs of each class, with {runs:,} run{'s'[: runs != 1]} on each."
    return Outcome(data, {"figure": _picture(groups, settings)}, [], _claims(groups, settings), note=note)


def _group(rows: list[tuple], mrp: str, representation: str) -> dict[str, np.ndarray]:
    """For each method the best error relative to TD(0), over the MRPs of a class."""
    chosen = [row for row in rows if row[1] == mrp and row[2] == representation]
    return {
        m: np.array([row[5] for row in chosen if row[3] == m]) for m in study.METHODS if any(r[3] == m for r in chosen)
    }


def _shares(group: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """For each method and MRP, whether the method is the best on it. Ties are shared."""
    stacked = np.array(list(group.values()))
    best = stacked <= stacked.min(axis=0) * (1.0 + ROUNDING)
    return dict(zip(group, best / best.sum(axis=0), strict=True))


def _picture(groups: dict[tuple[str, str], dict[str, np.ndarray]], settings: Settings) -> Any:
    """The share of MRPs on which each method is best."""
    drawing, ((axes,),) = figure(1, 1, width=7.4, height=4.6)
    labels = [f"{mrp}, {representation}" for mrp, representation in groups]
    edge = f"where {NAMES['true_online']} begins"
    for y, group in enumerate(groups.values()):
        weights = resample(len(group["true_online"]), seed=settings.seed)
        left = 0.0
        for method, share in _shares(group).items():
            width = float(share.mean())
            axes.barh(y, width, left=left, color=COLOURS[method], label=NAMES[method], height=0.7)
            if width > 0.06:
                axes.text(
                    left + width / 2, y, f"{100 * width:.0f} %", ha="center", va="center", color="white", fontsize=8
                )
            left += width
        low, high = interval(weights @ _shares(group)["true_online"])
        ends = [1.0 - high, 1.0 - low]
        axes.plot(ends, [y + 0.43, y + 0.43], "|-", ms=4, color="black", linewidth=1.0, label=f"95 % interval of {edge}")
    axes.set_yticks(range(len(labels)), labels)
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


def _claims(groups: dict[tuple[str, str], dict[str, np.ndarray]], settings: Settings) -> list[Claim]:
    details = []
    for (mrp, representation), group in groups.items():
        shares = _shares(group)
        weights = resample(len(group["true_online"]), seed=settings.seed)
        for other in group:
            if other == "true_online":
                continue
            ratio = group["true_online"] / group[other]
            low, high = interval(np.exp(weights @ np.log(ratio)) - 1.0)
            details.append(
                Claim(
                    f"MRPs {mrp}, {representation}: true online is on average at least as good as {other}",
                    at_most(low, high, ROUNDING),
                    {
                        "MRPs": len(ratio),
                        "mean relative difference": float(np.exp(np.log(ratio).mean()) - 1.0),
                        "95 % interval": [low, high],
                        "share of MRPs where true online is no worse": float((ratio <= 1.0 + ROUNDING).mean()),
                        "share where true online is best of all": float(shares["true_online"].mean()),
                        "95 % interval of that": list(interval(weights @ shares["true_online"])),
                        "most it loses on an MRP": float(ratio.max() - 1.0),
                    },
                    len(ratio),
                )
            )
    everywhere = np.concatenate(
        [
            group["true_online"] / np.min([group[m] for m in group if m != "true_online"], axis=0)
            for group in groups.values()
        ]
    )
    worse = everywhere > 1.0 + ROUNDING
    enough = all(len(group["true_online"]) >= ENOUGH for group in groups.values())
    summary = Claim(
        "On every random MRP true online TD(λ) at its best is at least as good as the better of the other two",
        FAILS if worse.any() else HOLDS if enough else NOISE,  # one MRP is enough to refute it
        {
            "MRPs and representations": len(everywhere),
            "share where it is worse": float(worse.mean()),
            "where worse, by (median)": float(np.median(everywhere[worse]) - 1.0) if worse.any() else 0.0,
            "where better, by (median)": 0.0 if worse.all() else float(1.0 - np.median(everywhere[~worse])),
        },
        settings.number(RUNS),
    )
    return [summary, *details]


EXPERIMENT = Experiment(
    "many-mrps",
    "Beyond the paper — many random MRPs of each class",
    """The paper uses one MRP of each class. Here the same grids of α and λ are run on many different MRPs of each class.
Every method is at its best α and λ on each MRP. The figure shows on how many MRPs each method is the best.""",
    run,
)
