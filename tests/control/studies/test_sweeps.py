"""Sweeps of agents: each run is that of `train`, results are kept, and the statistics are those of their definitions."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy import stats

import trueonline as to
from trueonline import control
from trueonline.cli import main
from trueonline.control.gym.train.settings import TrainingSettings
from trueonline.control.studies import sweeps

pytest.importorskip("gymnasium")

LAKE = {"options": {"is_slippery": False}, "epsilon": 0.2}
GRID = {"step_sizes": [0.5], "trace_decays": [0.0, 0.9], "seeds": 2, "episodes": 15}


def by_train(seed, trace_decay, method="true_online_sarsa"):
    settings = TrainingSettings("FrozenLake-v1", method=method, trace_decay=trace_decay, seed=seed, **LAKE)
    env = settings.environment_made()
    maker = settings.features_for(env)
    return control.train(env, settings.agent(env, maker, 0), maker, episodes=15, seed=(seed, 0))


def test_every_run_is_that_of_train_and_is_computed_once(tmp_path, monkeypatch):
    table = control.sweep("FrozenLake-v1", "true_online_sarsa", **GRID, **LAKE, threads=2, out=tmp_path)
    assert [(row["trace_decay"], row["seed"]) for row in table.to_pylist()] == [(0.0, 0), (0.0, 1), (0.9, 0), (0.9, 1)]
    for row in table.to_pylist():
        training = by_train(row["seed"], row["trace_decay"])
        assert row["returns"] == training.returns.tolist()
        assert row["lengths"] == training.lengths.tolist()
        assert (row["mean_return"], row["final_return"]) == (training.returns.mean(), training.returns[-2:].mean())
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.parquet")}
    assert len(stored) == 2
    monkeypatch.setattr(sweeps.SeveralTrainings, "compute", lambda *given: pytest.fail("it was there"))
    assert control.sweep("FrozenLake-v1", "true_online_sarsa", **GRID, **LAKE, out=tmp_path).equals(table)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.parquet")} == stored


def test_a_task_ends_after_so_many_steps_and_resumes_with_its_next_seed(tmp_path):
    settings = TrainingSettings("FrozenLake-v1", method="watkins_q", **LAKE)
    task = sweeps.SeveralTrainings("mine", settings, ((3, 0), (4, 0)), None, 60)
    whole = task.compute()
    assert [sum(lengths) >= 60 for lengths in whole["lengths"].to_pylist()] == [True, True]
    beats = []

    def stop(steps):
        beats.append(steps)
        if steps > 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task.compute(tmp_path, stop)
    assert beats == sorted(beats)
    assert task.compute(tmp_path).equals(whole)
    assert whole["agent"].to_pylist() == ["mine", "mine"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"environment": "FrozenLike-v1"}, "unknown environment 'FrozenLike-v1'; close are FrozenLake-v1"),
        ({"agents": "sarsa"}, "unknown method 'sarsa'"),
        ({"agents": {"mine": {"epsilo": 0.1}}}, "unknown setting of an agent 'epsilo'; known are discount"),
        ({"environment": ["FrozenLake-v1"] * 2}, "environment must be a name, or several different names"),
        ({"environment": 3}, "environment must be a name"),
        ({"agents": {}}, "agents must be a name"),
        ({"agents": {1: {}}}, "agents must be a name"),
        ({"agents": {"mine": None}}, "agents must be a mapping from names to settings"),
        ({"step_sizes": [0.1, -1.0]}, "step_sizes must be"),
        ({"step_sizes": [0.1, 0.1]}, "step_sizes must be distinct"),
        ({"step_sizes": 0.1}, "step_sizes must be a list of numbers"),
        ({"trace_decays": []}, "trace_decays must be distinct numbers, at least one"),
        ({"seeds": [1, 1]}, "seeds must be distinct"),
        ({"seeds": [2**63]}, "seeds must be a number of seeds"),
        ({"threads": 0}, "threads must be a whole number from 1"),
        ({"divided": "no"}, "divided must be True or False"),
        ({"options": ["is_slippery"]}, "options must be a dictionary"),
        ({"seeds": [-1]}, "seeds must be a number of seeds"),
        ({"episodes": None}, "episodes or steps must be given"),
        ({"engine": "cuda"}, "agents do not train on a GPU"),
        ({"environment": "Pendulum-v1"}, "chooses among some actions"),
        ({"parameters": {"bond": [0.1]}}, "parameters has 'bond', which is a parameter of none of the agents"),
        ({"parameters": {"bound": [0.1, -1.0]}}, "bound must be a finite number > 0, got -1.0"),
        ({"parameters": {"bound": []}}, r"parameters\['bound'\] must be distinct numbers, at least one"),
        (
            {"agents": {"mine": {"method": "gq", "parameters": {"bond": 1.0}}}},
            "unknown parameter of gq 'bond'; known are eta, second_step_size, target_epsilon",
        ),
        ({"agents": {"mine": {"method": "gq", "parameters": {"eta": "1"}}}}, "eta must be a finite number, got '1'"),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(changed, message, tmp_path):
    given = {"environment": "FrozenLake-v1", "agents": "watkins_q", **GRID, "out": tmp_path / "out"}
    with pytest.raises(ValueError, match=message):
        control.sweep(**given | changed)
    assert not (tmp_path / "out").exists()


def test_parameters_of_agents_are_swept_as_step_sizes_are():
    agents = {
        "swift": {"method": "swift_sarsa", "parameters": {"bound": 0.5}},
        "gq": {"method": "gq"},
        "watkins_q": {"method": "watkins_q"},
    }
    grid = {**GRID, "trace_decays": [0.9], "seeds": 1}
    table = control.sweep(
        "FrozenLake-v1", agents, **grid, parameters={"meta_step_size": [0.0, 0.1], "eta": [0.0, 0.5]}, **LAKE
    )
    points = [tuple(row[name] for name in ("agent", "meta_step_size", "eta")) for row in table.to_pylist()]
    adapted = ("watkins_q", 0.0, None), ("watkins_q", 0.1, None)
    assert points == [("swift", 0.0, None), ("swift", 0.1, None), ("gq", None, 0.0), ("gq", None, 0.5), *adapted]
    env = TrainingSettings("FrozenLake-v1", **LAKE).environment_made()
    maker = to.features.from_space(env.observation_space)
    policy = control.EpsilonGreedy(0.2)
    swift = control.SwiftSarsa(16, 4, 0.5, 0.9, 0.99, policy, seed=[0, 0], bound=0.5, meta_step_size=0.1)
    gq = control.GQ(16, 4, 0.5, 0.9, 0.99, policy, seed=[0, 0], second_step_size=0.25)
    for place, agent in ((1, swift), (3, gq)):
        assert (
            table["lengths"][place].as_py() == control.train(env, agent, maker, episodes=15, seed=(0, 0)).lengths.tolist()
        )
    best = control.aggregate(table)
    assert best.column_names[:5] == ["agent", "step_size", "trace_decay", "meta_step_size", "eta"]
    assert best.num_rows == 6


def runs_of(scores):
    """A table with a run for each score of {agent: {environment: scores}}."""
    rows = [
        {"environment": env, "agent": agent, "step_size": 0.5, "trace_decay": 0.9, "seed": seed, "mean_return": value}
        for agent, envs in scores.items()
        for env, values in envs.items()
        for seed, value in enumerate(values)
    ]
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("runs", [1, 3, 10])
def test_aggregates_are_those_of_their_definitions(runs):
    rng = np.random.default_rng(runs)
    scores = {
        agent: {env: rng.normal(place, 1.0, runs) for env in "AB"} for agent, place in (("low", 0.0), ("high", 9.0))
    }
    between = {"A": (-1.0, 1.0), "B": (0.0, 4.0)}
    found = control.aggregate(runs_of(scores), between=between).to_pylist()
    assert [row["agent"] for row in found] == ["high", "low"]
    for row in found:
        own = scores[row["agent"]]
        scaled = np.array([(own["A"] + 1.0) / 2.0, own["B"] / 4.0])
        assert row["iqm"] == pytest.approx(stats.trim_mean(scaled.reshape(-1), 0.25), rel=1e-12)
        assert (row["mean"], row["median"]) == pytest.approx((scaled.mean(), np.median(scaled)), rel=1e-12)
        assert row["runs"] == runs
        assert row["low"] <= row["iqm"] <= row["high"]
        assert (row["low"] == row["high"]) == (runs == 1), "each sample has one run of each environment, and so the same"


def test_the_interval_covers_the_mean_of_the_middle_half_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = []
    for number in range(200):
        scores = {"a": {"A": rng.normal(0.0, 1.0, 20), "B": rng.normal(0.0, 3.0, 20)}}
        (row,) = control.aggregate(
            runs_of(scores), between=dict.fromkeys("AB", (0.0, 1.0)), samples=200, seed=number
        ).to_pylist()
        covered.append(row["low"] <= 0.0 <= row["high"])
    assert 0.88 <= np.mean(covered) <= 0.99


def test_a_profile_is_the_share_of_runs_above():
    table = runs_of({"a": {"A": [0.0, 1.0, 2.0, 3.0]}})
    found = control.profile(table, (x for x in (-1.0, 1.0, 1.5, 3.0))).to_pylist()
    assert [row["share"] for row in found] == [1.0, 0.5, 0.5, 0.0]
    assert found[0]["low"] == found[0]["high"] == 1.0
    assert found[1]["low"] < 0.5 < found[1]["high"]


def test_runs_that_cannot_be_compared_are_refused():
    both = runs_of({"a": {"A": [1.0, 2.0], "B": [1.0, 2.0]}, "b": {"A": [1.0], "B": [1.0, 2.0]}})
    for between, message in (
        (None, "cannot be compared as they are: give `between`"),
        ({"A": (0.0, 1.0)}, "between has no returns for B"),
        ({"A": (0.0, 1.0), "B": (1.0, 1.0)}, "a lower and a higher return"),
        (dict.fromkeys("AB", (0.0, 1.0)), "runs with the same seeds on all environments"),
    ):
        with pytest.raises(ValueError, match=message):
            control.aggregate(both, between=between)
    with pytest.raises(ValueError, match="score must be mean_return or final_return, got 'return'"):
        control.aggregate(both, "return")
    with pytest.raises(ValueError, match="table has no column 'final_return'"):
        control.aggregate(both.to_pandas(), "final_return")


SPEC = """
environments = ["FrozenLake-v1"]
agents = ["true_online_sarsa", "watkins_q"]
step_sizes = [0.2]
trace_decays = [0.0, 0.9]
seeds = 3
episodes = 20
options = {is_slippery = false}
"""


def test_a_file_describes_a_sweep_of_agents(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps.SeveralTrainings, "spawned", False)  # here, where no process has to be started
    (tmp_path / "agents.toml").write_text(SPEC)
    command = ["sweep", str(tmp_path / "agents.toml"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    found = pq.read_table(tmp_path / "out" / "curves.parquet")
    expected = to.control.sweep(
        "FrozenLake-v1",
        ["true_online_sarsa", "watkins_q"],
        [0.2],
        [0.0, 0.9],
        3,
        episodes=20,
        options={"is_slippery": False},
    )
    assert found.equals(expected)
    assert pq.read_table(tmp_path / "out" / "results.parquet").num_rows == 12
    best = to.control.aggregate(found).to_pylist()[0]
    assert any(best["agent"] in line and f"{best['iqm']:.4g}" in line for line in result.output.splitlines())


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SPEC + "alpha = 3", (), "unknown setting 'alpha'; known are agents, discount"),
        (SPEC.replace("agents", "#"), (), "a sweep of agents also needs agents"),
        (SPEC, ("--figure", "a.png"), "--figure is not for sweeps of agents"),
    ],
)
def test_a_bad_file_of_agents_is_refused(tmp_path, text, options, message):
    (tmp_path / "agents.toml").write_text(text)
    result = CliRunner().invoke(main, ["sweep", str(tmp_path / "agents.toml"), "--out", str(tmp_path / "out"), *options])
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (tmp_path / "out").exists()
