"""A derived rule as plain Python, with dense vectors. `derive` compares it with the forward view before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from trueonline import inputs
from trueonline.core.transition import Transition, asked
from trueonline.forward.agents import DefinitionAgent
from trueonline.inputs import FeaturesLike, Schedule
from trueonline.learners.own import rule_of

if TYPE_CHECKING:
    from trueonline.derivation.backward import Derivation


class Vectors:
    """The weights w and the trace e."""

    def __init__(self, n: int) -> None:
        self.w, self.e = np.zeros(n), np.zeros(n)
        self.rates: Any = 1.0  # what a feature is written with, beside its value


def recall(memory: Vectors, x: np.ndarray, x_next: np.ndarray) -> tuple[float, float, float]:
    """wᵀx, eᵀx and wᵀx_next."""
    return memory.w @ x, memory.e @ x, memory.w @ x_next


def decay(memory: Vectors, g: float) -> None:
    """e ← g·e."""
    memory.e = g * memory.e


def imprint(memory: Vectors, x: np.ndarray, a: float, b: float) -> None:
    """e ← e + a·x and w ← w + b·x."""
    memory.e = memory.e + a * memory.rates * x
    memory.w = memory.w + b * memory.rates * x


def learn(memory: Vectors, b: float) -> None:
    """w ← w + b·e."""
    memory.w = memory.w + b * memory.e


def plain(derivation: Derivation) -> Any:
    """A class of learners, or of agents, that run the text of the derived method without Numba."""
    rule = rule_of(derivation.source(), derivation.identifier)
    scope = {**rule.py_func.__globals__, "recall": recall, "decay": decay, "imprint": imprint, "learn": learn}
    function: Callable = FunctionType(rule.py_func.__code__, scope)
    names = asked(rule)

    class Plain:
        """The derived rule, step by step. It checks nothing."""

        takes = ("ratio",) if "rho" in names else ()
        per_feature = derivation.view.per_feature

        def __init__(
            self,
            n_features: int,
            step_size: float | Schedule,
            trace_decay: float,
            discount: float,
            weights: Any = None,
            *,
            second_step_size: float = 0.0,
        ) -> None:
            self.step_size, self.trace_decay, self.discount = step_size, trace_decay, discount
            self.n_features, self.steps, self.memory = n_features, 0, Vectors(n_features)
            self.lam, self.rho_old = 0.0, 1.0
            self.beta, self.carried = second_step_size, np.zeros(3)

        @property
        def weights(self) -> np.ndarray:
            return self.memory.w

        @property
        def reward_rate(self) -> float:
            return self.carried[0]

        def _dense(self, x: FeaturesLike) -> np.ndarray:
            return inputs.dense(inputs.features(x, self.n_features), self.n_features)

        def start(self, x: FeaturesLike) -> None:
            self._here = self._dense(x)
            self.memory.e = np.zeros(self.n_features)
            self.v_old = self.gamma = 0.0
            self.goes_on = [False]  # whether the action taken is greedy, for agents

        def update(
            self,
            reward: float,
            x_next: FeaturesLike | None,
            discount: float | None = None,
            trace_decay: float | None = None,
            ratio: float = 1.0,
        ) -> None:
            gamma = 0.0 if x_next is None else self.discount if discount is None else discount
            lam = self.trace_decay if trace_decay is None else trace_decay
            alpha = self.step_size(self.steps) if callable(self.step_size) else self.step_size
            if derivation.view.per_feature:
                self.memory.rates, alpha = alpha, 1.0
            there = self._here if x_next is None else self._dense(x_next)
            given: dict[str, Any] = dict.fromkeys(Transition._fields, np.nan) | {
                "x": self._here, "reward": reward, "x_next": there, "v_old": self.v_old, "alpha": alpha,
                "gamma": self.gamma, "lam": self.lam, "gamma_next": gamma, "lam_next": lam,
                "rho": ratio, "rho_old": self.rho_old, "greedy": float(self.goes_on[-1]),
                "discount": self.discount, "trace_decay": self.trace_decay, "beta": self.beta, "carried": self.carried,
            }  # fmt: skip
            numbers = (value if np.ndim(value) else np.float64(value) for value in (given[name] for name in names))
            with np.errstate(all="ignore"):  # a quotient by 0 is infinite, as in a kernel
                _, _, self.v_old = function(self.memory, *numbers)
            self.gamma, self.lam, self.rho_old = gamma, lam, ratio
            self._here, self.goes_on = there, [True]
            self.steps += 1

    if not derivation.acts:
        return Plain
    return type("PlainAgent", (DefinitionAgent,), {"definition": Plain, "greedy": derivation.greedily})
