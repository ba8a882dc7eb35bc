"""The agents of `trueonline train --agent`: streaming deep RL with its published settings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from trueonline import control, features
from trueonline.control.gym import environments
from trueonline.inputs import count

TITLES = {"stream_q": "stream Q(λ)", "stream_sarsa": "stream Sarsa(λ)", "stream_ac": "stream AC(λ)"}
AGENTS = tuple(name.replace("_", "-") for name in TITLES)
# What the command's options are where nobody gave them (arXiv 2410.14606). ε falls over a number of steps instead of a share.
PUBLISHED = {"step_size": 1.0, "raw_step_size": True, "trace_decay": 0.8}
EXPLORING = {"epsilon": 1.0, "epsilon_final": 0.01, "epsilon_steps": 10_000}
HIDDEN = (32, 32)


class Observations:
    """Observations as inputs of a network: the numbers of a Box, or a one for the state that the environment is in."""

    n_active = 1

    def __init__(self, space: Any, *, hidden: Any = HIDDEN) -> None:
        self.hidden = tuple(count("hidden", each) for each in hidden)
        box = all(hasattr(space, name) for name in ("low", "high", "shape")) and not hasattr(space, "nvec")
        self._table = None if box else features.from_space(space, "table")
        self.n_features = int(np.prod(space.shape)) if self._table is None else self._table.n_features

    def __call__(self, observation: Any) -> np.ndarray:
        """The inputs."""
        if self._table is None:
            return np.asarray(observation, np.float64).reshape(-1)
        x = np.zeros(self.n_features)
        x[self._table(observation)] = 1.0
        return x

    def settings(self) -> dict[str, Any]:
        """Everything that determines the network."""
        return {"kind": "network", "inputs": self.n_features, "hidden": list(self.hidden)}


def kind(method: str) -> Any:
    """The class of an agent."""
    names = {"stream_q": "StreamQ", "stream_sarsa": "StreamSarsa", "stream_ac": "StreamAC"}
    return getattr(import_module("trueonline.deep"), names[method])


def agent(settings: Any, env: Any, maker: Observations, run: int) -> Any:
    """The agent of a run, before it has learned anything. Observations are normalised, rewards scaled, and the time is an input."""
    deep = import_module("trueonline.deep")
    limit = env.spec.max_episode_steps if env.spec is not None else None
    n_inputs, seed = maker.n_features + (limit is not None), (settings.seed, run)
    continuous = settings.method == "stream_ac" and type(env.action_space).__name__ == "Box"
    n = 2 * int(np.prod(env.action_space.shape)) if continuous else int(environments.discrete(env).n)

    def net(n_outputs: int, number: int) -> Any:
        drawn = np.random.SeedSequence((*seed, number)).generate_state(1)
        return deep.MLP(n_inputs, maker.hidden, n_outputs, seed=int(drawn[0]))

    shared = {"discount": settings.discount, "trace_decay": settings.trace_decay, "step_size": settings.step_size}
    shared |= {"seed": list(seed), "normalise": True, "scale_rewards": True, "time_limit": limit, **settings.parameters}
    made = kind(settings.method)
    if settings.method == "stream_ac":
        return made(net(n, 0), net(1, 1), continuous=continuous, **shared)
    return made(net(n, 0), policy=control.EpsilonGreedy(settings.schedule()), **shared)
