"""The figure of a sweep: the error over one parameter, a line for each method at its best others, a panel for each problem."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trueonline import catalog
from trueonline.catalog import BLUE, GREEN, GREY, PINK, SKY, VERMILION
from trueonline.files import write_whole
from trueonline.look import figure, look
from trueonline.study import results

FORMATS = (".png", ".pdf", ".svg")
COLOURS = (BLUE, VERMILION, GREEN, PINK, SKY, "#E69F00", GREY, "#332288")  # of methods that have no look of their own
MORE_LOOKS: tuple[tuple[tuple[int, ...], str], ...] = (  # dashes and markers of further methods with the same look
    ((5, 2), "^"),
    ((2, 2), "v"),
    ((6, 2, 1, 2), "P"),
    ((1, 1), "X"),
)
SYMBOLS = {"step_size": "α", "trace_decay": "λ", "eta": "η"}
NAMES = {"step_size": "step-size α", "trace_decay": "trace decay λ", "eta": "η = β/α"}
PANELS_IN_A_ROW = 3
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
    """Draw the results of a sweep to an open file, as png, pdf or svg: a panel for each problem."""
    problems = results.problems(table)
    with look():
        across = min(PANELS_IN_A_ROW, len(problems))
        down = -(-len(problems) // across)
        drawn, axes = figure(down, across, width=0.6 + 3.6 * across, height=0.8 + 2.9 * down)
        for panel, (problem, some) in zip(axes.flat, problems.items(), strict=False):
            plot(some, axes=panel)
            panel.set_title(", ".join(str(part) for part in problem if part != "as_is"))
        for panel in axes.flat[len(problems) :]:
            panel.set_visible(False)
        for panel in axes[:, 1:].flat:
            panel.set_ylabel("")
        drawn.savefig(file, format=kind)


def plot(
    table: pa.Table,
    x: str = "step_size",
    *,
    interval: float = 0.95,
    axes: Any = None,
    titles: Mapping[str, str] | None = None,
    looks: Mapping[str, catalog.Look] | None = None,
) -> Any:
    """Draw the mean error over one parameter: a line for each method, at its best values of all other parameters.

    Parameters
    ----------
    table : pyarrow.Table or data frame
        The results of a sweep on one problem, as `trueonline.sweep` returns them, or a data frame of them.
    x : str
        The parameter: "step_size", "trace_decay", or one of the sweep's `parameters`. A method without it is a level line.
    interval : float
        The level of the bands: intervals for the mean over runs, by Student's t.
    axes : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure.
    titles : mapping, optional
        Titles of methods by their names in the table, for the legend.
    looks : mapping, optional
        Looks of methods by their names: `catalog.Look(colour, dashes, marker)`. By default methods have those of the catalogue,
        and yours have colours that no other line has, as far as there are some.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. `axes.figure.savefig(...)` saves the picture.

    Raises
    ------
    ValueError
        If the table has results of several problems, or lacks a column or a value, or if `x` or `interval` is not one of those
        above.

    Examples
    --------
    >>> import trueonline as to
    >>> table = to.sweep(to.problems.random_walk(), step_sizes=[0.1, 0.2, 0.4], trace_decays=[0.0, 0.8], runs=5)
    >>> axes = to.study.plot(table, x="trace_decay")
    >>> len(axes.lines), axes.get_xlabel()
    (3, 'trace decay λ (band: 95 % interval over 5 runs)')
    """
    table = results.read(table)
    parameters = ["step_size", "trace_decay", *results.parameters(table)]
    if x not in parameters:
        raise ValueError(f"x must be one of {', '.join(parameters)}, got {x!r}")
    if len(results.problems(table)) > 1:
        raise ValueError(
            f"the table has results of {len(results.problems(table))} problems: choose one, such as "
            f"table.filter(pyarrow.compute.field({results.labels(table)[0]!r}) == ...)"
        )
    runs, means, best = results.runs(table), results.means(table, interval), results.best(table).to_pylist()
    looks = {**looks_of(row["method"] for row in best), **(looks or {})}
    with look():
        panel = figure(1, 1, width=5.0, height=3.6)[1][0, 0] if axes is None else axes
        for row in best:
            others = {name: row[name] for name in parameters if name != x}
            line = pc.field("method") == row["method"]
            for name, value in others.items():
                line &= pc.field(name).is_null() if value is None else pc.field(name) == value
            setting = "".join(
                f", {SYMBOLS.get(name, name)} = {others[name]:g}" for name in others if others[name] is not None
            )
            title = (titles or {}).get(row["method"], _title(row["method"]))
            _line(panel, title + setting, looks[row["method"]], x, means.filter(line))
        errors = [row["error"] for row in best if math.isfinite(row["error"])]
        if errors:
            _frame(panel, x, max(errors), f"band: {100.0 * interval:g} % interval over {runs:,} run{'s'[: runs != 1]}")
        else:  # there is no point that could place the axes
            panel.set(xticks=(), yticks=())
            middle = {"ha": "center", "va": "center", "transform": panel.transAxes}
            panel.text(0.5, 0.5, f"every method diverged\nwith every {NAMES.get(x, x)}", **middle)
        panel.set_ylabel("mean squared error (1: before learning)")
    return panel


def looks_of(methods: Iterable[str]) -> dict[str, catalog.Look]:
    """The look of each method: that of the catalogue, or a colour that no other has. Several η of one method share a colour."""
    rows = {method: catalog.METHODS.get(method.partition(",")[0]) for method in methods}
    looks: dict[str, catalog.Look] = {}
    used = {row.look.colour for row in rows.values() if row is not None}
    free = cycle([colour for colour in COLOURS if colour not in used] or COLOURS)
    for method, row in rows.items():
        look = first = catalog.Look(next(free)) if row is None else row.look
        more = iter(MORE_LOOKS)
        while look in looks.values() and (other := next(more, None)) is not None:
            look = replace(first, dashes=other[0], marker=other[1])
        looks[method] = look
    return looks


def _title(method: str) -> str:
    row = catalog.METHODS.get(method.partition(",")[0])
    return method if row is None else method.replace(row.name, row.title, 1)


def _line(panel: Any, title: str, known: catalog.Look, x: str, points: pa.Table) -> None:
    """One method: the mean error with its interval, over the values with which it did not diverge. Without `x`: a level line."""
    points = points.filter(pc.is_finite(points["error"])).sort_by(x)
    at, error, half = (np.array(points[name].to_pylist(), float) for name in (x, "error", "half_width"))
    dashes = {"dashes": known.dashes} if known.dashes else {}
    half = np.nan_to_num(half)
    if np.isnan(at).any():
        panel.axhline(error[0], label=title, color=known.colour, linewidth=1.5, **dashes)
        panel.axhspan(error[0] - half[0], error[0] + half[0], color=known.colour, alpha=0.15, linewidth=0)
        return
    panel.plot(at, error, label=title, color=known.colour, marker=known.marker, markersize=3.5, linewidth=1.5, **dashes)
    panel.fill_between(at, error - half, error + half, color=known.colour, alpha=0.15, linewidth=0)


def _frame(panel: Any, x: str, worst: float, band: str) -> None:
    """Axes that show the best error of every method, the worst of which is given."""
    from matplotlib.ticker import LogLocator, NullFormatter

    if x == "step_size":
        panel.set_xscale("log")
        # 0.1, 0.2, 0.5, or powers of 10 over a wide range: matplotlib's own labels would run into each other.
        low, high = panel.get_xlim()
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300.0 * low else (1.0,)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel(f"{NAMES.get(x, x)} ({band})")
    panel.set_ylim(0.0, min(panel.get_ylim()[1], HEADROOM * max(worst, 1.0)))
    panel.legend(loc="best")
