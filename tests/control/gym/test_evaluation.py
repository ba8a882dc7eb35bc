"""Evaluation leaves the agent as it was; learning curves and films show what happened."""

import os
import shutil
import sys

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import trueonline as to
from tests.control.gym.trainings import Scripted, agent_for, state_of, table, tiles, trained
from trueonline.control.gym import curves
from trueonline.study.results import student_interval

# --- Evaluation -----------------------------------------------------------------------------------


def test_evaluation_leaves_the_agent_exactly_as_it_was():
    env = gym.make("CartPole-v1")
    features = tiles(env)
    agent = agent_for(env, features)
    to.control.train(env, agent, features, episodes=5)
    observation, _ = env.reset(seed=1)
    agent.start(features(observation))
    agent.step(1.0, features(env.step(agent.action)[0]))  # also in the middle of an episode
    before = state_of(agent)
    first = to.control.evaluate(env, agent, features, episodes=3)
    assert state_of(agent) == before
    second = to.control.evaluate("CartPole-v1", agent, features, episodes=3)
    other = to.control.evaluate(env, agent, features, episodes=3, seed=1)
    assert first.returns.tolist() == second.returns.tolist() != other.returns.tolist()
    assert first.lengths.sum() == first.returns.sum()
    assert first.mean == np.mean(first.returns)
    assert first.standard_error == pytest.approx(np.std(first.returns, ddof=1) / np.sqrt(3))


def test_evaluation_is_greedy_and_ends_in_circles():
    w = np.zeros((4, 2))
    w[[0, 1, 2, 3], [1, 0, 1, 0]] = 1.0
    agent = to.control.TrueOnlineSarsa(4, 2, 0.5, 0.9, 1.0, to.control.EpsilonGreedy(1.0), initial_weights=w)
    env = Scripted([[0, *(((t + 1) % 4, 1.0, False, False) for t in range(50))]])
    found = to.control.evaluate(env, agent, table(env), episodes=1, max_steps=20)
    assert env.taken == [[1, 0] * 10]
    assert (found.returns[0], found.lengths[0], bool(found.terminated[0])) == (20.0, 20, False)
    assert np.isnan(found.standard_error)
    env = Scripted([[0, (1, 1.0, True, False)]])
    to.control.evaluate(env, agent, table(env), episodes=1, policy=lambda q, rng, t: 0)
    assert env.taken == [[0]]


def test_evaluations_on_the_way_are_those_of_the_agent_then_and_disturb_nothing():
    alone, expected = trained("tiles", 6)
    agent, found = trained("tiles", 6, evaluate_every=2, evaluate_episodes=3)
    assert found.returns.tolist() == expected.returns.tolist()
    assert state_of(agent) == state_of(alone)
    assert found.evaluated_after.tolist() == [2, 4, 6]
    assert found.evaluations.shape == (3, 3)
    early, _ = trained("tiles", 2)
    for then, row in ((early, 0), (alone, 2)):
        played = to.control.evaluate("CartPole-v1", then, tiles(gym.make("CartPole-v1")), episodes=3, seed=4)
        assert played.returns.tolist() == found.evaluations[row].tolist()
    assert expected.evaluations.shape == (0, 10)
    with pytest.raises(ValueError, match="read-only"):
        found.returns[0] = 1.0


# --- Pictures -------------------------------------------------------------------------------------


def test_the_running_mean_is_that_of_the_last_ones():
    returns = np.random.default_rng(0).normal(size=50)
    for window in (1, 7, 80):
        expected = [returns[max(0, t + 1 - window) : t + 1].mean() for t in range(50)]
        np.testing.assert_allclose(curves.running_mean(returns, window), expected, rtol=1e-12)


def test_the_interval_is_students():
    """The quantile of t for two degrees of freedom, from a table."""
    mean, low, high = student_interval(np.array([[1.0], [2.0], [4.0]]))
    assert mean == pytest.approx([7 / 3])
    spread = 4.30265 * np.std([1.0, 2.0, 4.0], ddof=1) / np.sqrt(3)
    np.testing.assert_allclose([high - mean, mean - low], spread, rtol=1e-5)
    assert np.isnan(student_interval(np.ones((1, 2)))[1:]).all()


@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize("episodes", [1, 30])
def test_a_curve_is_drawn_for_any_number_of_runs_and_episodes(runs, episodes, tmp_path):
    returns = np.random.default_rng(0).normal(size=(runs, episodes))
    path = tmp_path / "curve.png"
    to.control.curve(path, returns[0] if runs == 1 else returns, title="a title")
    with Image.open(path) as picture:
        assert picture.size == (1280, 760)
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 10
    assert list(tmp_path.iterdir()) == [path]


def test_a_curve_needs_returns(tmp_path):
    with pytest.raises(ValueError, match="returns must be those of one run, or of several that are equally long"):
        to.control.curve(tmp_path / "curve.png", [])
    assert not list(tmp_path.iterdir())


def test_a_film_has_a_picture_for_each_state_and_few_enough_of_them(tmp_path):
    env = gym.make("FrozenLake-v1", is_slippery=False)
    features = to.features.Table(16)
    w = np.zeros((16, 4))
    for state, action in ((0, 1), (4, 1), (8, 2), (9, 2), (10, 1), (14, 2)):  # the way to the goal
        w[state, action] = 1.0
    agent = agent_for(env, features, initial_weights=w)
    before = state_of(agent)
    total = to.control.film("FrozenLake-v1", agent, features, tmp_path / "a.gif", options={"is_slippery": False})
    assert total == 1.0
    assert state_of(agent) == before
    with Image.open(tmp_path / "a.gif") as picture:
        assert (picture.n_frames, picture.size, picture.info["duration"]) == (7, (256, 256), 250)
    to.control.film(
        "FrozenLake-v1", agent, features, tmp_path / "b.gif", frames=3, width=64, options={"is_slippery": False}
    )
    with Image.open(tmp_path / "b.gif") as picture:
        assert (picture.n_frames, picture.size) == (3, (64, 64))
        assert picture.info["loop"] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gif", "b.gif"]


class Invisible(Scripted):
    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, render_mode=None):
        super().__init__([[0, (1, 1.0, True, False)]] * 3)


class Failing(Invisible):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def render(self):
        raise OSError("no screen")


@pytest.fixture
def registered():
    gym.register("Invisible-v0", Invisible)
    gym.register("Failing-v0", Failing, disable_env_checker=True)
    yield
    for name in ("Invisible-v0", "Failing-v0"):
        del gym.registry[name]


def test_what_cannot_be_filmed_is_refused(registered, tmp_path):
    agent, features = to.control.TrueOnlineSarsa(4, 2, 0.5, 0.9, 1.0), to.features.Table(4)

    def refused(message, env, name="film.gif"):
        with pytest.raises(ValueError, match=message):
            to.control.film(env, agent, features, tmp_path / name)
        assert not list(tmp_path.iterdir())

    refused("Invisible-v0 cannot be filmed: it draws no pictures", "Invisible-v0")
    refused("Failing-v0 cannot be filmed: no screen", "Failing-v0")
    refused("must end in .gif or .mp4, got 'film.avi'", "Failing-v0", "film.avi")
    refused("needs the name of an environment", Scripted([]))


def test_a_film_as_mp4_needs_ffmpeg(monkeypatch, tmp_path):
    agent, features = to.control.TrueOnlineSarsa(16, 4, 0.5, 0.9, 1.0), to.features.Table(16)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ValueError, match=r"needs the program ffmpeg, or pip install imageio-ffmpeg"):
        to.control.film("FrozenLake-v1", agent, features, tmp_path / "film.mp4")


@pytest.mark.skipif(os.name != "posix", reason="a script stands for the program")
def test_a_film_as_mp4_is_what_ffmpeg_made_of_all_pictures(monkeypatch, tmp_path):
    """A script in its place: it notes how it was called and what it was given."""
    program = tmp_path / "ffmpeg"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\nfor last; do :; done\ncat > "$last"\n')
    program.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    agent, features = to.control.TrueOnlineSarsa(16, 4, 0.5, 0.9, 1.0, seed=0), to.features.Table(16)
    to.control.film("FrozenLake-v1", agent, features, tmp_path / "film.mp4", width=64)
    called = (tmp_path / "called").read_text()
    assert "-s 64x64 -r 4 -i -" in called
    size = (tmp_path / "film.mp4").stat().st_size
    assert size >= 2 * 64 * 64 * 3
    assert size % (64 * 64 * 3) == 0
    program.write_text("#!/bin/sh\ncat > /dev/null\necho broken >&2\nexit 1\n")
    with pytest.raises(ValueError, match=r"ffmpeg could not write .*film\.mp4: broken"):
        to.control.film("FrozenLake-v1", agent, features, tmp_path / "film.mp4", width=64)
    assert (tmp_path / "film.mp4").stat().st_size == size
