"""Oracles of weighted importance sampling, and the theorem behind their forward views.

| method | source |
|---|---|
| WIS-TO-GTD(λ), WIS-GTD(λ) | Mahmood and Sutton 2015, *Off-policy learning based on weighted importance sampling …*, UAI |
| WIS-TD(λ) | the theorem below, with the error of the forward view that the page of the method states |

Each is written with dense vectors. The usage and the weights of WIS-TD(λ) are two cases of the theorem, and are computed by it.

All are generators that yield the weights (and the second weights) and the usage after every transition. This file imports nothing
of the package that it judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tests.oracles.prediction import Episode, left_behind


class Step(NamedTuple):
    """What the theorem needs at time t, all of which is known then."""

    F: np.ndarray  # a matrix
    w: np.ndarray
    x: np.ndarray
    Y: float  # Y_t^t
    change: float  # Y_t^{t+1} − Y_t^t
    b: float
    c: float
    d: float
    g: float


class BackwardView:
    """θ_t^t of a forward view whose targets change with the horizon, at every time t and in constant memory.

    θ_{k+1}^t = F_kθ_k^t + Y_k^tw_k + x_k   for 0 ≤ k < t
    Y_k^{t+1} − Y_k^t = d_{k+1} (Y_{k+1}^{t+1} − Y_{k+1}^t) + b_tg_k ∏_{j=k+1}^{t−1} c_j

    The theorem: with e_{−1} = 0 and d_0 = 0,

    e_t = w_t + d_tF_te_{t−1};   d_{t+1} = c_tF_td_t + g_te_t
    θ_{t+1} = F_tθ_t + (Y_t^{t+1} − Y_t^t) e_t + Y_t^tw_t + b_tF_td_t + x_t
    """

    def __init__(self, theta: np.ndarray) -> None:
        self.theta = theta
        self.begin()

    def begin(self) -> None:
        self.e, self.d = np.zeros(len(self.theta)), np.zeros(len(self.theta))

    def step(self, s: Step) -> np.ndarray:
        self.e = s.w + s.d * (s.F @ self.e)
        kept = s.F @ self.d
        self.theta = s.F @ self.theta + s.change * self.e + s.Y * s.w + s.b * kept + s.x
        self.d = s.c * kept + s.g * self.e
        return self.theta


def forward_view(steps: list[Step], theta: np.ndarray) -> np.ndarray:
    """θ_{k+1}^t = F_kθ_k^t + Y_k^tw_k + x_k for 0 ≤ k < t, with t the number of steps.

    Y_k^{t+1} − Y_k^t = d_{k+1} (Y_{k+1}^{t+1} − Y_{k+1}^t) + b_tg_k ∏_{j=k+1}^{t−1} c_j   for 0 ≤ k < t
    """
    Y: list[float] = []  # Y_0^t, Y_1^t, …
    for t, step in enumerate(steps):
        Y.append(step.Y)
        change = step.change  # Y_k^{t+1} − Y_k^t, from k = t down to 0
        along = 1.0  # ∏_{j=k+1}^{t−1} c_j
        Y[t] += change
        for k in reversed(range(t)):
            change = steps[k + 1].d * change + step.b * steps[k].g * along
            Y[k] += change
            along *= steps[k].c
    for step, target in zip(steps, Y, strict=True):
        theta = step.F @ theta + target * step.w + step.x
    return theta


def inverse(u: np.ndarray) -> np.ndarray:
    return np.array([1.0 / each if each != 0.0 else 0.0 for each in u])


class Usage:
    """The usage of features: F = I − η diag(φ∘φ), Y_k^t = ρ_k^t, w = φ∘φ, and no d."""

    def __init__(self, n: int, alpha_0: float) -> None:
        self.view = BackwardView(np.full(n, 1.0 / alpha_0))

    def step(self, phi: np.ndarray, eta: float, rho: float, decay: float) -> np.ndarray:
        """The step-sizes of the features after this step."""
        squares, zero = phi * phi, np.zeros(len(phi))
        F = np.diag(1.0 - eta * squares)
        self.view.step(Step(F, squares, zero, 0.0, rho, (rho - 1.0) * decay, rho * decay, 0.0, rho))
        return inverse(self.view.theta)


def wis_td(episodes: Iterable[Episode], w: np.ndarray, alpha_0: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """F = I − ρAφφᵀ, Y_k^t = Δ_k^t + V_k, w = ρAφ, b = (ρ − 1)γλ, c = d = ργλ, g = R + V' − V; V is that of entering the state."""
    usage, view = Usage(len(w), alpha_0), BackwardView(w)
    for episode in episodes:
        usage.view.begin()
        view.begin()
        value = view.theta @ episode.x[0]
        for t, reward in enumerate(episode.rewards):
            phi, rho, decay = episode.x[t], episode.ratios[t], left_behind(episode, t)
            step = rho * usage.step(phi, episode.alphas[t], rho, decay) * phi
            value_next = view.theta @ episode.x[t + 1]
            view.step(
                Step(
                    F=np.eye(len(w)) - np.outer(step, phi),
                    w=step,
                    x=np.zeros(len(w)),
                    Y=value,
                    change=reward + episode.discounts[t] * value_next - value,
                    b=(rho - 1.0) * decay,
                    c=rho * decay,
                    d=rho * decay,
                    g=reward + value_next - value,
                )
            )
            value = value_next
            yield view.theta, usage.view.theta


def wis_gtd(
    episodes: Iterable[Episode], w: np.ndarray, alpha_0: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """e ← ρ(γλe + φ);  w ← w + A(δe − γ'(1 − λ')(eᵀh)φ');  h ← h + β(δe − (hᵀφ)φ)."""
    usage, h = Usage(len(w), alpha_0), np.zeros(len(w))
    for episode in episodes:
        usage.view.begin()
        e = np.zeros(len(w))
        for t, reward in enumerate(episode.rewards):
            phi, phi_next, gamma, rho = episode.x[t], episode.x[t + 1], episode.discounts[t], episode.ratios[t]
            decay = left_behind(episode, t)
            alpha = usage.step(phi, episode.alphas[t], rho, decay)
            delta = reward + gamma * (w @ phi_next) - w @ phi
            e = rho * (decay * e + phi)
            w = w + alpha * (delta * e - gamma * (1.0 - episode.trace_decays[t]) * (h @ e) * phi_next)
            h = h + episode.betas[t] * (delta * e - (h @ phi) * phi)
            yield w, h, usage.view.theta


def wis_true_online_gtd(
    episodes: Iterable[Episode], w: np.ndarray, alpha_0: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """e ← ρ(γλe + (1 − ργλφᵀe)Aφ);   e^∇ ← ρ(γλe^∇ + φ);   e^h ← ρ_{t−1}γλe^h + β(1 − ρ_{t−1}γλφᵀe^h)φ

    w ← w + δe + (e − ρAφ)(w_t − w_{t−1})ᵀφ − γ'(1 − λ')(hᵀe^∇)Aφ';   h ← h + ρδe^h − β(hᵀφ)φ
    """
    usage, h = Usage(len(w), alpha_0), np.zeros(len(w))
    for episode in episodes:
        usage.view.begin()
        e, e_grad, e_h, w_old, rho_old = np.zeros(len(w)), np.zeros(len(w)), np.zeros(len(w)), w, 0.0
        for t, reward in enumerate(episode.rewards):
            phi, phi_next, gamma, rho = episode.x[t], episode.x[t + 1], episode.discounts[t], episode.ratios[t]
            beta, decay = episode.betas[t], left_behind(episode, t)
            alpha = usage.step(phi, episode.alphas[t], rho, decay)
            delta = reward + gamma * (w @ phi_next) - w @ phi
            e = rho * (decay * e + (1.0 - rho * decay * (phi @ e)) * alpha * phi)
            e_grad = rho * (decay * e_grad + phi)
            e_h = rho_old * decay * e_h + beta * (1.0 - rho_old * decay * (phi @ e_h)) * phi
            correction = gamma * (1.0 - episode.trace_decays[t]) * (h @ e_grad) * alpha * phi_next
            w_next = w + delta * e + (e - rho * alpha * phi) * ((w - w_old) @ phi) - correction
            h = h + rho * delta * e_h - beta * (h @ phi) * phi
            w_old, w, rho_old = w, w_next, rho
            yield w, h, usage.view.theta
