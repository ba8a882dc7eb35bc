"""TD(λ) with accumulating and with replacing traces, by explicit sums. The updates of the methods are their recursion."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from trueonline.forward.base import Definition, of_the_past


class TraceSum(Definition):
    """w_t = w_0 + Σ_{j=0}^{t−1} α_jδ_j e_j, with the trace e_j by a formula (Appendix A)."""

    @abstractmethod
    def _trace_at(self, j: int) -> np.ndarray:
        """e_j."""

    def _weights_now(self) -> np.ndarray:
        terms = (self.alphas[j] * self.deltas[j] * self._trace_at(j) for j in range(len(self.deltas)))
        return sum(terms, self._first_weights.copy())

    def _trace(self) -> np.ndarray:
        return self._trace_at(len(self.x) - 1)


class AccumulateSum(TraceSum):
    """Accumulating traces: e_j = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mλ_m) φ_i."""

    @of_the_past
    def _trace_at(self, j: int) -> np.ndarray:
        decays = self._decays()
        return sum((np.prod(decays[i + 1 : j + 1]) * self.x[i] for i in range(j + 1)), np.zeros(self.n_features))


class ImpliedSum(AccumulateSum):
    """TD*(λ): accumulating traces, with errors that consist of the predictions that are made (after Schapire and Warmuth 1996).

        w_t = w_0 + Σ_{j=0}^{t−1} α_jδ*_j e_j,   δ*_j = R_{j+1} + γ_{j+1} w_{j+1}ᵀφ_{j+1} − w_jᵀφ_j

    The last error has w_t itself in it. So w_t solves a system of linear equations, which is solved here as it stands:
    (I − α_{t−1}γ_t e_{t−1}φ_tᵀ) w_t = w_{t−1} + α_{t−1} (R_t − w_{t−1}ᵀφ_{t−1}) e_{t−1}.

    Examples
    --------
    >>> learner = ImpliedSum(n_features=1, step_size=0.5, trace_decay=0.0, discount=0.5)
    >>> learner.start(0)
    >>> _ = learner.update(3.0, 0); learner.weights   # w_1 = 0.5 (3 + 0.5 w_1)
    array([2.])
    """

    def _weights_now(self) -> np.ndarray:
        t = len(self.x)
        w = [*self.weights_then]  # w_0, …, w_{t−1}
        total = self._first_weights.copy()
        for j in range(t - 1):  # these errors have known weights
            after, before = w[j + 1] @ self.reached[j], w[j] @ self.x[j]
            total += self.alphas[j] * (self.rewards[j] + self.discounts[j] * after - before) * self._trace_at(j)
        alpha, e = self.alphas[-1], self._trace_at(t - 1)
        total += alpha * (self.rewards[-1] - w[-1] @ self.x[-1]) * e
        system = np.eye(self.n_features) - alpha * self.discounts[-1] * np.outer(e, self.reached[-1])
        return np.linalg.solve(system, total)


class ReplaceSum(TraceSum):
    """Replacing traces: e_j[i] = ∏_{m=l+1}^{j} γ_mλ_m, with l ≤ j the last time that feature i was active (section 2.3)."""

    binary = True

    @of_the_past
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

    @of_the_past
    def _trace_at(self, j: int) -> np.ndarray:
        decays = self._decays()
        e = np.zeros((self.n_features // self.n_actions, self.n_actions))
        for last in range(j + 1):  # later times overwrite earlier ones
            psi = self.x[last].reshape(e.shape)
            active = psi.any(axis=1)
            e[active] = psi[active] * np.prod(decays[last + 1 : j + 1])
        return e.reshape(-1)
