"""`trueonline live`: the command, its page, and its end."""

import json
import signal
import socket
import subprocess
import time
from datetime import UTC, datetime, timedelta

import numpy as np

from tests.processes import wait_for as until
from tests.streams.live.helpers import command
from trueonline.problems import arm


def ended(process, browser):
    browser.chrome.get("about:blank")  # or it would complain that the server is gone
    process.send_signal(signal.SIGINT)
    told, said = process.communicate()
    assert process.returncode == 0, said
    return told


def test_the_command_shows_the_arm_as_it_moves(browser):
    targets = ["--target", "position,force", "--signals", ",".join(arm.NAMES), "--horizon", "0.2s"]
    with command("arm", *targets, "--pace", "4") as process:
        browser.open(process)
        shown = browser.of("shown()")
        assert shown == ["position@0.2s", "force@0.2s"]
        before = until(lambda: browser.of("points('force@0.2s')"))
        until(lambda: browser.of("points('force@0.2s')") > before)
        until(lambda: "lately: error " in browser.one("#charts").text)
        series = browser.series("position@0.2s")
        assert set(series["signal"]) <= set(arm.simulate(20_000)[:, 0].astype(np.float32).tolist())
        told = ended(process, browser)
    assert "position@0.2s" in told
    assert "0 dropped" in told


def test_a_slow_recording_is_replayed_fast(browser, tmp_path):
    begin = datetime(2014, 3, 3, 12, tzinfo=UTC)
    rows = (f"{(begin + timedelta(minutes=5 * t)).isoformat()},{t % 12}\n" for t in range(864))  # three days
    (tmp_path / "log.csv").write_text("time,x\n" + "".join(rows))
    with command(
        tmp_path / "log.csv", "--rate", 1 / 300, "--time", "time", "--target", "x", "--horizon", "900s"
    ) as process:
        assert process.stderr.readline() == "Replayed 2,900 times as fast as recorded. --pace 1 is real time.\n"
        browser.open(process)
        until(lambda: browser.one("#pace").text == "replayed 2,900 times as fast as recorded")
        until(lambda: browser.of("points('x@15min')") > 5)
        assert [each.text for each in browser.all("#windows button")] == ["1 day", "1 week", "30 days", "all"]
        assert 5 < browser.of("samples") < 864
        ended(process, browser)


def test_the_page_stays_when_a_recording_has_ended(browser, tmp_path):
    (tmp_path / "log.csv").write_text("x\n" + "".join(f"{t % 9}\n" for t in range(300)))
    with command(tmp_path / "log.csv", "--rate", 100, "--target", "x", "--horizon", "0.1s", "--pace", 100) as process:
        browser.open(process)
        until(lambda: "ended" in browser.one("header").text)
        assert browser.of("samples") == 300
        assert "300 samples" in ended(process, browser)


def test_a_port_that_is_taken_costs_no_predictions(tmp_path):
    from click.testing import CliRunner

    from trueonline.cli import main

    out = tmp_path / "kept.csv"
    out.write_text("time,x@1s\n0.0,1.0\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(main, ["live", "arm", "--target", "force", "--port", port, "--out", str(out)])
    assert result.exit_code == 1
    assert port in result.stderr
    assert out.read_text() == "time,x@1s\n0.0,1.0\n"


def test_samples_from_a_pipe_reach_the_page_at_once(browser):
    with command("-", "--rate", 40, "--time", "time", "--target", "x", stdin=subprocess.PIPE) as process:
        browser.open(process)
        for t in range(3):
            stamp = time.time()
            process.stdin.write(json.dumps({"time": stamp, "x": t}) + "\n")
            process.stdin.flush()
            until(lambda stamp=stamp: browser.of("series('x@20samples')")["times"][-1:] == [stamp])
        assert "3 samples" in ended(process, browser)
