"""The results of sections, and their display: aligned on the terminal, as Markdown, and as JSON, which can be read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from textwrap import fill
from typing import Any


@dataclass(frozen=True)
class Settings:
    """How to run: how thoroughly, and what single sections need."""

    quick: bool
    pictures: Path | None  # the folder for pictures
    peers_python: str  # the interpreter in which other packages are looked for
    actions: Path | None = None  # the folder of recorded actions of games
    frames: int = 60_000  # of each recorded game

    @property
    def rounds(self) -> int:
        return 3 if self.quick else 7


@dataclass(frozen=True)
class Ratio:
    """The median over the rounds, and the smallest and largest."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{short(self.median)}× ({short(self.low)}–{short(self.high)})"


@dataclass(frozen=True)
class Seconds:
    seconds: float

    def __str__(self) -> str:
        for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
            if self.seconds * scale >= 0.9995:
                return f"{short(self.seconds * scale)} {unit}"
        return f"{short(self.seconds * 1e9)} ns"


@dataclass(frozen=True)
class Bytes:
    bytes: int

    def __str__(self) -> str:
        return f"{self.bytes / 1e6:,.1f} MB"


def short(value: float) -> str:
    """Three digits, more where there are more before the point."""
    if value >= 1000.0:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 0.01 else f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


@dataclass(frozen=True)
class Table:
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Target:
    name: str
    wanted: str
    measured: Any
    met: bool

    @property
    def verdict(self) -> str:
        return "met" if self.met else "NOT met"


@dataclass
class Section:
    title: str
    about: str
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)  # file → what it shows


def at_most(name: str, limit: float, ratio: Ratio) -> Target:
    return Target(name, f"≤ {limit:g}×", ratio, ratio.median <= limit)


def at_least(name: str, limit: float, ratio: Ratio) -> Target:
    return Target(name, f"≥ {limit:g}×", ratio, ratio.median >= limit)


def summary(targets: Sequence[Target]) -> Table:
    rows = [(target.name, target.wanted, target.measured, target.verdict) for target in targets]
    return Table(("target", "wanted", "measured", "verdict"), rows)


def as_text(section: Section) -> str:
    parts = [f"=== {section.title} ===", fill(section.about, 100), *map(_text_table, section.tables)]
    if section.targets:
        parts.append(_text_table(summary(section.targets)))
    return "\n\n".join([*parts, *(fill(note, 100) for note in section.notes)]) + "\n"


def as_markdown(section: Section, pictures: str) -> str:
    """The section as a part of a page. `pictures` is the way from the page to the folder with the pictures."""
    parts = [f"## {section.title}", section.about, *map(markdown_table, section.tables)]
    parts += [f"![{what}]({pictures}/{file})" for file, what in section.pictures.items()]
    if section.targets:
        parts.append(markdown_table(summary(section.targets)))
    return "\n\n".join([*parts, *section.notes]) + "\n"


def markdown_table(table: Table) -> str:
    rule = ["---:" if numbers else "---" for numbers in _numeric(table)]
    lines = [table.columns, rule, *table.rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _text_table(table: Table) -> str:
    lines = [[str(cell) for cell in line] for line in (table.columns, *table.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    align = [str.rjust if numbers else str.ljust for numbers in _numeric(table)]
    shown = ["  ".join(align[i](cell, widths[i]) for i, cell in enumerate(line)).rstrip() for line in lines]
    return "\n".join([shown[0], "─" * (sum(widths) + 2 * len(widths) - 2), *shown[1:]])


def _numeric(table: Table) -> list[bool]:
    """For each column, whether it holds numbers, which stand to the right: by how most of its cells begin."""
    columns = [[str(row[i]) for row in table.rows] for i in range(len(table.columns))]
    return [2 * sum(cell[:1].isdigit() or cell[:1] in "–≤≥" for cell in cells) > len(cells) for cells in columns]


def as_data(value: Any) -> Any:
    """Anything above as what JSON knows."""
    if isinstance(value, Target):
        return {"name": value.name, "wanted": value.wanted, "measured": as_data(value.measured), "met": bool(value.met)}
    if isinstance(value, Section):
        return {
            name: as_data(getattr(value, name)) for name in ("title", "about", "tables", "targets", "notes", "pictures")
        }
    if isinstance(value, Table):
        return {"columns": list(value.columns), "rows": as_data(value.rows)}
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple):
        return [as_data(item) for item in value]
    return value if isinstance(value, int | float | bool | dict | None) else str(value)


def from_data(data: dict[str, Any]) -> Section:
    """The section that `as_data` made this of."""
    tables = [Table(table["columns"], [list(map(_cell, row)) for row in table["rows"]]) for table in data["tables"]]
    targets = [Target(**{**target, "measured": _cell(target["measured"])}) for target in data["targets"]]
    return Section(data["title"], data["about"], tables, targets, data["notes"], data["pictures"])


def _cell(value: Any) -> Any:
    """A number with its unit again. A type that JSON has stays as it was."""
    if not isinstance(value, dict):
        return value
    return next(kind(**value) for kind in (Ratio, Seconds, Bytes) if {part.name for part in fields(kind)} == set(value))
