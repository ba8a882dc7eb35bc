"""Watkins's Q(λ) with accumulating traces (Watkins 1989; section 6.2).

    δ ← R + γ max_a wᵀψ(S', a) − wᵀψ(S, A)
    e ← γλe + ψ(S, A)
    w ← w + αδe
    if A' is not greedy: e ← 0

The trace is cut when the *next* action, to be executed in S', is not greedy. An action that ties for the best is greedy (within
1e-10, relative to the best value, or absolute below 1). After a cut no return is followed beyond S', as with λ = 0 in S'. So
the rule is accumulate TD(λ) with the λ of S' set to 0. The δ that the paper prints lacks γ and has S_t in place of S_{t+1}. The
forward view needs the δ above.
"""

from __future__ import annotations

from trueonline.catalog import METHODS
from trueonline.control.agent import Agent


class WatkinsQ(Agent):
    """Watkins's Q(λ) with accumulating traces.

    Examples
    --------
    >>> agent = WatkinsQ(2, 2, step_size=0.5, trace_decay=1.0, discount=1.0, initial_weights=[[0, 0], [0, 4]],
    ...                  policy=lambda q, rng, t: 0)
    >>> agent.start(0), agent.step(0.0, 1)   # action 0 is not greedy in state 1: nothing later teaches state 0
    (0, 0)
    >>> agent.end(1.0); agent.weights
    array([[2. , 0. ],
           [0.5, 4. ]])
    """

    method = METHODS["watkins_q"]
