"""Signals derived from columns, and their bounds: against the definitions, sample by sample, in plain Python."""

import io
import math
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueonline.features import TileCoder
from trueonline.nexting.signals import MAX_ROOM, Bounds, Signals, spelling, split

BIG = 1e100
RATE = 40.0


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


def pieces(length, cuts):
    """Slices that cover a length."""
    edges = [0, *sorted(cut % (length + 1) for cut in cuts), length]
    return [slice(a, b) for a, b in pairwise(edges)]


def stream(seed, length, columns=2):
    """Times with jitter, silences and regular stretches, and starts at some of the silences."""
    rng = np.random.default_rng(seed)
    gaps = rng.choice([1 / RATE, 1 / RATE, rng.random() * 0.1 + 1e-3, 3.0], size=length, p=[0.4, 0.3, 0.25, 0.05])
    times = rng.choice([-1.0, 0.0, 1.7e9]) + np.cumsum(gaps)
    starts = rng.random(length) < 0.05
    return times, rng.standard_normal((length, columns)), starts


TREES = [
    "a",
    ("velocity", "a", None),
    ("velocity", "force (N)", 0.1),
    ("lowpass", "force (N)", 0.1),
    ("envelope", "a", None),
    ("envelope", ("velocity", "a", None), 0.5),
    ("lag", "a", 0.1),
    ("lag", ("lowpass", "a", 0.3), 0.02),
    ("velocity", ("lag", "force (N)", 1.0), 0.3),
    ("lag", ("lag", "a", 0.1), 0.25),
]


# --- Signals --------------------------------------------------------------------------------------


def test_every_function_of_a_regular_stream_by_hand():
    signals = Signals(["x", "velocity(x)", "lowpass(x, 1)", "envelope(x, 1)", "lag(x, 1)"], rate=2.0)
    times, x = np.arange(5) * 0.5, np.array([0.0, -1.0, 1.0, 1.0, 3.0])
    found = signals.derive(times, x[:, None], np.array([True, False, False, False, False]))
    g = 1.0 - math.exp(-0.5)
    low, envelope = [0.0], [0.0]
    for each in x[1:]:
        low.append(low[-1] + g * (each - low[-1]))
        envelope.append(envelope[-1] + g * (abs(each) - envelope[-1]))
    assert np.array_equal(found[:, 0], x)
    assert np.array_equal(found[:, 1], [0.0, -2.0, 4.0, 0.0, 4.0])
    assert found[:, 2] == pytest.approx(low, abs=1e-15)
    assert found[:, 3] == pytest.approx(envelope, abs=1e-15)
    assert np.array_equal(found[:, 4], [0.0, 0.0, 0.0, -1.0, 1.0])


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


def through_a_file(state):
    file = io.BytesIO()
    np.savez(file, **state)
    with np.load(io.BytesIO(file.getvalue()), allow_pickle=False) as read:
        return {name: read[name] for name in read.files}


def test_single_samples_are_the_same_as_a_block():
    texts = [written(tree) for tree in TREES]
    times, values, starts = stream(5, 300)
    one, many = Signals(texts, rate=RATE), Signals(texts, rate=RATE)
    singly = [one.derive(times[k : k + 1], values[k : k + 1], starts[k : k + 1]) for k in range(300)]
    assert np.array_equal(np.concatenate(singly), many.derive(times, values, starts))


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
        "x",
        "velocity(x)",
        "velocity(velocity(x))",
        "lowpass(x, 1e-300)",
        "envelope(x, 1e300)",
        "lag(velocity(x), 1)",
    ]
    signals = Signals(texts, rate=10.0)
    times = np.array([-1e308, 0.0, 5e-324, 1e-300, 1.0, 2.0, 1e308, 1.7e308])
    x = np.array([1e100, -1e100, 1e100, 1.7e308, -1.7e308, 0.0, 1e100, -1e100])
    found = signals.derive(times, x[:, None], np.zeros(len(times), bool))
    assert np.isfinite(found).all()
    assert np.abs(found).max() == BIG
    assert np.array_equal(found[:, 0], np.clip(x, -BIG, BIG))
    assert found[2, 1] == BIG


def test_what_signals_have_in_common_does_not_change_them():
    times, values, starts = stream(3, 100, 1)
    texts = ["lowpass(velocity(a), 0.1)", "velocity(a)", "envelope(velocity(a, 0.1), 0.1)", "lag(velocity(a), 0.1)", "a"]
    together = Signals(texts, rate=RATE).derive(times, values, starts)
    for text, y in zip(texts, together.T, strict=True):
        assert np.array_equal(Signals([text], rate=RATE).derive(times, values, starts)[:, 0], y)


# --- Expressions ----------------------------------------------------------------------------------


def test_columns_are_in_the_order_of_first_use_and_names_in_one_spelling():
    signals = Signals(["velocity( b,100ms )", "a", "envelope(b)", "lag(c , 2 s)", "lowpass(lag(a,1.50s),1e-3)"], rate=1.0)
    assert signals.columns == ("b", "a", "c")
    names = ("velocity(b, 0.1)", "a", "envelope(b, 0.2)", "lag(c, 2)", "lowpass(lag(a, 1.5), 0.001)")
    assert signals.names == names
    assert Signals(signals.names, rate=1.0).names == names


@pytest.mark.parametrize(
    "name", ["force (N)", "velocity (m/s)", "Velocity(x)", "a)", "(a", ":-(", "velocity", "lag(x) of y", "a,b", " a", "κ"]
)
def test_a_column_may_be_called_anything_that_is_no_call(name):
    assert Signals([name]).columns == Signals([name]).names == (name,)


@pytest.mark.parametrize(
    "name", ["force (N)", "velocity (m/s)", "Velocity(x)", "a)", "(a", ":-(", "velocity", "κ", "(x, y)"]
)
def test_columns_of_any_name_may_be_in_a_call(name):
    for text in (f"velocity({name})", f"velocity({name}, 0.5)"):
        assert Signals([f" {text} "]).columns == (name,)
        assert Signals([f" {text} "]).names == (text,)
        assert spelling(text) == text


def test_commas_in_a_call_may_be_in_parentheses():
    assert Signals(["velocity(force (x, y), 0.1)"]).columns == ("force (x, y)",)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a,b,velocity(x, 0.1),c", ["a", "b", "velocity(x, 0.1)", "c"]),
        ("a", ["a"]),
        ("a , force (N), envelope(velocity(x),0.5)", ["a", "force (N)", "envelope(velocity(x),0.5)"]),
        ("a),b,(c,d", ["a)", "b", "(c", "d"]),
        ("velocity((x,0.1),c", ["velocity((x,0.1)", "c"]),
        ("a,,b,", ["a", "", "b", ""]),
        ("", [""]),
    ],
)
def test_a_list_is_split_at_commas_outside_parentheses(text, parts):
    assert split(text) == parts


def test_a_name_with_commas_may_be_in_quotes():
    assert split('a, "b, c" ,velocity("d, e", 0.1)') == ["a", "b, c", 'velocity("d, e", 0.1)']
    assert split('3" pipe, 4" pipe') == ['3" pipe', '4" pipe']
    signals = Signals(["b, c", 'velocity("d, e", 100ms)', 'lag( "(" , 5min)'], rate=1.0)
    assert signals.columns == ("b, c", "d, e", "(")
    assert signals.names[1:] == ('velocity("d, e", 0.1)', "lag((, 300)")
    assert Signals(signals.names, rate=1.0).names == signals.names


def test_hours_and_weekdays_are_those_of_the_wall_clock():
    """Held to Python's calendar, in zones east and west, before 1970 too."""
    signals = Signals(["weekday(time)", "x", "hour( time )", "lowpass(hour(time), 1h)"], rate=1.0)
    assert signals.columns == ("x",)
    assert signals.names == ("weekday(time)", "x", "hour(time)", "lowpass(hour(time), 3600)")
    rng = np.random.default_rng(3)
    times = np.sort(rng.integers(-(10**9), 2 * 10**9, 500)) + 0.25
    starts = np.arange(500) % 7 == 0
    for offset in (0.0, 7200.0, -19800.0):
        found = Signals(signals.names, rate=1.0).derive(times, np.ones((500, 1)), starts, offset)
        zone = timezone(timedelta(seconds=offset))
        moments = [datetime.fromtimestamp(t, zone) for t in times.tolist()]
        assert found[:, 0].tolist() == [moment.weekday() for moment in moments]
        hours = [each.hour + each.minute / 60 + (each.second + 0.25) / 3600 for each in moments]
        np.testing.assert_allclose(found[:, 2], hours, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(found[starts, 3], found[starts, 2])
    late = Signals(["hour(time)", "weekday(time)"]).derive(np.array([-1e-20]), np.ones((1, 0)), np.array([True]))
    assert late[0, 0] < 24.0
    assert late[0, 1] == 2.0  # the Wednesday before
    with pytest.raises(ValueError, match="got shapes"):
        signals.derive(times, np.ones((500, 3)), starts)


@pytest.mark.parametrize(
    ("expressions", "words"),
    [
        ([], "at least one"),
        ("a,b", "split"),
        (None, "list"),
        (["a", ""], "name of a column"),
        (["  "], "name of a column"),
        ([3], "name of a column"),
        (["velocity()"], "velocity needs a signal"),
        (["velocity( , 0.1)"], "velocity needs a signal"),
        (["lowpass(x)"], "lowpass needs a time"),
        (["lag(x)"], "lag needs a time"),
        (["lowpass(x, 0)"], "a time must be above 0"),
        (["lowpass(x, -1)"], "a time must be above 0"),
        (["lowpass(x, inf)"], "a time must be above 0"),
        (["lowpass(x, nan)"], "a time must be above 0"),
        (["lowpass(x, 1e999)"], "a time must be above 0"),
        (["lowpass(x, 1e-999)"], "a time must be above 0"),
        (["lowpass(x, 1_0)"], "a time must be above 0"),
        (["lowpass(x, 5us)"], "a time must be above 0"),
        (["lowpass(x, )"], "a time must be above 0"),
        (["lowpass(x, .)"], "a time must be above 0"),
        (["lowpass(x, s)"], "a time must be above 0"),
        (["velocity(x, fast)"], "known is velocity"),
        (["velocity(x, 0.1, 0.2)"], "a signal and a time"),
        (["envelope(lowpass(x), 1)"], "lowpass needs a time"),
        (["hour(timestamp)"], r"write hour\(time\)"),
        (["weekday(velocity(time))"], r"write weekday\(time\)"),
        (["a", "b", "a"], "once"),
        (["velocity(x, 0.1)", "velocity( x,100ms)"], "once"),
        (["envelope(x)", "envelope(x, 0.2)"], "once"),
        (["velocity(x, 0.1)", "lowpass(velocity(x), 0.1)"], "once"),
    ],
)
def test_expressions_that_cannot_be_are_refused(expressions, words):
    with pytest.raises(ValueError, match=words):
        Signals(expressions, rate=10.0)


def test_lags_need_a_rate_and_not_too_much_room():
    with pytest.raises(ValueError, match=r"lag\(x, 1\) needs the rate"):
        Signals(["lag(x, 1)"])
    with pytest.raises(ValueError, match=f"at most {MAX_ROOM:,}"):
        Signals(["lag(x, 1e300)"], rate=1e300)
    for rate in (0.0, -1.0, math.inf, math.nan, True, "40"):
        with pytest.raises(ValueError, match="rate"):
            Signals(["a"], rate=rate)


def test_hundreds_of_calls_within_each_other_are_understood():
    text = "lowpass(" * 500 + "x" + ", 1)" * 500
    signals = Signals([text])
    assert signals.columns == ("x",)
    assert signals.names == (text,)
    assert signals.derive(np.array([0.0]), np.array([[3.0]]), np.array([True]))[0, 0] == 3.0


# --- What is refused ------------------------------------------------------------------------------

T, V, S = np.array([3.0, 4.0]), np.ones((2, 2)), np.zeros(2, bool)


@pytest.mark.parametrize(
    ("times", "values", "starts", "words"),
    [
        (T, np.ones((2, 3)), S, "2 values"),
        (T, np.ones(2), S, "2 values"),
        (T[:1], V, S, "2 values"),
        (np.float64(3.0), V, S, "2 values"),
        (np.array(3.0), np.ones((1, 2)), S[:1], "2 values"),
        (T[:, None], V, S, "2 values"),
        (T, V, S[:1], "2 booleans"),
        (T, V, S.astype(float), "2 booleans"),
        (T, V, None, "2 booleans"),
        (T, np.array([[1.0, 2.0], [1.0, math.nan]]), S, "values must be finite, got nan at position 1, 1"),
        (T, np.array([[1.0, math.inf], [1.0, 1.0]]), S, "values must be finite, got inf at position 0, 1"),
        (np.array([3.0, math.nan]), V, S, "times must be finite, got nan at position 1"),
        (np.array([3.0, math.inf]), V, S, "times must be finite"),
        (np.array([3.0, 3.0]), V, S, "times must rise, got 3.0 after 3.0 at position 1"),
        (np.array([2.0, 3.0]), V, S, "times must rise, got 2.0 after 2.0 at position 0"),
        (np.array([1.0, 3.0]), V, S, "times must rise, got 1.0 after 2.0 at position 0"),
        (T, np.array([["1", "2"], ["3", "4"]]), S, "values must be numbers"),
        (T, V.astype(bool), S, "values must be numbers"),
        (T, [[1.0], [1.0, 2.0]], S, "values must be an array"),
        (T, V.astype(complex), S, "values must be numbers"),
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
    damaged = {
        "names": np.array(["velocity(a)", "lag(b, 2)"]),
        "memory": good["memory"][:-1],
        "marks": good["marks"].astype(float),
    }
    wrong = [good | {name: array} for name, array in damaged.items()]
    wrong += [{name: array for name, array in good.items() if name != absent} for absent in good]
    wrong += [None, {}, [1, 2], good | {"memory": None}, good | {"memory": np.full_like(good["memory"], math.nan)}]
    wrong += [good | {"memory": np.where(np.arange(len(good["memory"])) == 0, math.inf, good["memory"])}]
    wrong += [
        good | {"marks": np.array([marks])} for marks in ([-1, 1, 0], [999, 1, 0], [0, 999, 0], [0, -1, 0], [0, 1, -1])
    ]
    wrong += [Signals(["velocity(a)", "lag(b, 1)"], rate=20.0).state()]
    for state in wrong:
        with pytest.raises(ValueError, match="state"):
            signals.restore(state)
        assert all(np.array_equal(good[name], array) for name, array in signals.state().items())
    fresh = Signals(["velocity(a)", "lag(b, 1)"], rate=2.0)
    signals.restore(fresh.state())  # as if nothing had been seen
    assert np.array_equal(signals.derive(T, V * 3.0, S), fresh.derive(T, V * 3.0, S))


def test_a_state_is_a_copy():
    signals, bounds = Signals(["velocity(a)"]), Bounds(["a"])
    for each in (signals.state(), bounds.state()):
        for array in each.values():
            if array.dtype.kind != "U":
                array[...] = 1
    bounds.low[:], bounds.high[:], bounds.clipped[:], bounds.widened[:] = 1.0, 2.0, 3, 4
    assert signals.derive(np.array([0.0]), np.array([[5.0]]), np.array([False]))[0, 0] == 0.0
    assert bounds.scale(np.array([[5.0]]))[0, 0] == 0.5
    assert (bounds.clipped[0], bounds.widened[0]) == (0, 0)


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
        (["a"], {"a": (2.0, 1.0)}, "below high"),
        (["a"], {"a": (0.0, math.inf)}, "high of a must be a number within"),
        (["a"], {"a": (math.nan, 1.0)}, "low of a must be a number within"),
        (["a"], {"a": (-1e101, 1.0)}, "low of a must be a number within"),
        (["a"], {"a": (False, True)}, "low of a must be a number"),
        (["a"], {"a": (1.0,)}, "pair"),
        (["a"], {"a": 3.0}, "pair"),
        (["a"], {"a": "01"}, "low of a must be a number"),
    ],
)
def test_bounds_that_cannot_be_are_refused(names, fixed, words):
    with pytest.raises(ValueError, match=words):
        Bounds(names, fixed)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.ones((2, 3)), "rows of 2"),
        (np.ones(2), "rows of 2"),
        (1.0, "rows of 2"),
        (np.array([[1.0, 2.0], [9.0, math.nan]]), "finite, got nan at position 1, 1"),
        (np.array([[-math.inf, 2.0]]), "finite, got -inf at position 0, 0"),
        (np.ones((2, 2), bool), "numbers"),
        ([["a", "b"]], "numbers"),
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
    wrong += [{name: array for name, array in good.items() if name != absent} for absent in good]
    wrong += [
        good | {"low": good["high"] + 1.0},
        good | {"low": np.array([math.nan, 0.0])},
        good | {"clipped": -good["clipped"] - 1},
    ]
    wrong += [
        good | {"high": np.array([math.inf, 1.0])},
        good | {"low": [0.0, 0.0]},
        good | {"widened": good["low"]},
        None,
        {},
    ]
    for state in wrong:
        with pytest.raises(ValueError, match="state"):
            bounds.restore(state)
        assert all(np.array_equal(good[name], array) for name, array in bounds.state().items())
    again = Bounds(["a", "b"], fixed)
    again.restore(good)
    assert np.array_equal(again.low, bounds.low)
    assert again.clipped.tolist() == [0, 1]
    assert again.widened.tolist() == [1, 0]
