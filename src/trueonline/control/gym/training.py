"""`train`: an agent acts in an environment and learns, episode after episode. It resumes after a crash."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueonline.control.gym import checkpoints, environments
from trueonline.control.gym.evaluation import evaluate
from trueonline.inputs import count, number

Callback = Callable[[int, float, int], object]  # (episodes so far, the return of the last, its length)


@dataclass(frozen=True, eq=False, repr=False)
class Training:
    """The episodes of a training. Returns are sums of rewards, undiscounted.

    Attributes
    ----------
    returns : ndarray of float
        The return of each episode.
    lengths : ndarray of int
        The number of steps of each episode.
    terminated : ndarray of bool
        Whether the environment terminated the episode. False means that it was truncated.
    evaluated_after : ndarray of int
        How many episodes there had been at each evaluation.
    evaluations : ndarray of float, shape (evaluations, episodes)
        The returns of the greedy episodes, a row for each evaluation.
    """

    returns: np.ndarray
    lengths: np.ndarray
    terminated: np.ndarray
    evaluated_after: np.ndarray
    evaluations: np.ndarray

    @property
    def steps(self) -> int:
        """The number of steps of all episodes together."""
        return int(self.lengths.sum())

    def mean(self, last: int = 100) -> float:
        """The mean return of the last episodes.

        Parameters
        ----------
        last : int
            How many episodes. Fewer, if there are not so many.

        Returns
        -------
        float
            The mean.
        """
        return float(self.returns[-count("last", last) :].mean())

    def __repr__(self) -> str:
        last = f"last 100: {self.mean():.4g}" if len(self.returns) > 100 else f"return {self.mean():.4g}"
        return f"Training({len(self.returns):,} episodes, {self.steps:,} steps, {last} on average)"


@dataclass
class History:
    """The episodes of a training while there are more and more of them."""

    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    terminated: list[bool] = field(default_factory=list)
    evaluated_after: list[int] = field(default_factory=list)
    evaluations: list[list[float]] = field(default_factory=list)
    steps: int = 0

    def add(self, total: float, length: int, terminated: bool) -> None:
        self.returns.append(total)
        self.lengths.append(length)
        self.terminated.append(terminated)
        self.steps += length

    def arrays(self, evaluate_episodes: int = 10) -> dict[str, np.ndarray]:
        return {
            "returns": np.array(self.returns, np.float64),
            "lengths": np.array(self.lengths, np.int64),
            "terminated": np.array(self.terminated, np.bool_),
            "evaluated_after": np.array(self.evaluated_after, np.int64),
            "evaluations": np.array(self.evaluations, np.float64).reshape(-1, evaluate_episodes),
        }

    def frozen(self, evaluate_episodes: int = 10) -> Training:
        arrays = self.arrays(evaluate_episodes)
        for array in arrays.values():
            array.flags.writeable = False
        return Training(**arrays)

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> History:
        return cls(**{name: values.tolist() for name, values in arrays.items()}, steps=int(arrays["lengths"].sum()))


def train(
    env: Any,
    agent: Any,
    features: environments.Features,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    seed: environments.Seed | None = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = 30.0,
    evaluate_every: int | None = None,
    evaluate_episodes: int = 10,
    callback: Callback | None = None,
) -> Training:
    """Let an agent act and learn in a Gymnasium environment.

    The environment terminates an episode (`agent.end`) or truncates it. A truncated episode is bootstrapped from its last
    state (`agent.truncate`). An episode with both has terminated.

    Parameters
    ----------
    env : gymnasium.Env or str
        The environment, or its registered name. One that is given by name is closed at the end.
    agent : Agent
        An agent of `trueonline.control`, or an object with its methods. Its step-size is used as it is.
    features : callable
        It makes the features x of an observation. `trueonline.features.from_space` makes one.
    episodes : int, optional
        How many episodes to train, those in the checkpoint included.
    steps : int, optional
        Train until there are at least so many steps. With `episodes` too, the limit that is reached first ends the training.
    seed : int or sequence of int, optional
        Episode k is reset with a seed that depends on `seed` and k only. The default is the seed of the agent, so that the
        runs of agents with different seeds are independent. The runs of an agent without a seed are too.
    checkpoint : path-like, optional
        A file that the state is written to between two episodes. The same call resumes from it after a crash, and a call
        with more `episodes` extends a training that is finished. Both give the same weights and returns as a training
        that was never interrupted, bit for bit, if the environment takes all randomness from the seed of `reset`, as
        Gymnasium demands. The agent must be new, made with the same arguments, or in the state that the file holds: so a
        notebook's cell can be run again. Remove the file to begin from scratch.
    checkpoint_every : float
        Seconds between two checkpoints. One more is written at the end.
    evaluate_every : int, optional
        Play greedy episodes without learning after every so many episodes.
    evaluate_episodes : int
        How many greedy episodes.
    callback : callable, optional
        It is called after each episode with the number of episodes so far, the return of the last, and its length. If it
        returns True, the training ends.

    Returns
    -------
    Training
        All episodes, those in the checkpoint included.

    Raises
    ------
    TypeError
        If `agent` is not an agent, for example a learner, which predicts and does not act.
    ValueError
        If environment, agent and features do not fit together, or the checkpoint was written with other settings. The
        checkpoint is then left alone.

    Examples
    --------
    >>> import gymnasium as gym, trueonline as to
    >>> env = gym.make("FrozenLake-v1", is_slippery=False)
    >>> features = to.features.from_space(env.observation_space)
    >>> def new_agent():
    ...     return to.control.TrueOnlineSarsa(16, 4, step_size=0.5, trace_decay=0.9, discount=0.99, seed=0)
    >>> train = to.control.train
    >>> len(train(env, new_agent(), features, episodes=20, checkpoint="lake.npz").returns)
    20
    >>> agent = new_agent()
    >>> len(train(env, agent, features, episodes=50, checkpoint="lake.npz").returns)  # 30 more
    50
    """
    most, enough = limits(episodes, steps, callback)
    every = count("evaluate_every", evaluate_every) if evaluate_every is not None else None
    trials = count("evaluate_episodes", evaluate_episodes)
    seconds = number("checkpoint_every", checkpoint_every, "a number ≥ 0", lambda v: v >= 0.0)
    given = environments.seed_of_agent(agent) if seed is None else seed
    with environments.opened(env) as made:
        execute = environments.fitting(made, agent, features)
        numbers = environments.entropy(given)
        history, saved = History(), None
        if checkpoint is not None:
            saved = checkpoints.TrainingCheckpoint(
                checkpoint, agent, made, features, numbers, (every, trials), seed is not None
            )
            history = _resumed(saved, agent, most)
            numbers = tuple(saved.about["seed"])
        written, there, ended = time.monotonic(), len(history.returns), False
        while not (ended or (most is not None and len(history.returns) >= most) or (enough and history.steps >= enough)):
            done = len(history.returns)
            try:
                seed_now = environments.episode_seed(environments.TRAINING, done, numbers)
                history.add(*_episode(made, agent, features, execute, seed_now))
            except ValueError as error:
                raise ValueError(f"in episode {done + 1}: {error}") from error
            if every and len(history.returns) % every == 0:
                history.evaluated_after.append(len(history.returns))
                history.evaluations.append(evaluate(made, agent, features, trials, seed=numbers).returns.tolist())
            if callback is not None:
                ended = says_end(callback(len(history.returns), history.returns[-1], history.lengths[-1]))
            if saved is not None and time.monotonic() - written >= seconds:
                saved.write(agent, history.arrays(trials))
                written, there = time.monotonic(), len(history.returns)
        if saved is not None and len(history.returns) > there:
            saved.write(agent, history.arrays(trials))
    return history.frozen(trials)


def says_end(told: Any) -> bool:
    """Whether a callback returned True, also NumPy's."""
    return isinstance(told, bool | np.bool_) and bool(told)


def limits(episodes: int | None, steps: int | None, callback: Any = None) -> tuple[int | None, int | None]:
    """When a training ends, checked."""
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be callable, got {callback!r:.80}")
    if episodes is None and steps is None:
        raise ValueError("episodes or steps must be given, to say when to stop")
    most = count("episodes", episodes) if episodes is not None else None
    return most, count("steps", steps, 2**62) if steps is not None else None


def _episode(
    env: Any, agent: Any, features: environments.Features, execute: Callable, seed: int
) -> tuple[float, int, bool]:
    """Learn from one episode; its return, its length, and whether it ended by itself."""
    observation, _ = env.reset(seed=seed)
    action = agent.start(features(observation))
    total, length = 0.0, 0
    while True:
        observation, reward, terminated, truncated, _ = env.step(execute(action))
        reward = float(reward)
        total += reward
        length += 1
        if terminated:  # also where the time was up: there is nothing to bootstrap from
            agent.end(reward)
            return total, length, True
        if truncated:
            agent.truncate(reward, features(observation))
            return total, length, False
        action = agent.step(reward, features(observation))


def _resumed(saved: checkpoints.TrainingCheckpoint, agent: Any, most: int | None) -> History:
    """The history in the checkpoint, with the agent put into its state; an empty history if there is no checkpoint."""
    state = saved.read()
    if state is None:
        return History()
    arrays, restore = state
    if most is not None and len(arrays["returns"]) > most:
        raise ValueError(
            f"{saved.path} holds {len(arrays['returns'])} episodes, more than the {most} asked for; ask for as many, or use "
            "another file"
        )
    restore(agent)
    return History.of(arrays)
