"""A derived rule as plain Python, with dense vectors. `derive` compares it with the forward view before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from trueonline.core.transition import Transition, asked
from trueonline.forward.agents import DefinitionAgent
from trueonline.forward.base import Definition, number_or_schedule, with_parameters
from trueonline.inputs import FeaturesLike
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
    own = derivation.view.parameters
    names, base = (*asked(rule), *own), with_parameters(Definition, own)  # a file names its parameters last

    class Plain(base):  # type: ignore[misc, valid-type]
        """The derived rule, step by step."""

        takes = ("ratio",) if "rho" in names else ()
        per_feature = derivation.view.per_feature
        options = MappingProxyType({**base.options, "second_step_size": number_or_schedule})
        second_step_size = 0.0

        def reset(self) -> None:
            self.memory, self.carried = Vectors(self.n_features), np.zeros(3)
            super().reset()

        def start(self, x: FeaturesLike) -> None:
            super().start(x)
            self.memory.e = np.zeros(self.n_features)
            self.v_old, self.left = 0.0, (0.0, 0.0, 1.0)  # γ, λ and ρ of before

        @property
        def reward_rate(self) -> float:
            return self.carried[0]

        def _weights_now(self) -> np.ndarray:
            (gamma, lam, rho_old), alpha = self.left, self.alphas[-1]
            if self.per_feature:
                self.memory.rates, alpha = alpha, 1.0
            self.left = self.discounts[-1], self.trace_decays[-1], self.ratios[-1]
            given: dict[str, Any] = dict.fromkeys(Transition._fields, np.nan) | {
                "x": self.x[-1], "reward": self.rewards[-1], "x_next": self.reached[-1], "v_old": self.v_old, "alpha": alpha,
                "gamma": gamma, "lam": lam, "gamma_next": self.left[0], "lam_next": self.left[1],
                "rho": self.left[2], "rho_old": rho_old, "greedy": float([False, *self.goes_on][-2]),
                "discount": self.discount, "trace_decay": self.trace_decay,
                "beta": self.second_step_size, "carried": self.carried,
                **{name: getattr(self, name) for name in own},
            }  # fmt: skip
            numbers = (value if np.ndim(value) else np.float64(value) for value in (given[name] for name in names))
            with np.errstate(all="ignore"):  # a quotient by 0 is infinite, as in a kernel
                _, _, self.v_old = function(self.memory, *numbers)
            return self.memory.w

    if not derivation.acts:
        return Plain
    return type("PlainAgent", (DefinitionAgent,), {"definition": Plain, "greedy": derivation.greedily})
