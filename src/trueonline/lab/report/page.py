"""The page: sections, verdicts and charts put into one HTML file, with all scripts and styles inside."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any
from urllib.parse import quote

from trueonline.files import write_whole
from trueonline.lab.report.columns import label, words
from trueonline.lab.report.figures import figure
from trueonline.lab.report.library import library
from trueonline.lab.report.parts import Section
from trueonline.words import count, duration

TITLE = "True online TD learning: what the reproduction found"
# verdict → symbol and class. The symbol is for readers who cannot tell the colours apart
MARKS = {"holds": ("✓", "holds"), "does not hold": ("✗", "fails"), "within noise": ("≈", "noise")}
HINT = (
    '<p class="quiet hint">In the charts, click a method to hide or show it, and point at a line to read its values.</p>'
)
NONE = '<td class="quiet" colspan="2">no claims judged</td>'


def build(path: str | os.PathLike, sections: Sequence[Section], about: Mapping[str, str], title: str = TITLE) -> None:
    """Write the report of a study. The file is written completely or not at all."""
    names = [section.name for section in sections]
    if len(set(names)) < len(names):
        raise ValueError(f"the sections of a report must have different names, got {names}")
    scripts = {"library": library(), "script": _part("page.js")}
    page = Template(_part("page.html")).substitute(
        scripts,
        policy=_policy(*scripts.values()),
        style=_part("page.css"),
        title=escape(title),
        summary=escape(summary(sections)),
        verdicts=_all_verdicts(sections),
        hint=HINT if any(section.charts for section in sections) else "",
        sections="\n".join(_section(section) for section in sections),
        about=_rows(about),
    )
    write_whole(path, lambda file: file.write(page.encode()))


def summary(sections: Sequence[Section]) -> str:
    """The outcome in a sentence, and how many claims had too few samples to be decided."""
    claims = [verdict for section in sections for verdict in section.verdicts]
    verdicts = [str(claim["verdict"]) for claim in claims]
    if not verdicts:
        return "No claims were judged."
    one = len(verdicts) == 1
    parts = [f"{verdicts.count('holds')} of {count(len(verdicts), 'claim')} {'holds' if one else 'hold'}"]
    for verdict in dict.fromkeys(["within noise", "does not hold", *verdicts]):
        n = verdicts.count(verdict)
        if n and verdict != "holds":
            parts.append(f"{n} {('does not' if n == 1 else 'do not') if verdict == 'does not hold' else verdict}")
    few = sum("not decided" in claim.get("numbers", {}) for claim in claims)
    return ", ".join(parts) + "." + (f" {few} cannot be decided, because there were too few runs." if few else "")


def _all_verdicts(sections: Sequence[Section]) -> str:
    """A table of every claim, and links to all sections, also to those without claims."""
    groups = []
    for section in sections:
        rows = [f"<td>{_mark(verdict)}</td><td>{escape(str(verdict['claim']))}</td>" for verdict in section.verdicts]
        head = f'<th scope="rowgroup" rowspan="{max(1, len(rows))}">{_link(section)}</th>'
        groups.append(f"<tbody><tr>{head}{'</tr><tr>'.join(rows) or NONE}</tr></tbody>")
    return f'<table class="verdicts">{"".join(groups)}</table>'


def _section(section: Section) -> str:
    paragraphs = "".join(
        f"<p>{escape(' '.join(text.split()))}</p>" for text in section.text.split("\n\n") if text.strip()
    )
    charts = "".join(figure(chart) for chart in section.charts)
    if section.picture is not None:
        data = base64.b64encode(section.picture).decode()
        charts += f'<img class="picture" alt="{escape(section.title)}" src="data:image/png;base64,{data}">'
    claims = "".join(f"<li>{_claim(verdict)}</li>" for verdict in section.verdicts)
    links = ", ".join(f'<a href="{escape(quote(file))}">{escape(file)}</a>' for file in section.files)
    return (
        f'<section id="{escape(section.name)}"><h2>{escape(section.title)}</h2>{paragraphs}{charts}'
        + (f'<h3>Claims</h3><ul class="claims">{claims}</ul>' if claims else "")
        + f'<p class="quiet files">{f"Files: {links}. " if links else ""}Took {duration(section.seconds)}.</p></section>'
    )


def _claim(verdict: Mapping[str, Any]) -> str:
    said = f"{_mark(verdict)} {escape(str(verdict['claim']))}"
    numbers = _rows({words(str(key)): label(value) for key, value in verdict.get("numbers", {}).items()})
    return f'<details><summary>{said}</summary><table class="numbers">{numbers}</table></details>' if numbers else said


def _mark(verdict: Mapping[str, Any]) -> str:
    word = str(verdict["verdict"])
    symbol, kind = MARKS.get(word, ("·", "other"))
    return f'<span class="verdict {kind}">{symbol} {escape(word)}</span>'


def _link(section: Section) -> str:
    return f'<a href="#{escape(quote(section.name))}">{escape(section.title)}</a>'


def _rows(pairs: Mapping[str, Any]) -> str:
    return "".join(f"<tr><th>{escape(str(key))}</th><td>{escape(str(value))}</td></tr>" for key, value in pairs.items())


def _part(name: str) -> str:
    return files("trueonline.lab.report").joinpath(name).read_text("utf-8")


def _policy(*scripts: str) -> str:
    """The browser runs only these scripts, and loads nothing from the network."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
