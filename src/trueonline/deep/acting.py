"""The base of agents that learn a network while they act."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.control.agent import generator, plain
from trueonline.control.policies import EpsilonGreedy, Policy, describe, restore
from trueonline.core.thread_guard import guarded
from trueonline.deep.network import MLP
from trueonline.deep.streaming import Streaming, with_nets
from trueonline.inputs import FeaturesLike, Schedule
from trueonline.learners.acting import Acting

ACTING = """\
policy : callable, optional
    policy(values, rng, t) chooses an action from the values of all actions. ε-greedy with ε = 0.1 by default.
seed : int or sequence of int, optional
    The seed of all randomness of the policy.
"""


class StreamAgent(Streaming, Acting):
    """An agent that acts and learns, one transition at a time. Subclasses say how they learn."""

    _shared_parameters = ""
    policy: Policy

    def __init__(
        self,
        net: MLP,
        discount: float,
        trace_decay: float,
        step_size: float | Schedule,
        kappa: float,
        policy: Policy | None,
        seed: Any,
    ) -> None:
        if policy is not None and (isinstance(policy, type) or not callable(policy)):
            raise ValueError(f"policy must be callable as policy(values, rng, t), got {policy!r}")
        super().__init__(net, discount, trace_decay, step_size, kappa)
        self.policy = EpsilonGreedy(0.1) if policy is None else policy
        self.rng = np.random.default_rng(seed)

    def _attach(self) -> None:
        super()._attach()
        self._action: int | None = None
        self._greedy = True  # whether the present action was one of the best when it was chosen

    @abstractmethod
    def _step(self, reward: float, x_next: np.ndarray, gamma: float, decay: float) -> None:
        """Learn from the transition into x_next, and set the next action."""

    @abstractmethod
    def _last(self, reward: float, x_next: np.ndarray | None, gamma: float) -> None:
        """Learn from the last transition of an episode, into None if it has terminated."""

    @property
    def action(self) -> int | None:
        """The action to be executed now; None between episodes."""
        return self._action

    @guarded
    def start(self, x: FeaturesLike) -> int:
        here = self.net._checked(x, "x").copy()
        action, greedy = self._choose(self.values(here), self._steps)
        self._here, self._decay = here, 0.0
        self._action, self._greedy = action, greedy
        return action

    @guarded
    def step(
        self, reward: float, x_next: FeaturesLike, discount: float | None = None, trace_decay: float | None = None
    ) -> int:
        self._standing()
        if x_next is None:
            raise ValueError("x_next must be features, got None; at the end of the episode, call end(reward)")
        gamma = self.discount if discount is None else inputs.unit("discount", discount)
        lam = self.trace_decay if trace_decay is None else inputs.unit("trace_decay", trace_decay)
        there = self.net._checked(x_next, "x_next").copy()
        self._step(inputs.number("reward", reward), there, gamma, gamma * lam)
        self._here = there
        return self._standing()

    @guarded
    def truncate(self, reward: float, x_next: FeaturesLike, discount: float | None = None) -> None:
        self._standing()
        gamma = self.discount if discount is None else inputs.unit("discount", discount)
        self._last(inputs.number("reward", reward), self.net._checked(x_next, "x_next"), gamma)
        self._here = self._action = None

    @guarded
    def end(self, reward: float) -> None:
        self._standing()
        self._last(inputs.number("reward", reward), None, 0.0)
        self._here = self._action = None

    def _standing(self) -> int:
        if self._here is None or self._action is None:
            raise RuntimeError("no episode has begun: call start(x) with its first features")
        return self._action

    def _choose(self, values: np.ndarray, t: int) -> tuple[int, bool]:
        """An action, and whether it is one of the best."""
        action = self._checked_action(self.policy(values.copy(), self.rng, t), "the policy's action")
        return action, bool(values[action] == values.max())

    def _stand_after(self, here: np.ndarray | None) -> None:
        self._here = self._action = None  # which action is taken in the last state is not known

    def _settings(self) -> dict[str, Any]:
        return {
            **super()._settings(),
            "policy": describe(self.policy),
            "rng": plain(self.rng.bit_generator.state),
            "action": self._action,
        }

    def _dump(self) -> dict[str, np.ndarray]:
        return {**super()._dump(), "greedy": np.array(self._greedy)}

    def _restore(self, parts: dict[str, np.ndarray], rng: dict[str, Any], action: int | None) -> None:
        self._restore_nets(parts)
        self._greedy = bool(inputs.saved_array(parts, "greedy", (), np.bool_))
        self.rng = generator(rng)
        self._action = None if action is None else self._checked_action(action)
        if (self._action is None) != (self._here is None):
            raise ValueError("its action does not fit its state")

    @classmethod
    def _loaded(cls, settings: dict[str, Any], parts: dict[str, np.ndarray]) -> Any:
        rng, action, policy = (settings.pop(name) for name in ("rng", "action", "policy"))
        agent: Any = cls(**with_nets(settings), **cls._policy(policy))
        agent._restore(parts, rng, action)
        return agent

    @classmethod
    def _policy(cls, policy: Any) -> dict[str, Any]:
        """The argument for the policy of a saved agent."""
        return {"policy": restore(policy) if isinstance(policy, dict) else policy}
