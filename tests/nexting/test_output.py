"""Predictions in files: what is written is read back, and a run that was killed resumes from its checkpoint."""

import io

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from trueonline.nexting import output
from trueonline.nexting.output import Csv, Lines, Nowhere, Parquet, open_output

NAMES = ("a@1s", "b, c@1s")
KINDS = {"csv": Csv, "parquet": Parquet}


def rows(first, last):
    times = np.arange(first, last) / 40
    return times, np.column_stack([np.sin(times), np.cos(times) / 3])


def read(path):
    table = pq.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
    assert table.column_names == ["time", *NAMES]
    return np.column_stack([column.to_numpy() for column in table.columns])


def expected(first, last):
    times, values = rows(first, last)
    return np.column_stack([times, values])


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    monkeypatch.setattr(output, "PART", 300)  # parts of 100 rows and more
    return request.param


def test_what_is_written_is_read_back(kind, tmp_path):
    path = tmp_path / f"out.{kind}"
    out = KINDS[kind](path, NAMES)
    for first, last in ((0, 7), (7, 150), (150, 151), (151, 400)):
        out.write(*rows(first, last))
    assert out.rows == 400
    out.close()
    np.testing.assert_array_equal(read(path), expected(0, 400))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


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
    assert again.resume(kept, drop=True) == 330 - kept
    again.write(*rows(kept, 500))
    again.close()
    np.testing.assert_array_equal(read(path), expected(0, 500))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("removed", range(4))
def test_it_may_be_killed_while_parts_are_removed(removed, monkeypatch, tmp_path):
    monkeypatch.setattr(output, "PART", 300)
    path = tmp_path / "out.parquet"
    out = Parquet(path, NAMES)
    for first in range(0, 400, 100):
        out.write(*rows(first, first + 100))

    def killed(folder, *_):
        (folder / f"{removed:06}.parquet").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(output.shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            out.close()
    again = Parquet(path, NAMES, resuming=True)
    assert again.resume(400, drop=False) == 0
    again.write(*rows(400, 450))
    again.close()
    np.testing.assert_array_equal(read(path), expected(0, 450))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_what_is_written_first_is_there_at_once(tmp_path):
    out = Csv(tmp_path / "out.csv", NAMES)
    out.sync()
    assert (tmp_path / "out.csv").read_text().startswith("time,")
    out.close()


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


def test_an_incomplete_line_is_dropped(tmp_path):
    path = tmp_path / "out.csv"
    out = Csv(path, NAMES)
    out.write(*rows(0, 3))
    out.close()
    path.write_bytes(path.read_bytes()[:-4])
    again = Csv(path, NAMES, resuming=True)
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
        assert path.read_text() == 'time,a@1s,"b, c@1s"\n'


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


def test_the_path_says_what_it_is(tmp_path):
    for path, wanted in ((None, Nowhere), ("-", Lines), (tmp_path / "a.txt", Csv), (tmp_path / "a.pq", Parquet)):
        out = open_output(path and str(path), NAMES, io.StringIO(), False)
        assert type(out) is wanted
        out.abandon()
    for bad in (tmp_path, tmp_path / "none" / "a.csv"):
        with pytest.raises(ValueError, match="folder"):
            open_output(str(bad), NAMES, io.StringIO(), False)
