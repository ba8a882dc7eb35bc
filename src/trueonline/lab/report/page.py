"""The page: pictures, tables and verdicts of some experiments as one HTML file. It needs no script and no network."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template
from typing import Any
from urllib.parse import quote

from trueonline.files import write_whole
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Claim, deciding, numbered, summary
from trueonline.lab.experiment import Reading
from trueonline.lab.report import svg
from trueonline.words import cell, duration

TITLE = "True online TD learning: what the reproduction found"
# verdict → symbol and class. The symbol is for readers who cannot tell the colours apart
MARKS = {HOLDS: ("✓", "holds"), FAILS: ("✗", "fails"), NOISE: ("≈", "noise")}
NO_CLAIMS = '<td class="quiet" colspan="2">no claims judged</td>'
ORDER = (FAILS, NOISE, HOLDS)  # what does not hold comes first
EXPONENT, RAISED = re.compile(r"(?<=\d)e([-+]\d+)\b"), str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SHORT_NUMBER = 24  # characters. Longer lists of numbers are folded


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
    reading: Reading | None = None


@dataclass(frozen=True)
class Opening:
    """What the page says before its sections: a text, pictures with a caption, and words with their meanings."""

    text: str
    pictures: Sequence[str] = ()  # SVG, side by side
    caption: str = ""
    words: Mapping[str, str] = field(default_factory=dict)


def build(
    path: str | os.PathLike,
    sections: Sequence[Section],
    about: Mapping[str, str],
    opening: Opening | None = None,
) -> None:
    """Write the report of some experiments. The file is written completely or not at all."""
    pictures = {
        section.name: {name: svg.for_page(each, f"{section.name}-{name}") for name, each in section.pictures.items()}
        for section in sections
    }
    claims = [claim for section in sections for claim in section.claims]
    opening = opening or Opening(summary(claims))
    first = [svg.for_page(each, f"opening-{place}") for place, each in enumerate(opening.pictures)]
    light, dark = svg.variables([*first, *(picture for some in pictures.values() for picture in some.values())])
    page = Template(_part("page.html")).substitute(
        style=_part("page.css"),
        light=light,
        dark=dark,
        title=TITLE,
        opening=_opening(opening, first),
        contents="".join(_contents(section) for section in sections),
        failing=_failing(sections),
        verdicts=_all_verdicts(sections),
        sections="\n".join(_section(section, pictures[section.name]) for section in sections),
        about=_rows(about),
    )
    write_whole(path, lambda file: file.write(page.encode()))


def _all_verdicts(sections: Sequence[Section]) -> str:
    """A table of every claim, and links to all sections, also to those without claims."""
    groups = []
    for section in sections:
        rows = [f"<td>{_mark(claim.verdict)}</td><td>{escape(claim.claim)}</td>" for claim in section.claims]
        head = f'<th scope="rowgroup" rowspan="{max(1, len(rows))}">{_link(section)}</th>'
        groups.append(f"<tbody><tr>{head}{'</tr><tr>'.join(rows) or NO_CLAIMS}</tr></tbody>")
    return f'<table class="verdicts">{"".join(groups)}</table>'


def _opening(opening: Opening, pictures: Sequence[str]) -> str:
    words = "".join(f"<div><dt>{escape(word)}</dt><dd>{_prose(text)}</dd></div>" for word, text in opening.words.items())
    shown = f'<figure><div class="beside">{"".join(map(_picture, pictures))}</div>'
    shown += f"<figcaption>{_prose(opening.caption)}</figcaption></figure>"
    return (
        f'<p class="summary">{_prose(opening.text)}</p>'
        + (shown if pictures else "")
        + (f'<h2>Words in the figures</h2><dl class="words">{words}</dl>' if words else "")
    )


def _contents(section: Section) -> str:
    """A line of the contents: what is asked, where, and how many claims have each verdict."""
    found = [claim.verdict for claim in section.claims]
    counts = " ".join(_mark(verdict, found.count(verdict)) for verdict in ORDER if verdict in found)
    asked = f"<b>{_prose(section.reading.question)}</b> " if section.reading else ""
    return f'<li>{asked}<span class="quiet">{_link(section)}</span> <span class="counts">{counts or "no claims judged"}</span></li>'


def _failing(sections: Sequence[Section]) -> str:
    """The claims that do not hold, with the reasons that are known."""
    parts = []
    for section in sections:
        failing = [claim for claim in section.claims if claim.verdict == FAILS]
        if failing:
            why = section.reading.exceptions if section.reading else ""
            parts.append(f"<h3>{_link(section)}</h3>{_claims(failing)}" + (f"<p>{_prose(why)}</p>" if why else ""))
    return f'<section id="does-not-hold"><h2>What does not hold</h2>{"".join(parts)}</section>' if parts else ""


def _section(section: Section, pictures: Mapping[str, str]) -> str:
    paragraphs = "".join(
        f"<p>{escape(' '.join(text.split()))}</p>" for text in section.text.split("\n\n") if text.strip()
    )
    shown = "".join(_figure(section, name, picture) for name, picture in pictures.items())
    shown += "".join(
        f'<p class="fails">The picture {escape(name)} could not be drawn: {escape(why)}</p>'
        for name, why in section.failures.items()
    )
    links = ", ".join(f'<a href="{escape(quote(file))}">{escape(file)}</a>' for file in section.files)
    claims, reading = list(section.claims), section.reading
    heading = f"<h2>{escape(section.title)}</h2>{paragraphs}"
    below = ""
    if reading:
        source = "the book" if "Sutton" in section.title else "the paper"
        heading = (
            f'<p class="where">{escape(section.title)}</p><h2>{_prose(reading.question)}</h2><div class="reading">'
            f"<div><h3>What {source} says</h3><p>{_prose(reading.paper)}</p></div>"
            f"<div><h3>What to look at</h3><p>{_prose(reading.look)}</p></div></div>"
        )
        below = _folded("How it was measured", paragraphs) if paragraphs else ""
    main = claims[: reading.main] if reading else claims
    rest = claims[len(main) :]
    return (
        f'<section id="{escape(section.name)}">{heading}{shown}'
        + (f"<h3>Claims and verdicts</h3>{_claims(_failing_first(main))}" if main else "")
        + (_folded(f"Case by case, {summary(rest)}", _claims(_failing_first(rest))) if rest else "")
        + below
        + ("" if section.table is None else _table(*section.table))
        + f'<p class="quiet files">{f"Files: {links}. " if links else ""}Took {duration(section.seconds)}.</p></section>'
    )


def _failing_first(claims: Sequence[Claim]) -> list[Claim]:
    return sorted(claims, key=lambda claim: ORDER.index(claim.verdict))


def _folded(title: str, content: str) -> str:
    return f'<details class="more"><summary>{escape(title)}</summary>{content}</details>'


def _claims(claims: Sequence[Claim]) -> str:
    return f'<ul class="claims">{"".join(f"<li>{_claim(claim)}</li>" for claim in claims)}</ul>'


def _figure(section: Section, name: str, picture: str) -> str:
    """A picture, with its name unless the picture itself says what it is."""
    words = "" if name.startswith("figure") else name.replace("-", " ")
    caption = f"<figcaption>{escape(words[:1].upper() + words[1:])}</figcaption>" if words else ""
    return f"<figure>{caption}{_picture(picture, f'{section.title}: {words}' if words else section.title)}</figure>"


def _picture(picture: str, about: str = "") -> str:
    """A picture in a box of its own, which scrolls where the page is too narrow for it."""
    label = f' role="group" aria-label="{escape(about)}"' if about else ""
    return f'<div class="picture" tabindex="0"{label}>{picture}</div>'


def _table(about: str, headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th{_kind(value)}>{escape(each)}</th>" for each, value in zip(headings, rows[0], strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    shown = f'<div class="wide" tabindex="0"><table class="best"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return _folded(f"{about.rstrip(':')} ({len(rows)} rows)", shown)


def _cell(value: Any) -> str:
    return f"<td{_kind(value)}>{escape(label(value))}</td>"


def _kind(value: Any) -> str:
    """The class of a cell: numbers are on the right."""
    return ' class="number"' if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _claim(claim: Claim) -> str:
    """The verdict, the claim, and the numbers that decide it. All its numbers are folded."""
    said = f'{_mark(claim.verdict)}<span class="said">{escape(claim.claim)}</span>'
    said += f'<span class="measured">{escape(measured(claim.numbers))}</span>'
    numbers = _rows({key: label(value) for key, value in claim.numbers.items()})
    return (
        f'<details><summary>{said}</summary><table class="numbers">{numbers}</table></details>'
        if numbers
        else f'<div class="alone">{said}</div>'
    )


def measured(numbers: Mapping[str, Any]) -> str:
    """A number and its interval, or the numbers that come first.

    >>> measured({"a": 3.0, "difference": 0.25, "95 % interval": [0.1, 0.4], "b": 1})
    'difference: 0.25 (95 %: 0.10 to 0.40)'
    >>> measured({"largest difference": 0.0})
    'largest difference: 0'
    """
    if found := deciding(numbers):
        what, *estimate = found
        return "{}: {} (95 %: {} to {})".format(what, *together(estimate))
    intervals = {name: v for name, v in numbers.items() if "interval" in name and isinstance(v, list) and len(v) == 2}
    plain = {key: label(value) for key, value in numbers.items() if key not in intervals}
    short = [f"{key}: {said}" for key, said in plain.items() if len(said) <= SHORT_NUMBER][:3]
    short += ["{}: {} to {}".format(name, *together(interval)) for name, interval in list(intervals.items())[:1]]
    return "; ".join(short)


def together(numbers: Sequence[Any]) -> list[str]:
    """Numbers that are compared, with as many places as tell the last two of them apart, the ends of an interval.

    >>> together([0.007195, 0.004098, 0.009422]), together([-0.04, "-Infinity", "Infinity"]), together([2.0, 2.0])
    (['0.0072', '0.0041', '0.0094'], ['−0.04', '−∞', '∞'], ['2', '2'])
    """
    *_, low, high = map(float, numbers)
    if not 0.0 < high - low < math.inf:
        return [label(each) for each in numbers]
    places = max(0, 1 - math.floor(math.log10(1.01 * (high - low))))
    return [f"{round(float(each), places) + 0.0:,.{places}f}".replace("-", "−") for each in numbers]


def label(value: object) -> str:
    """A value as people read it.

    >>> label(0.123456), label([1.0, -2.00001]), label(True), label(float("inf")), label(2.22e-16)
    ('0.1235', '1, −2', 'yes', '∞', '2.22·10⁻¹⁶')
    >>> label("λ-return"), label("-Infinity")
    ('λ-return', '−∞')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(label, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value.replace("-Infinity", "−∞").replace("Infinity", "∞")
    text = EXPONENT.sub(lambda found: f"·10{str(int(found[1])).translate(RAISED)}", cell(value))
    return text.replace("inf", "∞").replace("-", "−")


def _mark(verdict: str, number: int | None = None) -> str:
    """The symbol and the verdict, of one claim or of a number of claims."""
    symbol, kind = MARKS[verdict]
    said = verdict if number is None else numbered(number, verdict)
    return f'<span class="verdict {kind}">{symbol} {escape(said)}</span>'


def _prose(text: str) -> str:
    """Text in which *…* is emphasis and `…` is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escape(text)))


def _link(section: Section) -> str:
    return f'<a href="#{escape(quote(section.name))}">{escape(section.title)}</a>'


def _rows(pairs: Mapping[str, Any]) -> str:
    return "".join(f"<tr><th>{escape(str(key))}</th><td>{escape(str(value))}</td></tr>" for key, value in pairs.items())


def _part(name: str) -> str:
    return files("trueonline.lab.report").joinpath(name).read_text("utf-8")
