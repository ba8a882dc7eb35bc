"""The tables and the picture of the off-policy study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.lab.claims import DIVERGED, Errors
from trueonline.lab.experiment import table
from trueonline.lab.experiments.offpolicy import spec
from trueonline.lab.experiments.offpolicy.spec import at_best_eta, best_setting, parameters
from trueonline.lab.style import COLOURS, DASHES, MARKERS, NAMES, figure

AXIS_RANGE = (1e-6, 1e4)  # the range of the axes of errors that may be arbitrarily large or small
QUANTILES = (0.1, 0.5, 0.9)

Lines = Mapping[str, dict[str, np.ndarray]]  # problem → method → an array over run and time


# --- Tables ---------------------------------------------------------------------------------------


def table_of_ends(ends: Mapping[str, Errors]) -> pa.Table:
    """The error at the end over α and λ: its median, and the interval of the middle 80 % of the runs."""
    rows = []
    for problem, errors in ends.items():
        for method in spec.FAMILY:
            low, middle, high = np.quantile(at_best_eta(errors, method), QUANTILES, axis=0)
            rows += [
                (problem, method, float(spec.ALPHAS[i]), float(spec.LAMS[j]), middle[i, j], low[i, j], high[i, j])
                for i, j in np.ndindex(middle.shape)
            ]
    return table(("problem", "method", "step_size", "λ", "error", "low", "high"), rows)


def table_over_time(lines: Lines, errors: Mapping[str, Errors]) -> pa.Table:
    """The error over time: its median, and the interval of the middle 80 % of the runs."""
    rows = []
    for problem, by_method in lines.items():
        for method, line in by_method.items():
            low, middle, high = np.quantile(np.minimum(line, DIVERGED), QUANTILES, axis=0)
            words = parameters(errors[problem], method)
            rows += [
                (problem, method, int(t), *numbers, words)
                for t, *numbers in zip(spec.TIMES, middle, low, high, strict=True)
            ]
    return table(("problem", "method", "step", "error", "low", "high", "parameters"), rows)


def table_of_mdps(random: Mapping[tuple[str, float], Errors]) -> pa.Table:
    """The mean error of each method on the random MDPs, at its best parameters, with a 95 % interval."""
    rows = []
    for (representation, distance), errors in random.items():
        for method in spec.FAMILY:
            eta, alpha, lam = best_setting(errors, method)
            best = errors.best(method)
            rows.append((representation, distance, method, best.value, *best.interval, alpha, lam, eta))
    names = ("representation", "distance", "method", "error", "low", "high", "step_size", "trace_decay", "eta")
    return table(names, rows)


# --- The picture ----------------------------------------------------------------------------------


def picture(ends: Mapping[str, Errors], lines: Lines, mdps: pa.Table) -> Any:
    """Counterexamples across in the first two rows, and the random MDPs in the last row."""
    from matplotlib.lines import Line2D

    drawing, axes = figure(3, 2, width=8.2, height=8.8)
    for column, problem in enumerate(ends):
        _draw_ends(axes[0, column], ends[problem])
        _draw_lines(axes[1, column], lines[problem])
        axes[0, column].set_title(f"{problem}: at the end, over α, at λ = 0")
        axes[1, column].set_title(f"{problem}: over time, each at its best")
    for column, representation in enumerate(spec.REPRESENTATIONS):
        _draw_mdps(axes[2, column], mdps, representation)
        axes[2, column].set_title(f"random MDPs, {representation} features, each at its best")
    for row, measure in enumerate(("error at the end", "error", f"mean error of {spec.MDP_STEPS:,} steps")):
        axes[row, 0].set_ylabel(f"{measure} (initial = 1)")
    handles = [Line2D([], [], label=NAMES[method], **_line(method) | _marker(method)) for method in spec.FAMILY]
    drawing.legend(handles=handles, loc="outside upper center", ncols=3)
    return drawing


def _line(method: str) -> dict[str, Any]:
    return {"color": COLOURS[method], "linewidth": 1.5, "linestyle": (0, DASHES[method]) if DASHES[method] else "-"}


def _marker(method: str) -> dict[str, Any]:
    """Filled for true online methods."""
    filled = {} if method in spec.PAIRS.values() else {"markerfacecolor": "white"}
    return {"color": COLOURS[method], "marker": MARKERS[method], "markersize": 4.5, **filled}


def _draw_ends(panel: Any, errors: Errors) -> None:
    for method in spec.PAIRS:  # at λ = 0 the true online form is the same
        median = np.quantile(at_best_eta(errors, method)[:, :, 0], 0.5, axis=0)
        panel.plot(spec.ALPHAS, np.clip(median, *AXIS_RANGE), clip_on=False, **_line(method) | _marker(method))
    _logarithmic(panel)
    panel.set(xlabel="α", xlim=(spec.ALPHAS[0] / 1.3, spec.ALPHAS[-1] * 1.3))


def _draw_lines(panel: Any, by_method: dict[str, np.ndarray]) -> None:
    for method, line in by_method.items():
        low, middle, high = np.clip(np.quantile(np.minimum(line, DIVERGED), QUANTILES, axis=0), *AXIS_RANGE)
        panel.fill_between(spec.TIMES, low, high, color=COLOURS[method], alpha=0.08, linewidth=0)
        width = 2.6 - 0.3 * spec.FAMILY.index(method)  # some lines coincide, and the lower ones are wider
        panel.plot(spec.TIMES, middle, **_line(method) | {"linewidth": width})
    _logarithmic(panel)
    panel.set(xlabel="step", xlim=(1, spec.STEPS))


def _logarithmic(panel: Any) -> None:
    panel.axhline(1.0, color="#777777", linewidth=0.9, zorder=0)
    panel.set(xscale="log", yscale="log", ylim=AXIS_RANGE)
    panel.minorticks_off()


def _draw_mdps(panel: Any, mdps: pa.Table, representation: str) -> None:
    rows = [row for row in mdps.to_pylist() if row["representation"] == representation]
    for position, method in enumerate(spec.FAMILY):
        for place, row in enumerate(row for row in rows if row["method"] == method):
            x = place + (position - 2.5) * 0.13
            panel.plot([x, x], [row["low"], row["high"]], color=COLOURS[method], linewidth=1.2)
            panel.plot(x, row["error"], **_marker(method))
    panel.axhline(1.0, color="#777777", linewidth=0.9, zorder=0)
    panel.set_xticks(range(len(spec.DISTANCES)), [f"{distance:g}" for distance in spec.DISTANCES])
    panel.grid(visible=False, axis="x")
    panel.set(xlabel="distance of the target from the behaviour (bars: 95 %)", ylim=(0.0, None))
