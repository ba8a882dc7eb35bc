"""Figure 9 — summary of the random MRPs

The figure shows the error of each method at its best α and λ, relative to the error of TD(0) at its best α. This
ratio cannot exceed 1, because λ = 0 is one of the settings. A ratio of 1 means that traces are not effective (section 5.4).
The paper's figure also has the prosthetic arm and Asterix.

Question: How much does a memory of the past help at all?

Paper: Compared with TD(0), which has no memory of the past, true online TD(λ) gains the most. The gain over the older TD(λ) is
larger where there are fewer states and less randomness.

Look: Each row is a task of Figure 4 with one of its descriptions. Further left is better. At 1, the memory does not help.
Compare the green mark with the orange one in the same row.

Exceptions: As in Figure 4, one random task stands for each class. `trueonline reproduce many-mrps` draws 100 of each. There,
the gain is larger on (100, 3, 0) than on (100, 10, 0.1), as the paper says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Claim, Errors, Estimate
from trueonline.lab.experiment import Experiment, Outcome, Settings, table
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.random_mrps import MRPS
from trueonline.lab.style import COLOURS, MARKERS, NAMES, figure, legend_above

SHIFTS = {"accumulate": -0.22, "replace": 0.0, "true_online": 0.22}  # of the methods in a row of the figure


def run(settings: Settings) -> Outcome:
    results = settings.shared(random_mrps.results)
    rows = []
    for each in results:
        for method in each.by_method:
            ratio = _over_td0(each, method)
            domain = " ".join(each.labels.values())
            rows.append((domain, *each.labels.values(), method, ratio.value, *ratio.interval))
    data = table(("domain", "mrp", "representation", "method", "error", "low", "high"), rows)
    note = random_mrps.note(settings)
    return Outcome(data, {"figure": lambda: _picture(rows)}, _claims(results, settings), note=note)


def _over_td0(errors: Errors, method: str) -> Estimate:
    return errors.best(method) / random_mrps.td0(errors).best("true_online")


def _picture(rows: list[tuple]) -> Any:
    domains = list(dict.fromkeys(row[0] for row in rows))
    drawing, ((axes,),) = figure(1, 1, width=7.4, height=0.9 + 0.36 * len(domains))
    for domain, _, _, method, error, low, high in rows:
        y = domains.index(domain) + SHIFTS[method]
        axes.plot([low, high], [y, y], color=COLOURS[method], linewidth=1.2)
        axes.plot(error, y, MARKERS[method], color=COLOURS[method], ms=5, label=NAMES[method])
    axes.axvline(1.0, color="#999999", linewidth=0.9, zorder=0)
    axes.set(xlabel="error at the best α and λ, over the error of TD(0) (bars: 95 %)", xlim=(0.0, 1.05))
    axes.set_yticks(range(len(domains)), domains)
    axes.invert_yaxis()
    legend_above(drawing, [axes])
    return drawing


def _advantage(results: list[Errors], seed: int) -> Estimate:
    """The best error of accumulate TD(λ) less that of true online TD(λ), over that of TD(0): the mean over some cases."""
    each = [Errors(case.by_method, seed) for case in results]
    gaps = [_over_td0(case, "accumulate") - _over_td0(case, "true_online") for case in each]
    return Estimate(np.mean([gap.rows for gap in gaps], axis=0))


def _claims(results: list[Errors], settings: Settings) -> list[Claim]:
    # MRPs are independent of each other, so each is resampled separately.
    advantages = {
        mrp: _advantage(random_mrps.of_paper(results, mrp), settings.seed + 1000 * (kind + 1))
        for kind, mrp in enumerate(MRPS)
    }
    small, noisy, calm = MRPS
    claims = [
        _larger(small, noisy, advantages, "it has fewer states", results[0].samples),
        _larger(small, calm, advantages, "it has fewer states", results[0].samples),
        _larger(calm, noisy, advantages, "it is less stochastic", results[0].samples),
    ]
    each = next(each for each in results if tuple(each.labels.values()) == (small, "non-binary"))
    accumulate, ours = (_over_td0(each, method) for method in ("accumulate", "true_online"))
    (_, reached), (least, most) = accumulate.interval, ours.interval
    claims.append(
        Claim(
            f"MRP {small}, non-binary: accumulate TD(λ) is ineffective, true online TD(λ) considerably better than TD(0)",
            HOLDS if reached >= 0.99 and most < 0.95 else NOISE if reached >= 0.97 and least < 0.95 else FAILS,
            {
                "accumulate over TD(0)": accumulate.value,
                "its interval": accumulate.interval,
                "true online over TD(0)": ours.value,
                "interval of that": ours.interval,
                "holds if": "accumulate reaches 0.99 within its interval and true online stays below 0.95",
            },
            each.samples,
        )
    )
    return claims


def _larger(more: str, less: str, advantages: dict[str, Estimate], why: str, runs: int) -> Claim:
    difference = advantages[more] - advantages[less]
    return Claim(
        f"The advantage over accumulate TD(λ) is larger on MRP {more} than on {less}, because {why}",
        difference.judge(at_least=0.0),
        {
            f"mean advantage on {more}, in TD(0) errors": advantages[more].value,
            f"on {less}": advantages[less].value,
            "95 % interval of the difference": difference.interval,
        },
        runs,
    )


EXPERIMENT = Experiment("fig9", __doc__, run, BestRows(("mrp", "representation", "method"), "error"))
