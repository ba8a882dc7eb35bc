"""Pictures for the page: SVG whose colours follow the light or dark scheme of the reader."""

from __future__ import annotations

import re
from collections.abc import Iterable
from colorsys import hls_to_rgb, rgb_to_hls

COLOUR = re.compile(r"(?<=: )#([0-9a-f]{6})\b")
# Text over the cells of a heat map has one of these colours in both schemes, because the cells have too.
ON_CELLS = {"dark": "#0a0a0a", "light": "#fafafa"}
DARKEST, LIGHTEST = 22, 235  # white and black in the dark scheme
LEAST_LUMINANCE = 0.2  # of a colour in the dark scheme
LEAST_SCALE = 0.85  # in pixels per point: text of 9 points has 7.6 pixels or more
PHONE = 360  # pixels for a picture on a phone. A wider one has to be swiped
MUTED = 0.6  # the share of its saturation that a lightened colour keeps


def for_page(svg: str, name: str) -> str:
    """The picture as part of a page. `name` keeps its ids apart from those of other pictures.

    Colours become CSS variables such as `var(--0072b2)`. The page defines them with `variables`.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = COLOUR.sub(lambda found: found[0] if found[0] in ON_CELLS.values() else f"var(--{found[1]})", svg)
    return re.sub(r'<svg[^>]*viewBox="0 0 (\S+) (\S+)"[^>]*>', _opened, svg, count=1)


def _opened(found: re.Match) -> str:
    """The beginning of a picture: as wide as the page, but not so small that its text cannot be read."""
    width = float(found[1])  # in points: 4/3 pixels each
    least = LEAST_SCALE * width
    kind = ' class="swiped"' if least > PHONE else ""
    style = f"min-width: {least:.0f}px; max-width: {2.0 * width:.0f}px"
    return f'<svg viewBox="0 0 {found[1]} {found[2]}"{kind} style="{style}" xmlns:xlink="http://www.w3.org/1999/xlink">'


def variables(pictures: Iterable[str]) -> tuple[str, str]:
    """The CSS variables of all colours in some pictures, in the light and in the dark scheme."""
    used = sorted({colour for picture in pictures for colour in re.findall(r"var\(--([0-9a-f]{6})\)", picture)})
    light, dark = ("".join(f"--{c}: {shade(c)};" for c in used) for shade in (lambda c: f"#{c}", in_dark))
    return light, dark


def in_dark(colour: str) -> str:
    """A colour, given as six digits, in the dark scheme: greys are inverted, and dark colours are lightened.

    >>> in_dark("ffffff"), in_dark("000000"), in_dark("440154"), in_dark("e69f00")
    ('#161616', '#ebebeb', '#b850d1', '#e69f00')
    """
    channels = [int(colour[i : i + 2], 16) for i in (0, 2, 4)]
    if max(channels) - min(channels) < 12:
        level = round(LIGHTEST + (DARKEST - LIGHTEST) * channels[0] / 255)
        return "#" + 3 * f"{level:02x}"
    hue, lightness, saturation = rgb_to_hls(*(c / 255 for c in channels))
    while _luminance(channels) < LEAST_LUMINANCE:
        lightness += 0.01
        channels = [round(255 * c) for c in hls_to_rgb(hue, lightness, MUTED * saturation)]
    return "#" + "".join(f"{c:02x}" for c in channels)


def _luminance(channels: list[int]) -> float:
    linear = [(c / 255) ** 2.2 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
