"""Alerts: on the terminal, in a file, and what a crash does to them."""

import json
import random
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from tests.processes import start, wait_for
from tests.streams import surprising
from trueonline.cli import main
from trueonline.streams.predictor import Predictor

KEYS = ["time", "surprise", "question", "target", "value", "expected", "error", "usual_error"]


@pytest.fixture(autouse=True)
def _surprised(monkeypatch):
    monkeypatch.setattr(Predictor, "learn", surprising.surprised)


def log(path, size, spikes, stamp=None):
    """A quiet signal x with spikes of 10 at some rows, and of 9.99 at the rows behind them."""
    values = dict.fromkeys(spikes, 10.0) | {row + 1: 9.99 for row in spikes}
    path.write_text(
        "time,x\n"
        + "".join(f"{stamp.format(t) if stamp else 1397392500 + t},{values.get(t, t % 3)}\n" for t in range(size))
    )
    return path


def command(source, *more):
    options = ["--rate", 1, "--time", "time", "--target", "x", "--discount", "0.5,0.9", "--method", "true_online", *more]
    return ["predict", *map(str, (source, *options))]


def predict(source, *more, fails=False):
    result = CliRunner().invoke(main, command(source, *more))
    assert (result.exit_code != 0) == fails, result.output
    return result.stderr


def alerts(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_alerts_are_told_and_written(tmp_path):
    source, file = log(tmp_path / "log.csv", 100, [0, 30, 40, 99]), tmp_path / "alerts.jsonl"
    said = predict(source, "--alerts", file)
    told = alerts(file)
    assert [each["time"] - 1397392500 for each in told] == [0, 1, 30, 31, 40, 41, 99]
    assert all([*each] == KEYS for each in told)
    assert told[0] == dict(zip(KEYS, (1397392500.0, 1.0, "x@0.9", "x", 10.0, 0.0, 10.0, 1.5), strict=True))
    assert told[1]["surprise"] == pytest.approx(0.999)
    lines = said.splitlines()
    assert lines[0] == "2014-04-13 12:35  surprise 1  x 10, expected 0 (x@0.9): 6.67 times the usual error"
    assert lines[1] == "2014-04-13 12:35:01  surprise 0.999  x 9.99, expected 0 (x@0.9): 6.66 times the usual error"
    only = [line for line in predict(source, "--alert", 1).splitlines() if "surprise" in line]
    assert len(only) == 4  # at or above
    assert "surprise" not in predict(source)


@pytest.mark.parametrize(
    ("options", "stamp", "time", "words"),
    [
        ([], "2014-04-13T14:35:{:02}+02:00", "2014-04-13T14:35:05+02:00", "2014-04-13T14:35:05+02:00"),
        (["--time-unit", "ms"], "13973925{:02}250", 1397392505250, "2014-04-13 12:35:05.250"),
        (["--time-format", "%d.%m.%Y %H:%M:%S"], "13.04.2014 12:35:{:02}", "2014-04-13T12:35:05", "2014-04-13T12:35:05"),
    ],
)
def test_alerts_have_times_as_they_came_in_and_know_them_again(tmp_path, options, stamp, time, words):
    source, file, kept = log(tmp_path / "log.csv", 60, [5, 20, 40], stamp), tmp_path / "alerts", tmp_path / "kept"
    more = (*options, "--alerts", file, "--checkpoint", kept)
    said = predict(source, *more, "--samples", 10)
    assert said.startswith(f"{words}  surprise 1  x 10, expected 0")
    assert alerts(file)[0]["time"] == time
    saved = kept.read_bytes()
    predict(source, *more)
    whole = file.read_bytes()
    kept.write_bytes(saved)
    assert "expected" not in predict(source, *more)  # they are in the file
    assert file.read_bytes() == whole
    kept.write_bytes(saved)
    file.write_bytes(whole[:-200])
    predict(source, *more)
    assert file.read_bytes() == whole
    assert len(alerts(file)) == 6


def test_the_file_is_only_appended_to(tmp_path):
    source, file = log(tmp_path / "log.csv", 100, [5, 50]), tmp_path / "alerts.jsonl"
    predict(source, "--alerts", file)
    before = file.read_bytes()
    assert "surprise" not in predict(source, "--alerts", file)  # the same alerts are there already
    assert file.read_bytes() == before
    predict(source, "--alerts", file, "--alert", 0.2)
    assert file.read_bytes().startswith(before)
    other = log(tmp_path / "other.csv", 100, [7])
    more = file.read_bytes()
    predict(other, "--alerts", file, "--alert", 1)
    assert file.read_bytes().startswith(more)
    assert alerts(file)[-1]["time"] == 1397392507.0
    predict(other, "--alerts", file, "--alert", 1, "--fresh")
    assert [each["time"] for each in alerts(file)] == [1397392507.0]


@pytest.mark.parametrize("content", ["dear diary\n", '{"time": 1}\n', "[1]\n", "no line break", "\n"])
def test_a_file_that_is_not_ours_is_refused(tmp_path, content):
    source, file = log(tmp_path / "log.csv", 20, [5]), tmp_path / "diary"
    file.write_text(content)
    said = predict(source, "--alerts", file, fails=True)
    assert "does not hold alerts; choose another --alerts, or pass --fresh to overwrite it" in said
    assert file.read_text() == content
    (tmp_path / "empty.csv").write_text("time,x\n")
    predict(tmp_path / "empty.csv", "--alerts", file, "--fresh", fails=True)  # there is no sample
    assert file.read_text() == content
    predict(source, "--alerts", file, "--fresh")
    assert len(alerts(file)) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--alert", 0], "--alert must be in (0, 1], got 0"),
        (["--alert", 1.5], "--alert must be in (0, 1], got 1.5"),
        (["--alert", "nan"], "--alert must be in (0, 1]"),
        (["--alerts", "{log}"], "the source and --alerts are one file"),
        (["--alerts", "{log}.out", "--out", "{log}.out"], "--out and --alerts are one file"),
        (["--alerts", "/none/x"], "there is no folder /none"),
    ],
)
def test_bad_options_are_refused(tmp_path, options, said):
    source = log(tmp_path / "log.csv", 20, [5])
    assert said in predict(source, *[str(option).format(log=source) for option in options], fails=True)


# --- Crashes --------------------------------------------------------------------------------------


def test_a_file_cut_off_anywhere_after_the_checkpoint_is_completed(tmp_path):
    """What a crash leaves: more lines than the checkpoint knows of, and a part of one."""
    source = log(tmp_path / "log.csv", 400, range(10, 390, 7))
    whole, file, kept = tmp_path / "whole", tmp_path / "alerts", tmp_path / "kept"
    predict(source, "--alerts", whole)
    expected = whole.read_bytes()
    predict(source, "--alerts", file, "--checkpoint", kept, "--samples", 151)
    known, saved = file.read_bytes(), kept.read_bytes()
    assert expected.startswith(known)
    assert 0 < len(known) < len(expected)
    draw = random.Random(1)
    for _ in range(12):
        cut = draw.randrange(len(known), len(expected) + 1)
        file.write_bytes(expected[:cut])
        kept.write_bytes(saved)
        if draw.random() < 0.5:  # one more checkpoint on the way, before all is made again
            predict(source, "--alerts", file, "--checkpoint", kept, "--samples", 151 + draw.randrange(200))
            assert file.read_bytes().startswith(expected[:cut])
        predict(source, "--alerts", file, "--checkpoint", kept)
        assert file.read_bytes() == expected
    file.write_bytes(known[:-1])
    kept.write_bytes(saved)
    assert "were written to it; name another file for --alerts" in predict(
        source, "--alerts", file, "--checkpoint", kept, fails=True
    )
    file.write_bytes(expected[: len(known) + 30])
    kept.write_bytes(saved)
    predict(source, "--alerts", file, "--checkpoint", kept, "--alert", 1)  # another threshold: the cut line stands alone
    lines = file.read_bytes().splitlines()
    assert [line for line in lines if line not in expected.splitlines()] == [expected[len(known) : len(known) + 30]]
    assert len(lines) == len(set(lines))


def test_kill_9_loses_no_alert_and_writes_none_twice(tmp_path):
    source = log(tmp_path / "log.csv", 6000, range(10, 5990, 9))
    predict(source, "--alerts", tmp_path / "whole")
    file, kept = tmp_path / "alerts", tmp_path / "kept"
    more = command(source, "--alerts", file, "--checkpoint", kept, "--every", 0.05)
    program = [sys.executable, "-m", "tests.streams.surprising", *more]
    process = start([*program, "--pace", "400"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: kept.exists() and file.exists() and file.stat().st_size > 0, "alert after a checkpoint")
    time.sleep(0.4 * random.Random(0).random())
    assert process.poll() is None
    process.kill()
    process.wait()
    before = file.read_bytes()
    predict(source, "--alerts", file, "--checkpoint", kept)
    assert file.read_bytes().startswith(before)
    assert file.read_bytes() == (tmp_path / "whole").read_bytes()
