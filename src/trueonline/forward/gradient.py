"""GTD(λ) and true online GTD(λ), by their definitions.

GTD(λ) is that of Maei (2011); both are stated by van Hasselt, Mahmood and Sutton (2014, *Off-policy TD(λ) with a true online
equivalence*). A second vector of weights, h, estimates the TD error from φ. The estimate corrects the updates of w.
"""

from __future__ import annotations

from abc import abstractmethod
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from trueonline import inputs
from trueonline.forward.base import number_or_schedule, of_the_past, products_after
from trueonline.forward.off_policy_returns import (
    OffPolicySum,
    OnlineOffPolicyReturn,
    SecondStepDefinition,
    accumulated,
)
from trueonline.learners.docstrings import LEARNER, SECOND


class GradientDefinition(SecondStepDefinition):
    """A history with the second weights h and their step-sizes β. h begins at 0 and is learned across episodes, as w is."""

    more_scalars: ClassVar[tuple[str, ...]] = ("betas",)
    more_vectors: ClassVar[tuple[str, ...]] = ("second_then",)
    betas: list[float]  # β_0, β_1, …
    second_then: list[np.ndarray]  # h_0, h_1, …
    more_learned: ClassVar[tuple[str, ...]] = ("second",)
    _second: np.ndarray
    _first_second: np.ndarray

    @property
    def second_weights(self) -> np.ndarray:
        """A read-only copy of h."""
        return inputs.read_only(self._second.copy())

    def reset(self) -> None:
        self._second = np.zeros(self.n_features)
        super().reset()

    def _more(self) -> dict[str, Any]:
        return {**super()._more(), "betas": self._coming_beta, "second_then": self._second}

    def _weights_now(self) -> np.ndarray:
        w = super()._weights_now()
        self._second = self._second_redone()
        return w

    @abstractmethod
    def _second_redone(self) -> np.ndarray:
        """h after the last transition of the history."""

    @of_the_past
    def _correlation_trace(self, j: int) -> np.ndarray:
        """e_j^∇ = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mλ_mρ_m) ρ_iφ_i."""
        return accumulated(self.x, self._carried(), np.array(self.ratios), j, self.n_features)

    @of_the_past
    def _correction(self, j: int) -> np.ndarray:
        """γ_{j+1} (1 − λ_{j+1}) (h_jᵀe_j^∇) φ_{j+1}: the difference between the gradient and that of TD."""
        share = self.discounts[j] * (1.0 - self.trace_decays[j])
        return share * (self.second_then[j] @ self._correlation_trace(j)) * self.reached[j]


class GTDSum(GradientDefinition, OffPolicySum):
    """GTD(λ), by explicit sums, with e_j = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mλ_mρ_m) ρ_iφ_i.

    w_t = w_0 + Σ_{j=0}^{t−1} α_j (δ_j e_j − γ_{j+1} (1 − λ_{j+1}) (e_jᵀh_j) φ_{j+1})
    h_t = h_0 + Σ_{j=0}^{t−1} β_j (δ_j e_j − (h_jᵀφ_j) φ_j)
    """

    def _redone(self) -> np.ndarray:
        terms = (self.alphas[j] * (self.deltas[j] * self._trace_at(j) - self._correction(j)) for j in range(len(self.x)))
        return sum(terms, self._first_weights.copy())

    def _second_redone(self) -> np.ndarray:
        h = self._first_second.copy()
        for j, phi in enumerate(self.x):
            h += self.betas[j] * (self.deltas[j] * self._trace_at(j) - (self.second_then[j] @ phi) * phi)
        return h


def _optional(name: str, value: Any) -> Any:
    return None if value is None else number_or_schedule(name, value)


class OneStepSizeSum(GTDSum):
    """GTD(λ) whose second step-size is the first where none is given."""

    _shared_parameters = LEARNER + SECOND
    options = MappingProxyType({"second_step_size": _optional})
    second_step_size: Any = None

    def _prepare(self) -> None:
        second = self.step_size if self.second_step_size is None else self.second_step_size
        self._coming_beta = inputs.at("second_step_size", second, self._steps, inputs.ratio)


class TDRCSum(OneStepSizeSum):
    """TDRC(λ), by explicit sums: GTD(λ) with a further term in h, −κh_j (Ghiassian and others 2020).

    h_t = h_0 + Σ_{j=0}^{t−1} β_j (δ_j e_j − (h_jᵀφ_j) φ_j − κ h_j)

    Parameters
    ----------
    regularization : float, optional
        κ ≥ 0. 1 by default.
    """

    options = MappingProxyType({**OneStepSizeSum.options, "regularization": inputs.ratio})
    regularization: float = 1.0

    def _second_redone(self) -> np.ndarray:
        pulls = (beta * h for beta, h in zip(self.betas, self.second_then, strict=True))
        return super()._second_redone() - self.regularization * sum(pulls, np.zeros(self.n_features))


class GTD2Sum(GTDSum):
    """GTD2(λ), by explicit sums, with h of GTD(λ).

    w_t = w_0 + Σ_{j=0}^{t−1} α_j ((h_jᵀφ_j) φ_j − γ_{j+1} (1 − λ_{j+1}) (e_jᵀh_j) φ_{j+1})
    """

    def _redone(self) -> np.ndarray:
        terms = (
            alpha * ((h @ phi) * phi - self._correction(j))
            for j, (alpha, h, phi) in enumerate(zip(self.alphas, self.second_then, self.x, strict=True))
        )
        return sum(terms, self._first_weights.copy())


class ProximalGTD2Sum(GTDSum):
    """Proximal GTD2(λ), by explicit sums of the changes that follow from weights half a step ahead.

    h_j' = h_j + β_j (δ_j e_j − (h_jᵀφ_j) φ_j),   w_j' = w_j + α_j ((h_jᵀφ_j) φ_j − g_j (h_jᵀe_j) φ_{j+1})
    w_t = w_0 + Σ_{j=0}^{t−1} α_j ((h_j'ᵀφ_j) φ_j − g_j (h_j'ᵀe_j) φ_{j+1}),   with g_j = γ_{j+1} (1 − λ_{j+1})
    h_t = h_0 + Σ_{j=0}^{t−1} β_j (δ_j' e_j − (h_j'ᵀφ_j) φ_j),   with δ_j' = R_{j+1} + γ_{j+1} φ_{j+1}ᵀw_j' − φ_jᵀw_j'
    """

    @of_the_past
    def _changes(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """The changes of w and h in step j."""
        phi, there, e = self.x[j], self.reached[j], self._trace_at(j)
        gamma, alpha, beta = self.discounts[j], self.alphas[j], self.betas[j]

        def of_w(h: np.ndarray) -> np.ndarray:
            return alpha * ((h @ phi) * phi - gamma * (1.0 - self.trace_decays[j]) * (h @ e) * there)

        def of_h(delta: float, h: np.ndarray) -> np.ndarray:
            return beta * (delta * e - (h @ phi) * phi)

        h = self.second_then[j]
        h_half, w_half = h + of_h(self.deltas[j], h), self.weights_then[j] + of_w(h)
        return of_w(h_half), of_h(self.rewards[j] + gamma * (there @ w_half) - phi @ w_half, h_half)

    def _redone(self) -> np.ndarray:
        return sum((self._changes(j)[0] for j in range(len(self.x))), self._first_weights.copy())

    def _second_redone(self) -> np.ndarray:
        return sum((self._changes(j)[1] for j in range(len(self.x))), self._first_second.copy())


class HTDSum(GTDSum):
    """HTD(λ), by explicit sums, with e of GTD(λ) and b_j = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mλ_m) φ_i (White and White 2016).

    w_t = w_0 + Σ_{j=0}^{t−1} α_j (δ_j e_j + h_jᵀ(e_j − b_j) (φ_j − γ_{j+1}φ_{j+1}))
    h_t = h_0 + Σ_{j=0}^{t−1} β_j (δ_j e_j − (h_jᵀb_j) (φ_j − γ_{j+1}φ_{j+1}))
    """

    @of_the_past
    def _behaviour_trace(self, j: int) -> np.ndarray:
        """b_j."""
        return accumulated(self.x, self._decays(), np.ones(len(self.x)), j, self.n_features)

    def _difference(self, j: int) -> np.ndarray:
        return self.x[j] - self.discounts[j] * self.reached[j]

    def _redone(self) -> np.ndarray:
        w = self._first_weights.copy()
        for j, (alpha, h) in enumerate(zip(self.alphas, self.second_then, strict=True)):
            e, b = self._trace_at(j), self._behaviour_trace(j)
            w += alpha * (self.deltas[j] * e + (h @ (e - b)) * self._difference(j))
        return w

    def _second_redone(self) -> np.ndarray:
        total = self._first_second.copy()
        for j, (beta, h) in enumerate(zip(self.betas, self.second_then, strict=True)):
            total += beta * (self.deltas[j] * self._trace_at(j) - (h @ self._behaviour_trace(j)) * self._difference(j))
        return total


class OnlineGTDReturn(GradientDefinition, OnlineOffPolicyReturn):
    """True online GTD(λ): at every time t, redo all updates of w and of h with the interim targets of horizon t.

        w_{k+1}^t = w_k^t + α_kρ_k (G_k^{λρ|t} − (w_k^t)ᵀφ_k) φ_k − α_kγ_{k+1} (1 − λ_{k+1}) (h_kᵀe_k^∇) φ_{k+1}
        h_{k+1}^t = h_k^t + β_k (Δ_k^t − (h_k^t)ᵀφ_k) φ_k          for 0 ≤ k < t,   w_t = w_t^t,   h_t = h_t^t
        Δ_k^t = ρ_k Σ_{j=k}^{t−1} (∏_{i=k+1}^{j} γ_iλ_iρ_i) δ_j,   e_k^∇ = Σ_{i=0}^{k} (∏_{m=i+1}^{k} γ_mλ_mρ_m) ρ_iφ_i

    The correction of step k uses h_k and δ_k of that time, so it is the same at every later horizon. With β = 0, h = 0 and this is
    `OnlineOffPolicyReturn`. With ρ = 1 as well, it is the online λ-return algorithm.

    Examples
    --------
    >>> learner = OnlineGTDReturn(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0, second_step_size=0.5)
    >>> learner.start(0)
    >>> _ = [learner.update(0.0, 0), learner.update(1.0, None)]
    >>> learner.weights, learner.second_weights   # λ = 1: no correction
    (array([0.75]), array([0.75]))
    """

    def _aside(self, k: int) -> np.ndarray:
        return -self.alphas[k] * self._correction(k)

    def _second_redone(self) -> np.ndarray:
        h = self._first_second.copy()
        carried = self._carried()
        for k, phi in enumerate(self.x):
            ahead = products_after(carried, k) @ self.deltas[k:]
            h = h + self.betas[k] * (self.ratios[k] * ahead - h @ phi) * phi
        return h
