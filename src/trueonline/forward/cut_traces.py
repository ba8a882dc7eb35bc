"""Off-policy TD whose trace carries no ratios, or clipped ratios, by explicit sums: V-trace(λ), Tree Backup(λ) and ABTD(ζ).

Ghiassian and Sutton (2021, *An empirical comparison of off-policy prediction learning algorithms on the Collision task*) state the
three side by side.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from trueonline import inputs
from trueonline.forward.base import of_now
from trueonline.forward.off_policy_returns import OffPolicySum


class CutSum(OffPolicySum):
    """w_t = w_0 + Σ_{j=0}^{t−1} α_jρ_jδ_j e_j, with e_j = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mc_{m−1}) φ_i. The methods differ in c."""

    takes: ClassVar[Collection[str]] = ("ratio", "probability")
    more_scalars: ClassVar[tuple[str, ...]] = ("probabilities",)
    probabilities: list[float]  # π(A_0|S_0), π(A_1|S_1), …

    def _more(self) -> dict[str, Any]:
        return {**super()._more(), "probabilities": self._probability}

    @abstractmethod
    def _kept(self, lam: float, rho: float, pi: float) -> float:
        """c_j, from λ_{j+1}, ρ_j and π(A_j|S_j)."""

    @of_now
    def _carried(self) -> np.ndarray:
        kept = map(self._kept, self.trace_decays, self.ratios, self.probabilities)
        return np.concatenate(([1.0], np.multiply(self.discounts, list(kept))))[: len(self.x)]

    def _entering(self) -> np.ndarray:
        return np.ones(len(self.x))

    def _weighed(self) -> np.ndarray:
        """ρ_0, ρ_1, … as updates have them."""
        return np.array(self.ratios)

    def _redone(self) -> np.ndarray:
        steps = np.array(self.alphas) * self._weighed() * np.array(self.deltas)
        return sum((step * self._trace_at(j) for j, step in enumerate(steps)), self._first_weights.copy())


class TreeBackupSum(CutSum):
    """Tree Backup(λ): c_j = λ_{j+1} π(A_j|S_j)."""

    def _kept(self, lam: float, rho: float, pi: float) -> float:
        return lam * pi


class VTraceSum(CutSum):
    """V-trace(λ): c_j = λ_{j+1} min(ρ_j, c̄), and min(ρ_j, ρ̄) for ρ_j in updates.

    Parameters
    ----------
    largest_ratio, largest_trace_ratio : float, optional
        ρ̄ and c̄, both 1 by default.
    """

    takes = ("ratio",)
    options = MappingProxyType({"largest_ratio": inputs.ratio, "largest_trace_ratio": inputs.ratio})
    largest_ratio = largest_trace_ratio = 1.0

    def _kept(self, lam: float, rho: float, pi: float) -> float:
        return lam * min(rho, self.largest_trace_ratio)

    def _weighed(self) -> np.ndarray:
        return np.minimum(self.ratios, self.largest_ratio)


class ABTDSum(CutSum):
    """ABTD(ζ): c_j = ν_j π(A_j|S_j), with ν_j = min(ψ_j, 1 / max(π(A_j|S_j), b(A_j|S_j))).

    ψ_j = 2ζψ₀ + max(0, 2ζ − 1)(ψ_max − 2ψ₀) has ζ of S_{j+1}, which is `trace_decay`.

    Parameters
    ----------
    psi_0, psi_max : float, optional
        ψ₀ and ψ_max, 1 and 2 by default.
    """

    options = MappingProxyType({"psi_0": inputs.ratio, "psi_max": inputs.ratio})
    psi_0, psi_max = 1.0, 2.0

    def _kept(self, lam: float, rho: float, pi: float) -> float:
        if pi == 0.0:
            return 0.0
        psi = 2.0 * lam * self.psi_0 + max(0.0, 2.0 * lam - 1.0) * (self.psi_max - 2.0 * self.psi_0)
        b = pi / rho
        return pi * min(psi, 1.0 / max(pi, b))
