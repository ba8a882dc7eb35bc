"""Oracles of the off-policy family: their backward views, step by step, with dense vectors.

| method | source |
|---|---|
| GTD(λ) | Maei 2011, *Gradient temporal-difference learning algorithms*, thesis; van Hasselt, Mahmood and Sutton 2014 |
| true online GTD(λ) | van Hasselt, Mahmood and Sutton 2014, *Off-policy TD(λ) with a true online equivalence*, UAI |
| emphatic TD(λ) | Sutton, Mahmood and White 2016, *An emphatic approach to the problem of off-policy TD learning*, JMLR 17(73) |
| true online emphatic TD(λ) | Sutton 2015, *True online emphatic TD(λ): quick reference …*, arXiv:1507.07147 |
| HTD(λ) | White and White 2016, *Investigating practical linear temporal difference learning*, arXiv:1602.08771 |
| V-trace(λ), Tree Backup(λ), ABTD(ζ) | Ghiassian and Sutton 2021, arXiv:2106.00922, and their program |
| Monte Carlo | van Hasselt and Sutton 2015, *Learning to predict independent of span*, arXiv:1508.04582 |
| PTD(λ), PQ(λ) | Sutton, Mahmood, Precup and van Hasselt 2014, *A new Q(λ) with interim forward view …*, ICML |

The equations of Monte Carlo and of PTD(λ) and PQ(λ) are derived here from the forward views that the pages of those methods state.

γ and λ of a transition belong to the state it enters, ρ to the action it takes, and the interest to the state it leaves. An episode
ends at its last transition: because γ = 0, or because φ = 0 there (a terminal state), or because it is cut short.

All are generators that yield the weights after every transition. This file imports nothing of the package that it judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tests.oracles.prediction import Episode, left_behind


def off_policy_td(episodes: Iterable[Episode], w: np.ndarray, largest: float = np.inf) -> Iterator[np.ndarray]:
    """e ← ρ(γλe + φ);  w ← w + αδe. V-trace(λ) with ρ̄ = c̄ has a largest ρ."""
    for episode in episodes:
        e = np.zeros(len(w))
        for t, reward in enumerate(episode.rewards):
            phi, phi_next = episode.x[t], episode.x[t + 1]
            delta = reward + episode.discounts[t] * (w @ phi_next) - w @ phi
            e = min(episode.ratios[t], largest) * (left_behind(episode, t) * e + phi)
            w = w + episode.alphas[t] * delta * e
            yield w


def abtd(episodes: Iterable[Episode], w: np.ndarray, psi_0: float, psi_max: float) -> Iterator[np.ndarray]:
    """z ← γν_oldπ_old z + φ;  w ← w + αρδz;  ν ← min(ψ, 1 / max(π, b)), with ψ from the ζ of the state that z goes to."""
    for episode in episodes:
        z = np.zeros(len(w))
        for t, reward in enumerate(episode.rewards):
            kept = 0.0
            if t > 0 and episode.probabilities[t - 1] > 0.0:
                pi, rho, zeta = episode.probabilities[t - 1], episode.ratios[t - 1], episode.trace_decays[t - 1]
                psi = 2 * zeta * psi_0 + max(0.0, 2 * zeta - 1) * (psi_max - 2 * psi_0)
                kept = episode.discounts[t - 1] * min(psi, 1.0 / max(pi, pi / rho)) * pi
            z = kept * z + episode.x[t]
            delta = reward + episode.discounts[t] * (w @ episode.x[t + 1]) - w @ episode.x[t]
            w = w + episode.alphas[t] * episode.ratios[t] * delta * z
            yield w


def tree_backup(episodes: Iterable[Episode], w: np.ndarray) -> Iterator[np.ndarray]:
    """z ← γλπ_old z + φ;  w ← w + αρδz."""
    for episode in episodes:
        z, pi_old = np.zeros(len(w)), 0.0
        for t, reward in enumerate(episode.rewards):
            z = left_behind(episode, t) * pi_old * z + episode.x[t]
            delta = reward + episode.discounts[t] * (w @ episode.x[t + 1]) - w @ episode.x[t]
            w = w + episode.alphas[t] * episode.ratios[t] * delta * z
            pi_old = episode.probabilities[t]
            yield w


def v_trace(episodes: Iterable[Episode], w: np.ndarray, rho_bar: float, c_bar: float) -> Iterator[np.ndarray]:
    """Σ_s Σ_{t≥s} (∏ γλ min(ρ, c̄)) α_t min(ρ_t, ρ̄) δ_t φ_s, as the paper has it. δ_t goes to all states before it at once."""
    for episode in episodes:
        weights = [0.0] * len(episode.rewards)  # how much of δ_t goes to each earlier state
        for t, reward in enumerate(episode.rewards):
            if t > 0:
                kept = left_behind(episode, t) * min(episode.ratios[t - 1], c_bar)
                weights[:t] = [kept * each for each in weights[:t]]
            weights[t] = 1.0
            delta = reward + episode.discounts[t] * (w @ episode.x[t + 1]) - w @ episode.x[t]
            step = episode.alphas[t] * min(episode.ratios[t], rho_bar) * delta
            w = w + step * sum(weight * episode.x[s] for s, weight in enumerate(weights[: t + 1]))
            yield w


def htd(episodes: Iterable[Episode], w: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """e ← ρ(γλe + φ);  z ← γλz + φ;  d = φ − γ'φ';  w ← w + α(δe + hᵀ(e − z) d);  h ← h + β(δe − (hᵀz) d)."""
    h = np.zeros(len(w))
    for episode in episodes:
        e = z = np.zeros(len(w))
        for t, reward in enumerate(episode.rewards):
            d = episode.x[t] - episode.discounts[t] * episode.x[t + 1]
            delta = reward - w @ d
            e = episode.ratios[t] * (left_behind(episode, t) * e + episode.x[t])
            z = left_behind(episode, t) * z + episode.x[t]
            w, h = (
                w + episode.alphas[t] * (delta * e + (h @ (e - z)) * d),
                h + episode.betas[t] * (delta * e - (h @ z) * d),
            )
            yield w, h


def gtd(
    episodes: Iterable[Episode], w: np.ndarray, kappa: float = 0.0, second: bool = False, ahead: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """e ← ρ(γλe + φ);  w ← w + α(δe − γ'(1 − λ')(eᵀh)φ');  h ← h + β(δe − (hᵀφ)φ − κh).

    The `second` of its name has (hᵀφ)φ in the place of δe in w. `ahead`, both changes are those at weights half a step ahead.
    """
    h = np.zeros(len(w))
    for episode in episodes:
        e = np.zeros(len(w))
        for t, reward in enumerate(episode.rewards):
            phi, phi_next, gamma, rho = episode.x[t], episode.x[t + 1], episode.discounts[t], episode.ratios[t]
            alpha, beta = episode.alphas[t], episode.betas[t]
            e = rho * (left_behind(episode, t) * e + phi)
            here, there = (w, h), (w, h)
            for _ in range(1 + ahead):
                w, h = there
                delta = reward + gamma * (w @ phi_next) - w @ phi
                along = (h @ phi) * phi if second else delta * e
                w = here[0] + alpha * (along - gamma * (1.0 - episode.trace_decays[t]) * (h @ e) * phi_next)
                h = here[1] + beta * (delta * e - (h @ phi) * phi - kappa * h)
                there = w, h
            yield w, h


def true_online_gtd(episodes: Iterable[Episode], w: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """As published, with e, e^∇ and e^h.

    e ← ρ(γλe + α(1 − ργλφᵀe)φ);   e^∇ ← ρ(γλe^∇ + φ);   e^h ← ρ_{t−1}γλe^h + β(1 − ρ_{t−1}γλφᵀe^h)φ
    w ← w + δe + (e − αρφ)(w_t − w_{t−1})ᵀφ − αγ'(1 − λ')(hᵀe^∇)φ';   h ← h + ρδe^h − β(hᵀφ)φ
    """
    h = np.zeros(len(w))
    for episode in episodes:
        e, e_grad, e_h, w_old, rho_old = np.zeros(len(w)), np.zeros(len(w)), np.zeros(len(w)), w, 0.0
        for t, reward in enumerate(episode.rewards):
            phi, phi_next, gamma, rho = episode.x[t], episode.x[t + 1], episode.discounts[t], episode.ratios[t]
            alpha, beta, decay = episode.alphas[t], episode.betas[t], left_behind(episode, t)
            delta = reward + gamma * (w @ phi_next) - w @ phi
            e = rho * (decay * e + alpha * (1.0 - rho * decay * (phi @ e)) * phi)
            e_grad = rho * (decay * e_grad + phi)
            e_h = rho_old * decay * e_h + beta * (1.0 - rho_old * decay * (phi @ e_h)) * phi
            correction = alpha * gamma * (1.0 - episode.trace_decays[t]) * (h @ e_grad) * phi_next
            w_next = w + delta * e + (e - alpha * rho * phi) * ((w - w_old) @ phi) - correction
            h = h + rho * delta * e_h - beta * (h @ phi) * phi
            w_old, w, rho_old = w, w_next, rho
            yield w, h


def emphatic_td(episodes: Iterable[Episode], w: np.ndarray, decay: float | None = None) -> Iterator[np.ndarray]:
    """F ← ρ_{t−1}γF + I;  M ← λI + (1 − λ)F;  e ← ρ(γλe + Mφ);  w ← w + αδe. ETD(λ, β) has a `decay` for γ in F."""
    for episode in episodes:
        e, F = np.zeros(len(w)), 0.0
        for t, reward in enumerate(episode.rewards):
            phi, phi_next, rho = episode.x[t], episode.x[t + 1], episode.ratios[t]
            delta = reward + episode.discounts[t] * (w @ phi_next) - w @ phi
            F, M = emphasis(episode, t, F, decay)
            e = rho * (left_behind(episode, t) * e + M * phi)
            w = w + episode.alphas[t] * delta * e
            yield w


def true_online_emphatic_td(episodes: Iterable[Episode], w: np.ndarray) -> Iterator[np.ndarray]:
    """e ← ργλe + ραM(1 − ργλφᵀe)φ;  w ← w + δe + (e − αMρφ)(w_t − w_{t−1})ᵀφ."""
    for episode in episodes:
        e, F, w_old = np.zeros(len(w)), 0.0, w
        for t, reward in enumerate(episode.rewards):
            phi, phi_next, rho, alpha = episode.x[t], episode.x[t + 1], episode.ratios[t], episode.alphas[t]
            c = rho * left_behind(episode, t)
            delta = reward + episode.discounts[t] * (w @ phi_next) - w @ phi
            F, M = emphasis(episode, t, F)
            e = c * e + rho * alpha * M * (1.0 - c * (phi @ e)) * phi
            w_next = w + delta * e + (e - alpha * M * rho * phi) * ((w - w_old) @ phi)
            w_old, w = w, w_next
            yield w


def emphasis(episode: Episode, t: int, F: float, decay: float | None = None) -> tuple[float, float]:
    """F_t and M_t from F_{t−1}. At the beginning, and after γ = 0, F = I, and so λ does not matter."""
    passed = episode.discounts[t - 1] if decay is None or episode.discounts[t - 1] == 0.0 else decay
    F = (episode.ratios[t - 1] * passed * F if t > 0 else 0.0) + episode.interests[t]
    lam = episode.trace_decays[t - 1] if t > 0 else 0.0
    return F, lam * episode.interests[t] + (1.0 - lam) * F


# --- Monte Carlo ----------------------------------------------------------------------------------


def monte_carlo_so_far(episodes: Iterable[Episode], w: np.ndarray) -> Iterator[np.ndarray]:
    """Returns so far: e ← γ(e − α(φᵀe)φ) + αφ;  w ← w + Re − α(wᵀφ)φ."""
    for episode in episodes:
        e = np.zeros(len(w))
        for t, reward in enumerate(episode.rewards):
            phi, alpha = episode.x[t], episode.alphas[t]
            decay = episode.discounts[t - 1] if t > 0 else 0.0
            e = decay * (e - alpha * (phi @ e) * phi) + alpha * phi
            w = w + reward * e - alpha * (w @ phi) * phi
            yield w


def offline_td(episodes: Iterable[Episode], w: np.ndarray, *, lam: float | None = None) -> Iterator[np.ndarray]:
    """The offline λ-return algorithm in constant memory: w is fixed, and w + d is what it will be, should the episode end here.

    e ← γλ(e − α(φᵀe)φ) + αφ;  d ← d + δe − α(φᵀd)φ, with δ = R + γ'wᵀφ' − wᵀφ;  at the end w ← w + d and d ← 0
    """
    for episode in episodes:
        e, d, steps = np.zeros(len(w)), np.zeros(len(w)), len(episode.rewards)
        for t, reward in enumerate(episode.rewards):
            phi, alpha = episode.x[t], episode.alphas[t]
            decay = left_behind(episode, t) if lam is None else lam * (episode.discounts[t - 1] if t > 0 else 0.0)
            delta = reward + episode.discounts[t] * (w @ episode.x[t + 1]) - w @ phi
            e = decay * (e - alpha * (phi @ e) * phi) + alpha * phi
            d = d + delta * e - alpha * (phi @ d) * phi
            if t < steps - 1 or not episode.over:
                yield w
        if episode.over:
            w = w + d
            yield w


# --- Provisional methods --------------------------------------------------------------------------


def provisional_td(episodes: Iterable[Episode], w: np.ndarray) -> Iterator[np.ndarray]:
    """e ← ρ(γλe + αφ);  w ← w + δe + (ρ − 1)u;  u ← γ'λ'(ρu + δ̄e), with δ̄ = R + wᵀφ' − wᵀφ."""
    for episode in episodes:
        e, u = np.zeros(len(w)), np.zeros(len(w))
        for t, reward in enumerate(episode.rewards):
            phi, phi_next, gamma, rho = episode.x[t], episode.x[t + 1], episode.discounts[t], episode.ratios[t]
            v, v_next = w @ phi, w @ phi_next
            e = rho * (left_behind(episode, t) * e + episode.alphas[t] * phi)
            w = w + (reward + gamma * v_next - v) * e + (rho - 1.0) * u
            u = gamma * episode.trace_decays[t] * (rho * u + (reward + v_next - v) * e)
            yield w


def provisional_q(episodes: Iterable[Episode], w: np.ndarray) -> Iterator[np.ndarray]:
    """e ← ργλe + αφ;  w ← w + δe + (wᵀφ − wᵀφ̄)(e − αφ) + (ρ − 1)u;  u ← γ'λ'(ρu + δ̄e + (wᵀφ − wᵀφ̄)(e − αφ)).

    δ = R + γ'wᵀφ̄' − wᵀφ and δ̄ = R + wᵀφ̄' − wᵀφ, with φ̄ the mean over the actions of the target policy.
    """
    for episode in episodes:
        e, u = np.zeros(len(w)), np.zeros(len(w))
        for t, reward in enumerate(episode.rewards):
            phi, gamma, rho, alpha = episode.x[t], episode.discounts[t], episode.ratios[t], episode.alphas[t]
            v, v_next = w @ phi, w @ episode.expected[t]
            beside = v - w @ (episode.expected[t - 1] if t > 0 else phi)
            e = rho * left_behind(episode, t) * e + alpha * phi
            w = w + (reward + gamma * v_next - v) * e + beside * (e - alpha * phi) + (rho - 1.0) * u
            u = gamma * episode.trace_decays[t] * (rho * u + (reward + v_next - v) * e + beside * (e - alpha * phi))
            yield w
