"""Files that grow at the same time, each of which is the stream of a signal."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from trueonline.streams.sources.clock import TimeStyle
from trueonline.streams.sources.file_chain import MAX_NAMED_FILES, files_named, labelled
from trueonline.streams.sources.labels import Labels
from trueonline.streams.sources.positions import skipping, whole_numbers
from trueonline.streams.sources.sample import Block, Patience, Source, nothing
from trueonline.words import listed

LOOK_SECONDS = 1.0  # seconds between looks for new files
POLL_SECONDS = 0.2  # seconds between looks at files that may grow


class Together(Source):
    """The samples of several files that grow at the same time, as they are appended. The name of a file is that of its signal.

    New files of the folders and patterns are read too. A file that cannot be read is left out, and a remark names it.

    A position has one for each file.

    Parameters
    ----------
    specs : sequence of str
        Files, folders and patterns.
    opened : callable
        Opens a file, by its path.
    labels : Labels
        Codes of the names of files, for a last signal. A name is without folder and ending.
    """

    replayable = True

    def __init__(self, specs: Sequence[str], opened: Callable[[str], Source], labels: Labels) -> None:
        self._specs, self._opened, self._labels = specs, opened, labels
        self._sources: dict[str, Source] = {}  # by their paths, that which was read last at the end
        self._left_out: dict[str, str] = {}  # why, by the path
        self._gone: list[str] = []  # files in which a position lies, but which are not there
        self._style: TimeStyle | None = None
        self._closed, self._lock = threading.Event(), threading.Lock()
        self._look()
        self.signals = (*next(iter(self._sources.values())).signals, labels.column)

    def _look(self) -> None:
        """Look for new files. ValueError if there is none that can be read."""
        self._due = monotonic() + LOOK_SECONDS
        for path in files_named(self._specs):
            if path not in self._sources and path not in self._left_out:
                try:
                    self._sources[path] = self._opened(path)
                except ValueError as error:
                    self._leave_out(path, error)
        if not self._sources:
            raise ValueError(next(iter(self._left_out.values())))

    def _leave_out(self, path: str, error: ValueError) -> None:
        self._left_out[path] = str(error)
        if path in self._sources:
            self._sources.pop(path).close()

    def read(self, timeout: float | None = None) -> Block | None:
        patience = Patience(timeout)
        while True:
            with self._lock:
                if self._closed.is_set():
                    return None
                for path, source in list(self._sources.items()):
                    try:
                        block = source.read(0.0)
                    except ValueError as error:
                        self._leave_out(path, error)
                        continue
                    if block is not None and len(block):
                        self._sources[path] = self._sources.pop(path)
                        return labelled(block, self._labels, path)
                if monotonic() >= self._due or not self._sources:
                    self._look()
            if patience.over:
                return nothing(len(self.signals))
            self._closed.wait(patience.left(POLL_SECONDS))

    def position(self) -> dict[str, Any]:
        return {"kind": "files", "of": {path: source.position() for path, source in self._sources.items()}}

    def position_within(self, position: dict[str, Any], block: Block, rows: int) -> dict[str, Any]:
        path = [*self._sources][-1]
        return {**position, "of": position["of"] | {path: skipping(position["of"][path], block, rows)}}

    def seek(self, position: dict[str, Any]) -> None:
        whole_numbers(position, "files")
        if not isinstance(position.get("of"), dict):
            raise ValueError(f"the position is damaged: of must have a position for each file, got {str(position)[:80]}")
        for path, each in position["of"].items():
            if path in self._sources:
                self._sources[path].seek(each)
        self._gone = [path for path in position["of"] if path not in self._sources]

    @property
    def style(self) -> TimeStyle | None:
        return self._style or next((each.style for each in self._sources.values() if each.style is not None), None)

    @style.setter
    def style(self, style: TimeStyle | None) -> None:
        self._style = style

    @property
    def lost(self) -> str:  # type: ignore[override]
        """What is missing of the files."""
        gone = f"what was written to {listed(self._gone, most=MAX_NAMED_FILES)}, which is gone" if self._gone else ""
        return ". ".join(filter(None, [gone, *(each.lost for each in self._sources.values())]))

    def counters(self) -> dict[str, int]:
        together: Counter[str] = Counter()
        for source in self._sources.values():
            together.update(source.counters())
        return dict(together)

    def complaint(self) -> str | None:
        return next(filter(None, (each.complaint() for each in self._sources.values())), None)

    def remark(self) -> str:
        """Why files were left out, or the first remark about a file."""
        if self._left_out:
            return f"left out: {'; '.join([*self._left_out.values()][:MAX_NAMED_FILES])}"
        return next(filter(None, (each.remark() for each in self._sources.values())), "")

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            for source in self._sources.values():
                source.close()
