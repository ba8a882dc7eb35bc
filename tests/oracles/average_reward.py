"""Oracles of average reward: the methods, and the exact solutions, the slow way.

The method is true online TD(λ) with R_{t+1} − R̄_t in the place of R_{t+1}. R̄ is learned as that of differential TD(0) (Wan, Naik
and Sutton 2021). A stream is that of `tests.oracles.prediction`, with β_t beside it.

This file imports nothing of the package that it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tests.oracles.prediction import Episode, left_behind


def true_online_differential_td(
    episodes: Iterable[Episode], w: np.ndarray, betas: Sequence[float]
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Algorithm 4 with R − R̄ for R, and R̄ learned from δ; R̄ and the number of the step go on from episode to episode."""
    rate, step = 0.0, 0
    for episode in episodes:
        e, v_old = np.zeros(len(w)), 0.0
        for t in range(len(episode.rewards)):
            phi, phi_next, alpha, decay = episode.x[t], episode.x[t + 1], episode.alphas[t], left_behind(episode, t)
            v, v_next = w @ phi, w @ phi_next
            above = episode.rewards[t] - rate
            e = decay * e + alpha * phi - alpha * decay * (e @ phi) * phi
            w = w + (above + episode.discounts[t] * v_next - v_old) * e - alpha * (v - v_old) * phi
            rate = rate + betas[step] * (above + episode.discounts[t] * v_next - v)
            v_old, step = v_next, step + 1
            yield w, rate, e


# --- Exact solutions ---------------------------------------------------------------------------------


def reward_rate(transitions: np.ndarray, rewards: np.ndarray, steps: int = 2**14) -> float:
    """The mean reward over many steps from state 0, step by step. `rewards[s]` is the expected reward in s."""
    where, total = np.eye(len(transitions))[0], 0.0
    for t in range(2 * steps):
        total += where @ rewards if t >= steps else 0.0  # without the beginning
        where = where @ transitions
    return float(total / steps)


def differential_values(transitions: np.ndarray, rewards: np.ndarray, rate: float, steps: int = 2**12) -> np.ndarray:
    """Σ_t E[R_{t+1} − r̄ | S_0 = s], up to a constant, for a process that rests half of the time, so that a cycle does not matter.

    Its values u = r − r̄ + ((P + I)/2)u are twice those of P: subtract u/2, and u/2 = r − r̄ + P(u/2).
    """
    resting = (transitions + np.eye(len(rewards))) / 2.0
    ahead, total = rewards - rate, np.zeros(len(rewards))
    for _ in range(steps):
        total = total + ahead
        ahead = resting @ ahead
    return total / 2.0


def relative_value_iteration(
    transitions: np.ndarray, rewards: np.ndarray, sweeps: int = 5_000
) -> tuple[float, np.ndarray]:
    """The optimal reward rate and the greedy actions: v ← max_a (r + Pv), less its value in state 0."""
    v, rate = np.zeros(len(rewards)), 0.0
    for _ in range(sweeps):
        q = rewards + transitions @ v
        rate = float(q.max(axis=1)[0])
        v = q.max(axis=1) - rate
    return rate, q.argmax(axis=1)


def queue_simulated(
    servers: int, pays: Sequence[float], p: float, policy: Callable[[int, int], bool], steps: int, seed: int
) -> float:
    """The mean reward of the access-control queue, server by server."""
    rng = np.random.default_rng(seed)
    busy, total = [True] * servers, 0.0
    for _ in range(steps):
        priority = int(rng.integers(len(pays)))
        free = busy.count(False)
        if free and policy(free, priority):
            busy[busy.index(False)] = True
            total += pays[priority]
        busy = [each and rng.random() >= p for each in busy]
    return total / steps
