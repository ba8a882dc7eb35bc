"""The base of agents that learn a network while they act."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.control.agent import generator, plain
from trueonline.control.policies import EpsilonGreedy, Policy, check_policy, describe, restore
from trueonline.control.transitions import TIE
from trueonline.core.thread_guard import guarded
from trueonline.deep.network import MLP, limited
from trueonline.deep.parts import Parts
from trueonline.deep.streaming import PARAMETERS, Streaming, with_nets
from trueonline.inputs import FeaturesLike, Schedule, explains_arguments
from trueonline.learners.acting import Acting

ACTING = """\
policy : callable, optional
    policy(values, rng, t) chooses an action from the values of all actions. ε-greedy with ε = 0.1 by default.
seed : int or sequence of int, optional
    The seed of all randomness of the policy.
"""
PARTS = """\
normalise : bool, optional
    Whether observations are normalised by their running mean and variance (`RunningMoments`).
scale_rewards : bool, optional
    Whether rewards are divided by the running standard deviation of their discounted sum (`RewardScale`).
time_limit : int, optional
    The longest episode. The time in the episode is then the last input (`EpisodeTime`), so that the network has one input more
    than an observation has numbers.
"""


class StreamAgent(Streaming, Acting):
    """An agent that acts and learns, one transition at a time. Subclasses say how they learn."""

    _shared_parameters = PARAMETERS + ACTING + PARTS
    _more: tuple = ()  # what the compiled step takes after the state entered
    policy: Policy

    @explains_arguments
    def __init__(
        self,
        net: MLP,
        discount: float,
        trace_decay: float,
        step_size: float | Schedule = 1.0,
        kappa: float = 2.0,
        *,
        policy: Policy | None = None,
        seed: Any = None,
        normalise: bool = False,
        scale_rewards: bool = False,
        time_limit: int | None = None,
    ) -> None:
        if policy is not None:
            check_policy(policy)
            self.policy = policy
        elif not hasattr(self, "policy"):
            self.policy = EpsilonGreedy(0.1)
        parts = {"normalise": normalise, "scale_rewards": scale_rewards, "time_limit": time_limit}
        self._part_settings: dict[str, Any] = parts
        super().__init__(net, discount, trace_decay, step_size, kappa)
        self.rng = np.random.default_rng(inputs.joint_seed(seed))

    def _attach(self) -> None:
        settings = self._part_settings
        n = self.net.n_inputs - (settings["time_limit"] is not None)
        if n == 0:
            raise ValueError("net must have inputs for the observation and one for the time, got one input")
        self._parts = Parts(n, self.discount, **settings)
        super()._attach()
        self._action: Any = None
        self._greedy = True  # whether the present action was one of the best when it was chosen

    @property
    def n_features(self) -> int:
        """The number of numbers of an observation: the inputs of the network, without the time."""
        return self._parts.n

    @property
    def parts(self) -> Parts:
        """A copy of what stands between environment and network: `moments`, `rewards`, `time`."""
        return self._parts.copy()

    @guarded
    def inputs(self, x: FeaturesLike, steps: int = 0) -> np.ndarray:
        """Compute the network's input for an observation, which `learn`, `values` and `predict` take. Nothing is observed.

        Parameters
        ----------
        x : features
            The observation.
        steps : int, optional
            The number of steps since the beginning of the episode.

        Returns
        -------
        numpy.ndarray
            The input: normalised, and with the time, if the agent does so.
        """
        return self._parts.inputs(self._observation(x, "x"), steps)

    def _observation(self, x: Any, name: str) -> np.ndarray:
        return limited(x, self.n_features, name).copy()

    def _played(self, x: Any, policy: Policy, rng: np.random.Generator, steps: int) -> Any:
        """The action of another policy for an observation after so many steps. Nothing is learned."""
        return int(policy(self.values(self.inputs(x, steps)), rng, steps))

    @guarded
    def values(self, x: FeaturesLike) -> np.ndarray:
        return self.net(x)

    def run(self, X: Any, actions: Any, rewards: Any, terminated: Any = None, *, resume: bool = False) -> np.ndarray:
        """Learn from a stream of T transitions in one call, as `learn` does.

        Parameters
        ----------
        X : stream of features, T + 1 rows
            The states: a float array of shape (T + 1, n_inputs), or sparse features in any of the package's forms. Transition t
            leads from row t to row t + 1.
        actions : array_like
            T actions. `StreamSarsa` takes T + 1: those taken in each state.
        rewards : array_like
            T rewards.
        terminated : array_like of bool, optional
            Whether each transition ended an episode. The row that it leads to then begins the next episode.
        resume : bool, optional
            Whether the stream continues the one before, with its trace. By default it begins without a trace.

        Returns
        -------
        numpy.ndarray
            The TD error of each transition.
        """
        return self._run(X, *self._streamed(actions, np.size(rewards)), rewards, terminated, None, resume)[1]

    def _streamed(self, actions: Any, rows: int) -> tuple[np.ndarray, tuple]:
        """The actions of a stream, and what else the compiled steps take."""
        return self._checked_actions(actions, rows), tuple(np.full(rows, each) for each in self._more)

    def _step(self, reward: float, x_next: np.ndarray, gamma: float, lam: float) -> None:
        """Learn from the transition into x_next, and set the next action."""
        lam = lam if self._greedy else 0.0
        self._transition(self._here, self._action, reward, x_next, self._more, gamma, lam)
        self._action = None  # a policy that fails does not make the agent learn twice
        self._action, self._greedy = self._choose(x_next, self._steps)

    def _last(self, reward: float, x_next: np.ndarray | None, gamma: float) -> None:
        """Learn from the last transition of an episode, into None if it has terminated."""
        self._transition(self._here, self._action, reward, x_next, self._more, gamma, 0.0)

    @property
    def action(self) -> Any:
        """The action to be executed now; None between episodes."""
        return self._action

    @guarded
    def start(self, x: FeaturesLike) -> Any:
        parts = self._parts.copy()
        here = parts.start(self._observation(x, "x"))
        action, greedy = self._choose(here, self._steps)
        self._parts, self._here = parts, here
        self._forget()
        self._action, self._greedy = action, greedy
        return action

    @guarded
    def step(
        self, reward: float, x_next: FeaturesLike, discount: float | None = None, trace_decay: float | None = None
    ) -> Any:
        self._standing()
        if x_next is None:
            raise ValueError("x_next must be features, got None; at the end of the episode, call end(reward)")
        gamma, lam = self._own("discount", discount), self._own("trace_decay", trace_decay)
        with self._observing(reward, x_next, end=False) as (scaled, there):
            self._step(scaled, there, gamma, lam)
        self._here = there
        return self._standing()

    @guarded
    def truncate(self, reward: float, x_next: FeaturesLike, discount: float | None = None) -> None:
        self._standing()
        gamma = self._own("discount", discount)
        with self._observing(reward, x_next, end=True) as (scaled, there):
            self._last(scaled, there, gamma)
        self._here = self._action = None

    @guarded
    def end(self, reward: float) -> None:
        self._standing()
        with self._observing(reward, None, end=True) as (scaled, _):
            self._last(scaled, None, 0.0)
        self._here = self._action = None

    @contextmanager
    def _observing(self, reward: Any, x: Any, end: bool) -> Iterator[tuple[float, Any]]:
        """Scale the reward and the observation. The parts keep what they saw if the transition was learned from."""
        reward = inputs.number("reward", reward)
        parts, steps = self._parts.copy(), self._steps
        scaled = parts.step(reward, None if x is None else self._observation(x, "x_next"), end)
        try:
            yield scaled
        finally:
            if self._steps > steps:
                self._parts = parts

    def _standing(self) -> Any:
        if self._here is None or self._action is None:
            raise RuntimeError("no episode has begun: call start(x) with its first features")
        return self._action

    def _choose(self, x: np.ndarray, t: int) -> tuple[Any, bool]:
        """An action in a state, and whether it is one of the best: as good as the best, up to rounding (`TIE`)."""
        values = self.values(x)
        action = self._checked_action(self.policy(values.copy(), self.rng, t), "the policy's action")
        best = values.max()
        return action, bool(values[action] >= best - TIE * max(1.0, abs(best)))

    def _stand_after(self, here: np.ndarray | None) -> None:
        self._here = self._action = None  # which action is taken in the last state is not known

    def _settings(self) -> dict[str, Any]:
        return {
            **super()._settings(),
            **self._parts.settings(),
            "policy": describe(self.policy),
            "rng": plain(self.rng.bit_generator.state),
            "action": self._action,
        }

    def _dump(self) -> dict[str, np.ndarray]:
        return {**super()._dump(), **self._parts.dump(), "greedy": np.array(self._greedy)}

    def _restore(self, parts: dict[str, np.ndarray], rng: dict[str, Any], action: Any) -> None:
        self._restore_nets(parts)
        self._parts.restore(parts)
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
