"""Learners towards averages of n-step returns other than the λ-return. They have no known backward view (see `derive`)."""

from __future__ import annotations

from abc import abstractmethod
from types import MappingProxyType
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.forward.base import SCALARS, VECTORS, Definition
from trueonline.forward.interim_returns import first_shares, gamma_shares, n_step_returns, omega_shares

# --- Options --------------------------------------------------------------------------------------


def _numbers(name: str, value: Any, wanted: str, dimensions: int) -> np.ndarray:
    """A read-only copy of finite numbers."""
    array = inputs.as_array(name, value)
    if array.dtype.kind not in "fiu" or array.ndim != dimensions or not array.size or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {wanted}, got {_shown(value)}")
    return inputs.read_only(array.astype(np.float64))


def _summing_to_one(name: str, value: Any) -> np.ndarray:
    array = _numbers(name, value, "finite numbers that sum to 1, the first for the one-step return", 1)
    if abs(array.sum() - 1.0) > 1e-9:
        raise ValueError(f"{name} must sum to 1, got a sum of {array.sum():g}: divide them by it")
    return array


def _covariance(name: str, value: Any) -> np.ndarray:
    wanted = "a symmetric positive definite matrix"
    array = _numbers(name, value, wanted, 2)
    if array.shape[0] != array.shape[1] or not np.allclose(array, array.T, rtol=1e-9, atol=0.0):
        raise ValueError(f"{name} must be {wanted}, got {_shown(value)}")
    values = np.linalg.eigvalsh(array)
    if not values[0] > 1e-12 * values[-1]:
        raise ValueError(
            f"{name} must be {wanted}, got one with the eigenvalue {values[0]:g}: add a little to its diagonal"
        )
    return array


def _shown(value: Any) -> str:
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _capacity(name: str, value: Any) -> int | None:
    return None if value is None else inputs.count(name, value)


# --- Learners -------------------------------------------------------------------------------------


class AverageReturn(Definition):
    """At every time t, redo all updates of the episode with averages of the n-step returns that are known at t.

        w_{k+1}^t = w_k^t + α_k (G_k^{|t} − (w_k^t)ᵀφ_k) φ_k   for 0 ≤ k < t,   w_t = w_t^t
        G_k^{|h} = Σ_{n=1}^{h−k} s_n G_k^{(n)},   Σ_n s_n = 1

    A subclass defines the shares s. With the geometric shares of λ this is `OnlineLambdaReturn`. With `offline=True` every state
    is updated once, at the end of the episode, as in `OfflineLambdaReturn`. Options are keywords, or attributes of a subclass.
    Sweeps take classes, so for them an option is an attribute.

    Time and memory per step grow with the episode. If no return of more than N steps has a share, they grow with N only, because a
    target is final after N steps. λ is ignored unless the shares depend on it.

    Parameters
    ----------
    offline : bool, optional
        Whether to update at the end of the episode only. False by default.

    Examples
    --------
    >>> class FourSteps(NStepReturn):
    ...     n = 4
    >>> FourSteps(n_features=2, step_size=0.1, trace_decay=0.0, discount=1.0)
    FourSteps(n_features=2, step_size=0.1, trace_decay=0.0, discount=1.0, offline=False, n=4)
    """

    options = MappingProxyType({"offline": inputs.flag})
    offline: bool = False

    @abstractmethod
    def _shares(self, discounts: np.ndarray, trace_decays: np.ndarray) -> np.ndarray:
        """s_1, …, s_{h−k}, from γ_{k+1}, …, γ_h and λ_{k+1}, …, λ_h; at most `reach` of them."""

    @property
    def reach(self) -> int | None:
        """N, if no return of more than N steps ever has a share; otherwise None."""
        return None

    def _weights_now(self) -> np.ndarray:
        return self._weights if self.offline else self._sweep()

    def _weights_at_end(self) -> np.ndarray:
        return self._sweep() if self.offline else self._weights

    def _sweep(self) -> np.ndarray:
        """One update for every state of the history. Final updates leave the history."""
        h, reach = len(self.rewards), self.reach
        rewards, discounts, trace_decays, next_values = (
            np.array(part) for part in (self.rewards, self.discounts, self.trace_decays, self.next_values)
        )
        final = 0 if reach is None else max(h - reach + 1, 0)  # S_k for k ≤ h − N
        w = self._first_weights.copy()
        for k in range(h):
            if k == final > 0:
                self._first_weights = w.copy()
            known = h if reach is None else min(h, k + reach)
            shares = self._shares(discounts[k:known], trace_decays[k:known])
            target = float(shares @ n_step_returns(k, known, rewards, discounts, next_values))
            w += self.alphas[k] * (target - w @ self.x[k]) * self.x[k]
        if final == h:
            self._first_weights = w.copy()
        for name in (*VECTORS, *SCALARS, "goes_on"):
            del getattr(self, name)[:final]
        return w

    def _dump(self) -> dict[str, np.ndarray]:
        options = {name: getattr(self, name) for name in self.options}
        return super()._dump() | {
            f"option_{name}": np.zeros(0) if value is None else np.array(value) for name, value in options.items()
        }

    def _restore(self, parts: dict[str, np.ndarray]) -> None:
        found = {name: parts[f"option_{name}"] for name in self.options}
        self._take({name: None if part.size == 0 else part if part.ndim else part.item() for name, part in found.items()})
        super()._restore(parts)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={_shown(getattr(self, name))}" for name in self.options)
        return f"{super().__repr__()[:-1]}, {options})"


class GammaReturn(AverageReturn):
    """The γ-return of TD_γ (Konidaris, Niekum and Thomas 2011): the larger the variance of a return, the smaller its share.

        s_n ∝ 1 / Σ_{i=1}^{n} ∏_{j=1}^{i−1} γ_{k+j}²,   with a constant γ  1 / Σ_{i=1}^{n} γ^{2(i−1)}

    λ is ignored. Every return that is added changes the shares of all returns. So every update changes at every step.

    Parameters
    ----------
    offline : bool, optional
        Whether to update at the end of the episode only. False by default.
    capacity : int, optional
        C, the number of returns that are averaged, the target of TD_γ(C). All by default.

    Examples
    --------
    >>> learner = GammaReturn(n_features=2, step_size=1.0, trace_decay=0.0, discount=1.0)
    >>> learner.start(0)
    >>> _ = [learner.update(0.0, 1), learner.update(1.0, None)]
    >>> learner.weights   # of the first state, 2/3 · 0 + 1/3 · 1
    array([0.33333333, 1.        ])
    """

    options = MappingProxyType({"offline": inputs.flag, "capacity": _capacity})
    capacity: int | None = None

    @property
    def reach(self) -> int | None:
        return self.capacity

    def _shares(self, discounts: np.ndarray, trace_decays: np.ndarray) -> np.ndarray:
        return gamma_shares(discounts)


class ComplexReturn(AverageReturn):
    """An average of n-step returns by given shares s_1, …, s_N, which sum to 1.

    If fewer returns are known, the longest gets the shares of all longer ones. λ is ignored.

    Parameters
    ----------
    offline : bool, optional
        Whether to update at the end of the episode only. False by default.
    shares : array_like, optional
        The shares s_1, …, s_N. The one-step return gets everything by default.

    Examples
    --------
    >>> ComplexReturn(n_features=1, step_size=0.1, trace_decay=0.0, discount=1.0, shares=[0.5, 0.0, 0.5]).reach
    3
    """

    options = MappingProxyType({"offline": inputs.flag, "shares": _summing_to_one})
    shares: Any = (1.0,)

    @property
    def reach(self) -> int | None:
        return len(self.shares)

    def _shares(self, discounts: np.ndarray, trace_decays: np.ndarray) -> np.ndarray:
        return first_shares(self.shares, len(discounts))


class NStepReturn(AverageReturn):
    """The n-step return alone, or the longest return that is known: n-step TD as an online forward view.

    λ is ignored. In the n-step TD of the textbooks S_k waits for n steps and is updated once. Here S_k has an update from the first
    step on, and the update is redone until n steps have passed. With n = 1 the two methods are the same.

    Parameters
    ----------
    offline : bool, optional
        Whether to update at the end of the episode only. False by default.
    n : int, optional
        The number of steps. 1 by default, TD(0).
    """

    options = MappingProxyType({"offline": inputs.flag, "n": inputs.count})
    n: int = 1

    @property
    def reach(self) -> int | None:
        return self.n

    def _shares(self, discounts: np.ndarray, trace_decays: np.ndarray) -> np.ndarray:
        return np.concatenate((np.zeros(len(discounts) - 1), [1.0]))


class OmegaReturn(AverageReturn):
    """The Ω-return (Thomas, Niekum, Theocharous and Konidaris 2015): the average of least variance, for a given covariance.

        s = Ω_L⁻¹1 / (1ᵀΩ_L⁻¹1),   L = min(N, h − k)

    Ω_L is the part of Ω for the first L returns. The paper approximates Ω. Here Ω is given and is the same for all states.
    λ is ignored.

    Parameters
    ----------
    offline : bool, optional
        Whether to update at the end of the episode only. False by default.
    covariance : array_like, optional
        Ω, the covariance of the returns of 1, …, N steps, a symmetric positive definite matrix. N is 1 by default.

    Examples
    --------
    >>> OmegaReturn(n_features=1, step_size=0.1, trace_decay=0.0, discount=1.0, covariance=[[1.0, 0.5], [0.5, 2.0]]).reach
    2
    """

    options = MappingProxyType({"offline": inputs.flag, "covariance": _covariance})
    covariance: Any = ((1.0,),)

    @property
    def reach(self) -> int | None:
        return len(self.covariance)

    def _shares(self, discounts: np.ndarray, trace_decays: np.ndarray) -> np.ndarray:
        return omega_shares(self.covariance[: len(discounts), : len(discounts)])
