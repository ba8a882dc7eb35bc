"""The commands `asterix` and `atari`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("ale_py")

from trueonline.cli import main
from trueonline.control import atari
from trueonline.control.atari import runs

SHARED = Path(__file__).parents[4] / "shared" / "data"


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(*arguments):
    """The one line in which a command says why it does nothing."""
    result = invoke(*arguments)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1, "one line"
    return result.stderr


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """A background file: to learn it anew would take longer than the tests."""
    path = tmp_path_factory.mktemp("picture") / "background.txt"
    with open(path, "wb") as file:
        atari.write_background(atari.learn_background("asterix", decisions=60), file)
    return path


@pytest.fixture
def brief(monkeypatch):
    """Episodes of the text's protocol that are cut after a hundred decisions."""
    monkeypatch.setattr(runs, "EPISODE_FRAMES", 500)


def test_all_published_episodes_are_played():
    """25 of them, score and frames of each, by the command that the help gives as its example."""
    background, golden = SHARED / "asterix.bg", SHARED / "asterix_published_episodes.json"
    if not (background.exists() and golden.exists()):
        pytest.skip("asterix.bg and its episodes are not in ../shared/data, which is no part of the project")
    expected = json.loads(golden.read_text())["to_2.00_0.95_s1"]
    settings = (
        "--step-size",
        expected["step_size"],
        "--trace-decay",
        expected["trace_decay"],
        "--seed",
        expected["seed"],
    )
    result = invoke(
        *("asterix", "--protocol", "published", "--method", expected["method"], *settings),
        *("--episodes", len(expected["episodes"]), "--background", background, "--json"),
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["episodes"] == expected["episodes"]
    assert len(found["episodes"]) == 25
    assert found["mean_score"] == np.mean([score for score, _ in expected["episodes"]])
    assert found["settings"]["actions"] == 18
    assert found["settings"]["frames_per_episode_at_most"] is None
    assert found["settings"]["step_size_divisor"] == 431, "the first screen has most features"


def test_json_says_what_determined_the_run(picture, brief):
    result = invoke("asterix", "--episodes", 2, "--background", picture, "--seed", 7, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    assert list(found) == ["episodes", "mean_score", "settings"]
    run = atari.play(atari.AtariSettings(episodes=2, seed=7), atari.read_background(picture))
    assert found["episodes"] == [list(episode) for episode in run.episodes]
    assert found["mean_score"] == run.mean_score
    expected = {
        "protocol": "paper",
        "method": "true_online",
        "step_size": 0.5,
        "trace_decay": 0.9,
        "seed": 7,
        "frames": None,
        "episodes": 2,
        "game": "asterix",
        "scaled": True,
        "discount": 0.999,
        "epsilon": 0.01,
        "actions": 9,
        "frames_per_action": 5,
        "frames_per_episode_at_most": 500,
        "step_size_divisor": run.player.divisor,
        "diverged": False,
    }
    assert expected.items() <= found["settings"].items()


def test_a_person_is_told_the_settings_the_divisor_and_the_scores(picture, brief):
    result = invoke("asterix", "--frames", 501, "--background", picture, "--method", "replace")
    assert result.exit_code == 0, result.output
    assert result.stderr == "", "no bar where there is no terminal"
    run = atari.play(atari.AtariSettings(frames=501, method="replace"), atari.read_background(picture))
    assert "asterix, protocol paper, replace, α = 0.5, λ = 0.9, seed 0" in result.stdout
    assert f"now {run.player.divisor}" in result.stdout
    assert "2 episodes in 1,000 frames" in result.stdout
    assert f"mean score {run.mean_score:,.1f}" in result.stdout


def test_a_fixed_step_size_is_taken_as_it_is(picture, brief):
    given = ("asterix", "--episodes", 1, "--background", picture, "--step-size", 0.001, "--fixed-step-size")
    found = json.loads(invoke(*given, "--json").stdout)["settings"]
    assert found["scaled"] is False
    assert found["step_size_divisor"] is None
    text = invoke(*given)
    assert text.exit_code == 0
    assert "divided" not in text.stdout


def test_divergence_is_reported(picture):
    given = ("asterix", "--protocol", "published", "--step-size", 1e15, "--seed", 1, "--episodes", 50)
    result = invoke(*given, "--background", picture)
    assert result.exit_code == 0
    assert "diverged" in result.stdout
    assert json.loads(invoke(*given, "--background", picture, "--json").stdout)["settings"]["diverged"] is True


def test_without_a_background_file_it_is_learned(monkeypatch, brief):
    learned = []

    def learn(game, **options):
        learned.append(game)
        return np.zeros((210, 160), np.uint8)

    monkeypatch.setattr(atari, "learn_background", learn)
    assert invoke("asterix", "--episodes", 1, "--method", "random").exit_code == 0
    assert invoke("atari", "breakout", "--episodes", 1, "--method", "random").exit_code == 0
    assert learned == ["asterix", "breakout"]


def test_a_checkpoint_is_left_at_the_end_and_gone_on_from(picture, brief, tmp_path):
    checkpoint = tmp_path / "run.npz"
    given = ("asterix", "--episodes", 2, "--background", picture, "--checkpoint", checkpoint, "--json")
    first = invoke(*given)
    assert first.exit_code == 0, first.output
    assert checkpoint.exists()
    run = atari.AtariRun(atari.AtariSettings(episodes=2), atari.read_background(picture))
    run.resume(checkpoint)
    assert run.finished
    again = invoke(*given)
    assert again.stdout == first.stdout
    partly = atari.AtariRun(atari.AtariSettings(episodes=2), atari.read_background(picture))
    for _ in range(130):
        partly._decide()
    partly.save(checkpoint)
    assert invoke(*given).stdout == first.stdout


def test_a_checkpoint_that_could_not_be_written_is_refused_before_anything_is_played(picture, tmp_path, monkeypatch):
    def played(*arguments, **named):
        raise AssertionError("hours of play would be lost")

    monkeypatch.setattr(atari.AtariRun, "play", played)
    given = ("asterix", "--episodes", 1, "--background", picture, "--checkpoint")
    assert "none" in refused(*given, tmp_path / "none" / "run.npz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("atari", "astrix"), "unknown game 'astrix'; there are"),
        (("asterix", "--method", "sarsa"), "unknown method 'sarsa' for paper; known are accumulate"),
    ],
    ids=str,
)
def test_what_cannot_be_played_is_refused_in_one_line(arguments, message, monkeypatch):
    monkeypatch.setattr(atari.AtariRun, "play", None)
    assert message in refused(*arguments)


def test_ctrl_c_says_how_to_go_on(picture, tmp_path, monkeypatch):
    def stopped(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(atari.AtariRun, "play", stopped)
    given = ("asterix", "--episodes", 1, "--background", picture)
    alone, kept = invoke(*given), invoke(*given, "--checkpoint", tmp_path / "run.npz")
    assert (alone.exit_code, alone.stderr.strip()) == (130, "Stopped.")
    assert kept.exit_code == 130
    assert "Run the same command again" in kept.stderr
