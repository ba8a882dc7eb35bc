"""Training in Gymnasium environments: what the agent is told, and what is refused."""

import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import trueonline as to
from tests.control.gym.trainings import Recorder, Scripted, agent_for, assert_same, state_of, table, tiles
from trueonline.control.gym import environments
from trueonline.control.gym.environments import EVALUATION, TRAINING, episode_seed

# --- What the agent is told -----------------------------------------------------------------------


def test_an_agent_is_told_of_ends_and_cuts_and_of_both_as_an_end():
    env = Scripted(
        [
            [0, (1, 1.0, False, False), (2, 2.0, True, False)],
            [1, (2, 3.0, False, False), (3, 4.0, False, True)],
            [2, (0, 5.0, True, True)],
        ]
    )
    agent = Recorder()
    found = to.control.train(env, agent, table(env), episodes=3)
    assert agent.told == [
        *[("start", 0), ("step", 1.0, 1), ("end", 2.0)],
        *[("start", 1), ("step", 3.0, 2), ("truncate", 4.0, 3)],
        *[("start", 2), ("end", 5.0)],
    ]
    assert found.returns.tolist() == [3.0, 7.0, 5.0]
    assert found.lengths.tolist() == [2, 2, 1]
    assert found.terminated.tolist() == [True, False, True]
    assert found.steps == 5
    assert env.taken == [[0, 1], [0, 1], [0]]


def test_actions_that_begin_at_another_number():
    env = Scripted([[0, (1, 1.0, False, False), (1, 1.0, True, False)]], start=5)
    agent = to.control.TrueOnlineSarsa(4, 2, 0.5, 0.9, 1.0, policy=lambda q, rng, t: t % 2)
    to.control.train(env, agent, table(env), episodes=1)
    assert env.taken == [[5, 6]]
    env = Scripted([[0, (1, 1.0, True, False)]], start=-3)
    to.control.evaluate(env, agent, table(env), episodes=1)
    assert env.taken[0][0] in (-3, -2)


def test_episodes_have_seeds_of_their_own_that_depend_on_seed_and_number_only():
    episodes = [[0, (1, 1.0, True, False)]] * 5
    env, other = Scripted(episodes), Scripted(episodes)
    to.control.train(env, Recorder(), table(env), episodes=5, seed=7)
    to.control.train(other, Recorder(), table(other), episodes=5, seed=8)
    assert env.seeds == [episode_seed(TRAINING, k, (7,)) for k in range(5)]
    assert len({*env.seeds, *other.seeds, *(episode_seed(EVALUATION, k, (7,)) for k in range(5))}) == 15
    assert all(0 <= seed < 2**31 for seed in env.seeds)


def test_it_stops_at_the_end_of_the_episode_in_which_there_are_steps_enough():
    episodes = [[0, (1, 1.0, False, False), (1, 1.0, True, False)]] * 9
    for steps, expected in ((1, 1), (2, 1), (3, 2), (7, 4)):
        env = Scripted(episodes)
        assert len(to.control.train(env, Recorder(), table(env), steps=steps).returns) == expected
    env = Scripted(episodes)
    assert len(to.control.train(env, Recorder(), table(env), steps=100, episodes=3).returns) == 3


@pytest.mark.parametrize("kind", [bool, np.bool_])
def test_a_callback_hears_of_each_episode_and_may_end_the_training(kind):
    episodes = [[0, (1, 2.0, False, False), (1, 1.0, True, False)], [0, (1, 5.0, True, False)]]
    env, told = Scripted(episodes), []
    to.control.train(env, Recorder(), table(env), episodes=2, callback=lambda *news: told.append(news))
    assert told == [(1, 3.0, 2), (2, 5.0, 1)]
    env = Scripted(episodes * 3)
    assert (
        len(to.control.train(env, Recorder(), table(env), episodes=6, callback=lambda n, *_: kind(n == 4)).returns) == 4
    )


@pytest.mark.parametrize("problem", [to.problems.collision(), to.problems.AccessControl(servers=3)])
def test_a_process_is_an_environment(problem):
    env = to.control.environment(problem)
    check_env(env, skip_render_check=True)
    transitions = np.zeros_like(problem.transitions)
    state, _ = env.reset(seed=0)
    for _ in range(20_000):
        action = int(env.np_random.integers(problem.n_actions))
        following, reward, terminated, _, _ = env.step(action)
        to_state = problem.n_states if terminated else following
        transitions[state, action, to_state] += 1.0
        expected = problem.rewards[state, action]
        assert reward == (expected if np.ndim(expected) == 0 else expected[to_state])
        state = env.reset()[0] if terminated else following
    visits = transitions.sum(axis=2, keepdims=True)
    error = np.abs(transitions / np.maximum(visits, 1.0) - problem.transitions) * (visits > 0)
    assert (error <= 5.0 * np.sqrt(0.25 / np.maximum(visits, 1.0))).all()
    assert (visits > 0).sum() > 0.9 * visits.size
    with pytest.raises(TypeError, match="problem must be"):
        to.control.environment(env)


def test_it_learns():
    agent = to.control.TrueOnlineSarsa(16, 4, 0.5, 0.9, 0.9, to.control.EpsilonGreedy(0.1), seed=0)
    features = to.features.Table(16)
    env = gym.make("FrozenLake-v1", is_slippery=False)
    found = to.control.train(env, agent, features, episodes=300)
    assert found.mean() > 0.5 > found.returns[:20].mean()
    assert to.control.evaluate(env, agent, features).mean == 1.0
    assert "300 episodes" in repr(found)


# --- Bad input ------------------------------------------------------------------------------------


class Broken(gym.Wrapper):
    """An environment whose n-th observation, counted over all episodes, is not a number."""

    def __init__(self, env, at):
        super().__init__(env)
        self.at = at

    def step(self, action):
        observation, *others = self.env.step(action)
        self.at -= 1
        return (np.full_like(observation, np.nan) if self.at == 0 else observation, *others)


def test_an_observation_that_is_not_finite_is_refused_and_nothing_is_lost(tmp_path):
    env = gym.make("CartPole-v1")
    features, path = tiles(env), tmp_path / "checkpoint.npz"
    whole = agent_for(env, features)
    expected = to.control.train(env, whole, features, episodes=12)
    at = int(expected.lengths[:4].sum()) + 3
    for every, kept in ((0.0, 4), (1e9, None)):
        agent, broken = agent_for(env, features), Broken(env.env, at)
        with pytest.raises(ValueError, match=r"in episode 5: the observation must be finite, got nan at position 0"):
            to.control.train(broken, agent, features, episodes=12, checkpoint=path, checkpoint_every=every)
        assert agent.steps == at - 1
        assert np.isfinite(agent.weights).all()
        if kept is None:
            assert not path.exists()
            continue
        with np.load(path) as file:
            assert file["training_returns"].tolist() == expected.returns[:kept].tolist()
        path.unlink()
    # The same wrapper, mended: what was kept is gone on from.
    agent = agent_for(env, features)
    with pytest.raises(ValueError, match="finite"):
        to.control.train(Broken(env.env, at), agent, features, episodes=12, checkpoint=path, checkpoint_every=0.0)
    mended = agent_for(env, features)
    assert_same(to.control.train(Broken(env.env, -1), mended, features, episodes=12, checkpoint=path), expected)
    assert state_of(mended) == state_of(whole)


def test_a_reward_that_is_not_finite_is_refused():
    env = Scripted([[0, (1, float("nan"), False, False)]])
    agent = to.control.TrueOnlineSarsa(4, 2, 0.5, 0.9, 1.0)
    with pytest.raises(ValueError, match=r"in episode 1: reward must be a finite number, got nan"):
        to.control.train(env, agent, table(env), episodes=1)
    assert agent.steps == 0


def test_what_does_not_fit_is_refused_before_anything_runs():
    env = Scripted([[0, (1, 1.0, True, False)]])
    features = table(env)

    def refused(message, *, episodes=1, env=env, agent=None, features=features, **given):
        agent = agent or to.control.TrueOnlineSarsa(4, 2, 0.5, 0.9, 1.0)
        before = state_of(agent)
        with pytest.raises(ValueError, match=message):
            to.control.train(env, agent, features, episodes=episodes, **given)
        assert state_of(agent) == before

    refused("the agent has 3 actions, but the environment 2", agent=to.control.TrueOnlineSarsa(4, 3, 0.5, 0.9, 1.0))
    refused("the agent has 5 features, but Table makes 4", agent=to.control.TrueOnlineSarsa(5, 2, 0.5, 0.9, 1.0))
    refused("chooses among some actions .* Box", env="Pendulum-v1")
    refused("MountainCar-v0", env="MountainCr-v0")
    refused("CartPole-v1", env="cartpole-v1")
    refused("CartPole-v1", env="CartPole-v9")
    refused("unknown environment 'Qxz-v0'", env="Qxz-v0")
    refused("cannot be made: .*no_such_module", env="no_such_module:Room-v0")
    refused("must be a Gymnasium environment or the name of one, got int", env=3)
    refused("features must be callable", features=[1.0])
    refused("episodes or steps must be given", episodes=None)
    refused("episodes must be a whole number", episodes=0)
    refused("steps must be a whole number", steps=0)
    refused("seed must be a whole number ≥ 0", seed=-1)
    refused("seed must be a whole number ≥ 0", seed=True)
    refused("evaluate_every must be a whole number", evaluate_every=0)
    refused("checkpoint_every must be a number ≥ 0", checkpoint_every=-1.0)
    assert env.number == -1, "nothing was played"
    with pytest.raises(ValueError, match=r"cannot be made with is_slipery=False: .*is_slipery"):
        environments.make("FrozenLake-v1", is_slipery=False)


def test_without_gymnasium_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ValueError, match=r"trueonline\[gym\]"):
        to.control.train("CartPole-v1", Recorder(), to.features.Table(4), episodes=1)


def test_the_environments_of_independent_agents_are_independent(tmp_path):
    def lengths(own, episodes=20, **given):
        env = gym.make("FrozenLake-v1")
        agent = to.control.TrueOnlineSarsa(16, 4, 0.5, 0.9, 0.9, to.control.Greedy(), seed=own)
        return to.control.train(env, agent, table(env), episodes=episodes, **given).lengths.tolist()

    assert lengths(0) == lengths(0, seed=0) != lengths(1) == lengths(1, seed=1)
    assert lengths([3, 4]) == lengths([3, 4], seed=(3, 4))
    assert lengths(None) != lengths(None), "without a seed, each run has an environment of its own"
    path = tmp_path / "checkpoint.npz"
    begun = lengths(None, 5, checkpoint=path)
    assert lengths(None, 9, checkpoint=path)[:5] == begun, "and resumes with the seed that the checkpoint names"
    with pytest.raises(ValueError, match="with other settings: seed is"):
        lengths(None, 9, checkpoint=path, seed=3)
