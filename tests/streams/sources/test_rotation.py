"""Rotated logs that are followed: every row is read once, whatever happens to the names."""

import gzip
import json
import os
import shutil
import time

import pytest

from tests.streams.streams import wait_for
from trueonline.streams.sources import TextFile
from trueonline.streams.sources.positions import skipping
from trueonline.streams.sources.rotation import earlier_parts

HEAD = "time,a\n"


def rows(first, last):
    return "".join(f"{t},{t * t % 101}\n" for t in range(first, last))


def append(path, first, last):
    with open(path, "a", encoding="utf-8") as file:
        if not file.tell():
            file.write(HEAD)
        file.write(rows(first, last))


def renamed(path, create=True):
    """As logrotate does it: each part gets the next number, and the log becomes number 1."""
    for number in range(9, 0, -1):
        for end in ("", ".gz"):
            part = path.with_name(f"{path.name}.{number}{end}")
            if part.exists():
                part.rename(path.with_name(f"{path.name}.{number + 1}{end}"))
    path.rename(f"{path}.1")
    if create:
        path.touch()


def copied(path):
    """As logrotate's copytruncate does it."""
    shutil.copyfile(path, path.with_name(f"{path.name}-{20240501 + len(earlier_parts(path))}"))
    os.truncate(path, 0)


def packed(part):
    """As gzip does it: the time of the last change stays."""
    found = part.stat()
    other = part.with_name(f"{part.name}.gz")
    other.write_bytes(gzip.compress(part.read_bytes()))
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    part.unlink()


def follow(path):
    return TextFile(path, ["a"], time="time", follow=True)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEAD)
    return path


def test_a_writer_may_go_on_with_the_old_file_until_it_has_the_new_one(log):
    with open(log, "a", encoding="utf-8", buffering=1) as old, follow(log) as source:
        old.write(rows(0, 10))
        assert wait_for(source, 10)[0].tolist() == list(range(10))
        renamed(log)
        assert len(source.read(0.05)) == 0
        old.write(rows(10, 20))  # nobody has told it yet
        assert wait_for(source, 10)[0].tolist() == list(range(10, 20))
        old.write(rows(20, 25))
        append(log, 25, 30)
        assert wait_for(source, 10)[0].tolist() == list(range(20, 30))
        assert source.counters() == {"malformed": 0, "unterminated": 0, "truncated": 0, "replaced": 1}


def test_a_reader_that_is_far_behind_misses_no_part(log):
    append(log, 0, 10_000)
    with follow(log) as source:
        first = source.read(1.0)
        for begin in (10_000, 11_000, 12_000):
            time.sleep(0.02)  # times of change may be coarse
            renamed(log)
            append(log, begin, begin + 1000)
        packed(log.with_name("log.csv.2"))
        times, _ = wait_for(source, 13_000 - len(first))
        assert [*first.times, *times] == list(range(13_000))
        assert source.counters() == {"malformed": 0, "unterminated": 0, "truncated": 0, "replaced": 3}


def test_what_was_not_read_before_the_log_was_emptied_comes_from_the_copy(log):
    append(log, 0, 10)
    with follow(log) as source:
        wait_for(source, 10)
        append(log, 10, 20)
        with open(log, "a", encoding="utf-8") as file:
            file.write("20,")  # a row that is cut in two
        append(log.with_name("other.csv"), 0, 5)
        with open(log, "a", encoding="utf-8") as file:
            file.write("5\n")
        copied(log)
        append(log, 21, 25)
        assert wait_for(source, 15)[0].tolist() == list(range(10, 25))
        copied(log)  # and when nothing is left
        append(log, 25, 60)
        assert wait_for(source, 35)[0].tolist() == list(range(25, 60))
        assert source.counters() == {"malformed": 0, "unterminated": 0, "truncated": 1, "replaced": 1}


WAYS = {
    "renamed": renamed,
    "copied": copied,
    "renamed and packed": lambda path: (renamed(path), packed(path.with_name("log.csv.1"))),
}


@pytest.mark.parametrize("seen", [1, 1000])
@pytest.mark.parametrize("way", WAYS)
def test_a_reader_resumes_in_the_part_in_which_it_stopped(log, way, seen):
    append(log, 0, 1000)
    with follow(log) as source:
        block = source.read(1.0)
        assert len(block) == 1000
    with TextFile(log, ["a"], time="time") as whole:
        before = whole.position()
        position = json.loads(json.dumps(skipping({**before, "inode": log.stat().st_ino}, block, seen)))
    for begin in (1000, 1500):
        WAYS[way](log)
        time.sleep(0.02)
        append(log, begin, begin + 500)
    with follow(log) as source:
        source.seek(position)
        assert source.lost == ""
        assert wait_for(source, 2000 - seen)[0].tolist() == list(range(seen, 2000))
        assert len(source.read(0.05)) == 0
        again = source.position()
    renamed(log)
    append(log, 2000, 2010)
    with follow(log) as source:
        source.seek(again)
        assert wait_for(source, 10)[0].tolist() == list(range(2000, 2010))


def test_a_part_that_is_gone_is_said_and_the_new_log_is_read(log):
    append(log, 0, 100)
    with follow(log) as source:
        wait_for(source, 100)
        position = source.position()
    log.unlink()
    append(log, 200, 210)
    with TextFile(log, ["a"], time="time") as source, pytest.raises(ValueError, match="shorter than what was read"):
        source.seek(position)
    with follow(log) as source:
        source.seek(position)
        assert f"what was written to {log} after byte {position['offset']}" in source.lost
        assert wait_for(source, 10)[0].tolist() == list(range(200, 210))
        assert source.counters()["replaced"] == 1
        with pytest.raises(ValueError, match="the position is damaged: offset"):
            source.seek({**position, "offset": -1})


def test_which_names_are_parts_and_in_which_order(tmp_path):
    path = tmp_path / "log.csv"
    names = ["log.csv.10", "log.csv.2.gz", "log.csv-20240501", "log-20240502.csv", "log.csv.2024-05-03_12", "log.csv.1"]
    others = ["log.csv", "log.csv.bak", "log.csv.checkpoint", "log2.csv", "log.csv.1.gz", ".log.csv.1", "log.csv.1x"]
    for i, name in enumerate([*names, *others]):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (i, i))
    assert [part.name for part in earlier_parts(path)] == names  # log.csv.1.gz is log.csv.1 once more
    assert earlier_parts(tmp_path / "none" / "log.csv") == []


def test_what_a_rotation_lost_is_said(tmp_path):
    from click.testing import CliRunner

    from trueonline.cli import main

    log = tmp_path / "log.csv"
    append(log, 0, 100)
    options = ["predict", str(log), "--time", "time", "--target", "a", "--discount", "0.9", "--follow"]
    options += ["--checkpoint", str(tmp_path / "kept"), "--samples"]
    assert CliRunner().invoke(main, [*options, "100"]).exit_code == 0
    log.unlink()
    append(log, 150, 250)
    result = CliRunner().invoke(main, [*options, "200"])
    assert result.exit_code == 0
    assert f"Lost: what was written to {log} after byte" in result.stderr
    assert "Nothing is lost" not in result.stderr
