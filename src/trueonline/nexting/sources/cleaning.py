"""Samples made fit to learn from: in order, without gaps that nobody marked, and without NaN."""

# Kernels are typed by Numba.
# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueonline.inputs import number, positive
from trueonline.kernels import call, specialise
from trueonline.nexting.sources.sample import Block, Clean, named

POLICIES = ("hold", "skip", "error")
COUNTERS = ("samples", "dropped_duplicate", "dropped_late", "dropped_missing", "held", "gaps")
SAMPLES, DUPLICATE, LATE, MISSING, HELD, GAPS = range(6)
HOLD, SKIP, ERROR = range(3)


# --- In a kernel ----------------------------------------------------------------------------------


def clean(times, values, policy, max_gap, last, counts, out_times, out_values, starts):
    """Write what is kept; return how much that is, and the row and signal of a value that must not be missing (or −1).

    `last` is the value of each signal that was seen last, then the time that was kept last; NaN where there is none yet.
    """
    size = values.shape[1]
    kept = 0
    for k in range(times.size):
        t, before = times[k], last[size]
        counts[SAMPLES] += 1
        if not np.isfinite(t):
            counts[MISSING] += 1
            continue
        if t == before:
            counts[DUPLICATE] += 1
            continue
        if t < before:
            counts[LATE] += 1
            continue
        complete = True
        held = 0
        for j in range(size):
            x = values[k, j]
            if np.isfinite(x):
                if policy == HOLD:
                    last[j] = x
            elif policy == HOLD and not np.isnan(last[j]):
                x = last[j]
                held += 1
            elif policy == ERROR:
                return kept, k, j
            else:
                complete = False
            out_values[kept, j] = x
        if not complete:
            counts[MISSING] += 1
            continue
        gap = t - before > max_gap
        counts[GAPS] += gap
        counts[HELD] += held
        out_times[kept] = t
        starts[kept] = gap or np.isnan(before)
        last[size] = t
        kept += 1
    return kept, -1, -1


_CLEAN = specialise(clean, "cleaning")


# --- Seen from Python -----------------------------------------------------------------------------


class Cleaner:
    """From blocks to clean blocks, by these rules, for each sample in its turn:

    1. A sample with the time of the one kept last is a duplicate, and one with an earlier time is late. Both are dropped.
       A time that is not finite is missing: the sample is dropped, whatever the policy.
    2. A value that is NaN or infinite is missing. `missing="hold"` puts the signal's last value in its place, and drops
       the sample while there is none (its other values are remembered). `"skip"` drops the sample. `"error"` is a
       ValueError that names the time and the signal, and the whole block counts as not seen.
    3. The first sample that is kept is a start. So is one more than `max_gap` seconds after the one kept last. Values are
       held across gaps.

    `held` counts values; everything else counts samples. How the samples are split into blocks makes no difference.

    >>> cleaner = Cleaner(["a"], max_gap=1.0)
    >>> clean = cleaner(Block(np.array([0.0, 0.5, 0.5, 2.0]), np.array([[1.0], [np.nan], [2.0], [3.0]])))
    >>> clean.times, clean.values[:, 0], clean.starts
    (array([0. , 0.5, 2. ]), array([1., 1., 3.]), array([ True, False,  True]))
    >>> cleaner.counters()
    {'samples': 4, 'dropped_duplicate': 1, 'dropped_late': 0, 'dropped_missing': 0, 'held': 1, 'gaps': 1}
    """

    def __init__(self, signals: Sequence[str], max_gap: float | None = None, missing: str = "hold") -> None:
        self.signals = named(signals)
        self.max_gap = math.inf if max_gap is None else positive("max_gap", max_gap)
        if missing not in POLICIES:
            raise ValueError(f"missing must be one of {', '.join(POLICIES)}, got {missing!r}")
        self.missing = missing
        self._last = np.full(len(self.signals) + 1, math.nan)
        self._counts = np.zeros(len(COUNTERS), np.int64)

    def __call__(self, block: Block) -> Clean:
        times = np.require(block.times, np.float64, ("C", "A", "W"))
        values = np.require(block.values, np.float64, ("C", "A", "W"))
        if times.ndim != 1 or values.shape != (len(times), len(self.signals)):
            raise ValueError(
                f"a block must have k times and k rows of {len(self.signals)} values, got shapes {times.shape} and "
                f"{values.shape}"
            )
        last, counts = self._last.copy(), self._counts.copy()
        kept_times, kept_values = np.empty_like(times), np.empty_like(values)
        starts = np.empty(len(times), np.bool_)
        policy = POLICIES.index(self.missing)
        state = (policy, self.max_gap, last, counts)
        kept, k, j = call(_CLEAN, times, values, *state, kept_times, kept_values, starts)
        if k >= 0:
            raise ValueError(
                f"signal {self.signals[j]} must be a finite number, got {values[k, j]} at time {float(times[k])}; "
                "use missing='hold' or 'skip' to go on without"
            )
        self._last, self._counts = last, counts
        return Clean(kept_times[:kept], kept_values[:kept], starts[:kept])

    def counters(self) -> dict[str, int]:
        return dict(zip(COUNTERS, self._counts.tolist(), strict=True))

    def state(self) -> dict[str, Any]:
        """What `restore` needs to go on exactly. It can be written as JSON."""
        last = [None if math.isnan(value) else value for value in self._last.tolist()]
        return {"signals": list(self.signals), "last": last[:-1], "time": last[-1], "counters": self.counters()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state. The signals must be the same; the gap and the policy may be others."""
        try:
            signals, last = tuple(state["signals"]), [*state["last"], state["time"]]
            counts = [state["counters"][name] for name in COUNTERS]
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is not the state of a Cleaner: {error!r} in {str(state)[:80]}") from None
        if signals != self.signals:
            raise ValueError(f"the state is of signals {', '.join(map(str, signals))}, not of {', '.join(self.signals)}")
        if len(last) != len(self._last) or not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError(f"the state of the Cleaner is damaged: {str(state)[:80]}")
        self._last = np.array([math.nan if value is None else number("a value held", value) for value in last])
        self._counts = np.array(counts, np.int64)
