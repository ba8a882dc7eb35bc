"""The command `trueonline train`."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image

import trueonline as to
from trueonline import catalog
from trueonline.cli import main
from trueonline.control.gym import curves, environments, films, training
from trueonline.control.gym.train import runs as train_runs
from trueonline.control.gym.train import settings as train_settings
from trueonline.control.gym.train.runs import SCHEMA, TrainingRun
from trueonline.control.gym.train.settings import TrainingSettings

EXAMPLES = Path(__file__).parents[3] / "examples"

LAKE = ("FrozenLake-v1", "--episodes", "30", "--evaluate", "4", "--option", "is_slippery=false")
SETTINGS = TrainingSettings("FrozenLake-v1", {"is_slippery": False}, episodes=30, evaluate=4)
FILES = ["agent.npz", "curve.png", "episodes.csv", "episodes.parquet", "evaluation.csv", "evaluation.parquet"]


def train(*arguments):
    return CliRunner().invoke(main, ["train", *map(str, arguments)])


def contents(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A finished training, and what was printed."""
    out = tmp_path_factory.mktemp("lake") / "out"
    result = train(*LAKE, "--out", out)
    assert result.exit_code == 0, result.output
    return out, result


def test_a_parameter_is_given_to_the_agent_and_named(tmp_path):
    result = train(*LAKE, "--agent", "stream-q", "--parameter", "kappa=3.5", "--no-film", "--out", tmp_path)
    assert "parameters kappa = 3.5" in result.output
    assert json.loads((tmp_path / "settings.json").read_text())["settings"]["parameters"] == {"kappa": 3.5}
    assert to.load(tmp_path / "agent.npz").kappa == 3.5


def test_the_files_hold_what_was_trained(lake):
    out, result = lake
    assert sorted(path.name for path in out.iterdir()) == [*FILES, "film.gif", "settings.json", "tasks"]
    told = result.output.partition(f"{out}/{{")[2].partition("}")[0]
    assert sorted(told.split(", ")) == [*FILES, "film.gif", "settings.json"]
    env = environments.make("FrozenLake-v1", is_slippery=False)
    features = to.features.Table(16)
    agent = to.control.TrueOnlineSarsa(16, 4, 0.5, 0.9, 0.99, to.control.EpsilonGreedy(0.1), seed=[0, 0])
    expected = to.control.train(env, agent, features, episodes=30, seed=0)
    played = to.control.evaluate(env, agent, features, 4, seed=0)
    for name, by_hand in (("episodes", expected), ("evaluation", played)):
        found = pq.read_table(out / f"{name}.parquet")
        assert found.column_names == ["run", "episode", "return", "length", "terminated"]
        assert found["run"].to_pylist() == [0] * len(by_hand.returns)
        assert found["episode"].to_pylist() == list(range(1, len(by_hand.returns) + 1))
        assert found["return"].to_pylist() == by_hand.returns.tolist()
        assert found["length"].to_pylist() == by_hand.lengths.tolist()
        assert found["terminated"].to_pylist() == by_hand.terminated.tolist()
        assert pyarrow.csv.read_csv(out / f"{name}.csv").to_pylist() == found.to_pylist()
    loaded = to.load(out / "agent.npz")
    assert loaded.weights.tobytes() == agent.weights.tobytes()
    assert loaded.rng.bit_generator.state == agent.rng.bit_generator.state
    about = json.loads((out / "settings.json").read_text())
    assert about["settings"] == SETTINGS.plain()
    assert about["step_size"] == 0.5
    assert to.features.restore(about["features"]).settings() == features.settings()
    with Image.open(out / "curve.png") as picture:
        assert picture.size == (1280, 760)
    with Image.open(out / "film.gif") as picture:
        assert picture.n_frames > 1
    last = f"mean return {expected.returns.mean():.4g} ± {expected.returns.std(ddof=1) / np.sqrt(30):.2g}"
    assert f"  all 30     {last} (standard error over episodes)\n" in result.stdout
    assert f"  greedy     mean return {played.mean:.4g} ± " in result.stdout
    assert "0.5 (0.5 divided by the 1 active feature)" in result.stdout
    assert str(out) in result.stdout.splitlines()[-1]


def test_the_same_command_again_does_nothing_and_prints_the_same(lake, monkeypatch):
    out, first = lake
    before = contents(out)

    def refuse(*_, **__):
        raise AssertionError("done again")

    monkeypatch.setattr(TrainingRun, "compute", refuse)
    monkeypatch.setattr(curves, "curve", refuse)
    monkeypatch.setattr(films, "film", refuse)
    again = train(*LAKE, "--out", out)
    assert again.exit_code == 0, again.output
    assert again.stdout == first.stdout
    assert contents(out) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--seed", "1"), "seed is 0 there and 1 here"),
        (("--epsilon", "0.2"), "epsilon is 0.1 there and 0.2 here"),
        (("--raw-step-size",), "divided is True there and False here"),
        (("--option", "map_name=4x4"), "options is {'is_slippery': False} there and"),
        (("--method", "watkins_q"), "method is 'true_online_sarsa' there and 'watkins_q' here"),
    ],
)
def test_a_folder_of_other_settings_is_left_alone(lake, change, message):
    out, _ = lake
    before = contents(out)
    result = train(*LAKE, "--out", out, *change)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Choose another with --out" in result.stderr
    assert contents(out) == before


# --- Longer trainings -----------------------------------------------------------------------------


def noted_episodes(monkeypatch):
    """The numbers of the episodes that are trained from now on."""
    begun = []

    def noted(*arguments, **options):
        return training.train(*arguments, **{**options, "callback": lambda episode, *_: begun.append(episode)})

    monkeypatch.setattr(train_runs.control, "train", noted)
    return begun


SHORT = ("FrozenLake-v1", "--episodes", "12", "--evaluate", "3", "--epsilon", "0.5", "--epsilon-final", "0.1")
SCHEDULED = (*SHORT, "--epsilon-steps", "300")


def stored(out):
    return [pq.read_table(path) for path in sorted((out / "tasks").glob("*.parquet"))]


def test_a_finished_training_is_extended_bit_for_bit_and_only_by_the_new_episodes(tmp_path, monkeypatch):
    assert train(*SCHEDULED, "--out", tmp_path / "out").exit_code == 0
    film = (tmp_path / "out" / "film.gif").read_bytes()
    begun = noted_episodes(monkeypatch)
    result = train(*SCHEDULED, "--episodes", "40", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert begun == list(range(13, 41))
    assert train(*SCHEDULED, "--episodes", "40", "--out", tmp_path / "whole").exit_code == 0
    (extended,), (whole,) = stored(tmp_path / "out"), stored(tmp_path / "whole")
    assert extended.equals(whole)
    for name in (*FILES[:-1], "film.gif", "settings.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert (tmp_path / "out" / "film.gif").read_bytes() != film, "the film shows the agent of now"
    assert not list((tmp_path / "out" / "tasks").glob("scratch/*/*"))


def test_all_runs_of_a_training_are_extended_and_runs_may_be_added_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(TrainingRun, "spawned", False)
    assert train(*LAKE[:1], "--episodes", "5", "--evaluate", "0", "--no-film", "--out", tmp_path / "out").exit_code == 0
    longer = (*LAKE[:1], "--episodes", "9", "--evaluate", "0", "--no-film", "--runs", "2", "--out")
    assert train(*longer, tmp_path / "out").exit_code == 0
    assert pq.read_table(tmp_path / "out" / "episodes.parquet")["run"].to_pylist() == [0] * 9 + [1] * 9
    assert not (tmp_path / "out" / "evaluation.csv").exists()
    whole = [TrainingRun(TrainingSettings(LAKE[0], episodes=9, evaluate=0), number).compute() for number in range(2)]
    assert [one.equals(other) for one, other in zip(stored(tmp_path / "out"), whole, strict=True)] == [True, True]


def test_another_number_of_greedy_episodes_trains_nothing_again(tmp_path, monkeypatch):
    assert train(*SCHEDULED, "--out", tmp_path / "out").exit_code == 0
    begun = noted_episodes(monkeypatch)
    result = train(*SCHEDULED, "--evaluate", "7", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert begun == []
    assert pq.read_table(tmp_path / "out" / "evaluation.parquet").num_rows == 7
    assert pq.read_table(tmp_path / "out" / "episodes.parquet").num_rows == 12


def test_fewer_episodes_than_there_are_is_an_error_that_says_what_to_do(lake):
    out, _ = lake
    before = contents(out)
    result = train(*LAKE, "--episodes", "29", "--out", out)
    assert result.exit_code == 1
    assert (
        "holds a training of 30 episodes, more than the 29 asked for. Ask for at least 30 with --episodes"
        in result.stderr
    )
    assert contents(out) == before


def test_what_is_missing_is_made_again_from_the_results(lake, tmp_path, monkeypatch):
    out, _ = lake
    before = contents(out)
    monkeypatch.setattr(TrainingRun, "compute", None)
    for name in (*FILES[:4], "film.gif"):
        (out / name).unlink()
    assert train(*LAKE, "--out", out).exit_code == 0
    assert {path: content for path, (content, _) in contents(out).items()} == {
        path: content for path, (content, _) in before.items()
    }


def test_several_runs_are_the_runs_one_by_one(lake, tmp_path, monkeypatch):
    monkeypatch.setattr(TrainingRun, "spawned", False)  # here, where no process has to be started
    out, _ = lake
    result = train(*LAKE, "--out", tmp_path, "--runs", "2", "--no-film")
    assert result.exit_code == 0, result.output
    assert "30, 2 runs, seed 0" in result.stdout
    found = pq.read_table(tmp_path / "episodes.parquet")
    alone = [TrainingRun(SETTINGS, number).compute() for number in range(2)]
    by_hand = pa.concat_tables([table.filter(pc.equal(table["phase"], "train")) for table in alone])
    assert found.equals(by_hand.select(found.column_names))
    assert found.filter(pc.equal(found["run"], 0)).equals(pq.read_table(out / "episodes.parquet"))
    assert found["length"].to_pylist()[:30] != found["length"].to_pylist()[30:]
    assert (tmp_path / "agent.npz").read_bytes() == (out / "agent.npz").read_bytes()
    assert [one.equals(other) for one, other in zip(stored(tmp_path), alone, strict=True)] == [True, True]
    assert not (tmp_path / "film.gif").exists()
    greedy = np.array([table["return"].to_numpy()[30:].mean() for table in alone])
    assert f"greedy     mean return {greedy.mean():.4g}" in result.stdout


def test_a_run_that_is_stopped_goes_on_from_its_checkpoint_and_comes_to_the_same(tmp_path, monkeypatch):
    run = replace(TrainingRun(SETTINGS, 0), checkpoint_every=0.0)

    def stop(episodes):
        if episodes == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.compute(tmp_path, stop)
    begun = noted_episodes(monkeypatch)
    assert run.compute(tmp_path).equals(TrainingRun(SETTINGS, 0).compute())
    assert begun[0] == 12, "the checkpoint is that of the episode before"


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainingRun, "compute", stop)
    result = train("CartPole-v1", "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert "Stopped. Run the same command again to resume from the last checkpoint." in result.stderr


# --- Options --------------------------------------------------------------------------------------


def test_settings_make_the_agent_they_describe():
    def agent(**given):
        settings = TrainingSettings("CartPole-v1", **given)
        env = settings.environment_made()
        return settings.agent(env, settings.features_for(env), 0)

    assert agent().step_size == 0.5 / 8
    assert agent(divided=False).step_size == 0.5
    assert agent(features="fourier", feature_options={"order": 1}).step_size == 0.5 / 16
    assert agent(feature_options={"bins": 3, "tilings": 4}).n_features == 4 * 3**4
    assert agent(epsilon=0.3).policy == to.control.EpsilonGreedy(0.3)
    scheduled = agent(epsilon=0.5, epsilon_final=0.1, epsilon_steps=100).policy
    assert scheduled.epsilon == to.control.Linear(0.5, 0.1, 100)
    for name in catalog.agents():
        assert type(agent(method=name, trace_decay=0.3, discount=0.7)) is catalog.METHODS[name].resolve("learner")


def test_an_agent_with_a_schedule_is_saved_with_what_it_has_come_to(tmp_path):
    schedule = ("--epsilon", "0.5", "--epsilon-final", "0.1", "--epsilon-steps", "1000000")
    result = train("FrozenLake-v1", "--episodes", "5", "--no-film", "--out", tmp_path, *schedule)
    assert result.exit_code == 0, result.output
    assert "ε = 0.5 → 0.1 in 1,000,000 steps" in result.stdout
    agent = to.load(tmp_path / "agent.npz")
    assert agent.steps > 0
    assert agent.policy.epsilon(agent.steps) == 0.5 - 0.4 * agent.steps / 1e6


def test_options_are_read_as_they_are_meant():
    read = [
        train_settings.option(f"key={text}")[1] for text in ("8x8", "true", "False", "None", "3", "0.5", "[1, 2]", "a=b")
    ]
    assert read == ["8x8", True, False, None, 3, 0.5, [1, 2], "a=b"]
    for bad in ("key", "=3", "a-b=3"):
        with pytest.raises(ValueError, match="must be KEY=VALUE"):
            train_settings.option(bad)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("MountainCr-v0",), "MountainCar-v0"),
        (("FrozenLake-v1", "--bins", "3"), "gets a table, without options"),
        (("CartPole-v1", "--epsilon-final", "0.1"), "epsilon-final and epsilon-steps belong together"),
        (("CartPole-v1", "--epsilon", "1.5"), "epsilon must be a number in [0, 1], got 1.5"),
        (
            ("CartPole-v1", "--parameter", "bond=1"),
            "unknown parameter of true_online_sarsa 'bond'; known are bound, meta_step_size",
        ),
        (("CartPole-v1", "--agent", "stream-q", "--parameter", "kappa=x"), "kappa must be a finite number, got 'x'"),
        (("CartPole-v1", "--step-size", "0"), "step-size must be a finite number > 0"),
        (("CartPole-v1", "--trace-decay", "2"), "trace-decay must be a number in [0, 1]"),
        (("CartPole-v1", "--engine", "mainframe"), "unknown engine 'mainframe'"),
        (("CartPole-v1", "--engine", "cuda"), "--engine must be local, dask or dask:ADDRESS, got 'cuda'"),
    ],
)
def test_mistakes_are_told_in_a_line_before_anything_runs(arguments, message, tmp_path):
    result = train(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_the_environment_has_to_be_named():
    result = train()
    assert result.exit_code == 2
    assert "--list" in result.stderr


def test_the_list_has_what_can_be_trained_on():
    heads, _, *lines = train("--list").stdout.splitlines()
    assert heads.split() == ["environment", "actions", "features", "observations"]
    names = [line.split()[0] for line in lines]
    assert {"CartPole-v1", "MountainCar-v0", "Acrobot-v1", "FrozenLake-v1", "Blackjack-v1"} <= set(names)
    assert "Pendulum-v1" not in names
    assert ["FrozenLake-v1", "4", "16", "Discrete(16)"] in [line.split() for line in lines]


def test_weights_that_diverge_are_reported(tmp_path):
    options = ("--method", "accumulate_sarsa", "--step-size", "100", "--episodes", "60", "--evaluate", "0", "--no-film")
    result = train("CliffWalking-v1", "--option", "max_episode_steps=100", *options, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "diverged   the weights are no longer finite numbers: try a smaller --step-size" in result.stdout
    assert pq.read_table(next((tmp_path / "tasks").glob("*.parquet"))).schema.equals(SCHEMA)


# --- An environment of one's own ------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A current folder of one's own, and nothing left of what is imported there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield tmp_path
    gym.registry.pop("Room-v0", None)
    sys.modules.pop("own_room", None)


def test_an_environment_of_a_module_here_is_trained_on_by_the_command(elsewhere):
    """Also in other processes. And one that cannot be drawn loses its film and nothing else."""
    text = (EXAMPLES / "own_environment.py").read_text()
    (elsewhere / "own_room.py").write_text(text.replace('["rgb_array"]', "[]"))
    result = train("own_room:Room-v0", "--episodes", "2", "--runs", "2")
    assert result.exit_code == 0, result.output
    assert "No film: own_room:Room-v0 cannot be filmed: it draws no pictures" in result.stderr
    out = elsewhere / "train" / "own_room" / "Room-v0"
    assert sorted(path.name for path in out.iterdir()) == [*FILES, "settings.json", "tasks"]
    assert pq.read_table(out / "episodes.parquet")["terminated"].to_pylist() == [False] * 4


def test_the_example_runs_and_learns(elsewhere, capsys):
    spec = importlib.util.spec_from_file_location("own_environment", EXAMPLES / "own_environment.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(episodes=150)
    printed = capsys.readouterr().out
    numbers = [float(line.split(":")[1].split()[0]) for line in printed.splitlines()[:3]]
    assert numbers[2] > numbers[1]
    assert sorted(path.name for path in elsewhere.iterdir()) == ["room.gif", "room.npz", "room.png"]
