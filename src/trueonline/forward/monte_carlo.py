"""Monte Carlo prediction, by its definitions.

Van Hasselt and Sutton (2015, *Learning to predict independent of span*) compute it in constant memory. There is no bootstrapping.
λ is ignored.
"""

from __future__ import annotations

import numpy as np

from trueonline.forward.base import Definition


class EpisodeMonteCarlo(Definition):
    """Store the episode. At its end, update every state in turn towards its whole return.

        w_{k+1} = w_k + α_k (G_k − w_kᵀφ_k) φ_k   for 0 ≤ k < T,   G_k = R_{k+1} + γ_{k+1}G_{k+1},   G_T = 0

    Before the end, the weights are those of the episode's beginning. An episode that `start` truncates has no return. The value of
    its last state stands for the missing part: G_T = V(S_T), with the weights of the beginning.

    Examples
    --------
    >>> learner = EpisodeMonteCarlo(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> _ = learner.update(1.0, 1); before = learner.weights
    >>> _ = learner.update(1.0, None); before, learner.weights
    (array([0., 0.]), array([1. , 0.5]))
    """

    def _weights_now(self) -> np.ndarray:
        return self._weights

    def _weights_at_end(self) -> np.ndarray:
        return _towards_returns(self, self.next_values[-1])


class OnlineMonteCarlo(Definition):
    """At every time t, redo all updates of the episode with the returns so far, as if it had ended in S_t.

        w_{k+1}^t = w_k^t + α_k (G_k^t − (w_k^t)ᵀφ_k) φ_k   for 0 ≤ k < t,   w_t = w_t^t
        G_k^t = R_{k+1} + γ_{k+1}G_{k+1}^t,   G_t^t = 0

    At the end of an episode this equals `EpisodeMonteCarlo`. Before the end its predictions lack the rewards still to come. A
    truncated episode counts as one that ended.
    """

    def _weights_now(self) -> np.ndarray:
        return _towards_returns(self, 0.0)


def _towards_returns(learner: Definition, last: float) -> np.ndarray:
    """One update for every state of the history, and `last` is the return of its end."""
    G = [last]
    for reward, gamma in zip(reversed(learner.rewards), reversed(learner.discounts), strict=True):
        G.insert(0, reward + gamma * G[0])
    w = learner._first_weights.copy()
    for k, phi in enumerate(learner.x):
        w += learner.alphas[k] * (G[k] - w @ phi) * phi
    return w
