"""All the signals that a source has."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trueonline.streams.sources import columns_of

CSV = """# a comment
time;force, left;"note";empty;late;0;half
2024-05-01T12:00;1,5;x;;1;1;1
2024-05-01T12:01;NA;2;;1;;
# another
2024-05-01T12:02;2;3;;oops;3;2
"""


def test_columns_of_numbers_are_listed_in_their_order(tmp_path):
    plain, zipped, lines, table = (tmp_path / name for name in ("a.csv", "a.csv.gz", "a.jsonl", "a.parquet"))
    plain.write_text(CSV)
    zipped.write_bytes(gzip.compress(CSV.encode()))
    assert columns_of(plain, "time") == columns_of(zipped, "time") == ("force, left", "0", "half")
    rows = [{"time": 1, "a": None, "s": "x", "b": True, "n": 2}, {"time": 2, "a": 1.5, "n": None}, {"time": 3, "o": {}}]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert columns_of(lines, "time") == ("a", "n")
    assert columns_of(lines) == ("time", "a", "n")
    pq.write_table(pa.table({"t": [1.0], "i": [1], "s": ["x"], "b": [True], "f": pa.array([1.0], pa.float32())}), table)
    assert columns_of(table, "t") == ("i", "f")
    assert columns_of("arm") == ("position", "velocity", "force", "flexor", "extensor")


def test_what_cannot_be_listed_is_said(tmp_path):
    (tmp_path / "a.csv").write_text("time,note\n1,x\n")
    (tmp_path / "head.csv").write_text("time,x")
    (tmp_path / "a.parquet").write_text("PAR1")
    for name, said in (
        ("a.csv", "no column of numbers beside time"),
        ("head.csv", "no column of numbers"),
        ("a.parquet", "not a Parquet"),
        ("no.csv", "there is no file"),
    ):
        with pytest.raises(ValueError, match=said):
            columns_of(tmp_path / name, "time")
    for live in ("-", "mqtt://localhost/x", "lsl://x"):
        with pytest.raises(ValueError, match=f"for files and the arm, got {live}; name them: --signals a,b"):
            columns_of(live)
