"""Marks of predictions: a hidden file `.NAME.predictions` beside a file of predictions holds its SHA-256.

A run replaces a file only if it has a mark that fits, so it recognises a file that somebody else wrote or edited.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO, Any

from trueonline.files import read_json, sweep_up, write_json

BLOCK_BYTES = 2**20  # bytes that are read at a time
MARK_KEYS = {"bytes", "sha256", "whole"}


def fitting_marks(path: Path) -> list[dict[str, Any]]:
    """The marks that fit a file as it is now: all of it, or so many bytes at its beginning."""
    if not path.exists():
        return []
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return [
            mark
            for mark in read_json(_mark_file(path)) or []
            if (mark["bytes"] == size if mark["whole"] else mark["bytes"] <= size)
            and mark["sha256"] == _digest(file, mark["bytes"])
        ]


def check_mark_file(path: Path) -> None:
    """ValueError if something else is where the mark of a file has to be. Remove what a killed run left there."""
    place = _mark_file(path)
    marks = read_json(place) if place.is_file() else None
    ours = isinstance(marks, list) and all(isinstance(mark, dict) and mark.keys() == MARK_KEYS for mark in marks)
    if os.path.lexists(place) and not ours:
        raise ValueError(f"{place} exists and was not written by this command; move it away, or choose another --out")
    sweep_up(place)


def mark_next(path: Path, file: IO[bytes], *, whole: bool) -> None:
    """Mark the content of an open file that will be renamed to `path`. A mark of the file there now stays until then."""
    file.flush()
    _write(path, fitting_marks(path), file, file.tell(), whole)


def mark(path: Path, size: int, *, whole: bool) -> None:
    """Mark a file as predictions: all of it, or its first `size` bytes."""
    with open(path, "rb") as file:
        _write(path, [], file, size, whole)


def _write(path: Path, before: list[dict[str, Any]], file: IO[bytes], size: int, whole: bool) -> None:
    # The first 0 bytes of any file are the same, so such a mark is of an empty file.
    mark = {"bytes": size, "sha256": _digest(file, size), "whole": whole or not size}
    write_json(_mark_file(path), [*before, mark])


def _digest(file: IO[bytes], size: int) -> str:
    """SHA-256 of the first bytes of a file."""
    digest = hashlib.sha256()
    file.seek(0)
    while size > 0 and (block := file.read(min(size, BLOCK_BYTES))):
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()


def _mark_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.predictions")
