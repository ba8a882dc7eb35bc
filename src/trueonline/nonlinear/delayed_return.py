"""The definition of forward TD(λ): every target is summed up anew from the history. Slow and obvious."""

from __future__ import annotations

import numpy as np

from trueonline.forward.interim_returns import interim_lambda_return
from trueonline.nonlinear.delayed_learner import DelayedLearner, Transition


class DelayedLambdaReturn(DelayedLearner):
    """The K-bounded λ-return algorithm. With T the end of the episode, S_k is updated at time h = min(k + K, T):

        w ← w + α_k (G_k^{λ|h} − V(S_k | w)) ∇V(S_k | w)

    where G_k^{λ|h} is the interim λ-return of `forward.returns`, the explicit sum, with V(S_j | w_{j−1}) throughout. Keeps
    all transitions since the last beginning.

    >>> def linear(w, x):
    ...     return float(w[x]), np.eye(2)[x]
    >>> learner = DelayedLambdaReturn(linear, np.zeros(2), step_size=0.5, trace_decay=1.0, discount=1.0, horizon=2)
    >>> learner.start(0)
    >>> _ = [learner.update(0.0, 1), learner.update(1.0, None)]
    >>> learner.weights
    array([0.5, 0.5])
    """

    _kept: list[Transition]

    def _after(self, step: Transition) -> np.ndarray:
        history = [*self._kept, step]
        h, ended = len(history), step.discount == 0.0
        return self._updated(history, [k for k in range(h) if k + self.horizon == h or (ended and k + self.horizon > h)])

    def _after_all(self) -> np.ndarray:
        h = len(self._kept)
        return self._updated(self._kept, [k for k in range(h) if k + self.horizon > h])

    def _updated(self, history: list[Transition], due: list[int]) -> np.ndarray:
        rewards = np.array([step.reward for step in history])
        discounts = np.array([step.discount for step in history])
        trace_decays = np.array([step.trace_decay for step in history])
        next_values = np.array([step.next_value for step in history])
        weights = self._weights
        for k in due:
            target = interim_lambda_return(k, len(history), rewards, discounts, trace_decays, next_values)
            weights = self._towards(weights, history[k], target)
        return weights

    def _keep(self, step: Transition) -> None:
        self._kept.append(step)

    def _remember(self, steps: list[Transition], older: int) -> None:
        self._kept = list(steps)
