"""Predictions in files: what is written is read back, and a run that was killed resumes from its checkpoint."""

import errno
import io
import json
import os
from contextlib import suppress
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from trueonline.streams.outputs import parquet_output
from trueonline.streams.outputs.marks import fitting_marks
from trueonline.streams.outputs.output import Nowhere, open_output
from trueonline.streams.outputs.parquet_output import Parquet
from trueonline.streams.outputs.text_output import Csv, JsonLines, Lines
from trueonline.streams.sources import TimeStyle

NAMES = ("a@1s", "b, c@1s")
KINDS = {"csv": Csv, "jsonl": JsonLines, "parquet": Parquet}
UNKNOWN = (
    "exists and was not written by this command, or was edited; choose another --out, or pass --fresh to overwrite it"
)


def rows(first, last):
    times = np.arange(first, last) / 40
    return times, np.column_stack([np.sin(times), np.cos(times) / 3])


def expected(first, last):
    return np.column_stack(rows(first, last))


def read(path):
    readers = {".parquet": pq.read_table, ".csv": pyarrow.csv.read_csv, ".jsonl": pyarrow.json.read_json}
    table = readers[path.suffix](path)
    assert table.column_names == ["time", *NAMES]
    return np.column_stack([column.to_numpy() for column in table.columns])


def shown(folder):
    """The files that a user sees. The mark is hidden."""
    return [each.name for each in folder.iterdir() if not each.match(".out.*.predictions")]


def opened(path, **options):
    return open_output(str(path), NAMES, io.StringIO(), **options)


def write(out, *parts, killed=False):
    """Write parts of the rows, and close the output in good order, or leave it as a killed run does."""
    for first, last in parts:
        out.write(*rows(first, last))
        out.sync()
    out.abandon() if killed else out.close()


def resumed(path):
    return KINDS[path.suffix[1:]](path, NAMES)


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    monkeypatch.setattr(parquet_output, "PART_NUMBERS", 300)  # parts of 100 rows and more
    return request.param


@pytest.fixture
def path(kind, tmp_path):
    return tmp_path / f"out.{kind}"


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("kept", [0, 1, 100, 101, 330])
def test_rows_beyond_a_checkpoint_are_dropped(path, kept, killed):
    write(opened(path), (0, kept), (kept, 330), killed=killed)
    again = resumed(path)
    assert again.resume(kept, drop=True) == (330 - kept if kept else 0)  # a checkpoint without rows knows of no file
    write(again, (kept, 500))
    np.testing.assert_array_equal(read(path), expected(0, 500))
    assert shown(path.parent) == [path.name]


@pytest.mark.parametrize("kept", [0, 40, 250])
def test_rows_that_will_not_come_again_are_kept(path, kept):
    write(opened(path), (0, 330), killed=True)
    again = resumed(path)
    assert again.resume(kept, drop=False) == 330 - kept
    write(again, (400, 500))
    np.testing.assert_array_equal(read(path), np.vstack([expected(0, 330), expected(400, 500)]))


@pytest.mark.parametrize("drop", [True, False])
def test_a_checkpoint_without_rows_starts_from_scratch(path, drop):
    write(opened(path), (0, 330))
    again = resumed(path)
    assert again.resume(0, drop=drop) == 0
    write(again, (0, 5))
    np.testing.assert_array_equal(read(path), expected(0, 5))


@pytest.mark.parametrize("removed", range(4))
def test_it_may_be_killed_while_parts_are_removed(removed, monkeypatch, tmp_path):
    monkeypatch.setattr(parquet_output, "PART_NUMBERS", 300)
    path = tmp_path / "out.parquet"
    out = opened(path)
    for first in range(0, 400, 100):
        out.write(*rows(first, first + 100))

    def killed(folder):
        (folder / f"{removed:06}.parquet").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parquet_output, "_remove_parts", killed)
        with pytest.raises(KeyboardInterrupt):
            out.close()
    again = resumed(path)
    assert again.resume(400, drop=False) == 0
    write(again, (400, 450))
    np.testing.assert_array_equal(read(path), expected(0, 450))
    assert shown(tmp_path) == [path.name]


def test_lines_are_there_at_once(tmp_path):
    header, stream = 'time,a@1s,"b, c@1s"\n', io.StringIO()
    file, out = Csv(tmp_path / "out.csv", NAMES), Lines(stream, NAMES)
    for each in (file, out):
        each.write(*rows(0, 1))
    assert stream.getvalue() == header + "0.0,0.0,0.3333333333333333\n"
    assert (tmp_path / "out.csv").read_text().startswith(header)
    out.write(*rows(1, 2))
    assert stream.getvalue().count("time") == 1
    assert out.rows == 2
    file.abandon()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_incomplete_line_is_dropped(path):
    write(opened(path), (0, 3))
    path.write_bytes(path.read_bytes()[:-4])
    again = resumed(path)
    assert again.resume(1, drop=False) == 1
    again.close()
    np.testing.assert_array_equal(read(path), expected(0, 2))


def test_no_rows_make_no_file(path):
    write(opened(path))
    assert not path.exists()
    path.write_text('{"a": "diary"}\n')
    write(opened(path, fresh=True))
    assert path.read_text() == '{"a": "diary"}\n'
    assert not fitting_marks(path)


def test_other_columns_and_too_few_rows_are_refused(kind, path):
    for names, message in ((("other",), "other columns"), (NAMES, "50 rows, but 60")):
        out = KINDS[kind](path, names)
        times, values = rows(0, 50)
        out.write(times, values[:, : len(names)])
        out.close()
        before, again = path.read_bytes(), resumed(path)
        with pytest.raises(ValueError, match=message):
            again.resume(60, drop=True)
        again.abandon()
        assert path.read_bytes() == before


def test_the_last_time_that_is_there_is_known(path):
    write(opened(path), (0, 330), killed=True)
    for drop, last in ((False, 329 / 40), (True, 99 / 40)):
        again = resumed(path)
        again.resume(100, drop=drop)
        assert again.last_time == last
        again.abandon()


def test_the_path_says_what_it_is(tmp_path):
    names = {"a.txt": Csv, "a.pq": Parquet, "a.JSONL": JsonLines, "a.ndjson": JsonLines}
    paths = {None: Nowhere, "-": Lines, **{str(tmp_path / name): kind for name, kind in names.items()}}
    for path, wanted in paths.items():
        out = open_output(path, NAMES, io.StringIO())
        assert type(out) is wanted
        out.abandon()
    for bad in (tmp_path, tmp_path / "none" / "a.csv"):
        with pytest.raises(ValueError, match="folder"):
            opened(bad)
    before = sorted(tmp_path.iterdir())
    for name in ("a.xlsx", "a.json", "a.csv.gz"):
        with pytest.raises(ValueError, match=r"can be a \.csv, \.jsonl or \.parquet file, got"):
            opened(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


# --- What was there before ------------------------------------------------------------------------


def test_what_is_not_known_as_predictions_is_left_alone_and_replaced_only_when_asked(kind, path):
    """A table with the same columns, or any file with the first bytes of Parquet, may be somebody's work of years."""
    lookalikes = [b"PAR1 and more", b"time,a@1s\n0.0,1.0\n", b'time,a@1s,"b, c@1s"\n0.0,1.0,2.0\n']
    if kind == "parquet":
        pq.write_table(pa.table({name: [1.0] for name in ("time", *NAMES)}), path)
        lookalikes.append(path.read_bytes())
    for content in lookalikes:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=UNKNOWN):
            opened(path)
        out = opened(path, fresh=True)
        assert path.read_bytes() == content  # until there are rows to put in its place
        out.close()
        assert path.read_bytes() == content  # there were none
        write(opened(path, fresh=True), (0, 30))
        np.testing.assert_array_equal(read(path), expected(0, 30))


@pytest.mark.parametrize("killed", [False, True])
def test_predictions_are_known_and_replaced_when_there_are_new_ones(path, killed):
    write(opened(path), (0, 120), (120, 250), killed=killed)
    before = {each: each.read_bytes() for each in path.parent.rglob("*") if each.is_file()}
    again = opened(path)
    assert {each: each.read_bytes() for each in path.parent.rglob("*") if each.is_file()} == before
    write(again, (0, 20))
    np.testing.assert_array_equal(read(path), expected(0, 20))
    assert shown(path.parent) == [path.name]


def test_predictions_that_somebody_edited_are_not_ours_any_more(kind, path):
    write(opened(path), (0, 30))
    whole = path.read_bytes()
    edits = [b"Dear diary", b"PAR1"]
    if kind == "parquet":  # rewritten by another program, with the same schema and metadata
        table = pq.read_table(path)
        pq.write_table(table.set_column(1, table.schema.field(1), pa.array(np.zeros(30))), path)
        edits.append(path.read_bytes())
    else:
        edits += [whole + b"9.0,1.0,1.0\n", whole.replace(b"0.025", b"0.026", 1)]
    for content in edits:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=UNKNOWN):
            opened(path)
        assert path.read_bytes() == content
    path.write_bytes(whole)
    opened(path).abandon()


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("content", [b"", b"Dear diary", b'[{"bytes": 0}]'])
def test_a_file_of_somebody_else_in_the_place_of_the_mark_is_never_overwritten(path, content, fresh):
    place = path.with_name(f".{path.name}.predictions")
    place.write_bytes(content)
    with pytest.raises(ValueError, match=r"\.predictions exists and was not written by this command; move it away"):
        opened(path, fresh=fresh)
    assert place.read_bytes() == content
    assert not path.exists()


@pytest.mark.parametrize("folder", ["out.parquet.parts", "out.parquet.parts.old"])
@pytest.mark.parametrize("name", ["thesis.txt", "000000.parquet", "deep"])
def test_a_folder_with_files_of_somebody_else_is_never_removed(folder, name, tmp_path):
    place = tmp_path / folder / name
    place.parent.mkdir()
    place.mkdir() if name == "deep" else place.write_text("PAR1")
    for fresh in (False, True):
        with pytest.raises(ValueError, match=f"{name} is not a part of predictions, but {folder} would be used"):
            opened(tmp_path / "out.parquet", fresh=fresh)
    assert place.exists()


def test_a_merged_file_stays_while_a_resumed_run_adds_to_it(tmp_path):
    path = tmp_path / "out.parquet"
    write(opened(path), (0, 30))
    again = resumed(path)
    again.resume(30, drop=True)
    write(again, (30, 60), killed=True)
    np.testing.assert_array_equal(read(path), expected(0, 30))
    third = resumed(path)
    assert third.resume(60, drop=True) == 0
    third.close()
    np.testing.assert_array_equal(read(path), expected(0, 60))


def test_rows_that_a_full_disk_refused_are_written_when_there_is_room(path, monkeypatch):
    """A checkpoint that cannot be written does not end a run, and so no row may be lost when there are no more."""
    out = opened(path)
    out.write(*rows(0, 30))
    out.sync()
    out.write(*rows(30, 60))

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full, suppress(OSError):
        full.setattr(parquet_output, "write_whole", fail)
        out.sync()
    out.close()
    np.testing.assert_array_equal(read(path), expected(0, 60))


def test_closing_copies_one_group_of_rows_at_a_time(monkeypatch, tmp_path):
    """A year of predictions need not fit into memory."""
    monkeypatch.setattr(parquet_output, "PART_NUMBERS", 300_000)
    path, size = tmp_path / "out.parquet", 1_000_000
    parts = [(first, first + 100_000) for first in range(0, size, 100_000)]
    write(opened(path), *parts[:5])
    out = resumed(path)
    out.resume(size // 2, drop=True)
    for part in parts[5:]:
        out.write(*rows(*part))
    peaks, before, write_table = [], pa.total_allocated_bytes(), pq.ParquetWriter.write_table

    def watched(writer, table):
        peaks.append(pa.total_allocated_bytes() - before)
        write_table(writer, table)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", watched)
    out.close()
    assert pq.ParquetFile(path).metadata.num_rows == size
    assert max(peaks) < 16_000_000 < size * 24


def test_predictions_are_known_when_their_successor_was_killed_at_the_last_moment(tmp_path, monkeypatch):
    path, replace = tmp_path / "out.csv", os.replace
    write(opened(path), (0, 30))
    again = opened(path)

    def killed(beside, place):
        if place == path:
            raise KeyboardInterrupt
        replace(beside, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            again.write(*rows(0, 5))
    np.testing.assert_array_equal(read(path), expected(0, 30))
    opened(path).abandon()


def test_a_link_stays_a_link_but_is_refused_in_the_place_of_parts(kind, path, tmp_path):
    (tmp_path / "far").mkdir()
    path.symlink_to(tmp_path / "far" / f"real.{kind}")
    write(opened(path), (0, 20))
    assert path.is_symlink()
    np.testing.assert_array_equal(read(path), expected(0, 20))
    (tmp_path / "out.pq.parts").symlink_to(tmp_path / "far")
    with pytest.raises(ValueError, match=r"out.pq.parts is a link"):
        opened(tmp_path / "out.pq", fresh=True)


def test_a_pipe_or_a_device_is_refused(kind, tmp_path):
    """To wait for somebody who reads it would look as if the program hung."""
    os.mkfifo(tmp_path / f"pipe.{kind}")
    for path in (tmp_path / f"pipe.{kind}", "/dev/null"):
        with pytest.raises(ValueError, match=r"is not a file on a disk; .* use --out -"):
            opened(path, fresh=True)


# --- Times as they came in, and numbers that are missing ------------------------------------------

HOLES = np.array([[np.nan, 0.5], [1e-7, np.nan]])


def test_a_missing_number_is_an_empty_cell_or_null(tmp_path):
    written = {}
    for kind, output in KINDS.items():
        out = output(tmp_path / f"out.{kind}", NAMES)
        out.write(np.array([0.0, 1.5]), HOLES)
        out.close()
        written[kind] = (tmp_path / f"out.{kind}").read_bytes()
    assert written["csv"].decode() == 'time,a@1s,"b, c@1s"\n0.0,,0.5\n1.5,1e-07,\n'
    rows = [json.loads(line) for line in written["jsonl"].splitlines()]
    assert rows == [{"time": 0.0, "a@1s": None, "b, c@1s": 0.5}, {"time": 1.5, "a@1s": 1e-07, "b, c@1s": None}]
    np.testing.assert_array_equal(read(tmp_path / "out.parquet")[:, 1:], HOLES)
    assert [column.null_count for column in pq.read_table(tmp_path / "out.parquet").columns] == [0, 1, 1]


@pytest.mark.parametrize(
    ("style", "texts"),
    [
        (TimeStyle("ms"), ["1714564800250", "1714564801250"]),
        (TimeStyle(precision="ms", zone="+02:00"), ["2024-05-01T14:00:00.250+02:00", "2024-05-01T14:00:01.250+02:00"]),
        (TimeStyle(precision="ms", separator=" "), ["2024-05-01 12:00:00.250", "2024-05-01 12:00:01.250"]),
    ],
)
def test_times_are_written_in_the_style_of_the_source_and_read_back_when_resuming(kind, style, texts, tmp_path):
    path = tmp_path / f"out.{kind}"
    times = np.array([1714564800.25, 1714564801.25])
    for number, resuming in enumerate((False, True)):
        out = KINDS[kind](path, NAMES)
        out.style = style
        if resuming:
            assert out.resume(1, drop=True) == 0
            assert out.last_time == times[0]
        out.write(times[number : number + 1], HOLES[:1])
        out.close()
    if kind == "csv":
        assert [line.partition(",")[0] for line in path.read_text().splitlines()[1:]] == texts
    elif kind == "jsonl":
        stamps = [json.loads(line)["time"] for line in path.read_text().splitlines()]
        assert stamps == (texts if style.is_iso else [int(text) for text in texts])
    elif style.is_iso:
        column = pq.read_table(path)["time"]
        assert column.type == pa.timestamp("us", style.zone or None)
        moments = [datetime.fromisoformat(text) for text in texts]
        assert column.to_pylist() == moments
        assert [each.utcoffset() for each in column.to_pylist()] == [each.utcoffset() for each in moments]
    else:
        table = pq.read_table(path)
        assert table["time"].to_pylist() == times.tolist()
        assert table.schema.metadata[b"unit of time"] == b"s"


@pytest.mark.parametrize("name", ["a\nb", "a\rb"])
def test_names_of_columns_with_line_breaks_are_refused_in_csv(name, tmp_path):
    with pytest.raises(ValueError, match="has a line break; name another"):
        Csv(tmp_path / "a.csv", [name])
    assert list(tmp_path.iterdir()) == []
