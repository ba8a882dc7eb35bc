"""WIS-TD(λ), WIS-GTD(λ) and WIS-TO-GTD(λ), by their definitions (Mahmood and Sutton 2015).

The methods learn as off-policy methods do, with a step-size for each feature: 1 over its *usage*. So the update of S_k has a
diagonal matrix, A_{k+1} = diag(1/u_{k+1}), in the place of α. A single feature that forgets nothing learns a weighted average.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from trueonline import inputs
from trueonline.forward.base import products_after
from trueonline.forward.gradient import GradientDefinition, GTDSum, OnlineGTDReturn
from trueonline.forward.off_policy_returns import FamilyDefinition, dutch_trace, off_policy_lambda_returns
from trueonline.learners.docstrings import INITIAL, LEARNER, SECOND


def _optional(name: str, value: float | None) -> float | None:
    return None if value is None else inputs.positive(name, value)


class UsageDefinition(FamilyDefinition):
    """A history with the usage u of the features. u begins at 1/α_0, and is kept across episodes, as w is.

        u_{k+1}^t = (1 − η_kφ_k∘φ_k)∘u_k^t + ρ_k^tφ_k∘φ_k   for 0 ≤ k < t,   u_t = u_t^t,   A_t = diag(1/u_t), and 0 where u_t is
        ρ_k^t = ρ_k (Σ_{i=k+1}^{t−1} C_k^{i−1} (1 − γ_iλ_i) + C_k^{t−1}),   C_k^i = ∏_{j=k+1}^{i} γ_jλ_jρ_j

    ρ_k^t is the weight of all n-step returns together of which the target of S_k consists at horizon t. `step_size` is η.
    """

    _shared_parameters = LEARNER + INITIAL
    options = MappingProxyType({"initial_step_size": _optional})
    initial_step_size: float | None = None  # the step-size of each feature at first; None for the first of `step_size`

    more_vectors: ClassVar[tuple[str, ...]] = ("step_sizes_then",)
    step_sizes_then: list[np.ndarray]  # the diagonals of A_1, A_2, …
    more_learned: ClassVar[tuple[str, ...]] = ("usage",)
    _usage: np.ndarray
    _first_usage: np.ndarray

    @property
    def usage(self) -> np.ndarray:
        """A read-only copy of u."""
        return inputs.read_only(self._usage.copy())

    @property
    def step_sizes(self) -> np.ndarray:
        """The step-size of each feature now."""
        sizes = np.divide(1.0, self._usage, out=np.zeros(self.n_features), where=self._usage != 0.0)
        return inputs.read_only(sizes)

    def reset(self) -> None:
        alpha = self._parameters.alpha(0) if self.initial_step_size is None else self.initial_step_size
        self._usage = np.full(self.n_features, 1.0 / alpha)
        super().reset()

    def _more(self) -> dict[str, Any]:
        self._usage = self._usage_now()
        return {**super()._more(), "step_sizes_then": self.step_sizes}

    def _usage_now(self) -> np.ndarray:
        """u_t^t, for the latest horizon t."""
        u = self._first_usage
        for k, phi in enumerate(self.x):
            u = (1.0 - self.alphas[k] * phi * phi) * u + self._total_weight(k) * phi * phi
        return u

    def _diagonal_trace(self) -> np.ndarray:
        """Σ_{i=0}^{t} (∏_{j=i+1}^{t} γ_jλ_jρ_j) F_t ⋯ F_{i+1} ρ_iA_{i+1}φ_i, with F_j = I − ρ_jA_{j+1}φ_jφ_jᵀ."""
        parts = zip(self.ratios, self.step_sizes_then, self.x, strict=True)
        moves = [rho * step_sizes * phi for rho, step_sizes, phi in parts]
        return dutch_trace(self.x, self._carried(), moves, self.n_features)

    def _total_weight(self, k: int) -> float:
        """ρ_k^t, for the latest horizon t."""
        decays, carried = self._decays(), self._carried()
        along = products_after(carried, k)
        return self.ratios[k] * float(along[:-1] @ (1.0 - decays[k + 1 :]) + along[-1])


class OnlineWISReturn(UsageDefinition):
    """WIS-TD(λ): at every time t, redo all updates of the episode with the interim errors of horizon t.

        w_{k+1}^t = w_k^t + ρ_k (Δ_k^t + V_k − (w_k^t)ᵀφ_k) A_{k+1}φ_k   for 0 ≤ k < t,   w_t = w_t^t
        Δ_k^t = Σ_{i=k+1}^{t−1} C_k^{i−1} ((1 − γ_i) ε_k^i + γ_i (1 − λ_i) δ̄_k^i) + C_k^{t−1} ((1 − γ_t) ε_k^t + γ_tδ̄_k^t)
        δ̄_k^i = R_{k+1} + ⋯ + R_i + V_i − V_k,   ε_k^i = δ̄_k^i − V_i,   V_i = w_{i−1}ᵀφ_i,   V_0 = w_0ᵀφ_0

    V_i is the value of S_i when it was entered. ρ_k times the weights of all errors is ρ_k^t, which the visit adds to the usage.

    Examples
    --------
    >>> learner = OnlineWISReturn(1, 1e-9, trace_decay=1.0, discount=1.0, initial_step_size=1e9)
    >>> for reward, ratio in ((1.0, 3.0), (5.0, 1.0)):
    ...     learner.start(0); _ = learner.update(reward, None, ratio=ratio)
    >>> learner.weights.round(6), learner.usage.round(6)   # (3·1 + 1·5) / (3 + 1)
    (array([2.]), array([4.]))
    """

    def _entered(self, k: int) -> float:
        """V_k, the value of S_k when it was entered."""
        return self.next_values[k - 1] if k > 0 else float(self.weights_then[0] @ self.x[0])

    def _error(self, k: int) -> float:
        """Δ_k^t, for the latest horizon t."""
        t, decays, carried = len(self.x), self._decays(), self._carried()
        along = products_after(carried, k)
        total = flat = 0.0  # flat is R_{k+1} + ⋯ + R_i
        for i in range(k + 1, t + 1):
            flat += self.rewards[i - 1]
            gamma, ends = self.discounts[i - 1], flat - self._entered(k)
            bootstraps = ends + self.next_values[i - 1]
            long = gamma - decays[i] if i < t else gamma  # γ(1 − λ), and γ at the horizon
            total += along[i - 1 - k] * ((1.0 - gamma) * ends + long * bootstraps)
        return total

    def _redone(self) -> np.ndarray:
        w = self._first_weights.copy()
        for k, phi in enumerate(self.x):
            error = self._error(k) + self._entered(k) - w @ phi
            w = w + self.ratios[k] * error * self.step_sizes_then[k] * phi
        return w

    def _trace(self) -> np.ndarray:
        """Σ_{i=0}^{t} (∏_{j=i+1}^{t} γ_jλ_jρ_j) F_t ⋯ F_{i+1} ρ_iA_{i+1}φ_i, with F_j = I − ρ_jA_{j+1}φ_jφ_jᵀ."""
        return self._diagonal_trace()


class GradientUsageDefinition(UsageDefinition, GradientDefinition):
    """A history with the usage of the features, and with second weights."""

    _shared_parameters = LEARNER + SECOND.replace("callable, optional", "callable") + INITIAL
    options = MappingProxyType({**GradientDefinition.options, **UsageDefinition.options})
    more_vectors = ("second_then", "step_sizes_then")
    more_learned = ("second", "usage")


class WISGTDSum(GradientUsageDefinition, GTDSum):
    """WIS-GTD(λ), by explicit sums: w_t = w_0 + Σ_{j=0}^{t−1} A_{j+1} (δ_je_j − γ_{j+1} (1 − λ_{j+1}) (e_jᵀh_j) φ_{j+1}).

    The trace and the second weights are those of `GTDSum`.
    """

    def _redone(self) -> np.ndarray:
        w = self._first_weights.copy()
        for j in range(len(self.x)):
            w += self.step_sizes_then[j] * (self.deltas[j] * self._trace_at(j) - self._correction(j))
        return w


class OnlineWISGTDReturn(GradientUsageDefinition, OnlineGTDReturn):
    """WIS-TO-GTD(λ): the forward view of true online GTD(λ), `OnlineGTDReturn`, with A_{k+1} in the place of α_k.

        w_{k+1}^t = w_k^t + ρ_k (G_k^{λρ|t} − (w_k^t)ᵀφ_k) A_{k+1}φ_k − γ_{k+1} (1 − λ_{k+1}) (h_kᵀe_k^∇) A_{k+1}φ_{k+1}

    The second weights are those of `OnlineGTDReturn`.
    """

    def _redone(self) -> np.ndarray:
        w = self._first_weights.copy()
        targets = off_policy_lambda_returns(
            self.rewards, self.discounts, self.trace_decays, self.ratios, self.next_values
        )
        for k, (phi, step_sizes) in enumerate(zip(self.x, self.step_sizes_then, strict=True)):
            w = w + step_sizes * (self.ratios[k] * (targets[k] - w @ phi) * phi - self._correction(k))
        return w

    def _trace(self) -> np.ndarray:
        """The trace of `OnlineWISReturn`."""
        return self._diagonal_trace()
