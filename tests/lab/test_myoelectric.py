"""The myoelectric arm: recordings, and the study of Figure 6, scaled down."""

import csv
import gzip
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import trueonline as to
from trueonline.cli import main
from trueonline.features import TileCoder
from trueonline.lab import recordings
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Errors
from trueonline.lab.experiment import Settings
from trueonline.lab.experiments import myoelectric, myoelectric_runs
from trueonline.lab.recordings import SIGNALS, Recording
from trueonline.problems import arm

SHARED = Path(__file__).parents[3] / "shared" / "data" / "grip_force_emg_200hz.csv.gz"
LEARNERS = {"accumulate": to.AccumulateTD, "replace": to.ReplaceTD, "true_online": to.TrueOnlineTD}


# --- Recordings -----------------------------------------------------------------------------------


def write(path, columns):
    with (gzip.open if str(path).endswith(".gz") else open)(path, "wt", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    return path


def raw(rows=4000, seed=0):
    """Two recordings at 80 Hz: force, three channels of EMG, of which `emg_b` and `emg_c` are the strongest."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows) / 80.0
    force = 2.0 + np.sin(t) + 0.3 * np.sin(7.0 * t) + 0.01 * rng.standard_normal(rows)
    emg = {
        f"emg_{name}": scale * force * rng.standard_normal(rows) for name, scale in (("a", 1.0), ("b", 3.0), ("c", 2.0))
    }
    return {"trial": np.repeat(["one", "two"], [rows // 2, rows - rows // 2]), "force": force, **emg}


def test_a_file_becomes_signals_at_40_hz(tmp_path):
    """Against the definitions, sample by sample: rectify, average the last 0.2 s, average two samples, begin anew."""
    columns = raw(401)
    path = write(tmp_path / "raw.csv.gz", columns)
    found = recordings.read(path, {"recording": "trial"}, rate=80.0)
    pieces = (np.arange(200), np.arange(200, 401))

    def past(values, piece, t, seconds):
        return np.mean([values[piece[k]] for k in range(max(0, t - round(80 * seconds) + 1), t + 1)])

    expected = []
    for piece in pieces:
        rows = []
        for t in range(0, len(piece) - 1, 2):  # what is left over of an odd number is dropped
            force = np.mean([columns["force"][piece[t + k]] for k in (0, 1)])
            slow = np.mean([past(columns["force"], piece, t + k, 1.0) for k in (0, 1)])
            speed = 0.0 if t == 0 else 40.0 * (slow - rows[-1][0])
            muscles = [np.mean([past(np.abs(columns[n]), piece, t + k, 0.2) for k in (0, 1)]) for n in ("emg_b", "emg_c")]
            rows.append([slow, speed, force, *muscles])
        expected += rows
    np.testing.assert_allclose(found.signals, expected, rtol=1e-9, atol=1e-9)
    assert np.flatnonzero(found.starts).tolist() == [0, 100]
    assert "emg_b and emg_c" in found.about
    assert "no position" in found.about
    assert found.position != "motor angle"


def test_columns_that_are_there_are_taken_as_they_are(tmp_path):
    signals = arm.simulate(300, seed=3)
    names = ("p", "v", "grip", "m1", "m2")
    pq.write_table(pa.table(dict(zip(names, signals.T, strict=True))), tmp_path / "own.parquet")
    mapping = recordings.parse("position=p, velocity=v,force=grip,muscle1=m1,muscle2=m2")
    found = recordings.read(tmp_path / "own.parquet", mapping)
    np.testing.assert_array_equal(found.signals, signals)
    assert found.starts.sum() == 1
    assert found.position == "motor angle"
    unit = found.normalised()
    np.testing.assert_array_equal(unit.min(axis=0), np.zeros(5))
    np.testing.assert_array_equal(unit.max(axis=0), np.ones(5))
    np.testing.assert_allclose(
        unit[:, 2], signals[:, 2] / np.ptp(signals[:, 2]) - signals[:, 2].min() / np.ptp(signals[:, 2])
    )


def test_a_signal_that_never_changes_is_refused():
    signals = np.column_stack([np.arange(10.0)] * 5)
    signals[:, 2] = 7.0
    with pytest.raises(ValueError, match="the force of x never changes"):
        Recording("x", signals, np.zeros(10, bool), "").normalised()


@pytest.mark.parametrize("text", ["force", "force=", "grip=force", "force=a,force=b", ""])
def test_bad_mappings_are_refused(text):
    with pytest.raises(ValueError, match="columns must"):
        recordings.parse(text)


# --- Returns and errors ---------------------------------------------------------------------------


def test_returns_are_the_sums_that_define_them():
    rng = np.random.default_rng(1)
    signal = rng.standard_normal(60)
    starts = np.zeros(60, bool)
    starts[[0, 23, 24, 50]] = True
    found = myoelectric_runs.returns(signal[1:], starts, 0.9)
    for t in range(59):
        end = next((k for k in range(t + 1, 60) if starts[k]), 60)
        expected = sum(0.9**k * signal[t + k + 1] for k in range(end - t - 1))
        assert found[t] == pytest.approx(expected, abs=1e-12)


def test_returns_are_scored_where_little_is_cut_off():
    starts = np.zeros(50, bool)
    starts[[0, 20]] = True
    found = myoelectric_runs.scored(starts, 6)
    assert found.tolist() == [(t <= 13) or (20 <= t <= 43) for t in range(49)]
    assert 0.97 ** myoelectric_runs.tail(0.97) <= 1e-3 < 0.97 ** (myoelectric_runs.tail(0.97) - 1)


@pytest.fixture
def small(monkeypatch):
    """A study that takes a second. Tasks carry with them what it says."""
    monkeypatch.setattr(myoelectric, "STEPS", 800)
    monkeypatch.setattr(myoelectric_runs, "STEP_SIZES", (0.05, 0.5))
    monkeypatch.setattr(myoelectric_runs, "TRACE_DECAYS", (0.0, 0.5, 0.9, 1.0))
    monkeypatch.setattr(myoelectric_runs, "LAMS_PER_TASK", 3)
    monkeypatch.setattr(myoelectric_runs, "BLOCKS", 10)


def piecewise():
    """A recording in three pieces."""
    starts = np.zeros(1200, bool)
    starts[[0, 400, 790]] = True
    return Recording("pieces", arm.simulate(1200, seed=5), starts, "")


@pytest.mark.parametrize("size", [200_000, 700])
def test_errors_are_those_of_the_public_learners(small, size):
    """Every method, α and λ, over several pieces; with few features also where hashing leaves fewer than 9 active."""
    recording = piecewise()

    def coder():
        return TileCoder([0.0] * 5, [1.0] * 5, bins=10, tilings=8, bias=True, size=size)

    X = coder().many(recording.normalised())
    lengths = {len(row) for row in X}
    assert lengths == {9} if size == 200_000 else len(lengths) > 1
    counted = myoelectric_runs.scored(recording.starts, myoelectric_runs.tail(0.97))
    blocks = np.array_split(np.flatnonzero(counted), 10)
    for stream in myoelectric_runs.streams(recording, coder()):
        signal = recording.signals[:, SIGNALS.index(stream.target)]
        true = myoelectric_runs.returns(signal[1:], recording.starts, 0.97)
        assert stream.scored == counted.sum()
        for name, learner in LEARNERS.items():
            found = myoelectric_runs.errors(stream, name, (0.05, 0.3), (0.0, 0.5, 0.95, 1.0))
            for (i, alpha), (j, lam) in itertools.product(enumerate((0.05, 0.3)), enumerate((0.0, 0.5, 0.95, 1.0))):
                values = learner(size, alpha / 9, lam, 0.97).run(X, signal[1:], starts=recording.starts)
                expected = np.abs(values - true)
                assert found[i, j].mean() == pytest.approx(expected[counted].mean(), rel=1e-10)
                sizes = {len(block) for block in blocks}
                if len(sizes) == 1:
                    parts = [expected[block].mean() for block in blocks]
                    np.testing.assert_allclose(found[i, j], parts, rtol=1e-10)


def test_the_features_are_the_papers():
    coder = myoelectric_runs.tiles()
    assert (coder.n_features, coder.n_active) == (200_000, 9)
    settings = {**coder.settings(), "size": None}
    assert TileCoder(**settings).n_features == 800_001
    assert len(myoelectric_runs.STEP_SIZES) == 11
    assert len(myoelectric_runs.TRACE_DECAYS) == 20


def test_what_diverges_is_infinite_and_leaves_no_trace(small):
    """And what comes after it is as if nothing had been."""
    _, stream = myoelectric_runs.streams(piecewise())
    found = myoelectric_runs.errors(stream, "accumulate", (8.0, 0.1), (0.99,))
    assert np.isinf(found[0]).all()
    np.testing.assert_array_equal(found[1], myoelectric_runs.errors(stream, "accumulate", (0.1,), (0.99,))[0])
    assert np.isfinite(found[1]).all()


# --- The study ------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "mine.csv", raw())


def reproduce(out, *arguments):
    return CliRunner().invoke(main, ["reproduce", "myoelectric", "--out", str(out), *map(str, arguments)])


def test_simulator_and_recording_side_by_side(small, file, tmp_path):
    out = tmp_path / "out"
    result = reproduce(out, "--data", file, "--columns", "recording=trial", "--rate", 80)
    assert result.exit_code == 0, result.output
    folder = out / "myoelectric"
    for name in ("figure", *(f"{kind}-{s}" for kind in ("appendix-d", "signals") for s in ("simulator", "recording"))):
        assert (folder / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    table = pq.read_table(folder / "data.parquet")
    assert table.num_rows == 2 * 2 * 3 * 2 * 4
    assert set(table["source"].to_pylist()) == {"simulator", "recording"}
    verdicts = json.loads((out / "verdicts.json").read_text())
    assert len(verdicts) == 2 * (3 + 3)
    assert {each["verdict"] for each in verdicts} <= {HOLDS, FAILS, NOISE}
    said = [each["claim"] for each in verdicts]
    assert sum("(recording)" in claim for claim in said) == 6
    assert "motor angle (simulator): accumulate TD(λ) dominates replace TD(λ)" in said
    assert "grip force (simulator): replace TD(λ) is better than accumulate TD(λ) at all λ > 0" in said
    page = (out / "report.html").read_text()
    assert "stands in for the angle" in page
    assert "bootstrap over time" in page
    for row in table.to_pylist():  # the table is what the kernels gave
        if (row["source"], row["target"], row["step_size"], row["trace_decay"]) == ("simulator", "force", 0.5, 0.9):
            stream = myoelectric_runs.streams(recordings.simulated(800 + myoelectric_runs.tail(0.97), 0))[1]
            found = myoelectric_runs.errors(stream, row["method"], (0.5,), (0.9,)).mean()
            assert row["absolute_error"] == pytest.approx(found, rel=1e-12)


def test_it_resumes_and_shares_nothing_between_seeds(small, tmp_path):
    data = myoelectric.run(Settings(tmp_path, threads=1)).data
    tasks = sorted(tmp_path.glob("*.parquet"))
    assert len(tasks) == 2 * 3 * 2  # targets × methods × groups of λ
    before = {path: path.stat().st_mtime_ns for path in tasks}
    tasks[0].unlink()
    tasks[1].write_bytes(tasks[1].read_bytes()[:200])
    assert myoelectric.run(Settings(tmp_path, threads=2)).data.equals(data)
    after = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.glob("*.parquet"))}
    assert set(after) == set(before)
    assert {path for path in after if after[path] != before[path]} == set(tasks[:2])
    assert not myoelectric.run(Settings(tmp_path, seed=1)).data.equals(data)
    assert len(list(tmp_path.glob("*.parquet"))) == 2 * len(tasks)


def test_all_steps_of_the_simulator_are_scored(small):
    for stream in myoelectric_runs.streams(recordings.simulated(800 + myoelectric_runs.tail(0.97), 0)):
        assert stream.scored == 800
        assert (stream.blocks[:800] >= 0).all()
        assert np.bincount(stream.blocks[:800]).tolist() == [80] * 10


def made(by_method, lams=(0.0, 0.5, 0.9)):
    noise = 1.0 + 0.01 * np.random.default_rng(0).standard_normal((50, 1, 1))
    arrays = {name: np.broadcast_to(np.array(values), (50, 2, 3)) * noise for name, values in by_method.items()}
    return myoelectric.Prediction("s", "force", "grip force", np.array([0.1, 1.0]), np.array(lams), Errors(arrays))


def test_verdicts_follow_the_errors():
    better, worse, equal = [1.0, 0.8, 0.6], [1.0, 0.9, 0.7], [1.0, 0.8, 0.6]
    first, second, third = myoelectric.judged(made({"accumulate": worse, "replace": better, "true_online": equal}))
    assert (first.verdict, second.verdict, third.verdict) == (HOLDS, HOLDS, HOLDS)
    mixed = {"accumulate": better, "replace": [1.0, 0.7, 0.7], "true_online": [1.0, 0.8, 0.7]}
    first, second, third = myoelectric.judged(made(mixed))
    assert (first.verdict, second.verdict, third.verdict) == (FAILS, FAILS, FAILS)
    assert first.numbers["λ at which it does not"] == [0.9]
    assert first.numbers["λ at which it holds"] == "1 of 2"


def test_a_difference_that_one_block_makes_is_noise():
    found = made({name: [1.0, 0.8, 0.8] for name in LEARNERS})
    found.errors.by_method["replace"][3, :, 1:] -= 0.5
    found.errors.by_method["replace"][4, :, 1:] += 0.4
    assert myoelectric.judged(found)[0].verdict == NOISE


def test_settings_that_diverge_do_not_spoil_the_best():
    found = made({"accumulate": [1.0, 0.9, 0.9], "replace": [1.0, 0.8, 0.8], "true_online": [1.0, 0.8, 0.8]})
    found.errors.by_method["accumulate"][:, 1] = np.inf
    assert np.isfinite(found.ratio("accumulate").rows).all()
    assert myoelectric.judged(found)[0].verdict == HOLDS


# --- Bad input ------------------------------------------------------------------------------------


def spoilt(**changes):
    columns = {**raw(), **changes}
    return {name: values for name, values in columns.items() if values is not None}


def nan_at(row):
    values = [str(value) for value in raw()["force"]]
    values[row] = ""
    return values


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        (spoilt(force=None), (), "must have a column 'force'; it has trial, emg_a"),
        (spoilt(emg_a=None, emg_b=None), (), "must have two muscle signals"),
        (spoilt(), ("--columns", "muscle1=emg_a"), "must have two muscle signals"),
        (spoilt(), ("--columns", "force=grip"), "has no column 'grip'; it has trial, force"),
        (spoilt(), ("--columns", "strength=force"), "with roles position, velocity, force"),
        (spoilt(force=nan_at(16)), (), "got nan in row 17"),
        (spoilt(force=["much"] * 4000), (), "the column 'force' of .* must hold numbers"),
        (spoilt(force=[1.0] * 4000), (), "the (position|force) of recording never changes"),
        ({name: values[:600] for name, values in raw().items()}, (), "the recording is too short"),
        ({name: values[:0] for name, values in raw().items()}, (), "has no rows"),
        (spoilt(), ("--rate", 100), "rate must be a multiple of 40, got 100"),
    ],
)
def test_a_bad_recording_is_refused_in_a_line(small, columns, arguments, message, tmp_path):
    path = write(tmp_path / "bad.csv", columns)
    result = reproduce(tmp_path / "out", "--data", path, *(() if "--rate" in arguments else ("--rate", 80)), *arguments)
    assert result.exit_code == 1, result.output
    assert re.search(message, result.stderr), result.stderr
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_file_that_is_none_is_refused(small, tmp_path):
    assert "there is no file" in reproduce(tmp_path / "out", "--data", tmp_path / "nowhere.csv").stderr
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    assert (
        "is not a readable CSV or Parquet file" in reproduce(tmp_path / "out", "--data", tmp_path / "bad.parquet").stderr
    )


# --- A real recording -----------------------------------------------------------------------------


@pytest.mark.skipif(not SHARED.exists(), reason="the recording is not in ../shared/data, which is no part of the project")
def test_a_real_recording(small):
    found = recordings.read(SHARED, rate=200.0)
    assert found.signals.shape == (24_267, 5)
    assert found.starts.sum() == 10
    assert "emg6 and emg7" in found.about
    for stream in myoelectric_runs.streams(found):
        error = myoelectric_runs.errors(stream, "true_online", (0.5,), (0.9,)).mean()
        scored = stream.returns[stream.blocks >= 0]
        assert error < 0.8 * np.abs(scored - scored.mean()).mean(), "better than the mean of the returns"
