"""Live sources: samples that a thread receives and a queue keeps until they are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, ClassVar

from trueonline.inputs import count
from trueonline.streams.sources.ring import Ring
from trueonline.streams.sources.sample import Block, Source, named

QUIET_SECONDS = 0.25  # seconds without a sample after which nothing more is under way


class LiveSource(Source):
    """The common part of sources with a queue.

    They count `malformed` samples, `connections`, samples `received`, samples that made way for newer ones because the reader
    was too slow (`dropped_overflow`), and samples that were still in the queue when the time of `finish` was over
    (`dropped_at_stop`). Subclasses add counters of their own to `_counts`.
    """

    kind: ClassVar[str]

    def __init__(self, signals: Sequence[str], time: str | None, queue: int) -> None:
        self.signals = named(signals, time)
        self.queue = count("queue", queue)
        self._ring = Ring(len(self.signals), self.queue)
        self._counts = {"malformed": 0, "connections": 0}
        self._samples = 0
        self._deadline: float | None = None  # set by `finish`

    def read(self, timeout: float | None = None) -> Block | None:
        if self._deadline is not None:
            if monotonic() >= self._deadline:
                return None
            timeout = QUIET_SECONDS
        block = self._ring.take(timeout)
        if block is None or (self._deadline is not None and not len(block)):
            return None
        self._samples += len(block)
        style = self.style
        return block if style is None or not style.offset else replace(block, offset=style.offset)

    def finish(self, seconds: float) -> bool:
        self._deadline = monotonic() + seconds
        self._want_no_more(seconds)
        return True

    @abstractmethod
    def _want_no_more(self, seconds: float) -> None:
        """Let no new samples come, and those that were sent before arrive."""

    def position(self) -> dict[str, Any]:
        return {"kind": self.kind, "samples": self._samples}

    def counters(self) -> dict[str, int]:
        left = 0 if self._deadline is None else self._ring.waiting
        return {
            **self._counts,
            "received": self._ring.received,
            "dropped_overflow": self._ring.dropped,
            "dropped_at_stop": left,
        }
