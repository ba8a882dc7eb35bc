"""`trueonline predict`, killed, stopped and resumed: the same predictions, and nothing old is lost."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.processes import wait_for
from tests.streams.predict_calls import COMMAND, predict, read, recording, started
from trueonline import TrueOnlineTD, files
from trueonline.cli import main
from trueonline.streams.outputs.output import Nowhere
from trueonline.streams.predictor import Predictor, Setup
from trueonline.streams.sources import Cleaner, open_source


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    columns = recording(40_000)
    pyarrow.csv.write_csv(pa.table(columns), folder / "log.csv")
    pq.write_table(pa.table(columns), folder / "log.parquet", row_group_size=1000)
    return folder


@pytest.mark.parametrize(
    ("kind", "stops"), [("csv", [signal.SIGINT, signal.SIGKILL]), ("parquet", [signal.SIGTERM, signal.SIGKILL])]
)
def test_stopped_or_killed_at_random_moments_it_goes_on_as_if_nothing_had_happened(kind, stops, long_log, tmp_path):
    source, out, checkpoint = long_log / f"log.{kind}", tmp_path / f"out.{kind}", tmp_path / f"out.{kind}.checkpoint"
    whole = predict(source, *COMMAND, "--out", tmp_path / f"whole.{kind}", "--json")
    draw = random.Random(kind)
    command = [source, *COMMAND, "--out", out, "--every", "0.05", "--json"]
    for stop in stops:
        process = started(*command, "--pace", "40")  # so that there is something to stop
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        wait_for(lambda before=before: checkpoint.exists() and checkpoint.stat().st_mtime_ns > before, "checkpoint")
        time.sleep(draw.random() * 0.5)
        assert process.poll() is None
        process.send_signal(stop)
        _, said = process.communicate()
        assert checkpoint.exists()
        if stop != signal.SIGKILL:  # in good order
            assert process.returncode == 130
            assert "Run the same command again" in said
            assert kind == "parquet" or files.read_learner(checkpoint)[1]["rows"] == len(read(out)["time"])
    done = CliRunner().invoke(main, ["predict", *map(str, command)])
    assert done.exit_code == 0, done.output
    assert "Resuming from sample" in done.stderr
    assert "Nothing is lost" in done.stderr
    told = json.loads(done.stdout)
    assert 0 < told["resumed_at"] < 40_000
    for name in ("samples", "dropped", "questions", "counters"):
        assert told[name] == whole[name]
    if kind == "csv":
        assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    else:
        for name, values in read(tmp_path / "whole.parquet").items():
            np.testing.assert_array_equal(read(out)[name], values)
    assert not checkpoint.exists()
    assert sorted(each.name for each in tmp_path.iterdir() if each.name[0] != ".") == [f"out.{kind}", f"whole.{kind}"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_pipe_that_was_killed_says_what_it_lost(kind, tmp_path):
    out = tmp_path / f"out.{kind}"
    command = ["-", "--rate", "100", "--target", "x", "--out", out, "--every", "0.05", "--json"]
    checkpoint = tmp_path / f"out.{kind}.checkpoint"
    for early in (True, False) if kind == "csv" else (False,):
        process = started(*command, stdin=subprocess.PIPE)
        process.stdin.write("x\n")
        if early:  # killed before its first sample
            process.stdin.flush()
            wait_for(checkpoint.exists, "checkpoint")
            process.kill()
            process.communicate()
    sent = 0
    while not checkpoint.exists() or files.read_learner(checkpoint)[1]["rows"] < 20:
        process.stdin.write("".join(f"{t % 5}\n" for t in range(sent, sent + 10)))
        process.stdin.flush()
        sent += 10
        time.sleep(0.02)
    process.stdin.write("3\n" * 500)
    process.stdin.flush()
    while kind == "csv" and len(out.read_text().splitlines()) - 1 < sent + 500:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    done = subprocess.run(
        [sys.executable, "-m", "trueonline", "predict", *map(str, command)], input="x\n" + "1\n" * 50, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    times = read(out)["time"]
    if kind == "csv":
        assert told["resumed_at"] + told["lost"] == sent + 500
        assert f"Kept: {told['lost']:,} rows" in done.stderr
        assert "Lost: what was learned after the checkpoint" in done.stderr
        assert len(times) == sent + 500 + 50  # what was predicted was predicted
    else:
        assert "Lost: all predictions after the checkpoint, because Parquet gets its rows at checkpoints" in done.stderr
        assert len(times) == told["resumed_at"] + 50
    assert told["samples"] == told["resumed_at"] + 50
    assert (np.diff(times) > 0).all()
    assert told["counters"]["gaps"] == 1


def test_fresh_replaces_checkpoints_and_nothing_else(tmp_path, table):
    with zipfile.ZipFile(tmp_path / "thesis.docx", "w") as archive:
        archive.writestr("words.xml", "years of work")
    command = (table / "log.csv", *COMMAND, "--checkpoint")
    for fresh in ((), ("--fresh",)):
        before = (tmp_path / "thesis.docx").read_bytes()
        assert "thesis.docx" in predict(*command, tmp_path / "thesis.docx", *fresh, fails=True)
        assert (tmp_path / "thesis.docx").read_bytes() == before
    TrueOnlineTD(3, 0.1, 0.9, 0.9).save(tmp_path / "learner.npz")
    learner = (tmp_path / "learner.npz").read_bytes()
    assert "TrueOnlineTD" in predict(*command, tmp_path / "learner.npz", fails=True)
    assert "not a checkpoint" in predict(*command, tmp_path / "learner.npz", "--fresh", fails=True)
    assert (tmp_path / "learner.npz").read_bytes() == learner
    predict(*command, tmp_path / "kept")
    whole = (tmp_path / "kept").read_bytes()
    (tmp_path / "kept").write_bytes(whole[: len(whole) // 2])  # damaged, but a checkpoint
    said = predict(*command, tmp_path / "kept", fails=True)
    assert "damaged" in said
    assert "--fresh" in said
    predict(*command, tmp_path / "kept", "--fresh")
    (tmp_path / "empty.csv").write_text("a,b,c,force\n")
    kept = (tmp_path / "kept").read_bytes()
    predict(tmp_path / "empty.csv", *COMMAND, "--checkpoint", tmp_path / "kept", "--fresh", fails=True)
    assert (tmp_path / "kept").read_bytes() == kept


def test_nothing_old_goes_before_there_is_something_new(tmp_path):
    """Such as a file that begins like predictions, and a folder that has the name of the parts."""
    (tmp_path / "empty.csv").write_text("x\n")
    pq.write_table(pa.table({"years": [1.0]}), tmp_path / "work.parquet")
    (tmp_path / "work.csv").write_text("time,temp@10m\n0,20.5\n")
    (tmp_path / "other.parquet.parts").mkdir()
    (tmp_path / "other.parquet.parts" / "thesis.txt").write_text("words")
    (tmp_path / "out.csv").write_text("")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    command = (tmp_path / "empty.csv", "--rate", "10", "--target", "x", "--out")
    for name in ("work.parquet", "work.csv", "other.parquet"):
        assert "not" in predict(*command, tmp_path / name, fails=True)
        predict(*command, tmp_path / name, "--fresh", fails=True)
    predict(*command, tmp_path / "out.csv", fails=True)
    assert {path: path.read_bytes() for path in before} == before


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(tmp_path, monkeypatch):
    from trueonline.streams.running import stream_run

    setup = Setup(signals=["x"], targets=["x"], discounts=[0.9], rate=10.0)
    predictor = Predictor(setup)
    (tmp_path / "log.csv").write_text("x\n" + "1\n" * 20_000)
    source = open_source(tmp_path / "log.csv", ["x"], rate=10.0)
    run = stream_run.Run(
        source, {}, Cleaner(["x"]), predictor, Nowhere(), tmp_path / "kept", every=1e-9, counted_times=True
    )

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stream_run, "write_learner", full)
    run.learn(threading.Event())
    source.close()
    assert predictor.samples == 20_000
    assert any("No space left" in warning for warning in run.warnings().values())


def test_the_number_of_samples_is_kept_to_whatever_is_dropped(tmp_path):
    times = [0, 1, 2, 3, 2, 4, 5, 1, 6, 7]
    (tmp_path / "log.csv").write_text("time,x\n" + "".join(f"{t},1\n" for t in times))
    for limit in range(1, 9):
        command = [tmp_path / "log.csv", "--rate", 1, "--time", "time", "--target", "x", "--discount", 0.5, "--json"]
        assert predict(*command, "--samples", limit)["samples"] == limit


def test_another_run_does_not_go_on_from_it(tmp_path, table):
    kept = tmp_path / "kept"
    command = [table / "log.csv", *COMMAND, "--checkpoint", kept, "--json"]
    predict(*command)
    said = predict(*command, "--bins", 5, fails=True)
    assert "bins was 10 and is 5" in said
    assert "missing was 'hold' and is 'skip'" in predict(*command, "--missing", "skip", fails=True)
    assert "--fresh" in said
    assert predict(*command, "--bins", 5, "--fresh")["resumed_at"] is None
