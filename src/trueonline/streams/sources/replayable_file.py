"""The common part of all files: they can be read again from any position, and none is held in memory."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.positions import after_skipped, checked_skipped, nothing_skipped, whole_numbers
from trueonline.streams.sources.sample import Block, Patience, Source, named, nothing

POLL_SECONDS = 0.01  # seconds between looks at a file that may grow


class FileReader(ABC):
    """An open file, read from some place on."""

    waiting = False  # whether the end is reached of a file that may grow

    @abstractmethod
    def take(self) -> Block | None:
        """The next block, perhaps an empty one, or None at the end."""

    @abstractmethod
    def blocks(self) -> Iterable[Block]:
        """The blocks up to the end, without waiting for more."""

    @abstractmethod
    def place(self) -> dict[str, Any]:
        """The place of the next row, what tells this file from others, and all that was counted."""

    @abstractmethod
    def counters(self) -> dict[str, int]: ...

    @abstractmethod
    def complaint(self) -> str | None: ...

    def remark(self) -> str:
        return ""

    @abstractmethod
    def progress(self) -> float | None: ...

    @abstractmethod
    def close(self) -> None: ...


class ReplayableFile(Source):
    """A file as a source. A subclass says how to open it at a place."""

    replayable = True
    kind: ClassVar[str]

    def __init__(self, path: str | os.PathLike, signals: Sequence[str], clock: Clock) -> None:
        self.path = Path(path)
        self.signals = named(signals, clock.time)
        self._clock: Clock = clock
        self._closed, self._lock = threading.Event(), threading.Lock()
        self._rest: tuple[Block, dict[str, Any]] | None = None  # of the block in which a position lies, and that position
        self._reader = self._teller = self._opened(None)

    @abstractmethod
    def _opened(self, position: dict[str, Any] | None) -> FileReader:
        """A reader of the file from its beginning, or from the place of a position that fits the file."""

    def read(self, timeout: float | None = None) -> Block | None:
        patience = Patience(timeout)
        while True:
            with self._lock:
                if self._closed.is_set():
                    return None
                if self._rest is not None:
                    block: Block | None = self._rest[0]
                    self._rest = None
                else:
                    block = self._reader.take()
                if block is None or len(block):
                    return block
                waiting = self._reader.waiting
            if waiting:
                self._closed.wait(patience.left(POLL_SECONDS))
            if patience.over:
                return nothing(len(self.signals))

    def position(self) -> dict[str, Any]:
        if self._rest is not None:
            return dict(self._rest[1])
        return {"kind": self.kind, **self._reader.place(), "skip": 0, "skipped": nothing_skipped(self.signals)}

    def seek(self, position: dict[str, Any]) -> None:
        if self._closed.is_set():
            raise ValueError(f"{self.path} was closed; open it again")
        whole_numbers(position, self.kind, "skip")
        reader, rest = self._opened(position), None
        try:
            if position["skip"]:
                block = after_skipped(str(self.path), position, self.signals, reader.blocks())
                rest = block, {**position, "skipped": checked_skipped(position, self.signals)}
        except BaseException:
            reader.close()
            raise
        with self._lock:
            self._reader.close()
            self._reader, self._rest = reader, rest
            self._teller = reader

    def progress(self) -> float | None:
        return None if self._closed.is_set() else self._reader.progress()

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._reader.close()
