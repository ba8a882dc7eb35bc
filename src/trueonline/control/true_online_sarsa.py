"""True online Sarsa(λ): equal to the online λ-return algorithm over ψ(s, a) at every step (Algorithm 3).

    Q ← wᵀψ;  Q' ← wᵀψ';  δ ← R + γQ' − Q
    e ← γλe + ψ − αγλ(eᵀψ)ψ
    w ← w + α(δ + Q − Q_old)e − α(Q − Q_old)ψ
    Q_old ← Q'

That is true online TD(λ) over ψ(s, a). Departures: γ and λ may differ from state to state; with a schedule as step-size it
is Algorithm 4 over ψ(s, a), exact under any sequence.
"""

from __future__ import annotations

from trueonline.catalog import METHODS
from trueonline.control.agent import Agent


class TrueOnlineSarsa(Agent):
    """True online Sarsa(λ) (Algorithm 3).

    Examples
    --------
    >>> agent = TrueOnlineSarsa(1, 1, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> agent.start(0), agent.step(0.0, 0), agent.end(1.0)
    (0, 0, None)
    >>> agent.weights   # two updates towards the return 1
    array([[0.75]])
    """

    method = METHODS["true_online_sarsa"]
