"""The page: pictures, tables and verdicts of some experiments as one HTML file. It needs no script and no network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import PurePosixPath
from string import Template
from typing import Any
from urllib.parse import quote

from trueonline.files import write_whole
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Claim
from trueonline.lab.report import svg
from trueonline.words import cell, count, duration

TITLE = "True online TD learning: what the reproduction found"
# verdict → symbol and class. The symbol is for readers who cannot tell the colours apart
MARKS = {HOLDS: ("✓", "holds"), FAILS: ("✗", "fails"), NOISE: ("≈", "noise")}
NO_CLAIMS = '<td class="quiet" colspan="2">no claims judged</td>'
SHORT_TABLE = 16  # rows. A longer table is folded


@dataclass(frozen=True)
class Section:
    """One experiment on the page: its text, pictures, claims and best rows."""

    name: str  # the anchor: report.html#name
    title: str
    text: str  # paragraphs, with blank lines between them
    claims: Sequence[Claim]
    seconds: float
    pictures: Mapping[str, str] = field(default_factory=dict)  # name → SVG
    failures: Mapping[str, str] = field(default_factory=dict)  # name of a picture → why it could not be drawn
    table: tuple[str, Sequence[str], Sequence[Sequence[Any]]] | None = None  # a sentence, headings and rows
    files: Sequence[str] = ()  # relative to the page

    def __post_init__(self) -> None:
        for file in self.files:
            if PurePosixPath(file).is_absolute() or ":" in file:
                raise ValueError(f"files must be paths relative to the page, got {file!r}")


def build(path: str | os.PathLike, sections: Sequence[Section], about: Mapping[str, str], title: str = TITLE) -> None:
    """Write the report of some experiments. The file is written completely or not at all."""
    names = [section.name for section in sections]
    if len(set(names)) < len(names):
        raise ValueError(f"the sections of a report must have different names, got {names}")
    pictures = {
        section.name: {name: svg.for_page(each, f"{section.name}-{name}") for name, each in section.pictures.items()}
        for section in sections
    }
    light, dark = svg.variables(picture for some in pictures.values() for picture in some.values())
    page = Template(_part("page.html")).substitute(
        style=_part("page.css"),
        light=light,
        dark=dark,
        title=escape(title),
        summary=escape(summary([claim for section in sections for claim in section.claims])),
        verdicts=_all_verdicts(sections),
        sections="\n".join(_section(section, pictures[section.name]) for section in sections),
        about=_rows(about),
    )
    write_whole(path, lambda file: file.write(page.encode()))


def summary(claims: Sequence[Claim]) -> str:
    """The outcome in a sentence, and how many claims had too few samples to be decided."""
    if not claims:
        return "No claims were judged."
    verdicts = [claim.verdict for claim in claims]
    holds, fails, noise = (verdicts.count(verdict) for verdict in MARKS)
    parts = [f"{holds} of {count(len(claims), 'claim')} {'holds' if len(claims) == 1 else 'hold'}"]
    parts += [f"{noise} within noise"] if noise else []
    parts += [f"{fails} {'does' if fails == 1 else 'do'} not"] if fails else []
    few = sum(claim.undecidable for claim in claims)
    return ", ".join(parts) + "." + (f" {few} cannot be decided, because there were too few runs." if few else "")


def _all_verdicts(sections: Sequence[Section]) -> str:
    """A table of every claim, and links to all sections, also to those without claims."""
    groups = []
    for section in sections:
        rows = [f"<td>{_mark(claim)}</td><td>{escape(claim.claim)}</td>" for claim in section.claims]
        head = f'<th scope="rowgroup" rowspan="{max(1, len(rows))}">{_link(section)}</th>'
        groups.append(f"<tbody><tr>{head}{'</tr><tr>'.join(rows) or NO_CLAIMS}</tr></tbody>")
    return f'<table class="verdicts">{"".join(groups)}</table>'


def _section(section: Section, pictures: Mapping[str, str]) -> str:
    paragraphs = "".join(
        f"<p>{escape(' '.join(text.split()))}</p>" for text in section.text.split("\n\n") if text.strip()
    )
    shown = "".join(_figure(section, name, picture) for name, picture in pictures.items())
    shown += "".join(
        f'<p class="fails">The picture {escape(name)} could not be drawn: {escape(why)}</p>'
        for name, why in section.failures.items()
    )
    claims = "".join(f"<li>{_claim(claim)}</li>" for claim in section.claims)
    links = ", ".join(f'<a href="{escape(quote(file))}">{escape(file)}</a>' for file in section.files)
    return (
        f'<section id="{escape(section.name)}"><h2>{escape(section.title)}</h2>{paragraphs}{shown}'
        + (f'<h3>Claims</h3><ul class="claims">{claims}</ul>' if claims else "")
        + ("" if section.table is None else _table(*section.table))
        + f'<p class="quiet files">{f"Files: {links}. " if links else ""}Took {duration(section.seconds)}.</p></section>'
    )


def _figure(section: Section, name: str, picture: str) -> str:
    """A picture in a box of its own, which scrolls where the page is too narrow for it."""
    words = "" if name == "figure" else " ".join(word.upper() if len(word) == 1 else word for word in name.split("-"))
    caption = f"<figcaption>{escape(words[:1].upper() + words[1:])}</figcaption>" if words else ""
    label = escape(f"{section.title}: {words}" if words else section.title)
    return (
        f'<figure>{caption}<div class="picture" tabindex="0" role="group" aria-label="{label}">{picture}</div></figure>'
    )


def _table(about: str, headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th{_kind(value)}>{escape(each)}</th>" for each, value in zip(headings, rows[0], strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    shown = f'<div class="wide" tabindex="0"><table class="best"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    folded = f"<details><summary>{escape(about.rstrip(':'))} ({len(rows)} rows)</summary>{shown}</details>"
    return "<h3>Numbers</h3>" + (folded if len(rows) > SHORT_TABLE else f"<p>{escape(about)}</p>{shown}")


def _cell(value: Any) -> str:
    return f"<td{_kind(value)}>{escape(label(value))}</td>"


def _kind(value: Any) -> str:
    """The class of a cell: numbers are on the right."""
    return ' class="number"' if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _claim(claim: Claim) -> str:
    said = f"{_mark(claim)} {escape(claim.claim)}"
    numbers = _rows({key: label(value) for key, value in claim.numbers.items()})
    return f'<details><summary>{said}</summary><table class="numbers">{numbers}</table></details>' if numbers else said


def label(value: object) -> str:
    """A value as people read it.

    >>> label(0.123456), label([1.0, -2.00001]), label(True), label(float("inf"))
    ('0.1235', '1, −2', 'yes', '∞')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(label, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else cell(value).replace("inf", "∞").replace("-", "−")


def _mark(claim: Claim) -> str:
    symbol, kind = MARKS[claim.verdict]
    return f'<span class="verdict {kind}">{symbol} {escape(claim.verdict)}</span>'


def _link(section: Section) -> str:
    return f'<a href="#{escape(quote(section.name))}">{escape(section.title)}</a>'


def _rows(pairs: Mapping[str, Any]) -> str:
    return "".join(f"<tr><th>{escape(str(key))}</th><td>{escape(str(value))}</td></tr>" for key, value in pairs.items())


def _part(name: str) -> str:
    return files("trueonline.lab.report").joinpath(name).read_text("utf-8")
