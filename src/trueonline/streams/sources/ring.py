"""A bounded queue of samples between a thread that receives them and one that reads them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

import numpy as np

from trueonline.streams.sources.sample import BLOCK_ROWS, Block, Patience, nothing

QUEUE_SAMPLES = 2**16  # samples that may wait, by default


class Ring:
    """Room for `size` samples. If it is full, the oldest samples make way and are counted, because new ones matter more."""

    def __init__(self, signals: int, size: int) -> None:
        self._signals = signals
        self._rows: deque[tuple[float, Sequence[float]]] = deque(maxlen=size)
        self._changed = threading.Condition()
        self._closed = False
        self._failure: Exception | None = None
        self.received = self.dropped = 0

    @property
    def waiting(self) -> int:
        """How many samples wait to be read."""
        return len(self._rows)

    def put(self, times: Sequence[float] | np.ndarray, values: Sequence[Sequence[float]] | np.ndarray) -> None:
        with self._changed:
            self.received += len(times)
            before = len(self._rows) + len(times)
            self._rows.extend(zip(times, values, strict=True))
            self.dropped += before - len(self._rows)
            self._changed.notify()

    def take(self, timeout: float | None) -> Block | None:
        """The samples that wait, at most a block, or None if the queue is closed. A failure is raised after what arrived."""
        with self._changed:
            if not self._rows:
                self._wait(Patience(timeout))
            if self._closed:
                return None
            if self._rows:
                return self._out()
            if self._failure is not None:
                raise self._failure
            return nothing(self._signals)

    def _wait(self, patience: Patience) -> None:
        while not self._rows and not self._closed and self._failure is None and not patience.over:
            self._changed.wait(patience.left(1.0))

    def _out(self) -> Block:
        rows = [self._rows.popleft() for _ in range(min(len(self._rows), BLOCK_ROWS))]
        return Block(np.array([time for time, _ in rows], float), np.array([values for _, values in rows], float))

    def fail(self, error: Exception) -> None:
        """Nothing more will come, for this reason."""
        with self._changed:
            self._failure = error
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
