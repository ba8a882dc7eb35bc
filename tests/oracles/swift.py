"""SwiftTD and Swift-Sarsa the slow way, with dense vectors, in the order in which they are printed.

Javed, Sharifnassab and Sutton, *SwiftTD: A Fast and Robust Algorithm for Temporal Difference Learning* (2024). A step of the
printed algorithm gets the features of the state that is entered together with the reward. It learns, and then lets these features
into the traces. Here every state has its own γ and λ: what is left in the traces decays by those of the state whose features come in.

This file imports nothing of the package that it judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tests.oracles.control import Oracle, Transition
from tests.oracles.prediction import Episode


class Swift:
    """The state of SwiftTD. α is e^β; features that were never active keep their first α, within the limits or not."""

    def __init__(self, w, step_size, *, bound=0.1, decay=0.999, meta_step_size=0.001, min_step_size=1e-10) -> None:
        n = len(w)
        self.eta, self.shrink, self.theta, self.eta_min = bound, decay, meta_step_size, min_step_size
        self.w, self.alpha = np.array(w, float), np.full(n, float(step_size))
        self.z, self.delta_w, self.p, self.z_bar, self.h, self.h_old = np.zeros((6, n))
        self.seen = np.zeros(n, bool)
        self.v_old = 0.0

    def begin(self, phi: np.ndarray) -> None:
        """The first features of an episode."""
        self.waiting, self.fade, self.fresh = phi, 0.0, True

    def step(self, phi: np.ndarray, reward: float, gamma: float, lam: float) -> np.ndarray:
        """Enter a state of features φ; return the trace that was learned with."""
        self._admit(self.waiting)
        v = self.w @ phi
        delta = reward + gamma * v - self.v_old
        self.delta_w = delta * self.z - self.z_delta * self.v_delta
        self.w = self.w + self.delta_w
        beta = np.log(self.alpha) + self.theta / self.alpha * (delta - self.v_delta) * self.p
        moved = np.where(self.p != 0.0, np.exp(np.clip(beta, -700.0, 700.0)), self.alpha)
        self.alpha = np.where(self.seen, np.clip(moved, self.eta_min, self.eta), self.alpha)
        self.h_old = self.h
        self.h = self.h_temp + delta * self.z_bar - self.z_delta * self.v_delta
        self.v_old = v
        self.waiting, self.fade, self.fresh = phi, gamma * lam, gamma == 0.0  # γ = 0 ends an episode: the next begins
        return self.z

    def _admit(self, phi: np.ndarray) -> None:
        """Let φ into the traces. It waits until its state is left: an episode may be cut short before."""
        if self.fresh:
            self.z, self.p, self.z_bar, self.delta_w = np.zeros((4, len(phi)))
            self.v_old = self.w @ phi
        self.z, self.p, self.z_bar = self.fade * self.z, self.fade * self.p, self.fade * self.z_bar
        active = phi != 0.0
        self.seen = self.seen | active
        tau, b = np.sum(self.alpha * phi**2), self.z @ phi
        self.v_delta = self.delta_w @ phi
        self.z_delta = (self.eta / tau if tau > self.eta else 1.0) * self.alpha * phi
        self.z = self.z + self.z_delta * (1.0 - b)
        self.p = self.p + self.h_old * phi
        self.z_bar = self.z_bar + self.z_delta * (1.0 - b - self.z_bar * phi)
        self.h_temp = self.h - self.h_old * phi * (self.z - self.z_delta) - self.h * self.z_delta * phi
        if tau > self.eta:
            for name in ("h_temp", "h", "h_old", "z_bar"):
                setattr(self, name, np.where(active, 0.0, getattr(self, name)))
            self.alpha = self.alpha * self.shrink ** (phi**2)


def swift_td(episodes: Iterable[Episode], w: np.ndarray, **settings: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """SwiftTD. The first step-size that is given is that of all features to begin with."""
    state = None
    for episode in episodes:
        state = Swift(w, episode.alphas[0], **settings) if state is None else state
        state.begin(np.asarray(episode.x[0], float))
        for t in range(len(episode.rewards)):
            phi = np.asarray(episode.x[t + 1], float)
            used = state.step(phi, episode.rewards[t], episode.discounts[t], episode.trace_decays[t])
            yield state.w, used


class SwiftSarsa(Oracle):
    """SwiftTD over ψ(s, a)."""

    settings: dict[str, float] = {}

    def start(self, x: np.ndarray) -> int:
        action = Oracle.start(self, x)
        if not hasattr(self, "state"):
            self.state = Swift(self.w, self.step_size(0), **self.settings)
        self.state.begin(self.psi(x)[action])
        return action

    def learn(self, s: Transition) -> None:
        self.trace = self.state.step(s.there[s.following], s.reward, s.gamma, s.lam)
        self.w = self.state.w
