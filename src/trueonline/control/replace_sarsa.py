"""Sarsa(λ) with replacing traces, for binary features (Singh and Sutton 1996; section 2.3 of van Seijen et al. 2016).

    δ ← R + γ wᵀψ(S', A') − wᵀψ(S, A)
    e[i] ← γλe[i] where ψ[i] = 0, and 1 where ψ[i] = 1
    w ← w + αδe

With `clear_others`, the traces of the active features are set to 0 in the blocks of the other actions (the variant that
Singh and Sutton recommend): e(s, b) ← 0 for b ≠ A. Departures: γ and λ may differ from state to state, and α from step to
step.
"""

from __future__ import annotations

from trueonline.catalog import METHODS
from trueonline.control.agent import Agent


class ReplaceSarsa(Agent):
    """Sarsa(λ) with replacing traces, for binary features.

    The option `clear_others=True` clears the traces of active features in the blocks of the other actions.

    Examples
    --------
    >>> agent = ReplaceSarsa(1, 2, step_size=0.5, trace_decay=1.0, discount=1.0, clear_others=True,
    ...                      policy=lambda q, rng, t: t % 2)
    >>> agent.start(0), agent.step(0.0, 0), agent.end(1.0)
    (0, 1, None)
    >>> agent.trace, agent.weights
    (array([[0., 1.]]), array([[0. , 0.5]]))
    """

    method = METHODS["replace_sarsa"]
    options = ("clear_others",)
    clear_others: bool

    def _choose_method(self) -> None:
        self.method = METHODS["clearing_sarsa" if self.clear_others else "replace_sarsa"]  # type: ignore[misc]
