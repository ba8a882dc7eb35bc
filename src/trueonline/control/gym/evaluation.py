"""How good a policy is: greedy episodes without learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trueonline.control.gym.environments import EVALUATION, Features, Seed, entropy, episode_seed, fitting, opened
from trueonline.control.policies import Greedy, Policy, check_policy
from trueonline.inputs import count
from trueonline.inputs.seeds import seed_of

MAX_STEPS = 100_000  # steps; a greedy policy may go round in circles for ever


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Greedy episodes without learning.

    Attributes
    ----------
    returns : ndarray of float
        The return of each episode: the sum of its rewards, undiscounted.
    lengths : ndarray of int
        The number of steps of each episode.
    terminated : ndarray of bool
        Whether the environment terminated the episode. False means that it was truncated.
    """

    returns: np.ndarray
    lengths: np.ndarray
    terminated: np.ndarray

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean return; NaN for a single episode."""
        return standard_error(self.returns)


def standard_error(values: np.ndarray) -> float:
    """The standard error of a mean; NaN for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def evaluate(
    env: Any,
    agent: Any,
    features: Features,
    episodes: int = 10,
    *,
    seed: Seed = 0,
    policy: Policy | None = None,
    max_steps: int = MAX_STEPS,
) -> Evaluation:
    """Play episodes with the agent's values, greedily and without learning. The agent is left exactly as it was.

    Parameters
    ----------
    env : gymnasium.Env or str
        The environment, or its registered name.
    agent : Agent
        An agent of `trueonline.control`, or an object with its methods.
    features : callable
        It makes the features x of an observation.
    episodes : int
        How many episodes.
    seed : int or sequence of int
        Determines how episodes begin and how ties are broken.
    policy : Policy, optional
        Another policy than the greedy one.
    max_steps : int
        A longer episode is truncated there: a greedy policy may go round in circles.

    Returns
    -------
    Evaluation
        The return and the length of each episode.

    Raises
    ------
    TypeError
        If `agent` is not an agent.
    ValueError
        If environment, agent and features do not fit together.
    """
    if policy is not None:
        check_policy(policy)
    episodes, max_steps, seed = count("episodes", episodes), count("max_steps", max_steps), entropy(seed)
    with opened(env) as made:
        execute = fitting(made, agent, features)
        played = [
            play(made, agent, features, policy or Greedy(), execute, (EVALUATION, number, seed), max_steps)
            for number in range(episodes)
        ]
    returns, lengths, terminated = zip(*played, strict=True)
    return Evaluation(np.array(returns, float), np.array(lengths, np.int64), np.array(terminated, bool))


def play(
    env: Any,
    agent: Any,
    features: Features,
    policy: Policy,
    execute: Callable[[Any], Any],
    seeds: tuple[str, int, tuple[int, ...]],
    max_steps: int,
    seen: Callable[[int], None] = lambda step: None,
) -> tuple[float, int, bool]:
    """One episode: its return, its length, and whether it ended by itself. `seen` is called after each step."""
    purpose, number, seed = seeds
    rng = np.random.default_rng(seed_of(purpose, number, *seed))
    observation, _ = env.reset(seed=episode_seed(purpose, number, seed))
    seen(0)
    total = 0.0
    played = getattr(agent, "_played", None) or partial(_chosen, agent)
    for step in range(1, max_steps + 1):
        action = played(features(observation), policy, rng, step - 1)
        observation, reward, terminated, truncated, _ = env.step(execute(action))
        total += float(reward)
        seen(step)
        if terminated or truncated:
            return total, step, bool(terminated)
    return total, max_steps, False


def _chosen(agent: Any, x: Any, policy: Policy, rng: np.random.Generator, steps: int) -> int:
    """The action of a policy for the values of an agent."""
    return int(policy(agent.values(x), rng, steps))
