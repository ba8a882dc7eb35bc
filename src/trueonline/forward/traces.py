"""TD(λ) with accumulating and with replacing traces, by explicit sums. The updates of the methods are their recursion."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from trueonline.forward.base import Definition


class TraceSum(Definition):
    """w_t = w_0 + Σ_{j=0}^{t−1} α_jδ_j e_j, with the trace e_j by a formula (Appendix A)."""

    @abstractmethod
    def _trace_at(self, j: int) -> np.ndarray:
        """e_j."""

    def _weights_now(self) -> np.ndarray:
        terms = (self.alphas[j] * self.deltas[j] * self._trace_at(j) for j in range(len(self.deltas)))
        return sum(terms, self._first_weights.copy())

    def _weights_at_end(self) -> np.ndarray:
        return self._weights

    @property
    def trace(self) -> np.ndarray:
        return self._trace_at(len(self.x) - 1)


class AccumulateSum(TraceSum):
    """Accumulating traces: e_j = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mλ_m) φ_i."""

    def _trace_at(self, j: int) -> np.ndarray:
        decays = self._decays()
        return sum((np.prod(decays[i + 1 : j + 1]) * self.x[i] for i in range(j + 1)), np.zeros(self.n_features))


class ReplaceSum(TraceSum):
    """Replacing traces: e_j[i] = ∏_{m=l+1}^{j} γ_mλ_m, with l ≤ j the last time that feature i was active (section 2.3)."""

    binary = True

    def _trace_at(self, j: int) -> np.ndarray:
        decays = self._decays()
        e = np.zeros(self.n_features)
        for last in range(j + 1):  # later times overwrite earlier ones
            e[self.x[last] == 1.0] = np.prod(decays[last + 1 : j + 1])
        return e


class ClearingSum(TraceSum):
    """Replacing traces over block features. An active feature clears its traces in the blocks of other actions.

    e_j[i, b] = ∏_{m=l+1}^{j} γ_mλ_m if the last time l ≤ j that feature i was active, b was the action; otherwise 0.
    """

    binary = True

    def _trace_at(self, j: int) -> np.ndarray:
        decays = self._decays()
        e = np.zeros((self.n_features // self.n_actions, self.n_actions))
        for last in range(j + 1):  # later times overwrite earlier ones
            psi = self.x[last].reshape(e.shape)
            active = psi.any(axis=1)
            e[active] = psi[active] * np.prod(decays[last + 1 : j + 1])
        return e.reshape(-1)
