"""Sarsa(λ) with accumulating traces (Rummery and Niranjan 1994): accumulate TD(λ) over ψ(s, a).

    δ ← R + γ wᵀψ(S', A') − wᵀψ(S, A)
    e ← γλe + ψ(S, A)
    w ← w + αδe

A' is the action that will be executed. Departures: γ and λ may differ from state to state, and α from step to step.
"""

from __future__ import annotations

from trueonline.catalog import METHODS
from trueonline.control.agent import Agent


class AccumulateSarsa(Agent):
    """Sarsa(λ) with accumulating traces.

    Examples
    --------
    >>> agent = AccumulateSarsa(2, 2, step_size=0.5, trace_decay=1.0, discount=1.0, policy=lambda q, rng, t: t % 2)
    >>> agent.start(0), agent.step(0.0, 1), agent.end(1.0)
    (0, 1, None)
    >>> agent.weights
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    method = METHODS["accumulate_sarsa"]
