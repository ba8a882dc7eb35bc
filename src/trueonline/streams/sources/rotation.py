"""Rotated logs: the earlier parts of a log, by their names beside it.

logrotate and logging libraries rename a log, or copy it and empty it. The parts of `log.csv` are then called log.csv.1,
log.csv.2.gz, log.csv-20240501, log.csv.2024-05-01 or log-20240501.csv.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PART_SUFFIX = re.compile(r"[.-]\d{1,6}|[._-]\d{4}-?\d\d-?\d\d[\w:.-]*")
GZIP_SUFFIX = ".gz"


def earlier_parts(path: Path) -> list[Path]:
    """The parts that were rotated away, the oldest first, by the time of their last change. One of them may be gone any moment."""
    try:
        found = {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(path.parent) if is_part(entry.name, path)}
    except OSError:  # one went away between
        found = {}
    packed = [
        name for name in found if name.removesuffix(GZIP_SUFFIX) != name and name.removesuffix(GZIP_SUFFIX) in found
    ]
    names = sorted(found.keys() - set(packed), key=lambda name: (found[name], name))
    return [path.with_name(name) for name in names]


def is_part(name: str, path: Path) -> bool:
    """Whether a name is that of a rotated part of a log.

    >>> log = Path("logs/log.csv")
    >>> [name for name in ("log.csv", "log.csv.1", "log.csv-20240501.gz", "log.csv.bak", "log-20240501.csv", "log2.csv")
    ...  if is_part(name, log)]
    ['log.csv.1', 'log.csv-20240501.gz', 'log-20240501.csv']
    """
    plain = name.removesuffix(GZIP_SUFFIX)
    for before, after in ((path.name, ""), (path.stem, path.suffix)):
        if plain.startswith(before) and plain.endswith(after) and len(plain) > len(before) + len(after):
            between = plain[len(before) : len(plain) - len(after)]
            if PART_SUFFIX.fullmatch(between):
                return True
    return False
