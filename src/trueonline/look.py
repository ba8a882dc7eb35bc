"""The look of all pictures. The colours of methods are in the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",  # text that can be searched, and is as large as the reader wants
    "svg.hashsalt": "trueonline",  # the same picture has the same file
    "font.sans-serif": ["DejaVu Sans"],
}


@contextmanager
def look() -> Iterator[None]:
    """Draw and save in this look, and restore matplotlib's settings afterwards."""
    import matplotlib as mpl

    with mpl.rc_context(RC):
        yield


def figure(rows: int, columns: int, *, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """A figure and its axes (always a 2-D array), without pyplot's global state."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width, height), layout="constrained")
    return drawing, drawing.subplots(rows, columns, squeeze=False, **options)
