"""Oracles: every algorithm and every return, the slow way, from the equations of the paper and nothing else.

Equations, algorithms and sections are those of van Seijen, Mahmood, Pilarski, Machado and Sutton, *True Online
Temporal-Difference Learning*, JMLR 17(145), 2016. Where the paper has one γ and one λ, here every state has its own:
a transition into S_{t+1} carries R_{t+1}, γ_{t+1} and λ_{t+1}; the bootstrap from S_{t+1} is discounted by γ_{t+1}, and
the trace that is left behind in S_t decays by γ_tλ_t when S_t is left. An episode ends at its last transition, because
γ_T = 0, because φ_T = 0 (a terminal state), or because it is cut short there.

All algorithms are generators: they yield the weights (and the trace) after every transition, in fresh arrays.

This file imports nothing of the package that it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

WeightsAndTraces = Iterator[tuple[np.ndarray, np.ndarray]]


class Episode(NamedTuple):
    """T transitions from S_0 to S_T. Oracles of methods that ignore a part look at it no more than the methods do."""

    x: Sequence[np.ndarray]  # φ_0, …, φ_T; with actions, φ(S_t, A_t)
    rewards: Sequence[float]  # R_1, …, R_T
    discounts: Sequence[float]  # γ_1, …, γ_T
    trace_decays: Sequence[float]  # λ_1, …, λ_T
    alphas: Sequence[float]  # α_0, …, α_{T−1}
    betas: Sequence[float] = ()  # β_0, …, β_{T−1}
    ratios: Sequence[float] = ()  # ρ_0, …, ρ_{T−1}
    interests: Sequence[float] = ()  # I_0, …, I_{T−1}
    expected: Sequence[np.ndarray] = ()  # φ̄_1, …, φ̄_T: with actions, the mean over the target policy's
    probabilities: Sequence[float] = ()  # π(A_0|S_0), …, each at most ρ and 1
    over: bool = True  # False: more is to come, so that an offline method must still wait


def left_behind(episode: Episode, t: int) -> float:
    """γ_tλ_t, by which the trace of before decays when S_t is left; 0 at the beginning, where e_{−1} = 0."""
    return episode.discounts[t - 1] * episode.trace_decays[t - 1] if t > 0 else 0.0


# --- Backward views -------------------------------------------------------------------------------


def accumulate_td(episodes: Iterable[Episode], w: np.ndarray) -> WeightsAndTraces:
    """Algorithm 1."""
    for episode in episodes:
        e = np.zeros(len(w))
        for t in range(len(episode.rewards)):
            phi, phi_next = episode.x[t], episode.x[t + 1]
            delta = episode.rewards[t] + episode.discounts[t] * (w @ phi_next) - w @ phi
            e = left_behind(episode, t) * e + phi
            w = w + episode.alphas[t] * delta * e
            yield w, e


def td_star(episodes: Iterable[Episode], w: np.ndarray) -> WeightsAndTraces:
    """w' = w + αδe with δ = R + γ'w'ᵀφ' − wᵀφ (after Schapire and Warmuth 1996): an equation for the number δ."""
    for episode in episodes:
        e = np.zeros(len(w))
        for t in range(len(episode.rewards)):
            phi, phi_next, gamma, alpha = episode.x[t], episode.x[t + 1], episode.discounts[t], episode.alphas[t]
            e = left_behind(episode, t) * e + phi
            delta = (episode.rewards[t] + gamma * (w @ phi_next) - w @ phi) / (1.0 - alpha * gamma * (e @ phi_next))
            w = w + alpha * delta * e
            yield w, e


def replace_td(episodes: Iterable[Episode], w: np.ndarray) -> WeightsAndTraces:
    """Algorithm 1 with the replacing-trace update at the end of section 2.3."""
    for episode in episodes:
        e = np.zeros(len(w))
        for t in range(len(episode.rewards)):
            phi, phi_next = episode.x[t], episode.x[t + 1]
            delta = episode.rewards[t] + episode.discounts[t] * (w @ phi_next) - w @ phi
            e = np.where(phi == 1.0, 1.0, left_behind(episode, t) * e)
            w = w + episode.alphas[t] * delta * e
            yield w, e


def true_online_td(episodes: Iterable[Episode], w: np.ndarray) -> WeightsAndTraces:
    """Algorithm 2, for a constant step-size."""
    for episode in episodes:
        e = np.zeros(len(w))
        v_old = 0.0
        for t in range(len(episode.rewards)):
            phi, phi_next = episode.x[t], episode.x[t + 1]
            alpha = episode.alphas[0]
            decay = left_behind(episode, t)
            v = w @ phi
            v_next = w @ phi_next
            delta = episode.rewards[t] + episode.discounts[t] * v_next - v
            e = decay * e + phi - alpha * decay * (e @ phi) * phi
            w = w + alpha * (delta + v - v_old) * e - alpha * (v - v_old) * phi
            v_old = v_next
            yield w, e


def true_online_td_varying(episodes: Iterable[Episode], w: np.ndarray) -> WeightsAndTraces:
    """Algorithm 4, for a time-dependent step-size; the trace is e⁺."""
    for episode in episodes:
        e = np.zeros(len(w))
        v_old = 0.0
        for t in range(len(episode.rewards)):
            phi, phi_next = episode.x[t], episode.x[t + 1]
            alpha = episode.alphas[t]
            decay = left_behind(episode, t)
            v = w @ phi
            v_next = w @ phi_next
            delta_prime = episode.rewards[t] + episode.discounts[t] * v_next - v_old
            e = decay * e + alpha * phi - alpha * decay * (e @ phi) * phi
            w = w + delta_prime * e - alpha * (v - v_old) * phi
            v_old = v_next
            yield w, e


# --- Returns (section 3.1) ------------------------------------------------------------------------
# `next_values[t]` is V(S_{t+1} | w_t), the value of the state entered with the weights of before.


def n_step_return(episode: Episode, next_values: Sequence[float], k: int, n: int) -> float:
    """G_k^{(n)} = Σ_{i=1}^{n} γ_{k+1} ⋯ γ_{k+i−1} R_{k+i} + γ_{k+1} ⋯ γ_{k+n} V(S_{k+n} | w_{k+n−1})."""
    total, discount = 0.0, 1.0
    for i in range(1, n + 1):
        total += discount * episode.rewards[k + i - 1]
        discount *= episode.discounts[k + i - 1]
    return total + discount * next_values[k + n - 1]


def interim_lambda_return(episode: Episode, next_values: Sequence[float], k: int, h: int) -> float:
    """G_k^{λ|h} = Σ_{n=1}^{h−k−1} (1 − λ_{k+n}) λ_{k+1} ⋯ λ_{k+n−1} G_k^{(n)} + λ_{k+1} ⋯ λ_{h−1} G_k^{(h−k)}."""
    total, weight = 0.0, 1.0
    for n in range(1, h - k):
        lam = episode.trace_decays[k + n - 1]
        total += (1.0 - lam) * weight * n_step_return(episode, next_values, k, n)
        weight *= lam
    return total + weight * n_step_return(episode, next_values, k, h - k)


def lambda_return(episode: Episode, next_values: Sequence[float], k: int) -> float:
    """G_k^λ = Σ_{n=1}^{T−k−1} (1 − λ_{k+n}) λ_{k+1} ⋯ λ_{k+n−1} G_k^{(n)} + λ_{k+1} ⋯ λ_{T−1} G_k.

    G_k, the whole return, is the (T − k)-step return of an episode that ends in a terminal state; of one that is cut
    short, it ends in a bootstrap.
    """
    return interim_lambda_return(episode, next_values, k, len(episode.rewards))


# --- Forward views --------------------------------------------------------------------------------


def online_lambda_return(episodes: Iterable[Episode], w: np.ndarray, *, plus: bool = False) -> WeightsAndTraces:
    """The online λ-return algorithm (section 3.1), and the trace, e or e⁺, in the explicit form of Appendix B.

    At every time t, all updates k = 0, …, t − 1 of the episode are made anew from its first weights, each with α_k.
    """
    for episode in episodes:
        w_init = w
        next_values: list[float] = []
        for t in range(1, len(episode.rewards) + 1):
            next_values.append(float(w @ episode.x[t]))  # w is w_{t−1} here
            w = w_init
            for k in range(t):
                target = interim_lambda_return(episode, next_values, k, t)
                w = w + episode.alphas[k] * (target - w @ episode.x[k]) * episode.x[k]
            yield w, explicit_dutch_trace(episode, t - 1, plus=plus)


def explicit_dutch_trace(episode: Episode, t: int, *, plus: bool = False) -> np.ndarray:
    """e_t = Σ_{i=0}^{t} (γ_{i+1}λ_{i+1} ⋯ γ_tλ_t) A_{i+1}^t φ_i with A_i^j = (I − α_jφ_jφ_jᵀ) ⋯ (I − α_iφ_iφ_iᵀ).

    Appendix B; for e⁺ (section 6.1), with α_iφ_i in the place of φ_i. The matrices are never formed: each is applied to
    φ_i, one factor after the other.
    """
    e = np.zeros(len(episode.x[0]))
    for i in range(t + 1):
        term = episode.alphas[i] * episode.x[i] if plus else episode.x[i]
        for j in range(i + 1, t + 1):
            phi = episode.x[j]
            term = left_behind(episode, j) * (term - episode.alphas[j] * (phi @ term) * phi)
        e = e + term
    return e


def offline_lambda_return(episodes: Iterable[Episode], w: np.ndarray) -> Iterator[np.ndarray]:
    """The offline λ-return algorithm (section 3.1): no update before the end of the episode, then one for each state."""
    for episode in episodes:
        T = len(episode.rewards)
        for _ in range(T - 1):
            yield w
        next_values = [float(w @ episode.x[t + 1]) for t in range(T)]  # the weights do not change on the way
        if episode.over:
            for k in range(T):
                target = lambda_return(episode, next_values, k)
                w = w + episode.alphas[k] * (target - w @ episode.x[k]) * episode.x[k]
        yield w


def averaged_return(
    episodes: Iterable[Episode],
    w: np.ndarray,
    shares: Callable[[Sequence[float]], Sequence[float]],
    *,
    offline: bool = False,
) -> Iterator[np.ndarray]:
    """Updates towards averages of n-step returns, from scratch at every step; offline at the end of an episode only.

    `shares(γ_{k+1}, …, γ_h)` are those of G_k^{(1)}, …, G_k^{(h−k)}.
    """
    for episode in episodes:
        first, next_values, T = w, [], len(episode.rewards)
        for h in range(1, T + 1):
            next_values.append(float(w @ episode.x[h]))
            if not offline or (h == T and episode.over):
                w = first
                for k in range(h):
                    weighted = enumerate(shares(episode.discounts[k:h]), start=1)
                    target = sum(share * n_step_return(episode, next_values, k, n) for n, share in weighted)
                    w = w + episode.alphas[k] * (target - w @ episode.x[k]) * episode.x[k]
            yield w
