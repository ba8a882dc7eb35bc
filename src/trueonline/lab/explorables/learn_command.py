"""The command `trueonline learn`: find an explorable page, and open it in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from trueonline.lab.explorables import INDEX, PAGES


def find(name: str | None) -> Path:
    """The file of a page, or that of the index. ValueError if there is no page of this name."""
    files = {None: INDEX} | {page.name: page.path for page in PAGES}
    if name not in files:
        raise ValueError(f"unknown page {name!r}; known are {', '.join(page.name for page in PAGES)}")
    return files[name]


def listing() -> str:
    """A line for the index and for each page: name, title and file."""
    rows = [("", "all pages", INDEX)] + [(page.name, page.title, page.path) for page in PAGES]
    return "\n".join(f"{name:<18}{title:<22}{path}" for name, title, path in rows)


def show(path: Path) -> bool:
    """Open a file in the browser, and tell whether that worked."""
    try:
        return webbrowser.open(path.as_uri())
    except webbrowser.Error:
        return False
