"""Provisional TD(λ) and provisional Q(λ) by their interim forward views (after Sutton, Mahmood, Precup and van Hasselt 2014).

Other off-policy methods bootstrap when the behaviour leaves the target policy, for every λ. Provisional methods take back their
provisional updates instead. With λ = 1, and with the values frozen during the episode, they are Monte Carlo with importance ratios.
γ is read as a probability: with probability 1 − γ_i the return ends in S_i. Rewards are then summed without discount.

The views below follow the abstract of the paper and other descriptions of it, without the text of the paper.
"""

from __future__ import annotations

import numpy as np

from trueonline.forward.off_policy_returns import FamilyDefinition


class ProvisionalTDView(FamilyDefinition):
    """At every time t, w_t = w_0 + Σ_{k=0}^{t−1} α_kρ_k Δ_k^t φ_k, with the interim errors Δ_k^t of horizon t.

        Δ_k^t = Σ_{i=k+1}^{t−1} C_k^{i−1} ((1 − γ_i) ε_k^i + γ_i (1 − λ_i) δ̄_k^i) + C_k^{t−1} ((1 − γ_t) ε_k^t + γ_tδ̄_k^t)
        C_k^i = ∏_{j=k+1}^{i} γ_jλ_jρ_j

    δ̄_k^i = R_{k+1} + ⋯ + R_i + V(S_i) − V(S_k) is the error of a return that bootstraps in S_i. ε_k^i, without V(S_i),
    is the error of a return that ends in S_i. Errors are weighted, not returns: if ρ is 0, nothing is learned, not even towards V.

    These formulas have fixed weights. During learning each step of δ̄ has the weights of its time:
    δ̄_k^i = Σ_{j=k}^{i−1} (R_{j+1} + V_j(S_{j+1}) − V_j(S_j)), and ε_k^i = δ̄_k^i − V_{i−1}(S_i).

    Examples
    --------
    >>> learner = ProvisionalTDView(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0, initial_weights=[1.0])
    >>> learner.start(0)
    >>> _ = learner.update(3.0, 0); before = learner.weights
    >>> _ = learner.update(0.0, None, ratio=0.0); before, learner.weights   # taken back: π would not have ended so
    (array([2.5]), array([1.]))
    """

    def _left(self, j: int) -> float:
        """The value that step j of δ̄ leaves behind, V_j(S_j), unless j is the first step."""
        return float(self.weights_then[j] @ self.x[j])

    def _share(self, k: int) -> float:
        """The factor of the error of S_k besides α_k: the ratio of the first action."""
        return self.ratios[k]

    def _error(self, k: int) -> float:
        """Δ_k^t, for the latest horizon t."""
        t = len(self.rewards)
        total, weight, bar = 0.0, 1.0, -float(self.weights_then[k] @ self.x[k])  # weight is C_k^{i−1}
        for i in range(k + 1, t + 1):
            gamma, lam, value = self.discounts[i - 1], self.trace_decays[i - 1], self.next_values[i - 1]
            bar += self.rewards[i - 1] + value - (self._left(i - 1) if i > k + 1 else 0.0)  # δ̄_k^i
            bootstraps = 1.0 - lam if i < t else 1.0
            total += weight * ((1.0 - gamma) * (bar - value) + gamma * bootstraps * bar)
            weight *= gamma * lam * self.ratios[i] if i < t else 0.0
        return total

    def _redone(self) -> np.ndarray:
        terms = (self.alphas[k] * self._share(k) * self._error(k) * self.x[k] for k in range(len(self.x)))
        return sum(terms, self._first_weights.copy())


class ProvisionalQView(ProvisionalTDView):
    """The same for action values: φ_t = φ(S_t, A_t), and every V(S_i) is the mean over the target policy's actions, wᵀφ̄_i.

        φ̄_i = Σ_a π(a|S_i) φ(S_i, a);   δ̄_k^i = Σ_{j=k}^{i−1} (R_{j+1} + w_jᵀφ̄_{j+1} − w_jᵀφ̄_j), with φ_k for the first φ̄_j

    The action of S_k is given, and so its error is not multiplied by ρ_k. With a greedy target policy, φ̄_i are the features of the
    best action, and ρ_i is 0 if another action was taken.

    `update` takes φ(S_{t+1}, A_{t+1}) as `x_next`, φ̄_{t+1} as `x_expected` (`x_next` by default), and ρ_t as `ratio`.
    """

    takes = ("ratio", "x_expected")

    def _left(self, j: int) -> float:
        return float(self.weights_then[j] @ self.reached[j - 1])

    def _share(self, k: int) -> float:
        return 1.0
