"""Off-policy TD(λ) and its online forward view, by their definitions. Gradient and emphatic methods build on them.

The method predicts the return of a *target* policy π while another policy, b, acts. ρ_t = π(A_t|S_t) / b(A_t|S_t) belongs to the
action taken in S_t. The weights are computed from scratch from the history at every step.
"""

from __future__ import annotations

from abc import abstractmethod
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from trueonline import inputs
from trueonline.forward.base import OffPolicyDefinition, number_or_schedule, of_now, of_the_past
from trueonline.inputs import Schedule
from trueonline.learners.docstrings import LEARNER, SECOND


class FamilyDefinition(OffPolicyDefinition):
    """A definition whose history has more series than rewards, γ, λ, α and ρ: `more_scalars` and `more_vectors`.

    `more_learned` names the vectors that are learned beside w. `_NAME` is such a vector now, and `_first_NAME` is what it was when
    the episode began.
    """

    more_scalars: ClassVar[tuple[str, ...]] = ()
    more_vectors: ClassVar[tuple[str, ...]] = ()
    more_learned: ClassVar[tuple[str, ...]] = ()

    def _forget(self) -> None:
        super()._forget()
        for name in (*self.more_scalars, *self.more_vectors):
            setattr(self, name, [])
        for name in self.more_learned:
            setattr(self, f"_first_{name}", getattr(self, f"_{name}").copy())

    def _more(self) -> dict[str, Any]:
        """The new entries of these series, for the transition that is learned from."""
        return {}

    @abstractmethod
    def _redone(self) -> np.ndarray:
        """The weights after the last transition of the history."""

    def _weights_now(self) -> np.ndarray:
        for name, value in self._more().items():
            getattr(self, name).append(value)
        return self._redone()

    @of_now
    def _carried(self) -> np.ndarray:
        """γ_jλ_jρ_j for j = 0, 1, …. The entry j = 0 has no meaning. ∏_{j=i+1}^{t} γ_jλ_jρ_j carries φ_i to time t."""
        return self._decays() * np.array(self.ratios)

    def _dump(self) -> dict[str, np.ndarray]:
        raise NotImplementedError(
            f"{type(self).__name__} cannot be saved, only pickled: save the learner that it defines"
        )


class SecondStepDefinition(FamilyDefinition):
    """A definition with a second step-size β, or its schedule: that of what is learned beside w."""

    _shared_parameters = LEARNER + SECOND.replace("callable, optional", "callable")
    options = MappingProxyType({"second_step_size": number_or_schedule})
    second_step_size: float | Schedule

    def _prepare(self) -> None:
        self._coming_beta = inputs.at("second_step_size", self.second_step_size, self._steps, inputs.ratio)


class OffPolicySum(FamilyDefinition):
    """Off-policy TD(λ) with accumulating traces, by explicit sums: w_t = w_0 + Σ_{j=0}^{t−1} α_jδ_j e_j.

    e_j = Σ_{i=0}^{j} (∏_{m=i+1}^{j} γ_mλ_mρ_m) ρ_i φ_i (Precup, Sutton and Dasgupta 2001, in the form of Maei 2011)
    """

    def _entering(self) -> np.ndarray:
        """The factors with which φ_0, φ_1, … enter the trace: ρ_0, ρ_1, …"""
        return np.array(self.ratios)

    @of_the_past
    def _trace_at(self, j: int) -> np.ndarray:
        return accumulated(self.x, self._carried(), self._entering(), j, self.n_features)

    def _redone(self) -> np.ndarray:
        terms = (self.alphas[j] * self.deltas[j] * self._trace_at(j) for j in range(len(self.deltas)))
        return sum(terms, self._first_weights.copy())

    def _trace(self) -> np.ndarray:
        return self._trace_at(len(self.x) - 1)


class OnlineOffPolicyReturn(FamilyDefinition):
    """At every time t, redo all updates of the episode with the off-policy interim λ-returns of horizon t.

        w_{k+1}^t = w_k^t + α_kρ_k (G_k^{λρ|t} − (w_k^t)ᵀφ_k) φ_k   for 0 ≤ k < t,   w_t = w_t^t

    The return is that of van Hasselt, Mahmood and Sutton (2014). The method is true online TD(λ) for off-policy learning.

    Examples
    --------
    >>> learner = OnlineOffPolicyReturn(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> _ = [learner.update(0.0, 0, ratio=2.0), learner.update(1.0, None, ratio=0.0)]
    >>> learner.weights   # the target policy would not have gone there
    array([0.])
    """

    def _step(self, k: int) -> float:
        """The step-size of the update of S_k, without the features."""
        return self.alphas[k] * self.ratios[k]

    def _aside(self, k: int) -> np.ndarray | float:
        """A further term of the update of S_k, the same at every horizon."""
        return 0.0

    def _redone(self) -> np.ndarray:
        w = self._first_weights.copy()
        targets = off_policy_lambda_returns(
            self.rewards, self.discounts, self.trace_decays, self.ratios, self.next_values
        )
        for k, target in enumerate(targets):
            w = w + self._step(k) * (target - w @ self.x[k]) * self.x[k] + self._aside(k)
        return w

    def _trace(self) -> np.ndarray:
        """e_t = Σ_{i=0}^{t} (∏_{j=i+1}^{t} γ_jλ_jρ_j) A_{i+1}^{t} β_iφ_i, with A_j = I − β_jφ_jφ_jᵀ and β_j = α_jρ_j."""
        moves = [self._step(k) * phi for k, phi in enumerate(self.x)]
        return dutch_trace(self.x, self._carried(), moves, self.n_features)


def off_policy_lambda_returns(
    rewards: list[float], discounts: list[float], trace_decays: list[float], ratios: list[float], next_values: list[float]
) -> list[float]:
    """Compute the off-policy interim λ-returns G_k^{λρ|h} of S_k, for k = 0, …, h − 1 and the latest horizon h.

    G_k^{λρ|h} = R_{k+1} + γ_{k+1} ((1 − λ_{k+1}) V_{k+1} + λ_{k+1} (ρ_{k+1} G_{k+1}^{λρ|h} + (1 − ρ_{k+1}) V_{k+1}))
    G_{h−1}^{λρ|h} = R_h + γ_h V_h,   with V_{k+1} = V(S_{k+1} | w_k)

    Parameters
    ----------
    rewards : list of float
        `rewards[t]` is R_{t+1}. There are h of them.
    discounts : list of float
        `discounts[t]` is γ_{t+1}.
    trace_decays : list of float
        `trace_decays[t]` is λ_{t+1}.
    ratios : list of float
        `ratios[t]` is ρ_t.
    next_values : list of float
        `next_values[t]` is V(S_{t+1} | w_t).

    Returns
    -------
    list of float
        The return of each state.

    Examples
    --------
    >>> off_policy_lambda_returns([1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [9.0, 0.5], [4.0, 8.0])   # 1 + (9/2 + 4/2)
    [7.5, 9.0]
    """
    h = len(rewards)
    G = [0.0] * h
    for k in reversed(range(h)):
        value = next_values[k]
        if k == h - 1:
            G[k] = rewards[k] + discounts[k] * value
            continue
        lam, rho = trace_decays[k], ratios[k + 1]
        later = rho * G[k + 1] + (1.0 - rho) * value
        G[k] = rewards[k] + discounts[k] * ((1.0 - lam) * value + lam * later)
    return G


def accumulated(x: list[np.ndarray], carried: np.ndarray, entering: np.ndarray, j: int, n: int) -> np.ndarray:
    """Σ_{i=0}^{j} (c_{i+1} ⋯ c_j) b_iφ_i for the factors c and b: an accumulating trace."""
    total = np.zeros(n)
    along = 1.0  # c_{i+1} ⋯ c_j
    for i in reversed(range(j + 1)):
        total += along * entering[i] * x[i]
        along *= carried[i]
    return total


def dutch_trace(x: list[np.ndarray], carried: np.ndarray, moves: list[np.ndarray], n: int) -> np.ndarray:
    """Σ_{i=0}^{t} (c_{i+1} ⋯ c_t) (I − m_tφ_tᵀ) ⋯ (I − m_{i+1}φ_{i+1}ᵀ) m_i, one factor after the other.

    m_i is φ_i times its step-size, or the step-sizes of all features.
    """
    total = np.zeros(n)
    for i, move in enumerate(moves):
        term = move
        for j in range(i + 1, len(x)):
            term = carried[j] * (term - (x[j] @ term) * moves[j])
        total += term
    return total
