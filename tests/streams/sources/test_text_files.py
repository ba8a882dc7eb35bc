"""Text files that are cut, grow or are replaced, and the memory that a large one takes."""

import gzip
import os
import random
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.streams.streams import PATIENCE, joined, some, text_of, together, wait_for
from trueonline.streams.sources import Cleaner, Pipe, TextFile, open_source
from trueonline.streams.sources.sample import BLOCK_ROWS


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
        with open(path, "a", encoding="utf-8", newline="") as file:
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
        assert len(got_times) >= BLOCK_ROWS
        assert source.counters() == {"malformed": 0, "unterminated": 0, "truncated": 1, "replaced": 0}


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
        with open(path, "a", encoding="utf-8") as file:
            file.write("1e9,1,")
        assert len(source.read(0.05)) == 0
        with open(path, "a", encoding="utf-8") as file:
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
        with open(path, "a", encoding="utf-8") as file:
            file.write("30,3\n")
        assert [part.tolist() for part in wait_for(source, 1)] == [[3.0], [[30.0]]]
        with open(path, "a", encoding="utf-8") as file:
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


def rows(first, last, wide=True):
    """Rows whose numbers tell which they are. Not all rows are equally long."""
    return "".join(f"{i},{i * (10 if wide else 1)}.5\n" for i in range(first, last))


def emptied(path, text):
    """Empty a file in place and write into it at once, as copytruncate and a quick writer do."""
    with open(path, "r+", encoding="utf-8") as file:
        file.truncate(0)
        file.write(text)


@pytest.mark.parametrize("before", [3, 40, 2000])
@pytest.mark.parametrize("longer", [0, 1, 3000])
def test_a_followed_file_that_was_emptied_and_has_grown_again_is_read_whole(tmp_path, before, longer):
    path = tmp_path / "log.csv"
    path.write_text("time,a\n" + rows(0, before) + "123")  # the last row is not whole
    with TextFile(path, ["a"], time="time", follow=True) as source:
        assert wait_for(source, before)[0].tolist() == list(range(before))
        assert len(source.read(0.05)) == 0
        new = "time,a\n" + rows(10_000, 10_000 + before + longer)
        emptied(path, new.ljust(path.stat().st_size, "\n"))
        times, values = wait_for(source, before + longer)
        assert times.tolist() == list(range(10_000, 10_000 + before + longer))
        assert values[:, 0].tolist() == [10 * time + 0.5 for time in times]
        assert source.counters() == {"malformed": 1, "unterminated": 0, "truncated": 1, "replaced": 0}
        with open(path, "a", encoding="utf-8") as file:
            file.write("99999,1\n")
        assert wait_for(source, 1)[0].tolist() == [99999.0]
        position = source.position()
    with TextFile(path, ["a"], time="time", follow=True) as source:
        source.seek(position)
        emptied(path, new + rows(20_000, 20_100))
        assert wait_for(source, before + longer + 100)[0].tolist()[-100:] == list(range(20_000, 20_100))
        assert source.counters()["truncated"] == 2


@pytest.mark.parametrize("lost", [0, 5])
def test_a_writer_that_goes_on_behind_a_hole_is_followed(tmp_path, lost):
    path = tmp_path / "log.csv"
    with open(path, "w", encoding="utf-8") as file, TextFile(path, ["a"], time="time", follow=True) as source:
        file.write("time,a\n" + rows(0, 100))
        file.flush()
        assert len(wait_for(source, 100)[0]) == 100
        for emptied_first in (True, False):
            file.write(rows(100, 100 + lost))  # nobody reads these
            file.flush()
            os.truncate(path, 0)
            if emptied_first:
                assert len(source.read(0.05)) == 0
            file.write(rows(200, 240))
            file.flush()
            expected = list(range(200 + (lost > 0), 240))
            assert wait_for(source, len(expected))[0].tolist() == expected
        counted = {"malformed": 2 * (lost > 0), "unterminated": 0, "truncated": 2, "replaced": 0}
        assert source.counters() == counted


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


@pytest.mark.parametrize("text", ["time,größe,€\n1,2,3\n4,5,6\n", "time,note,größe\n" + "1,é,2\n" * 100])
def test_what_is_not_utf_8_is_latin_1_and_that_is_said(text, tmp_path):
    path = tmp_path / "log.csv"
    for encoding, said in (("cp1252", "log.csv is not UTF-8: it was read as Latin-1"), ("utf-8", ""), ("utf-8-sig", "")):
        path.write_bytes(text.encode(encoding))
        source = open_source(path, ["größe"], time="time")
        _, values = joined(source)
        at = text.partition("\n")[0].split(",").index("größe")
        assert values[:, 0].tolist() == [float(line.split(",")[at]) for line in text.splitlines()[1:]]
        assert said in source.remark()
        assert bool(said) == bool(source.remark())


def resident():
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
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
        before, most, samples = resident(), 0, BLOCK_ROWS
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
