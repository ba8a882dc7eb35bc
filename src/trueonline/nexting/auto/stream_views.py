"""`Views`: what `auto` sees of a stream. Bases, and binary features over the value, its course, the calendar and other signals.

**Bases.** The newest value; the mean so far; and exponential means over a quarter of the horizon, the horizon, and four horizons.
With γ of the step into each sample, these follow a share 1 − γ⁴, 1 − γ and 1 − γ^¼ of the way. So they are means over time also
where the times between samples differ. Until a mean has seen as many samples as it is long, it is the plain mean of what there
was.

**Coordinates** lie between 0 and 1. A signal x has (1 + z/(1 + |z|))/2 with z = (x − m)/s, where m is its running mean and s its
running mean deviation, over a thousand samples or so. Small differences count near the middle, and a spike of any size stays
inside. The hour of the day and the day of the week are taken from the time of the sample.

**Features** are tiles: grids over one to three coordinates, several of them shifted against each other. The hour is a circle.
Grids with more tiles than `MOST_TILES` are hashed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trueonline.core.kernels import call, kernel, specialise
from trueonline.inputs import check_saved, saved_array
from trueonline.nexting.auto.experts import BASES, FeatureSet

USUAL = 1000.0  # samples over which a signal's place and spread are measured
SHORTEST = 0.8  # γ of the exponential means is at least this, so that they differ from the newest value
MOST_TILES = 4096
MOST_PAIRS = 8  # other signals that are paired with the target
DAY = 86400.0
MONDAY = 4  # of the week of 1970-01-01, a Thursday, in days

# Coordinates: the target, its slow mean, its distance from the fast mean, the distance of both means, the calendar, other signals.
VALUE, LEVEL, SLOPE, TREND, HOUR, WEEKDAY, WEEKEND, OTHERS = range(8)
HOLD, MEAN, FAST, SLOW, SLOWER = range(5)  # columns of the bases, in the order of `BASES`
PLACE, SPREAD = range(2)  # columns of the usual sizes, which have one row for each coordinate
COORDINATE, BINS, CIRCLE = range(3)  # numbers of a dimension of a grid
SHAPE = 3  # numbers of a grid before its dimensions: tilings, dimensions, features
MOST_DIMENSIONS = 8


@dataclass(frozen=True)
class Grid:
    """Tiles over coordinates: so many bins along each, in so many shifted tilings."""

    name: str
    coordinates: tuple[int, ...]
    bins: tuple[int, ...]
    tilings: int

    @property
    def tiles(self) -> int:
        """The number of tiles. A grid that is shifted has one more along each dimension, except along a circle."""
        cells = (bins + (each != HOUR) for each, bins in zip(self.coordinates, self.bins, strict=True))
        return self.tilings * math.prod(cells)

    @property
    def features(self) -> FeatureSet:
        """The features."""
        return FeatureSet(self.name, min(self.tiles, MOST_TILES), self.tilings)

    def row(self) -> list[int]:
        """The grid in numbers."""
        sides = zip(self.coordinates, self.bins, strict=True)
        numbers = [number for each, bins in sides for number in (each, bins, int(each == HOUR))]
        return [self.tilings, len(self.bins), self.features.n_features, *numbers]


def grids(others: Sequence[str]) -> list[Grid]:
    """The grids for a target and other signals."""
    own = [
        Grid("value", (VALUE,), (12,), 4),
        Grid("value and level", (VALUE, LEVEL), (8, 8), 4),
        Grid("value, slope and level", (VALUE, SLOPE, LEVEL), (6, 6, 6), 4),
        Grid("slope and trend", (SLOPE, TREND), (8, 8), 4),
        Grid("hour of the day", (HOUR,), (96,), 2),
        Grid("hour and weekend", (HOUR, WEEKEND), (48, 2), 2),
        Grid("hour and weekday", (HOUR, WEEKDAY), (48, 7), 1),
        Grid("hour of the day and value", (HOUR, VALUE), (24, 8), 4),
        Grid("hour of the day and slope", (HOUR, SLOPE), (24, 6), 4),
    ]
    pairs = [
        Grid(f"value and signal {name}", (VALUE, OTHERS + i), (8, 8), 4) for i, name in enumerate(others[:MOST_PAIRS])
    ]
    if len(others) < 2:
        return own + pairs
    seen = range(min(len(others), MOST_DIMENSIONS - 1))
    return [*own, *pairs, Grid("all signals", (VALUE, *(OTHERS + i for i in seen)), (6,) * (1 + len(seen)), 4)]


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def placed(x, usual, samples):
    """The coordinate of x, and its usual place and spread brought up to date."""
    rate = max(1.0 / USUAL, 1.0 / samples)
    away = x - usual[PLACE]
    if samples == 1.0:
        usual[PLACE] = x
    else:
        usual[PLACE] += rate * away
        usual[SPREAD] += rate * (abs(away) - usual[SPREAD])
    away = x - usual[PLACE]
    size = usual[SPREAD] + abs(away)
    return 0.5 + 0.5 * away / size if size > 0.0 else 0.5


@kernel
def tile(grid, k, row):
    """The active tile of tiling k of a grid."""
    tilings, dimensions, features = grid[0], grid[1], grid[2]
    code = np.uint64(k)
    for i in range(dimensions):
        bins = grid[SHAPE + 3 * i + BINS]
        shift = (k * (2 * i + 1) / tilings) % 1.0
        place = int(row[grid[SHAPE + 3 * i + COORDINATE]] * bins + shift)
        if grid[SHAPE + 3 * i + CIRCLE]:
            code = code * np.uint64(bins) + np.uint64(place % bins)
        else:
            code = code * np.uint64(bins + 1) + np.uint64(min(max(place, 0), bins))
    tiles = tilings
    for i in range(dimensions):
        tiles *= grid[SHAPE + 3 * i + BINS] + 1 - grid[SHAPE + 3 * i + CIRCLE]
    if tiles > features:  # the finaliser of SplitMix64 (Steele, Lea and Flood 2014) spreads the codes
        code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        code = (code ^ (code >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        code = (code ^ (code >> np.uint64(31))) % np.uint64(features)
    return code


def see(table, means, usual, counts, row, seconds, signals, gammas, X, bases):
    """Write the active features and the bases at each sample of a block. The target is the first signal."""
    for t in range(seconds.size):
        x = signals[t, 0]
        counts[0] += 1.0
        least, gamma = 1.0 / counts[0], max(gammas[t], SHORTEST)
        means[HOLD] = x
        means[MEAN] += least * (x - means[MEAN])
        means[FAST] += max(least, 1.0 - gamma**4) * (x - means[FAST])
        means[SLOW] += max(least, 1.0 - gamma) * (x - means[SLOW])
        means[SLOWER] += max(least, 1.0 - gamma**0.25) * (x - means[SLOWER])
        for i in range(means.size):  # Numba compiles a message about shapes for an array as a whole
            bases[t, i] = means[i]
        row[VALUE] = placed(x, usual[VALUE], counts[0])
        row[LEVEL] = placed(means[SLOW], usual[LEVEL], counts[0])
        row[SLOPE] = placed(x - means[FAST], usual[SLOPE], counts[0])
        row[TREND] = placed(means[FAST] - means[SLOW], usual[TREND], counts[0])
        day = math.floor(seconds[t] / DAY)
        weekday = (day - MONDAY) % 7.0
        row[HOUR] = seconds[t] / DAY - day
        row[WEEKDAY] = (weekday + 0.5) / 7.0
        row[WEEKEND] = 0.75 if weekday >= 5.0 else 0.25
        for i in range(1, signals.shape[1]):
            row[OTHERS + i - 1] = placed(signals[t, i], usual[OTHERS + i - 1], counts[0])
        column = 0
        for g in range(table.shape[0]):
            for k in range(table[g, 0]):
                X[t, column] = tile(table[g], k, row)
                column += 1


_SEE = specialise(see, "views")


# --- In Python ------------------------------------------------------------------------------------


class Views:
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
    >>> X.shape, dict(zip(views.bases, bases[-1].tolist()))
    ((3, 29), {'hold': 6.0, 'mean': 4.0, 'fast': 4.0317, 'slow': 4.0, 'slower': 4.0})
    """

    def __init__(self, others: Sequence[str]) -> None:
        made = grids(others)
        self.feature_sets = tuple(each.features for each in made)
        self.bases = tuple(BASES)
        self._table = np.zeros((len(made), SHAPE + 3 * MOST_DIMENSIONS), np.int64)
        for own, each in zip(self._table, made, strict=True):
            numbers = each.row()
            own[: len(numbers)] = numbers
        coordinates = OTHERS + len(others)
        self._width = sum(each.n_active for each in self.feature_sets)
        self._row = np.zeros(coordinates)
        self._state = {"means": np.zeros(len(BASES)), "usual": np.zeros((coordinates, 2)), "counts": np.zeros(1)}

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
            The bases.
        """
        X, bases = np.empty((len(seconds), self._width), np.int64), np.empty((len(seconds), len(self.bases)))
        call(_SEE, self._table, *self._state.values(), self._row, seconds, signals, gammas, X, bases)
        return X, bases

    def state(self) -> dict[str, np.ndarray]:
        """Copy everything that `restore` needs to resume exactly."""
        return {name: array.copy() for name, array in self._state.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a state of the same signals. ValueError if the state does not fit."""
        own = {name: saved_array(state, name, array.shape, array.dtype).copy() for name, array in self._state.items()}
        check_saved({name: np.isfinite(array) for name, array in own.items()} | {"counts": own["counts"] >= 0.0})
        self._state = own
