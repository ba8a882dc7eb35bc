"""Parquet files."""

import os
import random
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.streams.streams import NAN, joined, some
from trueonline.streams.sources import open_source


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
        with pytest.raises(ValueError, match=r"log\.parquet is not a Parquet file, or is truncated"):
            open_source(path, ["a"], time="time")
    path.write_bytes(whole)
    source = open_source(path, ["a"], time="time")
    with source:
        next(source)
        os.truncate(path, len(whole) // 2)
        with pytest.raises(ValueError, match=r"log\.parquet is damaged or truncated after row [1-4]\d,\d"):
            list(source)


def test_a_parquet_file_with_changed_bytes_is_read_or_refused(tmp_path):
    path, rng, refused = tmp_path / "log.parquet", random.Random(4), 0
    times = np.arange(60.0)
    pq.write_table(pa.table({"time": times, "a": np.sin(times), "b": times.astype(int)}), path, row_group_size=20)
    whole = path.read_bytes()
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[-rng.randrange(1, 800)] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            with open_source(path, ["a", "b"], time="time") as source:
                joined(source)
        except ValueError:
            refused += 1
    assert refused > 100


def test_a_page_that_claims_to_be_large_takes_no_memory(tmp_path):
    path, before = tmp_path / "log.parquet", pa.default_memory_pool().max_memory()
    pq.write_table(pa.table({"time": np.arange(60.0), "a": np.arange(60.0)}), path)
    whole = path.read_bytes()
    for at in range(4, 30):  # in the header of the first page
        path.write_bytes(whole[:at] + b"\xfe\xff\xff\xff\x07" + whole[at + 5 :])  # 2³⁰ − 1, as headers have it
        with suppress(ValueError), open_source(path, ["a"], time="time") as source:
            joined(source)
    assert pa.default_memory_pool().max_memory() - before < 1e7


def test_what_pyarrow_cannot_read_is_a_damaged_file(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"time": np.arange(9.0), "a": np.arange(9.0)}), path)

    def fail(*_, **__):
        raise pa.ArrowNotImplementedError("Unsupported encoding")

    with open_source(path, ["a"], time="time") as source:
        source._reader._batches = (fail() for _ in range(1))
        with pytest.raises(ValueError, match=r"log.parquet is damaged or truncated after row 0: Unsupported encoding"):
            source.read()
    monkeypatch.setattr(pq, "ParquetFile", fail)
    with pytest.raises(ValueError, match=r"log.parquet is not a Parquet file, or is truncated"):
        open_source(path, ["a"], time="time")


def test_a_column_that_is_shorter_than_its_group_of_rows_is_damage(tmp_path, monkeypatch):
    """pyarrow gives what there is, without a word."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0]}), path)
    whole = pq.ParquetFile.iter_batches
    shorter = lambda file, **options: (batch.slice(0, 2) for batch in whole(file, **options))  # noqa: E731
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", shorter)
    with pytest.raises(ValueError, match=r"damaged or truncated after row 2: a column of row group 0 lacks 1 values"):
        joined(open_source(path, ["a"], rate=1.0))
