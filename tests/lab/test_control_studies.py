"""The studies of control, scaled down, in threads: processes would do the same, and spend their time on beginning.

One task of each study runs in a process of its own.
"""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from trueonline import files, study
from trueonline.cli import main
from trueonline.control import atari
from trueonline.lab import reproduction
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Errors
from trueonline.lab.experiment import Settings
from trueonline.lab.experiments import asterix_runs, mountain_car, stream_x

pytest.importorskip("gymnasium")
pytest.importorskip("ale_py")

LEARN, TRACE_DECAYS = atari.learn_background, asterix_runs.TRACE_DECAYS


class Short(atari.AtariRun):
    """A run of few frames, for measuring how fast they are."""

    def __init__(self, settings, background):
        super().__init__(replace(settings, frames=min(settings.frames, 1500)), background)


@pytest.fixture(scope="module")
def few():
    """A scale that takes seconds. Tasks carry it with them, so that their processes need not know."""
    with pytest.MonkeyPatch.context() as patch:
        tiny = asterix_runs.Scale("quick", 1500, (1.7,), 2, "It shows nothing.")
        patch.setattr(asterix_runs, "SCALES", (tiny, *asterix_runs.SCALES[1:]))
        patch.setattr(asterix_runs, "TRACE_DECAYS", (0.9,))
        patch.setattr(atari, "learn_background", partial(LEARN, decisions=100))
        patch.setattr(atari, "AtariRun", Short)
        patch.setattr(asterix_runs.AsterixRuns, "spawned", False)
        yield tiny


@pytest.fixture(scope="module")
def played(few, tmp_path_factory):
    out = tmp_path_factory.mktemp("asterix")
    result = CliRunner().invoke(main, ["reproduce", "asterix", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result


def test_asterix_leaves_figure_background_and_data(played):
    out, _ = played
    for file in ("figure.png", "figure.pdf", "background.png", "background.txt", "data.csv"):
        assert (out / "asterix" / file).stat().st_size > 300, file
    table = pq.read_table(out / "asterix" / "data.parquet")
    assert table.num_rows == (3 + 1) * 2
    assert set(table["method"].to_pylist()) == {"accumulate", "replace", "true_online", "random"}
    assert all(frames >= 1500 for frames in table["frames"].to_pylist()), "the last episode is played to its end"
    np.testing.assert_array_equal(atari.read_background(out / "asterix" / "background.txt"), atari.learn_background())
    page = (out / "report.html").read_text()
    assert "It shows nothing." in page
    assert "2 runs of 1,500 frames" in page
    assert page.count("data:image/png;base64,") == 3, "the background, a screen, and the part that the features see"


def test_asterix_says_beforehand_what_it_will_take(played):
    _, result = played
    assert re.search(r"8 runs, 12,000 frames\. At [\d,]+ frames a second .* of core time", result.stderr)


def test_a_second_call_computes_nothing_and_says_no_estimate(played, monkeypatch):
    out, _ = played
    before = {file.name: file.stat().st_mtime_ns for file in (out / "tasks").glob("*.parquet")}
    monkeypatch.setattr(reproduction, "_write", lambda folder, outcome: ({}, {}))  # the same pictures again
    result = CliRunner().invoke(main, ["reproduce", "asterix", "--out", str(out)])
    assert result.exit_code == 0
    assert "core time" not in result.stderr
    assert {file.name: file.stat().st_mtime_ns for file in (out / "tasks").glob("*.parquet")} == before


@pytest.mark.slow
def test_shares_of_asterix_add_up(played, tmp_path):
    whole, _ = played
    first = CliRunner().invoke(main, ["reproduce", "asterix", "--out", str(tmp_path), "--shard", "1/2"])
    assert first.exit_code == 0
    assert "share 1/2 of asterix is done; others are not" in first.stdout
    assert not (tmp_path / "report.html").exists()
    second = CliRunner().invoke(main, ["reproduce", "asterix", "--out", str(tmp_path), "--shard", "2/2"])
    assert second.exit_code == 0
    assert (tmp_path / "report.html").exists()
    assert pq.read_table(tmp_path / "asterix/data.parquet").equals(pq.read_table(whole / "asterix/data.parquet"))


def test_a_task_of_asterix_is_a_run_by_hand(played, few):
    """The score in the table is that of the same run played here, with the same background."""
    out, _ = played
    row = next(
        row
        for row in pq.read_table(out / "asterix/data.parquet").to_pylist()
        if (row["method"], row["step_size"], row["trace_decay"], row["run"]) == ("true_online", 1.7, 0.9, 1)
    )
    run = atari.play(atari.AtariSettings("paper", "true_online", 1.7, 0.9, 1, frames=1500), atari.learn_background())
    assert (row["score"], row["episodes"], row["frames"]) == (run.mean_score, len(run.episodes), run.played)


def test_a_task_of_asterix_goes_on_where_it_was_stopped(few, tmp_path, monkeypatch):
    background = LEARN(decisions=50)
    task = asterix_runs.tasks(Settings(tmp_path), background)[1]
    expected = task.compute()
    scratch = tmp_path / "scratch"

    def interrupt(frames):
        if frames == few.frames:  # between the first run and the second
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task.compute(scratch, interrupt)
    [finished] = files.read_json(scratch / "rows.json")
    files.write_json(scratch / "rows.json", [{**finished, "score": -1.0}])
    again = task.compute(scratch)
    assert again["score"].to_pylist() == [-1.0, expected["score"].to_pylist()[1]], "and not played again"
    monkeypatch.setattr(asterix_runs.AsterixRuns, "spawned", True)
    study.execute_tasks([task], tmp_path / "tasks")  # in a process of its own
    assert study.read_task(task, tmp_path / "tasks").equals(expected)


def test_the_paper_scale_is_the_papers(tmp_path, monkeypatch):
    monkeypatch.setattr(asterix_runs, "TRACE_DECAYS", TRACE_DECAYS)
    tasks = asterix_runs.tasks(Settings(tmp_path, options={"scale": "paper"}), np.zeros((210, 160), np.uint8))
    runs = {}
    for task in tasks:
        runs[task.settings[0].method] = runs.get(task.settings[0].method, 0) + task.rows
        assert all(settings.frames == 4_320_000 for settings in task.settings)
    assert runs["true_online"] == runs["accumulate"] == runs["replace"] == 16_800
    assert len({task.name for task in tasks[::100]}) == len(tasks[::100])
    assert {s.step_size for t in tasks for s in t.settings if s.method != "random"} == set(asterix_runs.STEP_SIZES)


def test_few_runs_never_decide(played):
    out, _ = played
    verdicts = json.loads((out / "verdicts.json").read_text())
    assert [verdict["verdict"] for verdict in verdicts[:2]] == [NOISE, NOISE]


def test_mountain_car_compares_the_methods(tmp_path, monkeypatch):
    monkeypatch.setattr(mountain_car.MountainCarRuns, "spawned", False)
    monkeypatch.setattr(mountain_car, "STEP_SIZES", (0.5,))
    monkeypatch.setattr(mountain_car, "TRACE_DECAYS", (0.0, 0.9))
    monkeypatch.setattr(mountain_car, "EPISODES", 3)
    outcome = mountain_car.run(Settings(tmp_path, runs=2))
    assert outcome.data.num_rows == 4 * 2 * 2
    steps = {(row["method"], row["trace_decay"], row["run"]): row["steps"] for row in outcome.data.to_pylist()}
    for run in range(2):
        alone = {steps[method, 0.0, run] for method in mountain_car.COMPARED}
        assert len(alone) == 1, "without traces all methods are the same"
    assert all(claim.verdict == NOISE for claim in outcome.claims), "two runs decide nothing"
    assert len(outcome.claims) == 3


def test_a_task_of_mountain_car_goes_on_where_it_was_stopped(tmp_path):
    task = mountain_car.MountainCarRuns("true_online_sarsa", 0.9, (0.5, 1.1), 1, 2, 0)
    expected = task.compute()

    def interrupt(episodes):
        if episodes == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task.compute(tmp_path, interrupt)
    assert task.compute(tmp_path).equals(expected)
    study.execute_tasks([task], tmp_path / "tasks")  # in a process of its own
    assert study.read_task(task, tmp_path / "tasks").equals(expected)


def test_claims_of_mountain_car_can_hold():
    rng = np.random.default_rng(0)
    steps = {name: rng.normal(300.0, 5.0, (8, 2, 2)) for name in mountain_car.COMPARED}
    steps["true_online_sarsa"] -= 100.0
    assert {claim.verdict for claim in mountain_car.claims(Errors(steps))} == {HOLDS}


def test_stream_x_has_a_curve_for_each_agent(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_x.SeveralTrainings, "spawned", False)
    monkeypatch.setattr(stream_x, "ENVIRONMENTS", ("CartPole-v1",))
    outcome = stream_x.run(Settings(tmp_path, runs=2, options={"transitions": 1000}))
    assert outcome.data["method"].to_pylist() == [method for method in stream_x.TITLES for _ in range(2)]
    assert {claim.verdict for claim in outcome.claims} == {NOISE}  # two runs decide nothing
    lines = outcome.figures["figure"]().axes[0].lines
    assert all(len(line.get_ydata()) == stream_x.PARTS and np.isfinite(line.get_ydata()).all() for line in lines)


def test_claims_of_stream_x_can_hold_and_fail():
    def data(gain):
        rows = [(name, method, run, run + 1.0, run + 1.0 + gain + 0.1 * run) for name in stream_x.ENVIRONMENTS
                for method in stream_x.TITLES for run in range(6)]  # fmt: skip
        return pa.table(
            dict(zip(("environment", "method", "run", "early", "late"), zip(*rows, strict=True), strict=True))
        )

    assert {claim.verdict for claim in stream_x.claims(data(5.0))} == {HOLDS}
    assert {claim.verdict for claim in stream_x.claims(data(-5.0))} == {FAILS}
