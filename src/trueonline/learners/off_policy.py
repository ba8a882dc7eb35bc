"""Learners about one policy from what another one does, and Monte Carlo: the rest of the family (section 7 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.core import memory
from trueonline.core.adaptation import SHORTENS, Form
from trueonline.core.memory import BETA, BY_EMPHASIS, INTEREST, RATIO
from trueonline.inputs import Schedule
from trueonline.learners.interface import OffPolicy
from trueonline.learners.on_policy import MemoryLearner
from trueonline.methods import dutch_monte_carlo, emphatic_td, gtd, true_online_emphatic_td, true_online_gtd


class OffPolicyLearner(OffPolicy, MemoryLearner):
    """A learner about one policy from what another one does: transitions carry importance ratios."""

    def _update(
        self, reward: float, x_next: Any, discount: float | None, trace_decay: float | None, ratio: float
    ) -> float:
        numbers = self._memory.numbers
        before, numbers[RATIO] = numbers[RATIO], inputs.ratio("ratio", ratio)
        try:
            return MemoryLearner.update(self, reward, x_next, discount, trace_decay)
        except BaseException:
            numbers[RATIO] = before
            raise


class MonteCarlo(MemoryLearner):
    """Monte Carlo prediction with dutch traces: no bootstrapping, in constant memory (van Hasselt and Sutton 2015).

    Where an episode ends, the weights are those of having stored it and updated every state of it towards its return. Before that
    they are as though it ended now. `trace_decay` has no meaning, and is ignored.

    >>> learner = MonteCarlo(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> _ = learner.update(1.0, 1), learner.update(1.0, None)
    >>> learner.weights
    array([1. , 0.5])
    """

    _methods = (dutch_monte_carlo, dutch_monte_carlo)


class EmphaticLearner(OffPolicyLearner):
    """Off-policy, with an interest in each state."""

    takes_interests = True

    def update(
        self,
        reward: float,
        x_next: Any,
        discount: float | None = None,
        trace_decay: float | None = None,
        ratio: float = 1.0,
        interest: float = 1.0,
    ) -> float:
        """As always; `interest` is how much the state that is left matters, 1 by default."""
        numbers = self._memory.numbers
        before, numbers[INTEREST] = numbers[INTEREST], inputs.ratio("interest", interest)
        try:
            return super().update(reward, x_next, discount, trace_decay, ratio)
        except BaseException:
            numbers[INTEREST] = before
            raise

    def run(
        self,
        X: Any,
        rewards: Any,
        discounts: Any = None,
        *,
        trace_decays: Any = None,
        starts: Any = None,
        ratios: Any = None,
        interests: Any = None,
    ) -> np.ndarray:
        """As always; `interests[t]` is how much the state of row t matters."""
        return self._run(X, rewards, discounts, trace_decays, starts, ratios, interests)


class EmphaticTD(EmphaticLearner):
    """Emphatic TD(λ) (Sutton, Mahmood and White 2016).

    >>> learner = EmphaticTD(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> learner.update(1.0, None, interest=0.5)
    1.0
    >>> learner.weights
    array([0.25])
    """

    _methods = (emphatic_td, emphatic_td)
    _form = Form(accumulates=SHORTENS, weighed=BY_EMPHASIS)


class TrueOnlineEmphaticTD(EmphaticLearner):
    """True online emphatic TD(λ) (Sutton 2015): equals its forward view at every step."""

    _methods = (true_online_emphatic_td, true_online_emphatic_td)
    _form = Form(weighed=BY_EMPHASIS)


class GradientLearner(OffPolicyLearner):
    """Off-policy, with second weights h, which have a step-size of their own: a number, or a schedule t → β; 0 leaves h at 0."""

    def __init__(
        self,
        n_features: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        initial_weights: Any = None,
        *,
        second_step_size: float | Schedule,
        bound: float | None = None,
        meta_step_size: float | None = None,
    ) -> None:
        self._second_step_size = (
            second_step_size if callable(second_step_size) else inputs.ratio("second_step_size", second_step_size)
        )
        given = (n_features, step_size, trace_decay, discount, initial_weights)
        super().__init__(*given, bound=bound, meta_step_size=meta_step_size)

    @property
    def second_step_size(self) -> float | Schedule:
        return self._second_step_size

    @property
    def second_weights(self) -> np.ndarray:
        """A fresh dense copy of h."""
        return memory.weights(self._each()[1])

    def _update(
        self, reward: float, x_next: Any, discount: float | None, trace_decay: float | None, ratio: float
    ) -> float:
        numbers = self._memory.numbers
        beta = inputs.at("second_step_size", self._second_step_size, self.steps, inputs.ratio)
        before, numbers[BETA] = numbers[BETA], beta
        try:
            return super()._update(reward, x_next, discount, trace_decay, ratio)
        except BaseException:
            numbers[BETA] = before
            raise

    def _betas(self, learned: np.ndarray) -> np.ndarray:
        return inputs.along("second_step_size", self._second_step_size, self.steps, learned, inputs.ratio)

    def _settings(self) -> dict[str, Any]:
        second = None if callable(self._second_step_size) else self._second_step_size
        return {**super()._settings(), "second_step_size": second}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "second_step_size": self._second_step_size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._second_step_size = state["second_step_size"]
        super().__setstate__(state)


class GTD(GradientLearner):
    """GTD(λ) (Maei 2011)."""

    _methods = (gtd, gtd)
    _memories = 2
    _form = Form(accumulates=SHORTENS)


class TrueOnlineGTD(GradientLearner):
    """True online GTD(λ) (van Hasselt, Mahmood and Sutton 2014): equals its forward view at every step."""

    _methods = (true_online_gtd, true_online_gtd)
    _memories = 3
