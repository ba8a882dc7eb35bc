"""The definition of forward TD(λ): every target is summed from the history. Slow and obvious."""

from __future__ import annotations

import numpy as np

from trueonline.forward.interim_returns import interim_lambda_return
from trueonline.nonlinear.delayed_learner import DelayedLearner
from trueonline.nonlinear.delayed_transition import DelayedTransition


class DelayedLambdaReturn(DelayedLearner):
    """The K-bounded λ-return algorithm, the definition of forward TD(λ). It is slow: use `ForwardTD` to learn.

    Each state is updated once, K transitions later, towards the λ-return that is known by then. With T the end of the episode,
    the update of S_k happens at time h = min(k + K, T):

        w ← w + α_k (G_k^{λ|h} − V(S_k | w)) ∇V(S_k | w)

    G_k^{λ|h} is the interim λ-return, the explicit sum of `trueonline.forward`, with V(S_j | w_{j−1}) throughout. The learner
    keeps all transitions of the episode.

    Parameters
    ----------
    value_and_grad : function (weights, x) → (value, gradient)
        The value function. It returns V(x | w), a number, and ∇V(x | w), an array of the weights' shape. It must not change
        the weights.
    weights : array of float
        The initial weights, in any shape.
    step_size : float or function
        α > 0, or a schedule t → α_t.
    trace_decay : float
        λ, in [0, 1].
    discount : float
        γ, in [0, 1].
    horizon : int or math.inf, optional
        K ≥ 1. With math.inf, updates wait for the end of the episode. The default is
        `horizon_within(tolerance, discount, trace_decay)`. Other γ and λ of single transitions do not change it.
    tolerance : float, optional
        η in (0, 1), for the default of `horizon`.

    Raises
    ------
    ValueError
        If an argument is bad. Methods raise it, too, if a value or a gradient is not finite or has another shape, or if an
        update would make weights that are not finite. The learner is then unchanged.

    Examples
    --------
    >>> def linear(w, x):
    ...     return float(w[x]), np.eye(2)[x]
    >>> learner = DelayedLambdaReturn(linear, np.zeros(2), step_size=0.5, trace_decay=1.0, discount=1.0, horizon=2)
    >>> learner.start(0)
    >>> _ = [learner.update(0.0, 1), learner.update(1.0, None)]
    >>> learner.weights
    array([0.5, 0.5])
    """

    _kept: list[DelayedTransition]

    def _after(self, step: DelayedTransition) -> np.ndarray:
        history = [*self._kept, step]
        h, ended = len(history), step.discount == 0.0
        return self._updated(history, [k for k in range(h) if k + self.horizon == h or (ended and k + self.horizon > h)])

    def _after_all(self) -> np.ndarray:
        h = len(self._kept)
        return self._updated(self._kept, [k for k in range(h) if k + self.horizon > h])

    def _updated(self, history: list[DelayedTransition], due: list[int]) -> np.ndarray:
        rewards = np.array([step.reward for step in history])
        discounts = np.array([step.discount for step in history])
        trace_decays = np.array([step.trace_decay for step in history])
        next_values = np.array([step.next_value for step in history])
        weights = self._weights
        for k in due:
            target = interim_lambda_return(k, len(history), rewards, discounts, trace_decays, next_values)
            weights = self._towards(weights, history[k], target)
        return weights

    def _keep(self, step: DelayedTransition) -> None:
        self._kept.append(step)

    def _remember(self, steps: list[DelayedTransition], older: int) -> None:
        self._kept = list(steps)
