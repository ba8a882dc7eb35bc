"""The parts of an experiment: settings, outcome and claims, and the statistics that decide a claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.lab.report.parts import Chart

__all__ = [
    "ENOUGH", "FAILS", "HOLDS", "NOISE", "ROUNDING",
    "Chart", "Claim", "Experiment", "Outcome", "Settings", "Unfinished",
    "at_least", "at_most", "exactly", "gathered", "interval", "overall", "resample", "table",
]  # fmt: skip

HOLDS, FAILS, NOISE = "holds", "does not hold", "within noise"
ENOUGH = 5  # with fewer samples (runs, MRPs, games) an interval over them cannot decide a claim
ROUNDING = 1e-9  # a smaller relative difference is rounding: at λ = 0 all methods are the same apart from it


@dataclass(frozen=True)
class Settings:
    """How to run an experiment. `runs` scales it down or up; the default is the paper's number."""

    tasks: Path  # folder for the results of sweeps
    seed: int = 0
    runs: int | None = None
    mrps: int | None = None  # MRPs of each class, for experiments with many
    engine: str = "local"  # or cuda, cuda:NUMBER, dask, dask:ADDRESS; the results are the same
    threads: int | None = None
    progress: Callable[[Any, int, int], None] = lambda task, done, of: None
    scale: str = "quick"  # for experiments with several scales
    share: str | None = None  # i/N, for experiments whose tasks can be shared out
    say: Callable[[str], None] = lambda text: None  # called with a message before a long wait
    data: Path | None = None  # a recording, for the experiment that can use one
    columns: Mapping[str, str] = field(default_factory=dict)  # role → column of the recording
    rate: float = 40.0  # samples a second of the recording

    def number(self, of_runs: int) -> int:
        return of_runs if self.runs is None else self.runs


class Unfinished(Exception):  # noqa: N818 - not an error
    """This share of an experiment is done. There is an outcome when the other shares are done too."""


@dataclass(frozen=True)
class Claim:
    """A statement, the verdict on it, and the numbers behind the verdict.

    A verdict that comes from samples names in `samples` how many independent ones there are: runs, MRPs or games. A bootstrap
    interval over a few samples is much too narrow. So with fewer than `ENOUGH` the verdict is "within noise".
    """

    claim: str
    verdict: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    samples: int | None = None  # None if the verdict does not depend on how many there are

    def __post_init__(self) -> None:
        if self.undecidable:
            object.__setattr__(self, "verdict", NOISE)
            why = f"{self.samples} of at least {ENOUGH} samples (runs, MRPs or games)"
            object.__setattr__(self, "numbers", {**self.numbers, "not decided": why})

    @property
    def undecidable(self) -> bool:
        """Whether there are too few samples for a verdict."""
        return self.samples is not None and self.samples < ENOUGH


@dataclass(frozen=True)
class Outcome:
    """The results of an experiment: data, pictures (the first is *the* figure), charts and claims."""

    data: pa.Table
    figures: Mapping[str, Any]  # file name without ending → matplotlib figure
    charts: Sequence[Chart]
    claims: Sequence[Claim]
    shown: str | None = None  # the picture that the report shows beside the charts
    files: Mapping[str, bytes] = field(default_factory=dict)  # more files, by name
    note: str = ""  # how the experiment was run, for the report


@dataclass(frozen=True)
class Experiment:
    """An experiment: its name in the command, its title and text in the report, and the function that runs it."""

    name: str
    title: str
    text: str
    run: Callable[[Settings], Outcome]


def table(names: Sequence[str], rows: Sequence[tuple]) -> pa.Table:
    """Rows as a table with these columns."""
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def gathered(results: pa.Table | None) -> pa.Table:
    """The results of a study that has just run. They are missing only if somebody deleted them meanwhile."""
    if results is None:
        raise RuntimeError("results were deleted while they were being read; run the same command again")
    return results


def interval(samples: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The central interval that contains `level` of the (bootstrap) samples."""
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
    """The verdict on "x ≥ bound" for an x with this interval."""
    return at_most(-high, -low, -bound)


def exactly(error: float, tolerance: float = 1e-10) -> str:
    """The verdict on an equality that theory demands, apart from rounding."""
    return HOLDS if error <= tolerance else FAILS


def overall(verdicts: Sequence[str]) -> str:
    """A claim about several cases holds when it holds in all, and fails when it fails in one."""
    return FAILS if FAILS in verdicts else NOISE if NOISE in verdicts else HOLDS
