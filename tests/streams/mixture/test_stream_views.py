"""The features and bases of `auto`: what they are by their definition, whatever the blocks."""

import datetime

import numpy as np
import pytest

from trueonline.streams.mixture.stream_views import HOUR, MAX_TILES, OTHERS, VALUE, WEEKDAY, WEEKEND, Grid, Views, grids


def stream(T=400, others=2, seed=0):
    rng = np.random.default_rng(seed)
    seconds = 1.7e9 + np.cumsum(rng.uniform(100.0, 900.0, T))
    return seconds, rng.standard_normal((T, 1 + others)).cumsum(axis=0), rng.uniform(0.0, 1.0, T)


def test_bases_are_means_and_medians_by_their_definition():
    seconds, signals, gammas = stream()
    signals[[5, 100, 101, 102, *range(150, 300, 10)], 0] = (
        1e4  # before the limit, a new level, and wild values, in the end too many
    )
    _, bases = Views(["a", "b"]).see(seconds, signals, gammas)
    raw = signals[:, 0]
    x, wild = raw.copy(), 0.0
    expected, means, medians = [], np.zeros(4), [[x[0], 0.0], [x[0], 0.0]]
    for t in range(len(x)):
        if t >= 20:
            (middle, spread), before = medians[1], raw[t - 1]
            x[t] = np.clip(raw[t], min(middle - 20.0 * spread, before), max(middle + 20.0 * spread, before))
        wild += 0.001 * ((x[t] != raw[t]) - wild)
        if wild > 0.005:
            x[t] = raw[t]
        gamma = max(gammas[t], 0.8)
        rates = np.maximum([1.0, 0.0, 1.0 - gamma**4, 1.0 - gamma], 1.0 / (t + 1))
        means = means + rates * (x[t] - means)
        for own, slow in zip(medians, (0.001, 0.01), strict=True):  # a median, and the mean distance from it
            rate, away = max(slow, 1.0 / (t + 1)), x[t] - own[0]
            most = 20.0 * own[1] if own[1] > 0.0 and rate < 0.1 else abs(away)
            own[1] += rate * (min(abs(away), most) - own[1])
            own[0] += np.sign(away) * min(2.0 * rate * own[1], abs(away))
        expected.append([*means, medians[0][0], medians[1][0]])
    np.testing.assert_allclose(bases, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bases[:, 1], np.cumsum(x) / np.arange(1, len(x) + 1), rtol=1e-12, atol=1e-12)
    limited = np.flatnonzero(x != raw)
    assert 100 in limited
    assert not {5, 101, 102, 290} & set(limited)


def coordinate(values):
    """(1 + z/(1 + |z|))/2 with z = (x − m)/s."""
    m, s, out = values[0], 0.0, []
    for n, x in enumerate(values, 1):
        rate = max(1e-3, 1.0 / n)
        away = x - m
        m, s = m + rate * away * (n > 1), s + rate * (abs(away) - s)
        z = (x - m) / s if s > 0.0 else 0.0
        out.append((1.0 + z / (1.0 + abs(z))) / 2.0)
    return np.array(out)


def tiles(grid, columns):
    """The active tile of each tiling, as a code that tells different tiles apart."""
    codes = []
    for k in range(grid.tilings):
        code = [k]
        for i, (place, bins, column) in enumerate(zip(grid.coordinates, grid.bins, columns, strict=True)):
            cell = np.floor(column * bins + (k * (2 * i + 1) / grid.tilings) % 1.0)
            code.append(cell % bins if place == HOUR else np.clip(cell, 0, bins))
        codes.append(code)
    return codes


def test_features_are_the_tiles_of_their_grids():
    seconds, signals, gammas = stream()
    X, _ = Views(["a", "b"]).see(seconds, signals, gammas)
    moments = [datetime.datetime.fromtimestamp(s, datetime.UTC) for s in seconds]
    known = {
        VALUE: coordinate(signals[:, 0]),
        HOUR: np.array([s % 86400.0 / 86400.0 for s in seconds]),
        WEEKDAY: np.array([(m.weekday() + 0.5) / 7.0 for m in moments]),
        WEEKEND: np.array([0.75 if m.weekday() >= 5 else 0.25 for m in moments]),
        OTHERS: coordinate(signals[:, 1]),
        OTHERS + 1: coordinate(signals[:, 2]),
    }
    column, looked_at = 0, 0
    for grid in grids(["a", "b"]):
        own = X[:, column : column + grid.tilings]
        column += grid.tilings
        assert ((own >= 0) & (own < grid.features.n_features)).all()
        if set(grid.coordinates) <= set(known) and grid.tiles <= MAX_TILES:
            looked_at += 1
            for k, code in enumerate(tiles(grid, [known[each] for each in grid.coordinates])):
                cells = np.stack(np.broadcast_arrays(*code), axis=1)
                _, same = np.unique(cells, axis=0, return_inverse=True)
                _, same_feature = np.unique(own[:, k], return_inverse=True)
                np.testing.assert_array_equal(same[:, None] == same, same_feature[:, None] == same_feature)
    assert column == X.shape[1]
    assert looked_at == 7  # all but those of slope, level and trend


def test_many_signals_are_hashed_into_bounded_memory():
    names = [f"s{i}" for i in range(30)]
    views = Views(names)
    assert sum(each.n_features for each in views.feature_sets) < 12_000
    X, _ = views.see(*stream(others=30))
    assert len(np.unique(X[:, -1])) > 50
    assert Grid("all", tuple(range(8)), (6,) * 8, 4).features.n_features == MAX_TILES


def test_blocks_make_no_difference_and_a_state_resumes():
    seconds, signals, gammas = stream()
    X, bases = Views(["a", "b"]).see(seconds, signals, gammas)
    views, parts = Views(["a", "b"]), []
    for block in (slice(0, 1), slice(1, 90), slice(90, 400)):
        parts.append(views.see(seconds[block], signals[block], gammas[block]))
        again = Views(["a", "b"])
        again.restore(views.state())
        views = again
    np.testing.assert_array_equal(np.vstack([part[0] for part in parts]), X)
    np.testing.assert_array_equal(np.vstack([part[1] for part in parts]), bases)
    with pytest.raises(ValueError, match="does not fit"):
        views.restore({**views.state(), "means": np.full(5, np.inf)})


def test_the_order_of_signals_in_memory_makes_no_difference():
    signals, times = np.random.default_rng(0).normal(size=(50, 3)), 60.0 * np.arange(50)
    by_row, by_column = (
        Views(["a", "b"]).see(times, each, np.full(50, 0.9)) for each in (signals, np.asfortranarray(signals))
    )
    for one, other in zip(by_row, by_column, strict=True):
        np.testing.assert_array_equal(one, other)
