"""What an experiment is, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

HOLDS, FAILS, NOISE = "holds", "does not hold", "within noise"
ENOUGH = 5  # runs below which an interval over runs says too little to judge by
ROUNDING = 1e-9  # a relative difference below this is none: at λ = 0 all methods are the same but for rounding


@dataclass(frozen=True)
class Settings:
    """How to run. `runs` scales an experiment down (or up); the default is the paper's number."""

    tasks: Path  # folder for the results of sweeps
    seed: int = 0
    runs: int | None = None
    engine: str = "local"
    threads: int | None = None
    progress: Callable[[Any, int, int], None] = lambda task, done, of: None
    scale: str = "quick"  # of the experiments that have several
    share: str | None = None  # i/N: of experiments whose tasks can be shared out
    say: Callable[[str], None] = lambda text: None  # what has to be known before a long wait
    data: Path | None = None  # a recording, for the experiment that can use one
    columns: Mapping[str, str] = field(default_factory=dict)  # what is where in it: role → column
    rate: float = 40.0  # how many samples a second it has

    def number(self, of_runs: int) -> int:
        return of_runs if self.runs is None else self.runs


class Unfinished(Exception):  # noqa: N818 - no error
    """What this share of an experiment could do is done; others have to do theirs before there is an outcome."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, what was measured, and whether it held."""

    claim: str
    verdict: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Chart:
    """Lines to explore in the report: what to draw, as data."""

    data: pa.Table
    x: str
    y: str
    series: str
    x_title: str
    y_title: str
    rows: str | None = None
    columns: str | None = None
    choose: str | None = None
    low: str | None = None
    high: str | None = None
    log_x: bool = False
    log_y: bool = False
    y_domain: tuple[float, float] | None = None
    title: str = ""


@dataclass(frozen=True)
class Outcome:
    """What an experiment leaves: data, pictures (the first is *the* figure), charts and claims."""

    data: pa.Table
    figures: Mapping[str, Any]  # file name without ending → matplotlib figure
    charts: Sequence[Chart]
    claims: Sequence[Claim]
    shown: str | None = None  # the picture that the report shows beside the charts
    files: Mapping[str, bytes] = field(default_factory=dict)  # whatever else belongs to it
    note: str = ""  # what must be known about how it was run


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    text: str
    run: Callable[[Settings], Outcome]


def interval(samples: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The central interval that holds `level` of the (bootstrap) samples."""
    low, high = np.quantile(samples, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)


def resample(runs: int, times: int = 1000, seed: int = 0) -> np.ndarray:
    """Bootstrap weights: `times` rows, each how often every run is drawn, over the number of runs."""
    rng = np.random.default_rng([seed, 2016])
    return rng.multinomial(runs, np.full(runs, 1.0 / runs), size=times) / runs


def at_most(low: float, high: float, bound: float = 0.0) -> str:
    """The verdict on "x ≤ bound" for an x with this interval."""
    return HOLDS if high <= bound else FAILS if low > bound else NOISE


def at_least(low: float, high: float, bound: float = 0.0) -> str:
    return at_most(-high, -low, -bound)


def exactly(error: float, tolerance: float = 1e-10) -> str:
    """The verdict on an equality that theory demands: rounding is no noise."""
    return HOLDS if error <= tolerance else FAILS


def overall(verdicts: Sequence[str]) -> str:
    """A claim about several cases holds when it holds in all, and fails when it fails in one."""
    return FAILS if FAILS in verdicts else NOISE if NOISE in verdicts else HOLDS
