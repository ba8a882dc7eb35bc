"""Agents by their definitions: the definitions of prediction over ψ(s, a), with a policy."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from trueonline import inputs
from trueonline.forward.action_values import ExpectedGradientSum, ExpectedSum, ExpectedTreeSum
from trueonline.forward.base import Definition, with_options
from trueonline.forward.differential import OnlineDifferentialReturn
from trueonline.forward.lambda_returns import OnlineLambdaReturn
from trueonline.forward.swift_equations import SwiftTDEquations
from trueonline.forward.traces import AccumulateSum, ClearingSum, ReplaceSum
from trueonline.forward.watkins import WatkinsReturn, WatkinsSum
from trueonline.inputs import FeaturesLike, Schedule
from trueonline.learners.acting import Acting
from trueonline.learners.docstrings import AGENT, SECOND, TARGET, with_learned_step_sizes

TIE_TOLERANCE = 1e-10  # closer values are tied: relative to the best value, or absolute if that is below 1


def undrawn_if_refused(method: Callable) -> Callable:
    """A method that leaves the generator as it was if it raises an error, whatever was drawn before."""

    @wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        before = self.rng.bit_generator.state
        try:
            return method(self, *arguments, **named)
        except BaseException:
            self.rng.bit_generator.state = before
            raise

    return call


class DefinitionAgent(Acting):
    """Action values by a definition over block features. Feature i and action a have the index i·n_actions + a.

    The interface is that of `trueonline.control.Agent`, without saving.
    """

    _shared_parameters = AGENT
    definition: ClassVar[type[Definition]]
    greedy: ClassVar[bool] = False  # whether it bootstraps from the best action, instead of from the next one

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.__signature__ = with_options(DefinitionAgent.__init__, cls)  # type: ignore[attr-defined]

    def __init__(
        self,
        n_features: int,
        n_actions: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        policy: Callable,
        *,
        seed: Any = None,
        initial_weights: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        self.n_features, self.n_actions = inputs.count("n_features", n_features), inputs.count("n_actions", n_actions)
        self.policy = policy
        self.rng = np.random.default_rng(seed)
        weights = None if initial_weights is None else np.reshape(initial_weights, -1)
        self.inner = self.definition(n_features * n_actions, step_size, trace_decay, discount, weights, **options)
        self.inner.n_actions = n_actions

    @property
    def weights(self) -> np.ndarray:
        return self.inner.weights.reshape(self.n_features, self.n_actions)

    def values(self, x: FeaturesLike) -> np.ndarray:
        return self._dense(x) @ self.weights

    @undrawn_if_refused
    def start(self, x: FeaturesLike) -> int:
        action = self.policy(self.values(x), self.rng, self.inner.steps)
        self.inner.start(self._psi(x, action))
        return action

    @undrawn_if_refused
    def step(
        self, reward: float, x_next: FeaturesLike, discount: float | None = None, trace_decay: float | None = None
    ) -> int:
        q = self.values(x_next)
        action = self.policy(q, self.rng, self.inner.steps + 1)
        from_ = int(q.argmax()) if self.greedy else action
        self.inner.update(reward, self._psi(x_next, from_), discount, trace_decay)
        self.inner._here = self._psi(x_next, action)
        if self.inner.goes_on:  # unless that was the end of the episode
            self.inner.goes_on[-1] = bool(q[action] >= q.max() - TIE_TOLERANCE * max(1.0, abs(q.max())))
        return action

    def truncate(self, reward: float, x_next: FeaturesLike, discount: float | None = None) -> None:
        self.step(reward, x_next, discount)

    def end(self, reward: float) -> None:
        self.inner.update(reward, None)

    def _psi(self, x: FeaturesLike, action: int) -> np.ndarray:
        psi = np.zeros((self.n_features, self.n_actions))
        psi[:, action] = self._dense(x)
        return psi.reshape(-1)

    def _dense(self, x: FeaturesLike) -> np.ndarray:
        return inputs.dense(inputs.features(x, self.n_features), self.n_features)


class ExpectedSarsaSum(DefinitionAgent):
    """Expected Sarsa(λ), by explicit sums over φ = ψ(S, A) and φ̄' = Σ_a π(a|S')ψ(S', a). The target policy π is ε-greedy."""

    _shared_parameters = AGENT + TARGET
    definition: ClassVar[type[Definition]] = ExpectedSum
    taken = (1.0, 1.0)  # ρ and π of the action that is taken

    def _target(self, q: np.ndarray) -> np.ndarray:
        """π of all actions, from their values."""
        best = q >= q.max() - TIE_TOLERANCE * max(1.0, abs(q.max()))
        epsilon = self.inner.target_epsilon  # type: ignore[attr-defined]
        return (1.0 - epsilon) * best / best.sum() + epsilon / len(q)

    def _chosen(self, q: np.ndarray, t: int) -> tuple[int, tuple[float, float]]:
        """An action, with ρ and π."""
        action = self.policy(q, self.rng, t)
        pi = float(self._target(q)[action])
        return action, (pi / float(self.policy.probabilities(q, t)[action]), pi)  # type: ignore[attr-defined]

    @undrawn_if_refused
    def start(self, x: FeaturesLike) -> int:
        action, self.taken = self._chosen(self.values(x), self.inner.steps)
        self.inner.start(self._psi(x, action))
        return action

    @undrawn_if_refused
    def step(
        self, reward: float, x_next: FeaturesLike, discount: float | None = None, trace_decay: float | None = None
    ) -> int:
        q = self.values(x_next)
        action, coming = self._chosen(q, self.inner.steps + 1)
        mean = np.outer(self._dense(x_next), self._target(q)).reshape(-1)
        self._learn(reward, self._psi(x_next, action), discount, trace_decay, mean)
        self.taken = coming
        return action

    def end(self, reward: float) -> None:
        self._learn(reward, None, None, None, None)

    def _learn(self, reward: float, x_next: Any, discount: Any, trace_decay: Any, mean: Any) -> None:
        parts = dict(zip(("ratio", "probability"), self.taken, strict=True))
        more = {name: value for name, value in parts.items() if name in self.inner.takes}
        self.inner.update(reward, x_next, discount, trace_decay, x_expected=mean, **more)


class TreeBackupQSum(ExpectedSarsaSum):
    """Tree Backup(λ), by explicit sums."""

    definition = ExpectedTreeSum


class GQSum(ExpectedSarsaSum):
    """GQ(λ), by explicit sums."""

    _shared_parameters = AGENT + TARGET + SECOND
    definition = ExpectedGradientSum


class AccumulateSarsaSum(DefinitionAgent):
    """Sarsa(λ) with accumulating traces, by explicit sums."""

    definition = AccumulateSum


class ReplaceSarsaSum(DefinitionAgent):
    """Sarsa(λ) with replacing traces, by explicit sums."""

    definition = ReplaceSum


class ClearingSarsaSum(DefinitionAgent):
    """Sarsa(λ) with replacing traces that clear those of the other actions, by explicit sums."""

    definition = ClearingSum


class OnlineSarsaReturn(DefinitionAgent):
    """The online λ-return algorithm over ψ(s, a). True online Sarsa(λ) equals it."""

    definition = OnlineLambdaReturn


class SwiftSarsaEquations(DefinitionAgent):
    """Swift-Sarsa by its equations: those of SwiftTD over ψ(s, a)."""

    _shared_parameters = with_learned_step_sizes(AGENT)
    definition = SwiftTDEquations


class OnlineDifferentialSarsaReturn(DefinitionAgent):
    """The online λ-return algorithm over ψ(s, a), of rewards above the reward rate. True online differential Sarsa(λ) equals it."""

    _shared_parameters = AGENT + SECOND
    definition = OnlineDifferentialReturn

    @property
    def reward_rate(self) -> float:
        """R̄, the estimate of the mean reward of a step."""
        return self.inner.reward_rate  # type: ignore[attr-defined]


class WatkinsQSum(DefinitionAgent):
    """Watkins's Q(λ) with accumulating traces, by explicit sums."""

    definition = WatkinsSum
    greedy = True


class OnlineWatkinsReturn(DefinitionAgent):
    """The growing update target of section 6.2. The true online version of Watkins's Q(λ) equals it."""

    definition = WatkinsReturn
    greedy = True
