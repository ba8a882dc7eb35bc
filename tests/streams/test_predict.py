"""`trueonline predict`: held to learners and returns computed the slow way, and fed with all kinds of rubbish."""

import numpy as np
import pytest

from tests.streams.predict_calls import COMMAND, predict, read, recording
from trueonline import TrueOnlineTD, files
from trueonline.features import TileCoder
from trueonline.streams.predictor import DivergedError, Predictor, Setup
from trueonline.streams.running import reporting
from trueonline.streams.sources import Block, Clean, Cleaner

SIGNALS = ("a", "b", "c")


def returns_of(values, gamma):
    """G_t for every sample, as far as the recording goes."""
    found = np.zeros(len(values))
    for t in range(len(values) - 2, -1, -1):
        found[t] = values[t + 1] + gamma * found[t + 1]
    return found


# --- What is predicted ----------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "out"), [("log.parquet", "out.csv"), ("log.csv.gz", "out.parquet")])
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
    assert question["error"] == pytest.approx(errors[known].mean(), rel=1e-3)  # the last 1e-4 of the weight
    assert question["mean"] == pytest.approx(returns[known].mean(), rel=1e-4)
    naive = {"hold": values / 0.03, "mean": np.cumsum(values) / np.arange(1, len(values) + 1) / 0.03}
    for name, forecast in naive.items():
        assert question["naive"][name] == pytest.approx(np.abs(forecast - returns)[known].mean(), rel=1e-3)
    assert question["skill"] == pytest.approx(1 - question["error"] / min(question["naive"].values()))
    inside = (rows[f"{question['name']}.low"] <= returns) & (returns <= rows[f"{question['name']}.high"])
    assert inside[known][500:].mean() > 0.8
    assert errors[known][-500:].mean() < 0.5 * errors[known][:500].mean()  # it has learned something


def test_predictions_are_those_of_a_learner_of_its_own(table, tmp_path):
    bounds = {"a": (-1.0, 1.0), "b": (-1.1, 1.1), "c": (-5.0, 5.0)}
    ranges = [f"--range={name}={low}:{high}" for name, (low, high) in bounds.items()]
    predict(table / "log.csv", *COMMAND, *ranges, "--out", tmp_path / "out.csv")
    found = read(tmp_path / "out.csv")["force@0.97"]

    columns = recording()
    low, high = (np.array([bounds[name][i] for name in SIGNALS]) for i in range(2))
    coder = TileCoder(low=np.zeros(3), high=np.ones(3), bins=10, tilings=8, bias=True)
    learner = TrueOnlineTD(coder.n_features, step_size=0.1 / 9, trace_decay=0.9, discount=0.97)
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
    columns = recording(300)
    values = np.column_stack(list(columns.values()))
    times = np.arange(300) / 40.0
    starts = np.isin(np.arange(300), (0, 120, 121))
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
    for most in (1, 50, 300):
        predictor, parts, at = Predictor(setup), [], 0
        while at < 300:
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
    (tmp_path / "log.csv").write_text("phase,one,going\n" + "".join(f"{each},1,{int(each != 9)}\n" for each in phase))
    options = [
        "--rate", "10", "--signals", "phase", "--target", "one", "--discount", "going", "--step-size", "0.5",
        "--method", "true_online",
    ]  # fmt: skip
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
    options = ["--rate", "10", "--time", "time", "--target", "x", "--json", "--out", tmp_path / "o.csv"]
    told = predict(tmp_path / "log.csv", *options)
    counted = told["counters"]
    assert told["samples"] == len(read(tmp_path / "o.csv")["time"]) == 160 - 4
    assert told["dropped"] == 4
    assert (counted["dropped_duplicate"], counted["dropped_late"], counted["malformed"]) == (1, 1, 2)
    assert (counted["held"], counted["gaps"]) == (3, 1)
    told = predict(tmp_path / "log.csv", *options, "--missing", "skip")
    assert (told["samples"], told["dropped"], told["counters"]["dropped_missing"]) == (160 - 7, 7, 3)
    assert "x is missing (nan)" in predict(tmp_path / "log.csv", *options, "--missing", "error", fails=True)


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
    assert not kept.exists()
    predictor = Predictor(Setup(signals=["x"], targets=["x"], discounts=[0.99], method="accumulate", step_size=1000.0))
    times = np.arange(5000.0)
    with pytest.raises(DivergedError, match="diverged"):
        predictor.learn(Clean(times, times[:, None] % 7, times == 0))


def test_the_arm_stops_at_a_number_of_samples_and_goes_on_from_there(tmp_path):
    """Files are in test_learning_on.py."""
    command = ["arm", "--target", "force", "--checkpoint", tmp_path / "kept", "--json", "--out"]
    for limit in (1, 700, 701, 2500):
        told = predict(*command, tmp_path / "parts.csv", "--samples", limit)
        assert told["samples"] == limit
    once = predict("arm", "--target", "force", "--json", "--samples", 2500, "--out", tmp_path / "once.csv")
    assert told["questions"] == once["questions"]
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "once.csv").read_bytes()


@pytest.mark.parametrize(
    ("hours", "method"),
    [(0.5, "auto"), (0.5, "true_online"), pytest.param(7 * 24, "true_online", marks=pytest.mark.slow)],
)
def test_a_long_stream_does_not_grow_memory(hours, method):
    psutil = pytest.importorskip("psutil")
    setup = Setup(signals=["a", "b"], targets=["a"], horizons=[1.0, 60.0], rate=40.0, method=method)
    predictor, process = Predictor(setup), psutil.Process()
    cleaner = Cleaner(predictor.columns, max_gap=1.0)
    rng = np.random.default_rng(0)
    sizes = []
    for k in range(int(hours * 3600 * 40 // 4096)):
        values = rng.random((4096, 2))
        values[rng.integers(4096, size=5)] = np.nan
        predictor.learn(cleaner(Block(np.arange(4096) / 40 + k * 102.4, values)))
        if k % 5 == 0:
            sizes.append((process.memory_info().rss, sum(array.nbytes for array in predictor.state().values())))
    assert predictor.samples > hours * 3600 * 40 - 2 * 4096
    assert sizes[-1][1] < 1.01 * sizes[2][1]  # lists of traced features are not always as long
    assert sizes[-1][0] - sizes[2][0] < 2**25


def test_the_text_below_the_table_explains_every_column():
    for head in reporting.HEADS[1:]:
        assert f'"{" ".join(head.split())}"' in reporting.EXPLANATION
