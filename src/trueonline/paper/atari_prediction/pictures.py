"""The pictures and charts of the Atari Prediction Benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.paper.atari_prediction.runs import ADAPTED, PLAIN, SWIFT, ends, stretch
from trueonline.paper.atari_prediction.summary import LINES, Found, title
from trueonline.paper.experiment import Chart
from trueonline.paper.style import COLOURS, MARKERS, figure, legend_above, line

TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def ratios(found: Found) -> Any:
    """Each game's lifetime error over SwiftTD's, and the geometric means at the bottom."""
    drawing, ((axes,),) = figure(1, 1, width=6.8, height=1.6 + 0.27 * (len(found.games) + 1))
    places = np.arange(len(found.games))[::-1] + 1.5
    for name in (PLAIN, ADAPTED):
        style: dict[str, Any] = {"color": COLOURS[name], "marker": MARKERS[name], "linestyle": "none"}
        shown = np.where(np.isfinite(found.ratios[name]), found.ratios[name], np.nan)
        axes.plot(shown, places, ms=5.5, label=LINES[name], **style)
        mean, low, high = found.means[name]
        if np.isfinite(mean):
            axes.errorbar(
                mean,
                0.3 + (0.16 if name == PLAIN else -0.16),
                xerr=[[mean - low], [high - mean]],
                capsize=3,
                ms=7,
                **style,
            )
    axes.axvline(1.0, color=COLOURS[SWIFT], linewidth=1.4, label=LINES[SWIFT])
    axes.axhline(0.9, color="#BBBBBB", linewidth=0.8)
    axes.set_yticks([*places, 0.3], [*map(title, found.games), "geometric mean"])
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(
        xlabel="lifetime error over SwiftTD's (log scale; bars: 95 % over games)", ylim=(-0.3, len(found.games) + 1.1)
    )
    legend_above(drawing, [axes])
    return drawing


def _panels(found: Found) -> tuple[Any, list[Any]]:
    """A panel for each game."""
    columns = min(3, len(found.games))
    rows = -(-len(found.games) // columns)
    drawing, axes = figure(rows, columns, width=2.0 + 2.2 * columns, height=1.1 + 1.55 * rows)
    flat = list(axes.flat)
    for unused in flat[len(found.games) :]:
        unused.set_axis_off()
    return drawing, flat[: len(found.games)]


def curves(found: Found) -> Any:
    """The error over time, a panel for each game."""
    from matplotlib.ticker import LogLocator

    drawing, panels = _panels(found)
    x = ends(found.frames) / 1000.0
    for game, axes in zip(found.games, panels, strict=True):
        for name, label in LINES.items():
            line(axes, x, _finite(found.rows[game, name]["curve"]), name, label=label, linewidth=1.3)
        axes.set(title=title(game), yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
        low, high = axes.get_ylim()
        if high < 30.0 * low:  # too few powers of ten to read values from
            axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
            axes.yaxis.set_minor_formatter("{x:g}")
        else:
            axes.yaxis.set_minor_formatter("")
    drawing.supxlabel("frames / 1,000", fontsize=9)
    drawing.supylabel("(G − V)², mean over a window (log scale)", fontsize=9)
    legend_above(drawing, panels)
    return drawing


def predictions(found: Found) -> Any:
    """Predictions beside returns, late in the run, a panel for each game."""
    drawing, panels = _panels(found)
    late = stretch(found.frames)
    x = np.arange(late.start, late.stop) + 1
    for game, axes in zip(found.games, panels, strict=True):
        axes.plot(x, found.rows[game, SWIFT]["returns"], color="#000000", linewidth=1.6, alpha=0.55, label="return G")
        for name in (SWIFT, ADAPTED):
            line(axes, x, _finite(found.rows[game, name]["stretch"]), name, label=LINES[name], linewidth=1.1)
        axes.set_title(title(game))
        axes.set_xticks([x[0], x[-1]], [f"{x[0]:,}", f"{x[-1]:,}"])
        for label, side in zip(axes.get_xticklabels(), ("left", "right"), strict=True):
            label.set_horizontalalignment(side)
    drawing.supxlabel("frame", fontsize=9)
    drawing.supylabel("return, and its prediction", fontsize=9)
    legend_above(drawing, panels)
    return drawing


def _finite(values: Sequence[float]) -> np.ndarray:
    numbers = np.array(values)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def curve_chart(data: pa.Table) -> Chart:
    """The learning curves, one game at a time."""
    return Chart(
        data,
        x="frame",
        y="error",
        series="method",
        x_title="frame",
        y_title="(G − V)², mean over a window of frames",
        choose="game",
        log_y=True,
        title="Learning curves",
    )


def prediction_chart(data: pa.Table) -> Chart:
    """Predictions beside returns, one game at a time."""
    return Chart(
        data,
        x="frame",
        y="share",  # the axis is the same for all games
        series="method",
        x_title="frame",
        y_title="return and predictions, over the largest return of the game in these frames",
        choose="game",
        title="Predictions beside returns, late in the run",
    )
