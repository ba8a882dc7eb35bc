"""True online TD(λ) as one writes it in NumPy: Algorithm 2 with plain vectors, in place where that is natural."""

from __future__ import annotations

from typing import Any

import numpy as np


class EagerDense:
    """Features are vectors of n numbers."""

    def __init__(self, n: int, step_size: float, trace_decay: float, discount: float) -> None:
        self.alpha, self.lam, self.gamma = step_size, trace_decay, discount
        self.w, self.e = np.zeros(n), np.zeros(n)

    def start(self, x: np.ndarray) -> None:
        self.x, self.v_old = x, 0.0
        self.e[:] = 0.0

    def update(self, reward: float, x_next: np.ndarray) -> float:
        alpha, gamma, x, w, e = self.alpha, self.gamma, self.x, self.w, self.e
        decay = gamma * self.lam
        v, v_next = w @ x, w @ x_next
        delta = reward + gamma * v_next - v
        dutch = 1.0 - alpha * decay * (e @ x)
        e *= decay
        e += dutch * x
        w += alpha * (delta + v - self.v_old) * e
        w -= alpha * (v - self.v_old) * x
        self.x, self.v_old = x_next, v_next
        return delta


class EagerSparse:
    """Features are indices, which spares NumPy the products with zeros; w and e are still vectors of n numbers."""

    def __init__(self, n: int, step_size: float, trace_decay: float, discount: float, kind: Any = np.float64) -> None:
        self.alpha, self.lam, self.gamma = kind(step_size), kind(trace_decay), kind(discount)
        self.w, self.e = np.zeros(n, kind), np.zeros(n, kind)

    def start(self, x: np.ndarray) -> None:
        self.x, self.v_old = x, 0.0
        self.e[:] = 0.0

    def update(self, reward: float, x_next: np.ndarray) -> float:
        alpha, gamma, x, w, e = self.alpha, self.gamma, self.x, self.w, self.e
        decay = gamma * self.lam
        v, v_next = w[x].sum(), w[x_next].sum()
        delta = reward + gamma * v_next - v
        dutch = 1.0 - alpha * decay * e[x].sum()
        e *= decay
        e[x] += dutch
        w += alpha * (delta + v - self.v_old) * e
        w[x] -= alpha * (v - self.v_old)
        self.x, self.v_old = x_next, v_next
        return delta


def follow(learner: Any, X: Any, rewards: Any) -> None:
    """Do the same as `run`, one `update` at a time, for any learner that has one. Rows and rewards are best given as lists."""
    learner.start(X[0])
    update = learner.update
    for reward, x_next in zip(rewards, X[1:], strict=True):
        update(reward, x_next)
