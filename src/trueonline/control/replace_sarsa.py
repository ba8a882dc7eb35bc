"""Sarsa(λ) with replacing traces, for binary features (Singh and Sutton 1996; section 2.3 of van Seijen et al. 2016).

    δ ← R + γ wᵀψ(S', A') − wᵀψ(S, A)
    e[i] ← γλe[i] where ψ[i] = 0, and 1 where ψ[i] = 1
    w ← w + αδe

With `clear_others`, the traces of the active features are set to 0 in the blocks of the other actions (the variant that
Singh and Sutton recommend): e(s, b) ← 0 for b ≠ A. Departures: γ and λ may differ from state to state, and α from step to
step.
"""

from __future__ import annotations

from typing import Any

from trueonline.control.agent import Agent
from trueonline.core.forms import Chosen
from trueonline.core.kernels import kernel
from trueonline.core.memory import decay, erase, learn, recall, replace
from trueonline.methods import replace_td


@kernel
def replace_clearing(memory, v_old, x, reward, x_next, alpha, gamma, gamma_next, lam):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v  # δ ← R + γ wᵀψ' − wᵀψ
    decay(memory, gamma * lam)  # e ← γλe, but …
    for other in range(x.actions):
        if other != x.action:
            erase(memory, Chosen(x.features, x.actions, other, x.size))  # … 0 for other actions in this state …
    replace(memory, x)  # … and 1 where ψ[i] = 1
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next


class ReplaceSarsa(Agent):
    """Sarsa(λ) with replacing traces, for binary features. `clear_others=True` clears the other actions' traces.

    >>> agent = ReplaceSarsa(1, 2, step_size=0.5, trace_decay=1.0, discount=1.0, clear_others=True,
    ...                      policy=lambda q, rng, t: t % 2)
    >>> agent.start(0), agent.step(0.0, 0), agent.end(1.0)
    (0, 1, None)
    >>> agent.trace, agent.weights
    (array([[0., 1.]]), array([[0. , 0.5]]))
    """

    binary = True
    options = ("clear_others",)
    clear_others: bool

    def _rule(self) -> tuple[Any, Any]:
        return (replace_clearing if self.clear_others else replace_td,) * 2
