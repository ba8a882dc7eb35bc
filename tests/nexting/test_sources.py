"""Where samples come from: files, pipes, the queue of live sources, and their cleaning. Brokers are in test_brokers."""

import csv
import gzip
import io
import json
import math
import os
import random
import subprocess
import sys
import threading
import time
import zlib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueonline.nexting import arm
from trueonline.nexting.sources import Arm, Block, Cleaner, Paced, ParquetFile, Pipe, TextFile, open_source, pacing
from trueonline.nexting.sources.gzip_file import Gunzipped
from trueonline.nexting.sources.lines import CHUNK, LIMIT, PAST
from trueonline.nexting.sources.positions import skipping
from trueonline.nexting.sources.ring import Ring
from trueonline.nexting.sources.sample import ROWS, Clock, shown
from trueonline.nexting.sources.text import Text

NAN, INF = float("nan"), float("inf")
PATIENCE = 30.0  # seconds after which something that should have come is taken to be lost


def joined(source, signals=None):
    """All that a source gives, as one block."""
    with source:
        blocks = list(source)
    assert all(0 < len(block) <= ROWS for block in blocks)
    return together(blocks, len(signals or source.signals))


def together(blocks, signals):
    times = np.concatenate([np.empty(0), *(block.times for block in blocks)])
    return times, np.concatenate([np.empty((0, signals)), *(block.values for block in blocks)])


def wait_for(source, samples):
    """As many samples of a live source."""
    blocks, end = [], time.monotonic() + PATIENCE
    while sum(map(len, blocks)) < samples:
        assert time.monotonic() < end, f"{sum(map(len, blocks))} of {samples} samples came; {source.counters()}"
        block = source.read(0.2)
        assert block is not None
        blocks.append(block)
    return together(blocks, len(source.signals))


def text_of(times, values, names=("time", "a", "b"), end="\n"):
    rows = [",".join(names)]
    rows += [",".join(map(repr, [float(t), *map(float, row)])) for t, row in zip(times, values, strict=True)]
    return "".join(row + end for row in rows)


def some(n, seed=0, signals=2):
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.random(n)), rng.standard_normal((n, signals))


# --- Cleaning -------------------------------------------------------------------------------------


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


def test_one_time_from_the_future_does_not_end_a_stream():
    for rate, lost in ((0.1, 10), (1.0, 12), (40.0, 402), (1000.0, 1000)):  # the first is at 0 s, the last after 10 s
        times = np.arange(3000.0) / rate
        times[100] = 1e10
        cleaner = Cleaner(["a"])
        clean = [cleaner(Block(times[i : i + 1], np.ones((1, 1)))) for i in range(3000)]
        kept, starts = (np.concatenate([getattr(each, name) for each in clean]) for name in ("times", "starts"))
        assert kept.tolist() == [*times[:101], *times[101 + lost :]]
        assert np.flatnonzero(starts).tolist() == [0, 101]
        assert (cleaner.counters()["dropped_late"], cleaner.counters()["clock_set_back"]) == (lost, 1)
        assert cleaner.dropped == lost


def test_what_comes_again_or_in_the_wrong_order_is_late_and_no_clock_was_set_back():
    rng = np.random.default_rng(4)
    burst = np.arange(899, 999) / 10  # ten seconds, less a tenth, once more
    shuffled = rng.permutation(1000)[:900] / 10
    few = np.array([0.0, 1.0, 2.0, 3.0, 50.0, 51.0, 52.0, 53.0, 99.0])  # nine that rise, over 99 s
    times = np.concatenate([np.arange(1000) / 10, burst, [100.0], shuffled, [100.1], few, [100.2]])
    cleaner = Cleaner(["a"])
    kept = cleaner(Block(times, np.ones((len(times), 1)))).times
    assert kept.tolist() == [*(np.arange(1000) / 10), 100.0, 100.1, 100.2]
    assert cleaner.counters()["dropped_late"] == len(burst) + len(shuffled) + len(few)
    assert cleaner.counters()["clock_set_back"] == 0


def test_times_that_are_none_are_told_from_missing_values():
    cleaner = Cleaner(["a"], missing="skip")
    times = np.array([1.7e12, NAN, 1.0, 2.0, INF, -1.01e11, 3.0])  # the first is milliseconds since the epoch
    assert cleaner(Block(times, np.array([[1.0], [1.0], [NAN], [1.0], [NAN], [1.0], [1.0]]))).times.tolist() == [2.0, 3.0]
    assert (cleaner.counters()["dropped_time"], cleaner.counters()["dropped_missing"], cleaner.dropped) == (4, 1, 5)


def test_cleaning_a_long_stream_equals_the_rules():
    rng = np.random.default_rng(3)
    n = 200_000
    times = np.round(np.cumsum(rng.exponential(0.01, n)), 2) - 0.02 * (rng.random(n) < 0.1)
    values = rng.standard_normal((n, 3))
    values[rng.random(values.shape) < 0.01] = NAN
    cleaner = Cleaner(["a", "b", "c"], max_gap=0.05)
    parts = [cleaner(Block(times[i : i + ROWS], values[i : i + ROWS])) for i in range(0, n, ROWS)]
    expected, counters = cleaned(zip(times.tolist(), values.tolist(), strict=True), 3, 0.05, "hold")
    assert cleaner.counters() == counters
    rare = ("dropped_missing", "dropped_time", "clock_set_back")
    assert all(count > 100 for name, count in counters.items() if name not in rare)
    np.testing.assert_array_equal(np.concatenate([part.times for part in parts]), [t for t, _, _ in expected])
    np.testing.assert_array_equal(np.concatenate([part.values for part in parts]), [v for _, v, _ in expected])
    np.testing.assert_array_equal(np.concatenate([part.starts for part in parts]), [s for _, _, s in expected])


def test_a_missing_value_can_be_an_error_that_changes_nothing():
    cleaner = Cleaner(["a", "force"], missing="error")
    cleaner(Block(np.array([1.0]), np.array([[1.0, 2.0]])))
    state = cleaner.state()
    bad = Block(np.array([1.0, 2.0, 3.5, 4.0]), np.array([[NAN, 1.0], [1.0, 2.0], [1.0, INF], [1.0, 1.0]]))
    with pytest.raises(
        ValueError,
        match=r"signal force is missing \(inf\) in the sample of time 3\.5; with `missing` hold or skip it goes on",
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


# --- CSV ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_columns_in_any_order_under_any_separator(tmp_path, seed):
    rng = random.Random(seed)
    n = rng.choice([0, 1, 17, 9000])
    times, values = some(n, seed, signals=4)
    values[np.random.default_rng(seed).random(values.shape) < 0.1] = NAN
    names = ["force", "emg 1", "angle°", 'say "x"']
    table = {name: [NAN if math.isnan(x) else x for x in values[:, j].tolist()] for j, name in enumerate(names)}
    table |= {"time": times.tolist(), "note": [rng.choice(["", "a, b; c\td", 'so "called"', "x"]) for _ in range(n)]}
    order = rng.sample(list(table), len(table))
    separator, compressed = rng.choice(",;\t"), rng.random() < 0.5
    missing = ["", "NA", "nan", "NaN", " ", "na", "null", "N/A"]
    path = tmp_path / f"log.csv{'.gz' if compressed else ''}"
    opened = gzip.open if compressed else open
    with opened(path, "wt", newline="", encoding=rng.choice(["utf-8", "utf-8-sig"])) as file:
        writer = csv.writer(file, delimiter=separator, lineterminator=rng.choice(["\n", "\r\n"]))
        writer.writerow(order)
        for i in range(n):
            cells = (table[name][i] for name in order)
            writer.writerow([rng.choice(missing) if cell is NAN else cell for cell in cells])
    wanted = rng.sample(range(4), rng.randint(1, 4))
    source = open_source(path, [names[j] for j in wanted], time="time")
    got_times, got_values = joined(source)
    np.testing.assert_array_equal(got_times, times)
    np.testing.assert_array_equal(got_values, values[:, wanted])
    assert source.counters()["malformed"] == 0


def test_numbers_are_the_nearest_floats():
    rng = random.Random(5)
    texts = ["0", "-0", "+1", ".5", "5.", "1e5", "1E-5", "-2.5e+3", "1e400", "-1e400", "1e-400", "4.9e-324", "inf"]
    texts += ["2.2250738585072011e-308", "9007199254740993", "0." + "0" * 30 + "1", "1" * 40, "1" * 25 + ".5", "00012"]
    texts += [repr(rng.gauss(0, 1) * 10.0 ** rng.randint(-300, 300)) for _ in range(5000)]
    texts += [f"{rng.uniform(-9, 9):.18e}" for _ in range(5000)]
    texts += [f"{rng.randrange(10 ** rng.randint(1, 22))}e{rng.randint(-340, 310)}" for _ in range(5000)]
    texts += [f"{2 * rng.randrange(2**52, 2**53) + 1}" for _ in range(1000)]  # half-way between two floats
    texts += [f"{rng.randrange(1, 2**20, 2) * 5**k}e-{k}" for k in range(1, 20) for _ in range(100)]
    texts += [f"{rng.randrange(1000)}.{rng.randrange(100):02}" for _ in range(5000)]
    _, values = joined(Pipe(io.BytesIO(("x\n" + "\n".join(texts)).encode()), ["x"], rate=1))
    np.testing.assert_array_equal(values[:, 0], [float(text) for text in texts])
    assert np.signbit(values[1, 0])


def test_a_comma_is_the_decimal_point_between_semicolons():
    source = Pipe(io.BytesIO(b"time;a\n0,5;-1,25e2\n1.5;2.5\n2;1,234.5\n"), ["a"], time="time")
    times, values = joined(source)
    assert (times.tolist(), values[:, 0].tolist()) == ([0.5, 1.5], [-125.0, 2.5])
    assert source.counters()["malformed"] == 1


def test_times_in_any_form_are_seconds():
    rng = random.Random(8)
    moments, texts = [], []
    for _ in range(3000):
        zone = timezone(timedelta(minutes=rng.randint(-14 * 60, 14 * 60))) if rng.random() < 0.7 else None
        moment = datetime(1, 1, 2) + timedelta(microseconds=rng.randrange(9998 * 365 * 86400 * 10**6))
        moment = moment.replace(tzinfo=zone, microsecond=rng.choice([0, 250000, moment.microsecond]))
        text = moment.isoformat(rng.choice(["T", " "]))
        moments.append(moment.replace(tzinfo=zone or UTC))
        texts.append(rng.choice([text, text.replace("+00:00", "Z"), text.replace(".", ",") if zone is None else text]))
    texts += ["2024-02-29", "20240229T120000Z", "2024-02-29T12:00", "2024-02-29T12:00+0530", "1709208000.5", "1e9"]
    instants = [moment.timestamp() for moment in moments]
    instants += [1709164800.0, 1709208000.0, 1709208000.0, 1709188200.0, 1709208000.5, 1e9]
    bad = ["2023-02-29T12:00:00", "2024-13-01T00:00", "2024-01-01T24:00:01", "12:00", "soon", "", "nan", "inf", "1e400"]
    bad += [
        "2024-01-01T00:00:00.",
        "2024-01-01T00:00:00+99:00",
        "2024-01-01T00:60:00",
        "2024-01-01T00:00:61",
        "0000-01-01T00:00",
    ]
    lines = "time;x\n" + "\n".join(f'"{text}";1' for text in texts + bad)
    source = Pipe(io.BytesIO(lines.encode()), ["x"], time="time")
    times, _ = joined(source)
    np.testing.assert_array_equal(times, instants)
    assert source.counters()["malformed"] == len(bad)
    for unit, text in (("s", "1700000000.125"), ("ms", "1700000000125"), ("us", "1700000000125000")):
        for line in (f"t,x\n{text},1\n", f'{{"t": {text}, "x": 1}}\n', f'{{"t": "{text}", "x": 1}}\n'):
            times, _ = joined(Pipe(io.BytesIO(line.encode()), ["x"], time="t", time_unit=unit))
            assert times.tolist() == [1700000000.125]


def test_times_made_from_the_rate_go_on_where_rows_cannot_be_read():
    for text in (b"x\n1\n\noops\n3\n1,2\n5\n", b'{"x":1}\n\noops\n{"x":3}\n[]\n{"x":5}\n'):
        source = Pipe(io.BytesIO(text), ["x"], rate=4)
        times, values = joined(source)
        assert (times.tolist(), values[:, 0].tolist()) == ([0.0, 0.5, 1.0], [1.0, 3.0, 5.0])
        assert source.counters()["malformed"] == 2


def test_malformed_rows_are_counted_and_skipped():
    good = b"1,2,3\n"
    bad = [b"1,2\n", b"1,2,3,4\n", b"1,2,3,\n", b"1\n", b"a,2,3\n", b"1,2,0x10\n", b",2,3\n", b"1,2,1_0\n", b"1,2,--3\n"]
    bad += [
        b"1,2,3e\n",
        b"1,2,+\n",
        b"1,2,.\n",
        b"1,2,1.2.3\n",
        b"1,2,True\n",
        b'1,"2,3\n',
        b"\xff\xfe\n",
        b"1,2,\xd9\xa3\n",
    ]
    bad += [b"\x00\x00,1,2\n", b"1," + b"2" * LIMIT + b",3\n", b"1,2,3" + b" " * (2 * LIMIT) + b"\n"]
    text = b"time,note,a\n" + b"".join(good + line for line in bad) + b"\n  \n\r\n" + good
    for chunk in (len(text), CHUNK):
        source = Text("it", ("a",), Clock("time"))
        values = []
        for at in range(0, len(text), chunk):
            source.feed(text[at : at + chunk])
            while (block := source.take()) is not None:
                values += block.values[:, 0].tolist()
                assert source.past() == text[: source.position()["offset"]][-PAST:]
        assert values == [3.0] * (len(bad) + 1)
        assert source.malformed == len(bad)
        assert source.row == 2 * len(bad) + 1


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_how_the_bytes_arrive_makes_no_difference(data):
    pieces = st.sampled_from(
        [b"1,2,3\n", b"4,,5\r\n", b"\n", b'"6",x,NA\n', b"7,8\n", b"9", b",", b'"', b"0.5,1,-2\n", b"\r"]
    )
    objects = st.sampled_from([b'{"t":1,"a":2}\n', b"{}\n", b'{"t":3', b"}\n", b',"a":null}\n', b"\n", b"[1]\n"])
    if data.draw(st.booleans()):
        text = b"t,note,a\n" + b"".join(data.draw(st.lists(pieces, max_size=25)))
    else:
        text = b'{"t":0,"a":0}\n' + b"".join(data.draw(st.lists(objects, max_size=25)))

    def read(cuts):
        source, blocks = Text("it", ("a",), Clock("t")), []
        for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True):
            source.feed(text[a:b])
            while (block := source.take()) is not None:
                blocks.append(block)
        source.finish()
        while (block := source.take()) is not None:
            blocks.append(block)
        times, values = together(blocks, 1)
        assert source.past() == text[: source.position()["offset"]][-PAST:]
        return times.tolist(), str(values.tolist()), source.position()

    whole = read([])
    assert read(sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))) == whole
    assert whole[2]["offset"] <= len(text)


def test_what_a_text_file_refuses(tmp_path):
    path = tmp_path / "x.csv"
    for content, signals, options, message in [
        ("a,b\n1,2\n", ["c", "a", "d"], {}, r"x\.csv has no column c, d; it has a, b"),
        ("a;b\n1;2\n", ["c"], {}, r"has no column c; it has a, b"),
        ("1,2\n3,4\n", ["a"], {}, r"has no column a; it has 1, 2 \(the first line must name them\)"),
        ("a,b,a\n1,2,3\n", ["a"], {}, "has the column a more than once"),
        ("", ["a"], {}, r"x\.csv is empty; its first line must name the columns"),
        ("\n\n", ["a"], {}, "is empty"),
        ("a,b\n", ["a"], {"rate": None, "time": "t"}, "has no column t; it has a, b"),
        ("a,b\n", ["a"], {"rate": None}, "give the rate, in samples per second, or the column with the times"),
        ("a,b\n", ["a"], {"rate": -1}, "rate must be a finite number > 0, got -1"),
        ("a,b\n", ["a"], {"time_unit": "min"}, "time_unit must be one of s, ms, us, ns, got 'min'"),
        ("a,b\n", ["a"], {"time": "a"}, "a is the time of the samples, so it cannot be one of the signals a"),
        ("a,b\n", [], {}, "at least one name"),
        ("a,b\n", "a", {}, "must be a list of names"),
        ("x" * (LIMIT + 1), ["a"], {}, "must name the columns, but it is longer than 1 MiB"),
        ('"' + "x" * 200_000 + '"\n', ["a"], {}, "must name the columns, but it is not CSV"),
    ]:
        path.write_text(content)
        with pytest.raises(ValueError, match=message):
            open_source(path, signals, **{"rate": 1.0, **options})
    path.write_text("a,b\n1,2\n", encoding="utf-16")
    with pytest.raises(ValueError, match="is UTF-16; save it as UTF-8"):
        open_source(path, ["a"], rate=1)
    (tmp_path / "folder.pq").mkdir()
    for opened in (open_source, Pipe):
        for name in ("none.csv", "none.parquet"):
            with pytest.raises(ValueError, match=rf"there is no file .*{name}; check its name"):
                opened(tmp_path / name, ["a"], rate=1)
        for folder in (tmp_path, tmp_path / "folder.pq"):
            with pytest.raises(ValueError, match=rf"{folder} is a folder; give a file in it"):
                opened(folder, ["a"], rate=1)
    with pytest.raises(ValueError, match=r"there is no file"):
        open_source(tmp_path / "none.csv", ["a"], rate=1, follow=True)
    for spec, message in [("http://x/y", "begin with mqtt://, lsl:// or arm://"), ("", "must be a path")]:
        with pytest.raises(ValueError, match=message):
            open_source(spec, ["a"], rate=1)
    for spec in ("-", "mqtt://x/y", "lsl://x", "x.parquet", "arm"):
        with pytest.raises(ValueError, match="follow is for text files that grow"):
            open_source(spec, ["a"], rate=1, follow=True)
    for spec in ("-", "mqtt://x/y", "lsl://x"):
        with pytest.raises(ValueError, match="pace is for files and the arm"):
            open_source(spec, ["a"], rate=1, pace=1.0)
    with pytest.raises(ValueError, match="pace must be a finite number > 0, got 0"):
        open_source("arm", ["force"], pace=0)


# --- Positions ------------------------------------------------------------------------------------


def written(path, times, values):
    """The same samples in the form that a path asks for, with some rows that cannot be read."""
    if path.suffix == ".parquet":
        stamps = pa.array([None if i % 1000 == 7 else t for i, t in enumerate(times.tolist())], pa.float64())
        table = pa.table({"b": values[:, 1], "time": stamps, "a": values[:, 0]})
        pq.write_table(table, path, row_group_size=5000)
    elif path.suffix == ".jsonl":
        with open(path, "w") as file:
            for i, (t, (a, b)) in enumerate(zip(times.tolist(), values.tolist(), strict=True)):
                file.write("oops\n" if i % 1000 == 7 else json.dumps({"b": b, "time": t, "a": a}) + "\n")
    else:
        lines = text_of(times, values).splitlines(keepends=True)
        lines[8::1000] = ["oops\n"] * len(lines[8::1000])
        with gzip.open(path, "wt", compresslevel=1) if path.suffix == ".gz" else open(path, "w") as file:
            file.writelines(lines)
    kept = np.arange(len(times)) % 1000 != 7
    return times[kept], values[kept]


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.jsonl", "log.parquet"])
@pytest.mark.parametrize("clock", [{"time": "time"}, {"rate": 40.0}])
def test_reading_in_two_goes_equals_reading_in_one(tmp_path, name, clock):
    path = tmp_path / name
    times, values = some(15_000)
    times, values = written(path, times, values)
    once = open_source(path, ["a", "b"], **clock)
    assert once.replayable
    whole_times, whole_values = joined(once)
    if "time" in clock:
        np.testing.assert_array_equal(whole_times, times)
        np.testing.assert_array_equal(whole_values, values)
    elif name != "log.parquet":  # where a row is whole without its time
        np.testing.assert_array_equal(whole_times, np.flatnonzero(np.arange(15_000) % 1000 != 7) / 40)
    n_blocks = math.ceil(len(whole_times) / ROWS)
    for goes in range(n_blocks + 2):
        with open_source(path, ["a", "b"], **clock) as first:
            blocks = [block for _, block in zip(range(goes), first, strict=False)]
            position = json.loads(json.dumps(first.position()))
        with open_source(path, ["a", "b"], **clock) as second:
            next(second)  # wherever it was
            second.seek(position)
            blocks += list(second)
            assert second.counters() == once.counters()
            assert second.position() == once.position()
        got_times, got_values = together(blocks, 2)
        np.testing.assert_array_equal(got_times, whole_times)
        np.testing.assert_array_equal(got_values, whole_values)


def test_positions_of_another_file_are_refused_and_change_nothing(tmp_path):
    path, other, short = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"
    times, values = some(10_000)
    path.write_text(text_of(times, values))
    other.write_text(text_of(times, values, ("time", "b", "a")))
    short.write_text(text_of(times[:100], values[:100]))
    table = tmp_path / "t.parquet"
    pq.write_table(pa.table({"time": times[:10], "a": times[:10]}), table)
    with TextFile(path, ["a"], time="time") as source:
        first = next(source)
        position = source.position()
        shifted = {**position, "offset": position["offset"] - 3}
        table_position = {"kind": "parquet", "row": 1, "malformed": 0, "skip": 0, "hash": {}}
        for each, where, message in [
            (other, position, "has other columns than when the position was taken"),
            (short, position, "is shorter than what was read of it"),
            (path, shifted, "is not the file that was read, or was changed: what comes before byte"),
            (path, {**position, "hash": None}, "is not the file that was read"),
            (path, {**position, "skip": None}, "the position is damaged: skip must be a whole number, got None"),
            (path, {**position, "row": -1}, "the position is damaged: row must be a whole number, got -1"),
            (path, {**position, "offset": True}, "the position is damaged: offset"),
            (path, table_position, "not a position in a source of the kind text"),
            (path, None, "not a position in a source of the kind text"),
        ]:
            with TextFile(each, ["a"], time="time") as reader:
                reader.read()
                before = reader.position()
                with pytest.raises(ValueError, match=message):
                    reader.seek(where)
                assert reader.position() == before
    with TextFile(path, ["a"], time="time") as reader:
        reader.read()
        with pytest.raises(ValueError, match="damaged"):
            reader.seek({**position, "offset": "x"})
        second = next(reader)
        assert second.times[0] == times[len(first)]
    with ParquetFile(table, ["a"], time="time") as reader:
        with pytest.raises(ValueError, match="has 10 rows, fewer than the 11 that were read"):
            reader.seek({**table_position, "row": 11})
        with pytest.raises(ValueError, match="the position is damaged: hash must hold a hash for each column, got None"):
            reader.seek({**table_position, "hash": None})
        assert len(next(reader)) == 10


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.jsonl", "log.parquet"])
@pytest.mark.parametrize("clock", [{"time": "time"}, {"rate": 40.0}])
def test_a_position_tells_a_file_that_grew_from_one_that_was_replaced(tmp_path, name, clock):
    path = tmp_path / name
    times, values = some(12_000)
    written(path, times[:9000], values[:9000])
    with open_source(path, ["a", "b"], **clock) as source:
        before = [next(source), next(source)]
        position = json.loads(json.dumps(source.position()))
    written(path, times, values)
    with open_source(path, ["b", "a"], **clock) as source:
        source.seek(position)  # other columns may be asked for
        assert source.position() == position
        _, rest = together(list(source), 2)
    _, whole = joined(open_source(path, ["a", "b"], **clock))
    np.testing.assert_array_equal(np.concatenate([*(block.values for block in before), rest[:, ::-1]]), whole)
    read = int(times.searchsorted(before[-1].times[-1])) if "time" in clock else round(before[-1].times[-1] * 40.0)
    changed = values.copy()
    changed[read - 1, 0] += 1.0
    other_times, other = some(12_000, seed=1)
    for t, v in ((times, changed), (other_times, other)):
        written(path, t, v)
        with open_source(path, ["a", "b"], **clock) as source:
            first = source.position()
            with pytest.raises(ValueError, match=r"is not the file that was read, or was changed"):
                source.seek(position)
            assert source.position() == first


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.jsonl", "log.parquet"])
@pytest.mark.parametrize("clock", [{"time": "time"}, {"rate": 40.0}])
@pytest.mark.parametrize("begun", [0, 1])
def test_a_position_within_a_block_tells_too(tmp_path, name, clock, begun):
    path = tmp_path / name
    times, values = some(9000)

    def opened(signals=("a", "b")):
        return open_source(path, list(signals), **clock)

    def row_of(k):
        """The number of the row of a sample of the block."""
        return int(times.searchsorted(block.times[k])) if "time" in clock else round(block.times[k] * 40.0)

    written(path, times[:8500], values[:8500])
    with opened() as source:
        for _ in range(begun):
            next(source)
        before = source.position()
        block = next(source)
    used, some_of_it = len(block) // 2, len(block) // 5
    first, second = skipping(before, block, some_of_it), skipping(before, block, used)
    rest = Block(block.times[some_of_it:], block.values[some_of_it:])
    assert skipping(first, rest, used - some_of_it) == second  # in one go or in two
    position = json.loads(json.dumps(second))
    assert (position["skip"], position["skipped"]["times"] > 0) == (used, True)
    written(path, times, values)  # it grew
    with opened() as source:
        source.seek(position)
        assert source.position() == position
        again = next(source)
        np.testing.assert_array_equal(again.times[:50], block.times[used : used + 50])
        np.testing.assert_array_equal(again.values[:50], block.values[used : used + 50])
        assert source.position()["skip"] == 0
        assert sum(map(len, source)) + len(again) > len(block) - used
    with opened(("c", "b")[1:]) as source:  # other columns may be asked for
        source.seek(position)
        np.testing.assert_array_equal(next(source).values[:50, 0], block.values[used : used + 50, 1])
    row = row_of(used // 2)
    for column, what in ((0, "a are"), (1, "b are")):
        changed = values.copy()
        changed[row, column] += 1.0
        written(path, times, changed)
        with opened() as source:
            at = next(source) and source.position()
            with pytest.raises(ValueError, match=rf"not the file .* of the [0-9,]+ samples .* {what} not .* --fresh"):
                source.seek(position)
            assert source.position() == at
            following = next(source)
            assert len(following) > 0
    other_times, other = some(9000, seed=1)
    size = row_of(used - 1)
    for t, v in ((times[:size], values[:size]), (other_times[:1], other[:1]), (other_times, other)):
        written(path, t, v)
        with opened() as source:
            at = source.position()
            with pytest.raises(ValueError, match=r"(shorter than|fewer than|is not the file) .*begin anew .*--fresh"):
                source.seek(position)
            assert source.position() == at
    written(path, times, values)
    with opened() as source:
        for wrong in (None, {}, {"times": 1}, {"times": -1, "values": {}}, {"times": 1, "values": {"a": True}}):
            with pytest.raises(ValueError, match="the position is damaged: skipped must hold a checksum for each signal"):
                source.seek({**position, "skipped": wrong})
        assert source.position()["skip"] == 0


def test_a_position_is_within_its_block_or_refused():
    block = Block(np.arange(3.0), np.zeros((3, 1)))
    position = {"kind": "arm", "seed": 0, "row": 7, "skip": 2}
    assert skipping(position, block, 3) == {**position, "skip": 5}  # the arm needs no checksums
    for rows in (-1, 4):
        with pytest.raises(ValueError, match=f"from 0 to the 3 of the block, got {rows}"):
            skipping(position, block, rows)


def test_a_position_of_the_pace_in_a_file_that_was_replaced_is_refused(tmp_path, monkeypatch):
    path, hands = tmp_path / "log.csv", Hands(monkeypatch)
    times, values = some(3000)
    path.write_text(text_of(times, values))
    with hands.drive(open_source(path, ["a"], time="time", pace=1.0)) as source:
        for _ in range(20):
            hands.now += 10.0
            source.read()
        position = source.position()
    assert 100 < position["skip"] < 3000
    path.write_text(text_of(times[: position["skip"] - 1], values[: position["skip"] - 1]))
    with open_source(path, ["a"], time="time", pace=1.0) as source:
        with pytest.raises(ValueError, match="is shorter than what was read of it: of "):
            source.seek(position)
        assert source.position()["skip"] == 0


# --- Files that are cut, or grow ------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(0, 40, 3))
def test_a_file_cut_in_mid_line_gives_its_whole_rows(tmp_path, cut):
    times, values = some(50)
    text = text_of(times, values)
    path = tmp_path / "log.csv"
    path.write_text(text[: len(text) - cut])
    lines = text[: len(text) - cut].split("\n")[1:]
    all_cells = [line.split(",") for line in lines if line.count(",") == 2 and not line.endswith(",")]
    for whole_lines, expected in ((True, [line.split(",") for line in lines[:-1]]), (False, all_cells)):
        source = open_source(path, ["a", "b"], time="time", whole_lines=whole_lines)
        got_times, got_values = joined(source)
        assert len(got_times) >= 48
        np.testing.assert_array_equal(np.column_stack([got_times, got_values]), np.array(expected, float))
        assert source.counters()["unterminated"] == (lines[-1] != "")
    with open_source(path, ["a", "b"], time="time", whole_lines=True) as source:
        blocks = list(source)
        position = source.position()
    path.write_text(text)
    with open_source(path, ["a", "b"], time="time") as source:
        source.seek(position)
        got_times, got_values = together([*blocks, *source], 2)
        assert source.counters() == {"malformed": 0, "unterminated": 0, "truncated": 0, "replaced": 0}
    np.testing.assert_array_equal(got_times, times)
    np.testing.assert_array_equal(got_values, values)


def test_a_row_without_a_line_break_is_read_once_even_if_the_rest_of_it_comes_later(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,a\n1,1\n2,2")
    for rest, expected, malformed in (
        ("", [], 0),
        ("\n3,3\n", [3.0], 0),
        ("\r\n3,3", [3.0], 0),
        ("5,9\n3,3\n", [3.0], 1),
    ):
        path.write_text("time,a\n1,1\n2,2")
        with open_source(path, ["a"], time="time") as source:
            assert [t for block in source for t in block.times] == [1.0, 2.0]
            position = source.position()
        with open(path, "a", newline="") as file:
            file.write(rest)
        with open_source(path, ["a"], time="time") as source:
            source.seek(position)
            assert [t for block in source for t in block.times] == expected
            assert source.counters()["malformed"] == malformed


def test_a_file_cut_short_while_it_is_read_ends_with_a_whole_row(tmp_path):
    times, values = some(40_000)
    path = tmp_path / "log.csv"
    path.write_text(text_of(times, values))
    with TextFile(path, ["a", "b"], time="time") as source:
        blocks = [next(source)]
        os.truncate(path, 100_000)
        blocks += list(source)
        got_times, got_values = together(blocks, 2)
        np.testing.assert_array_equal(got_times, times[: len(got_times)])
        np.testing.assert_array_equal(got_values, values[: len(got_times)])
        assert len(got_times) >= ROWS
        assert source.counters() == {"malformed": 0, "unterminated": 0, "truncated": 1, "replaced": 0}


def test_a_compressed_file_that_breaks_off_gives_its_whole_rows(tmp_path):
    times, values = some(20_000)
    path = tmp_path / "log.csv.gz"
    whole = gzip.compress(text_of(times, values).encode())
    path.write_bytes(whole[: len(whole) // 2])
    source = open_source(path, ["b", "a"], time="time")
    got_times, got_values = joined(source)
    assert 5000 < len(got_times) < 15_000
    np.testing.assert_array_equal(got_times, times[: len(got_times)])
    np.testing.assert_array_equal(got_values, values[: len(got_times), ::-1])
    assert source.counters()["truncated"] == 1
    path.write_bytes(whole[:1000] + bytes(range(256)) + whole[1256:])
    with pytest.raises(ValueError, match=r"log\.csv\.gz is damaged"):
        joined(open_source(path, ["a"], time="time"))


@pytest.mark.parametrize("members", [1, 3])
def test_of_a_compressed_file_that_breaks_off_nothing_is_lost(tmp_path, members):
    times, values = some(3000)
    text = text_of(times, values).encode()
    parts = [text[i * len(text) // members : (i + 1) * len(text) // members] for i in range(members)]
    whole = (b"\0" * 7).join(map(gzip.compress, parts)) + b"\0" * 5
    path, rng = tmp_path / "log.csv.gz", random.Random(members)
    for size in [1, 10, 11, 100, *(rng.randrange(len(whole)) for _ in range(12)), len(whole) - 13, len(whole)]:
        path.write_bytes(whole[:size])
        out, rest = b"", whole[:size]  # all that zlib makes of it, a byte at a time
        while rest:
            one = zlib.decompressobj(31)
            for i in range(len(rest)):
                out += one.decompress(rest[i : i + 1])
                if one.eof:
                    break
            ended, rest = one.eof, rest[i + 1 :].lstrip(b"\0") if one.eof else b""
        file = Gunzipped(path)
        chunks = [file.read(1000)]
        while chunks[-1]:
            assert len(chunks[-1]) == 1000 or not file.read(1)
            chunks.append(file.read(1000))
        assert b"".join(chunks) == out
        assert file.cut != ended
        for at in (len(out) // 2, 0, len(out) // 3, len(out) + 5):
            file.seek(at)
            assert file.read(77) == out[at : at + 77]
        file.close()
        assert file.closed
        if b"\n" not in out:
            continue
        source = open_source(path, ["a", "b"], time="time")
        got_times, got_values = joined(source)
        lines = out[: out.rindex(b"\n")].split(b"\n")[1:] if file.cut else out.split(b"\n")[1:]
        rows = [line.split(b",") for line in lines if line.count(b",") == 2 and not line.endswith(b",")]
        np.testing.assert_array_equal(np.column_stack([got_times, got_values]), np.array(rows, float).reshape(-1, 3))
        assert source.counters()["truncated"] == file.cut


def test_what_follows_a_compressed_file_and_is_none_is_damage_after_all_that_was_good(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"time,a\n1,2\n") + b"garbage")
    with open_source(path, ["a"], time="time") as source:
        assert source.read().times.tolist() == [1.0]
        with pytest.raises(ValueError, match=r"log\.csv\.gz is damaged, after 11 bytes: .*incorrect header"):
            source.read()


def test_a_growing_file_is_followed_line_by_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("")
    times, values = some(5000)
    text = text_of(times, values).encode()
    rng = random.Random(2)

    def write():
        at = 0
        with open(path, "ab", buffering=0) as file:
            while at < len(text):
                step = rng.randrange(1, 4000)
                file.write(text[at : at + step])
                at += step
                time.sleep(0.001)

    writer = threading.Thread(target=write)
    with TextFile(path, ["a", "b"], time="time", follow=True) as source:
        empty = source.read(0.05)  # there is no header yet
        assert empty is not None
        assert len(empty) == 0
        writer.start()
        got_times, got_values = wait_for(source, len(times))
        writer.join()
        np.testing.assert_array_equal(got_times, times)
        np.testing.assert_array_equal(got_values, values)
        position = source.position()
        with open(path, "a") as file:
            file.write("1e9,1,")
        assert len(source.read(0.05)) == 0
        with open(path, "a") as file:
            file.write("2\n")
        assert wait_for(source, 1)[1].tolist() == [[1.0, 2.0]]
        assert source.counters() == {"malformed": 0, "unterminated": 0, "truncated": 0, "replaced": 0}
    assert source.read() is None
    with TextFile(path, ["b"], time="time", follow=True) as source:
        source.seek(position)
        assert wait_for(source, 1)[1].tolist() == [[2.0]]


def test_a_followed_file_may_be_emptied_or_replaced(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,a\n1,1\n2,2\n")
    with TextFile(path, ["a"], time="time", follow=True) as source:
        assert wait_for(source, 2)[0].tolist() == [1.0, 2.0]
        path.write_text("a,time\n")  # shorter: the same file, emptied and begun anew, with other columns
        assert len(source.read(0.1)) == 0
        with open(path, "a") as file:
            file.write("30,3\n")
        assert [part.tolist() for part in wait_for(source, 1)] == [[3.0], [[30.0]]]
        with open(path, "a") as file:
            file.write("40,4\n50")  # the last line never becomes whole
        path.rename(tmp_path / "log.1")
        path.write_text("time;a\n6;60\n")
        assert [part.tolist() for part in wait_for(source, 2)] == [[4.0, 6.0], [[40.0], [60.0]]]
        assert source.counters() == {"malformed": 1, "unterminated": 0, "truncated": 1, "replaced": 1}


def test_closing_ends_a_source_that_waits(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a\n")
    end, begin = os.pipe()
    with open(end, "rb") as stream, open(begin, "wb"):
        for source in (TextFile(path, ["a"], rate=1, follow=True), Pipe(stream, ["a"], rate=1)):
            answers = []
            reader = threading.Thread(target=lambda source=source, answers=answers: answers.append(source.read()))
            reader.start()
            source.close()
            reader.join(PATIENCE)
            assert answers == [None]


def test_a_followed_file_that_is_cut_in_mid_line_is_read_again_from_its_beginning(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,a\n1,10\n2,20\n3,30\n")
    with TextFile(path, ["a"], time="time", follow=True) as source:
        cleaner = Cleaner(["a"])
        assert len(cleaner(source.read(PATIENCE))) == 3
        os.truncate(path, len("time,a\n1,10\n2,2"))
        assert wait_for(source, 1)[0].tolist() == [1.0]
        with open(path, "a") as file:
            file.write("5\n4,40\n")
        times, values = wait_for(source, 2)
        assert (times.tolist(), values[:, 0].tolist()) == ([2.0, 4.0], [25.0, 40.0])
        clean = cleaner(Block(np.array([1.0, *times]), np.array([[10.0], *values])))
        assert clean.times.tolist() == [4.0]  # what had been seen is late now
        assert source.counters() == {"malformed": 0, "unterminated": 0, "truncated": 1, "replaced": 0}


def test_files_without_a_row_give_nothing(tmp_path):
    path = tmp_path / "log"
    for content in (b"time,a\n", b"time,a", b"\n\ntime;a\r\n\r\n", gzip.compress(b"a\ttime\n")):
        path.write_bytes(content)
        source = open_source(path, ["a"], time="time")
        assert joined(source)[0].size == 0
        assert source.counters()["malformed"] == 0
    for content in (b"", gzip.compress(b""), gzip.compress(b"time,a\n1,2\n")[:5], b"\x1f\x8b"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is empty; its first line must name the columns"):
            open_source(path, ["a"], time="time")
    table = tmp_path / "log.parquet"
    pq.write_table(pa.table({"time": pa.array([], pa.float64()), "a": pa.array([], pa.float64())}), table)
    with open_source(table, ["a"], time="time") as source:
        assert source.read() is None
        source.seek(source.position())
        assert source.read() is None


def test_json_lines_that_say_strange_things(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [
        (b'{"time": 1, "a": NaN}', NAN),
        (b'{"time": 2, "a": Infinity}', INF),
        (b'{"time": 3, "a": -1e999}', -INF),
        (b'{"time": 4, "a": 1e-999}', 0.0),
        (b'{"time": NaN, "a": 1}', None),
        (b'{"time": Infinity, "a": 1}', None),
        (b'{"time": 1e999, "a": 1}', None),
        (b'{"time": 5, "a": 1, "a": 2, "b": {"a": 3}}', 2.0),  # as everywhere in Python, the last one counts
        (b'{"time": 6, "a": ' + b"[" * 5000 + b"]" * 5000 + b"}", None),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, None),
        (b'{"time": 7, "a": "\xff"}', None),
        (b'{"time": 8, "a": 1e1000000000}', INF),
        (b'{"time": 9, "a": ' + b"1" * 400 + b"}", None),
        (b'{"time": 10, "a": "1e100"}', 1e100),
        (b'{"time": 11, "a": 1}, {}', None),
        (b'{"time": 12, "a": 1, "b": "' + b"x" * LIMIT + b'"}', None),
    ]
    path.write_bytes(b"".join(line + b"\n" for line, _ in lines))
    source = open_source(path, ["a"], time="time")
    _, values = joined(source)
    np.testing.assert_array_equal(values[:, 0], [value for _, value in lines if value is not None])
    assert source.counters()["malformed"] == sum(value is None for _, value in lines)


def test_a_header_that_is_not_utf_8_hides_its_own_columns_only(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes("time,größe,a\n1,2,3\n".encode("latin-1"))
    assert joined(open_source(path, ["a"], time="time"))[1].tolist() == [[3.0]]
    with pytest.raises(ValueError, match=r"has no column größe; it has time, gr��e, a"):
        open_source(path, ["größe"], time="time")


# --- What there is to complain about --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("time,a,b\n1,2,3\n\n2,,\n", None),
        ("time,a,b\n1,2,3\n4,5\n6\n", "a row has 2 cells, and the first line has 3: 4,5"),
        ("time,a,b\n1\n4,5\n", "a row has 1 cell, and the first line has 3: 1"),
        ("time,a,b\n1,2,3\n,5,6\n6\n", "the time in column time is missing or not finite: ,5,6"),
        ("time,a,b\n1,oops,3\n", "a: 'oops' is not a number"),
        ("time,a,b\nsoon,1,3\n", "time: 'soon' is not a time"),
        ("time;a;b\n1;2;3;4" + "x" * 300 + "\n", "a row has 4 cells, and the first line has 3: 1;2;3;4" + "x" * 92 + "…"),
        ("time,a,b\n1,2," + "3" * LIMIT + "\n", "a line is longer than 1 MiB: " + "1,2," + "3" * 95 + "…"),
        ('{"time": 1, "a": 2, "b": 3}\n', None),
        ('{"time": 1, "a": 2}\n{"time": 2, "b": 3}\n', None),
        ('{"time": 1, "grip": 2, "emg": 3}\n', 'no key a, b; it has time, grip, emg: {"time": 1, "grip": 2, "emg": 3}'),
        ('{"time": 1, "a": 2, "emg": 3}\n', "no key b so far; it has time, a, emg"),
        ('{"a": 1, "b": 2}\n', 'no time under the key time; it has a, b: {"a": 1, "b": 2}'),
        ('{"time": 1, "a": true, "b": 2}\n', 'a: true or false is not a number: {"time": 1, "a": true, "b": 2}'),
        ('{"time": "soon", "a": 1, "b": 2}\n', '\'soon\' is not a time: {"time": "soon", "a": 1, "b": 2}'),
        (
            '{"time": 1e999, "a": 1, "b": 2}\n',
            'the time under the key time is not finite: {"time": 1e999, "a": 1, "b": 2}',
        ),
        (
            "{oops\n",
            "it is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1)): {oops",
        ),
        ('{"time": 1, "a": 1, "b": 1}\n[7]\n', "it must be an object, and is an array: [7]"),
        ('{"time": 1, "a": 1, "b": 1}\n7\n', "it must be an object, and is a number: 7"),
    ],
)
def test_the_first_thing_that_is_malformed_is_told(tmp_path, text, complaint):
    path = tmp_path / "log"
    path.write_text(text)
    sources = [open_source(path, ["a", "b"], time="time"), open_source(path, ["a", "b"], time="time", pace=1e9)]
    sources.append(Pipe(io.BytesIO(text.encode()), ["a", "b"], time="time"))
    for source in sources:
        joined(source)
        got = source.complaint()
        if len(text) > LIMIT and got is not None:  # of a line too long to be kept, any part is shown
            got, complaint = got.partition(": ")[0], complaint.partition(": ")[0]
        assert got == complaint


def test_a_parquet_file_and_a_file_that_was_cut_complain_too(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"time": ["1", "soon", None], "a": [1.0, 2.0, 3.0]}), path)
    source = open_source(path, ["a"], time="time")
    assert source.complaint() is None
    joined(source)
    assert source.complaint() == "row 1 has no time: in column time is soon"
    assert source.counters()["malformed"] == 2
    path = tmp_path / "log.csv"
    path.write_text("time,a\n1,1\n2,")
    with TextFile(path, ["a"], time="time", follow=True) as followed:
        wait_for(followed, 1)
        path.write_text("time,a\n")
        assert len(followed.read(0.1)) == 0
        assert followed.complaint() == "a line broke off when the file was cut or replaced: 2,"
    assert Arm(0, ["force"]).complaint() is None


def test_what_is_shown_is_one_short_line():
    assert shown(b" a\nb\xff\x00c ") == "a b\ufffd c"
    assert shown("x" * 101) == "x" * 99 + "…"
    assert shown("x" * 100) == "x" * 100
    assert shown({"a": [1]}) == "{'a': [1]}"


# --- The simulated arm, and the pace of recordings ------------------------------------------------


def first_of(source, samples):
    """As many samples, and whatever else is in the last block."""
    blocks = []
    while sum(map(len, blocks)) < samples:
        blocks.append(source.read())
    return together(blocks, len(source.signals))


def test_the_arm_is_a_source():
    for spec, seed in (("arm", 0), ("arm://", 0), ("arm://7", 7)):
        with open_source(spec, ["force", "position"]) as source:
            assert source.replayable
            times, values = first_of(source, 5000)
            expected = arm.simulate(len(times), seed)
            np.testing.assert_array_equal(values, expected[:, [arm.NAMES.index("force"), arm.NAMES.index("position")]])
            np.testing.assert_array_equal(times, np.arange(len(times)) / 40)
            position = json.loads(json.dumps(source.position()))
            assert position == {"kind": "arm", "seed": seed, "row": len(times), "skip": 0}
            further = next(source)
            source.seek({**position, "row": 40, "skip": 60})
            assert source.position() == {**position, "row": 100}
            np.testing.assert_array_equal(next(source).values[:1000], values[100:1100])
            source.seek(position)
            while not len(again := source.read(0.0)):  # whose time may be over before it has got there
                assert source.position() == position
            np.testing.assert_array_equal(again.values, further.values)
        assert source.read() is None
    for spec in ("arm://x", "arm://-1", "arm://1.5", "ARM://1"):
        with pytest.raises(ValueError, match=r"the address must be arm or arm://SEED with a whole number, got"):
            open_source(spec, ["force"])
    with pytest.raises(ValueError, match="the simulated arm has no column a; it has position, velocity, force"):
        open_source("arm", ["a"])
    with pytest.raises(ValueError, match="the seed of the arm must be a whole number that is not negative, got True"):
        Arm(True, ["force"])
    with pytest.raises(ValueError, match=r"of the arm with seed 7, this one has 0; use arm://7"):
        open_source("arm", ["force"]).seek(position)


class Hands:
    """A clock that stands still but for waiting, or when it is set."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(pacing, "monotonic", lambda: self.now)

    def drive(self, source):
        source._closed.wait = self.wait
        return source

    def wait(self, seconds):
        assert seconds > 0.0
        self.now += seconds


def due(times, pace, longest):
    """When each sample falls due, after the first one."""
    result, reached = [0.0], times[0]
    for t in times[1:]:
        ahead = (t - reached) / pace
        result.append(result[-1] + min(max(ahead, 0.0), longest))
        if not -longest <= ahead <= 0.0:
            reached = t
    return result


@pytest.mark.parametrize("pace", [0.5, 1.0, 20.0])
def test_samples_are_given_when_they_fall_due(tmp_path, monkeypatch, pace):
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.exponential(0.25, 9000)) + 1.7e9
    times[rng.random(9000) < 0.05] -= 0.5  # some are late
    times[3000:] += 3600.0  # a gap
    times[6000:] -= 5000.0  # and the clock was set back
    times[4500] += 1e9
    path = tmp_path / "log.csv"
    path.write_text(text_of(times, rng.standard_normal((9000, 2))))
    hands = Hands(monkeypatch)
    got, when, start = [], [], hands.now
    with hands.drive(open_source(path, ["a"], time="time", pace=pace)) as source:
        for block in source:
            got += block.times.tolist()
            when += [hands.now - start] * len(block)
    np.testing.assert_array_equal(got, times)
    np.testing.assert_allclose(when, due(times.tolist(), pace, 5.0), rtol=0, atol=1e-6)
    assert when[-1] < 9000 * 0.3 / pace + 30.0


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.jsonl", "log.parquet", "arm"])
def test_a_position_in_a_paced_source_is_where_the_reader_is(tmp_path, monkeypatch, name):
    options, total, signals = {"time": "time"}, 9990, ["a", "b"]
    if name == "arm":
        spec, options, signals = "arm://3", {}, ["force", "flexor"]
        times = np.arange(total) / 40
        values = arm.simulate(total, 3)[:, [arm.NAMES.index(signal) for signal in signals]]
    else:
        spec = tmp_path / name
        times, values = written(spec, *some(10_000))
    hands, rng = Hands(monkeypatch), random.Random(1)
    position, at, paced, counters = None, 0, True, None
    while at < total:
        with open_source(spec, signals, **options, pace=1.0 if paced else None) as source:
            if position is not None:
                source.seek(position)
                assert source.position() == position or name == "arm"  # which counts in rows only
            for _ in range(rng.randint(1, 6) if paced else 1):
                if paced:
                    hands.drive(source)
                    hands.now += rng.choice([0.0, 0.0, 1.0, 100.0])
                block = source.read()
                upto = min(at + len(block), total)
                np.testing.assert_array_equal(block.times[: upto - at], times[at:upto])
                np.testing.assert_array_equal(block.values[: upto - at], values[at:upto])
                at = upto
                if at == total:
                    break
            position, counters = json.loads(json.dumps(source.position())), source.counters()
        paced = rng.random() < 0.9
    assert counters["malformed"] == (0 if name == "arm" else 10)


def test_a_paced_source_in_real_time(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,a\n0,0\n0.1,1\n0.2,2\n0.3,3\n0.3,4\n1e6,5\n")
    with Paced(open_source(path, ["a"], time="time"), pace=2.0, longest=0.1) as source:
        assert source.signals == ("a",)
        assert source.replayable
        start, got = time.monotonic(), []
        for block in source:
            got += [(t, time.monotonic() - start) for t in block.times.tolist()]
            if len(got) == 2:
                time.sleep(0.1)  # a slow reader gets what has fallen due meanwhile
        assert [t for t, _ in got] == [0.0, 0.1, 0.2, 0.3, 0.3, 1e6]
        assert all(when >= least for (_, when), least in zip(got, [0.0, 0.05, 0.1, 0.15, 0.15, 0.25], strict=True))
        assert source.counters()["malformed"] == 0
    with pytest.raises(ValueError, match="pace is for what can be replayed, got Pipe"):
        Paced(Pipe(io.BytesIO(b"a\n"), ["a"], rate=1))
    for options in ({"pace": -1}, {"longest": 0.0}):
        with pytest.raises(ValueError, match="must be a finite number > 0"):
            Paced(Arm(0, ["force"]), **options)


def test_a_paced_file_may_grow_and_closing_ends_the_wait(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,a\n0,0\n")
    with open_source(path, ["a"], time="time", follow=True, pace=1000.0) as source:
        assert source.read(PATIENCE).times.tolist() == [0.0]
        assert len(source.read(0.05)) == 0
        with open(path, "a") as file:
            file.write("1,1\n2,2\n")
        assert wait_for(source, 2)[0].tolist() == [1.0, 2.0]
        position = source.position()
    with open_source(path, ["a"], time="time") as source:
        source.seek(position)
        assert source.read() is None
    source = open_source("arm", ["force"], pace=1e-6)
    assert len(source.read()) == 1
    answers = []
    reader = threading.Thread(target=lambda: answers.append(source.read()))
    reader.start()
    source.close()
    reader.join(PATIENCE)
    assert answers == [None]


# --- Memory ---------------------------------------------------------------------------------------


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc to see the memory in use")
def test_a_large_file_takes_no_more_memory_than_a_small_one(tmp_path):
    times, values = some(20_000)
    piece = text_of(times, values).encode().partition(b"\n")[2]
    path, repeats = tmp_path / "log.csv", 150_000_000 // len(piece)
    with open(path, "wb") as file:
        file.write(b"time,a,b\n")
        for _ in range(repeats):
            file.write(piece)
    with TextFile(path, ["a", "b"], time="time") as source:
        cleaner = Cleaner(["a", "b"])
        cleaner(next(source))
        before, most, samples = resident(), 0, ROWS
        for i, block in enumerate(source):
            samples += len(block)
            cleaner(block)
            if i % 50 == 0:
                most = max(most, resident())
        del block
    path.unlink()
    assert samples == repeats * 20_000
    assert most - before < 16_000_000, (
        f"{(most - before) / 1e6:.0f} MB more for {len(piece) * repeats / 1e6:.0f} MB of text"
    )


# --- Parquet --------------------------------------------------------------------------------------


def test_parquet_columns_of_many_types(tmp_path):
    path = tmp_path / "log.parquet"
    n = 10
    moments = [datetime(2024, 2, 29, 12, 0, i, 123456, UTC) for i in range(n)]
    seconds = [moment.timestamp() for moment in moments]
    numbers = [None if i == 3 else i for i in range(n)]
    table = {
        "ns": pa.array(moments, pa.timestamp("ns", "UTC")),
        "us": pa.array([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us")),
        "ms": pa.array([round(s * 1000) for s in seconds]),
        "iso": pa.array([None if i == 3 else moment.isoformat() for i, moment in enumerate(moments)]),
        "text": pa.array(["x"] * n),
        "a.b": pa.array([0.0] * n),
        **{str(kind): pa.array(numbers, kind) for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.float64())},
        "decimal": pa.array(numbers, pa.float64()).cast(pa.decimal128(10, 2)),
        "null": pa.nulls(n),
        "flag": pa.array([True] * n),
    }
    pq.write_table(pa.table(table), path)
    names = ["decimal", "int8", "uint64", "null", "float", "double"]
    for time_name in ("ns", "us"):
        times, values = joined(open_source(path, names, time=time_name))
        np.testing.assert_allclose(times, seconds, rtol=0, atol=3e-7)
        expected = np.array([[NAN if x is None else x for x in numbers]] * len(names), float).T
        expected[:, 3] = NAN
        np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(joined(open_source(path, ["int8"], time="ms", time_unit="ms"))[0], np.round(seconds, 3))
    source = open_source(path, ["int8"], time="iso")
    np.testing.assert_array_equal(joined(source)[0], np.delete(seconds, 3))
    assert source.counters() == {"malformed": 1}
    for name in ("text", "flag", "us"):
        with pytest.raises(ValueError, match=f"column {name} of .* must hold numbers, got"):
            open_source(path, [name], time="ns")
    with pytest.raises(ValueError, match=r"has no column force; it has ns, us, ms"):
        open_source(path, ["force"], time="ns")


def test_a_parquet_file_that_is_cut_short_says_so(tmp_path):
    path = tmp_path / "log.parquet"
    times, values = some(50_000)
    pq.write_table(pa.table({"time": times, "a": values[:, 0]}), path, row_group_size=10_000)
    whole = path.read_bytes()
    for content in (b"", whole[:100], whole[:-1], whole[: len(whole) // 2], b"time,a\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"log\.parquet is not a Parquet file, or is cut short"):
            open_source(path, ["a"], time="time")
    path.write_bytes(whole)
    source = open_source(path, ["a"], time="time")
    with source:
        next(source)
        os.truncate(path, len(whole) // 2)
        with pytest.raises(ValueError, match=r"log\.parquet is damaged or was cut short after row [1-4]\d,\d"):
            list(source)


# --- Pipes ----------------------------------------------------------------------------------------

READER = """
import json, sys
from trueonline.nexting.sources import open_source
with open_source("-", ["a", "b"], time="time") as source:
    for block in source:
        print(json.dumps([block.times.tolist(), [[str(x) for x in row] for row in block.values]]), flush=True)
    print(json.dumps(source.counters()))
"""


def test_standard_input_is_read_as_it_comes():
    for first, more, counters in [
        (
            b"b,time,a\n2,0.5,1\n",
            [b"4,1.5,3\n", b"oops\n" + b"5" * (LIMIT + 9) + b"\n,2.5", b",6", b"\n1"],
            {"malformed": 3, "unterminated": 1},
        ),
        (
            b'{"time": 0.5, "a": 1, "b": 2}\n',
            [
                b'{"b": 4, "a": 3, "time": 1.5}\n',
                b'{"a": 1}\n{"time": 2, "c": 3}\n{"time": true, "a": 1}\n{"time": 2, "a": [1]}\n{"time": 2, "a": 1\n'
                + b"[" * 100_000
                + b"\n",
                b'{"time": 9, "a": "' + b"x" * LIMIT + b'"}\n{"time": 2, "a": 1' + b"0" * 400 + b"}\n\xff{}\n",
                b'{"time": "2.5", "a": "6", "b": null}\n',
            ],
            {"malformed": 9, "unterminated": 0},
        ),
    ]:
        reader = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with reader:
            reader.stdin.write(first)
            reader.stdin.flush()
            assert json.loads(reader.stdout.readline()) == [[0.5], [["1.0", "2.0"]]]  # before anything else was written
            for piece in more:
                reader.stdin.write(piece)
                reader.stdin.flush()
            reader.stdin.close()
            *blocks, last = [json.loads(line) for line in reader.stdout]
            assert reader.wait(PATIENCE) == 0
        assert [t for times, _ in blocks for t in times] == [1.5, 2.5]
        assert [row for _, values in blocks for row in values] == [["3.0", "4.0"], ["6.0", "nan"]]
        assert last == counters


def test_a_named_pipe_is_a_pipe(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text("a\n1\n2\n"))
    writer.start()
    with open_source(path, ["a"], rate=2) as source:
        assert not source.replayable
        assert [block.values[:, 0].tolist() for block in source] == [[1.0, 2.0]]
        assert source.position()["samples"] == 2
        with pytest.raises(ValueError, match="Pipe cannot be replayed"):
            source.seek(source.position())
    writer.join()


@pytest.mark.parametrize(("whole_lines", "expected"), [(True, [10.0, 20.0]), (False, [10.0, 20.0, 3.0])])
def test_a_named_pipe_whose_writer_is_killed_ends(tmp_path, whole_lines, expected):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    code = "import os, sys; fifo = os.open(sys.argv[1], os.O_WRONLY); os.write(fifo, sys.argv[2].encode()); "
    code += "os.kill(os.getpid(), 9)"
    with subprocess.Popen([sys.executable, "-c", code, str(path), "time,a\n1,10\n2,20\n3,3"]) as writer:
        with open_source(path, ["a"], time="time", whole_lines=whole_lines) as source:
            _, values = together(list(source), 1)
            assert values[:, 0].tolist() == expected  # 3 was perhaps to be 30: only whole lines are safe
            assert source.counters() == {"malformed": 0, "unterminated": 1}
        assert writer.wait(PATIENCE) == -9


def test_a_pipe_gives_what_has_come_when_it_may_not_wait():
    end, begin = os.pipe()
    with open(end, "rb") as stream, open(begin, "wb", buffering=0) as pipe, Pipe(stream, ["a"], rate=1) as source:
        assert len(source.read(0.0)) == 0
        pipe.write(b"a\n1\n2\n")
        assert source.read(0.0).values[:, 0].tolist() == [1.0, 2.0]
        pipe.write(b"oops\n" * 1000)
        assert len(source.read(0.0)) == 0
        assert source.counters()["malformed"] == 1000


def test_a_pipe_without_a_header_ends_without_samples():
    assert joined(Pipe(io.BytesIO(b""), ["a"], rate=1))[0].size == 0
    with pytest.raises(ValueError, match="the pipe has no column a; it has b"):
        Pipe(io.BytesIO(b"b\n1\n"), ["a"], rate=1).read()


# --- The queue of live sources --------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=30))
def test_a_full_queue_drops_the_oldest_and_counts_them(size, actions):
    ring, kept, sent, dropped, got = Ring(1, size), [], 0, 0, []
    for put, n in actions:
        if put:
            new = list(range(sent, sent + n))
            ring.put(np.array(new, float), np.array(new, float).reshape(n, 1) * 10)
            sent, kept = sent + n, kept + new
            dropped += max(len(kept) - size, 0)
            kept = kept[-size:]
            for _ in range(n % 3):  # and alone
                ring.put_one(float(sent), [10.0 * sent])
                dropped += len(kept) == size
                kept, sent = [*kept, sent][-size:], sent + 1
        else:
            block = ring.take(0.0)
            assert block.times.tolist() == kept
            assert block.values[:, 0].tolist() == [10.0 * t for t in kept]
            got, kept = got + kept, []
    assert (ring.received, ring.dropped) == (sent, dropped)
    assert len(got) + len(kept) + dropped == sent


def test_what_went_wrong_in_the_thread_is_told_to_the_reader_after_what_arrived():
    ring = Ring(1, 4)
    ring.put(np.array([1.0]), np.array([[2.0]]))
    ring.fail(ValueError("gone"))
    assert len(ring.take(None)) == 1
    with pytest.raises(ValueError, match="gone"):
        ring.take(None)
    ring.close()
    assert ring.take(None) is None


@pytest.mark.parametrize(
    ("module", "spec", "extra"),
    [
        ("paho.mqtt.client", "mqtt://localhost/x", "mqtt"),
        ("pylsl", "lsl://x", "lsl"),
        ("pyarrow.parquet", "x.pq", "streams"),
    ],
)
def test_what_is_not_installed_is_named(monkeypatch, module, spec, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=rf"need.*pip install 'trueonline\[{extra}\]'"):
        open_source(spec, ["a"], rate=1)


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.parquet"])
def test_files_know_how_far_they_have_been_read(name, tmp_path):
    values = np.random.default_rng(0).normal(size=20_000)
    rows = pa.table({"a": values})
    if name == "log.parquet":
        pq.write_table(rows, tmp_path / name)
    else:
        text = "a\n" + "".join(f"{value!r}\n" for value in values.tolist())
        (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    with open_source(tmp_path / name, ["a"], rate=1.0, pace=1e9) as source:
        shares = [source.progress()]
        while source.read() is not None:
            shares.append(source.progress())
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] < 1.0
    assert shares[-1] == 1.0
    assert source.progress() is None
    with open_source("arm", ["force"]) as source:
        assert source.progress() is None
