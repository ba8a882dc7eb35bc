"""`Views`: what `auto` sees of a stream. Bases, and binary features over the value, its course, the calendar and other signals.

**Bases.** The newest value; the mean so far; exponential means over a quarter of the horizon and the horizon; and the medians of
about the last thousand and the last hundred values. A median follows the sign of what is new, by 2·s/n at first and then by a
steady share of s, the running mean distance from it. It does not go beyond the value that it follows. With γ of the step into each
sample, the exponential means follow a share 1 − γ⁴ and 1 − γ of the way. So they are means over time also where the times between
samples differ. Until a mean has seen as many samples as it is long, it is the plain mean of what there was.

**Wild values.** A value that is farther from the median of the last hundred than 20 times the mean distance is wild. It counts as
if it were as far as that, so one wild value does not teach all learners. Two in a row are a new level, and more than five in the
last thousand or so are part of the signal: these count in full. The newest value among the bases is the limited one, and mixtures
learn from it.

**Coordinates** lie between 0 and 1. A signal x has (1 + z/(1 + |z|))/2 with z = (x − m)/s, where m is its running mean and s its
running mean deviation, over a thousand samples or so. Small differences count near the middle, and a spike of any size stays
inside. The hour of the day and the day of the week are taken from the time of the sample.

**Features** are tiles: grids over one to three coordinates, several of them shifted against each other. The hour is a circle.
Grids with more tiles than `MAX_TILES` are hashed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.core.forms import pointer
from trueonline.inputs import Resumable
from trueonline.streams.mixture.experts import BASES, FeatureSet

USUAL_SAMPLES = 1000.0  # samples over which a signal's place and spread are measured
MIN_DISCOUNT = 0.8  # γ of the exponential means is at least this, so that they differ from the newest value
MAX_TILES = 4096
MAX_PAIRS = 8  # other signals that are paired with the target
DAY = 86400.0
FIRST_MONDAY = 4  # of the week of 1970-01-01, a Thursday, in days

# Coordinates: the target, its slow mean, its distance from the fast mean, the distance of both means, the calendar, other signals.
VALUE, LEVEL, SLOPE, TREND, HOUR, WEEKDAY, WEEKEND, OTHERS = range(8)
HOLD, MEAN, FAST, SLOW, MEDIAN = range(5)  # columns of the bases, in the order of `BASES`; the medians are the last
MEDIAN_RATES = (0.001, 0.01)
MAX_SPREADS = 20.0  # a distance from a median counts as so many mean distances at most
FREE_SAMPLES = 20.0  # the first values, which have no limit
WILD_SHARE = 0.005  # of the last thousand or so: if more values are wild, they count in full
SAMPLES, BEFORE, WILD = range(3)  # how many samples there were, the value of the last, and the share of wild values
PLACE, SPREAD = range(2)  # columns of the usual sizes, which have one row for each coordinate
TILING, DIMENSIONS, SHAPE = range(3)  # of a tiling: which of its grid, how many dimensions, then those of each dimension
COORDINATE, BINS, CELLS = range(3)
MAX_DIMENSIONS = 8


@dataclass(frozen=True)
class Grid:
    """Tiles over coordinates: so many bins along each, in so many shifted tilings."""

    name: str
    coordinates: tuple[int, ...]
    bins: tuple[int, ...]
    tilings: int

    @property
    def cells(self) -> tuple[int, ...]:
        """The tiles along each dimension. A grid that is shifted has one more than bins, except along a circle."""
        return tuple(bins + (each != HOUR) for each, bins in zip(self.coordinates, self.bins, strict=True))

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return self.tilings * math.prod(self.cells)

    @property
    def features(self) -> FeatureSet:
        """The features."""
        return FeatureSet(self.name, min(self.tiles, MAX_TILES), self.tilings)

    def rows(self) -> list[list[int]]:
        """Each tiling in numbers."""
        sides = [number for side in zip(self.coordinates, self.bins, self.cells, strict=True) for number in side]
        sides += [0] * (3 * MAX_DIMENSIONS - len(sides))
        return [[k, len(self.bins), *sides] for k in range(self.tilings)]

    def shifts(self) -> list[list[float]]:
        """The shift of each tiling along each dimension, in bins."""
        return [[(k * (2 * i + 1) / self.tilings) % 1.0 for i in range(MAX_DIMENSIONS)] for k in range(self.tilings)]


def grids(others: Sequence[str]) -> list[Grid]:
    """The grids for a target and other signals."""
    own = [
        Grid("value, slope and level", (VALUE, SLOPE, LEVEL), (3, 3, 3), 4),
        Grid("slope and trend", (SLOPE, TREND), (6, 6), 4),
        Grid("hour of the day", (HOUR,), (96,), 2),
        Grid("hour and weekend", (HOUR, WEEKEND), (48, 2), 2),
        Grid("hour and weekday", (HOUR, WEEKDAY), (48, 7), 1),
        Grid("hour of the day and value", (HOUR, VALUE), (16, 4), 4),
        Grid("hour of the day and slope", (HOUR, SLOPE), (16, 3), 4),
    ]
    pairs = [
        Grid(f"value and signal {name}", (VALUE, OTHERS + i), (8, 8), 4) for i, name in enumerate(others[:MAX_PAIRS])
    ]
    if len(others) < 2:
        return own + pairs
    seen = range(min(len(others), MAX_DIMENSIONS - 1))
    return [*own, *pairs, Grid("all signals", (VALUE, *(OTHERS + i for i in seen)), (6,) * (1 + len(seen)), 4)]


# --- In a kernel ----------------------------------------------------------------------------------


@kernel
def follow_median(median, spread, x, rate):
    """Move a median towards a new value."""
    if rate == 1.0:  # the first
        median[0] = x
    away = x - median[0]
    most = MAX_SPREADS * spread[0] if spread[0] > 0.0 and rate < 0.1 else abs(away)
    spread[0] += rate * (min(abs(away), most) - spread[0])
    median[0] += math.copysign(min(2.0 * rate * spread[0], abs(away)), away)


@kernel
def limited(x, last, median, spread):
    """A value that counts, or as much of it as does."""
    far = MAX_SPREADS * spread
    near = min(max(x, min(median - far, last[BEFORE])), max(median + far, last[BEFORE]))
    if last[SAMPLES] <= FREE_SAMPLES or spread == 0.0:
        near = x
    last[BEFORE] = x
    last[WILD] += ((near != x) - last[WILD]) / USUAL_SAMPLES
    return near if last[WILD] <= WILD_SHARE else x


def see(table, shifts, means, spreads, usual, last, row, seconds, signals, gammas, X, bases):
    """Write the active tiles and the bases at each sample of a block. The target is the first signal.

    The numbers of tiles may still have to be hashed.
    """
    width, mean = signals.shape[1], pointer(means, 0)
    for t in range(seconds.size):
        last[SAMPLES] += 1.0
        samples, gamma = last[SAMPLES], max(gammas[t], MIN_DISCOUNT)
        signal, base = pointer(signals, t * width), pointer(bases, t * bases.shape[1])
        x, least = limited(signal[0], last, means[-1], spreads[-1]), 1.0 / samples
        mean[HOLD] = x
        mean[MEAN] += least * (x - mean[MEAN])
        mean[FAST] += max(least, 1.0 - gamma * gamma * (gamma * gamma)) * (x - mean[FAST])
        mean[SLOW] += max(least, 1.0 - gamma) * (x - mean[SLOW])
        for i in range(spreads.size):
            follow_median(pointer(means, MEDIAN + i), pointer(spreads, i), x, max(MEDIAN_RATES[i], least))
        for i in range(bases.shape[1]):
            base[i] = mean[i]
        day = math.floor(seconds[t] / DAY)
        weekday = (day - FIRST_MONDAY) % 7.0
        row[VALUE], row[LEVEL], row[SLOPE], row[TREND] = x, base[SLOW], x - base[FAST], base[FAST] - base[SLOW]
        row[HOUR], row[WEEKDAY] = seconds[t] / DAY - day, (weekday + 0.5) / 7.0
        row[WEEKEND] = 0.75 if weekday >= 5.0 else 0.25
        rate = max(1.0 / USUAL_SAMPLES, least)
        for i in range(row.size):
            if i >= HOUR:
                if i < OTHERS:
                    continue
                row[i] = signal[i - OTHERS + 1]
            own = pointer(usual, 2 * i)
            if samples == 1.0:
                own[PLACE] = row[i]
            else:
                away = row[i] - own[PLACE]
                own[PLACE] += rate * away
                own[SPREAD] += rate * (abs(away) - own[SPREAD])
            away = row[i] - own[PLACE]
            size = own[SPREAD] + abs(away)
            row[i] = 0.5 + 0.5 * away / size if size > 0.0 else 0.5
        for column in range(table.shape[0]):
            tiling = pointer(table, column * table.shape[1])
            code = tiling[TILING]
            for i in range(tiling[DIMENSIONS]):
                side = pointer(table, column * table.shape[1] + SHAPE + 3 * i)
                code = code * side[CELLS] + int(row[side[COORDINATE]] * side[BINS] + shifts[column, i]) % side[CELLS]
            X[t, column] = code


_SEE = specialise(see, "views")


# --- In Python ------------------------------------------------------------------------------------


def _spread(codes: np.ndarray) -> np.ndarray:
    """Codes as random numbers: the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    codes = (codes ^ (codes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    codes = (codes ^ (codes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return codes ^ (codes >> np.uint64(31))


@cache
def _tables(others: tuple[str, ...]) -> tuple[tuple[FeatureSet, ...], np.ndarray, np.ndarray, np.ndarray]:
    """The features, the tilings and their shifts, and which of them are hashed: shared by all views of such signals."""
    made = grids(others)
    return (
        tuple(each.features for each in made),
        np.array([row for each in made for row in each.rows()]),
        np.array([row for each in made for row in each.shifts()]),
        np.flatnonzero([each.tiles > MAX_TILES for each in made for _ in range(each.tilings)]),
    )


class Views(Resumable):
    """Makes features and bases of a stream, block by block, for one target and one time scale.

    Parameters
    ----------
    others : sequence of str
        The names of the signals beside the target.

    Attributes
    ----------
    feature_sets : tuple of FeatureSet
        The features.
    bases : tuple of str
        The names of the bases.

    Examples
    --------
    >>> views = Views(others=[])
    >>> X, bases = views.see(np.arange(3.0), np.array([[2.0], [4.0], [6.0]]), np.full(3, 0.9))
    >>> X.shape, dict(zip(views.bases, bases[-1].round(4).tolist()))
    ((3, 21), {'hold': 6.0, 'mean': 4.0, 'fast': 4.0317, 'slow': 4.0, 'median': 4.1111, 'recent': 4.1111})
    """

    def __init__(self, others: Sequence[str]) -> None:
        self.feature_sets, self._table, self._shifts, self._hashed = _tables(tuple(others))
        self.bases = tuple(BASES)
        coordinates = OTHERS + len(others)
        self._row = np.zeros(coordinates)
        self._state = {
            "means": np.zeros(len(BASES)),
            "spreads": np.zeros(len(MEDIAN_RATES)),
            "usual": np.zeros((coordinates, 2)),
            "last": np.zeros(3),
        }

    def see(self, seconds: np.ndarray, signals: np.ndarray, gammas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See a block of samples.

        Parameters
        ----------
        seconds : array of shape (T,)
            The times of the samples by the clock on the wall, in seconds since 1970.
        signals : array of shape (T, signals)
            The target and the other signals. Finite numbers, which the caller has checked.
        gammas : array of shape (T,)
            γ of the step into each sample.

        Returns
        -------
        array of int, of shape (T, active features)
            The active features of all feature sets.
        array of shape (T, bases)
            The bases. The first is the value of the target to learn from.
        """
        X, bases = np.empty((len(seconds), len(self._table)), np.int64), np.empty((len(seconds), len(self.bases)))
        rows = np.ascontiguousarray(signals)  # for pointers to them
        call(_SEE, self._table, self._shifts, *self._state.values(), self._row, seconds, rows, gammas, X, bases)
        if self._hashed.size:
            X[:, self._hashed] = _spread(X[:, self._hashed].astype(np.uint64)) % np.uint64(MAX_TILES)
        return X, bases

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {name: np.isfinite(array) for name, array in saved.items()} | {
            "samples": saved["last"][SAMPLES] >= 0.0 and 0.0 <= saved["last"][WILD] <= 1.0,
            "distances from medians": saved["spreads"] >= 0.0,
        }
