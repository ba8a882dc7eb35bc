"""A chart's place in the page: title, legend, controls, the box of the chart, and its specification and data as JSON."""

from __future__ import annotations

import json
import math
from html import escape

from trueonline.lab.report.charts import legend, panels_across, specifications
from trueonline.lab.report.columns import Columns, pack, words
from trueonline.lab.report.parts import Chart


def figure(chart: Chart) -> str:
    """The HTML of a chart."""
    columns = pack(chart)
    choices = columns.labels.get("choice")
    start = len(choices) // 2 if choices and columns.slides else 0  # at an end methods often coincide
    specs = specifications(chart, columns, start)
    data = {
        "columns": columns.packed,
        "specs": specs,
        "notes": columns.notes,
        "choices": choices,
        "titles": _titles(chart),
        "across": panels_across(columns),
        "panels": math.prod(len(columns.labels.get(name, [""])) for name in ("row", "column")),
        "headed": "row" in columns.labels,
    }
    name = escape(chart.title or chart.y_title)
    caption = f"<figcaption>{escape(chart.title)}</figcaption>" if chart.title else ""
    controls = _choice(chart, columns, start) + (_switch(chart.log_y) if "log" in specs else "")
    # "<" is the only character by which text could leave a script element.
    packed = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure>{caption}<div class="controls">{_legend(chart, columns)}{controls}</div>'
        f'<p class="axis">↑ {escape(chart.y_title)}</p>'
        f'<div class="plot" tabindex="0" role="group" aria-label="{name}"><div></div></div>'
        f'<p class="axis x">{escape(chart.x_title)} →</p><p class="note"></p>'
        f'<script type="application/json">{packed}</script></figure>'
    )


def _titles(chart: Chart) -> dict[str, str]:
    """The titles of the values in a tooltip."""
    words_of = {"series": chart.series, "row": chart.rows, "column": chart.columns}
    numbers = {"x": chart.x_title, "y": chart.y_title, "low": chart.low, "high": chart.high}
    return {name: words(title) for name, title in (words_of | numbers).items() if title is not None}


def _legend(chart: Chart, columns: Columns) -> str:
    """A button for each series, which hides or shows it."""
    buttons = [
        f'<button type="button" aria-pressed="true" data-name="{escape(name)}" title="hide or show">'
        f'<svg width="26" height="8" aria-hidden="true"><line x1="0" x2="26" y1="4" y2="4" stroke-width="2.5" '
        f'stroke="{escape(colour)}" stroke-dasharray="{" ".join(map(str, dash))}"/></svg>{escape(name)}</button>'
        for name, colour, dash in legend(chart, columns)
    ]
    return f'<div class="legend">{"".join(buttons)}</div>'


def _choice(chart: Chart, columns: Columns, start: int) -> str:
    """A slider for numbers, a menu for words. Both count from 0, so that uneven grids work too."""
    if chart.choose is None:
        return ""
    labels, name = columns.labels["choice"], escape(words(chart.choose))
    if columns.slides:
        slider = f'<input class="choice" type="range" min="0" max="{len(labels) - 1}" value="{start}" autocomplete="off">'
        return f"<label>{name} {slider}<output>{escape(labels[start])}</output></label>"
    options = "".join(f'<option value="{i}">{escape(label)}</option>' for i, label in enumerate(labels))
    return f'<label>{name} <select class="choice" autocomplete="off">{options}</select></label>'


def _switch(log: bool) -> str:
    return f'<label><input class="log" type="checkbox" autocomplete="off"{" checked" * log}>log y axis</label>'
