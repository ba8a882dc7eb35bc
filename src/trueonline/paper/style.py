"""One look for all pictures: the same colour, dash and name for the same method everywhere.

The colours are Okabe and Ito's, which colour-blind people can tell apart; dashes and markers differ too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = {
    "accumulate": "accumulate TD(λ)",
    "replace": "replace TD(λ)",
    "true_online": "true online TD(λ)",
    "online": "online λ-return",
    "offline": "offline λ-return",
    "td0": "TD(0)",
}
COLOURS = {
    "accumulate": "#D55E00",
    "replace": "#0072B2",
    "true_online": "#009E73",
    "online": "#CC79A7",
    "offline": "#000000",
    "td0": "#7F7F7F",
}
DASHES: dict[str, tuple[int, ...]] = {
    "accumulate": (6, 2),
    "replace": (2, 2),
    "true_online": (),
    "online": (),
    "offline": (1, 1),
    "td0": (8, 2, 1, 2),
}
MARKERS = {"accumulate": "s", "replace": "^", "true_online": "o", "online": "D", "offline": "v", "td0": "x"}

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
}


@contextmanager
def look() -> Iterator[None]:
    """Draw and save in this look, and leave matplotlib's settings as they were."""
    import matplotlib as mpl

    with mpl.rc_context(RC):
        yield


def figure(rows: int, columns: int, *, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """A figure and its axes (always a 2-D array), without pyplot's global state."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    return made, made.subplots(rows, columns, squeeze=False, **options)


def line(axes: Any, x: Any, y: Any, method: str, **options: Any) -> None:
    """A line in the method's own style."""
    dashes = {"dashes": DASHES[method]} if DASHES[method] else {}
    axes.plot(x, y, color=COLOURS[method], label=NAMES[method], **{"linewidth": 1.6, **dashes, **options})
