"""The look of methods in pictures: each has the same colour, dashes, marker and name everywhere.

Methods have the look of the catalogue. The looks here are for lines that are not methods of the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from trueonline.catalog import GREY, METHODS, PINK, Look
from trueonline.look import RC, figure, look

__all__ = [
    "COLOURS", "DASHES", "MARKERS", "NAMES", "RC", "band", "figure", "legend_above", "line", "lines_over_lam", "look", "style_of",
]  # fmt: skip

OTHERS = {
    "online": ("online λ-return", Look(PINK, (), "D")),
    "offline": ("offline λ-return", Look("#000000", (1, 1), "v")),
    "td0": ("TD(0)", Look(GREY, (8, 2, 1, 2), "x")),
    "random": ("random play", Look(GREY, (1, 2))),
}
LOOKS = {name: row.look for name, row in METHODS.items()} | {name: own for name, (_, own) in OTHERS.items()}
NAMES = {name: row.title for name, row in METHODS.items()} | {name: title for name, (title, _) in OTHERS.items()}
COLOURS = {name: own.colour for name, own in LOOKS.items()}
DASHES = {name: own.dashes for name, own in LOOKS.items()}
MARKERS = {name: own.marker for name, own in LOOKS.items()}


def style_of(method: str) -> dict[str, Any]:
    """The colour and the dashes of a method's line."""
    return {"color": COLOURS[method]} | ({"dashes": DASHES[method]} if DASHES[method] else {})


def line(axes: Any, x: Any, y: Any, method: str, **options: Any) -> None:
    """Draw a line in the method's own style."""
    axes.plot(x, y, **{"label": NAMES[method], "linewidth": 1.6, **style_of(method), **options})


def band(axes: Any, x: Any, bounds: Any, method: str, alpha: float = 0.2) -> None:
    """Shade the intervals around a line, given by their lower and upper ends, in the method's colour."""
    axes.fill_between(x, *bounds, color=COLOURS[method], alpha=alpha, linewidth=0)


def lines_over_lam(axes: Any, x: Any, errors: np.ndarray, lams: Sequence[float], *marker: str, **options: Any) -> None:
    """Draw a line for each λ, from dark to light. `errors` is an array over λ and x."""
    import matplotlib as mpl

    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.92, len(lams)))
    for lam, row, shade in zip(lams, errors, shades, strict=True):
        axes.plot(x, row, *marker, **{"color": shade, "linewidth": 1.3, "label": f"λ = {lam:g}", **options})


def legend_above(drawing: Any, panels: Iterable[Any], columns: int = 3, **options: Any) -> None:
    """One legend above all panels, with every label once, in the order of the first panel that has it."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    drawing.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns, **options)
