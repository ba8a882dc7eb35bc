"""A recording at the pace of its times, so that it can be watched as if it came now."""

from __future__ import annotations

import threading
from bisect import bisect_right
from time import monotonic
from typing import Any, Literal

import numpy as np

from trueonline.inputs import positive
from trueonline.streams.sources.positions import skipping
from trueonline.streams.sources.sample import Block, Patience, Source, nothing

MAX_WAIT = 5.0  # seconds of waiting for a sample, at most
POLL_SECONDS = 0.1  # seconds of waiting for the source at a time
REAL_TIME_SECONDS = 600.0  # seconds: a recording that is not longer is replayed in real time …
REPLAY_SECONDS = 90.0  # … and a longer one takes about so long
SLOW_REPLAY_RATE = 40.0  # samples a second, if nobody knows how long a slow recording is
LOOKAHEAD_BLOCKS = 50  # blocks from which the length of a recording is estimated
GAP_STEPS = 10.0  # usual steps: a longer one is a gap


class Paced(Source):
    """The samples of a replayable source, each when it falls due.

    The first sample is due at once, and each later one as long after it as their times say. A block holds all samples that
    have fallen due, so that a slow reader gets all of them at once. There are two exceptions. A wait longer than `longest`
    seconds is shortened to that, so that nobody sits through gaps, unless the samples before came as slowly. A sample with an
    earlier time than one before it is due at once. If it is earlier by more than `longest` seconds, the pace is taken from
    there.

    Positions are those of the source, exact to the sample, and either can resume from the other's. Counters count what was
    read, which may be up to a block ahead of what was given.

    Parameters
    ----------
    source : Source
        A replayable source.
    pace : float or "fit"
        How many seconds of the source's times pass in one second. "fit" is `fitting_pace` of the source.
    longest : float
        The longest wait for a sample, in seconds, unless waits are usually longer than a tenth of it.
    """

    replayable = True

    def __init__(self, source: Source, pace: float | Literal["fit"] = 1.0, longest: float = MAX_WAIT) -> None:
        if not source.replayable:
            raise ValueError(
                f"pace is for what can be replayed, got {type(source).__name__}, which has its own; leave it out"
            )
        self.source = self._teller = self._clock = source
        self.signals = source.signals
        self.pace = fitting_pace(source) if pace == "fit" else check_pace(pace)
        self.longest = positive("longest", longest)
        self._closed = threading.Event()
        self._begin()

    def _begin(self) -> None:
        self._block, self._before = nothing(len(self.signals)), self.source.position()
        self._due: list[float] = []  # of the samples of the block
        self._at = 0  # how many of them were given
        self._latest: float | None = None  # the time to which the pace is kept
        self._last = 0.0  # when the last of them is due
        self._usual = 0.0  # the last wait that was not for a gap

    def read(self, timeout: float | None = None) -> Block | None:
        patience = Patience(timeout)
        while not self._closed.is_set():
            if self._at == len(self._due) and not self._more(patience):
                return None
            now, first = monotonic(), self._at
            self._at = bisect_right(self._due, now, first)
            if self._at > first:
                return self._block.part(first, self._at)
            if patience.over:
                return nothing(len(self.signals))
            if first < len(self._due):
                self._closed.wait(patience.left(self._due[first] - now))
        return None

    def _more(self, patience: Patience) -> bool:
        """Read the next block, if it comes within a moment. False at the end."""
        before = self.source.position()
        block = self.source.read(patience.left(POLL_SECONDS))
        if block is None:
            return False
        self._block, self._before, self._at = block, before, 0
        self._due = self._falling_due(block.times.tolist(), monotonic())
        return True

    def _falling_due(self, times: list[float], now: float) -> list[float]:
        if self._latest is None and times:
            self._latest, self._last = times[0], now
        due = []
        for t in times:
            wait = (t - self._latest) / self.pace  # type: ignore[operator]
            if wait > 0.0:
                is_gap = wait > self.longest and wait > GAP_STEPS * self._usual
                self._last += self.longest if is_gap else wait
                if not is_gap or not self._usual:
                    self._usual = wait
            if wait > 0.0 or wait < -self.longest:
                self._latest = t
            due.append(self._last)
        return due

    def position(self) -> dict[str, Any]:
        if self._at == len(self._due):
            return self.source.position()
        return skipping(self._before, self._block, self._at)

    def seek(self, position: dict[str, Any]) -> None:
        self.source.seek(position)
        self._begin()

    def progress(self) -> float | None:
        return self.source.progress()

    def close(self) -> None:
        self._closed.set()
        self.source.close()


def check_pace(pace: Any) -> Any:
    """A pace, which must be a number larger than 0, or "fit"."""
    return pace if pace == "fit" else positive("pace", pace)


def fitting_pace(source: Source) -> float:
    """A pace at which a recording can be watched.

    Parameters
    ----------
    source : Source
        A replayable source. It is read a little and stands where it stood afterwards.

    Returns
    -------
    float
        1, real time, for up to about ten minutes. A longer recording takes a minute and a half.
    """
    position, times = source.position(), [np.empty(0)]
    share: float | None = None
    for _ in range(LOOKAHEAD_BLOCKS):
        block = source.read(0.0)
        if block is None:
            share = 1.0
            break
        times.append(block.times)
        share = source.progress()
        if share is None and len(block):  # nobody knows how much there is
            break
    source.seek(position)
    steps = np.diff(np.concatenate(times))
    steps = steps[steps > 0.0]
    if not len(steps):
        return 1.0
    typical = float(np.median(steps))
    if not share:
        return 1.0 if typical <= 1.0 else _round(SLOW_REPLAY_RATE * typical)
    seconds = float(steps[steps <= GAP_STEPS * typical].sum()) / share
    return 1.0 if seconds <= REAL_TIME_SECONDS else _round(seconds / REPLAY_SECONDS)


def _round(pace: float) -> float:
    """A pace with two digits, because people read it."""
    return float(f"{pace:.2g}")
