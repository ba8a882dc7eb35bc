"""Oracles of control: agents the slow way, from the equations of the paper and nothing else; eager and dense.

Sections and algorithms are those of van Seijen, Mahmood, Pilarski, Machado and Sutton, *True Online Temporal-Difference
Learning*, JMLR 17(145), 2016. ψ(s, a) has the state's features in the block of the action and zeros elsewhere; entry i of
the state's features and action a share index i·A + a. As in `naive`, every state has its own γ and λ: the bootstrap from
S' is discounted by the γ of S', and the trace decays by the γλ of the state that is left.

`policy(values, rng, t)` chooses A' from the values of before the update, as in the pseudo-code.

This file imports nothing of the package that it judges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

TIE = 1e-10  # the paper's ties are exact; with rounded numbers a tie is this close, relative to the best or to 1


class Transition(NamedTuple):
    """From A in S to A' in S'."""

    here: list[np.ndarray]  # ψ(S, a) for every a
    action: int  # A
    reward: float  # R
    there: list[np.ndarray]  # ψ(S', a) for every a; zeros where S' is terminal
    following: int  # A'
    gamma: float  # of S'
    lam: float  # of S'
    alpha: float


def is_greedy(values: np.ndarray, action: int) -> bool:
    """Whether the action is the best one, or ties with it."""
    best = max(values)
    return bool(values[action] >= best - TIE * max(1.0, abs(best)))


class Oracle(ABC):
    """Acts by the policy, and leaves learning to the algorithm. `trace` is e as the last transition used it."""

    def __init__(self, n: int, actions: int, step_size: Callable[[int], float], policy: Callable, rng, w=None) -> None:
        self.n, self.actions, self.step_size, self.policy, self.rng = n, actions, step_size, policy, rng
        self.w = np.zeros(n * actions) if w is None else np.array(w, float).reshape(-1)
        self.t = 0
        self.trace = np.zeros(n * actions)

    def psi(self, x: np.ndarray) -> list[np.ndarray]:
        """ψ(s, a) for every a."""
        return [np.kron(x, np.arange(self.actions) == a) for a in range(self.actions)]

    def values(self, x: np.ndarray) -> np.ndarray:
        return np.array([self.w @ psi for psi in self.psi(x)])

    def start(self, x: np.ndarray) -> int:
        self.action = self.policy(self.values(x), self.rng, self.t)
        self.x = x
        self.begin()
        return self.action

    def step(self, reward: float, x_next: np.ndarray, gamma: float, lam: float) -> int:
        following = self.policy(self.values(x_next), self.rng, self.t + 1)
        there = self.psi(x_next)
        self.learn(
            Transition(self.psi(self.x), self.action, reward, there, following, gamma, lam, self.step_size(self.t))
        )
        self.t += 1
        self.x, self.action = x_next, following
        return following

    def truncate(self, reward: float, x_next: np.ndarray, gamma: float) -> None:
        """The last transition of an episode that is cut short is one like any other."""
        self.step(reward, x_next, gamma, 1.0)

    def end(self, reward: float) -> None:
        """ψ' = 0, whatever γ is."""
        terminal = [np.zeros(self.n * self.actions)] * self.actions
        alpha = self.step_size(self.t)
        self.learn(Transition(self.psi(self.x), self.action, reward, terminal, 0, 1.0, 1.0, alpha))
        self.t += 1

    def begin(self) -> None:
        """e ← 0; Q_old ← 0."""
        self.e = np.zeros(self.n * self.actions)
        self.trace = self.e
        self.q_old, self.decay = 0.0, 0.0  # decay: γλ of S
        self.forget()

    def forget(self) -> None:
        """Whatever else an algorithm remembers of an episode."""
        return

    @abstractmethod
    def learn(self, at: Transition) -> None: ...


# --- Sarsa(λ) -------------------------------------------------------------------------------------


class AccumulateSarsa(Oracle):
    """δ ← R + γQ(S', A') − Q(S, A);  e ← γλe + ψ;  w ← w + αδe."""

    def learn(self, at: Transition) -> None:
        psi = at.here[at.action]
        delta = at.reward + at.gamma * (self.w @ at.there[at.following]) - self.w @ psi
        self.e = self.decay * self.e + psi
        self.w = self.w + at.alpha * delta * self.e
        self.trace, self.decay = self.e, at.gamma * at.lam


class ReplaceSarsa(Oracle):
    """The same with the replacing traces at the end of section 2.3: e[i] ← 1 where ψ[i] = 1, γλe[i] elsewhere."""

    clearing = False

    def learn(self, at: Transition) -> None:
        psi = at.here[at.action]
        delta = at.reward + at.gamma * (self.w @ at.there[at.following]) - self.w @ psi
        self.e = self.decay * self.e
        if self.clearing:
            for a in range(self.actions):
                self.e = np.where(at.here[a] == 1.0, 0.0, self.e)  # e(s, a) ← 0 for all a of this state, then …
        self.e = np.where(psi == 1.0, 1.0, self.e)  # … e(s, A) ← 1
        self.w = self.w + at.alpha * delta * self.e
        self.trace, self.decay = self.e, at.gamma * at.lam


class ClearingSarsa(ReplaceSarsa):
    """The traces of the other actions in the same state are cleared (Singh and Sutton 1996)."""

    clearing = True


class TrueOnlineSarsa(Oracle):
    """Algorithm 3, for a constant step-size."""

    def learn(self, at: Transition) -> None:
        psi, psi_next, alpha = at.here[at.action], at.there[at.following], at.alpha
        q = self.w @ psi
        q_next = self.w @ psi_next
        delta = at.reward + at.gamma * q_next - q
        self.e = self.decay * self.e + psi - alpha * self.decay * (self.e @ psi) * psi
        self.w = self.w + alpha * (delta + q - self.q_old) * self.e - alpha * (q - self.q_old) * psi
        self.q_old = q_next
        self.trace, self.decay = self.e, at.gamma * at.lam


class TrueOnlineSarsaVarying(Oracle):
    """Algorithm 4 over ψ(s, a), for a time-dependent step-size; the trace is e⁺."""

    def learn(self, at: Transition) -> None:
        psi, psi_next, alpha = at.here[at.action], at.there[at.following], at.alpha
        q = self.w @ psi
        q_next = self.w @ psi_next
        delta_prime = at.reward + at.gamma * q_next - self.q_old
        self.e = self.decay * self.e + alpha * psi - alpha * self.decay * (self.e @ psi) * psi
        self.w = self.w + delta_prime * self.e - alpha * (q - self.q_old) * psi
        self.q_old = q_next
        self.trace, self.decay = self.e, at.gamma * at.lam


# --- Watkins's Q(λ) (section 6.2) -----------------------------------------------------------------


class WatkinsQ(Oracle):
    """δ ← R + γ max_a Q(S', a) − Q(S, A), accumulating traces, reset to 0 whenever a non-greedy action is taken."""

    def learn(self, at: Transition) -> None:
        psi = at.here[at.action]
        q_there = np.array([self.w @ psi_a for psi_a in at.there])
        delta = at.reward + at.gamma * max(q_there) - self.w @ psi
        self.e = self.decay * self.e + psi
        self.w = self.w + at.alpha * delta * self.e
        self.trace, self.decay = self.e, at.gamma * at.lam
        if not is_greedy(q_there, at.following):
            self.e = np.zeros(len(self.w))


class TrueOnlineWatkinsQ(Oracle):
    """Algorithm 5, for a constant step-size, in which `slip` says what is left as it is printed.

    - "": nothing. The next step's ψ is that of the action taken, and δ is R + γQ' − Q.
    - "carries A*": the next step's ψ is ψ(S', A*), as printed, even where A' ≠ A* was taken.
    - "no γ": δ lacks γ, as in the text.
    - "max in S": δ is R + max_a Q(S, a) − Q(S, A), as in the text to the letter.
    """

    slip = ""

    def forget(self) -> None:
        self.carried: np.ndarray | None = None

    def learn(self, at: Transition) -> None:
        psi, alpha = at.here[at.action], at.alpha
        if self.slip == "carries A*" and self.carried is not None:
            psi = self.carried
        q_there = np.array([self.w @ psi_a for psi_a in at.there])
        tied = is_greedy(q_there, at.following)
        best = at.following if tied else int(q_there.argmax())  # A*
        q = self.w @ psi
        q_next = self.w @ at.there[best]
        delta = at.reward + at.gamma * q_next - q
        if self.slip == "no γ":
            delta = at.reward + q_next - q
        elif self.slip == "max in S":
            delta = at.reward + max(self.w @ psi_a for psi_a in at.here) - q
        self.e = self.decay * self.e + psi - alpha * self.decay * (self.e @ psi) * psi
        self.w = self.w + alpha * (delta + q - self.q_old) * self.e - alpha * (q - self.q_old) * psi
        self.trace, self.decay = self.e, at.gamma * at.lam
        if not tied:
            self.e = np.zeros(len(self.w))
        self.q_old = q_next
        self.carried = at.there[best]


class TrueOnlineWatkinsQVarying(Oracle):
    """Algorithm 5 made for a time-dependent step-size as Algorithm 4 is made of Algorithm 2; the trace is e⁺."""

    def learn(self, at: Transition) -> None:
        psi, alpha = at.here[at.action], at.alpha
        q_there = np.array([self.w @ psi_a for psi_a in at.there])
        q, q_next = self.w @ psi, max(q_there)
        self.e = self.decay * self.e + alpha * psi - alpha * self.decay * (self.e @ psi) * psi
        self.w = self.w + (at.reward + at.gamma * q_next - self.q_old) * self.e - alpha * (q - self.q_old) * psi
        self.trace, self.decay = self.e, at.gamma * at.lam
        if not is_greedy(q_there, at.following):
            self.e = np.zeros(len(self.w))
        self.q_old = q_next


# --- Forward views: at every time h, all updates of the episode are made anew ---------------------


class ForwardView(Oracle):
    """w_{k+1}^h = w_k^h + α_k (U_k^h − (w_k^h)ᵀψ_k) ψ_k for 0 ≤ k < h, and w_h = w_h^h."""

    def forget(self) -> None:
        self.w_init = self.w
        self.past: list[Transition] = []
        self.next_values: list[float] = []  # what a return that stops at S_{t+1} is completed with, from w_t
        self.greedy: list[bool] = []  # whether A_{t+1} is greedy

    def learn(self, at: Transition) -> None:
        q_there = np.array([self.w @ psi_a for psi_a in at.there])  # w is w_{h−1} here
        self.past.append(at)
        self.next_values.append(self.completion(q_there, at.following))
        self.greedy.append(is_greedy(q_there, at.following))
        h = len(self.past)
        w = self.w_init
        for k in range(h):
            psi = self.past[k].here[self.past[k].action]
            w = w + self.past[k].alpha * (self.target(k, self.horizon(k, h)) - w @ psi) * psi
        self.w = w

    def n_step_return(self, t: int, n: int) -> float:
        """G_t^{(n)} = Σ_{k=1}^{n} γ_{t+1} ⋯ γ_{t+k−1} R_{t+k} + γ_{t+1} ⋯ γ_{t+n} · the value that completes it."""
        total, discount = 0.0, 1.0
        for k in range(1, n + 1):
            total += discount * self.past[t + k - 1].reward
            discount *= self.past[t + k - 1].gamma
        return total + discount * self.next_values[t + n - 1]

    def target(self, t: int, z: int) -> float:
        """Σ_{n=1}^{z−t−1} (1 − λ_{t+n}) λ_{t+1} ⋯ λ_{t+n−1} G_t^{(n)} + λ_{t+1} ⋯ λ_{z−1} G_t^{(z−t)}."""
        total, weight = 0.0, 1.0
        for n in range(1, z - t):
            lam = self.past[t + n - 1].lam
            total += (1.0 - lam) * weight * self.n_step_return(t, n)
            weight *= lam
        return total + weight * self.n_step_return(t, z - t)

    @abstractmethod
    def completion(self, values: np.ndarray, action: int) -> float: ...

    @abstractmethod
    def horizon(self, t: int, h: int) -> int: ...


class ForwardSarsa(ForwardView):
    """The online λ-return algorithm over ψ(s, a) (section 3.1): a return is completed with Q(S_{t+n}, A_{t+n})."""

    def completion(self, values: np.ndarray, action: int) -> float:
        return values[action]

    def horizon(self, t: int, h: int) -> int:
        return h


class ForwardWatkins(ForwardView):
    """U_t^h of section 6.2: returns are completed with max_a Q(S_{t+n}, a), and end at z = min{h, τ}.

    τ is the first time step *after* t that a non-greedy action is taken.
    """

    def completion(self, values: np.ndarray, action: int) -> float:
        return max(values)

    def horizon(self, t: int, h: int) -> int:
        tau = t + 1
        while tau < h and self.greedy[tau - 1]:
            tau += 1
        return min(h, tau)
