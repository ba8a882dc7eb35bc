"""Rules of users' own that use a memory in other orders than the catalogue's rules do, and their plain forms."""

import numpy as np

from trueonline.core.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall, shift


@kernel
def late_decay(memory, x, reward, x_next, alpha, lam, gamma_next):
    """Imprints, then decays, and pulls the next value towards zero."""
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)
    decay(memory, gamma_next * lam)
    shift(memory, x_next, -0.5 * alpha * v_next)
    return v, delta, v_next


@kernel
def two_rebases(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    """Imprints twice, each time after a decay so strong that the memory rebases. The second undoes the scale of the first."""
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, 0.00390625 * gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)
    decay(memory, 256.0)
    imprint(memory, x, 0.5, 0.25 * alpha)
    decay(memory, 0.00390625)
    return v, delta, v_next


class Plain:
    """A rule with dense vectors: e, w, and the first γ of an episode."""

    def __init__(self, n, alpha, lam, first):
        self.alpha, self.lam, self.w, self.e, self.gamma = alpha, lam, np.array(first, float), np.zeros(n), 0.0


class LateDecay(Plain):
    def update(self, x, reward, x_next, gamma_next):
        v, v_next = self.w @ x, self.w @ x_next
        self.e = self.e + x
        self.w = self.w + self.alpha * (reward + gamma_next * v_next - v) * self.e
        self.e = gamma_next * self.lam * self.e
        self.w = self.w - 0.5 * self.alpha * v_next * x_next


class TwoRebases(Plain):
    def update(self, x, reward, x_next, gamma_next):
        v, v_next = self.w @ x, self.w @ x_next
        self.e = 0.00390625 * self.gamma * self.lam * self.e + x
        self.w = self.w + self.alpha * (reward + gamma_next * v_next - v) * self.e
        self.e = 256.0 * self.e + 0.5 * x
        self.w = self.w + 0.25 * self.alpha * x
        self.e = 0.00390625 * self.e
        self.gamma = gamma_next
