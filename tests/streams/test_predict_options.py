"""`trueonline predict`: options and files that are refused, and what is printed."""

import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from tests.streams.predict_calls import COMMAND, predict, read, started
from trueonline.cli import main
from trueonline.streams.running import predict_command
from trueonline.streams.running.predict_command import until_stopped


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", "nothing", "--rate", "40"], "no column nothing"),
        (["--target", "force"], "--rate"),
        (["--rate", "40"], "Missing option '--target'"),
        (["--target", "force", "--rate", "-1"], "--rate: a rate must be samples per second"),
        (["--target", "force", "--time-format", "%d.%m.%Y", "--rate", "40"], "--time"),
        (["--target", "force", "--time", "c", "--time-format", "%Q", "--discount", "0.9"], "strptime"),
        (["--target", "force", "--rate", "40", "--discount", "1.5"], "discount"),
        (["--target", "force", "--rate", "40", "--horizon", "soon"], "--horizon: a time must be above 0"),
        (["--target", "force", "--rate", "40", "--coverage", "90"], "--coverage"),
        (["--target", "force,force", "--rate", "40"], "force"),
        (["--target", "force", "--rate", "40", "--method", "replace", "--step-size", "0"], "step_size"),
        (["--target", "force", "--rate", "40", "--step-size", "0.1"], "add --method true_online"),
        (["--target", "force", "--rate", "40", "--discount", "1"], "'true_online'"),
        (["--target", "force", "--rate", "40", "--range", "force=1"], "NAME=LOW:HIGH"),
        (["--target", "force", "--rate", "40", "--method", "replace", "--range", "nothing=0:1"], "nothing"),
        (["--target", "force", "--rate", "40", "--max-gap", "0"], "--max-gap"),
        (["--target", "force", "--rate", "40", "--every", "0"], "every"),
        (["--target", "force", "--rate", "40", "--json", "--out", "-"], "both print"),
        (["--target", "force", "--rate", "40", "--time", "nothing"], "nothing"),
        (["--target", "force", "--rate", "40", "--alert", "2"], "--alert"),
        (["--target", "force", "--rate", "40", "--alert", "nan"], "--alert"),
        (["--target", "force", "--time", "c", "--by", "a", "--alert", "nan"], "--alert"),
        (["--target", "force", "--time", "c", "--by", "a", "--time-format", "%Y-%m"], "no sample that could be used"),
        (["--target", "force", "--rate", "40", "--publish", "mqtt://127.0.0.1:1/x"], "cannot publish"),
        (["--target", "force", "--rate", "40", "--pace", "0"], "pace"),
        (["--target", "force", "--rate", "40", "--min", "3", "--max", "2"], "below max"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(arguments, said, table, tmp_path):
    out = [] if "--out" in arguments else ["--out", tmp_path / "out.csv"]
    found = predict(table / "log.csv", *arguments, *out, "--alerts", tmp_path / "alerts", fails=True)
    assert said in found
    assert "Traceback" not in found
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_ours_is_not_replaced(table, tmp_path):
    for name in ("out.csv", "out.parquet", "kept"):
        path = tmp_path / name
        path.write_text("something,dear\n1,2\n")
        where = ["--checkpoint", path, "--fresh"] if name == "kept" else ["--out", path]
        assert "exists and" in predict(table / "log.csv", *COMMAND, *where, fails=True)
        assert path.read_text() == "something,dear\n1,2\n"
    predict(table / "log.csv", *COMMAND, "--out", tmp_path / "out.csv", "--fresh")
    predict(table / "log.csv", *COMMAND, "--out", tmp_path / "out.csv")  # predictions may be replaced by others
    (tmp_path / "empty.csv").touch()
    predict(table / "log.csv", *COMMAND, "--out", tmp_path / "empty.csv")
    assert len(read(tmp_path / "empty.csv")["time"]) == 3000


def test_two_runs_do_not_write_one_file(table, tmp_path):
    out = tmp_path / "out.csv"
    process = started("arm", "--target", "force", "--out", out, "--pace", "1")
    while not out.exists():
        time.sleep(0.01)
    said = predict(table / "log.csv", *COMMAND, "--out", out, fails=True)
    assert "another run" in said
    process.kill()
    process.communicate()
    predict("arm", "--target", "force", "--out", out, "--samples", 100, "--fresh")  # kill -9 has released it
    assert sorted(each.name for each in tmp_path.iterdir()) == [".out.csv.predictions", "out.csv"]


def test_a_rate_that_is_not_so_is_warned_of(tmp_path, table):
    (tmp_path / "log.csv").write_text("time,x\n" + "".join(f"{t / 40},{t % 5}\n" for t in range(500)))
    command = [tmp_path / "log.csv", "--time", "time", "--target", "x", "--json", "--rate"]
    told = predict(*command, 1)
    assert told["measured_rate"] == pytest.approx(40.0)
    assert "samples come 40 a second" in told["warnings"][0]
    assert predict(*command, 40)["warnings"] == []
    assert predict(table / "log.csv", *COMMAND, "--json")["measured_rate"] is None
    told = predict("arm", "--rate", 100, "--target", "force", "--samples", 50, "--json")
    assert "samples come 40 a second" in told["warnings"][0]
    said = predict(*command, 40, "--discount", 1, "--method", "true_online")["warnings"]
    assert "discount of 1" in said[0]


def test_what_gives_nothing_to_learn_from_is_said(tmp_path):
    (tmp_path / "log.csv").write_text("time,x\n" + "".join(f"{1.7e12 + 25 * t},{t % 5}\n" for t in range(500)))
    command = [tmp_path / "log.csv", "--time", "time", "--target", "x", "--rate", 40]
    result = CliRunner().invoke(main, ["predict", *map(str, command), "--out", str(tmp_path / "out.csv")])
    assert result.exit_code == 1
    assert "500 time" in result.output
    assert "0 samples" in result.stdout
    assert "is the time unit ms?" in result.stderr
    assert "no sample that could be used" in result.stderr
    assert "Predictions are in" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]
    assert predict(*command, "--time-unit", "ms", "--json")["warnings"] == []


def test_whoever_reads_what_is_printed_may_go(table):
    command = f"{sys.executable} -m trueonline predict {table / 'log.csv'} {' '.join(COMMAND)} --out - | head -2"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2
    assert "Errno" not in done.stderr


def test_an_output_that_is_gone_is_said(tmp_path, table):
    command = [table / "log.csv", *COMMAND, "--out", tmp_path / "out.csv", "--checkpoint", tmp_path / "kept"]
    predict(*command, "--samples", 100)
    (tmp_path / "out.csv").unlink()
    assert "is gone" in predict(*command, fails=True)


def test_a_line_that_is_not_whole_yet_is_waited_for(tmp_path):
    log, lines = tmp_path / "log.csv", [f"{t % 7}.5\n" for t in range(1000)]
    text = "x\n" + "".join(lines)
    command = [
        log, "--rate", 10, "--target", "x", "--json", "--checkpoint", tmp_path / "kept", "--out", tmp_path / "o.csv",
    ]  # fmt: skip
    log.write_text(text[: len("x\n") + 4 * 600 - 2])  # in the middle of a number
    assert predict(*command)["samples"] == 599
    log.write_text(text)
    told = predict(*command)
    assert (told["resumed_at"], told["samples"]) == (599, 1000)
    whole = predict(*command[:6], "--out", tmp_path / "whole.csv")
    assert told["questions"] == whole["questions"]
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_source_that_is_not_there_or_would_be_written_over(tmp_path):
    assert "none.csv" in predict(tmp_path / "none.csv", *COMMAND, fails=True)
    (tmp_path / "log.csv").write_text("x\n1\n")
    for option in ("--out", "--checkpoint"):
        assert "one file" in predict(tmp_path / "log.csv", *COMMAND, option, tmp_path / "log.csv", fails=True)
    assert (tmp_path / "log.csv").read_text() == "x\n1\n"
    assert "mqtt://" in predict("ftp://x/y", *COMMAND, fails=True)


def test_the_table_is_plain_text_that_fits_80_columns_even_with_long_names(tmp_path):
    targets = "force,envelope(velocity(position, 0.25), 0.125)"
    command = ["predict", "arm", "--target", targets, "--horizon", "0.5s", "--samples", "2000"]
    command += ["--out", str(tmp_path / "o.csv")]
    done = CliRunner().invoke(main, command)
    assert "\x1b" not in done.stdout + done.stderr
    assert max(len(line) for line in done.stdout.splitlines() if "Predictions are in" not in line) <= 80
    for word in ("Predictions are in", "question", "force@0.5s", "envelope(", "scored", "2,000 samples"):
        assert word in done.stdout


def test_times_that_are_nearly_the_same_measure_no_rate(tmp_path):
    rows = "".join(f"{i * 5e-324!r},{i % 3}\n" for i in range(40))
    (tmp_path / "log.csv").write_text("time,a\n" + rows)
    told = predict(tmp_path / "log.csv", "--time", "time", "--target", "a", "--discount", 0.5, "--json")
    assert (told["samples"], told["measured_rate"]) == (40, None)


def test_names_of_columns_cannot_steer_the_terminal(tmp_path):
    name = "grip\x1b]0;owned\x07\x1b[31m"
    (tmp_path / "log.csv").write_text(f"time,{name}\n" + "".join(f"{k},{k % 7}\n" for k in range(60)))
    for target in (name, "other"):
        options = ["--time", "time", "--target", target, "--alert", "0.5"]
        result = CliRunner().invoke(main, ["predict", str(tmp_path / "log.csv"), *options], color=True)
        assert "]0;owned" in result.output
        assert not {"\x1b", "\x07"} & set(result.output)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_two_quick_signals_stop_in_good_order_and_a_later_one_interrupts(second, monkeypatch):
    now = 100.0
    monkeypatch.setattr("trueonline.streams.running.predict_command.time.monotonic", lambda: now)
    with until_stopped() as stop:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(second)
        assert stop.is_set()
        now = 102.0
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)


def test_a_second_signal_takes_nothing_from_what_is_told_at_the_end(tmp_path, monkeypatch):
    def told_late(*arguments):
        signal.raise_signal(signal.SIGTERM)
        return as_text(*arguments)

    as_text, late = predict_command.as_text, []
    monkeypatch.setattr(predict_command, "as_text", told_late)
    (tmp_path / "log.csv").write_text("time,x\n" + "".join(f"{k},{k % 7}\n" for k in range(60)))
    before = signal.signal(signal.SIGTERM, lambda *_: late.append("it would end the process"))
    try:
        result = CliRunner().invoke(main, ["predict", str(tmp_path / "log.csv"), "--time", "time", "--target", "x"])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert late == []
    assert "60 samples" in result.output
