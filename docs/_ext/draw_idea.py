"""Draw docs/_static/idea.svg, the idea of true online learning in one picture: python docs/_ext/draw_idea.py

The picture has a white background of its own, so that it reads alike on light and dark pages.
"""

from __future__ import annotations

from pathlib import Path

from trueonline.catalog import BLUE, GREEN
from trueonline.files import write_whole

STEPS, ROW, TOP, CELL = 6, 40, 92, 32
FADES = 0.72  # by how much the memory fades from step to step
PALE = "#BFD9EA"


def text(x: float, y: float, said: str, size: int = 17, weight: str = "normal", colour: str = "#222222") -> str:
    place = f'x="{x:g}" y="{y:g}" text-anchor="middle"'
    return f'<text {place} font-size="{size}" font-weight="{weight}" fill="{colour}">{said}</text>'


def square(x: float, y: float, height: float, colour: str, width: float = CELL) -> str:
    return f'<rect x="{x:g}" y="{y + CELL - height:.1f}" width="{width:g}" height="{height:.1f}" rx="4" fill="{colour}"/>'


def row(t: int) -> list[str]:
    """Step t: its t updates of the forward view, and the one update and the trace of the backward view."""
    y = TOP + ROW * (t - 1)
    redone = [square(286 - 36 * (t - k), y, CELL, PALE if k < t - 1 else BLUE) for k in range(t)]
    trace = [square(430 + 30 * k, y, CELL * FADES ** (t - 1 - k), "#8ACDB9", 24) for k in range(t)]
    middle = y + CELL / 2 + 6
    labels = [text(34, middle, f"t = {t}", 15), text(322, middle + 2, "=", 24, "bold")]
    return [*labels, *redone, square(358, y, CELL, GREEN), *trace]


def picture() -> str:
    below = TOP + ROW * STEPS
    parts = [
        text(180, 36, "Forward view", 20, "bold", BLUE),
        text(180, 62, "do all updates again", 16),
        text(484, 36, "Backward view", 20, "bold", "#00785A"),
        text(484, 62, "one update a step", 16),
        text(374, 84, "update", 13, colour="#00785A"),
        text(505, 84, "dutch trace", 13, colour="#00785A"),
        text(256, 84, "updates", 13, colour=BLUE),
        *(part for t in range(1, STEPS + 1) for part in row(t)),
        text(180, below + 22, f"{STEPS * (STEPS + 1) // 2} updates in {STEPS} steps", 16),
        text(484, below + 22, f"{STEPS} updates in {STEPS} steps", 16),
        text(320, below + 58, "the same weights at every step", 20, "bold"),
    ]
    said = "At every step the forward view does all its updates again. The backward view makes one update with a dutch trace."
    drawn = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {below + 84}" role="img" '
        f'font-family="system-ui, Helvetica, Arial, sans-serif">\n<title>{said} Both have the same weights.</title>\n'
        f'<rect width="640" height="{below + 84}" rx="10" fill="#FFFFFF"/>\n{drawn}\n</svg>\n'
    )


if __name__ == "__main__":
    path = Path(__file__).parent.parent / "_static" / "idea.svg"
    write_whole(path, lambda file: file.write(picture().encode()))
