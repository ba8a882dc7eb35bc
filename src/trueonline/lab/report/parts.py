"""The parts of a report, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Chart:
    """Lines over x: one colour for each series, one panel for each value of `rows` and `columns`.

    The chart shows one value of the column `choose` at a time. A slider chooses among numbers, a menu among words. The axes
    do not change with the choice, so that values can be compared. Infinities and NaN break a line, and the page counts them.
    """

    data: pa.Table  # tidy rows
    x: str
    y: str
    series: str
    x_title: str
    y_title: str
    rows: str | None = None
    columns: str | None = None
    choose: str | None = None
    low: str | None = None  # with high: an interval around y, drawn as a band
    high: str | None = None
    log_x: bool = False
    log_y: bool = False  # how the page opens; a switch in the page changes it
    y_domain: tuple[float, float] | None = None
    colours: Mapping[str, str] = field(default_factory=dict)  # series → colour; also the order of the legend
    dashes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    title: str = ""

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high are the two ends of one interval: give both or neither")
        for role in ("x", "y", "series", "rows", "columns", "choose", "low", "high"):
            name = getattr(self, role)
            if name is not None and name not in self.data.column_names:
                raise ValueError(f"{role} must name a column of the table, got {name!r}; it has {self.data.column_names}")
        if self.y_domain is not None and not self.y_domain[0] < self.y_domain[1]:
            raise ValueError(f"y_domain must be two numbers, the smaller first, got {self.y_domain}")


@dataclass(frozen=True)
class Section:
    """One figure or question of the study: its text, its charts and its claims."""

    name: str  # the anchor: report.html#name
    title: str
    text: str  # paragraphs, with blank lines between them
    charts: Sequence[Chart]
    verdicts: Sequence[Mapping[str, Any]]  # {"claim": …, "verdict": …, "numbers": {…}}
    seconds: float
    files: Sequence[str] = ()  # relative to the page
    picture: bytes | None = None  # a PNG that becomes part of the page

    def __post_init__(self) -> None:
        for file in self.files:
            if PurePosixPath(file).is_absolute() or ":" in file:
                raise ValueError(f"files must be paths relative to the page, got {file!r}")
