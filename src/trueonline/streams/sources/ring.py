"""A bounded queue of samples between a thread that receives them and one that reads them."""

from __future__ import annotations

import threading

import numpy as np

from trueonline.streams.sources.sample import BLOCK_ROWS, Block, Patience, nothing

QUEUE_SAMPLES = 2**16  # samples that may wait, by default


class Ring:
    """Room for `size` samples. If it is full, the oldest samples make way and are counted, because new ones matter more."""

    def __init__(self, signals: int, size: int) -> None:
        self._times, self._values = np.empty(size), np.empty((size, signals))
        self._first = self._length = 0
        self._changed = threading.Condition()
        self._closed = False
        self._failure: Exception | None = None
        self.received = self.dropped = 0

    @property
    def waiting(self) -> int:
        """How many samples wait to be read."""
        return self._length

    def put(self, times: np.ndarray, values: np.ndarray) -> None:
        size = len(self._times)
        with self._changed:
            self.received += len(times)
            excess = max(self._length + len(times) - size, 0)
            self.dropped += excess
            times, values = times[-size:], values[-size:]
            drop = min(excess, self._length)
            self._first, self._length = (self._first + drop) % size, self._length - drop
            at = (self._first + self._length) % size
            until = min(size - at, len(times))  # what does not fit before the end goes to the beginning
            rest = len(times) - until
            self._times[at : at + until], self._values[at : at + until] = times[:until], values[:until]
            if rest:
                self._times[:rest], self._values[:rest] = times[until:], values[until:]
            self._length += len(times)
            self._changed.notify()

    def take(self, timeout: float | None) -> Block | None:
        """The samples that wait, at most a block, or None if the queue is closed. A failure is raised after what arrived."""
        with self._changed:
            if not self._length:
                self._wait(Patience(timeout))
            if self._closed:
                return None
            if self._length:
                return self._out()
            if self._failure is not None:
                raise self._failure
            return nothing(self._values.shape[1])

    def _wait(self, patience: Patience) -> None:
        while not self._length and not self._closed and self._failure is None and not patience.over:
            self._changed.wait(patience.left(1.0))

    def _out(self) -> Block:
        size, at, number = len(self._times), self._first, min(self._length, BLOCK_ROWS)
        self._first, self._length = (at + number) % size, self._length - number
        if at + number <= size:
            return Block(self._times[at : at + number].copy(), self._values[at : at + number].copy())
        places = np.arange(at, at + number) % size
        return Block(self._times[places], self._values[places])

    def fail(self, error: Exception) -> None:
        """Nothing more will come, for this reason."""
        with self._changed:
            self._failure = error
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
