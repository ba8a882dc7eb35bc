"""Agents that learn about one policy while another acts: Expected Sarsa(λ), Tree Backup(λ) and GQ(λ).

    V̄' ← Σ_a π(a|S')Q(S', a);  δ ← R + γV̄' − Q(S, A)
    e ← γλκe + ψ(S, A),  with κ = π(A|S) / b(A|S), or π(A|S) for Tree Backup(λ)
    w ← w + αδe − αγ(1 − λ)(hᵀe)ψ̄',  with ψ̄' = Σ_a π(a|S')ψ(S', a), and h = 0 except for GQ(λ)
    h ← h + βδe − β(hᵀψ)ψ

Those are rules of prediction over ψ(s, a). `Averaged` makes ψ̄' inside the kernel. π is ε-greedy by the current values, with
ε = `target_epsilon`. b(a|S) of the behaviour is what `policy.probabilities` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from trueonline import inputs
from trueonline.catalog import METHODS
from trueonline.control.agent import Agent
from trueonline.control.policies import EpsilonGreedy, Policy
from trueonline.core.compiling.kernels import call
from trueonline.core.transition import PI, RHO, asked
from trueonline.inputs import Features, Schedule, explains_arguments
from trueonline.learners.docstrings import AGENT, NO_ADAPTATION, SECOND, TARGET


class OffPolicyAgent(Agent):
    """An agent whose target policy is ε-greedy, whatever its behaviour."""

    _shared_parameters = AGENT + TARGET + SECOND + NO_ADAPTATION
    has_target = True
    _more_settings: ClassVar[tuple[str, ...]] = (*Agent._more_settings, "target_epsilon")
    target_epsilon: float
    _chances: np.ndarray  # of all actions in the state entered last, under the target policy
    _taken = _coming = (1.0, 1.0)  # ρ and π of the action taken last, and of the action chosen

    @explains_arguments
    def __init__(
        self,
        n_features: int,
        n_actions: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        policy: Policy | None = None,
        *,
        target_epsilon: float = 0.0,
        seed: Any = None,
        initial_weights: ArrayLike | None = None,
        second_step_size: float | Schedule | None = None,
        bound: float | None = None,
        meta_step_size: float | None = None,
    ) -> None:
        self.target_epsilon = inputs.unit("target_epsilon", target_epsilon)
        numbers: Any = (n_features, n_actions, step_size, trace_decay, discount, policy)
        more: Any = {"second_step_size": second_step_size, "bound": bound, "meta_step_size": meta_step_size}
        Agent.__init__(self, *numbers, seed=seed, initial_weights=initial_weights, **more)
        if self._needs_behaviour and not hasattr(self.policy, "probabilities"):
            raise TypeError(
                f"the policy of {type(self).__name__} must say its probabilities: give it a method probabilities(values, t), which "
                f"returns the probability of each action; got {policy!r}"
            )

    @property
    def _needs_behaviour(self) -> bool:
        return "rho" in asked(self.method.resolve("rule"))

    def _choose(self, t: int) -> int:
        action = Agent._choose(self, t)
        self._chances = EpsilonGreedy(self.target_epsilon).probabilities(self._q, t)
        pi = float(self._chances[action])
        b = float(self.policy.probabilities(self._q.copy(), t)[action]) if self._needs_behaviour else 1.0  # type: ignore[attr-defined]
        if not 0.0 < b <= 1.0 + 1e-9:
            raise ValueError(f"the policy chose action {action}, whose probability must be in (0, 1], and it says {b!r}")
        self._coming = pi / b, pi
        return action

    def _stand(self, x: Features, action: int) -> None:
        Agent._stand(self, x, action)
        self._taken = self._coming

    def _transition(
        self, here: Features, action: int, reward: float, x: Features, following: int, numbers: np.ndarray
    ) -> None:
        numbers[[RHO, PI]] = self._taken
        now = inputs.given(inputs.like(here, x, self.n_features))
        entry, then = self._entries.transition_expected, inputs.given(x)
        call(entry, *self._memory, *now, action, reward, *then, self._q, self._chances, following, numbers)

    def _settings(self) -> dict[str, Any]:
        return {**Agent._settings(self), "target_epsilon": self.target_epsilon}

    def _dump(self) -> dict[str, np.ndarray]:
        return {**Agent._dump(self), "taken": np.array(self._taken)}

    def _restore(self, parts: dict[str, np.ndarray], rng: Mapping[str, Any], action: int | None) -> None:
        rho, pi = inputs.saved_array(parts, "taken", (2,), np.float64).tolist()
        inputs.check_saved({"taken": 0.0 <= rho < np.inf and 0.0 <= pi <= 1.0})
        self._coming, self._chances = (rho, pi), np.zeros(self.n_actions)
        Agent._restore(self, parts, dict(rng), action)


class ExpectedSarsa(OffPolicyAgent):
    """Expected Sarsa(λ): it bootstraps from the mean value of the next state under the target policy, not from one action.

    With `target_epsilon` = ε of an ε-greedy `policy` it is on-policy, and its updates have less variance than those of Sarsa(λ).
    With λ = 0 and `target_epsilon` = 0 it is Q-learning.

    Examples
    --------
    >>> agent = ExpectedSarsa(2, 2, step_size=0.5, trace_decay=0.0, discount=1.0, target_epsilon=0.5, seed=0,
    ...                       initial_weights=[[0, 0], [0, 4]])
    >>> action = agent.start(0)
    >>> _ = agent.step(0.0, 1); float(agent.weights[0, action])   # half of the way to 0.25 · 0 + 0.75 · 4
    1.5
    """

    method = METHODS["expected_sarsa"]


class TreeBackupQ(OffPolicyAgent):
    """Tree Backup(λ): off-policy control without importance ratios.

    The trace is cut by the target policy's probability of each action. With a greedy target it is cut where the agent explores, as
    in Watkins's Q(λ). `policy` may be any function: its probabilities are not needed.

    Examples
    --------
    >>> agent = TreeBackupQ(2, 2, step_size=0.5, trace_decay=1.0, discount=1.0, target_epsilon=0.5, seed=0,
    ...                     initial_weights=[[0, 0], [0, 4]], policy=lambda q, rng, t: 0)
    >>> agent.start(0), agent.step(0.0, 1)
    (0, 0)
    >>> agent.end(1.0); agent.weights   # 1.5 as above, and then ½ · 0.25 of the error of 1
    array([[1.625, 0.   ],
           [0.5  , 4.   ]])
    """

    method = METHODS["tree_backup_q"]


class GQ(OffPolicyAgent):
    """GQ(λ): Expected Sarsa(λ) with second weights that correct the gradient, which keeps it stable off-policy.

    `second_step_size` is `step_size` by default.

    Examples
    --------
    >>> agent = GQ(1, 2, step_size=0.1, trace_decay=0.5, discount=0.5, seed=0, second_step_size=0.01)
    >>> action = agent.start(0)
    >>> for _ in range(5_000):                       # one state; action 1 pays 1, action 0 nothing
    ...     action = agent.step(float(action), 0)
    >>> agent.weights.round(1)
    array([[1., 2.]])
    """

    method = METHODS["gq"]
