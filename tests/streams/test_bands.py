"""Bands around predictions, against their definition with plain lists, and against streams of all kinds."""

import math

import numpy as np
import pytest

from trueonline.streams.accuracy.bands import (
    ERRORS_PER_WAIT,
    FIRST_ERRORS,
    KNOWN_POWER,
    LEVEL_RATE,
    MAX_ERRORS,
    MAX_OPEN_WEIGHT,
    MAX_WAITING,
    MIN_ERRORS,
    TAIL_EXPONENT,
    Bands,
)


def exceeded(errors, level):
    """The error that a share `level` exceeds, interpolated between ranks, and stretched beyond the largest."""
    n, errors = len(errors), np.sort(errors)
    if (1 - level) * (n + 1) >= n:
        return errors[-1] + abs(errors[-1]) * (1 / ((n + 1) * level) ** TAIL_EXPONENT - 1)
    return np.interp((1 - level) * (n + 1), np.arange(1, n + 1), errors)


def by_definition(p, c, gammas, starts, coverage, room):
    """The bands of one question."""
    alpha = (1 - coverage) / 2
    low, high = np.full((2, len(p)), np.nan)
    waiting, kept, since, excess = [], [], 0, [0.0, 0.0]
    for t in range(len(p)):
        if starts[t]:
            waiting = []
        while waiting:
            k = waiting[0]
            left, known = 1.0, 0.0
            for i in range(k + 1, t + 1):
                known, left = known + left * c[i], left * gammas[i]
            if left > MAX_OPEN_WEIGHT and len(waiting) < room:
                break
            since += 1
            samples, waiting = len(waiting), waiting[1:]
            if left > 0.995:
                since -= 1
                continue
            error = (known + left * p[t] - p[k]) / (np.sqrt(1 + left) * (1 - left) ** KNOWN_POWER)
            if ERRORS_PER_WAIT * since >= samples or len(kept) < FIRST_ERRORS:
                kept = [*kept, error][-MAX_ERRORS:]
            since = 0 if ERRORS_PER_WAIT * since >= samples else since
            if np.isfinite(low[k]):
                missed = p[k] + error > high[k], p[k] + error < low[k]
                step, least = min(1, ERRORS_PER_WAIT / samples), -np.log(0.5 / alpha) / LEVEL_RATE
                excess = [max(e + step * (m - alpha), least) for e, m in zip(excess, missed, strict=True)]
        if len(kept) >= MIN_ERRORS:
            up, down = (min(alpha * np.exp(-LEVEL_RATE * e), 0.5) for e in excess)
            high[t] = p[t] + exceeded(np.array(kept), up) + 1e-12 * abs(p[t])
            low[t] = p[t] - exceeded(-np.array(kept), down) - 1e-12 * abs(p[t])
        waiting.append(t)
    return low, high


@pytest.mark.parametrize("seed", range(2))
def test_bands_are_those_of_the_definition_in_blocks_of_any_size_and_resumed(seed):
    rng = np.random.default_rng(seed)
    discounts = [0.9, 0.0, "ending", 0.9, 0.98]
    T = 1500
    P, C = rng.standard_t(3, size=(2, T, len(discounts)))
    starts = rng.random(T) < 0.002
    ending = np.where(rng.random(T) < 0.05, 0.0, rng.random(T) ** 0.1)
    bands = Bands(discounts, coverage=0.8)
    columns = {d: ending if isinstance(d, str) else np.full(T, d) for d in bands.discounts}
    gammas = np.column_stack([columns[d] for d in bands.discounts])
    whole = np.stack(Bands(discounts, coverage=0.8).follow(P, C, starts, gammas))
    at, pieces = 0, []
    while at < T:
        to = at + int(rng.integers(1, 100))
        pieces.append(bands.follow(P[at:to], C[at:to], starts[at:to], gammas[at:to]))
        other = Bands(discounts, coverage=0.8)
        other.restore(bands.state())
        bands, at = other, to
    assert np.array_equal(whole, np.concatenate(pieces, axis=1), equal_nan=True)
    for q, discount in enumerate(discounts):
        room = dict(zip(bands.discounts, bands._most.tolist(), strict=True))[discount]
        expected = by_definition(P[:, q], C[:, q], columns[discount], starts, 0.8, room)
        np.testing.assert_allclose(whole[:, :, q], expected, rtol=1e-9, atol=1e-9)


def one_step(x, predictions, coverage=0.9):
    """The bands of forecasts of the next sample, and which of them held it."""
    starts = np.arange(len(x)) == 0
    low, high = Bands([0.0], coverage).follow(predictions[:, None], x[:, None], starts)
    return low[:-1, 0], high[:-1, 0], (low[:-1, 0] <= x[1:]) & (x[1:] <= high[:-1, 0])


def test_the_first_band_comes_with_the_fourth_error():
    x = np.array([0.0, 1.0, -1.0, 2.0, 3.0, 0.0])
    low, high, _ = one_step(x, 0 * x)
    assert np.isnan(low[:4]).all()
    assert (low[4], high[4]) == pytest.approx(
        (-math.sqrt(2.0), 3.0 * math.sqrt(2.0))
    )  # the largest of four errors, times (1 / (5 · 0.05))^¼


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.98])
def test_bands_of_skewed_and_heavy_tailed_errors_hold_the_share_and_each_side_its_own(coverage):
    rng = np.random.default_rng(1)
    x = rng.pareto(1.5, 20_000)
    low, high, inside = one_step(x, np.full(len(x), 1.0), coverage)
    assert inside[100:].mean() == pytest.approx(coverage, abs=0.01)
    assert (x[101:] > high[100:]).mean() == pytest.approx((1 - coverage) / 2, abs=0.01)
    for end, share in ((low, (1 + coverage) / 2), (high, (1 - coverage) / 2)):  # of the distribution that x is drawn from
        assert np.median(end[5000:]) == pytest.approx(share ** (-1 / 1.5) - 1, rel=0.2)


def test_bands_follow_a_change_of_scale_by_a_million_either_way():
    rng = np.random.default_rng(2)
    x = rng.normal(size=30_000) * np.repeat([1.0, 1e6, 1.0], 10_000)
    low, high, inside = one_step(x, 0 * x)
    assert [inside[at + 2000 : at + 9_999].mean() for at in (0, 10_000, 20_000)] == pytest.approx([0.9] * 3, abs=0.01)
    assert inside[10_100:10_200].mean() > 0.85  # a hundred samples after the change
    assert [np.median((high - low)[at + 8000 : at + 9_999]) for at in (0, 10_000, 20_000)] == pytest.approx(
        [3.3, 3.3e6, 3.3], rel=0.2
    )


def test_bands_of_predictions_that_wait_for_long_keep_to_the_size_of_errors():
    """Hundreds of bands are given before the first of them turns out too narrow."""
    rng, gamma = np.random.default_rng(4), np.exp(-1 / 500)
    x = 0.2 * rng.normal(size=20_000) + np.repeat([0.0, 3.0, 0.0, 3.0], 5000)
    p = np.convolve(x, 0.01 * 0.99 ** np.arange(1000))[: len(x)]  # the mean of the last hundred samples
    starts = np.arange(len(x)) == 0
    low, high = Bands([gamma]).follow(p[:, None], (1 - gamma) * x[:, None], starts)
    assert np.nanmax(high - low) < 30.0  # no error is larger than 3, or than 5 by what is extrapolated of it


@pytest.mark.parametrize("adversary", ["outside", "alternating", "growing"])
def test_misses_are_bounded_against_an_adversary_who_knows_the_band(adversary):
    """He may choose any error up to 1,000 and puts the outcome just beyond the band whenever he can."""
    bands, alpha, most, misses, N = Bands([0.0]), 0.05, 1000.0, np.zeros(2), 4000
    x, high, low = 1.0, np.nan, np.nan
    for t in range(N):
        limit = most if adversary != "growing" else min(most, 1.01**t)
        if adversary == "alternating" and (t // 300) % 2:
            x = 0.001 * (-1) ** t
        elif math.isnan(high):
            x = (-1.0) ** t
        else:
            x = next((y for y in (high * 1.01, low * 1.01) if abs(y) <= limit), 0.5)
        if not math.isnan(high):
            misses += x > high, x < low
        lows, highs = bands.follow(np.zeros((1, 1)), np.full((1, 1), x), np.array([t == 0]))
        low, high = float(lows[0, 0]), float(highs[0, 0])
    b = 0.0005  # no error in memory was ever all smaller
    star = (math.log(alpha * (MAX_ERRORS + 1)) + math.log(most / b) / TAIL_EXPONENT) / LEVEL_RATE
    assert (misses <= alpha * N + star + 2).all()
    assert misses.sum() / N < 0.2


@pytest.mark.parametrize("discount", [0.9, 0.99, 0.9995])
def test_bands_of_returns_hold_what_comes_true(discount):
    """Of an autoregressive stream with exact predictions. The last discount fills the ring: much is open when errors count."""
    rng = np.random.default_rng(5)
    T, a = 40_000, 0.9
    x = np.zeros(T)
    for t in range(1, T):
        x[t] = a * x[t - 1] + rng.normal()
    p = (1 - discount) * a / (1 - discount * a) * x
    M = np.zeros(T)
    for t in range(T - 2, -1, -1):
        M[t] = (1 - discount) * x[t + 1] + discount * M[t + 1]
    low, high = Bands([discount]).follow(p[:, None], (1 - discount) * x[:, None], np.arange(T) == 0)
    known = slice(5000, T - 2000)
    assert ((low[:, 0] <= M) & (high[:, 0] >= M))[known].mean() == pytest.approx(
        0.9, abs=0.03 if discount < 0.999 else 0.08
    )


def test_of_endless_sums_nothing_is_known():
    ones = np.ones((3000, 1))
    low, high = Bands([1.0]).follow(ones, ones, np.arange(3000) == 0)
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_memory_is_bounded():
    sizes = {name: array.nbytes for name, array in Bands(["ending", 0.99999, 0.5]).state().items()}
    assert sum(sizes.values()) < 3 * (4 * MAX_WAITING + 2 * MAX_ERRORS + 10) * 8 + 3 * MAX_WAITING * 8


def test_a_state_that_does_not_fit_is_refused():
    bands = Bands([0.9])
    x = np.random.default_rng(6).normal(size=(300, 1))
    bands.follow(0 * x, x, np.arange(300) == 0)
    for name, change in [("rings", -1), ("memory", MAX_ERRORS + 1), ("weights", 2.0), ("excess", np.nan)]:
        state = bands.state()
        state[name].flat[0] = change
        with pytest.raises(ValueError, match=name):
            Bands([0.9]).restore(state)
    state = bands.state()
    state["ordered"][0, :2] = state["ordered"][0, 1::-1]
    with pytest.raises(ValueError, match="order of the errors"):
        Bands([0.9]).restore(state)


@pytest.mark.parametrize("coverage", [0.0, 1.0, 1.5, "wide"])
def test_coverage_is_a_share(coverage):
    with pytest.raises((ValueError, TypeError), match="coverage"):
        Bands([0.9], coverage=coverage)


def test_the_share_that_bands_held_is_counted():
    x = np.random.default_rng(3).normal(size=(3000, 2))
    bands = Bands([0.0, 0.0], coverage=0.8)
    assert np.isnan(bands.inside()).all()
    low, high = bands.follow(0 * x, x, np.arange(3000) == 0)
    held = (low[:-1] <= x[1:]) & (x[1:] <= high[:-1])  # with γ = 0 the next value is what comes true
    given = np.isfinite(low[:-1])
    np.testing.assert_allclose(bands.inside(), held.sum(axis=0) / given.sum(axis=0))
    assert ((bands.inside() > 0.77) & (bands.inside() < 0.83)).all()
