"""CSV: separators, numbers, times, malformed rows, and bytes that arrive in pieces."""

import csv
import gzip
import io
import math
import random
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.streams import NAN, joined, some, together
from trueonline.streams.sources import Pipe, open_source, skipping
from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.positions import short_hash
from trueonline.streams.sources.records import CHUNK_BYTES, MAX_RECORD_BYTES, PAST_BYTES
from trueonline.streams.sources.text import Text


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
        "2024-01-01T00:00:00.", "2024-01-01T00:00:00+99:00", "2024-01-01T00:60:00", "2024-01-01T00:00:61",
        "0000-01-01T00:00", "2024-01-01T00:00:00.1234567e9", "2024-01-01T00:00:00.123456.7",
        "2024-01-01T00:00:001+00:00", "2024-01-01T00:00:00:1", "2024-01-01T0000001+0000", "2024-01-01T00:00:00+00:00:00:5",
    ]  # fmt: skip
    lines = "time;x\n" + "\n".join(f'"{text}";1' for text in texts + bad)
    source = Pipe(io.BytesIO(lines.encode()), ["x"], time="time")
    times, _ = joined(source)
    np.testing.assert_array_equal(times, instants)
    assert source.counters()["malformed"] == len(bad)
    for unit, text in (("s", "1700000000.125"), ("ms", "1700000000125"), ("us", "1700000000125000")):
        for line in (f"t,x\n{text},1\n", f'{{"t": {text}, "x": 1}}\n', f'{{"t": "{text}", "x": 1}}\n'):
            times, _ = joined(Pipe(io.BytesIO(line.encode()), ["x"], time="t", time_unit=unit))
            assert times.tolist() == [1700000000.125]


@pytest.mark.parametrize("rows", [3, 9000])
def test_what_excel_and_loggers_write_is_read_and_resumed_at_exact_bytes(tmp_path, rows):
    """A line that names the separator, comments, a quoted header with separators, decimal commas, and Latin-1."""
    path, text = tmp_path / "log.csv", 'sep=;\r\n# Messgerät 7\r\n\r\n"Kraft; links";Zeit;Größe\r\n'
    for i in range(rows):
        text += f"{i},5;{i};{i}\r\n" + "# Prüfung; 1;2\r\n" * (i % 7 == 0)
    path.write_bytes(text.encode("latin-1"))
    wanted = [[i + 0.5, i] for i in range(rows)]
    source = open_source(path, ["Kraft; links", "Größe"], time="Zeit")
    times, values = joined(source)
    assert (times.tolist(), values.tolist()) == (list(range(rows)), wanted)
    assert source.counters()["malformed"] == 0
    with open_source(path, ["Kraft; links", "Größe"], time="Zeit") as source:
        first = source.read()
        place = skipping({**source.position(), "offset": 0, "row": 0, "hash": short_hash(b"")}, first, 2)
        after = source.position()
    assert path.read_bytes()[: after["offset"]].count(b"\n") == min(4096, rows + 1 + (rows - 1) // 7) + 4
    for position, used in ((place, 2), (after, len(first))):
        with open_source(path, ["Kraft; links", "Größe"], time="Zeit") as source:
            source.seek(position)
            assert joined(source)[1].tolist() == wanted[used:]


def test_the_separator_is_the_one_that_the_file_names():
    for mark in ";|\t":
        text = f"\ufeffsep={mark}\nt{mark}a,b\n1{mark}2\n"
        assert joined(Pipe(io.BytesIO(text.encode()), ["a,b"], time="t"))[1].tolist() == [[2.0]]


def test_malformed_rows_are_counted_and_skipped():
    good = b"1,2,3\n"
    bad = [b"1,2\n", b"1,2,3,4\n", b"1,2,3,\n", b"1\n", b"a,2,3\n", b"1,2,0x10\n", b",2,3\n", b"1,2,1_0\n", b"1,2,--3\n"]
    bad += [
        b"1,2,3e\n", b"1,2,+\n", b"1,2,.\n", b"1,2,1.2.3\n", b"1,2,True\n", b"\xff\xfe\n",
        b"1,2,\xd9\xa3\n",
    ]  # fmt: skip
    bad += [
        b"\x00\x00,1,2\n",
        b"1," + b"2" * MAX_RECORD_BYTES + b",3\n",
        b"1,2,3" + b" " * (2 * MAX_RECORD_BYTES) + b"\n",
    ]
    text = b"time,note,a\n" + b"".join(good + line for line in bad) + b"\n  \n\r\n" + good
    for chunk in (len(text), CHUNK_BYTES):
        source = Text("it", ("a",), Clock("time"))
        values = []
        for at in range(0, len(text), chunk):
            source.feed(text[at : at + chunk])
            while (block := source.take()) is not None:
                values += block.values[:, 0].tolist()
                assert source.past() == text[: source.position()["offset"]][-PAST_BYTES:]
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
        assert source.past() == text[: source.position()["offset"]][-PAST_BYTES:]
        return times.tolist(), str(values.tolist()), source.position()

    whole = read([])
    assert read(sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))) == whole
    assert whole[2]["offset"] <= len(text)


CELLS = [
    "1.5", "-2e3", " 7 ", "", "NA", " NA ", "-nan(ind)", "oops", "1_0", "inf", "+.5", '"3"', '"4', 'x"y', '"a,b"',
    "1e400", "²",
]  # fmt: skip
STAMPS = ["2024-02-29T12:00:00", "2024-02-29 12:00:00.25", "2024-02-29T12:00:00Z", "2024-02-29T12:00:00.123456789+05:30"]
STAMPS += [
    "20240229T120000Z", "0000-01-01T00:00", "12.5", "", " 2024-02-29 ", "soon", "2024-02-29T12:00:00.1234567",
    "2024-02-29t12:00z",
]  # fmt: skip


def blocks_of(text, signals, clock, step):
    """The samples and the counts of a text that is fed in pieces of some whole lines."""
    reader, blocks, lines = Text("it", signals, clock), [], text.splitlines(keepends=True)
    for at in range(0, len(lines), step):
        reader.feed(b"".join(lines[at : at + step]))
        while (block := reader.take()) is not None:
            blocks.append(block)
    return *together(blocks, len(signals)), reader.malformed, reader.row


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("clock", [Clock("time"), Clock(rate=4.0)])
@pytest.mark.parametrize("seed", range(4))
def test_many_lines_at_once_are_read_like_one_line_at_a_time(separator, clock, seed):
    rng = random.Random(seed)
    often = rng.choice([0.002, 0.02, 0.5])  # how often a cell is strange
    rows = []
    for i in range(3000):
        cells = [rng.choice(STAMPS if seed % 2 else ["x", "1e400"]) if rng.random() < often else str(i)]
        cells += [rng.choice(CELLS) if rng.random() < often else f"{rng.gauss(0, 1):.4f}" for _ in range(3)]
        cells += ["1"] * (rng.random() < often) + ["\r"] * (rng.random() < often)
        cells = [cell.replace(".", rng.choice(".,")) if separator == ";" else cell for cell in cells]
        rows.append(separator.join(cells) if rng.random() > often else rng.choice(["", "  ", '"']))
    text = "\n".join([separator.join(["time", "a", "note", "b"]), *rows, ""]).encode()
    one, many = (blocks_of(text, ("a", "b"), clock, step) for step in (1, len(rows)))
    for x, y in zip(one[:2], many[:2], strict=True):
        np.testing.assert_array_equal(x, y)
    assert one[2:] == many[2:]
    assert 0 < many[2] < len(rows)
    assert len(many[0]) == many[3] - many[2]


@pytest.mark.parametrize("end", ["", "Z", "+02:00"])
@pytest.mark.parametrize("digits", [0, 3, 6, 7, 9, 10, 13])
def test_many_times_of_one_form_are_the_nearest_floats(end, digits):
    rng = random.Random(digits)
    parts = 10**digits
    written = [rng.randrange(1_700_000_000 * parts) for _ in range(500)]
    texts = []
    for each in written:
        shown = datetime.fromtimestamp(each // parts, UTC) + timedelta(hours=2 * (end == "+02:00"))
        fraction = f".{each % parts:0{digits}}" if digits else ""
        texts.append(f"{shown:%Y-%m-%dT%H:%M:%S}{fraction}{end}")
    source = Pipe(io.BytesIO("\n".join(["time,a", *(f"{text},1" for text in texts), ""]).encode()), ["a"], time="time")
    times, _ = joined(source)
    np.testing.assert_array_equal(times, [each / parts for each in written])  # whole numbers: Python rounds once
    assert source.counters()["malformed"] == 0


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_first_line_may_be_long(tmp_path, separator):
    names = [f"channel {i:05}" for i in range(15_000)]
    path = tmp_path / "log.csv"
    path.write_text(separator.join(["time", *names]) + "\n" + separator.join(["1"] * 15_001) + "\n")
    with open_source(path, names[-1:], time="time") as source:
        assert source.read().values.tolist() == [[1.0]]
