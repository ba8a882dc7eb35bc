"""Training, evaluating and filming agents in Gymnasium environments."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import trueonline as to
from trueonline.control.gym import curves, environments
from trueonline.control.gym.environments import EVALUATION, TRAINING, episode_seed

PATIENCE = 120.0  # seconds after which a process that should have ended is taken for hung


def agent_for(env, features, kind=to.control.TrueOnlineSarsa, seed=3, epsilon=0.1, **given):
    settings = {"step_size": 0.5 / features.n_active, "trace_decay": 0.9, "discount": 0.99, **given}
    policy = to.control.EpsilonGreedy(epsilon)
    return kind(features.n_features, int(env.action_space.n), policy=policy, seed=seed, **settings)


def tiles(env):
    return to.features.from_space(env.observation_space, bins=4, tilings=4)


def fourier(env):
    return to.features.from_space(env.observation_space, "fourier", order=2)


def table(env):
    return to.features.from_space(env.observation_space)


CASES = {  # environment, options, features, agent
    "tiles": ("CartPole-v1", {}, tiles, to.control.TrueOnlineSarsa),
    "waves": ("MountainCar-v0", {"max_episode_steps": 30}, fourier, to.control.TrueOnlineWatkinsQ),
    "table": ("FrozenLake-v1", {}, table, to.control.ReplaceSarsa),
}


class Scripted(gym.Env):
    """Gives what it is told: a list of episodes, each a first state and (state, reward, terminated, truncated) after it."""

    def __init__(self, episodes, states=4, actions=2, start=0):
        self.observation_space = gym.spaces.Discrete(states)
        self.action_space = gym.spaces.Discrete(actions, start=start)
        self.episodes, self.number, self.taken, self.seeds = episodes, -1, [], []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number, self.step_of, self.seeds = self.number + 1, 0, [*self.seeds, seed]
        self.taken.append([])
        return self.episodes[self.number][0], {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken[-1].append(int(action))
        self.step_of += 1
        return (*self.episodes[self.number][self.step_of], {})


def state_of(agent):
    """All of an agent's state, as bytes and text that can be compared."""
    parts = {name: array.tobytes() for name, array in agent._dump().items()}
    return parts, json.dumps(agent._settings())


def assert_same(found, expected):
    for name in ("returns", "lengths", "terminated", "evaluated_after", "evaluations"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name


# --- What the agent is told -----------------------------------------------------------------------


class Recorder:
    """An agent that notes what it is told."""

    n_features, n_actions = 4, 2

    def __init__(self):
        self.told = []

    def start(self, x):
        self.told.append(("start", *x.tolist()))
        return 0

    def step(self, reward, x):
        self.told.append(("step", reward, *x.tolist()))
        return 1

    def end(self, reward):
        self.told.append(("end", reward))

    def truncate(self, reward, x):
        self.told.append(("truncate", reward, *x.tolist()))


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


@pytest.mark.parametrize(("terminated", "truncated"), [(True, False), (False, True), (True, True)])
def test_a_cut_is_bootstrapped_from_and_an_end_is_not(terminated, truncated):
    env = Scripted([[0, (1, 1.0, terminated, truncated)]])
    w = np.array([[2.0, 2.0], [10.0, 10.0], [0.0, 0.0], [0.0, 0.0]])
    given = {"step_size": 0.5, "trace_decay": 0.9, "discount": 0.8}
    agent = to.control.AccumulateSarsa(4, 2, **given, policy=lambda q, rng, t: 1, initial_weights=w)
    to.control.train(env, agent, table(env), episodes=1)
    delta = 1.0 + (0.0 if terminated else 0.8 * 10.0) - 2.0
    w[0, 1] += 0.5 * delta
    np.testing.assert_array_equal(agent.weights, w)


def test_the_action_that_is_bootstrapped_from_is_the_one_executed():
    """Sarsa(0) computed from what the environment saw: any other A' would give other weights."""
    states = np.random.default_rng(1).integers(4, size=(30, 7))
    rewards = np.random.default_rng(2).normal(size=(30, 7))
    episodes = [
        [int(s[0]), *((int(s[t]), float(r[t]), t == 6 and k % 2 == 0, t == 6 and k % 2 == 1) for t in range(1, 7))]
        for k, (s, r) in enumerate(zip(states, rewards, strict=True))
    ]
    env = Scripted(episodes, actions=3)
    chosen = []

    def policy(values, rng, t):
        chosen.append(int(rng.integers(3)))
        return chosen[-1]

    agent = to.control.AccumulateSarsa(4, 3, step_size=0.1, trace_decay=0.0, discount=0.9, policy=policy, seed=5)
    to.control.train(env, agent, table(env), episodes=30)
    w, choices = np.zeros((4, 3)), iter(chosen)
    for k in range(30):
        executed = env.taken[k]
        decided = [
            next(choices) for _ in range(6 + k % 2)
        ]  # a cut episode has a last one, which is only bootstrapped from
        assert executed == decided[:6]
        for t in range(6):
            target = rewards[k, t + 1]
            if t < 5 or k % 2 == 1:
                target += 0.9 * w[states[k, t + 1], decided[t + 1]]
            w[states[k, t], executed[t]] += 0.1 * (target - w[states[k, t], executed[t]])
    np.testing.assert_allclose(agent.weights, w, rtol=1e-12, atol=1e-14)
    assert next(choices, None) is None


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


def test_progress_is_told_each_episode():
    env = Scripted([[0, (1, 2.0, False, False), (1, 1.0, True, False)], [0, (1, 5.0, True, False)]])
    told = []
    to.control.train(env, Recorder(), table(env), episodes=2, progress=lambda *news: told.append(news))
    assert told == [(1, 3.0, 2), (2, 5.0, 1)]


def test_it_learns():
    agent = to.control.TrueOnlineSarsa(16, 4, 0.5, 0.9, 0.9, to.control.EpsilonGreedy(0.1), seed=0)
    features = to.features.Table(16)
    env = gym.make("FrozenLake-v1", is_slippery=False)
    found = to.control.train(env, agent, features, episodes=300)
    assert found.mean() > 0.5 > found.returns[:20].mean()
    assert to.control.evaluate(env, agent, features).mean == 1.0
    assert "300 episodes" in repr(found)


# --- Going on -------------------------------------------------------------------------------------


class Stop(BaseException):
    pass


def trained(case, episodes, checkpoint=None, stop_after=None, seed=4, **given):
    """A fresh agent trained; `stop_after` so many steps in all, in the middle of whatever happens then."""
    name, options, make_features, kind = CASES[case]
    env = gym.make(name, **options)
    features = make_features(env)
    agent = agent_for(env, features, kind)
    if stop_after is not None:
        step, left = agent.step, iter(range(stop_after))

        def step_or_stop(*arguments):
            if next(left, None) is None:
                raise Stop
            return step(*arguments)

        agent.step = step_or_stop
    return agent, to.control.train(env, agent, features, episodes=episodes, seed=seed, checkpoint=checkpoint, **given)


@pytest.mark.parametrize("case", CASES)
def test_a_training_that_is_stopped_again_and_again_is_that_which_is_not(case, tmp_path):
    evaluating = {"evaluate_every": 5, "evaluate_episodes": 2}
    undisturbed, expected = trained(case, 40, **evaluating)
    path, longest, reached = tmp_path / "deep" / "checkpoint.npz", int(expected.lengths.max()), []
    for life in range(100):
        every = 1e9 if life % 3 == 2 else 0.0  # now and then nothing is kept
        try:
            agent, found = trained(case, 40, path, longest + life, checkpoint_every=every, **evaluating)
            break
        except Stop:
            with np.load(path) as file:
                reached.append(len(file["training_returns"]))
    assert len(set(reached)) >= 3, "it was stopped at several episodes"
    assert_same(found, expected)
    assert state_of(agent) == state_of(undisturbed)
    again, found = trained(case, 40, path, **evaluating)
    assert_same(found, expected)
    assert state_of(again) == state_of(undisturbed)


def test_more_episodes_may_be_asked_for_later_and_fewer_may_not(tmp_path):
    undisturbed, expected = trained("tiles", 12)
    trained("tiles", 5, tmp_path / "checkpoint.npz")
    agent, found = trained("tiles", 12, tmp_path / "checkpoint.npz")
    assert_same(found, expected)
    assert state_of(agent) == state_of(undisturbed)
    with pytest.raises(ValueError, match=r"holds 12 episodes, more than the 11 asked for"):
        trained("tiles", 11, tmp_path / "checkpoint.npz")


def test_a_cell_of_a_notebook_can_be_run_again_and_with_more_episodes(tmp_path):
    """The agent is then the one that was trained: what the checkpoint holds."""
    env = gym.make("FrozenLake-v1")
    features, path = table(env), tmp_path / "checkpoint.npz"
    agent, other = agent_for(env, features), agent_for(env, features)
    expected = to.control.train(env, other, features, episodes=9, seed=2)
    begun = []
    for episodes in (5, 5, 9, 9):
        again = to.control.train(
            env, agent, features, episodes=episodes, seed=2, checkpoint=path, progress=lambda k, *_: begun.append(k)
        )
    assert begun == list(range(1, 10)), "no episode was trained twice"
    assert_same(again, expected)
    assert state_of(agent) == state_of(other)


def test_an_agent_that_learned_something_else_is_told_how_to_resume_and_how_to_begin_from_scratch(tmp_path):
    env = gym.make("FrozenLake-v1")
    features, path = table(env), tmp_path / "checkpoint.npz"
    to.control.train(env, agent_for(env, features), features, episodes=5, checkpoint=path)
    agent = agent_for(env, features)
    to.control.train(env, agent, features, episodes=7)
    before, content = state_of(agent), path.read_bytes()
    with pytest.raises(ValueError, match=r"has learned already \([\d,]+ steps\).*make the agent again.*remove the file"):
        to.control.train(env, agent, features, episodes=9, checkpoint=path)
    assert (state_of(agent), path.read_bytes()) == (before, content)


def test_a_class_of_features_is_not_features():
    agent = to.control.TrueOnlineSarsa(16, 4, 0.5, 0.9, 0.9)
    with pytest.raises(ValueError, match="features must be callable, from an observation to x, got the class Table"):
        to.control.train("FrozenLake-v1", agent, to.features.Table, episodes=1)


def test_a_learner_is_not_an_agent():
    learner, features = to.TrueOnlineTD(16, 0.5, 0.9, 0.9), to.features.Table(16)
    message = (
        "agent must be an agent, got TrueOnlineTD, which predicts and does not act; agents are TrueOnlineDifferentialSarsa, "
        "AccumulateSarsa, ReplaceSarsa, TrueOnlineSarsa, WatkinsQ, TrueOnlineWatkinsQ, SwiftSarsa"
    )
    for use in (to.control.train, to.control.evaluate):
        with pytest.raises(TypeError, match=f"^{message}$"):
            use("FrozenLake-v1", learner, features, episodes=1)
    with pytest.raises(TypeError, match="got the class TrueOnlineTD, which predicts"):
        to.control.train("FrozenLake-v1", to.TrueOnlineTD, features, episodes=1)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.control.gym.test_training import trained
print("begun", flush=True)
trained("tiles", 10**9, sys.argv[2], checkpoint_every=0.0)
"""


def test_a_process_killed_with_kill_9_goes_on_bit_for_bit(tmp_path):
    path, root = tmp_path / "checkpoint.npz", str(Path(__file__).parents[3])
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, root, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    process.stdout.close()
    with np.load(path) as file:
        reached = len(file["training_returns"])
    assert reached > 0
    told = []
    agent, found = trained("tiles", reached + 10, path, progress=lambda episode, *_: told.append(episode))
    assert told == list(range(reached + 1, reached + 11)), "it goes on, and does not begin anew"
    undisturbed, expected = trained("tiles", reached + 10)
    assert_same(found, expected)
    assert state_of(agent) == state_of(undisturbed)


def test_a_checkpoint_is_a_saved_agent_too(tmp_path):
    agent, _ = trained("tiles", 3, tmp_path / "checkpoint.npz")
    loaded = to.load(tmp_path / "checkpoint.npz")
    assert state_of(loaded) == state_of(agent)


def lake(path, *, episodes=3, kind=to.control.TrueOnlineSarsa, options=None, sizes=16, seed=0, every=None, **given):
    env = gym.make("FrozenLake-v1", **(options or {}))
    features = to.features.Table(sizes)
    settings = {"step_size": 0.5, "trace_decay": 0.9, "discount": 0.9, "policy": to.control.EpsilonGreedy(0.1), "seed": 1}
    agent = kind(sizes, 4, **{**settings, **given})
    return to.control.train(env, agent, features, episodes=episodes, seed=seed, checkpoint=path, evaluate_every=every)


CHANGES = {
    "step-size": ({"step_size": 0.4}, "agent step_size is 0.5 there and 0.4 here"),
    "trace decay": ({"trace_decay": 0.8}, "agent trace_decay"),
    "discount": ({"discount": 0.8}, "agent discount"),
    "epsilon": ({"policy": to.control.EpsilonGreedy(0.2)}, "agent policy epsilon is 0.1 there and 0.2 here"),
    "policy": ({"policy": to.control.Uniform()}, "agent policy kind"),
    "a policy of one's own": ({"policy": lambda q, rng, t: 1}, "agent policy"),
    "a schedule": ({"step_size": lambda t: 0.5}, "agent step_size"),
    "class": ({"kind": to.control.WatkinsQ}, "agent class"),
    "weights": ({"initial_weights": np.ones((16, 4))}, "agent weights"),
    "seed": ({"seed": 9}, "seed"),
    "environment": ({"options": {"is_slippery": False}}, "environment options is_slippery"),
    "map": ({"options": {"map_name": "8x8"}, "sizes": 64}, "environment"),
    "limit": ({"options": {"max_episode_steps": 9}}, "environment steps"),
    "evaluation": ({"every": 2}, "evaluation every"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_of_other_settings_is_refused_and_left_alone(change, tmp_path):
    path = tmp_path / "checkpoint.npz"
    lake(path)
    before = path.read_bytes()
    given, message = CHANGES[change]
    with pytest.raises(ValueError, match=r"written with other settings: .*" + message):
        lake(path, episodes=6, **given)
    assert path.read_bytes() == before


def test_two_agents_with_other_seeds_are_not_taken_for_each_other(tmp_path):
    trained("table", 2, tmp_path / "checkpoint.npz")
    env = gym.make("FrozenLake-v1")
    features = table(env)
    with pytest.raises(ValueError, match="agent seed is 3 there and 4 here"):
        to.control.train(
            env,
            agent_for(env, features, to.control.ReplaceSarsa, seed=4),
            features,
            episodes=2,
            seed=4,
            checkpoint=tmp_path / "checkpoint.npz",
        )


def test_an_agent_without_a_seed_and_with_schedules_goes_on_too(tmp_path):
    given = {"policy": to.control.EpsilonGreedy(lambda t: 1.0 / (t + 1)), "step_size": lambda t: 0.5, "seed": None}
    env, features = gym.make("FrozenLake-v1"), to.features.Table(16)

    def go_on(episodes):
        agent = to.control.TrueOnlineSarsa(16, 4, trace_decay=0.9, discount=0.9, **given)
        return to.control.train(env, agent, features, episodes=episodes, checkpoint=tmp_path / "checkpoint.npz")

    first = go_on(4)
    both = go_on(9)
    assert both.returns[:4].tolist() == first.returns.tolist()
    assert both.lengths[:4].tolist() == first.lengths.tolist()


def test_files_that_are_no_checkpoints_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "checkpoint.npz"
    for content, message in ((b"no such thing", "not a saved learner"), (b"", "not a saved learner")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            lake(path)
        assert path.read_bytes() == content
    to.control.TrueOnlineSarsa(16, 4, 0.5, 0.9, 0.9).save(path)
    with pytest.raises(ValueError, match="but not a checkpoint of a training"):
        lake(path)
    with pytest.raises(ValueError, match=r"only an agent of trueonline\.control can be kept"):
        to.control.train(Scripted([]), Recorder(), to.features.Table(4), episodes=1, checkpoint=path)


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
    refused("choose among some actions .* Box", env="Pendulum-v1")
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
    stats = pytest.importorskip("scipy.stats")
    for runs in (*range(2, 19), 21, 26, 31, 41, 61, 121):
        assert curves.t_value(runs) == pytest.approx(stats.t.ppf(0.975, runs - 1), rel=1e-3)
    for runs in (20, 30, 50, 100, 1000):
        assert 1.0 <= curves.t_value(runs) / stats.t.ppf(0.975, runs - 1) < 1.02


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
