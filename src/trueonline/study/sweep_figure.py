"""The figure of a sweep: the error over α, a line for each method at its best λ, a panel for each problem."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from trueonline import catalog
from trueonline.files import write_whole
from trueonline.look import figure, look
from trueonline.study import results

FORMATS = (".png", ".pdf", ".svg")
MORE_LOOKS: tuple[tuple[tuple[int, ...], str], ...] = (  # dashes and markers of further methods with the same look
    ((5, 2), "^"),
    ((2, 2), "v"),
    ((6, 2, 1, 2), "P"),
    ((1, 1), "X"),
)
PANELS_IN_A_ROW = 3  # panels in a row
HEADROOM = (
    1.5  # the axis ends at so many times the error before learning, or the worst of the best: larger ones do not matter
)


def check(path: str | os.PathLike) -> None:
    """ValueError where a figure cannot be drawn to this path, before anything is computed."""
    if Path(path).suffix not in FORMATS:
        raise ValueError(f"--figure must end in {', '.join(FORMATS)}, got {os.fspath(path)!r}")
    import matplotlib as mpl  # a missing matplotlib is known before hours of work, too

    del mpl


def draw(table: pa.Table, path: str | os.PathLike) -> None:
    """Draw the results of a sweep.

    Parameters
    ----------
    table : pyarrow.Table
        The results, as `trueonline.sweep` returns them, with or without labels of problems.
    path : path-like
        The picture. Its ending says the format: .png, .pdf or .svg.
    """
    check(path)
    write_whole(path, lambda file: save(table, file, Path(path).suffix[1:]))


def save(table: pa.Table, file: IO[bytes], kind: str) -> None:
    """Draw the results of a sweep to an open file, as png, pdf or svg."""
    labels, parameters = results.labels(table), results.parameters(table)
    means, best = (some.to_pylist() for some in (results.means(table), results.best(table)))
    looks = looks_of(row["method"] for row in best)
    problems = list(dict.fromkeys(tuple(row[name] for name in labels) for row in best))
    with look():
        across = min(PANELS_IN_A_ROW, len(problems))
        down = -(-len(problems) // across)
        drawn, axes = figure(down, across, width=0.6 + 3.6 * across, height=0.8 + 2.9 * down)
        for panel, problem in zip(axes.flat, problems, strict=False):
            panel.set_title(", ".join(str(part) for part in problem if part != "as_is"))
            rows = [row for row in best if tuple(row[name] for name in labels) == problem]
            for row in rows:
                keys = {name: row[name] for name in (*labels, "method", "trace_decay", *parameters)}
                line = [each for each in means if all(each[name] == value for name, value in keys.items())]
                own = "".join(f", {name} = {row[name]:g}" for name in parameters if row[name] is not None)
                _line(panel, row["method"], looks[row["method"]], f"λ = {row['trace_decay']:g}{own}", line)
            errors = [row["error"] for row in rows if math.isfinite(row["error"])]
            if errors:
                _frame(panel, max(errors))
            else:  # there is no point that could place the axes
                panel.set(xticks=(), yticks=())
                middle = {"ha": "center", "va": "center", "transform": panel.transAxes}
                panel.text(0.5, 0.5, "every method diverged\nwith every step-size", **middle)
        for panel in axes.flat[len(problems) :]:
            panel.set_visible(False)
        for panel in axes[:, 0]:
            panel.set_ylabel("mean squared error (1: before learning)")
        drawn.savefig(file, format=kind)


def looks_of(methods: Iterable[str]) -> dict[str, catalog.Look]:
    """The look of each method. Methods of your own, or one method with several η, share a colour and differ in the rest."""
    looks: dict[str, catalog.Look] = {}
    for method in dict.fromkeys(methods):
        row = _row(method)
        look = first = row.look if row is not None else catalog.Look()
        more = iter(MORE_LOOKS)
        while look in looks.values() and (other := next(more, None)) is not None:
            look = replace(first, dashes=other[0], marker=other[1])
        looks[method] = look
    return looks


def _row(method: str) -> Any:
    """The method in the catalogue, with η or without. None for a method of your own."""
    return catalog.METHODS.get(method.partition(",")[0])


def _line(panel: Any, method: str, known: catalog.Look, setting: str, points: list[dict[str, Any]]) -> None:
    """One method: the mean error with its standard error over the step-sizes that did not diverge."""
    row = _row(method)
    title = method if row is None else method.replace(row.name, row.title, 1)
    points = sorted((point for point in points if math.isfinite(point["error"])), key=lambda point: point["step_size"])
    x, y = ([point[name] for point in points] for name in ("step_size", "error"))
    dashes = {"dashes": known.dashes} if known.dashes else {}
    style = {"color": known.colour, "marker": known.marker, "markersize": 3.5, "linewidth": 1.5, **dashes}
    panel.plot(x, y, label=f"{title}, {setting}", **style)
    spread = [point["standard_error"] or 0.0 for point in points]
    low, high = ([value + sign * error for value, error in zip(y, spread, strict=True)] for sign in (-1.0, 1.0))
    panel.fill_between(x, low, high, color=known.colour, alpha=0.15, linewidth=0)


def _frame(panel: Any, worst: float) -> None:
    """Axes that show the best error of every method, the worst of which is given."""
    from matplotlib.ticker import LogLocator, NullFormatter

    panel.set_xscale("log")
    # 0.1, 0.2, 0.5, or powers of 10 over a wide range: matplotlib's own labels would run into each other.
    low, high = panel.get_xlim()
    panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300.0 * low else (1.0,)))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("step-size α (band: standard error over runs)")
    panel.set_ylim(0.0, min(panel.get_ylim()[1], HEADROOM * max(worst, 1.0)))
    panel.legend(loc="best")
