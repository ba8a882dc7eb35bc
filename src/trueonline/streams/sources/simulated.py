"""The simulated arm as a source, to try everything with if there is nothing to measure."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from trueonline.problems import arm
from trueonline.streams.sources.positions import whole_numbers
from trueonline.streams.sources.sample import BLOCK_ROWS, Block, Patience, Source, check_columns, named, nothing

ADDRESS = re.compile(r"arm(?:://(?P<seed>[0-9]{1,18})?)?")


class Arm(Source):
    """The readings of the simulated arm, without end, as fast as they can be made. The address is `arm` or `arm://SEED`.

    The sample of row i has the time i/40 s. The same seed gives the same samples, so that the arm can be replayed. The first
    `read` after `seek` makes all samples before the position again. That takes about ten seconds for a million samples,
    seven hours of the arm.

    Parameters
    ----------
    seed : int
        The seed, a whole number that is not negative.
    signals : sequence of str
        Some of position, velocity, force, flexor and extensor.
    """

    replayable = True
    own_times = True
    names = arm.NAMES

    def __init__(self, seed: int, signals: Sequence[str]) -> None:
        if type(seed) is not int or seed < 0:
            raise ValueError(f"the seed of the arm must be a whole number that is not negative, got {seed!r}")
        self.seed, self.signals = seed, named(signals)
        check_columns("the simulated arm", arm.NAMES, self.signals, "what is read of it")
        self._places = [arm.NAMES.index(name) for name in self.signals]
        self._closed = threading.Event()
        self._from(0)

    @classmethod
    def from_address(cls, address: str, signals: Sequence[str], clock: dict[str, Any], queue: int) -> Arm:
        return cls(seed_of(address), signals)

    def _from(self, row: int) -> None:
        self._samples, self._row, self._skip = arm.samples(self.seed), 0, row

    def read(self, timeout: float | None = None) -> Block | None:
        patience = Patience(timeout)
        while not self._closed.is_set():
            if not self._skip:
                first, self._row = self._row, self._row + BLOCK_ROWS
                values = np.array(list(islice(self._samples, BLOCK_ROWS)))[:, self._places]
                return Block(np.arange(first, self._row) / arm.RATE, values)
            step = min(self._skip, BLOCK_ROWS)
            deque(islice(self._samples, step), maxlen=0)
            self._row, self._skip = self._row + step, self._skip - step
            if patience.over:
                return nothing(len(self.signals))
        return None

    def position(self) -> dict[str, Any]:
        return {"kind": "arm", "seed": self.seed, "row": self._row + self._skip, "skip": 0}

    def seek(self, position: dict[str, Any]) -> None:
        seed, row, skip = whole_numbers(position, "arm", "seed", "row", "skip")
        if seed != self.seed:
            raise ValueError(f"the position is of the arm with seed {seed}, this one has {self.seed}; use arm://{seed}")
        self._from(row + skip)

    def counters(self) -> dict[str, int]:
        return {"malformed": 0}

    def close(self) -> None:
        self._closed.set()


def seed_of(address: str) -> int:
    """The seed in `arm` (0) or `arm://SEED`."""
    match = ADDRESS.fullmatch(address)
    if match is None:
        raise ValueError(f"the address must be arm or arm://SEED with a whole number, got {address}")
    return int(match["seed"] or 0)
