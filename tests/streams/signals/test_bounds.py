"""Bounds of signals: against their rules, however samples are split."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.signals.definitions import BIG, pieces, stream, through_a_file
from trueonline.features import TileCoder
from trueonline.streams.signals import Bounds, Signals

# --- The definitions ------------------------------------------------------------------------------


def scaled(values, bounds):
    """The rules for one signal; `bounds` is None or a pair. Returns u, the bounds, clipped, widened."""
    low, high = bounds or (None, None)
    u, clipped, widened = [], 0, 0
    for x in values:
        if bounds is None:
            if low is None:
                low = high = x
            width = high - low
            if x > high:
                high = x if width == 0 else min(x, max(high + width, math.nextafter(high, math.inf)))
                widened += 1
            elif x < low:
                low = x if width == 0 else max(x, min(low - width, math.nextafter(low, -math.inf)))
                widened += 1
        clipped += not low <= x <= high
        u.append(0.5 if low == high else (min(max(x, low), high) - low) / (high - low))
    return u, low, high, clipped, widened


# --- Bounds ---------------------------------------------------------------------------------------

NUMBERS = st.one_of(st.integers(-5, 5).map(float), st.floats(-BIG, BIG), st.floats(-1e3, 1e3, width=16))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=40),
    st.lists(st.integers(0, 10**6), max_size=5),
    st.booleans(),
)
def test_bounds_are_their_rules_however_samples_are_split(rows, cuts, saved):
    values, fixed = np.array(rows), {"given": (-2.0, 3.0)}
    bounds = Bounds(["running", "given"], fixed)
    parts = []
    for piece in pieces(len(values), cuts):
        if saved:
            state, bounds = through_a_file(bounds.state()), Bounds(["running", "given"], fixed)
            bounds.restore(state)
        parts.append(bounds.scale(values[piece]))
    found = np.concatenate(parts)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    for i, pair in enumerate((None, (-2.0, 3.0))):
        u, low, high, clipped, widened = scaled(values[:, i].tolist(), pair)
        assert np.array_equal(found[:, i], u)
        assert (bounds.low[i], bounds.high[i]) == (low, high)
        assert (bounds.clipped[i], bounds.widened[i]) == (clipped, widened)


def test_a_spike_at_most_doubles_the_range_and_a_new_level_is_covered_soon():
    bounds = Bounds(["x"])
    bounds.scale(np.linspace(0.0, 1.0, 11)[:, None])
    assert bounds.scale(np.array([[1e6]]))[0, 0] == 1.0
    assert (bounds.low[0], bounds.high[0], bounds.clipped[0]) == (0.0, 2.0, 1)
    assert bounds.scale(np.array([[1.0]]))[0, 0] == 0.5
    found = bounds.scale(np.full((8, 1), -100.0))[:, 0]  # 50 widths away: log₂ 51 < 6
    assert np.array_equal(found, np.zeros(8))
    assert (bounds.low[0], bounds.high[0], bounds.clipped[0]) == (-100.0, 2.0, 6)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_bounds_that_are_neighbours_are_not_stuck(side):
    bounds = Bounds(["x"])
    bounds.scale(side * np.array([[np.nextafter(1.0, 0.0)], [1.0]]))  # half the distance to the next number beyond 1
    found = bounds.scale(np.full((60, 1), side * 2.0))
    assert max(abs(bounds.low[0]), abs(bounds.high[0])) == 2.0
    assert found[-1, 0] == (side + 1.0) / 2.0


def test_the_largest_numbers_make_no_overflow():
    bounds = Bounds(["x", "y"], {"y": (-BIG, BIG)})
    found = bounds.scale(np.repeat([[-BIG], [BIG], [0.0], [1.7e308], [-1.7e308]], 2, axis=1))
    assert np.array_equal(found[:, 0], [0.5, 1.0, 0.5, 1.0, 0.0])
    assert np.array_equal(found[:, 1], [0.0, 1.0, 0.5, 1.0, 0.0])
    assert (bounds.low[0], bounds.high[0]) == (-BIG, BIG)


def test_bounded_signals_are_what_a_tile_coder_takes():
    signals = Signals(["a", "velocity(a)"])
    bounds = Bounds(signals.names, {"a": (-1.0, 1.0)})
    coder = TileCoder(low=[0.0, 0.0], high=[1.0, 1.0], bins=4, tilings=4)
    times, values, starts = stream(2, 200, 1)
    assert coder.many(bounds.scale(signals.derive(times, values, starts))).shape == (200, 4)
    assert coder.clipped.tolist() == [0, 0]
    assert bounds.clipped[0] == (np.abs(values) > 1.0).sum() > 0


@pytest.mark.parametrize(
    ("names", "fixed", "words"),
    [
        ([], {}, "at least one"),
        ("abc", {}, "list of names"),
        (["a", "a"], {}, "once"),
        (["a", ""], {}, "names"),
        (["a"], {"b": (0.0, 1.0)}, "there is no signal 'b' .* there are a"),
        (["a"], {"a": (1.0, 1.0)}, "below high"),
        (["a"], {"a": (0.0, math.inf)}, "high of a must be a number within"),
        (["a"], {"a": (math.nan, 1.0)}, "low of a must be a number within"),
        (["a"], {"a": (False, True)}, "low of a must be a number"),
        (["a"], {"a": (1.0,)}, "pair"),
    ],
)
def test_bounds_that_cannot_be_are_refused(names, fixed, words):
    with pytest.raises(ValueError, match=words):
        Bounds(names, fixed)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.ones((2, 3)), "rows of 2"),
        (1.0, "rows of 2"),
        (np.array([[1.0, 2.0], [9.0, math.nan]]), "finite, got nan at position 1, 1"),
        (np.array([[-math.inf, 2.0]]), "finite, got -inf at position 0, 0"),
        (np.ones((2, 2), bool), "numbers"),
    ],
)
def test_values_that_do_not_fit_are_refused_and_no_bound_moves(values, words):
    bounds = Bounds(["a", "b"], {"b": (0.0, 1.0)})
    bounds.scale(np.array([[0.0, 0.5], [1.0, 0.7]]))
    before = bounds.state()
    with pytest.raises(ValueError, match=words):
        bounds.scale(values)
    assert all(np.array_equal(before[name], array) for name, array in bounds.state().items())


def test_states_of_other_bounds_are_refused_and_nothing_changes():
    fixed = {"b": (0.0, 1.0)}
    bounds = Bounds(["a", "b"], fixed)
    bounds.scale(np.array([[0.0, 0.5], [1.0, 7.0]]))
    good = bounds.state()
    others = [Bounds(["a", "b"]), Bounds(["a", "b"], {"b": (0.0, 2.0)}), Bounds(["a", "b"], {"a": (0.0, 1.0), **fixed})]
    others += [Bounds(["a", "c"]), Bounds(["a"]), Bounds(["b", "a"], fixed)]
    wrong = [other.state() for other in others]
    wrong += [good | {"low": each} for each in (good["high"] + 1.0, np.array([math.nan, 0.0]))]
    wrong += [good | {"clipped": -good["clipped"] - 1}, good | {"high": np.array([math.inf, 1.0])}]
    for state in wrong:
        with pytest.raises(ValueError, match="state"):
            bounds.restore(state)
        assert all(np.array_equal(good[name], array) for name, array in bounds.state().items())
    assert bounds.clipped.tolist() == [0, 1]
    assert bounds.widened.tolist() == [1, 0]
