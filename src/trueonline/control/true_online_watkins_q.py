"""The true online version of Watkins's Q(λ) (Algorithm 5): equal to its growing update target at every step.

    A* ← argmax_a wᵀψ(S', a)
    Q ← wᵀψ(S, A);  Q' ← wᵀψ(S', A*);  δ ← R + γQ' − Q
    e ← γλe + ψ − αγλ(eᵀψ)ψ
    w ← w + α(δ + Q − Q_old)e − α(Q − Q_old)ψ
    if A' is not greedy (does not tie for the best, within 1e-10): e ← 0
    Q_old ← Q'

The forward view is U_t^h of section 6.2, whose target stops growing at the first non-greedy action after t.

Departures from the printed algorithm, which carries ψ(S', A*) into the next step even when A' ≠ A* was taken: the forward
view updates ψ(S_t, A_t), so the next step's features are those of the action taken. Q_old needs no such care: it is the
value that was bootstrapped from, and cancels where the trace was cut. The cut itself is λ = 0 in S'. γ and λ may differ from
state to state, and with a schedule as step-size the equality holds under any sequence.
"""

from __future__ import annotations

from trueonline.catalog import METHODS
from trueonline.control.agent import Agent


class TrueOnlineWatkinsQ(Agent):
    """The true online version of Watkins's Q(λ) (Algorithm 5).

    Examples
    --------
    >>> agent = TrueOnlineWatkinsQ(1, 2, step_size=0.5, trace_decay=1.0, discount=1.0, policy=lambda q, rng, t: 0)
    >>> agent.start(0), agent.step(1.0, 0), agent.end(0.0)
    (0, 0, None)
    >>> agent.weights
    array([[0.25, 0.  ]])
    """

    method = METHODS["true_online_watkins_q"]
