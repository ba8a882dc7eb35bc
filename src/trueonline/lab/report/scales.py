"""The axes of a chart: the same for all its panels and choices, so that they can be compared."""

from __future__ import annotations

import math
from typing import Any

from trueonline.lab.report.columns import Columns
from trueonline.lab.report.parts import Chart

NUMBER = "format(datum.value, '.6~g')"


def x_axis(chart: Chart, columns: Columns) -> dict[str, Any]:
    """Scale and axis of x, as keywords of an encoding."""
    return _axis("log" if chart.log_x else "linear", _padded(columns.x, chart.log_x))


def y_axis(chart: Chart, columns: Columns, kind: str) -> dict[str, Any]:
    """Scale and axis of y, as keywords of an encoding."""
    return _axis(kind, y_domain(chart, columns, kind))


def y_domain(chart: Chart, columns: Columns, kind: str) -> list[float]:
    """The caller's domain, or the range of the data with a margin."""
    floor = columns.floor or 1.0
    if chart.y_domain is not None:
        low, high = chart.y_domain
        return [floor if kind == "log" and low <= 0 else low, high]
    if kind == "log":
        return _padded((floor, max(columns.y[1], floor)), log=True)
    low, high = _padded(columns.y, log=False)
    return [0.0 if 0 <= columns.y[0] < high / 2 else low, high]  # from 0 if 0 is near


def _axis(kind: str, domain: list[float]) -> dict[str, Any]:
    import altair as alt

    ticks = log_ticks(*domain) if kind == "log" else []
    axis = alt.Axis(title=None, labelExpr=NUMBER, values=ticks) if ticks else alt.Axis(title=None, labelExpr=NUMBER)
    return {"scale": alt.Scale(type=kind, domain=domain, nice=False), "axis": axis}  # type: ignore[arg-type]


def log_ticks(low: float, high: float) -> list[float]:
    """About six round numbers between two numbers. If there is no room for them, none, and Vega chooses.

    >>> log_ticks(0.2, 5), log_ticks(9e-4, 2), log_ticks(0.2, 0.5)
    ([0.2, 0.5, 1.0, 2.0, 5.0], [0.001, 0.01, 0.1, 1.0], [])
    """
    decades = math.log10(high) - math.log10(low)
    if decades < 0.7:
        return []
    every, leading = max(1, round(decades / 6)), (1, 2, 5) if decades < 2.2 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [float(f"{first}e{power}") for power in powers if power % every == 0 for first in leading]
    return [tick for tick in ticks if low <= tick <= high]


def _padded(domain: tuple[float, float], log: bool) -> list[float]:
    """The domain with a margin, so that no point lies on the frame."""
    low, high = domain
    if log:
        air = (high / low) ** 0.04 if high > low else 2.0
        return [low / air, high * air]
    air = 0.03 * (high - low) if high > low else 0.5
    return [low - air, high + air]
