"""Emphatic TD(λ) and true online emphatic TD(λ) (Sutton, Mahmood and White 2016; Sutton 2015), by their definitions.

A state is updated in proportion to its *emphasis* M_t: how interesting it is (I_t ≥ 0), and how much the predictions of
interesting states before it bootstrap from it. I_t is the interest of the state that the transition leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.forward.off_policy_returns import FamilyDefinition, OffPolicySum, OnlineOffPolicyReturn


class EmphaticDefinition(FamilyDefinition):
    """A history with interests, and the emphasis by its explicit sum.

        F_t = Σ_{k=0}^{t} (∏_{j=k+1}^{t} γ_jρ_{j−1}) I_k,   M_t = λ_tI_t + (1 − λ_t)F_t

    The sum begins with the history. So after γ_t = 0, and after `start`, F_t = I_t and M_t = I_t for every λ_t.
    """

    takes = ("ratio", "interest")
    more_scalars = ("interests", "emphases")
    interests: list[float]  # I_0, I_1, …
    emphases: list[float]  # M_0, M_1, …

    def _more(self) -> dict[str, Any]:
        t = len(self.interests)
        interests = [*self.interests, self._interest]
        passed = np.multiply(self._follow_on_decays(), self.ratios)  # γ_{j+1}ρ_j at j = 0, …, t
        followon = sum(np.prod(passed[k:t]) * interests[k] for k in range(t + 1))  # F_t
        lam = self.trace_decays[t - 1] if t > 0 else 1.0  # any λ_0 will do, as F_0 = I_0
        emphasis = lam * self._interest + (1.0 - lam) * float(followon)
        return {**super()._more(), "interests": self._interest, "emphases": emphasis}

    def _follow_on_decays(self) -> Sequence[float]:
        return self.discounts


class EmphaticSum(EmphaticDefinition, OffPolicySum):
    """Emphatic TD(λ), by explicit sums: e_j = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mλ_mρ_m) ρ_iM_i φ_i."""

    def _entering(self) -> np.ndarray:
        return np.multiply(self.ratios, self.emphases)


class EmphaticBetaSum(EmphaticSum):
    """Emphatic TD(λ, β), by explicit sums: those of emphatic TD(λ), with β for γ in the follow-on trace F.

    Parameters
    ----------
    follow_on_decay : float, optional
        β in [0, 1]. 0.8 by default.
    """

    options = MappingProxyType({"follow_on_decay": inputs.unit})
    follow_on_decay: float = 0.8

    def _follow_on_decays(self) -> Sequence[float]:
        return [self.follow_on_decay] * len(self.discounts)


class OnlineEmphaticReturn(EmphaticDefinition, OnlineOffPolicyReturn):
    """True online emphatic TD(λ): redo all updates at every step with off-policy interim λ-returns, at step α_kρ_kM_k.

        w_{k+1}^t = w_k^t + α_kρ_kM_k (G_k^{λρ|t} − (w_k^t)ᵀφ_k) φ_k   for 0 ≤ k < t,   w_t = w_t^t

    M_k is known at step k, and no later horizon changes it.

    Examples
    --------
    >>> learner = OnlineEmphaticReturn(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> _ = [learner.update(1.0, 0, interest=0.0), learner.update(1.0, None, interest=1.0)]
    >>> learner.weights
    array([0.5])
    """

    def _step(self, k: int) -> float:
        return self.alphas[k] * self.ratios[k] * self.emphases[k]
