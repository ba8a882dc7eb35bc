"""The pictures of the grid: heat maps of the advantage and of the best λ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.lab.claims import ROUNDING
from trueonline.lab.experiments.mrp_grid import spec
from trueonline.lab.experiments.mrp_grid.advantages import Numbers
from trueonline.lab.experiments.random_mrps import PAPERS
from trueonline.lab.report.svg import ON_CELLS
from trueonline.lab.style import NAMES, figure

WIDEST = 3.4  # characters that fit into a cell of a picture. Longer texts are drawn smaller
NO_CLASS = {"facecolor": "#EEEEEE", "edgecolor": "#BBBBBB", "hatch": "/////"}  # of cells: not white, which means 0
SHADES = 21  # of a colour scale: few, so that a shade can be found on the scale; odd, so that one is white


def _cell(k: int, b: int) -> tuple[int, int]:
    """The place in a panel: a row for each k, a column for each b."""
    return spec.STATES.index(k), spec.BRANCHES.index(0 if b == k else b)


def _panels(
    rows: Sequence[str], name: str, scale: Any, colours: str, values: dict, form: Callable[[float], str], note: str = ""
) -> Any:
    """Heat maps with b across and k down: one row for each of `rows`, one column for each σ.

    `values` has for each row and σ a dictionary from (k, b) to a value, and whether the value is shown as a number.
    """
    from matplotlib import colormaps

    drawing, axes = figure(
        len(rows), len(spec.NOISES), width=8.2, height=0.75 + 1.85 * len(rows), sharex=True, sharey=True
    )
    shading, least = colormaps[colours].resampled(SHADES), scale.vmin
    for (i, j), panel in np.ndenumerate(axes):
        image = np.full((len(spec.STATES), len(spec.BRANCHES)), np.nan)
        for (k, b), (value, shown) in values[rows[i], spec.NOISES[j]].items():
            y, x = _cell(k, b)
            image[y, x], least = value, min(value, least)
            red, green, blue, _ = shading(scale(value))
            colour = ON_CELLS["light" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "dark"]
            text, size = (form(value), 6.0) if shown else ("·", 9.0)
            size *= min(1.0, WIDEST / len(text))
            panel.text(x, y, text, ha="center", va="center", fontsize=size, color=colour)
        drawn = panel.imshow(image, cmap=shading, norm=scale, aspect="auto")
        panel.set_xticks(range(len(spec.BRANCHES)), [f"{b or 'k'}" for b in spec.BRANCHES])
        panel.set_yticks(range(len(spec.STATES)), [f"{k}" for k in spec.STATES])
        panel.patch.set(**NO_CLASS, linewidth=0.0)
        panel.grid(visible=False)
        panel.tick_params(length=0)
        for side in panel.spines.values():
            side.set_visible(False)
    for panel, sigma in zip(axes[0], spec.NOISES, strict=True):
        panel.set_title(f"σ = {sigma:g}")
    for panel, row in zip(axes[:, 0], rows, strict=True):
        panel.set_ylabel(f"{row} features", weight="bold")
    drawing.supylabel("number of states k", size="medium")
    drawing.supxlabel(
        f"number of next states b of each state\n{note}hatched: no class, since b < k (b = k has a column of its own)",
        size="medium",
    )
    beyond = "min" if least < scale.vmin else "neither"
    drawing.colorbar(drawn, ax=axes, label=name, shrink=0.8, aspect=30, pad=0.01, extend=beyond)
    return drawing


def advantages(data: pa.Table, other: str) -> Any:
    """The advantage in percent. A loss has no bound, so colours end where those of the largest advantage do."""
    from matplotlib.colors import Normalize

    rows = [representation for representation, against in spec.COMPARISONS if against == other]
    values: dict = {(row, sigma): {} for row in rows for sigma in spec.NOISES}
    for row in data.to_pylist():
        if row["other"] == other:
            decided = row["low"] > ROUNDING or row["high"] < -ROUNDING
            values[row["representation"], row["sigma"]][row["k"], row["b"]] = (100.0 * row["advantage"], decided)
    bound = max(10.0, *(value for cells in values.values() for value, _ in cells.values()))
    title = f"how far the error is below that of {NAMES[other]}, %"
    return _panels(
        rows,
        title,
        Normalize(-bound, bound),
        "RdBu",
        values,
        lambda value: f"{value:.0f}".replace("-", "−") if abs(value) >= 0.5 else "0",
        "dot: the 95 % interval contains 0; ",
    )


def trace_decays(each: Numbers) -> Any:
    """The median of the λ that is best for true online TD(λ)."""
    from matplotlib.colors import Normalize

    values: dict = {(row, sigma): {} for row in PAPERS for sigma in spec.NOISES}
    for k, b, sigma in spec.classes():
        for row in PAPERS:
            found = np.median(each[spec.label(k, b, sigma), row, "true_online"]["trace_decay"])
            values[row, sigma][k, b] = (float(found), True)
    title = "median of the best λ of true online TD(λ)"
    return _panels(
        PAPERS, title, Normalize(0.0, 1.0), "viridis", values, lambda value: f"{value:.2f}".strip("0").rstrip(".") or "0"
    )
