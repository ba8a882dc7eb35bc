"""A chart as Vega-Lite, checked by Altair: one specification for a linear y axis, one for a logarithmic one.

Colours and panels are in the specification. Legend, choice and switch of the scale are plain HTML (figures.py), which
wraps on a phone and works with a keyboard. They control the chart by two parameters, `shown` and `chosen`.
"""

from __future__ import annotations

import math
from typing import Any

from trueonline.lab.report.columns import Columns
from trueonline.lab.report.parts import Chart
from trueonline.lab.report.scales import x_axis, y_axis, y_domain

# Okabe and Ito's colours, which colour-blind people can tell apart, for series without a colour of the caller.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
WRAP = 4  # more panels than this in the only direction are broken into lines of three
DOTS = 40  # lines of more points than this are drawn without dots


def legend(chart: Chart, columns: Columns) -> list[tuple[str, str, list[float]]]:
    """Name, colour and dashes of each series, first those in the caller's order."""
    present = columns.labels["series"]
    names = [name for name in chart.colours if name in present] + [name for name in present if name not in chart.colours]
    return [
        (n, chart.colours.get(n, PALETTE[i % len(PALETTE)]), list(chart.dashes.get(n, ()))) for i, n in enumerate(names)
    ]


def panels_across(columns: Columns) -> int:
    """The number of panels side by side."""
    count = len(columns.labels.get("column", [""]))
    return 3 if "row" not in columns.labels and count > WRAP else count


def specifications(chart: Chart, columns: Columns, start: int) -> dict[str, Any]:
    """Vega-Lite for each kind of y axis. Its data is the named source `rows`, which the page fills; `start` is chosen."""
    kinds = ["linear"] if columns.floor is None else ["linear", "log"]
    return {kind: _specification(chart, columns, start, kind) for kind in kinds}


def _specification(chart: Chart, columns: Columns, start: int, kind: str) -> dict[str, Any]:
    import altair as alt

    layers = alt.layer(*_layers(chart, columns, kind), data=alt.NamedData("rows"))
    shown = alt.param(name="shown", value=[name for name, _, _ in legend(chart, columns)])
    layers = layers.add_params(shown).transform_filter("indexof(shown, datum.series) >= 0")
    if chart.choose is not None:
        layers = layers.add_params(alt.param(name="chosen", value=start)).transform_filter("datum.choice === chosen")
    if kind == "log":
        layers = layers.transform_calculate(y="datum.y > 0 ? datum.y : null")
    if kind == "log" and chart.low is not None:  # a band that reaches 0 extends to the edge of the panel
        edge = y_domain(chart, columns, kind)[0]
        layers = layers.transform_calculate(low=f"isValid(datum.low) ? max(datum.low, {edge}) : null")
    spec = _in_panels(layers, columns).to_dict()
    del spec["$schema"], spec["config"]  # the page has these once for all charts
    return spec


def _layers(chart: Chart, columns: Columns, kind: str) -> list[Any]:
    """The interval, the line, and points that show their values when the pointer is near."""
    import altair as alt

    series = legend(chart, columns)
    names = [name for name, _, _ in series]
    x, y = x_axis(chart, columns), y_axis(chart, columns, kind)
    colour = alt.Color("series:N", legend=None, scale=alt.Scale(domain=names, range=[colour for _, colour, _ in series]))
    dashes = alt.Scale(domain=names, range=[dash or [1, 0] for _, _, dash in series])
    base = alt.Chart().encode(alt.X("x:Q", **x), alt.Y("y:Q", **y), colour)
    line = base.mark_line(clip=True, strokeWidth=1.8).encode(alt.StrokeDash("series:N", legend=None, scale=dashes))

    hover = alt.selection_point(name="hover", on="pointerover", clear="pointerout", nearest=True, empty=False)
    lines = math.prod(len(labels) for labels in columns.labels.values())
    rest = 20 if len(columns.packed["y"]) / lines <= DOTS else 0
    size = alt.when(hover).then(alt.value(110)).otherwise(alt.value(rest))
    # The tooltip only has to exist: page.js writes it, because Vega-Lite 6.4 loses the words of nearest points.
    points = base.mark_point(clip=True, filled=True, opacity=1).encode(size=size, tooltip=alt.Tooltip("y:Q"))
    points = points.add_params(hover).properties(name="points")  # a fixed name, since Altair's own names count up
    if chart.low is None:
        return [line, points]
    return [base.mark_area(clip=True, opacity=0.16).encode(alt.Y("low:Q", **y), alt.Y2("high:Q")), line, points]


def _in_panels(layers: Any, columns: Columns) -> Any:
    import altair as alt

    kinds, header = {"row": alt.Row, "column": alt.Column}, alt.Header(title=None)
    given = {name: columns.labels[name] for name in kinds if name in columns.labels}
    if not given:
        return layers
    if panels_across(columns) < len(given.get("column", [])):
        return layers.facet(
            facet=alt.Facet("column:N", sort=given["column"], header=header), columns=panels_across(columns)
        )
    return layers.facet(**{name: kinds[name](f"{name}:N", sort=labels, header=header) for name, labels in given.items()})
