"""What every learner is: the interface that backward views (`learners`) and definitions (`forward`) share."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from trueonline import files
from trueonline.inputs import Parameters, Parametrised, Schedule


class Learner(Parametrised, ABC):
    """A linear predictor V = wᵀx that learns from a stream of transitions.

    Features x are a float array of length `n_features`, an integer array of active indices (or one integer: the state of
    a table), or a pair (indices, values). A transition carries a reward, the features it leads to, and γ and λ of the
    state it leads to. γ = 0 ends the episode there.
    """

    binary = False  # whether the method is defined for binary features only

    def __init__(
        self,
        n_features: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        initial_weights: Any = None,
    ) -> None:
        self._parameters = Parameters(n_features, step_size, trace_decay, discount, initial_weights)
        self.reset()

    @property
    def n_features(self) -> int:
        return self._parameters.n_features

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """A fresh dense copy of w."""

    @property
    @abstractmethod
    def trace(self) -> np.ndarray:
        """A fresh dense copy of the eligibility trace, as the last transition used it; `start` clears it."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many transitions have been learned from: the t of a step-size schedule."""

    @property
    def diverged(self) -> bool:
        """Whether a weight is no longer a finite number."""
        return not bool(np.isfinite(self.weights).all())

    @abstractmethod
    def reset(self) -> None:
        """Forget everything: back to the initial weights."""

    @abstractmethod
    def start(self, x: Any) -> None:
        """Stand at features x, the first of a stream or an episode, with no trace."""

    @abstractmethod
    def update(
        self, reward: float, x_next: Any, discount: float | None = None, trace_decay: float | None = None
    ) -> float:
        """Learn from one transition; return the TD error δ = R + γV' − V.

        `discount` and `trace_decay` are γ and λ of the state entered, by default the learner's own. γ = 0 ends the
        episode and x_next begins the next one; x_next = None ends it and `start` must follow. An episode that is cut
        short is not ended: give its last x_next as always, then `start` anew.
        """

    @abstractmethod
    def predict(self, x: Any) -> float:
        """V = wᵀx."""

    @abstractmethod
    def run(
        self, X: Any, rewards: Any, discounts: Any = None, *, trace_decays: Any = None, starts: Any = None
    ) -> np.ndarray:
        """Learn from a stream of T transitions; return V_t(S_t), t = 0 … T − 1, each from before its update.

        X has T + 1 rows: a 2-D float array, a 2-D integer array of active indices, a 1-D integer array of states, a SciPy
        sparse matrix, a pair of 2-D arrays (indices, values), or a list of features. `rewards[t]`, `discounts[t]` and
        `trace_decays[t]` are R, γ and λ of the transition into row t + 1. `starts[t]` says that row t begins anew: the
        row before it was the last of a stream cut short, and the reward between them is ignored.

        Where the learner stands at X[0] already, learning goes on from there, trace and all; so a stream may be given in
        pieces that share a row. Otherwise it starts at X[0]. Bad input leaves the learner as it was.
        """

    @abstractmethod
    def _dump(self) -> dict[str, np.ndarray]:
        """All state as arrays."""

    @abstractmethod
    def _restore(self, parts: dict[str, np.ndarray]) -> None:
        """Take over the state that `_dump` gave; ValueError or KeyError where it does not fit the parameters."""

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one file, from which `trueonline.load` goes on bit for bit.

        The file appears whole or not at all. A step-size schedule is code and is not saved: hand it to `load` again.
        """
        arrays = self._dump()
        if self._parameters.initial_weights is not None:
            arrays["initial_weights"] = self._parameters.initial_weights
        files.write_learner(path, self._kind(), self._settings(), arrays)

    def _settings(self) -> dict[str, Any]:
        """What it was made with, as JSON takes it; None for what is code."""
        return {
            "n_features": self.n_features,
            "step_size": None if callable(self.step_size) else self.step_size,
            "trace_decay": self.trace_decay,
            "discount": self.discount,
        }

    @classmethod
    def _kind(cls) -> str:
        """What a saved file calls it."""
        return cls.__name__

    def __getstate__(self) -> dict[str, Any]:
        return {"parameters": self._parameters, "parts": self._dump()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._parameters = state["parameters"]
        self.reset()
        self._restore(state["parts"])

    def __repr__(self) -> str:
        made_with = {name: getattr(self, name) for name in self._settings()}
        shown = (f"{name}={getattr(value, '__name__', value)}" for name, value in made_with.items() if value is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


class OffPolicy:
    """What learners and definitions share that are about one policy, π, while another one, b, acts.

    A transition has an importance ratio, ρ = π(A | S) / b(A | S), 1 where none is given.
    """

    takes_ratios = True

    def update(
        self,
        reward: float,
        x_next: Any,
        discount: float | None = None,
        trace_decay: float | None = None,
        ratio: float = 1.0,
    ) -> float:
        """As always; `ratio` is ρ of the action that was taken."""
        return self._update(reward, x_next, discount, trace_decay, ratio)  # type: ignore[attr-defined]

    def run(
        self,
        X: Any,
        rewards: Any,
        discounts: Any = None,
        *,
        trace_decays: Any = None,
        starts: Any = None,
        ratios: Any = None,
    ) -> np.ndarray:
        """As always; `ratios[t]` is ρ of the action that led from row t to row t + 1."""
        return self._run(X, rewards, discounts, trace_decays, starts, ratios)  # type: ignore[attr-defined]
