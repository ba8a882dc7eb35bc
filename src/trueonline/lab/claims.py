"""Claims, and the statistics that decide them.

A claim about random runs is decided by an interval. The interval comes from a bootstrap over runs, in an `Estimate`. An equality
or a bound without randomness is decided by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from trueonline.words import count

HOLDS, FAILS, NOISE = "holds", "does not hold", "within noise"
SEVERAL = {HOLDS: "hold", FAILS: "do not hold", NOISE: NOISE}  # the verdict on several claims
ENOUGH = 5  # with fewer samples (runs, MRPs, games) an interval over them cannot decide a claim
ROUNDING = 1e-9  # a smaller relative difference is rounding: at λ = 0 all methods are the same apart from it
EQUAL = 1e-10  # how far two numbers that theory demands to be equal may differ
DIVERGED = 1e12  # a larger error counts as this one, so that a mean over runs is finite
LEVEL = 0.95  # of all intervals


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


def decided(condition: Any) -> str:
    """The verdict on a condition without randomness."""
    return HOLDS if condition else FAILS


def judge(low: float, high: float, *, at_least: float = -math.inf, at_most: float = math.inf) -> str:
    """The verdict on at_least ≤ x ≤ at_most, for an x that lies between `low` and `high`."""
    return HOLDS if at_least <= low and high <= at_most else FAILS if high < at_least or low > at_most else NOISE


def overall(verdicts: Sequence[str]) -> str:
    """A claim about several cases holds when it holds in all, and fails when it fails in one."""
    return FAILS if FAILS in verdicts else NOISE if NOISE in verdicts else HOLDS


def numbered(number: int, verdict: str) -> str:
    """How many claims have a verdict, such as "2 do not hold"."""
    return f"{number} {verdict if number == 1 else SEVERAL[verdict]}"


def summary(claims: Sequence[Claim]) -> str:
    """How many claims have each verdict, and how many had too few samples to be decided."""
    if not claims:
        return "No claims were judged."
    found = [claim.verdict for claim in claims]
    counted = ", ".join(numbered(found.count(verdict), verdict) for verdict in SEVERAL if verdict in found)
    few = sum(claim.undecidable for claim in claims)
    why = f" {few} of them cannot be decided by so few runs: intervals need at least {ENOUGH} runs, MRPs or games."
    return f"{count(len(claims), 'claim')}: {counted}.{why if few else ''}"


def counts(verdicts: Sequence[str]) -> dict[str, int]:
    """How often each verdict occurs."""
    return {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))}


def deciding(numbers: Mapping[str, Any]) -> tuple[str, float, float, float] | None:
    """What was estimated, the estimate, and the ends of its interval: of the first number that has an interval around it.

    >>> deciding({"runs": 5, "difference": 0.25, "95 % interval": [0.1, 0.4]})
    ('difference', 0.25, 0.1, 0.4)
    >>> deciding({"gain": 2.0, "95 % interval": ["-Infinity", "Infinity"]})  # of one run
    ('gain', 2.0, -inf, inf)
    """
    names = list(numbers)
    for before, name in pairwise(names):
        at, interval = numbers[before], numbers[name]
        if "interval" in name and isinstance(interval, list) and len(interval) == 2 and isinstance(at, int | float):
            low, high = (float(end) for end in interval)  # an end without bound is "Infinity" in JSON
            if low <= at <= high:
                return before, at, low, high
    return None


def resample(runs: int, seed: int = 0) -> np.ndarray:
    """Bootstrap weights: 1,000 rows, each how often every run is drawn, over the number of runs."""
    rng = np.random.default_rng([seed, 2016])
    return rng.multinomial(runs, np.full(runs, 1.0 / runs), size=1000) / runs


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, or a grid of numbers, and the same in every bootstrap sample. What is computed is computed in all samples.

    So the best of a grid is chosen again in every sample, and the choice is part of the noise.
    """

    rows: np.ndarray  # the number itself, and below it the same number in each sample

    @classmethod
    def mean(cls, values: np.ndarray, seed: int, weights: np.ndarray | None = None) -> Estimate:
        """The mean over the first axis: runs, MRPs or whatever is independent."""
        flat = values.reshape(len(values), -1)
        weights = resample(len(values), seed=seed) if weights is None else weights
        rows = np.vstack([flat.mean(axis=0), weights @ flat])
        return cls(rows.reshape(-1, *values.shape[1:]))

    @property
    def value(self) -> Any:
        """The number, or the array of numbers."""
        return float(self.rows[0]) if self.rows.ndim == 1 else self.rows[0]

    @property
    def samples(self) -> np.ndarray:
        """The number in each bootstrap sample."""
        return self.rows[1:]

    @property
    def bounds(self) -> np.ndarray:
        """The lower and the upper ends of the central 95 % intervals."""
        return np.quantile(self.samples, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0], axis=0)

    @property
    def interval(self) -> list[float]:
        """The central 95 % interval of a single number."""
        low, high = self.bounds
        return [float(low), float(high)]

    def columns(self, name: str) -> dict[str, np.ndarray]:
        """Columns of a table: the numbers of the grid, and the ends of their intervals."""
        low, high = self.bounds
        return {name: self.rows[0].ravel(), "low": low.ravel(), "high": high.ravel()}

    def best(self, axes: int | tuple[int, ...] | None = None) -> Estimate:
        """The smallest number of the grid, or along some of its axes, in each sample."""
        return Estimate(self.rows.min(axis=self._axes(axes)))

    def largest(self, axes: int | tuple[int, ...] | None = None) -> Estimate:
        """The largest number of the grid, or along some of its axes, in each sample."""
        return Estimate(self.rows.max(axis=self._axes(axes)))

    def _axes(self, axes: int | tuple[int, ...] | None) -> tuple[int, ...]:
        axes = tuple(range(self.rows.ndim - 1)) if axes is None else (axes,) if isinstance(axes, int) else axes
        return tuple(axis + 1 for axis in axes)

    def __getitem__(self, place: Any) -> Estimate:
        return Estimate(self.rows[(slice(None), *(place if isinstance(place, tuple) else (place,)))])

    def __sub__(self, other: Estimate | float) -> Estimate:
        return Estimate(self.rows - (other.rows if isinstance(other, Estimate) else other))

    def __truediv__(self, other: Estimate | float) -> Estimate:
        return Estimate(self.rows / (other.rows if isinstance(other, Estimate) else other))

    def judge(self, *, at_least: float = -math.inf, at_most: float = math.inf) -> str:
        """The verdict on at_least ≤ number ≤ at_most."""
        return judge(*self.interval, at_least=at_least, at_most=at_most)


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of each method: an array over sample (run, MRP or block of time) and the grid of its parameters.

    The last two axes are step-size α and trace decay λ.
    """

    by_method: Mapping[str, np.ndarray]
    seed: int = 0  # of the bootstrap
    labels: Mapping[str, str] = field(default_factory=dict)  # such as the problem's name

    @property
    def samples(self) -> int:
        """The number of independent samples."""
        return len(next(iter(self.by_method.values())))

    @cached_property
    def _estimates(self) -> dict[str, Estimate]:
        return {}

    def finite(self, method: str) -> np.ndarray:
        """The errors, with a large number in the place of larger and infinite ones."""
        return np.minimum(self.by_method[method], DIVERGED)

    def mean(self, method: str) -> np.ndarray:
        """The mean over samples at each point of the grid."""
        return self.finite(method).mean(axis=0)

    def place(self, method: str) -> tuple[int, ...]:
        """The place of the smallest mean in the grid."""
        mean = self.mean(method)
        return tuple(int(i) for i in np.unravel_index(int(mean.argmin()), mean.shape))

    def estimate(self, method: str) -> Estimate:
        """The mean at each point of the grid, with its bootstrap samples."""
        if method not in self._estimates:
            self._estimates[method] = Estimate.mean(self.finite(method), self.seed)
        return self._estimates[method]

    def best(self, method: str) -> Estimate:
        """The mean error at the best parameters."""
        return self.estimate(method).best()

    def best_by_lam(self, method: str) -> Estimate:
        """The mean error at the best parameters of each λ, which is the last axis."""
        estimate = self.estimate(method)
        return estimate.best(tuple(range(estimate.rows.ndim - 2)))

    def ratio(self, method: str, other: str) -> Estimate:
        """The relative difference of two methods, each at its best: below 0 if the first is better."""
        return self.best(method) / self.best(other) - 1.0

    def at(self, *place: Any) -> Errors:
        """The errors at a part of the grid."""
        return Errors(
            {name: errors[(slice(None), *place)] for name, errors in self.by_method.items()}, self.seed, self.labels
        )
