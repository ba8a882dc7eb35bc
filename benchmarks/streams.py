"""The streams that are learned from. Sparse ones have 9 active features a step, all different, as int64 indices."""

from __future__ import annotations

import numpy as np

ACTIVE = 9
SEED = 0


def tile_coded(n: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Five smooth random signals, coded by 8 hashed tilings of 10 bins a signal, and a bias unit; and their rewards.

    The reward is the first signal of the state that is entered.
    """
    rng = np.random.default_rng(SEED)
    signals, tilings, bins = 5, 8, 10
    t = np.arange(steps + 1)[:, None, None]
    period, phase = rng.uniform(50.0, 2000.0, (2, signals, 8))
    waves = np.sin(2.0 * np.pi * (t / period + phase / 2000.0)).sum(axis=2)
    low, high = waves.min(axis=0), waves.max(axis=0)
    points = (waves - low) / (high - low)
    X = np.empty((steps + 1, ACTIVE), np.int64)
    X[:, 0] = n - 1  # the bias unit; the tilings share the rest
    primes = np.array([2654435761, 2246822519, 3266489917, 668265263, 374761393], np.uint64)
    for tiling in range(tilings):
        shift = tiling * (2 * np.arange(signals) + 1) % tilings / tilings  # displaced by odd multiples, as is usual
        cells = np.floor(points * bins + shift).astype(np.uint64)
        mixed = np.bitwise_xor.reduce(cells * primes, axis=1) + np.uint64(tiling * 40503)
        mixed = (mixed ^ (mixed >> np.uint64(15))) * np.uint64(0x9E3779B97F4A7C15)
        index = ((mixed >> np.uint64(20)) % np.uint64(n - 1)).astype(np.int64)
        earlier = X[:, 1 : tiling + 1]
        while (taken := (earlier == index[:, None]).any(axis=1)).any():  # two tilings hashed to one index: the next one
            index[taken] = (index[taken] + 1) % (n - 1)
        X[:, tiling + 1] = index
    return X, np.ascontiguousarray(points[1:, 0])


def uniform(n: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices drawn evenly from all n at every step, the worst case for caches; and normal rewards."""
    rng = np.random.default_rng(SEED)
    X = rng.integers(0, n, (steps + 1, ACTIVE))
    while (twice := (np.diff(np.sort(X, axis=1), axis=1) == 0).any(axis=1)).any():  # rows with a repetition: draw again
        X[twice] = rng.integers(0, n, (int(twice.sum()), ACTIVE))
    return X, rng.normal(size=steps)


def few(n: int, steps: int, distinct: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices drawn evenly from `distinct` features that are spread over all n; and normal rewards."""
    X, rewards = uniform(distinct, steps)
    places = np.arange(distinct) * (n // distinct)
    return places[X], rewards


def game(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """A screen of 105 × 80 places with 32 colours, on which 12 rectangles move; one of two rewards, and one of six actions.

    That makes 8,402 active features of 400,000, of which some hundreds change at a step. The reward is 1 at one step in twenty.
    """
    rng = np.random.default_rng(SEED)
    high, wide, colours, things = 105, 80, 32, 12
    background = rng.integers(colours, size=(high, wide))
    place, speed = rng.uniform(0.0, wide, (things, 2)), rng.normal(0.0, 0.7, (things, 2))
    colour, size = rng.integers(colours, size=things), rng.integers(4, 10, (things, 2))
    rewards = (rng.random(steps + 1) < 0.05).astype(float)
    X = np.empty((steps + 1, high * wide + 2), np.int64)
    for x, reward in zip(X, rewards, strict=True):
        screen = background.copy()
        for i in range(things):
            down, right = (int(place[i, axis]) + np.arange(size[i, axis]) for axis in (0, 1))
            screen[np.ix_(down % high, right % wide)] = colour[i]
        place += speed
        turns = rng.random(things) < 0.02
        speed[turns] = rng.normal(0.0, 0.7, (int(turns.sum()), 2))
        x[:-2] = colours * np.arange(high * wide) + screen.reshape(-1)
        x[-2:] = 300_000 + reward, 300_003 + rng.integers(6)
    return X, rewards[1:]


def many(n: int, active: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """As `uniform`, with any number of active features."""
    rng = np.random.default_rng(SEED)
    X = np.stack([np.sort(rng.choice(n, active, replace=False)) for _ in range(steps + 1)])
    return X, rng.normal(size=steps)


def dense(n: int, steps: int, *, binary: bool) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of n numbers with a squared length of about 1 (or of zeros and ones, a tenth of them ones), and rewards."""
    rng = np.random.default_rng(SEED)
    X = rng.random((steps + 1, n), np.float32)  # half the time and memory of drawing doubles, which they then become
    X = (X < 0.1).astype(np.float64) if binary else (X - 0.5) * np.sqrt(12.0 / n)
    return X.astype(np.float64, copy=False), rng.normal(size=steps)
