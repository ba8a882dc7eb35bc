"""A training that is stopped, killed or extended is that of a process that never stopped."""

import gymnasium as gym
import numpy as np
import pytest

import trueonline as to
from tests.control.gym.trainings import CASES, Recorder, Scripted, Stop, agent_for, assert_same, state_of, table, trained

# --- Going on -------------------------------------------------------------------------------------


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


def test_a_cell_of_a_notebook_can_be_run_again_and_with_more_episodes(tmp_path):
    """The agent is then the one that was trained: what the checkpoint holds."""
    env = gym.make("FrozenLake-v1")
    features, path = table(env), tmp_path / "checkpoint.npz"
    agent, other = agent_for(env, features), agent_for(env, features)
    expected = to.control.train(env, other, features, episodes=9, seed=2)
    begun = []
    for episodes in (5, 5, 9, 9):
        again = to.control.train(
            env, agent, features, episodes=episodes, seed=2, checkpoint=path, callback=lambda k, *_: begun.append(k)
        )
    assert begun == list(range(1, 10)), "no episode was trained twice"
    assert_same(again, expected)
    assert state_of(agent) == state_of(other)
    with pytest.raises(ValueError, match=r"holds 9 episodes, more than the 8 asked for"):
        to.control.train(env, agent, features, episodes=8, seed=2, checkpoint=path)


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
        "AccumulateSarsa, ReplaceSarsa, TrueOnlineSarsa, WatkinsQ, TrueOnlineWatkinsQ, ExpectedSarsa, TreeBackupQ, GQ, SwiftSarsa"
    )
    for use in (to.control.train, to.control.evaluate):
        with pytest.raises(TypeError, match=f"^{message}$"):
            use("FrozenLake-v1", learner, features, episodes=1)
    with pytest.raises(TypeError, match="got the class TrueOnlineTD, which predicts"):
        to.control.train("FrozenLake-v1", to.TrueOnlineTD, features, episodes=1)


def test_a_checkpoint_is_a_saved_agent_too(tmp_path):
    agent, _ = trained("tiles", 3, tmp_path / "checkpoint.npz")
    loaded = to.load(tmp_path / "checkpoint.npz")
    assert state_of(loaded) == state_of(agent)


def lake(
    path,
    *,
    episodes=3,
    kind=to.control.TrueOnlineSarsa,
    options=None,
    sizes=16,
    seed=0,
    agent_seed=1,
    every=None,
    **given,
):
    env = gym.make("FrozenLake-v1", **(options or {}))
    features = to.features.Table(sizes)
    settings = {"step_size": 0.5, "trace_decay": 0.9, "discount": 0.9, "policy": to.control.EpsilonGreedy(0.1)}
    agent = kind(sizes, 4, seed=agent_seed, **{**settings, **given})
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
    "the agent's seed": ({"agent_seed": 2}, "agent seed is 1 there and 2 here"),
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
    with pytest.raises(ValueError, match=r"only an agent of this package can be kept"):
        to.control.train(Scripted([]), Recorder(), to.features.Table(4), episodes=1, checkpoint=path)
