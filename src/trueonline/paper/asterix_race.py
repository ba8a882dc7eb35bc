"""Figure 8 run by run: a race between settings, and what the scores so far say (the scale `accumulating`).

The runs of one seed share their random numbers. Their scores are fitted by least squares as the mean of the setting plus an
effect of the seed. All settings in the race have one standard deviation, so two runs of some setting are enough for a first
interval. A setting leaves the race when another one of its method is better beyond doubt. The race begins in the middle of
the paper's grid. A setting joins it when a neighbour nearer to the middle is in the race: scores are taken to change
gradually over the grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy import stats

from trueonline.paper.asterix_runs import COMPARED, SIMILAR, STEP_SIZES, TRACE_DECAYS
from trueonline.paper.experiment import ENOUGH, FAILS, HOLDS, NOISE, interval

MIDDLE = (0.8, 0.95)  # α and λ with which the race begins
DOUBT = 0.01  # the probability that the best setting of a method leaves the race, at each look
POWER = 0.8  # the probability of a decision that the estimate is for
DRAWS = 4000


class Setting(NamedTuple):
    method: str
    step_size: float
    trace_decay: float

    @property
    def ring(self) -> int:
        """Steps on the grid from the middle."""
        return sum(abs(here - there) for here, there in zip(self._place(), _middle(), strict=True))

    @property
    def parents(self) -> list[Setting]:
        """The neighbours that are nearer to the middle."""
        (i, j), (a, b) = self._place(), _middle()
        found = []
        if i != a:
            found.append(self._replace(step_size=STEP_SIZES[i + (1 if i < a else -1)]))
        if j != b:
            found.append(self._replace(trace_decay=TRACE_DECAYS[j + (1 if j < b else -1)]))
        return found

    def _place(self) -> tuple[int, int]:
        return STEP_SIZES.index(self.step_size), TRACE_DECAYS.index(self.trace_decay)

    def __str__(self) -> str:
        return f"α = {self.step_size:g}, λ = {self.trace_decay:g}"


def _middle() -> tuple[int, int]:
    return STEP_SIZES.index(MIDDLE[0]), TRACE_DECAYS.index(MIDDLE[1])


def grid() -> list[Setting]:
    """All settings, from the middle outwards."""
    settings = [Setting(method, alpha, lam) for alpha in STEP_SIZES for lam in TRACE_DECAYS for method in COMPARED]
    return sorted(settings, key=lambda setting: setting.ring)


@dataclass(frozen=True)
class Fit:
    """Least squares: score = mean of the setting + effect of the seed + noise."""

    settings: list[Setting]
    means: np.ndarray  # at an average seed
    inverse: np.ndarray  # the means' covariance, over that of the noise
    freedom: int
    deviation: float  # of the noise; infinite without a degree of freedom

    def difference(self, i: int, j: int) -> tuple[float, float]:
        """How much the i-th mean exceeds the j-th, and the standard error of that."""
        spread = self.inverse[i, i] + self.inverse[j, j] - 2.0 * self.inverse[i, j]
        return float(self.means[i] - self.means[j]), self.deviation * math.sqrt(max(spread, 0.0))

    def error(self, i: int) -> float:
        """The standard error of the i-th mean."""
        return self.deviation * math.sqrt(self.inverse[i, i])

    def draws(self, rng: np.random.Generator) -> np.ndarray:
        """Means that these scores might have come from, with the uncertainty of the deviation: Student's t."""
        normal = rng.multivariate_normal(np.zeros(len(self.means)), self.inverse, DRAWS, method="eigh")
        deviations = self.deviation * np.sqrt(self.freedom / rng.chisquare(self.freedom, DRAWS))
        return self.means + normal * deviations[:, None]


def fit(scores: Mapping[Setting, Mapping[int, float]]) -> Fit:
    """Fit the scores of settings by run."""
    settings = list(scores)
    seeds = sorted({run for runs in scores.values() for run in runs})
    rows = [(i, seeds.index(run), score) for i, setting in enumerate(settings) for run, score in scores[setting].items()]
    design = np.zeros((len(rows), len(settings) + len(seeds) - 1))
    for row, (i, seed, _) in zip(design, rows, strict=True):
        row[i] = 1.0
        # Effects of seeds sum to zero: the first is minus the sum of the others.
        row[len(settings) :] = [(seed == other) - (seed == 0) for other in range(1, len(seeds))]
    values = np.array([score for _, _, score in rows])
    inverse = np.linalg.pinv(design.T @ design)
    weights = inverse @ design.T @ values
    freedom = len(rows) - int(np.linalg.matrix_rank(design))
    squares = float(np.sum((values - design @ weights) ** 2))
    n = len(settings)
    deviation = math.sqrt(squares / freedom) if freedom else math.inf
    return Fit(settings, weights[:n], inverse[:n, :n], freedom, deviation)


@dataclass(frozen=True)
class Comparison:
    """Best score of true online Sarsa(λ) over that of another method, less 1, with a 95 % interval, and the verdict."""

    method: str
    ratio: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True)
class Needed:
    """The number of runs of each method's best setting that a decision needs, and its 95 % interval, from the scores so far."""

    runs: int
    low: int
    high: int


class Race:
    """The state of the race after the scores so far: the settings in it, the best, the comparisons, and the runs to play next."""

    def __init__(self, scores: Mapping[Setting, Mapping[int, float]]) -> None:
        self.scores = {setting: dict(runs) for setting, runs in scores.items() if runs}
        self.played = sum(map(len, self.scores.values()))

    @cached_property
    def fit(self) -> Fit | None:
        """The fit over the settings in the race. Settings leave it until nothing changes."""
        inside = dict(self.scores)
        while inside:
            found = fit(inside)
            outside = set(_clearly_worse(found))
            if not outside:
                return found
            inside = {setting: runs for setting, runs in inside.items() if setting not in outside}
        return None

    @property
    def inside(self) -> list[Setting]:
        return [] if self.fit is None else self.fit.settings

    def next_runs(self) -> list[tuple[Setting, int]]:
        """The next round: each setting in the race gets the runs that it lacks. One step outwards joins a round later."""
        joined = [setting for setting in grid() if self._joined(setting)]
        for stage in count():
            lacking = [
                (setting, run)
                for setting in joined
                for run in range(stage - setting.ring + 1)
                if run not in self.scores.get(setting, {})
            ]
            if lacking:
                return lacking  # from the middle outwards, so that the variance between seeds is known soon
        raise AssertionError("a race always has a next run")

    def _joined(self, setting: Setting) -> bool:
        if setting in self.scores:
            return setting in self.inside
        return not setting.ring or any(parent in self.inside for parent in setting.parents)

    def candidates(self, method: str) -> list[int]:
        """Those that may be the best of a method: places in the fit. One with few runs has to wait, unless all have few."""
        own = [i for i, setting in enumerate(self.inside) if setting.method == method]
        most = max((len(self.scores[self.inside[i]]) for i in own), default=0)
        return [i for i in own if len(self.scores[self.inside[i]]) >= min(ENOUGH, most)]

    def best(self, method: str) -> int | None:
        """The best setting of a method so far: its place in the fit."""
        return max(self.candidates(method), key=lambda i: self.fit.means[i], default=None)  # type: ignore[union-attr]

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """True online against the others. The best setting is chosen again in every draw."""
        return [self._compare(method) for method in COMPARED if method != "true_online"]

    def _compare(self, method: str) -> Comparison:
        ours, theirs = self.best("true_online"), self.best(method)
        if self.fit is None or ours is None or theirs is None:
            return Comparison(method, math.nan, -math.inf, math.inf, NOISE)
        ratio = float(self.fit.means[ours] / self.fit.means[theirs] - 1.0)
        if not self.fit.freedom:
            return Comparison(method, ratio, -math.inf, math.inf, NOISE)
        draws = self.fit.draws(np.random.default_rng(2016))
        tops = {name: draws[:, self.candidates(name)].max(axis=1) for name in ("true_online", method)}
        low, high = interval(tops["true_online"] / tops[method] - 1.0)
        enough = min(len(self.scores[self.inside[i]]) for i in (ours, theirs)) >= ENOUGH
        within, beyond = low >= -SIMILAR and high <= SIMILAR, low > SIMILAR or high < -SIMILAR
        verdict = NOISE if not enough else HOLDS if within else FAILS if beyond else NOISE
        return Comparison(method, ratio, low, high, verdict)

    @property
    def decided(self) -> bool:
        return all(comparison.verdict != NOISE for comparison in self.comparisons)

    def needed(self) -> Needed | None:
        """Runs for each method so that the interval lies within a tenth with probability `POWER`, if the methods are equal."""
        best = [i for method in COMPARED if (i := self.best(method)) is not None]
        if self.fit is None or not self.fit.freedom or not best:
            return None
        relative = self.fit.deviation / float(np.mean(self.fit.means[best]))
        quantiles = stats.norm.ppf(0.975) + stats.norm.ppf(1.0 - (1.0 - POWER) / 2.0)
        runs = 2.0 * (relative / SIMILAR * quantiles) ** 2
        sides = [self.fit.freedom / stats.chi2.ppf(side, self.fit.freedom) for side in (0.975, 0.025)]
        return Needed(*(max(ENOUGH, math.ceil(runs * factor)) for factor in (1.0, *sides)))


def _clearly_worse(found: Fit) -> Iterator[Setting]:
    """The settings that another one of the same method beats beyond doubt."""
    if not found.freedom:
        return
    for method in COMPARED:
        own = [i for i, setting in enumerate(found.settings) if setting.method == method]
        if len(own) < 2:
            continue
        factor = float(stats.t.ppf(1.0 - DOUBT / len(own), found.freedom))
        for j in own:
            if any(better > factor * error for better, error in (found.difference(i, j) for i in own if i != j)):
                yield found.settings[j]
