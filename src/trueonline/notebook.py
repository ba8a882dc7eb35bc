"""The display in a notebook: tables and small pictures, as HTML and SVG without scripts. Every text is escaped.

Text and lines take the colour of the page, so that they can be read on light and on dark ones.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from trueonline import words
from trueonline.catalog import BLUE, VERMILION

MAX_WEIGHTS = (
    1_000_000  # numbers that are drawn: a learner with more is described without a picture, which would copy them all
)
BARS = 120  # bars in a picture, at most: with more features than that, a bar shows the range of several
WIDTH, HEIGHT = 480, 60
CELL = "padding:0.15em 0.9em 0.15em 0;border:0;background:none;color:inherit;font-variant-numeric:tabular-nums"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str) -> str:
    """A table with a title. Columns of numbers are aligned to the right."""
    body = [list(row) for row in rows]
    sides = ["right" if all(_is_number(row[i]) for row in body) else "left" for i in range(len(columns))]
    head = "".join(
        f'<th style="{CELL};text-align:{side};border-bottom:1px solid currentColor">{escape(name)}</th>'
        for name, side in zip(columns, sides, strict=True)
    )
    cells = "".join(_row("".join(map(_cell, row, sides))) for row in body)
    return f'{heading(title)}<table style="border-collapse:collapse;margin:0.3em 0">{_row(head)}{cells}</table>'


def heading(text: str) -> str:
    """A line in bold."""
    return f'<div style="font-weight:600">{escape(text)}</div>'


def picture(svg: bytes, description: str) -> str:
    """A picture that was drawn elsewhere, on a white ground."""
    data = base64.b64encode(svg).decode()
    return (
        f'<img alt="{escape(description)}" src="data:image/svg+xml;base64,{data}" '
        'style="max-width:100%;background:white;border-radius:4px;margin:0.3em 0"/>'
    )


def described(learner: Any, settings: Iterable[str]) -> str | None:
    """A learner or an agent: its settings, how long it has learned, and pictures of its weights and its trace.

    Parameters
    ----------
    learner : object
        The learner or agent.
    settings : iterable of str
        The names of its settings. Those that are None are left out.

    Returns
    -------
    str or None
        HTML. None if the learner cannot be described, as one of somebody's own that lacks a part: a notebook then shows its text.
    """
    try:
        values = {name: getattr(learner, name) for name in settings}
        shown = {name: getattr(value, "__name__", value) for name, value in values.items() if value is not None}
        size = values["n_features"] * values.get("n_actions", 1)
        parts = [heading(type(learner).__name__), _pairs({**shown, "steps": learner.steps})]
        if size > MAX_WEIGHTS:
            parts.append(f"<div>{size:,} weights are too many for a picture.</div>")
        else:
            parts += [bars("weights", learner.weights, BLUE), bars("trace", learner.trace, VERMILION)]
    except Exception:
        return None
    return f"<div>{''.join(parts)}</div>"


def bars(name: str, values: np.ndarray, colour: str) -> str:
    """A bar for each feature, from the lowest to the highest of its numbers and 0."""
    rows = np.asarray(values, float).reshape(len(values), -1)
    count = min(len(rows), BARS)
    finite = np.isfinite(rows)
    bad = rows.size - int(finite.sum())
    groups = np.array_split(np.where(finite, rows, 0.0), count)
    low = np.array([min(group.min(), 0.0) for group in groups])
    high = np.array([max(group.max(), 0.0) for group in groups])
    largest = max(-low.min(), high.max())
    if largest == 0.0:
        text = f"{name}: {f'{bad:,} of {rows.size:,} not finite, nothing to draw' if bad else 'all 0'}"
        return f'<div style="margin-top:0.4em">{escape(text)}</div>'
    each = "a bar for each feature" if count == len(rows) else f"{-(-len(rows) // count)} features to a bar"
    ends = f"{words.cell(float(low.min()))} to {words.cell(float(high.max()))}"
    text = f"{name}: {ends}, {each}" + (f"; {bad:,} not finite, not drawn" if bad else "")
    low, high = low / largest, high / largest  # the smallest and the largest floats have no finite scale
    scale = (HEIGHT - 2) / (high.max() - low.min())
    wide = WIDTH / count
    zero = HEIGHT - 1 + low.min() * scale
    drawn = "".join(
        f'<rect x="{i * wide + 0.1 * wide:.2f}" width="{0.8 * wide:.2f}" y="{zero - upper * scale:.2f}" '
        f'height="{(upper - lower) * scale:.2f}"/>'
        for i, (lower, upper) in enumerate(zip(low.tolist(), high.tolist(), strict=True))
    )
    return (
        f'<div style="margin-top:0.4em">{escape(text)}</div>'
        f'<svg role="img" aria-label="{escape(text)}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'style="max-width:100%;display:block"><g fill="{colour}">{drawn}</g>'
        f'<path d="M0 {zero:.2f}H{WIDTH}" stroke="currentColor" stroke-opacity="0.5" fill="none"/></svg>'
    )


def _pairs(pairs: Mapping[str, Any]) -> str:
    """Names and values, side by side."""
    body = ((_cell(name, "left"), _cell(value, "left")) for name, value in pairs.items())
    rows = "".join(_row(f"{left}{right}") for left, right in body)
    return f'<table style="border-collapse:collapse;margin:0.3em 0">{rows}</table>'


def _row(cells: str) -> str:
    return f'<tr style="background:none">{cells}</tr>'


def _cell(value: Any, side: str) -> str:
    return f'<td style="{CELL};text-align:{side}">{escape(words.cell(value))}</td>'


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
