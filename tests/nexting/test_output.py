"""Predictions in files: what is written is read back, and a run that was killed resumes from its checkpoint."""

import io
import json
import os
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from trueonline.nexting import parquet_output
from trueonline.nexting.output import Nowhere, open_output
from trueonline.nexting.parquet_output import Parquet
from trueonline.nexting.sources import TimeStyle
from trueonline.nexting.text_output import Csv, JsonLines, Lines

NAMES = ("a@1s", "b, c@1s")
KINDS = {"csv": Csv, "jsonl": JsonLines, "parquet": Parquet}


def rows(first, last):
    times = np.arange(first, last) / 40
    return times, np.column_stack([np.sin(times), np.cos(times) / 3])


def read(path):
    readers = {".parquet": pq.read_table, ".csv": pyarrow.csv.read_csv, ".jsonl": pyarrow.json.read_json}
    table = readers[path.suffix](path)
    assert table.column_names == ["time", *NAMES]
    return np.column_stack([column.to_numpy() for column in table.columns])


def expected(first, last):
    times, values = rows(first, last)
    return np.column_stack([times, values])


def shown(folder):
    """The files that a user sees. The mark of text is hidden."""
    return [each.name for each in folder.iterdir() if each.name not in (".out.csv.predictions", ".out.jsonl.predictions")]


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    monkeypatch.setattr(parquet_output, "PART", 300)  # parts of 100 rows and more
    return request.param


def test_what_is_written_is_read_back(kind, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = KINDS[kind](path, NAMES)
    for first, last in ((0, 7), (7, 150), (150, 151), (151, 400)):
        out.write(*rows(first, last))
    assert out.rows == 400
    out.close()
    np.testing.assert_array_equal(read(path), expected(0, 400))
    assert shown(tmp_path) == [path.name]


@pytest.mark.parametrize("stopped", [True, False])  # in good order, or not
@pytest.mark.parametrize("kept", [0, 1, 40, 100, 101, 250, 330])
def test_rows_beyond_a_checkpoint_are_dropped(kind, kept, stopped, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = KINDS[kind](path, NAMES)
    out.write(*rows(0, kept))
    out.sync()
    out.write(*rows(kept, 330))
    out.sync()
    out.close() if stopped else out.abandon()
    again = KINDS[kind](path, NAMES, resuming=True)
    assert again.resume(kept, drop=True) == (330 - kept if kept else 0)  # a checkpoint without rows knows of no file
    again.write(*rows(kept, 500))
    again.close()
    np.testing.assert_array_equal(read(path), expected(0, 500))
    assert shown(tmp_path) == [path.name]


@pytest.mark.parametrize("removed", range(4))
def test_it_may_be_killed_while_parts_are_removed(removed, monkeypatch, tmp_path):
    monkeypatch.setattr(parquet_output, "PART", 300)
    path = tmp_path / "out.parquet"
    out = Parquet(path, NAMES)
    for first in range(0, 400, 100):
        out.write(*rows(first, first + 100))

    def killed(folder):
        (folder / f"{removed:06}.parquet").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parquet_output, "_remove_parts", killed)
        with pytest.raises(KeyboardInterrupt):
            out.close()
    again = Parquet(path, NAMES, resuming=True)
    assert again.resume(400, drop=False) == 0
    again.write(*rows(400, 450))
    again.close()
    np.testing.assert_array_equal(read(path), expected(0, 450))
    assert shown(tmp_path) == [path.name]


def test_what_is_written_first_is_there_at_once(tmp_path):
    out = Csv(tmp_path / "out.csv", NAMES)
    out.write(*rows(0, 1))
    assert (tmp_path / "out.csv").read_text().startswith("time,")
    out.abandon()


@pytest.mark.parametrize("kept", [0, 40, 250])
def test_rows_that_will_not_come_again_are_kept(kind, kept, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = KINDS[kind](path, NAMES)
    out.write(*rows(0, 330))
    out.sync()
    out.abandon()
    again = KINDS[kind](path, NAMES, resuming=True)
    assert again.resume(kept, drop=False) == 330 - kept
    again.write(*rows(400, 500))
    again.close()
    np.testing.assert_array_equal(read(path), np.vstack([expected(0, 330), expected(400, 500)]))


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_incomplete_line_is_dropped(kind, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = KINDS[kind](path, NAMES)
    out.write(*rows(0, 3))
    out.close()
    path.write_bytes(path.read_bytes()[:-4])
    again = KINDS[kind](path, NAMES, resuming=True)
    assert again.resume(1, drop=False) == 1
    again.close()
    np.testing.assert_array_equal(read(path), expected(0, 2))


def test_a_run_from_scratch_replaces_what_was_there(kind, tmp_path):
    path = tmp_path / f"out.{kind}"
    for last in (350, 20):
        out = KINDS[kind](path, NAMES)
        out.write(*rows(0, last))
        out.sync()
        out.close() if last == 20 else out.abandon()
    np.testing.assert_array_equal(read(path), expected(0, 20))


def test_no_rows_make_an_empty_table(kind, tmp_path):
    path = tmp_path / f"out.{kind}"
    KINDS[kind](path, NAMES).close()
    assert path.exists()
    if kind == "parquet":
        assert read(path).shape == (0, 3)
    else:
        assert path.read_text() == {"csv": 'time,a@1s,"b, c@1s"\n', "jsonl": ""}[kind]
        path.write_text('{"a": "diary"}\n')
        assert not KINDS[kind].holds_predictions(path)


def test_other_files_are_left_alone(kind, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = KINDS[kind](path, ("other",))
    times, values = rows(0, 50)
    out.write(times, values[:, :1])
    out.close()
    before = path.read_bytes()
    again = KINDS[kind](path, NAMES, resuming=True)
    with pytest.raises(ValueError, match="other columns"):
        again.resume(10, drop=True)
    again.abandon()
    assert path.read_bytes() == before


def test_too_few_rows_are_refused(kind, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = KINDS[kind](path, NAMES)
    out.write(*rows(0, 50))
    out.close()
    again = KINDS[kind](path, NAMES, resuming=True)
    with pytest.raises(ValueError, match=r"50 rows, but 60"):
        again.resume(60, drop=True)
    again.abandon()


def test_lines_are_printed_as_they_come():
    stream = io.StringIO()
    out = Lines(stream, NAMES)
    out.write(*rows(0, 1))
    assert stream.getvalue() == 'time,a@1s,"b, c@1s"\n0.0,0.0,0.3333333333333333\n'
    out.write(*rows(1, 2))
    assert stream.getvalue().count("time") == 1
    assert out.rows == 2


@pytest.mark.parametrize("name", ["a.xlsx", "a.json", "a.csv.gz"])
def test_a_format_that_is_not_written_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"can be a \.csv, \.jsonl or \.parquet file, got"):
        open_output(str(tmp_path / name), NAMES, io.StringIO())
    assert list(tmp_path.iterdir()) == []


def test_the_path_says_what_it_is(tmp_path):
    names = {"a.txt": Csv, "a.pq": Parquet, "a.JSONL": JsonLines, "a.ndjson": JsonLines}
    for path, wanted in {
        None: Nowhere,
        "-": Lines,
        **{str(tmp_path / name): kind for name, kind in names.items()},
    }.items():
        out = open_output(path, NAMES, io.StringIO(), False)
        assert type(out) is wanted
        out.abandon()
    for bad in (tmp_path, tmp_path / "none" / "a.csv"):
        with pytest.raises(ValueError, match="folder"):
            open_output(str(bad), NAMES, io.StringIO(), False)


# --- What was there before ------------------------------------------------------------------------


def test_what_is_not_known_as_predictions_is_left_alone_and_replaced_only_when_asked(kind, tmp_path):
    """A table with the same columns, or any file with the first bytes of Parquet, may be somebody's work of years."""
    path = tmp_path / f"out.{kind}"
    lookalikes = [b"PAR1 and more", b"time,a@1s\n0.0,1.0\n", b'time,a@1s,"b, c@1s"\n0.0,1.0,2.0\n']
    if kind == "parquet":
        table = pa.table({name: [1.0] for name in ("time", *NAMES)})
        pq.write_table(table, path)
        lookalikes.append(path.read_bytes())
    for content in lookalikes:
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"not known as predictions of an earlier run; name another file, or .*--fresh"
        ):
            open_output(str(path), NAMES, io.StringIO())
        out = open_output(str(path), NAMES, io.StringIO(), fresh=True)
        assert path.read_bytes() == content  # until there are rows to put in its place
        out.close()
        assert path.read_bytes() == content  # there were none
        out = open_output(str(path), NAMES, io.StringIO(), fresh=True)
        out.write(*rows(0, 30))
        out.close()
        np.testing.assert_array_equal(read(path), expected(0, 30))


@pytest.mark.parametrize("ended", ["closed", "killed"])
def test_predictions_are_known_and_replaced_when_there_are_new_ones(kind, ended, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = open_output(str(path), NAMES, io.StringIO())
    out.write(*rows(0, 250))
    out.close() if ended == "closed" else out.abandon()
    before = path.read_bytes() if path.exists() else None
    again = open_output(str(path), NAMES, io.StringIO())
    assert (path.read_bytes() if path.exists() else None) == before
    again.write(*rows(0, 20))
    again.close()
    np.testing.assert_array_equal(read(path), expected(0, 20))
    assert shown(tmp_path) == [path.name]


def test_predictions_that_somebody_edited_are_not_ours_any_more(tmp_path):
    path = tmp_path / "out.csv"
    out = open_output(str(path), NAMES, io.StringIO())
    out.write(*rows(0, 25))
    out.close()
    for edited in (path.read_text() + "9.0,1.0,1.0\n", path.read_text().replace("0.025", "0.026", 1)):
        whole = path.read_text()
        path.write_text(edited)
        with pytest.raises(ValueError, match="not known as predictions"):
            open_output(str(path), NAMES, io.StringIO())
        path.write_text(whole)
    open_output(str(path), NAMES, io.StringIO()).abandon()


@pytest.mark.parametrize("folder", ["out.parquet.parts", "out.parquet.parts.old"])
@pytest.mark.parametrize("name", ["thesis.txt", "000000.parquet", "deep"])
def test_a_folder_with_files_of_somebody_else_is_never_removed(folder, name, tmp_path):
    place = tmp_path / folder
    place.mkdir()
    if name == "deep":
        (place / name).mkdir()
    else:
        (place / name).write_text("PAR1")
    for fresh in (False, True):
        with pytest.raises(ValueError, match=f"{name} is not a part of predictions, but {folder} would be used"):
            open_output(str(tmp_path / "out.parquet"), NAMES, io.StringIO(), fresh=fresh)
    assert (place / name).exists()


def test_parts_of_a_run_without_checkpoint_stay_until_there_are_new_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(parquet_output, "PART", 300)
    path = tmp_path / "out.parquet"
    out = open_output(str(path), NAMES, io.StringIO())
    out.write(*rows(0, 120))
    out.write(*rows(120, 250))
    out.abandon()
    parts = sorted(each.name for each in (tmp_path / "out.parquet.parts").iterdir())
    assert len(parts) == 2
    again = open_output(str(path), NAMES, io.StringIO())
    assert sorted(each.name for each in (tmp_path / "out.parquet.parts").iterdir()) == parts
    again.write(*rows(0, 10))
    again.sync()
    assert [each.name for each in (tmp_path / "out.parquet.parts").iterdir()] == ["000000.parquet"]
    again.close()
    np.testing.assert_array_equal(read(path), expected(0, 10))


def test_a_merged_file_stays_while_a_resumed_run_adds_to_it(tmp_path):
    path = tmp_path / "out.parquet"
    out = Parquet(path, NAMES)
    out.write(*rows(0, 30))
    out.close()
    again = Parquet(path, NAMES, resuming=True)
    again.resume(30, drop=True)
    again.write(*rows(30, 60))
    again.sync()
    np.testing.assert_array_equal(read(path), expected(0, 30))
    again.abandon()
    third = Parquet(path, NAMES, resuming=True)
    assert third.resume(60, drop=True) == 0
    third.close()
    np.testing.assert_array_equal(read(path), expected(0, 60))


def test_closing_copies_one_group_of_rows_at_a_time(monkeypatch, tmp_path):
    """A year of predictions need not fit into memory."""
    monkeypatch.setattr(parquet_output, "PART", 300_000)
    path = tmp_path / "out.parquet"
    for first in range(0, 2_000_000, 500_000):
        out = Parquet(path, NAMES, resuming=first > 0)
        if first:
            out.resume(first, drop=True)
        for at in range(first, first + 500_000, 100_000):
            out.write(*rows(at, at + 100_000))
        if first < 1_500_000:
            out.close()
    peaks, before, write = [], pa.total_allocated_bytes(), pq.ParquetWriter.write_table

    def watched(writer, table):
        peaks.append(pa.total_allocated_bytes() - before)
        write(writer, table)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", watched)
    out.close()
    assert pq.ParquetFile(path).metadata.num_rows == 2_000_000
    assert max(peaks) < 16_000_000 < 2_000_000 * 24


def test_a_resumed_run_too_knows_its_file_by_the_mark(kind, tmp_path):
    """A checkpoint without rows, or a file that somebody edited, must not cost what is in the file."""
    path = tmp_path / f"out.{kind}"
    out = open_output(str(path), NAMES, io.StringIO())
    out.write(*rows(0, 30))
    out.close()
    whole = path.read_bytes()
    open_output(str(path), NAMES, io.StringIO(), resuming=True).abandon()
    for content in (b"Dear diary", b"PAR1" if kind == "parquet" else whole + b"9.0,1.0,1.0\n"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not known as predictions of an earlier run"):
            open_output(str(path), NAMES, io.StringIO(), resuming=True)
        assert path.read_bytes() == content


def test_predictions_are_known_when_their_successor_was_killed_at_the_last_moment(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    out = open_output(str(path), NAMES, io.StringIO())
    out.write(*rows(0, 30))
    out.close()
    again = open_output(str(path), NAMES, io.StringIO())
    replace = os.replace

    def killed(beside, place):
        if place == path:
            raise KeyboardInterrupt
        replace(beside, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            again.write(*rows(0, 5))
    np.testing.assert_array_equal(read(path), expected(0, 30))
    open_output(str(path), NAMES, io.StringIO()).abandon()


def test_a_link_in_the_place_of_parts_is_refused(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "out.parquet.parts").symlink_to(tmp_path / "far")
    with pytest.raises(ValueError, match=r"out.parquet.parts is a link"):
        open_output(str(tmp_path / "out.parquet"), NAMES, io.StringIO(), fresh=True)


def test_a_link_stays_a_link(kind, tmp_path):
    (tmp_path / "far").mkdir()
    path = tmp_path / f"out.{kind}"
    path.symlink_to(tmp_path / "far" / f"real.{kind}")
    out = open_output(str(path), NAMES, io.StringIO())
    out.write(*rows(0, 20))
    out.close()
    assert path.is_symlink()
    np.testing.assert_array_equal(read(path), expected(0, 20))


def test_a_pipe_or_a_device_is_refused(kind, tmp_path):
    """To wait for somebody who reads it would look as if the program hung."""
    os.mkfifo(tmp_path / f"pipe.{kind}")
    for path in (tmp_path / f"pipe.{kind}", "/dev/null"):
        with pytest.raises(ValueError, match=r"is not a file on a disk; .* use --out -"):
            open_output(str(path), NAMES, io.StringIO(), fresh=True)


@pytest.mark.parametrize("drop", [True, False])
def test_a_checkpoint_without_rows_starts_from_scratch(kind, drop, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = KINDS[kind](path, NAMES)
    out.write(*rows(0, 330))
    out.close()
    again = KINDS[kind](path, NAMES, resuming=True)
    assert again.resume(0, drop=drop) == 0
    again.write(*rows(0, 5))
    again.close()
    np.testing.assert_array_equal(read(path), expected(0, 5))


def test_the_last_time_that_is_there_is_known(kind, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = KINDS[kind](path, NAMES)
    out.write(*rows(0, 330))
    out.sync()
    out.abandon()
    for drop, last in ((False, 329 / 40), (True, 99 / 40)):
        again = KINDS[kind](path, NAMES, resuming=True)
        again.resume(100, drop=drop)
        assert again.last_time == last
        again.abandon()


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
        out = KINDS[kind](path, NAMES, resuming)
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
