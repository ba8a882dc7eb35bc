"""Malformed input is counted, and a source tells what was wrong with the first of it."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.streams.streams import INF, NAN, joined, wait_for
from trueonline.streams.sources import Arm, Pipe, TextFile, open_source
from trueonline.streams.sources.records import MAX_RECORD_BYTES
from trueonline.streams.sources.sample import shown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("time,a,b\n1,2,3\n\n2,,\n", None),
        ("time,a,b\n1,2,3\n4,5\n6\n", "a row has 2 cells, and the first line has 3: 4,5"),
        ("time,a,b\n1\n4,5\n", "a row has 1 cell, and the first line has 3: 1"),
        ("time,a,b\n1,2,3\n,5,6\n6\n", "the time in column time is missing or not finite: ,5,6"),
        ("time,a,b\n1,oops,3\n", "a: 'oops' is not a number"),
        ("time;a;b\n1;2.000,00;3\n", "a: '2.000,00' has a thousands separator; write the number without it"),
        ("time,a,b\n" + '1,"2,000.5",3\n' * 40, "a: '2,000.5' has a thousands separator; write the number without it"),
        ("time;a;b\n" + "1;2,0,00;3\n" * 40, "a: '2,0,00' is not a number"),
        ("time,a,b\n1,1'234'567,3\n", "a: \"1'234'567\" has a thousands separator; write the number without it"),
        ("time,a,b\nsoon,1,3\n", "time: 'soon' is not a time; give the form of times by --time-format"),
        ("time;a;b\n1;2;3;4" + "x" * 300 + "\n", "a row has 4 cells, and the first line has 3: 1;2;3;4" + "x" * 92 + "…"),
        ("time,a,b\n1,2," + "3" * MAX_RECORD_BYTES + "\n", "a row is longer than 1 MiB: " + "1,2," + "3" * 95 + "…"),
        ('{"time": 1, "a": 2, "b": 3}\n', None),
        ('{"time": 1, "a": 2}\n{"time": 2, "b": 3}\n', None),
        ('{"time": 1, "grip": 2, "emg": 3}\n', 'no key a, b; it has time, grip, emg: {"time": 1, "grip": 2, "emg": 3}'),
        ('{"time": 1, "a": 2, "emg": 3}\n', "no key b so far; it has time, a, emg"),
        ('{"a": 1, "b": 2}\n', 'no time under the key time; it has a, b: {"a": 1, "b": 2}'),
        ('{"time": 1, "a": true, "b": 2}\n', 'a: true or false is not a number: {"time": 1, "a": true, "b": 2}'),
        (
            '{"time": "soon", "a": 1, "b": 2}\n',
            '\'soon\' is not a time; give the form of times by --time-format: {"time": "soon", "a": 1, "b": 2}',
        ),
        (
            '{"time": 1e999, "a": 1, "b": 2}\n',
            'the time under the key time is not finite: {"time": 1e999, "a": 1, "b": 2}',
        ),
        (
            "{oops\n",
            "it is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1)): {oops",
        ),
        ('{"time": 1, "a": 1, "b": 1}\n[7]\n', "it must be an object with names, and is an array: [7]"),
        ('{"time": 1, "a": 1, "b": 1}\n7\n', "it must be an object with names, and is a number: 7"),
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
        if len(text) > MAX_RECORD_BYTES and got is not None:  # of a line too long to be kept, any part is shown
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
        assert followed.complaint() == "a row broke off when the file was cut or replaced: 2,"
    assert Arm(0, ["force"]).complaint() is None


def test_what_is_shown_is_one_short_line():
    assert shown(b" a\nb\xff\x00c ") == "a b\ufffd c"
    assert shown("x" * 101) == "x" * 99 + "…"
    assert shown("x" * 100) == "x" * 100
    assert shown({"a": [1]}) == "{'a': [1]}"


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
        (b'{"time": 12, "a": 1, "b": "' + b"x" * MAX_RECORD_BYTES + b'"}', None),
    ]
    path.write_bytes(b"".join(line + b"\n" for line, _ in lines))
    source = open_source(path, ["a"], time="time")
    _, values = joined(source)
    np.testing.assert_array_equal(values[:, 0], [value for _, value in lines if value is not None])
    assert source.counters()["malformed"] == sum(value is None for _, value in lines)
