"""Positions: reading in two goes equals reading in one, and another file is refused."""

import json
import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.streams.streams import joined, some, text_of, together, written
from trueonline.streams.sources import Block, ParquetFile, TextFile, open_source
from trueonline.streams.sources.positions import skipping

NAMES = ("log.csv", "log.csv.gz", "log.jsonl", "log.parquet")


@pytest.mark.parametrize("names", [*((name,) for name in NAMES), NAMES], ids=len)
@pytest.mark.parametrize("clock", [{"time": "time"}, {"rate": 40.0}])
def test_reading_resumes_anywhere(tmp_path, names, clock):
    """In one file of each kind, and in all four as one stream."""
    times, values = some(20_000)
    cuts = np.linspace(0, 20_000, len(names) + 1).astype(int)
    parts = [
        written(tmp_path / name, times[at:to], values[at:to])
        for name, (at, to) in zip(names, pairwise(cuts), strict=True)
    ]
    paths, draw = [tmp_path / name for name in names], random.Random(0)
    once = open_source(paths, ["a", "b"], **clock)
    assert once.replayable
    whole_times, whole_values = joined(once)
    if "time" in clock:
        np.testing.assert_array_equal(whole_times, np.concatenate([part for part, _ in parts]))
        np.testing.assert_array_equal(whole_values, np.concatenate([part for _, part in parts]))
    elif names[0] != "log.parquet":  # where a row is whole without its time
        np.testing.assert_array_equal(whole_times[:4000], np.flatnonzero(np.arange(4004) % 1000 != 7)[:4000] / 40)
    blocks, position, rounds = [], None, 0
    while True:
        rounds += 1
        with open_source(paths, ["a", "b"], **clock) as source:
            if position is not None:
                next(source)  # wherever it was
                source.seek(position)
            for _ in range(draw.randrange(3)):
                if (block := source.read()) is not None:
                    blocks.append(block)
            before = source.position()
            if (block := source.read()) is None:
                break
            rows = draw.randrange(len(block) + 1)
            blocks.append(type(block)(block.times[:rows], block.values[:rows]))
            position = json.loads(json.dumps(skipping(before, block, rows)))
    assert rounds > 2
    assert source.counters() == once.counters()
    assert source.position() == once.position()
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clock", [{"time": "time"}, {"rate": 40.0}])
@pytest.mark.parametrize(("begun", "within"), [(1, False), (0, True), (1, True)])
def test_a_position_tells_a_file_that_grew_from_another(tmp_path, name, clock, begun, within):
    """At the end of a block, or within one."""
    path = tmp_path / name
    (times, values), (other_times, other) = some(9000), some(9000, seed=1)

    def opened(signals=("a", "b")):
        return open_source(path, signals, **clock)

    def refused(times, values, message):
        written(path, times, values)
        with opened() as source:
            at = source.position()
            with pytest.raises(ValueError, match=message):
                source.seek(position)
            assert source.position() == at

    written(path, times[:8500], values[:8500])
    with opened() as source:
        used = sum(len(next(source)) for _ in range(begun))
        position, block = source.position(), next(source)
        if within:
            half, some_of_it = len(block) // 2, len(block) // 5
            first, position = skipping(position, block, some_of_it), skipping(position, block, half)
            assert skipping(first, block.part(some_of_it), half - some_of_it) == position  # in one go or in two
            used += half
        else:
            position, used = source.position(), used + len(block)
    position = json.loads(json.dumps(position))
    written(path, times, values)  # it grew
    whole_times, whole_values = joined(opened())
    for signals, places in ((("a", "b"), [0, 1]), (("b", "a"), [1, 0]), (("b",), [1])):  # others may be asked for
        with opened(signals) as source:
            source.seek(position)
            assert len(signals) < 2 or source.position() == position
            rest_times, rest_values = together(list(source), len(signals))
        np.testing.assert_array_equal(rest_times, whole_times[used:])
        np.testing.assert_array_equal(rest_values, whole_values[used:, places])
    with opened() as source:
        for wrong in (None, {}, {"times": 1}, {"times": -1, "values": {}}, {"times": 1, "values": {"a": True}}):
            with pytest.raises(ValueError, match="the position is damaged: skipped must hold a checksum for each signal"):
                source.seek({**position, "skip": 1, "skipped": wrong})
    time = whole_times[used - 1]
    row = int(times.searchsorted(time)) if "time" in clock else round(time * 40.0)  # of the sample before the position
    for column, signal in enumerate("ab"):
        changed = values.copy()
        changed[row, column] += 1.0
        refused(times, changed, rf"not the file .* {signal} are not .*--fresh" if within else "not the file .*--fresh")
    for size, t, v in ((row, times, values), (1, other_times, other), (9000, other_times, other)):
        refused(t[:size], v[:size], r"(shorter than|fewer than|is not the file) .*start from scratch .*--fresh")


def test_a_position_is_within_its_block_or_refused():
    block = Block(np.arange(3.0), np.zeros((3, 1)))
    position = {"kind": "arm", "seed": 0, "row": 7, "skip": 2}
    assert skipping(position, block, 3) == {**position, "skip": 5}  # the arm needs no checksums
    for rows in (-1, 4):
        with pytest.raises(ValueError, match=f"from 0 to the 3 of the block, got {rows}"):
            skipping(position, block, rows)
