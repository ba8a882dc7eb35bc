"""True online differential TD(λ), by its definition: the online λ-return algorithm for rewards above the estimated reward rate."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from trueonline.forward.interim_returns import interim_lambda_return
from trueonline.forward.off_policy_returns import SecondStepDefinition, dutch_trace


class DifferentialDefinition(SecondStepDefinition):
    """A history with the estimates of the reward rate, R̄. It begins at 0 and is learned across episodes, as w is.

        δ_t = R_{t+1} − R̄_t + γ_{t+1} V(S_{t+1} | w_t) − V(S_t | w_t),   R̄_{t+1} = R̄_t + β_tρ_tδ_t

    ρ_t is 1 for methods without importance ratios.
    """

    takes: ClassVar[Collection[str]] = ("ratio",)
    more_scalars = ("reward_rates",)
    reward_rates: list[float]  # R̄_0, R̄_1, …: each from before its transition

    @property
    def reward_rate(self) -> float:
        """R̄, the estimate of the mean reward of a step."""
        return self._reward_rate

    def reset(self) -> None:
        self._reward_rate = 0.0
        super().reset()

    def _more(self) -> dict[str, Any]:
        return {**super()._more(), "reward_rates": self._reward_rate}

    def _learned(self, delta: float, rho: float) -> float:
        delta -= self._reward_rate
        self._reward_rate += self._coming_beta * rho * delta
        return delta


class OnlineDifferentialReturn(DifferentialDefinition):
    """At every time t, redo all updates of the episode with the interim λ-returns of horizon t, of rewards R_{k+1} − R̄_k.

        w_{k+1}^t = w_k^t + α_k (G_k^{λ|t} − (w_k^t)ᵀφ_k) φ_k   for 0 ≤ k < t,   w_t = w_t^t

    R̄_k is the estimate from before transition k, and no later horizon changes it.

    Examples
    --------
    >>> learner = OnlineDifferentialReturn(1, step_size=0.5, trace_decay=1.0, discount=1.0, second_step_size=0.5)
    >>> learner.start(0)
    >>> [learner.update(2.0, 0), learner.update(2.0, 0)]   # R̄ is 0, then 1
    [2.0, 1.0]
    >>> learner.reward_rate
    1.5
    """

    takes = ()

    def _redone(self) -> np.ndarray:
        above = np.subtract(self.rewards, self.reward_rates)
        history = above, *(np.array(part) for part in (self.discounts, self.trace_decays, self.next_values))
        w = self._first_weights.copy()
        for k, phi in enumerate(self.x):
            target = interim_lambda_return(k, len(above), *history)
            w += self.alphas[k] * (target - w @ phi) * phi
        return w

    def _trace(self) -> np.ndarray:
        """e⁺ of the online λ-return algorithm, whose terms carry α_i."""
        moves = [alpha * phi for alpha, phi in zip(self.alphas, self.x, strict=True)]
        return dutch_trace(self.x, self._decays(), moves, self.n_features)
