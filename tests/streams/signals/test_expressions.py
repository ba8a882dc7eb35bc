"""Expressions for signals: how they are read, and which are refused."""

import math
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from trueonline.streams.signals import MAX_ROOM, Signals, spelling, split


def test_columns_are_in_the_order_of_first_use_and_names_in_one_spelling():
    signals = Signals(["velocity( b,100ms )", "a", "envelope(b)", "lag(c , 2 s)", "lowpass(lag(a,1.50s),1e-3)"], rate=1.0)
    assert signals.columns == ("b", "a", "c")
    names = ("velocity(b, 0.1)", "a", "envelope(b, 0.2)", "lag(c, 2)", "lowpass(lag(a, 1.5), 0.001)")
    assert signals.names == names
    assert Signals(signals.names, rate=1.0).names == names


def test_a_column_may_be_called_anything_that_is_no_call_alone_and_in_a_call():
    names = ["force (N)", "velocity (m/s)", "Velocity(x)", "a)", "(a", ":-(", "velocity", "κ"]
    for name in (*names, "lag(x) of y", "a,b", " a"):
        assert Signals([name]).columns == Signals([name]).names == (name,)
    for name in (*names, "(x, y)", "force (x, y)"):
        for text in (f"velocity({name})", f"velocity({name}, 0.5)"):
            assert Signals([f" {text} "]).columns == (name,)
            assert Signals([f" {text} "]).names == (text,)
            assert spelling(text) == text


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
        ([3], "name of a column"),
        (["velocity()"], "velocity needs a signal"),
        (["velocity( , 0.1)"], "velocity needs a signal"),
        (["lowpass(x)"], "lowpass needs a time"),
        (["lag(x)"], "lag needs a time"),
        (["lowpass(x, 0)"], "a time must be above 0"),
        (["lowpass(x, 1e999)"], "a time must be above 0"),
        (["lowpass(x, )"], "a time must be above 0"),
        (["velocity(x, fast)"], "known is velocity"),
        (["velocity(x, 0.1, 0.2)"], "a signal and a time"),
        (["hour(timestamp)"], r"write hour\(time\)"),
        (["weekday(velocity(time))"], r"write weekday\(time\)"),
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
