"""The online and the offline λ-return algorithm (section 3.1). True online TD(λ) equals the online one."""

from __future__ import annotations

import numpy as np

from trueonline.forward.base import Definition
from trueonline.forward.interim_returns import interim_lambda_return


class OnlineLambdaReturn(Definition):
    """At every time t, redo all updates of the episode with the interim λ-returns of horizon t.

        w_{k+1}^t = w_k^t + α_k (G_k^{λ|t} − (w_k^t)ᵀφ_k) φ_k   for 0 ≤ k < t,   w_t = w_t^t

    Cost and memory per step grow with the episode.

    Examples
    --------
    >>> learner = OnlineLambdaReturn(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> _ = [learner.update(0.0, 0), learner.update(1.0, None)]
    >>> learner.weights   # V_0 + (1 − (1 − α)^T)(1 − V_0), section 3.2
    array([0.75])
    """

    def _weights_now(self) -> np.ndarray:
        return _sweep(self, self.next_values)

    def _trace(self) -> np.ndarray:
        """e_t = Σ_{i=0}^{t} (∏_{j=i+1}^{t} γ_jλ_j) A_{i+1}^{t} φ_i, with A_i^t = (I − α_tφ_tφ_tᵀ) … (I − α_iφ_iφ_iᵀ).

        This is the explicit form of the dutch trace in Appendix B. With a step-size schedule it is e⁺, whose terms carry α_i.
        """
        e = np.zeros(self.n_features)
        for x, decay, alpha in zip(self.x, self._decays(), self.alphas, strict=True):
            e = decay * (e - alpha * (x @ e) * x)  # (I − αφφᵀ)γλe
            e += alpha * x if callable(self.step_size) else x
        return e


class OfflineLambdaReturn(Definition):
    """Wait for the end of the episode, then update every state in turn towards its λ-return.

        w_{k+1} = w_k + α_k (G_k^λ − w_kᵀφ_k) φ_k   for 0 ≤ k < T

    An episode that `start` truncates ends with a bootstrap from its last state.

    Examples
    --------
    >>> learner = OfflineLambdaReturn(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> _ = learner.update(0.0, 0); before = learner.weights
    >>> _ = learner.update(1.0, None); before, learner.weights
    (array([0.]), array([0.75]))
    """

    def _weights_now(self) -> np.ndarray:
        return self._weights

    def _weights_at_end(self) -> np.ndarray:
        return _sweep(self, self.next_values)


def _sweep(learner: Definition, next_values: list[float]) -> np.ndarray:
    """One update for every state of the history, towards its λ-return with the latest horizon."""
    h = len(learner.rewards)
    history = [np.array(part) for part in (learner.rewards, learner.discounts, learner.trace_decays, next_values)]
    w = learner._first_weights.copy()
    for k in range(h):
        target = interim_lambda_return(k, h, *history)
        w += learner.alphas[k] * (target - w @ learner.x[k]) * learner.x[k]
    return w
