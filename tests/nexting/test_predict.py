"""`trueonline predict`: held to learners and returns computed the slow way, killed, stopped, and fed with all kinds of rubbish."""

import gzip
import json
import os
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

from tests.processes import start
from trueonline import AccumulateTD, ReplaceTD, TrueOnlineTD, files
from trueonline.cli import main
from trueonline.features import TileCoder
from trueonline.nexting import arm
from trueonline.nexting.output import Nowhere
from trueonline.nexting.predictor import DivergedError, Predictor, Setup
from trueonline.nexting.sources import Block, Clean, Cleaner, open_source
from trueonline.nexting.stream_run import Run

SIGNALS = ("a", "b", "c")
COMMAND = ["--rate", "40", "--signals", "a,b,c", "--target", "force", "--discount", "0.97", "--method", "true_online"]
COMMAND += ["--step-size", "0.1", "--trace-decay", "0.9", "--tilings", "8", "--bins", "10", "--features", "200000"]


def recording(rows=3000, seed=0):
    """Three signals that tell something about a fourth."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows) / 40
    slow = np.cumsum(rng.normal(size=rows)) * 0.05
    columns = {"a": np.sin(2 * t), "b": np.cos(0.7 * t) + 0.02 * rng.normal(size=rows), "c": slow}
    return {**columns, "force": 2.0 + np.sin(2 * t + 0.4) + 0.1 * rng.normal(size=rows)}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    columns = recording()
    order = ["c", "force", "a", "b"]  # any order, and columns that nobody asked for
    rows = pa.table({**{name: columns[name] for name in order}, "other": np.zeros(len(columns["a"]))})
    pyarrow.csv.write_csv(rows, folder / "log.csv")
    pq.write_table(rows, folder / "log.parquet")
    (folder / "log.csv.gz").write_bytes(gzip.compress((folder / "log.csv").read_bytes()))
    return folder


def predict(*arguments, fails=False):
    result = CliRunner().invoke(main, ["predict", *map(str, arguments)])
    if fails:
        assert result.exit_code != 0
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.stderr
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if "--json" in arguments else result.stdout


def read(path):
    found = pq.read_table(path) if str(path).endswith("parquet") else pyarrow.csv.read_csv(path)
    return {name: found[name].to_numpy() for name in found.column_names}


def returns_of(values, gamma):
    """G_t for every sample, as far as the recording goes."""
    found = np.zeros(len(values))
    for t in range(len(values) - 2, -1, -1):
        found[t] = values[t + 1] + gamma * found[t + 1]
    return found


# --- What is predicted ----------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("source", ["log.csv", "log.parquet", "log.csv.gz"])
def test_the_score_is_that_of_the_predictions_in_the_file(source, out, table, tmp_path):
    told = predict(table / source, *COMMAND, "--out", tmp_path / out, "--json")
    values = recording()["force"]
    rows = read(tmp_path / out)
    (question,) = told["questions"]
    assert told["samples"] == len(values) == len(rows["time"])
    assert told["dropped"] == 0
    assert "force" in question["name"]
    np.testing.assert_allclose(rows["time"], np.arange(len(values)) / 40, rtol=0, atol=1e-12)
    later = len(values) - 1 - np.arange(len(values))
    known = later >= np.ceil(np.log(0.01) / np.log(0.97))
    returns = returns_of(values, 0.97)
    returns[known] /= 1.0 - 0.97 ** later[known]  # what came true stands for what is open
    errors = np.abs(rows[question["name"]] - returns)
    assert question["scored"] == known.sum()
    assert question["scored"] + question["truncated"] == len(values)
    assert question["error"] == pytest.approx(errors[known].mean(), rel=1e-4)
    assert question["mean"] == pytest.approx(returns[known].mean(), rel=1e-4)
    naive = {"hold": values / 0.03, "mean": np.cumsum(values) / np.arange(1, len(values) + 1) / 0.03}
    for name, forecast in naive.items():
        assert question["naive"][name] == pytest.approx(np.abs(forecast - returns)[known].mean(), rel=1e-4)
    assert question["skill"] == pytest.approx(1 - question["error"] / min(question["naive"].values()))
    inside = (rows[f"{question['name']}.low"] <= returns) & (returns <= rows[f"{question['name']}.high"])
    assert inside[known][500:].mean() > 0.8
    assert errors[known][-500:].mean() < 0.5 * errors[known][:500].mean()  # it has learned something


@pytest.mark.parametrize("method", ["true_online", "accumulate", "replace"])
def test_predictions_are_those_of_a_learner_of_its_own(method, table, tmp_path):
    bounds = {"a": (-1.0, 1.0), "b": (-1.1, 1.1), "c": (-5.0, 5.0)}
    ranges = [f"--range={name}={low}:{high}" for name, (low, high) in bounds.items()]
    command = [argument if argument != "true_online" else method for argument in COMMAND]
    predict(table / "log.csv", *command, *ranges, "--out", tmp_path / "out.csv")
    found = read(tmp_path / "out.csv")["force@0.97"]

    columns = recording()
    low, high = (np.array([bounds[name][i] for name in SIGNALS]) for i in range(2))
    coder = TileCoder(low=np.zeros(3), high=np.ones(3), bins=10, tilings=8, bias=True)
    kind = {"true_online": TrueOnlineTD, "accumulate": AccumulateTD, "replace": ReplaceTD}[method]
    learner = kind(coder.n_features, step_size=0.1 / 9, trace_decay=0.9, discount=0.97)
    X = [
        coder(np.clip((np.array(row) - low) / (high - low), 0, 1)) for row in zip(*map(columns.get, SIGNALS), strict=True)
    ]
    learner.start(X[0])
    expected = [learner.predict(X[0])]
    for x, force in zip(X[1:], columns["force"][1:], strict=True):
        learner.update(force, x)
        expected.append(learner.predict(x))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_blocks_make_no_difference():
    columns = recording(600)
    values = np.column_stack(list(columns.values()))
    times = np.arange(600) / 40.0
    starts = np.isin(np.arange(600), (0, 250, 251))
    setup = Setup(
        signals=["a", "velocity(b)", "lag(c, 0.1)"],
        targets=["force", "a"],
        horizons=[0.2, 1.0],
        discounts=[0.0],
        rate=40.0,
    )
    assert Predictor(setup).columns == ("a", "b", "c", "force")
    ways = []
    rng = np.random.default_rng(0)
    for most in (1, 50, 600):
        predictor, parts, at = Predictor(setup), [], 0
        while at < 600:
            to = at + int(rng.integers(1, most + 1))
            parts.append(predictor.learn(Clean(times[at:to], values[at:to], starts[at:to])).predictions)
            if rng.random() < 0.02 * most:  # saved and restored, too
                fresh = Predictor(setup)
                fresh.restore(predictor.state())
                predictor = fresh
            at = to
        ways.append((np.vstack(parts), predictor.scores(), predictor.counters()))
    for other in ways[1:]:
        np.testing.assert_array_equal(ways[0][0], other[0])
        assert ways[0][1:] == other[1:]


def test_every_target_and_time_scale_is_a_question(table, tmp_path):
    scales = ["--horizon", "500ms,2s,20 samples", "--discount", "0.5", "--discount", "a", "--method", "true_online"]
    told = predict(table / "log.csv", "--rate", 40, "--target", "force", "--target", "velocity(c),a", *scales, "--json")
    assert [question["name"] for question in told["questions"]] == [
        f"{target}@{scale}"
        for target in ("force", "velocity(c)", "a")
        for scale in ("0.5s", "2s", "20samples", "0.5", "a")
    ]
    asked = told["questions"][:5]
    assert [question["discount"] for question in asked] == [None, None, 0.95, 0.5, "a"]
    assert [question["horizon"] for question in asked] == [0.5, 2.0, pytest.approx(0.5), 0.05, None]
    assert [question["as"] for question in asked] == ["mean", "mean", "mean", "return", "return"]
    assert told["counters"]["clipped"] >= (recording()["a"] < 0).sum()  # γ must lie in [0, 1]


def test_a_discount_that_is_a_signal_ends_what_is_predicted(tmp_path):
    """Ten steps with 1 each, then the end: the return counts what is left of the ten."""
    rows = 4000
    phase = np.arange(rows) % 10
    pyarrow.csv.write_csv(
        pa.table({"phase": phase, "one": np.ones(rows), "going": (phase != 9).astype(float)}), tmp_path / "log.csv"
    )
    options = ["--rate", 10, "--signals", "phase", "--target", "one", "--discount", "going", "--step-size", "0.5"]
    options += ["--method", "true_online"]
    told = predict(tmp_path / "log.csv", *options, "--out", tmp_path / "out.csv", "--json")
    found = read(tmp_path / "out.csv")["one@going"]
    wanted = np.where(phase == 9, 10.0, 9.0 - phase)  # C up to and including the sample where γ is 0
    np.testing.assert_allclose(found[-10:], wanted[-10:], atol=0.05)
    assert told["questions"][0]["mean"] == pytest.approx(wanted.mean(), rel=1e-2)
    assert told["questions"][0]["naive"] == {"hold": None, "mean": None}


# --- What comes in --------------------------------------------------------------------------------


def test_what_is_dropped_is_counted(tmp_path):
    rows = [(t / 10, 1.0 + t % 3) for t in range(200)]
    text = [f"{time!r},{value!r}" for time, value in rows]
    text[50] = text[49]  # a duplicate
    text[60] = "1.05,9"  # late
    text[70], text[71] = "7.0,nan", "7.1,"  # held
    text[80] = "8.0,x"  # malformed
    text[90] = "9.0,1e300"  # nobody can square that
    text[100] = "nan,1"  # no time
    del text[120:160]  # a gap
    (tmp_path / "log.csv").write_text("time,x\n" + "\n".join(text) + "\n")
    options = [
        tmp_path / "log.csv",
        "--rate",
        10,
        "--time",
        "time",
        "--target",
        "x",
        "--json",
        "--out",
        tmp_path / "o.csv",
    ]
    told = predict(*options)
    counted = told["counters"]
    assert told["samples"] == len(read(tmp_path / "o.csv")["time"]) == 160 - 4
    assert told["dropped"] == 4
    assert (counted["dropped_duplicate"], counted["dropped_late"], counted["malformed"]) == (1, 1, 2)
    assert (counted["held"], counted["gaps"]) == (3, 1)
    told = predict(*options, "--missing", "skip")
    assert (told["samples"], told["dropped"], told["counters"]["dropped_missing"]) == (160 - 7, 7, 3)
    assert "x is missing (nan)" in predict(*options, "--missing", "error", fails=True)


def test_nothing_puts_a_nan_into_the_weights(tmp_path):
    rng = np.random.default_rng(0)
    odd = ["nan", "inf", "-inf", "1e308", "-1e308", "1e99", "1e-320", "", "0", "5", "-7e90", "1e400", "NA"]
    lines = ["x,y"] + [f"{rng.choice(odd)},{rng.choice(odd)}" for _ in range(2000)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    for method in ("auto", "true_online", "replace", "accumulate"):
        told = predict(
            tmp_path / "log.csv", "--rate", 10, "--signals", "x,velocity(y),lowpass(x, 1)", "--target", "y,velocity(x)",
            "--method", method, "--out", tmp_path / "out.csv", "--checkpoint", tmp_path / "kept", "--fresh", "--json",
        )  # fmt: skip
        rows = read(tmp_path / "out.csv")
        assert all(np.isfinite(values[100:].astype(float)).all() for values in rows.values())  # bands are empty at first
        assert all(np.isfinite(question["mean"]) for question in told["questions"])
        floats = {
            name: array for name, array in files.read_learner(tmp_path / "kept")[2].items() if array.dtype.kind == "f"
        }
        weights = [array for name, array in floats.items() if name.startswith("questions")]
        assert weights
        assert all(np.isfinite(array).all() for array in weights)


def test_weights_that_diverge_end_the_run_and_spoil_no_checkpoint(tmp_path, table):
    kept = tmp_path / "kept"
    command = [table / "log.csv", "--rate", 40, "--target", "force", "--method", "accumulate", "--trace-decay", 1]
    said = predict(*command, "--step-size", 500, "--checkpoint", kept, fails=True)
    assert "diverged" in said
    assert "smaller step-size than 500" in said
    calm = [
        table / "log.csv",
        "--rate",
        40,
        "--target",
        "a",
        "--discount",
        0.9,
        "--method",
        "accumulate",
        "--trace-decay",
        1,
    ]
    said = predict(*calm, "--step-size", 3, "--json", fails=True)  # slower, but no less
    assert "diverged" in said
    assert not kept.exists()
    predictor = Predictor(Setup(signals=["x"], targets=["x"], discounts=[0.99], method="accumulate", step_size=1000.0))
    times = np.arange(5000.0)
    with pytest.raises(DivergedError, match="diverged"):
        predictor.learn(Clean(times, times[:, None] % 7, times == 0))


def test_a_pipe_can_be_predicted_from(tmp_path):
    lines = "".join(f'{{"time": {t / 10}, "x": {t % 4}}}\n' for t in range(500))
    command = [
        sys.executable,
        "-m",
        "trueonline",
        "predict",
        "-",
        "--rate",
        "10",
        "--time",
        "time",
        "--target",
        "x",
        "--out",
        "-",
    ]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    rows = done.stdout.splitlines()
    assert rows[0] == "time,x@20samples,x@20samples.low,x@20samples.high,surprise"
    assert len(rows) == 501
    assert "500 samples" in done.stderr


def test_the_simulated_arm_can_be_predicted(tmp_path):
    told = predict("arm", "--target", "force", "--signals", "all", "--horizon", "1s", "--samples", 3000, "--json")
    assert told["samples"] == 3000
    assert told["questions"][0]["name"] == "force@1s"
    forces = arm.simulate(3000)[:, arm.NAMES.index("force")]
    known = told["questions"][0]["scored"]
    gamma = np.exp(-1 / 40)
    means = (1 - gamma) * returns_of(forces, gamma)
    assert told["questions"][0]["mean"] == pytest.approx(means[:known].mean(), rel=1e-3)


@pytest.mark.parametrize("source", ["arm", "log.csv"])
def test_it_stops_at_a_number_of_samples_and_goes_on_from_there(source, table, tmp_path):
    target = "force"
    source, rate = ("arm", []) if source == "arm" else (table / source, ["--rate", 40])
    command = [source, *rate, "--target", target, "--checkpoint", tmp_path / "kept", "--json", "--out"]
    for limit in (1, 700, 701, 2500):
        told = predict(*command, tmp_path / "parts.csv", "--samples", limit)
        assert told["samples"] == limit
    once = predict(source, *rate, "--target", target, "--json", "--samples", 2500, "--out", tmp_path / "once.csv")
    assert told["questions"] == once["questions"]
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "once.csv").read_bytes()


@pytest.mark.parametrize(
    ("hours", "method"),
    [(1, "auto"), (3, "true_online"), pytest.param(7 * 24, "true_online", marks=pytest.mark.slow)],
)
def test_a_long_stream_does_not_grow_memory(hours, method):
    psutil = pytest.importorskip("psutil")
    setup = Setup(signals=["a", "b"], targets=["a"], horizons=[1.0, 60.0], rate=40.0, method=method)
    predictor, process = Predictor(setup), psutil.Process()
    cleaner = Cleaner(predictor.columns, max_gap=1.0)
    rng = np.random.default_rng(0)
    sizes = []
    for k in range(hours * 3600 * 40 // 4096):
        values = rng.random((4096, 2))
        values[rng.integers(4096, size=5)] = np.nan
        predictor.learn(cleaner(Block(np.arange(4096) / 40 + k * 102.4, values)))
        if k % 10 == 0:
            sizes.append((process.memory_info().rss, sum(array.nbytes for array in predictor.state().values())))
    assert predictor.samples > hours * 3600 * 40 - 2 * 4096
    assert sizes[-1][1] < 1.01 * sizes[2][1]  # lists of traced features are not always as long
    assert sizes[-1][0] - sizes[2][0] < 2**25


# --- Killed, stopped, gone on ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    columns = recording(40_000)
    pyarrow.csv.write_csv(pa.table(columns), folder / "log.csv")
    pq.write_table(pa.table(columns), folder / "log.parquet", row_group_size=1000)
    return folder


def started(*arguments, **options):
    command = [sys.executable, "-m", "trueonline", "predict", *map(str, arguments)]
    return start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_kill_9_at_random_moments_changes_nothing(kind, long_log, tmp_path):
    source = long_log / f"log.{kind}"
    whole = predict(source, *COMMAND, "--out", tmp_path / f"whole.{kind}", "--json")
    draw = random.Random(kind)
    out, kills = tmp_path / f"out.{kind}", 0
    checkpoint = tmp_path / f"out.{kind}.checkpoint"
    while True:
        slowly = ("--pace", "40") if kills < 4 else ()  # so that there is something to kill
        process = started(source, *COMMAND, "--out", out, "--every", "0.05", "--json", *slowly)
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        while process.poll() is None and not (checkpoint.exists() and checkpoint.stat().st_mtime_ns > before):
            time.sleep(0.01)
        if kills == 4:
            break
        time.sleep(draw.random() * 0.5)
        process.kill()
        process.communicate()
        kills += 1
        assert checkpoint.exists()
    told, said = process.communicate()
    assert process.returncode == 0, said
    assert "Resuming from sample" in said
    assert "Nothing is lost" in said
    told = json.loads(told)
    assert told["resumed_at"] > 0
    for name in ("samples", "dropped", "questions", "counters"):
        assert told[name] == whole[name]
    if kind == "csv":
        assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    else:
        for name, values in read(tmp_path / "whole.parquet").items():
            np.testing.assert_array_equal(read(out)[name], values)
    assert not checkpoint.exists()
    assert sorted(each.name for each in tmp_path.iterdir() if each.name[0] != ".") == [f"out.{kind}", f"whole.{kind}"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_stopped_in_good_order_it_goes_on(how, long_log, tmp_path):
    out = tmp_path / "out.csv"
    command = [long_log / "log.csv", *COMMAND, "--out", out, "--every", "0.05"]
    process = started(*command, "--pace", "50")
    while not (tmp_path / "out.csv.checkpoint").exists():
        time.sleep(0.01)
    process.send_signal(how)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "Run the same command again" in said
    rows = len(read(out)["time"])
    assert 0 < rows < 40_000
    told = predict(*command, "--json")
    assert (told["resumed_at"], told["samples"], len(read(out)["time"])) == (rows, 40_000, 40_000)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_pipe_that_was_killed_says_what_it_lost(kind, tmp_path):
    out = tmp_path / f"out.{kind}"
    command = ["-", "--rate", "100", "--target", "x", "--out", out, "--every", "0.05", "--json"]
    process = started(*command, stdin=subprocess.PIPE)
    process.stdin.write("x\n")
    sent = 0
    checkpoint = tmp_path / f"out.{kind}.checkpoint"
    while not checkpoint.exists() or files.read_learner(checkpoint)[1]["rows"] < 20:
        process.stdin.write(f"{sent % 5}\n")
        process.stdin.flush()
        sent += 1
        time.sleep(0.002)
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
    assert "not a checkpoint" in predict(*command, tmp_path / "learner.npz", "--fresh", fails=True)
    assert (tmp_path / "learner.npz").read_bytes() == learner
    predict(*command, tmp_path / "kept")
    whole = (tmp_path / "kept").read_bytes()
    (tmp_path / "kept").write_bytes(whole[: len(whole) // 2])  # damaged, but a checkpoint
    assert "--fresh" in predict(*command, tmp_path / "kept", fails=True)
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


def test_a_stream_that_was_killed_before_its_first_sample_goes_on(tmp_path):
    out = tmp_path / "out.csv"
    command = ["-", "--rate", "100", "--target", "x", "--out", out, "--every", "0.05", "--json"]
    process = started(*command, stdin=subprocess.PIPE)
    process.stdin.write("x\n")
    process.stdin.flush()
    while not (tmp_path / "out.csv.checkpoint").exists():
        time.sleep(0.01)
    process.kill()
    process.communicate()
    process = started(*command, stdin=subprocess.PIPE)
    told, said = process.communicate("x\n" + "1\n" * 50)
    assert process.returncode == 0, said
    assert (json.loads(told)["resumed_at"], json.loads(told)["samples"]) == (0, 50)


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(tmp_path, monkeypatch):
    from trueonline.nexting import stream_run

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
    assert any("No space left" in warning for warning in run.warnings())


def test_the_number_of_samples_is_kept_to_whatever_is_dropped(tmp_path):
    times = [0, 1, 2, 3, 2, 4, 5, 1, 6, 7]
    (tmp_path / "log.csv").write_text("time,x\n" + "".join(f"{t},1\n" for t in times))
    for limit in range(1, 9):
        command = [tmp_path / "log.csv", "--rate", 1, "--time", "time", "--target", "x", "--discount", 0.5, "--json"]
        assert predict(*command, "--samples", limit)["samples"] == limit


def test_a_run_may_be_called_again_with_a_higher_limit(tmp_path):
    (tmp_path / "log.csv").write_text("x\n" + "".join(f"{t % 9}\n" for t in range(1000)))
    predictor = Predictor(Setup(signals=["x"], targets=["x"], discounts=[0.9], rate=10.0))
    with open_source(tmp_path / "log.csv", ["x"], rate=10.0) as source:
        run = Run(source, {}, Cleaner(["x"]), predictor, Nowhere(), counted_times=True)
        for limit in (10, 20, 950):
            run.learn(threading.Event(), limit=limit)
            assert predictor.samples == limit
    once = Predictor(predictor.setup)
    once.learn(Clean(np.arange(950) / 10, np.arange(950.0)[:, None] % 9, np.arange(950) == 0))
    assert predictor.scores() == once.scores()


def test_a_named_checkpoint_stays_and_goes_on_when_the_file_has_grown(tmp_path):
    log, out, kept = tmp_path / "log.csv", tmp_path / "out.csv", tmp_path / "kept"
    text = "x\n" + "".join(f"{t % 7}\n" for t in range(1000))
    command = [log, "--rate", 10, "--target", "x", "--json"]
    log.write_text(text)
    first = predict(*command, "--out", out, "--checkpoint", kept)
    assert first["samples"] == 1000
    log.write_text(text + "".join(f"{t % 7}\n" for t in range(1000, 1500)))
    second = predict(*command, "--out", out, "--checkpoint", kept)
    assert (second["resumed_at"], second["samples"]) == (1000, 1500)
    whole = predict(*command, "--out", tmp_path / "whole.csv")
    assert second["questions"] == whole["questions"]
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_another_run_does_not_go_on_from_it(tmp_path, table):
    kept = tmp_path / "kept"
    command = [table / "log.csv", *COMMAND, "--checkpoint", kept, "--json"]
    predict(*command)
    said = predict(*command, "--bins", 5, fails=True)
    assert "bins was 10 and is 5" in said
    assert "missing was 'hold' and is 'skip'" in predict(*command, "--missing", "skip", fails=True)
    assert "--fresh" in said
    assert predict(*command, "--bins", 5, "--fresh")["resumed_at"] is None
    kept.write_bytes(kept.read_bytes()[:-100])
    assert "damaged" in predict(*command, fails=True)
    AccumulateTD(3, step_size=0.1, trace_decay=0.9, discount=0.9).save(kept)
    assert "AccumulateTD" in predict(*command, fails=True)


# --- Bad options ----------------------------------------------------------------------------------


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
        (["--target", "force", "--rate", "40", "--horizon", "0.001"], "at least one sample"),
        (["--target", "force", "--rate", "40", "--horizon", "soon"], "--horizon: a time must be above 0"),
        (["--target", "force", "--rate", "40", "--coverage", "90"], "--coverage"),
        (["--target", "force", "--rate", "40", "--horizon", "1s,1000ms"], "the same"),
        (["--target", "force,force", "--rate", "40"], "force"),
        (["--target", "force", "--rate", "40", "--method", "replace", "--step-size", "0"], "step_size"),
        (["--target", "force", "--rate", "40", "--method", "replace", "--trace-decay", "2"], "trace_decay"),
        (["--target", "force", "--rate", "40", "--step-size", "0.1"], "add --method true_online"),
        (["--target", "force", "--rate", "40", "--discount", "1"], "'true_online'"),
        (["--target", "force", "--rate", "40", "--features", "1"], "features"),
        (["--target", "force", "--rate", "40", "--range", "force=1"], "NAME=LOW:HIGH"),
        (["--target", "force", "--rate", "40", "--method", "replace", "--range", "force=1:0"], "below"),
        (["--target", "force", "--rate", "40", "--method", "replace", "--range", "nothing=0:1"], "nothing"),
        (["--target", "force", "--rate", "40", "--signals", "lag(force)"], "lag"),
        (["--target", "force", "--rate", "40", "--max-gap", "0"], "--max-gap"),
        (["--target", "force", "--rate", "40", "--every", "0"], "every"),
        (["--target", "force", "--rate", "40", "--json", "--out", "-"], "both print"),
        (["--target", "force", "--rate", "40", "--time", "nothing"], "nothing"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(arguments, said, table, tmp_path):
    out = [] if "--out" in arguments else ["--out", tmp_path / "out.csv"]
    found = predict(table / "log.csv", *arguments, *out, fails=True)
    assert said in found
    assert "Traceback" not in found
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_ours_is_not_replaced(table, tmp_path):
    for name in ("out.csv", "out.parquet", "kept"):
        path = tmp_path / name
        path.write_text("something,dear\n1,2\n")
        where = ["--checkpoint", path, "--fresh"] if name == "kept" else ["--out", path]
        assert "is there already" in predict(table / "log.csv", *COMMAND, *where, fails=True)
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
    assert (
        "samples come 40 a second"
        in predict("arm", "--rate", 100, "--target", "force", "--samples", 50, "--json")["warnings"][0]
    )
    said = predict(*command, 40, "--discount", 1, "--method", "true_online")["warnings"]
    assert "discount of 1" in said[0]


def test_what_gives_nothing_to_learn_from_is_said(tmp_path):
    (tmp_path / "log.csv").write_text("time,x\n" + "".join(f"{1.7e12 + 25 * t},{t % 5}\n" for t in range(500)))
    command = [tmp_path / "log.csv", "--time", "time", "--target", "x", "--rate", 40]
    said = predict(*command, fails=True)
    assert "500 time" in said
    assert "is the time unit ms?" in said
    assert "no sample that could be used" in said
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
        log,
        "--rate",
        10,
        "--target",
        "x",
        "--json",
        "--checkpoint",
        tmp_path / "kept",
        "--out",
        tmp_path / "o.csv",
    ]
    log.write_text(text[: len("x\n") + 4 * 600 - 2])  # in the middle of a number
    assert predict(*command)["samples"] == 599
    log.write_text(text)
    assert predict(*command)["samples"] == 1000
    predict(log, "--rate", 10, "--target", "x", "--out", tmp_path / "whole.csv")
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_the_source_is_not_written_over(table):
    before = (table / "log.csv").read_bytes()
    for option in ("--out", "--checkpoint"):
        assert "one file" in predict(table / "log.csv", *COMMAND, option, table / "log.csv", fails=True)
    assert (table / "log.csv").read_bytes() == before


def test_a_source_that_is_not_there(tmp_path):
    assert "none.csv" in predict(tmp_path / "none.csv", *COMMAND, fails=True)
    assert "mqtt://" in predict("ftp://x/y", *COMMAND, fails=True)


def test_the_table_for_people(table, tmp_path):
    text = predict(table / "log.csv", *COMMAND, "--out", tmp_path / "out.csv")
    assert "3,000 samples" in text
    assert "force@0.97" in text
    assert "Predictions are in" in text
    assert max(len(line) for line in text.splitlines() if "Predictions are in" not in line) <= 80
    assert os.path.exists(tmp_path / "out.csv")


def test_the_table_is_plain_text_that_fits_80_columns_even_with_long_names():
    targets = "force,envelope(velocity(position, 0.25), 0.125)"
    command = ["predict", "arm", "--target", targets, "--horizon", "0.5s", "--samples", "2000"]
    done = subprocess.run([sys.executable, "-m", "trueonline", *command], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    for word in ("question", "force@0.5s", "envelope(", "\n@0.5s", "scored", "2,000 samples"):
        assert word in done.stdout


def test_without_pyarrow_predictions_to_parquet_name_the_extra(tmp_path):
    code = "import sys; sys.modules['pyarrow'] = None; from trueonline.cli import main; main(sys.argv[1:])"
    arguments = ["--target", "force", "--samples", "100", "--out", "predictions.parquet"]
    command = [sys.executable, "-c", code, "predict", "arm", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "needs pyarrow" in done.stderr
    assert "pip install 'trueonline[streams]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_times_that_are_nearly_the_same_measure_no_rate(tmp_path):
    rows = "".join(f"{i * 5e-324!r},{i % 3}\n" for i in range(40))
    (tmp_path / "log.csv").write_text("time,a\n" + rows)
    told = predict(tmp_path / "log.csv", "--time", "time", "--target", "a", "--discount", 0.5, "--json")
    assert (told["samples"], told["measured_rate"]) == (40, None)
