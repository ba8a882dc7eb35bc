"""The cleaner follows its rules, wherever blocks are split and processes restart."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.streams import INF, NAN
from trueonline.streams.sources import Block, Cleaner


def cleaned(samples, size, max_gap, missing):
    """The rules, one by one, in plain Python."""
    names = ("samples", "dropped_duplicate", "dropped_late", "dropped_missing", "dropped_time", "held", "gaps")
    counters = dict.fromkeys((*names, "clock_set_back"), 0)
    out, before, last, late = [], None, [None] * size, []  # late: the times of the late samples in a row
    for t, values in samples:
        counters["samples"] += 1
        if not math.isfinite(t) or abs(t) > 1e11:
            counters["dropped_time"] += 1
        elif before is not None and t == before:
            counters["dropped_duplicate"] += 1
        elif before is not None and t < before and len(late) < 1000 and not goes_on(rise(late), t):
            counters["dropped_late"] += 1
            late.append(t)
        else:
            set_back = before is not None and t < before
            late = late if set_back else []
            there = [math.isfinite(x) and abs(x) <= 1e100 for x in values]
            if missing == "hold":
                last = [x if is_there else old for x, is_there, old in zip(values, there, last, strict=True)]
                row = last
            else:
                row = [x if is_there else None for x, is_there in zip(values, there, strict=True)]
            if None in row:
                counters["dropped_missing"] += 1
                continue
            counters["held"] += there.count(False)
            gap = before is not None and t - before > max_gap
            counters["gaps"] += gap
            counters["clock_set_back"] += set_back
            out.append((t, list(row), gap or set_back or before is None))
            before, late = t, []
    return out, counters


def rise(late):
    """The last of these times, as many as rise, each counted once where it comes several times in a row."""
    each = [t for i, t in enumerate(late) if i == 0 or t != late[i - 1]]
    falls = [i for i in range(1, len(each)) if each[i] < each[i - 1]]
    return each[falls[-1] if falls else 0 :]


def goes_on(rising, t):
    return len(rising) >= 10 and rising[-1] - rising[0] > 10.0 and t > rising[-1]


NUMBERS = st.sampled_from([0.0, 1.0, -2.5, 1e100, -1e100, 1.01e100, -1e300, NAN, NAN, INF, -INF])
TIMES = st.one_of(
    st.integers(0, 30).map(float), st.sampled_from([NAN, INF, -INF, -0.0, 1e11, -1e11, 1.01e11, -1e300, 1e18, 2.5])
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_cleaning_follows_its_rules_wherever_the_blocks_are_split_and_the_process_restarts(data):
    size = data.draw(st.integers(1, 3))
    samples = data.draw(st.lists(st.tuples(TIMES, st.lists(NUMBERS, min_size=size, max_size=size)), max_size=30))
    if data.draw(st.booleans()):
        samples.sort(key=lambda sample: (not math.isfinite(sample[0]), sample[0]))
        samples[:0] = data.draw(st.sampled_from([[], [(1e9, [1.0] * size)]]))  # before which all others are late
    max_gap = data.draw(st.sampled_from([None, 0.5, 1.0, 3.0]))
    missing = data.draw(st.sampled_from(["hold", "skip"]))
    names = ["a", "b", "c"][:size]
    cleaner = Cleaner(names, max_gap, missing)
    times = np.array([t for t, _ in samples])
    values = np.array([v for _, v in samples]).reshape(len(samples), size)
    got, cuts = [], sorted(data.draw(st.lists(st.integers(0, len(samples)), max_size=5)))
    for at, to in zip([0, *cuts], [*cuts, len(samples)], strict=True):
        clean = cleaner(Block(times[at:to], values[at:to]))
        assert np.isfinite(clean.values).all()
        got += zip(clean.times.tolist(), clean.values.tolist(), clean.starts.tolist(), strict=True)
        if data.draw(st.booleans()):
            state = json.loads(json.dumps(cleaner.state(), allow_nan=False))
            cleaner = Cleaner(names, max_gap, missing)
            cleaner.restore(state)
    expected, counters = cleaned(samples, size, INF if max_gap is None else max_gap, missing)
    assert got == expected
    assert cleaner.counters() == counters
    assert cleaner.dropped == len(samples) - len(got)


@pytest.mark.parametrize("seed", range(6))
def test_after_a_thousand_late_samples_or_some_that_rise_for_10_s_the_clock_was_set_back(seed):
    rng = random.Random(seed)
    missing, size, clock, samples, late = rng.choice(["hold", "skip"]), 2, 0.0, [], set()
    for part in range(12):
        step = rng.choice([0.001, 0.01, 0.5, 1.0, 30.0]) if part % 2 else 0.001
        falls = rng.choice([0.0, 0.002, 0.05, 0.3])
        for _ in range(rng.choice([1, 50, 500]) if part % 3 else rng.choice([990, 999, 1000, 1001, 1500])):
            clock += step * rng.choice([0.5, 1.0]) if rng.random() >= falls else -rng.choice([0.0, step, 5.0])
            values = [rng.choice([1.0, 2.0, 3.0, NAN, 1e200]) if rng.random() < 0.1 else 1.5 for _ in range(size)]
            samples.append((clock, values))
            if rng.random() < 0.02:
                samples.append((rng.choice([NAN, 1e12, clock, max(t for t, _ in samples if t < 1e11)]), values))
        samples.append((clock + rng.choice([1e3, 1e6, 1e10]), [0.0] * size))  # a time from the future
        clock -= rng.choice([0.0, 0.0, 700.0])
    cleaner, got, at = Cleaner(["a", "b"], 10.0, missing), [], 0
    while at < len(samples):
        piece = samples[at : at + rng.choice([1, 7, 600, 3000])]
        clean = cleaner(Block(np.array([t for t, _ in piece]), np.array([v for _, v in piece])))
        got += zip(clean.times.tolist(), clean.values.tolist(), clean.starts.tolist(), strict=True)
        at += len(piece)
        late.add((cleaner.state()["late_in_a_row"] > 0, cleaner.state()["late_rising"][0] > 1))
        state, cleaner = json.loads(json.dumps(cleaner.state())), Cleaner(["a", "b"], 10.0, missing)
        cleaner.restore(state)
    expected, counters = cleaned(samples, size, 10.0, missing)
    assert got == expected
    assert cleaner.counters() == counters
    assert counters["clock_set_back"] > 0
    assert (True, True) in late  # it went on from such a state


def test_a_missing_value_can_be_an_error_that_changes_nothing():
    cleaner = Cleaner(["a", "force"], missing="error")
    cleaner(Block(np.array([1.0]), np.array([[1.0, 2.0]])))
    state = cleaner.state()
    bad = Block(np.array([1.0, 2.0, 3.5, 4.0]), np.array([[NAN, 1.0], [1.0, 2.0], [1.0, INF], [1.0, 1.0]]))
    with pytest.raises(
        ValueError, match=r"force is missing \(inf\) in the sample of time 3\.5; set missing to hold or skip"
    ):
        cleaner(bad)
    assert cleaner.state() == state
    assert cleaner(Block(bad.times[:2], bad.values[:2])).times.tolist() == [2.0]  # the first was a duplicate


def test_what_a_cleaner_refuses():
    with pytest.raises(ValueError, match="missing must be one of hold, skip, error, got 'drop'"):
        Cleaner(["a"], missing="drop")
    with pytest.raises(ValueError, match="max_gap must be a finite number > 0, got 0"):
        Cleaner(["a"], max_gap=0)
    with pytest.raises(ValueError, match=r"each given once, got a, a"):
        Cleaner(["a", "a"])
    with pytest.raises(ValueError, match="must be a list of names, got 'ab'"):
        Cleaner("ab")
    cleaner = Cleaner(["a"])
    with pytest.raises(ValueError, match=r"k rows of 1 values, got shapes \(2,\) and \(2, 2\)"):
        cleaner(Block(np.zeros(2), np.zeros((2, 2))))
    state = Cleaner(["b"]).state()
    wrongs = [None, {}, state] + [{**cleaner.state(), "last": last} for last in ([], [True], [1e101], ["1"], 1, "1")]
    wrongs += [{**cleaner.state(), "late_in_a_row": late} for late in (None, -1, 1.0, 1001, 2**70)]
    wrongs += [{**cleaner.state(), "time": t} for t in (True, 1e12)]
    risings = [None, 0, [], [0], [0, None], [0, 1.0, None], [1, None, None], [-1, None, None], [0, None, None, None]]
    risings += [[1, True, 1.0], [1, 1.0, 1e12], [3, 1.0, 2.0], [1.0, 1.0, 1.0]]
    wrongs += [{**cleaner.state(), "late_in_a_row": 2, "late_rising": rising} for rising in risings]
    wrongs += [{**cleaner.state(), "counters": counters} for counters in ({}, {**cleaner.counters(), "held": 0.5})]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"state|value held|time kept last|late time"):
            cleaner.restore(wrong)
    assert cleaner.state() == Cleaner(["a"]).state()
