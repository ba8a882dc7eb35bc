"""Alerts: on the terminal, in a file, and what a crash does to them."""

import json
import random
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from tests.processes import start, wait_for
from tests.streams import surprising
from trueonline.cli import main
from trueonline.streams.predictor import Predictor

KEYS = ["time", "state", "peak", "end", "severity", "surprise", "question", "target", "reason"]
KEYS += ["value", "expected", "error", "usual_error"]
HOUR = 3600
BEGIN = 1397392500  # 2014-04-13 12:35


@pytest.fixture(autouse=True)
def _surprised(monkeypatch):
    monkeypatch.setattr(Predictor, "learn", surprising.surprised)


def log(path, size, spikes, stamp=None):
    """A quiet signal x, a sample an hour, with spikes of 10 at some rows, and of 9.99 at the rows behind them."""
    values = dict.fromkeys(spikes, 10.0) | {row + 1: 9.99 for row in spikes}
    times = [stamp(datetime.fromtimestamp(BEGIN + HOUR * t, UTC)) if stamp else BEGIN + HOUR * t for t in range(size)]
    path.write_text("time,x\n" + "".join(f"{time},{values.get(t, t % 3)}\n" for t, time in enumerate(times)))
    return path


def command(source, *more):
    options = [
        "--rate",
        "1/3600",
        "--time",
        "time",
        "--target",
        "x",
        "--discount",
        "0.5,0.9",
        "--method",
        "true_online",
        *more,
    ]
    return ["predict", *map(str, (source, *options))]


def predict(source, *more, fails=False):
    result = CliRunner().invoke(main, command(source, *more))
    assert (result.exit_code != 0) == fails, result.output
    return result.stderr


def alerts(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_incident_is_told_when_it_begins_and_when_it_is_over(tmp_path):
    source, file = log(tmp_path / "log.csv", 100, [0, 30, 40, 99]), tmp_path / "alerts.jsonl"
    said = predict(source, "--alerts", file)
    told = alerts(file)
    rows = [((each["time"] - BEGIN) / HOUR, each["state"], (each["end"] - BEGIN) / HOUR) for each in told]
    assert rows == [(0, "begun", 0), (0, "over", 1), (30, "begun", 30), (30, "over", 41), (99, "begun", 99)]
    assert all([*each] == KEYS for each in told)
    values = (BEGIN, "begun", BEGIN, BEGIN, 16.0, 1.0, "x@0.9", "x", "", 10.0, 0.0, 10.0, 1.5)
    assert told[0] == dict(zip(KEYS, values, strict=True))
    assert all(each["error"] == each["value"] - each["expected"] for each in told)
    lines = said.splitlines()
    assert lines[0] == "2014-04-13 12:35  surprise 1  x 10, expected 0 (x@0.9): 6.67 times the usual error"
    assert lines[1] == "2014-04-13 12:35  over since 2014-04-13 13:35, peak 2014-04-13 12:35, severity 16.0 (x@0.9): "
    assert "surprise" not in predict(source)


def test_the_peak_is_the_most_unusual_sample_and_what_comes_again_and_again_is_one_incident(tmp_path):
    source, file = tmp_path / "log.csv", tmp_path / "alerts.jsonl"
    odd = {100 + 2**k: 9.96 + 0.001 * k for k in range(8)} | {120: 9.99}  # each as late again as the incident has lasted
    values = [odd.get(t, 0.0) for t in range(600)]
    source.write_text("time,x\n" + "".join(f"{BEGIN + HOUR * t},{x}\n" for t, x in enumerate(values)))
    predict(source, "--alerts", file)
    (begun, over) = alerts(file)
    assert [begun["state"], over["state"]] == ["begun", "over"]
    assert [(over[name] - BEGIN) / HOUR for name in ("time", "peak", "end")] == [101, 120, 228]
    assert (over["value"], over["surprise"], over["severity"]) == (9.99, pytest.approx(0.999), pytest.approx(3.0))


@pytest.mark.parametrize(
    ("options", "stamp", "time", "words"),
    [
        ([], lambda t: t.strftime("%FT%T+02:00"), "2014-04-13T17:35:00+02:00", "2014-04-13T17:35:00+02:00"),
        (["--time-unit", "ms"], lambda t: f"{t.timestamp():.0f}250", 1397410500250, "2014-04-13 17:35:00.250"),
        (
            ["--time-format", "%d.%m.%Y %H:%M:%S"],
            lambda t: t.strftime("%d.%m.%Y %H:%M:%S"),
            "2014-04-13T17:35:00",
            "2014-04-13T17:35:00",
        ),
    ],
)
def test_alerts_have_times_as_they_came_in_and_know_them_again(tmp_path, options, stamp, time, words):
    source, file, kept = log(tmp_path / "log.csv", 100, [5, 40], stamp), tmp_path / "alerts", tmp_path / "kept"
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
    assert [each["state"] for each in alerts(file)] == ["begun", "over"] * 2


def test_the_file_is_only_appended_to(tmp_path):
    source, file = log(tmp_path / "log.csv", 100, [5, 50]), tmp_path / "alerts.jsonl"
    predict(source, "--alerts", file)
    before = file.read_bytes()
    assert len(alerts(file)) == 4
    assert "surprise" not in predict(source, "--alerts", file)  # the same alerts are there already
    assert file.read_bytes() == before
    predict(source, "--alerts", file, "--alert", 0.2)
    assert file.read_bytes().startswith(before)
    other = log(tmp_path / "other.csv", 100, [7])
    more = file.read_bytes()
    predict(other, "--alerts", file, "--alert", 1)
    assert file.read_bytes().startswith(more)
    assert alerts(file)[-1]["time"] == BEGIN + 7 * HOUR
    predict(other, "--alerts", file, "--alert", 1, "--fresh")
    assert [each["time"] for each in alerts(file)] == [BEGIN + 7 * HOUR]


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
    assert [each["state"] for each in alerts(file)] == ["begun"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--alert", 0], "0.0 is not in the range 0.0<x<=1.0"),
        (["--alert", 1.5], "1.5 is not in the range"),
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
    source = log(tmp_path / "log.csv", 900, range(10, 890, 30))
    whole, file, kept = tmp_path / "whole", tmp_path / "alerts", tmp_path / "kept"
    predict(source, "--alerts", whole)
    expected = whole.read_bytes()
    predict(source, "--alerts", file, "--checkpoint", kept, "--samples", 451)
    known, saved = file.read_bytes(), kept.read_bytes()
    assert expected.startswith(known)
    assert 0 < len(known) < len(expected)
    draw = random.Random(1)
    for _ in range(12):
        cut = draw.randrange(len(known), len(expected) + 1)
        file.write_bytes(expected[:cut])
        kept.write_bytes(saved)
        if draw.random() < 0.5:  # one more checkpoint on the way, before all is made again
            predict(source, "--alerts", file, "--checkpoint", kept, "--samples", 451 + draw.randrange(200))
            assert file.read_bytes().startswith(expected[:cut])
        predict(source, "--alerts", file, "--checkpoint", kept)
        assert file.read_bytes() == expected
    file.write_bytes(known[:-1])
    kept.write_bytes(saved)
    assert "were written to it; name another file for --alerts" in predict(
        source, "--alerts", file, "--checkpoint", kept, fails=True
    )
    cut = expected.rindex(b'"over"') + 6  # no incident has a second sample beyond another threshold
    file.write_bytes(expected[:cut])
    kept.write_bytes(saved)
    predict(source, "--alerts", file, "--checkpoint", kept, "--alert", 1)  # another threshold: the cut line stands alone
    lines = file.read_bytes().splitlines()
    assert [line for line in lines if line not in expected.splitlines()] == [expected[:cut].rpartition(b"\n")[2]]
    assert len(lines) == len(set(lines))


def test_kill_9_loses_no_alert_and_writes_none_twice(tmp_path):
    source = log(tmp_path / "log.csv", 6000, range(10, 5990, 30))
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
