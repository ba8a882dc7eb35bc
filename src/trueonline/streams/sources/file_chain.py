"""Several files, one after another, as one stream."""

from __future__ import annotations

import glob
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trueonline.streams.sources.addresses import LIKE_MQTT, scheme_of
from trueonline.streams.sources.clock import TimeStyle
from trueonline.streams.sources.labels import Labels
from trueonline.streams.sources.positions import FROM_SCRATCH, whole_numbers
from trueonline.streams.sources.sample import Block, Source
from trueonline.words import listed

MAX_NAMED_FILES = 3  # files that a message names


class Chain(Source):
    """The samples of several files, one after another. Times and the count of rows continue from file to file.

    All files are opened once at the beginning, so that a file that cannot be read is known before anything is learned. Empty
    files are left out.

    Predictions are written with times in the style of the first file. Each file is read in its own style and time zone, so
    hours of the day are those of its wall clock.

    A position is that of the file which is read, with its name, the style of its times and what was counted before it. So a later
    list may have more files behind it, or fewer before it.

    Parameters
    ----------
    paths : sequence of str
        The files, in order.
    opened : callable
        Opens a file: called with its path, the number of rows before it, and whether it is the last one.
    labels : Labels, optional
        Codes of the names of files, for a last signal: each file is the stream of a signal. The name is without folder and ending.
    """

    replayable = True

    def __init__(
        self, paths: Sequence[str], opened: Callable[[str, int, bool], Source], labels: Labels | None = None
    ) -> None:
        self._opened, self._labels = opened, labels
        self.paths = not_empty(paths)
        for path in self.paths[1:]:
            self._open(path, 0).close()
        self._sizes = [_size(path) for path in self.paths]
        self._closed, self._lock = threading.Event(), threading.Lock()
        self._source, self._at, self._rows = self._open(self.paths[0], 0), 0, 0
        self._counted: Counter[str] = Counter()  # in the files before
        self._complaint: str | None = None
        self._remark = ""
        self._style: TimeStyle | None = None  # of the files before, or of the run that is resumed
        self.signals = (*self._source.signals, *([] if labels is None else [labels.column]))

    def _open(self, path: str, rows: int) -> Source:
        return self._opened(path, rows, path == self.paths[-1])

    def read(self, timeout: float | None = None) -> Block | None:
        while (block := self._source.read(timeout)) is None and self._at + 1 < len(self.paths):
            with self._lock:
                if self._closed.is_set():
                    return None
                self._go_on()
        return block if self._labels is None or block is None else labelled(block, self._labels, self.paths[self._at])

    def _go_on(self) -> None:
        """Continue with the next file."""
        rows = self._rows + self._source.position()["row"]
        following = self._open(self.paths[self._at + 1], rows)
        self._counted, self._complaint = Counter(self.counters()), self.complaint()
        self._remark, self._style = self.remark(), self.style
        self._source.close()
        self._source, self._at, self._rows = following, self._at + 1, rows

    def position(self) -> dict[str, Any]:
        of = {"file": self.paths[self._at], "rows": self._rows, "counted": dict(self._counted)}
        return {**self._source.position(), "of": {**of, "times": _described(self._source.style)}}

    def seek(self, position: dict[str, Any]) -> None:
        of = position.get("of") if isinstance(position, dict) else None
        if of is None:  # taken when there was one file
            of = {"file": self.paths[0], "rows": 0, "counted": {}, "times": _described(self._style)}
        kinds = {"counted": dict, "times": dict | None}
        if not isinstance(of, dict) or not all(isinstance(of.get(name), kind) for name, kind in kinds.items()):
            raise ValueError(f"the position is damaged: of must say in which file it lies, got {str(of)[:80]}")
        (rows,) = whole_numbers({"kind": "", **of}, "", "rows")
        whole_numbers({"kind": "", **of["counted"]}, "", *of["counted"])
        style = None if of.get("times") is None else TimeStyle.from_json(of["times"])
        if of.get("file") not in self.paths:
            raise ValueError(
                f"{str(of.get('file'))[:200]}, in which reading stopped, is not among the files "
                f"{listed(self.paths, most=MAX_NAMED_FILES)}; name "
                f"it too, or {FROM_SCRATCH}"
            )
        at, counted = self.paths.index(of["file"]), Counter(of["counted"])
        inner = {name: value for name, value in position.items() if name != "of"}
        source = self._open(of["file"], rows)
        if style is not None:
            source.style = style
        try:
            while inner.get("skip") and at + 1 < len(self.paths) and _is_at_end(source, inner):
                # The samples to skip are in the next file: the position was taken before a block was read from there.
                at, rows = at + 1, rows + source.position()["row"]
                counted.update(source.counters())
                source.close()
                source = self._open(self.paths[at], rows)
                inner = {**source.position(), "skip": inner["skip"], "skipped": inner.get("skipped")}
            source.seek(inner)
        except BaseException:
            source.close()
            raise
        with self._lock:
            self._source.close()
            self._source, self._at, self._rows, self._counted = source, at, rows, counted

    @property
    def style(self) -> TimeStyle | None:
        return self._style or self._source.style

    @style.setter
    def style(self, style: TimeStyle | None) -> None:
        self._style = style

    @property
    def lost(self) -> str:  # type: ignore[override]
        """The missing part of the file that is read, or ""."""
        return self._source.lost

    def counters(self) -> dict[str, int]:
        together = dict(self._counted)
        for name, number in self._source.counters().items():
            together[name] = together.get(name, 0) + number
        return together

    def complaint(self) -> str | None:
        return self._complaint or self._source.complaint()

    def remark(self) -> str:
        return self._remark or self._source.remark()

    def progress(self) -> float | None:
        share = self._source.progress()
        if share is None:
            return None
        return (sum(self._sizes[: self._at]) + share * self._sizes[self._at]) / max(sum(self._sizes), 1)

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._source.close()


def files_named(specs: Sequence[str]) -> list[str]:
    """The files that names, folders and patterns such as `logs/*.csv` stand for, those of a folder or a pattern in natural order.

    ValueError if a pattern fits nothing, or a file is named twice.
    """
    found: list[str] = []
    for spec in specs:
        if os.path.isdir(spec):
            paths = [
                path for path in glob.glob(os.path.join(glob.escape(spec), "*")) if stem(path) != os.path.basename(path)
            ]
        elif is_pattern(spec):
            paths = glob.glob(spec, recursive=True)
        else:
            found.append(spec)
            continue
        fitting = sorted(filter(os.path.isfile, paths), key=natural_order)
        if not fitting:
            raise ValueError(f"no file fits {spec}; check the pattern, and the folder")
        found += fitting
    twice = [path for path, number in Counter(found).items() if number > 1]
    if twice:
        raise ValueError(f"the file {twice[0]} is named more than once; name each file once")
    return found


def labelled(block: Block, labels: Labels, path: str) -> Block:
    """The samples of a file, with the code of its name as a last signal."""
    return replace(block, values=np.column_stack([block.values, np.full(len(block), labels.code(stem(path)))]))


def stem(path: str) -> str:
    """The name of a file without its folder and its endings.

    >>> stem("logs/pump.north.csv.gz")
    'pump.north'
    """
    return re.sub(r"(?i)(\.(csv|jsonl|ndjson|json|txt|tsv|log|parquet|pq))?(\.gz)?$", "", os.path.basename(path))


def is_pattern(spec: str) -> bool:
    """Whether a source is a pattern: a path with *, ? or [, and no file has that name."""
    address = scheme_of(spec) or LIKE_MQTT.match(spec)
    return glob.has_magic(spec) and not address and not os.path.exists(spec)


def natural_order(path: str) -> list[Any]:
    """A key by which numbers in names are compared as numbers.

    >>> sorted(["log.10", "log.2", "a7", "log.2.gz"], key=natural_order)
    ['a7', 'log.2', 'log.2.gz', 'log.10']
    """
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", path)]


def not_empty(paths: Sequence[str]) -> list[str]:
    """The files that are not empty; the first one, if all are."""
    return [path for path in paths if not (os.path.isfile(path) and os.path.getsize(path) == 0)] or list(paths[:1])


def _is_at_end(source: Source, position: dict[str, Any]) -> bool:
    """Whether no sample comes after the place of a position."""
    source.seek({**position, "skip": 0})
    return source.read() is None


def _described(style: TimeStyle | None) -> dict[str, str] | None:
    return None if style is None else style.as_json()


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
