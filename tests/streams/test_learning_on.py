"""Learning that outlives a source: several files, files that come later, and other sources."""

import json
import signal
import time

import numpy as np
import pytest
from click.testing import CliRunner

from tests.streams.predict_calls import predict, read, started
from trueonline import files
from trueonline.cli import main
from trueonline.streams.predictor import Predictor, Setup
from trueonline.streams.sources import Clean

COMMAND = ["--rate", 10, "--target", "x", "--discount", 0.9, "--method", "true_online", "--features", 5000, "--json"]


def rows(first, last):
    return "".join(f"{np.sin(t / 5):.6f}\n" for t in range(first, last))


def written(path, first, last):
    path.write_text("x\n" + rows(first, last))
    return path


def test_several_files_give_the_predictions_of_one(tmp_path):
    whole = written(tmp_path / "whole.csv", 0, 900)
    days = [written(tmp_path / f"day{i}.csv", 300 * i, 300 * (i + 1)) for i in range(3)]
    once = predict(whole, *COMMAND, "--out", tmp_path / "once")
    for limit in (1, 299, 300, 301, 700, 900):  # resumed in each file, and between them
        named = predict(
            *days, *COMMAND, "--out", tmp_path / "named", "--checkpoint", tmp_path / "kept", "--samples", limit
        )
    fitting = predict(tmp_path / "day?.csv", *COMMAND, "--out", tmp_path / "fitting")
    assert once["questions"] == named["questions"] == fitting["questions"]
    assert named["samples"] == 900
    for name in ("named", "fitting"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "once").read_bytes()


def test_new_files_of_a_list_or_a_pattern_are_read_where_reading_stopped(tmp_path):
    first, kept, out = written(tmp_path / "log1.csv", 0, 200), tmp_path / "kept", tmp_path / "out"
    for sources, samples, resumed in (
        ([first], 200, None),
        ([first, "log2"], 300, 200),
        ([first, "log2", "log3"], 400, 300),
    ):
        for i, name in enumerate(sources):
            if isinstance(name, str):
                sources[i] = written(tmp_path / f"{name}.csv", 100 * (i + 1), 100 * (i + 2))
        told = predict(*sources, *COMMAND, "--checkpoint", kept, "--out", out)
        assert (told["samples"], told["resumed_at"]) == (samples, resumed)
    assert read(out)["time"].tolist() == [t / 10 for t in range(400)]
    for samples, resumed in ((400, None), (500, 400)):
        told = predict(tmp_path / "log*.csv", *COMMAND, "--checkpoint", tmp_path / "other")
        assert (told["samples"], told["resumed_at"]) == (samples, resumed)
        written(tmp_path / "log4.csv", 400, 500)
    (tmp_path / "log1.csv").unlink()
    assert predict(tmp_path / "log*.csv", *COMMAND, "--checkpoint", tmp_path / "other")["samples"] == 500


def test_learning_goes_on_with_another_source(tmp_path):
    """Held to one predictor that learns from both, with a start between them."""
    yesterday, today = written(tmp_path / "yesterday.csv", 0, 700), written(tmp_path / "today.csv", 1000, 1400)
    kept = tmp_path / "kept"
    first = predict(yesterday, *COMMAND, "--checkpoint", kept, "--out", tmp_path / "first.csv")
    before = (tmp_path / "first.csv").read_bytes()
    command = ["predict", today, *COMMAND, "--checkpoint", kept, "--out", tmp_path / "second.csv"]
    done = CliRunner().invoke(main, [*map(str, command)])
    second = json.loads(done.stdout)
    assert f"Continues what was learned from {yesterday}, 700 samples." in done.stderr
    values = np.array([round(np.sin(t / 5), 6) for t in (*range(700), *range(1000, 1400))])[:, None]
    setup = Setup(signals=["x"], targets=["x"], discounts=[0.9], rate=10.0, method="true_online", features=5000)
    both = Predictor(setup)
    times = np.concatenate([np.arange(700), np.arange(400)]) / 10.0
    starts = np.isin(np.arange(1100), (0, 700))
    answers = both.learn(Clean(times, values, starts)).predictions[:, 0]
    np.testing.assert_array_equal(read(tmp_path / "first.csv")["x@0.9"], answers[:700])
    np.testing.assert_array_equal(read(tmp_path / "second.csv")["x@0.9"], answers[700:])
    np.testing.assert_array_equal(read(tmp_path / "second.csv")["time"], np.arange(400) / 10.0)
    assert (tmp_path / "first.csv").read_bytes() == before
    assert (first["samples"], second["samples"], second["resumed_at"]) == (700, 400, None)
    assert second["counters"]["read"] == 400
    (question,) = second["questions"]
    assert question["scored"] + question["truncated"] == 400
    assert second["counters"]["widened"] == 0  # the bounds are those of before
    third = predict(today, *COMMAND, "--checkpoint", kept)  # the same source again: nothing is left in it
    assert (third["samples"], third["resumed_at"]) == (400, 400)


def test_a_source_that_was_not_read_to_its_end_is_finished_first(tmp_path):
    yesterday, today = written(tmp_path / "yesterday.csv", 0, 700), written(tmp_path / "today.csv", 1000, 1400)
    options = [*COMMAND, "--checkpoint", tmp_path / "kept"]
    predict(yesterday, *options, "--samples", 300)
    said = predict(today, *options, fails=True)
    assert f"is of a run over {yesterday}, which was not read to its end" in said
    assert "Give that source again to finish it" in said
    assert predict(yesterday, *options)["resumed_at"] == 300
    assert "discounts was [0.9] and is [0.9, 0.5]" in predict(today, *options, "--discount", 0.5, fails=True)
    (tmp_path / "out.csv").write_text("time,x\n1,2\n")
    said = predict(today, *options, "--out", tmp_path / "out.csv", fails=True)
    assert "predictions for another source do not replace it" in said
    assert predict(today, *options)["samples"] == 400


def test_a_new_source_that_is_killed_at_once_resumes_in_it(tmp_path):
    yesterday, today = written(tmp_path / "yesterday.csv", 0, 700), written(tmp_path / "today.csv", 1000, 9000)
    options = [*COMMAND, "--checkpoint", tmp_path / "kept"]
    predict(yesterday, *options)
    process = started(today, *options, "--out", tmp_path / "out.csv", "--pace", "100")
    while not (tmp_path / "out.csv").exists():
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)  # long before a checkpoint is due
    process.communicate()
    told = predict(today, *options, "--out", tmp_path / "out.csv")
    assert (told["resumed_at"], told["samples"]) == (0, 8000)
    assert len(read(tmp_path / "out.csv")["time"]) == 8000


def test_what_is_written_is_not_among_the_files_of_a_pattern(tmp_path):
    written(tmp_path / "log.csv", 0, 50)
    said = predict(tmp_path / "*.csv", *COMMAND, "--out", tmp_path / "out.csv", fails=True)
    assert "--out" in said
    assert "would be one of the files" in said
    said = predict(tmp_path / "log.csv", tmp_path / "a.csv", *COMMAND, "--out", tmp_path / "log.csv", fails=True)
    assert "the source and --out are one file" in said
    assert "name it alone" in predict(tmp_path / "log.csv", "mqtt://host/x", *COMMAND, fails=True)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


@pytest.mark.parametrize("damage", [{"samples": 701}, {"samples": None}, {"counters": {"clipped": "1"}}])
def test_impossible_counts_of_earlier_sources_are_refused(tmp_path, damage):
    log, kept = written(tmp_path / "log.csv", 0, 700), tmp_path / "kept"
    predict(log, *COMMAND, "--checkpoint", kept)
    kind, about, arrays = files.read_learner(kept)
    about["earlier"] |= damage
    files.write_learner(kept, kind, about, arrays)
    assert "counts of earlier sources are impossible" in predict(log, *COMMAND, "--checkpoint", kept, fails=True)


def test_a_log_that_was_followed_is_read_to_its_end_without_following(tmp_path):
    log, other = written(tmp_path / "log.csv", 0, 300), written(tmp_path / "other.csv", 0, 100)
    options = [*COMMAND, "--checkpoint", tmp_path / "kept"]
    predict(log, *options, "--follow", "--samples", 300)
    assert "not read to its end" in predict(other, *options, fails=True)
    assert predict(log, *options)["samples"] == 300
    assert predict(other, *options)["samples"] == 100
