"""Samples made fit to learn from: in order, with gaps marked, and without NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.core.forms import pointer
from trueonline.inputs import FLOATS, number, positive
from trueonline.streams.sources.sample import Block, Clean, named

POLICIES = ("hold", "skip", "error")
COUNTERS = (
    "samples",
    "dropped_duplicate",
    "dropped_late",
    "dropped_missing",
    "dropped_time",
    "held",
    "gaps",
    "clock_set_back",
)
SAMPLES, DUPLICATE, LATE, MISSING, TIMELESS, HELD, GAPS, SET_BACK = range(len(COUNTERS))
RUN, RISING = len(COUNTERS), len(COUNTERS) + 1  # late samples in a row up to now, and how many of the last of them rise
HOLD, SKIP, ERROR = range(3)

MAX_VALUE = 1e100  # the square of a larger value, or a sum of squares, might not be finite
MAX_TIME = 1e11  # seconds: in the year 5138; a later time, or one as long before 1970, is none
MAX_LATE_RUN = 1000  # late samples in a row, after which the clock must have been set back
MIN_RISING_RUN, MIN_RISING_SECONDS = 10, 10.0  # or as many, and over more than so many seconds, if their times rise


# --- In a kernel ----------------------------------------------------------------------------------


def clean(times, values, policy, max_gap, last, counts, out_times, out_values, starts, rows):
    """Write the samples that are kept. Return their number, and the row and signal of a missing value that is an error (or −1).

    `last` holds the last value of each signal, then the time that was kept last, then the first and the newest of the late
    times that rise up to now. NaN stands for none yet.
    """
    size, kept = values.shape[1], 0
    held_values, span, count = pointer(last, 0), pointer(last, size + 1), pointer(counts, 0)
    for k in range(times.size):
        t, before = times[k], held_values[size]
        count[SAMPLES] += 1
        if not abs(t) <= MAX_TIME:
            count[TIMELESS] += 1
            continue
        if t == before:
            count[DUPLICATE] += 1
            continue
        if late(t, before, span, count):
            continue
        set_back, complete = t < before, True
        given, taken = pointer(values, k * size), pointer(out_values, kept * size)
        held = 0
        for j in range(size):
            x = given[j]
            if abs(x) <= MAX_VALUE:
                if policy == HOLD:
                    held_values[j] = x
            elif policy == HOLD and not np.isnan(held_values[j]):
                x = held_values[j]
                held += 1
            elif policy == ERROR:
                return kept, k, j
            else:
                complete = False
            taken[j] = x
        if count[RUN] and (complete or not set_back):
            count[RUN] = count[RISING] = 0
            span[0] = span[1] = np.nan
        if not complete:
            count[MISSING] += 1
            continue
        gap = t - before > max_gap
        count[GAPS] += gap
        count[SET_BACK] += set_back
        count[HELD] += held
        out_times[kept], rows[kept] = t, k
        starts[kept] = gap or set_back or np.isnan(before)
        held_values[size] = t
        kept += 1
    return kept, -1, -1


@kernel
def late(t, before, span, counts):
    """Whether a sample is late. If not, but its time is earlier than the one kept last, the clock was set back."""
    if not t < before:
        return False
    rises = counts[RISING] > 0 and t > span[1]
    risen = rises and counts[RISING] >= MIN_RISING_RUN and span[1] - span[0] > MIN_RISING_SECONDS
    if risen or counts[RUN] >= MAX_LATE_RUN:
        return False
    counts[LATE] += 1
    counts[RUN] += 1
    if rises:
        counts[RISING] += 1
        span[1] = t
    elif counts[RISING] == 0 or t < span[1]:
        counts[RISING] = 1
        span[0] = span[1] = t
    return True


_CLEAN = specialise(clean, "cleaning")


# --- Seen from Python -----------------------------------------------------------------------------


class Cleaner:
    """Blocks to clean blocks. Call it with a `Block` to get a `Clean`.

    These rules apply to each sample in turn:

    1. A sample whose time is not finite, or beyond ±1e11 s, has no time. It is dropped under every policy, and counted as
       `dropped_time`. (Times since the epoch in milliseconds, taken for seconds, are such times.)
    2. A sample with the time of the one kept last is a duplicate, and one with an earlier time is late. Both are dropped.
    3. After 1,000 late samples in a row, the clock was set back. The next sample, however early, is kept as a start and
       counted as `clock_set_back`. Otherwise one time from the far future would be the last that is ever kept. Slow streams
       need not wait for 1,000. Ten late samples are enough if their times rise, over more than 10 s from the first to the
       newest, and the next sample continues the rise. (A late sample with the same time as the one before it neither ends
       such a rise nor belongs to it.) A sample with a later time than the one kept last ends the run. Duplicates of that one
       and samples without a time neither end the run nor belong to it.
    4. A value that is NaN, infinite or beyond ±1e100 is missing.
    5. The first sample that is kept is a start. So is one more than `max_gap` seconds after the one kept last, and one at
       which the clock was set back. Values are held across starts.

    The counter `held` counts values, and all others count samples. Every sample is kept or `dropped`. How the samples are
    split into blocks makes no difference.

    Parameters
    ----------
    signals : sequence of str
        The names of the signals.
    max_gap : float, optional
        The longest distance, in seconds, between samples that belong together. None allows any distance.
    missing : {"hold", "skip", "error"}
        "hold" puts the signal's last value in place of a missing one. While there is none, it drops the sample and
        remembers its other values. "skip" drops the sample. "error" raises a ValueError that names the time and the signal,
        and the whole block counts as not seen.

    Examples
    --------
    >>> cleaner = Cleaner(["a"], max_gap=1.0)
    >>> clean = cleaner(Block(np.array([0.0, 0.5, 0.5, 2.0]), np.array([[1.0], [np.nan], [2.0], [3.0]])))
    >>> clean.times, clean.values[:, 0], clean.starts
    (array([0. , 0.5, 2. ]), array([1., 1., 3.]), array([ True, False,  True]))
    >>> cleaner.counters()
    {'samples': 4, 'dropped_duplicate': 1, 'dropped_late': 0, 'dropped_missing': 0, 'dropped_time': 0, 'held': 1,
     'gaps': 1, 'clock_set_back': 0}
    >>> cleaner.dropped
    1
    """

    def __init__(self, signals: Sequence[str], max_gap: float | None = None, missing: str = "hold") -> None:
        self.signals = named(signals)
        self.max_gap = math.inf if max_gap is None else positive("max_gap", max_gap)
        if missing not in POLICIES:
            raise ValueError(f"missing must be one of {', '.join(POLICIES)}, got {missing!r}")
        self.missing = missing
        self._last = np.full(len(self.signals) + 3, math.nan)
        self._counts = np.zeros(len(COUNTERS) + 2, np.int64)

    def __call__(self, block: Block) -> Clean:
        """Clean a block.

        Parameters
        ----------
        block : Block
            Samples as they came.

        Returns
        -------
        Clean
            The samples that are kept.

        Raises
        ------
        ValueError
            If the block has another shape, or if a value is missing and `missing` is "error". Nothing has changed then.
        """
        times, values = _fit(block.times), _fit(block.values)
        if times.ndim != 1 or values.shape != (len(times), len(self.signals)):
            raise ValueError(
                f"a block must have k times and k rows of {len(self.signals)} values, got shapes {times.shape} and "
                f"{values.shape}"
            )
        last, counts = self._last.copy(), self._counts.copy()
        kept_times, kept_values = np.empty(times.shape), np.empty(values.shape)
        starts, rows = np.empty(times.shape, np.bool_), np.empty(times.shape, np.int64)
        policy = POLICIES.index(self.missing)
        state = (policy, self.max_gap, last, counts)
        kept, k, j = call(_CLEAN, times, values, *state, kept_times, kept_values, starts, rows)
        if k >= 0:
            raise ValueError(
                f"signal {self.signals[j]} is missing ({values[k, j]}) in the sample of time {float(times[k])}; set missing to "
                "hold or skip (--missing) to continue without it"
            )
        self._last, self._counts = last, counts
        return Clean(kept_times[:kept], kept_values[:kept], starts[:kept], block.offset, rows[:kept])

    def counters(self) -> dict[str, int]:
        """The counts so far.

        Returns
        -------
        dict
            `samples`, those `dropped_…` for each reason, `held` values, `gaps`, and how often the `clock_set_back`.
        """
        return dict(zip(COUNTERS, self._counts[:RUN].tolist(), strict=True))

    @property
    def dropped(self) -> int:
        """How many samples were dropped, for any reason."""
        return int(self._counts[[DUPLICATE, LATE, MISSING, TIMELESS]].sum())

    def state(self) -> dict[str, Any]:
        """All that `restore` needs to resume exactly.

        Returns
        -------
        dict
            A state that can be written as JSON.
        """
        last = [None if math.isnan(value) else value for value in self._last.tolist()]
        return {
            "signals": list(self.signals),
            "last": last[:-3],
            "time": last[-3],
            "late_in_a_row": int(self._counts[RUN]),
            "late_rising": [int(self._counts[RISING]), *last[-2:]],  # how many, the first and the newest
            "counters": self.counters(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state.

        Parameters
        ----------
        state : dict
            The return value of `state`. The signals must be the same. The gap and the policy may be others.

        Raises
        ------
        ValueError
            If it is not such a state, or of other signals. Nothing has changed then.
        """
        try:
            signals, last, time = tuple(state["signals"]), state["last"], state["time"]
            rising, *span = state["late_rising"]
            counts = [*(state["counters"][name] for name in COUNTERS), state["late_in_a_row"], rising]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is not the state of a Cleaner: {error!r} in {str(state)[:80]}") from None
        if signals != self.signals:
            raise ValueError(f"the state is of signals {', '.join(map(str, signals))}, not of {', '.join(self.signals)}")
        whole = (
            all(type(count) is int and 0 <= count < 2**63 for count in counts) and rising <= counts[RUN] <= MAX_LATE_RUN
        )
        fits = type(last) is list and len(last) == len(self.signals) and len(span) == 2
        if not whole or not fits or any((each is None) != (rising == 0) for each in span):
            raise ValueError(f"the state of the Cleaner is damaged: {str(state)[:80]}")
        kept = [_held("a value held", value, MAX_VALUE) for value in last]
        times = [_held("the time kept last", time, MAX_TIME), *(_held("a late time", each, MAX_TIME) for each in span)]
        self._last = np.array([*kept, *times])
        self._counts = np.array(counts, np.int64)


def _held(name: str, value: Any, most: float) -> float:
    return math.nan if value is None else number(name, value, f"within ±{most:g}", lambda x: abs(x) <= most)


def _fit(array: np.ndarray) -> np.ndarray:
    """The array itself if the kernel can read it, as all sources' arrays. (`require` takes a microsecond.)"""
    if type(array) is np.ndarray and array.dtype is FLOATS and array.flags.carray:
        return array
    return np.require(array, np.float64, ("C", "A", "W"))
