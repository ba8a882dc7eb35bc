"""Watkins's Q(λ), by its definitions (section 6.2): an update target that grows until a non-greedy action is taken.

In the history of these definitions, `next_values[t]` is max_a Q(S_{t+1}, a), and `goes_on[t]` says whether A_{t+1} is greedy.
"""

from __future__ import annotations

import numpy as np

from trueonline.forward.base import Definition, of_the_past
from trueonline.forward.interim_returns import interim_lambda_return
from trueonline.forward.traces import TraceSum


class WatkinsReturn(Definition):
    """At every time h, redo all updates of the episode with the interim targets of horizon h.

        w_{k+1}^h = w_k^h + α_k (U_k^h − (w_k^h)ᵀψ_k) ψ_k   for 0 ≤ k < h,   w_h = w_h^h

    U_k^h is the interim λ-return of horizon z = min{h, τ}, with max_a Q for the values of states. τ is the time of the first
    non-greedy action after k.
    """

    def _weights_now(self) -> np.ndarray:
        h = len(self.rewards)
        history = [np.array(part) for part in (self.rewards, self.discounts, self.trace_decays, self.next_values)]
        w = self._first_weights.copy()
        for k in range(h):
            tau = next((j for j in range(k + 1, h) if not self.goes_on[j - 1]), h)
            target = interim_lambda_return(k, min(h, tau), *history)
            w += self.alphas[k] * (target - w @ self.x[k]) * self.x[k]
        return w


class WatkinsSum(TraceSum):
    """Accumulating traces that a non-greedy action cuts: e_j = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mλ_m[A_m is greedy]) ψ_i."""

    @of_the_past
    def _trace_at(self, j: int) -> np.ndarray:
        decays = self._decays() * np.array([True, *self.goes_on])[: len(self.x)]
        return sum((np.prod(decays[i + 1 : j + 1]) * self.x[i] for i in range(j + 1)), np.zeros(self.n_features))
