"""Signals derived from columns: against the definitions, sample by sample, in plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.signals.definitions import BIG, RATE, pieces, stream, through_a_file
from trueonline.streams.signals import Bounds, Signals

# --- The definitions ------------------------------------------------------------------------------


def within(x):
    return min(max(x, -BIG), BIG)


def velocity(times, x, starts):
    return [
        0.0 if starts[k] else within((x[k] - x[k - 1]) / np.float64(times[k] - times[k - 1])) for k in range(len(times))
    ]


def lowpass(times, x, starts, tau):
    y = []
    for k in range(len(times)):
        if starts[k]:
            y.append(x[k])
        else:
            y.append(within(y[-1] + (1.0 - math.exp(-(times[k] - times[k - 1]) / tau)) * (x[k] - y[-1])))
    return y


def lag(times, x, starts, s, rate=RATE):
    """Among the samples since the start, and no more than there is room for."""
    room = math.ceil(1.25 * s * rate + 8)
    y = []
    for k, t in enumerate(times):
        begin = max(j for j in range(k + 1) if starts[j])
        remembered = range(max(begin, k + 1 - room), k + 1)
        old = [j for j in remembered if j < k and times[j] <= t - (s - 0.01 / rate)]
        y.append(x[old[-1] if old else remembered[0]])
    return y


def expected(tree, times, columns, starts):
    """The signal that a tree ("function", tree, seconds) or a column's name stands for."""
    if isinstance(tree, str):
        return [within(x) for x in columns[tree]]
    function, inner, seconds = tree
    x = expected(inner, times, columns, starts)
    if function == "velocity":
        y = velocity(times, x, starts)
        return y if seconds is None else lowpass(times, y, starts, seconds)
    if function == "envelope":
        return lowpass(times, [abs(each) for each in x], starts, seconds or 0.2)
    return {"lowpass": lowpass, "lag": lag}[function](times, x, starts, seconds)


def written(tree):
    if isinstance(tree, str):
        return tree
    function, inner, seconds = tree
    return f"{function}({written(inner)})" if seconds is None else f"{function}({written(inner)}, {seconds!r})"


TREES = [
    "a", ("velocity", "a", None), ("velocity", "force (N)", 0.1), ("lowpass", "force (N)", 0.1), ("envelope", "a", None),
    ("envelope", ("velocity", "a", None), 0.5), ("lag", "a", 0.1), ("lag", ("lowpass", "a", 0.3), 0.02),
    ("velocity", ("lag", "force (N)", 1.0), 0.3), ("lag", ("lag", "a", 0.1), 0.25),
]  # fmt: skip


# --- Signals --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 150), st.permutations(TREES), st.integers(1, len(TREES)))
def test_signals_are_their_definitions(seed, length, trees, many):
    trees = trees[:many]
    signals = Signals([written(tree) for tree in trees], rate=RATE)
    times, values, starts = stream(seed, length, len(signals.columns))
    found = signals.derive(times, values, starts)
    starts[0] = True  # whether it says so or not
    columns = dict(zip(signals.columns, values.T.tolist(), strict=True))
    for tree, y in zip(trees, found.T, strict=True):
        oracle = np.array(expected(tree, times.tolist(), columns, starts.tolist()))
        # 1 − e^x loses digits where the kernel's expm1 does not, and velocities of epoch times magnify that.
        np.testing.assert_allclose(y, oracle, rtol=0, atol=1e-9 * max(1.0, np.abs(oracle).max()))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 120), st.lists(st.integers(0, 10**6), max_size=8), st.booleans())
def test_the_split_into_blocks_makes_no_difference_and_a_state_is_exact(seed, length, cuts, saved):
    texts = [written(tree) for tree in TREES]
    whole, split_up = Signals(texts, rate=RATE), Signals(texts, rate=RATE)
    times, values, starts = stream(seed, length, len(whole.columns))
    at_once = whole.derive(times, values, starts)
    parts = []
    for piece in pieces(length, cuts):
        if saved:
            state, split_up = through_a_file(split_up.state()), Signals(texts, rate=RATE)
            split_up.restore(state)
        parts.append(split_up.derive(times[piece], values[piece], starts[piece]))
    assert np.array_equal(np.concatenate(parts), at_once)
    for name, array in whole.state().items():
        assert np.array_equal(array, split_up.state()[name], equal_nan=array.dtype.kind == "f"), name


def test_a_block_without_samples_gives_none_and_changes_nothing():
    signals = Signals(["velocity(a)", "lag(b, 1)"], rate=1.0)
    signals.derive(np.array([0.0]), np.ones((1, 2)), np.array([True]))
    before = signals.state()
    assert signals.derive(np.empty(0), np.empty((0, 2)), np.empty(0, bool)).shape == (0, 2)
    assert all(np.array_equal(array, signals.state()[name]) for name, array in before.items())
    assert Bounds(["a", "b"]).scale(np.empty((0, 2))).shape == (0, 2)


def test_a_start_forgets_all_that_was_before():
    texts = [written(tree) for tree in TREES]
    times, values, _ = stream(7, 60)
    old, new = Signals(texts, rate=RATE), Signals(texts, rate=RATE)
    old.derive(times[:30], values[:30], np.zeros(30, bool))
    starts = np.arange(30) == 0
    earlier = times[30:] - 100.0  # a clock that was set back
    assert np.array_equal(old.derive(earlier, values[30:], starts), new.derive(earlier, values[30:], starts))


@pytest.mark.parametrize("begin", [0.0, 3600.0, 1.7e9, -2.0])
@pytest.mark.parametrize(("rate", "seconds"), [(40.0, 0.1), (1000.0, 0.3), (30.0, 0.7), (44.1, 10 / 44.1)])
def test_a_lag_of_regular_samples_is_a_fixed_number_of_them_however_times_are_rounded(begin, rate, seconds):
    n, steps = 400, round(rate * seconds)
    signals = Signals([f"lag(i, {seconds!r})"], rate=rate)
    times = begin + np.arange(n) / rate
    found = signals.derive(times, np.arange(n, dtype=float)[:, None], np.arange(n) == 0)[:, 0]
    assert np.array_equal(found, np.maximum(np.arange(n) - steps, 0))
    assert signals.forgotten == 0


def test_a_lag_is_by_time_across_silences_and_shorter_only_where_samples_come_too_fast():
    signals = Signals(["lag(x, 1)"], rate=4.0)  # room for 13
    times = np.array([0.0, 0.25, 0.9, 1.0, 1.2, 1.25, 9.0])
    found = signals.derive(times, times[:, None], times == 0.0)[:, 0]
    assert np.array_equal(found, [0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 1.25])
    assert signals.forgotten == 0
    fast = 10.0 + np.arange(50) / 20.0  # 20 in a second
    found = signals.derive(fast, fast[:, None], fast == 10.0)[:, 0]
    assert np.array_equal(found, fast[np.maximum(np.arange(50) - 12, 0)])
    assert signals.forgotten == 50 - 13
    assert np.array_equal(found, lag(fast, fast, fast == 10.0, 1.0, rate=4.0))


def test_nothing_overflows():
    texts = [
        "x", "velocity(x)", "velocity(velocity(x))", "lowpass(x, 1e-300)", "envelope(x, 1e300)", "lag(velocity(x), 1)",
    ]  # fmt: skip
    signals = Signals(texts, rate=10.0)
    times = np.array([-1e308, 0.0, 5e-324, 1e-300, 1.0, 2.0, 1e308, 1.7e308])
    x = np.array([1e100, -1e100, 1e100, 1.7e308, -1.7e308, 0.0, 1e100, -1e100])
    found = signals.derive(times, x[:, None], np.zeros(len(times), bool))
    assert np.isfinite(found).all()
    assert np.abs(found).max() == BIG
    assert np.array_equal(found[:, 0], np.clip(x, -BIG, BIG))
    assert found[2, 1] == BIG


# --- What is refused ------------------------------------------------------------------------------

T, V, S = np.array([3.0, 4.0]), np.ones((2, 2)), np.zeros(2, bool)


@pytest.mark.parametrize(
    ("times", "values", "starts", "words"),
    [
        (T, np.ones((2, 3)), S, "2 values"),
        (T, np.ones(2), S, "2 values"),
        (np.array(3.0), np.ones((1, 2)), S[:1], "2 values"),
        (T[:, None], V, S, "2 values"),
        (T, V, S[:1], "2 booleans"),
        (T, V, None, "2 booleans"),
        (T, np.array([[1.0, 2.0], [1.0, math.nan]]), S, "values must be finite, got nan at position 1, 1"),
        (np.array([3.0, math.nan]), V, S, "times must be finite, got nan at position 1"),
        (np.array([3.0, 3.0]), V, S, "times must rise, got 3.0 after 3.0 at position 1"),
        (np.array([1.0, 3.0]), V, S, "times must rise, got 1.0 after 2.0 at position 0"),
        (T, np.array([["1", "2"], ["3", "4"]]), S, "values must be numbers"),
        (T, V.astype(bool), S, "values must be numbers"),
        (T, [[1.0], [1.0, 2.0]], S, "values must be an array"),
    ],
)
def test_blocks_that_do_not_fit_are_refused_and_nothing_changes(times, values, starts, words):
    signals = Signals(["velocity(a)", "lag(b, 1)", "lowpass(a, 1)"], rate=2.0)
    for _ in range(2):  # before anything is compiled, perhaps, and after
        signals.derive(np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([True, False]))
        before = signals.state()
        with pytest.raises(ValueError, match=words):
            signals.derive(times, values, starts)
        after = signals.state()
        assert all(np.array_equal(before[name], after[name]) for name in before)


def test_other_kinds_of_arrays_are_taken_as_what_they_say():
    times, values, starts = stream(11, 50)
    times, values = times - times[0], np.round(values * 100.0)
    plain = Signals(["velocity(a)", "lag(b, 0.1)"], rate=RATE).derive(times, values, starts)
    unwritable = values.copy()
    unwritable.flags.writeable = False
    for other in (values.astype(np.int64), np.asfortranarray(values), values.astype(">f8"), values.tolist(), unwritable):
        found = Signals(["velocity(a)", "lag(b, 0.1)"], rate=RATE).derive(times.astype(">f8"), other, starts.tolist())
        assert np.array_equal(found, plain)
        assert np.array_equal(Bounds(["a", "b"]).scale(other), Bounds(["a", "b"]).scale(values))


def test_states_that_do_not_fit_are_refused_and_nothing_changes():
    signals = Signals(["velocity(a)", "lag(b, 1)"], rate=2.0)
    signals.derive(T, V, S)
    good = signals.state()
    wrong = [good | {"names": np.array(["velocity(a)", "lag(b, 2)"])}]
    wrong += [good | {"memory": np.full_like(good["memory"], math.nan)}]
    wrong += [good | {"memory": np.where(np.arange(len(good["memory"])) == 0, math.inf, good["memory"])}]
    marks = ([-1, 1, 0], [999, 1, 0], [0, 999, 0], [0, -1, 0], [0, 1, -1])
    wrong += [good | {"marks": np.array([each])} for each in marks]
    wrong += [Signals(["velocity(a)", "lag(b, 1)"], rate=20.0).state()]
    for state in wrong:
        with pytest.raises(ValueError, match="state"):
            signals.restore(state)
        assert all(np.array_equal(good[name], array) for name, array in signals.state().items())
    fresh = Signals(["velocity(a)", "lag(b, 1)"], rate=2.0)
    signals.restore(fresh.state())  # as if nothing had been seen
    assert np.array_equal(signals.derive(T, V * 3.0, S), fresh.derive(T, V * 3.0, S))


def test_bounds_that_are_shown_are_copies():
    bounds = Bounds(["a"])
    bounds.scale(np.array([[5.0], [6.0]]))
    for name in ("low", "high", "clipped", "widened"):
        getattr(bounds, name)[:] = 9
        assert getattr(bounds, name)[0] != 9
