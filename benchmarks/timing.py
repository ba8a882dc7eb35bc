"""Time competitors in turn, so that all other work of the machine slows them alike."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from benchmarks.report import Ratio, Seconds


@dataclass(frozen=True)
class Times:
    """Seconds per call, by competitor, one for each round."""

    rounds: dict[str, list[float]]

    def per_step(self, name: str, steps: int) -> Seconds:
        return Seconds(median(self.rounds[name]) / steps)

    def ratio(self, name: str, other: str, steps: int = 1, other_steps: int = 1) -> Ratio:
        """How many times as long `name` takes per step as `other`: the ratio within each round, over all rounds."""
        pairs = zip(self.rounds[name], self.rounds[other], strict=True)
        ratios = [(a / steps) / (b / other_steps) for a, b in pairs]
        return Ratio(median(ratios), min(ratios), max(ratios))


def race(
    competitors: Mapping[str, Callable[[], object]], *, rounds: int = 7, tries: int = 3, least: float = 5e-3
) -> Times:
    """Time each competitor `tries` times a round, taking turns, and keep its quickest try of the round.

    A try repeats its call for `least` seconds or so. Before the first round everyone runs once, untimed.
    """
    calls = {}
    for name, competitor in competitors.items():
        competitor()
        calls[name] = max(1, math.ceil(least / _time(competitor, 1)))
    times: dict[str, list[float]] = {name: [] for name in competitors}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            best = dict.fromkeys(competitors, math.inf)
            for _ in range(tries):
                for name, competitor in competitors.items():
                    best[name] = min(best[name], _time(competitor, calls[name]))
            for name, seconds in best.items():
                times[name].append(seconds)
    finally:
        if collecting:
            gc.enable()
    return Times(times)


def _time(competitor: Callable[[], object], calls: int) -> float:
    begin = perf_counter()
    for _ in range(calls):
        competitor()
    return (perf_counter() - begin) / calls
