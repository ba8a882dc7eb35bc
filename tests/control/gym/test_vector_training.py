"""Training in vector environments: each agent learns what it learns alone."""

import gymnasium as gym
import numpy as np
import pytest

import trueonline as to
from tests.control.gym.trainings import CASES, Recorder, Scripted, agent_for, assert_same, state_of, table
from trueonline import control

DISABLED = {"autoreset_mode": "Disabled"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "limit", [{"episodes": 6}, {"steps": 70}, {"episodes": 3, "steps": 1_000_000, "seed": 9}], ids=str
)
def test_each_agent_learns_what_it_learns_alone(case, limit):
    """Bit for bit, though episodes end at different times."""
    name, options, features, kind = CASES[case]
    env = gym.make_vec(name, num_envs=3, vectorization_mode="sync", vector_kwargs=DISABLED, **options)
    maker = features(env.envs[0])
    agents = [agent_for(env.envs[0], maker, kind, seed=seed) for seed in (3, 4, 5)]
    found = control.train_vector(env, agents, maker, **limit)
    for seed, agent, several in zip((3, 4, 5), agents, found, strict=True):
        single = gym.make(name, **options)
        other = agent_for(single, maker, kind, seed=seed)
        assert_same(several, control.train(single, other, maker, **limit))
        assert state_of(agent) == state_of(other)
        assert not several.returns.flags.writeable


def vector(*episodes):
    """A vector environment of scripted ones."""
    return gym.vector.SyncVectorEnv([lambda each=each: Scripted(each) for each in episodes], **DISABLED)


def test_agents_are_told_of_their_own_ends_and_cuts_and_one_that_is_done_waits():
    ends = [0, (1, 1.0, True, False)]
    cut = [1, (2, 2.0, False, False), (3, 3.0, False, True)]
    env = vector([ends, ends, ends, ends], [cut, cut])
    agents = Recorder(), Recorder()
    seen = []
    found = control.train_vector(env, agents, table(env.envs[0]), episodes=2, callback=lambda *news: seen.append(news))
    assert agents[0].told == [("start", 0), ("end", 1.0)] * 2
    assert agents[1].told == [("start", 1), ("step", 2.0, 2), ("truncate", 3.0, 3)] * 2
    assert [each.terminated.tolist() for each in found] == [[True, True], [False, False]]
    assert seen == [(0, 1, 1.0, 1), (0, 2, 1.0, 1), (1, 1, 5.0, 2), (1, 2, 5.0, 2)]


def test_a_callback_ends_the_training_of_its_agent():
    ends = [0, (1, 1.0, True, False)]
    env = vector([ends] * 5, [ends] * 5)
    found = control.train_vector(
        env,
        [Recorder(), Recorder()],
        table(env.envs[0]),
        episodes=4,
        callback=lambda agent, done, *_: np.bool_(agent == 1) or None,
    )
    assert [len(each.returns) for each in found] == [4, 1]


def test_what_does_not_fit_is_refused_before_anything_runs():
    ends = [0, (1, 1.0, True, False)]
    env = vector([ends], [ends])
    maker, agents = table(env.envs[0]), [Recorder(), Recorder()]
    for given, message in (
        ((env.envs[0], agents, maker), "env must be a vector environment, as gymnasium.make_vec makes it, got Scripted"),
        ((env, agents[:1], maker), "agents must be 2 different agents, one for each environment, got 1"),
        ((env, agents[:1] * 2, maker), "agents must be 2 different agents"),
        ((env, agents, None), "features must be callable"),
        ((gym.make_vec("FrozenLake-v1", num_envs=2), agents, maker), "the environments reset themselves: make them with"),
    ):
        with pytest.raises(ValueError, match=message):
            control.train_vector(*given, episodes=1)
    with pytest.raises(TypeError, match="agent must be an agent, got AccumulateTD, which predicts and does not act"):
        control.train_vector(env, [Recorder(), to.AccumulateTD(4, 0.1, 0.9, 1.0)], maker, episodes=1)
    with pytest.raises(ValueError, match="the agent has 2 actions, but the environment 3"):
        control.train_vector(
            gym.vector.SyncVectorEnv([lambda: Scripted([], actions=3)] * 2, **DISABLED), agents, maker, steps=1
        )
    with pytest.raises(ValueError, match="episodes or steps must be given"):
        control.train_vector(env, agents, maker)
    with pytest.raises(ValueError, match="callback must be callable, got 3"):
        control.train_vector(env, agents, maker, episodes=1, callback=3)
    with pytest.raises(ValueError, match="agents must be 2 different agents, one for each environment, got 1"):
        control.train_vector(env, None, maker, episodes=1)
    with pytest.raises(ValueError, match="train_vector takes a vector of environments"):
        control.train(env, agents[0], maker, episodes=1)
    assert all(agent.told == [] for agent in agents)
