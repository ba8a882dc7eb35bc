"""Environments, agents and comparisons that tests of training share."""

import json

import gymnasium as gym

import trueonline as to


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
