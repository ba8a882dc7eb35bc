"""A chart's table as compact columns. Their names are fixed, so that no name of a caller has a meaning for Vega."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trueonline.lab.report.parts import Chart

DIGITS = 5  # more cannot be seen, and floats of 17 digits would be most of a page's weight
GROUPS = {
    "series": "series",
    "rows": "row",
    "columns": "column",
    "choose": "choice",
}  # role in a Chart → name in the page


@dataclass(frozen=True)
class Columns:
    """The columns of a table for the page, and the ranges for the axes."""

    packed: dict[str, Any]  # name → values, or {"values": distinct ones, "codes": which of them}
    labels: dict[str, list[str]]  # the labels of each group, in order
    slides: bool  # the choice is among numbers
    x: tuple[float, float]
    y: tuple[float, float]
    floor: float | None  # the smallest y > 0, or None if a logarithmic axis would be empty
    notes: dict[str, str]


def pack(chart: Chart) -> Columns:
    """The columns that a chart draws. Rows without a place on the x axis are left out and counted."""
    roles = [role for role in ("x", "y", "low", "high", *GROUPS) if getattr(chart, role) is not None]
    read = {role: chart.data[getattr(chart, role)].to_pylist() for role in roles}
    finite = {role: [_finite(value, chart, role) for value in read[role]] for role in roles if role not in GROUPS}
    keep = [i for i, x in enumerate(finite["x"]) if x is not None and (x > 0 or not chart.log_x)]
    if not keep:
        raise ValueError(
            f"the chart {chart.title!r} has no row with a finite {chart.x}{' > 0' * chart.log_x}; nothing to draw"
        )
    xs = [float(finite["x"][i] or 0) for i in keep]
    heights = [role for role in finite if role != "x"]
    packed: dict[str, Any] = {"x": _coded(xs, sorted(set(xs)))}
    packed |= {role: [_rounded(finite[role][i]) for i in keep] for role in heights}
    labels, numeric = {}, {}
    for role in [role for role in GROUPS if role in read]:
        values = [read[role][i] for i in keep]
        name, numeric[role] = GROUPS[role], all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        distinct = sorted(set(values)) if numeric[role] else list(dict.fromkeys(values))
        heading = f"{words(getattr(chart, role))} = " if numeric[role] and name in ("row", "column") else ""
        labels[name] = [heading + label(value) for value in distinct]
        packed[name] = _coded(values, distinct, range(len(distinct)) if name == "choice" else labels[name])
    drawn = [v for role in heights for v in packed[role] if v is not None] or [0.0, 1.0]
    return Columns(
        packed,
        labels,
        slides=numeric.get("choose", False),
        x=(min(xs), max(xs)),
        y=(min(drawn), max(drawn)),
        floor=min((y for y in packed["y"] if y is not None and y > 0), default=None),
        notes=_notes(chart, chart.data.num_rows - len(keep), packed["y"]),
    )


def label(value: object) -> str:
    """A value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def words(name: str) -> str:
    """A column's name as people read it."""
    return name.replace("_", " ")


def _finite(value: Any, chart: Chart, role: str) -> float | None:
    """None for a value that JSON cannot hold. The line has a gap there, since there is nothing to draw."""
    try:
        return float(value) if value is not None and math.isfinite(value) else None
    except TypeError:
        raise ValueError(f"{role} must be a column of numbers, got {value!r} in {getattr(chart, role)!r}") from None


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _coded(values: list[Any], distinct: list[Any], shown: Sequence[Any] | None = None) -> Any:
    """Repeated values are sent once, with small numbers that point to them. This also keeps them exact."""
    if shown is None and 2 * len(distinct) > len(values):
        return [float(f"{value:.9g}") for value in values]
    code = {value: i for i, value in enumerate(distinct)}
    return {"values": list(distinct if shown is None else shown), "codes": [code[value] for value in values]}


def _notes(chart: Chart, unplaced: int, ys: list[float | None]) -> dict[str, str]:
    """Notes about points that are not shown, for each kind of y axis."""
    bottom, top = chart.y_domain or (-math.inf, math.inf)
    notes = {}
    for kind, least in {"linear": -math.inf, "log": math.ulp(0)}.items():
        counts = {
            "that are not finite": sum(y is None for y in ys),
            "above or below the y axis": sum(y is not None and not max(bottom, least) <= y <= top for y in ys),
            "without a place on the x axis": unplaced,
        }
        parts = ", ".join(f"{count:,} {which}" for which, count in counts.items() if count)
        notes[kind] = f"Not shown, of {unplaced + len(ys):,} points: {parts}." if parts else ""
    return notes
