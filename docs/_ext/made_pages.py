"""Writing pages that are made before each build."""

from __future__ import annotations

from pathlib import Path

from trueonline.files import write_whole


def write_if_changed(path: Path, text: str) -> None:
    """Write a page, with its folder. A page that did not change is left alone, so that Sphinx does not build it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_whole(path, lambda file: file.write(text.encode()))
