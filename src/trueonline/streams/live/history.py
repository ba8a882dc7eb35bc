"""All of a stream in bounded memory: buckets of consecutive samples, whose width doubles when there is no more room.

A bucket has the times of its first and last sample, the mean of every column, and the lowest and highest value of every signal.
A bucket that is written never changes. When all places are taken, every two buckets become one, in new arrays. So readers in
other threads need no lock: the arrays that they hold never change.
"""

from __future__ import annotations

import numpy as np


class Buckets:
    """Buckets of one width. Those before `done` are written and do not change."""

    def __init__(self, first: int, width: int, most: int, columns: int, signals: int) -> None:
        self.first, self.width = first, width  # the number of the first sample, and samples in a bucket
        self.done = 0
        self.begins, self.ends = np.empty(most), np.empty(most)
        self.means = np.empty((most, columns), np.float32)
        self.lows, self.highs = np.empty((most, signals), np.float32), np.empty((most, signals), np.float32)

    def write(self, begins: np.ndarray, ends: np.ndarray, means: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> None:
        """Write buckets behind the last one."""
        to = slice(self.done, self.done + len(begins))
        self.begins[to], self.ends[to], self.means[to], self.lows[to], self.highs[to] = begins, ends, means, lows, highs
        self.done = to.stop  # last, because a reader looks at it first

    def halved(self) -> Buckets:
        """As many samples in half as many buckets. The number of buckets must be even."""
        merged = Buckets(self.first, 2 * self.width, len(self.begins), self.means.shape[1], self.lows.shape[1])
        means = (self.means[0::2].astype(float) + self.means[1::2]) / 2.0
        lows, highs = np.minimum(self.lows[0::2], self.lows[1::2]), np.maximum(self.highs[0::2], self.highs[1::2])
        merged.write(self.begins[0::2], self.ends[1::2], means, lows, highs)
        return merged


class BucketHistory:
    """Buckets over all samples since the beginning, or since the clock was set back.

    One thread calls `add`. `buckets` may be read by any thread. At most `most` buckets of `width` samples each are kept, before
    they merge. The first `signals` of the `columns` also have their lowest and highest values.
    """

    def __init__(self, columns: int, signals: int, most: int, width: int = 1) -> None:
        self._shape, self._width = (max(most // 2, 1) * 2, columns, signals), width
        self._samples, self._latest = 0, -np.inf
        self._begin(0)

    def _begin(self, first: int) -> None:
        self.buckets = Buckets(first, self._width, *self._shape)
        self._filled = 0  # samples of the bucket that is not full yet: their times, sum, lowest and highest values
        self._open = (0.0, 0.0, np.zeros(0), np.zeros(0), np.zeros(0))

    def add(self, times: np.ndarray, rows: np.ndarray) -> None:
        """Take samples: their times, and rows of all columns. A value that is not a number makes its bucket's not one either."""
        back = np.flatnonzero(np.diff(times, prepend=self._latest) < 0.0)
        if len(back):  # the clock was set back: nothing could be found by its time
            times, rows = times[back[-1] :], rows[back[-1] :]
            self._samples += int(back[-1])
            self._begin(self._samples)
        self._samples += len(times)
        while len(times):
            self._latest = float(times[-1])
            buckets = self.buckets
            if not self._filled and len(times) >= buckets.width:
                whole = min(len(times) // buckets.width, len(buckets.begins) - buckets.done)
                taken = whole * buckets.width
                self._write(times[:taken].reshape(whole, -1), rows[:taken].reshape(whole, buckets.width, -1))
            else:
                taken = min(buckets.width - self._filled, len(times))
                self._fill(times[:taken], rows[:taken])
            times, rows = times[taken:], rows[taken:]
            if buckets.done == len(buckets.begins):
                self.buckets = buckets.halved()

    def _write(self, times: np.ndarray, rows: np.ndarray) -> None:
        signals = rows[:, :, : self._shape[2]]
        self.buckets.write(times[:, 0], times[:, -1], rows.mean(1, dtype=float), signals.min(1), signals.max(1))

    def _fill(self, times: np.ndarray, rows: np.ndarray) -> None:
        signals = rows[:, : self._shape[2]]
        begin, end, total, low, high = times[0], times[-1], rows.sum(0, dtype=float), signals.min(0), signals.max(0)
        if self._filled:
            before = self._open
            begin, total = before[0], before[2] + total
            low, high = np.minimum(before[3], low), np.maximum(before[4], high)
        self._open, self._filled = (begin, end, total, low, high), self._filled + len(times)
        if self._filled == self.buckets.width:
            one = (np.atleast_1d(begin), np.atleast_1d(end), total[None] / self._filled, low[None], high[None])
            self._filled = 0
            self.buckets.write(*one)
