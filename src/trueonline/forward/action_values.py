"""Values of actions under a target policy, by explicit sums (Sutton and Barto 2018, sections 12.9 to 12.11).

φ belongs to a state and the action taken there, and φ̄' is the mean of the features of the state entered over the actions of the
target policy. All TD errors have φ̄': δ_j = R_{j+1} + γ_{j+1} w_jᵀφ̄_{j+1} − w_jᵀφ_j. The action that is updated is given, so it has
no ratio.
"""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from trueonline import inputs
from trueonline.forward.base import of_now, of_the_past
from trueonline.forward.gradient import OneStepSizeSum
from trueonline.forward.off_policy_returns import OffPolicySum


class ExpectedSum(OffPolicySum):
    """w_t = w_0 + Σ_{j=0}^{t−1} α_jδ_j e_j, with e_j = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mλ_mρ_m) φ_i."""

    takes: ClassVar[Collection[str]] = ("ratio", "x_expected")
    options = MappingProxyType({"target_epsilon": inputs.unit})
    target_epsilon: float = 0.0  # for agents, which choose φ̄' by it

    def _entering(self) -> np.ndarray:
        return np.ones(len(self.x))


class ExpectedTreeSum(ExpectedSum):
    """The same with π(A_m|S_m) in the place of ρ_m."""

    takes = ("probability", "x_expected")
    more_scalars: ClassVar[tuple[str, ...]] = ("probabilities",)
    probabilities: list[float]  # π(A_0|S_0), π(A_1|S_1), …

    def _more(self) -> dict[str, Any]:
        return {**super()._more(), "probabilities": self._probability}

    @of_now
    def _carried(self) -> np.ndarray:
        return self._decays() * np.array(self.probabilities)


class ExpectedGradientSum(OneStepSizeSum):
    """GQ(λ): the sums of GTD(λ), with the trace of `ExpectedSum` everywhere, and φ̄_{j+1} in the place of φ_{j+1}."""

    takes = ("ratio", "x_expected")
    options = MappingProxyType({**OneStepSizeSum.options, **ExpectedSum.options})
    target_epsilon: float = 0.0

    def _entering(self) -> np.ndarray:
        return np.ones(len(self.x))

    @of_the_past
    def _correlation_trace(self, j: int) -> np.ndarray:
        return self._trace_at(j)
