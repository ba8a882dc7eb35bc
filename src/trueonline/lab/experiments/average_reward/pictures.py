"""The table, the charts and the picture of the study of average reward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.lab.experiment import Chart, table
from trueonline.lab.experiments.average_reward import spec
from trueonline.lab.experiments.average_reward.queue_runs import exact_rates
from trueonline.lab.style import COLOURS, NAMES, figure, line
from trueonline.problems import AccessControl


def data(swept: Mapping[str, np.ndarray], earned: Mapping[str, np.ndarray], queue: AccessControl) -> pa.Table:
    rows = []
    for name, errors in swept.items():
        means = errors.mean(axis=1).reshape(len(spec.TRACE_DECAYS), -1, len(spec.STEP_SIZES))
        etas = spec.ETAS if name == spec.DIFFERENTIAL else (0.0,)
        for (i, j, k), error in np.ndenumerate(means):
            rows.append(("random processes", name, spec.STEP_SIZES[k], spec.TRACE_DECAYS[i], etas[j], float(error)))
    grid = [(step_size, lam) for step_size in spec.CONTROL_STEP_SIZES for lam in spec.CONTROL_LAMS]
    for name, pieces in earned.items():
        late = pieces[:, :, pieces.shape[2] // 2 :].mean(axis=(1, 2))
        for (step_size, lam), reward in zip(grid, late, strict=True):
            eta = spec.ETA if name == spec.SARSA else 0.0
            rows.append(("access control", name, step_size, lam, eta, float(1.0 - reward / queue.optimal_reward_rate)))
    return table(("task", "method", "step_size", "trace_decay", "eta", "shortfall"), rows)


def sweep_chart(swept: Mapping[str, np.ndarray]) -> Chart:
    rows = []
    for name, errors in swept.items():
        for lam, over_alpha in zip(spec.TRACE_DECAYS, errors.mean(axis=1), strict=True):
            best = over_alpha.reshape(-1, len(spec.STEP_SIZES)).min(axis=0)  # over η
            rows += [(name, lam, step_size, float(error)) for step_size, error in zip(spec.STEP_SIZES, best, strict=True)]
    return Chart(
        table(("method", "λ", "step_size", "error"), rows),
        x="step_size",
        y="error",
        series="method",
        x_title="α",
        y_title=f"MSE over the first {spec.SHORT:,} steps (initial = 1)",
        choose="λ",
        log_x=True,
        log_y=True,
        y_domain=(0.1, 10.0),
        title="Differential values of random processes, up to a constant, at the best η",
    )


def control_chart(earned: Mapping[str, np.ndarray]) -> Chart:
    rows = []
    for name, pieces in earned.items():
        best = pieces[:, :, pieces.shape[2] // 2 :].mean(axis=(1, 2)).argmax()
        over_time = pieces[best]
        spread = 2.0 * over_time.std(axis=0, ddof=min(1, len(over_time) - 1)) / np.sqrt(len(over_time))
        for piece, mean in enumerate(over_time.mean(axis=0)):
            rows.append(
                (name, (piece + 1) * spec.PIECE, float(mean), float(mean - spread[piece]), float(mean + spread[piece]))
            )
    return Chart(
        table(("method", "step", "reward", "low", "high"), rows),
        x="step",
        y="reward",
        series="method",
        x_title="step",
        y_title=f"mean reward over {spec.PIECE:,} steps",
        low="low",
        high="high",
        title="Access control, each method at its best α and λ",
    )


def picture(
    courses: np.ndarray, curves: Mapping[str, np.ndarray], earned: Mapping[str, np.ndarray], queue: AccessControl
) -> Any:
    drawing, ((over_time, over_lam, acting),) = figure(1, 3, width=10.2, height=3.9)
    left = np.sqrt((courses**2).mean(axis=0) / (courses[:, :, :1] ** 2).mean(axis=0))[:, 1:]
    for part, name, dashes in ((0, "reward rate R̄", (4, 2)), (1, "differential values", ())):
        style: dict[str, Any] = {"dashes": dashes} if dashes else {}
        over_time.plot(spec.CHECKPOINTS, left[part], color=COLOURS[spec.DIFFERENTIAL], label=name, linewidth=1.6, **style)
    over_time.set(xscale="log", yscale="log", xlabel="step", ylabel="RMS error (initial = 1)")
    over_time.set_title(f"differential TD(λ) against the exact\nsolution, {len(courses)} random processes", fontsize=9)
    over_time.legend(loc="lower left", fontsize=8)
    for name, curve in curves.items():
        line(over_lam, range(len(spec.TRACE_DECAYS)), curve, name)
    over_lam.set_xticks(range(len(spec.TRACE_DECAYS)), [f"{lam:g}" for lam in spec.TRACE_DECAYS])
    over_lam.set(xlabel="λ", ylabel=f"MSE, first {spec.SHORT:,} steps (initial = 1)", yscale="log")
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10)
    over_lam.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    over_lam.minorticks_off()
    over_lam.set_title("differential values up to a constant,\nbest α and η", fontsize=9)
    over_lam.set_xlim(-0.2, len(spec.TRACE_DECAYS) - 0.8)
    over_lam.legend([NAMES[spec.DIFFERENTIAL], f"{NAMES[spec.DISCOUNTED]}, γ = {spec.DISCOUNT}"], fontsize=8)
    for name, pieces in earned.items():
        best = pieces[:, :, pieces.shape[2] // 2 :].mean(axis=(1, 2)).argmax()
        label = NAMES[name] + (f", γ = {spec.DISCOUNT}" if name == spec.DISCOUNTED_SARSA else "")
        line(acting, np.arange(1, pieces.shape[2] + 1) * spec.PIECE / 1_000, pieces[best].mean(axis=0), name, label=label)
    for (name, rate), dash in zip(exact_rates(queue).items(), ((), (6, 2), (1, 2)), strict=True):
        style = {"dashes": dash} if dash else {}
        acting.plot(
            [0, spec.STEPS / 1_000], [rate, rate], color="#555555", linewidth=1.0, label=f"{name} (exact)", **style
        )
    acting.set(xlabel="step / 1,000", ylabel="mean reward of a step", xlim=(0, spec.STEPS / 1_000), ylim=(1.6, 2.8))
    acting.set_title("access control, best α and λ", fontsize=9)
    acting.legend(fontsize=7, loc="lower right")
    return drawing
