"""The table and the picture of the study of average reward."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.lab.claims import Errors
from trueonline.lab.experiment import table
from trueonline.lab.experiments.average_reward import spec
from trueonline.lab.experiments.average_reward.queue_runs import exact_rates, late
from trueonline.lab.style import COLOURS, NAMES, figure, line
from trueonline.problems import AccessControl


def data(swept: Mapping[str, Errors], earned: Mapping[str, np.ndarray], queue: AccessControl) -> pa.Table:
    """The shortfall of every setting."""
    rows = []
    for name, errors in swept.items():
        means = errors.by_method[name].mean(axis=0)
        etas = spec.ETAS if name == spec.DIFFERENTIAL else (0.0,)
        for i, lam in enumerate(spec.TRACE_DECAYS):
            for (j, eta), (k, alpha) in product(enumerate(etas), enumerate(spec.STEP_SIZES)):
                rows.append(("random processes", name, alpha, lam, eta, float(means[j, k, i])))
    for name, pieces in earned.items():
        eta = spec.ETA if name == spec.SARSA else 0.0
        grid = product(spec.CONTROL_STEP_SIZES, spec.CONTROL_LAMS)
        for (alpha, lam), reward in zip(grid, late(pieces).mean(axis=0), strict=True):
            rows.append(("access control", name, alpha, lam, eta, float(1.0 - reward / queue.optimal_reward_rate)))
    return table(("task", "method", "step_size", "trace_decay", "eta", "shortfall"), rows)


def picture(
    courses: np.ndarray, swept: Mapping[str, Errors], earned: Mapping[str, np.ndarray], queue: AccessControl
) -> Any:
    drawing, ((over_time, over_lam, acting),) = figure(1, 3, width=10.2, height=3.9)
    left = np.sqrt((courses**2).mean(axis=0) / (courses[:, :, :1] ** 2).mean(axis=0))[:, 1:]
    for part, name, dashes in ((0, "reward rate R̄", (4, 2)), (1, "differential values", ())):
        style: dict[str, Any] = {"dashes": dashes} if dashes else {}
        over_time.plot(spec.CHECKPOINTS, left[part], color=COLOURS[spec.DIFFERENTIAL], label=name, linewidth=1.6, **style)
    over_time.set(xscale="log", yscale="log", xlabel="step", ylabel="RMS error (initial = 1)")
    over_time.set_title(f"differential TD(λ) against the exact\nsolution, {len(courses)} random processes", fontsize=9)
    over_time.legend(loc="lower left", fontsize=8)
    for name, errors in swept.items():
        line(over_lam, range(len(spec.TRACE_DECAYS)), errors.mean(name).min(axis=(0, 1)), name)
    over_lam.set_xticks(range(len(spec.TRACE_DECAYS)), [f"{lam:g}" for lam in spec.TRACE_DECAYS])
    over_lam.set(xlabel="λ", ylabel=f"MSE, first {spec.SHORT_RUN:,} steps (initial = 1)", yscale="log")
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10)
    over_lam.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    over_lam.minorticks_off()
    over_lam.set_title("differential values up to a constant,\nbest α and η", fontsize=9)
    over_lam.set_xlim(-0.2, len(spec.TRACE_DECAYS) - 0.8)
    over_lam.legend([NAMES[spec.DIFFERENTIAL], f"{NAMES[spec.DISCOUNTED]}, γ = {spec.DISCOUNT}"], fontsize=8)
    for name, pieces in earned.items():
        best = late(pieces).mean(axis=0).argmax()
        label = NAMES[name] + (f", γ = {spec.DISCOUNT}" if name == spec.DISCOUNTED_SARSA else "")
        line(
            acting,
            np.arange(1, pieces.shape[2] + 1) * spec.PIECE / 1_000,
            pieces[:, best].mean(axis=0),
            name,
            label=label,
        )
    for (name, rate), dash in zip(exact_rates(queue).items(), ((), (6, 2), (1, 2)), strict=True):
        style = {"dashes": dash} if dash else {}
        acting.plot(
            [0, spec.STEPS / 1_000], [rate, rate], color="#555555", linewidth=1.0, label=f"{name} (exact)", **style
        )
    acting.set(xlabel="step / 1,000", ylabel="mean reward of a step", xlim=(0, spec.STEPS / 1_000), ylim=(1.6, 2.8))
    acting.set_title("access control, best α and λ", fontsize=9)
    acting.legend(fontsize=7, loc="lower right")
    return drawing
