"""`train`: an agent acts in an environment and learns, episode after episode, across crashes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueonline.control.gym import checkpoints
from trueonline.control.gym.environments import TRAINING, Features, Seed, entropy, episode_seed, fitting, opened
from trueonline.control.gym.evaluation import evaluate
from trueonline.inputs import count, number

Progress = Callable[[int, float, int], None]  # (episodes so far, the return of the last, its length)


@dataclass(frozen=True, eq=False, repr=False)
class Training:
    """What a training brought, episode by episode. Returns are sums of rewards, undiscounted."""

    returns: np.ndarray
    lengths: np.ndarray
    terminated: np.ndarray  # whether the episode ended by itself; False where it was cut short
    evaluated_after: np.ndarray  # how many episodes there had been at each evaluation
    evaluations: np.ndarray  # the returns of its episodes: a row for each evaluation

    @property
    def steps(self) -> int:
        return int(self.lengths.sum())

    def mean(self, last: int = 100) -> float:
        """The mean return of the last episodes."""
        return float(self.returns[-count("last", last) :].mean())

    def __repr__(self) -> str:
        last = f"last 100: {self.mean():.4g}" if len(self.returns) > 100 else f"return {self.mean():.4g}"
        return f"Training({len(self.returns):,} episodes, {self.steps:,} steps, {last} on average)"


@dataclass
class History:
    """The same while it grows."""

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

    def arrays(self, evaluate_episodes: int) -> dict[str, np.ndarray]:
        return {
            "returns": np.array(self.returns, np.float64),
            "lengths": np.array(self.lengths, np.int64),
            "terminated": np.array(self.terminated, np.bool_),
            "evaluated_after": np.array(self.evaluated_after, np.int64),
            "evaluations": np.array(self.evaluations, np.float64).reshape(-1, evaluate_episodes),
        }

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> History:
        return cls(**{name: values.tolist() for name, values in arrays.items()}, steps=int(arrays["lengths"].sum()))


def train(
    env: Any,
    agent: Any,
    features: Features,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    seed: Seed = 0,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = 30.0,
    evaluate_every: int | None = None,
    evaluate_episodes: int = 10,
    progress: Progress | None = None,
) -> Training:
    """Let an agent act and learn in any Gymnasium environment with discrete actions, given by itself or by name.

    `features` makes x of an observation. There are `episodes` of them, or as many as it takes to make at least `steps`
    steps; with both, what comes first. An episode that the environment terminates is ended (`agent.end`); one that it
    truncates is only cut short, and its last state is bootstrapped from (`agent.truncate`). One that it does both to has
    ended. The agent's step-size is taken as it is.

    Episode k is reset with a seed that depends on `seed` and k only. So with a `checkpoint`, a file that is written about
    every `checkpoint_every` seconds, at the end of an episode, and once more at the end of all, the same call goes on
    after a crash and comes to the same weights and returns, bit for bit; or on to more episodes than were asked for
    before. A checkpoint that other settings wrote is refused and left alone. (That is all that can be promised of
    environments whose randomness comes from the seed given to `reset` and from nowhere else, as Gymnasium demands.)

    Every `evaluate_every` episodes, `evaluate_episodes` greedy ones are played without learning. `progress` is called
    after each episode with the number of episodes so far, the return of the last, and its length.
    """
    if episodes is None and steps is None:
        raise ValueError("episodes or steps must be given, to say when to stop")
    most = count("episodes", episodes) if episodes is not None else None
    enough = count("steps", steps, 2**62) if steps is not None else None
    every = count("evaluate_every", evaluate_every) if evaluate_every is not None else None
    trials = count("evaluate_episodes", evaluate_episodes)
    seconds = number("checkpoint_every", checkpoint_every, "a number ≥ 0", lambda v: v >= 0.0)
    seed = entropy(seed)
    with opened(env) as made:
        first = fitting(made, agent, features)
        history, saved = History(), None
        if checkpoint is not None:
            saved = checkpoints.Checkpoint(checkpoint, agent, made, features, seed, (every, trials))
            history = _resumed(saved, agent, most)
        written, there = time.monotonic(), len(history.returns)
        while not (most is not None and len(history.returns) >= most) and not (enough and history.steps >= enough):
            done = len(history.returns)
            try:
                history.add(*_episode(made, agent, features, first, episode_seed(TRAINING, done, seed)))
            except ValueError as error:
                raise ValueError(f"in episode {done + 1}: {error}") from error
            if every and len(history.returns) % every == 0:
                history.evaluated_after.append(len(history.returns))
                history.evaluations.append(evaluate(made, agent, features, trials, seed=seed).returns.tolist())
            if progress is not None:
                progress(len(history.returns), history.returns[-1], history.lengths[-1])
            if saved is not None and time.monotonic() - written >= seconds:
                saved.write(agent, history.arrays(trials))
                written, there = time.monotonic(), len(history.returns)
        if saved is not None and len(history.returns) > there:
            saved.write(agent, history.arrays(trials))
    return _frozen(history.arrays(trials))


def _episode(env: Any, agent: Any, features: Features, first: int, seed: int) -> tuple[float, int, bool]:
    """Learn from one episode; its return, its length, and whether it ended by itself."""
    observation, _ = env.reset(seed=seed)
    action = agent.start(features(observation))
    total, length = 0.0, 0
    while True:
        observation, reward, terminated, truncated, _ = env.step(first + action)
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


def _resumed(saved: checkpoints.Checkpoint, agent: Any, most: int | None) -> History:
    """The history that the checkpoint holds, with the agent put where it was then; an empty one if there is none."""
    found = saved.read()
    if found is None:
        return History()
    arrays, restore = found
    if most is not None and len(arrays["returns"]) > most:
        raise ValueError(
            f"{saved.path} holds {len(arrays['returns'])} episodes, more than the {most} asked for; ask for as many, or use "
            "another file"
        )
    restore(agent)
    return History.of(arrays)


def _frozen(arrays: dict[str, np.ndarray]) -> Training:
    for array in arrays.values():
        array.flags.writeable = False
    return Training(**arrays)
