"""True online differential Sarsa(λ), for continuing tasks without discount (after Wan, Naik and Sutton 2021).

    Q ← wᵀψ;  Q' ← wᵀψ';  δ ← R − R̄ + Q' − Q
    e ← λe + αψ − αλ(eᵀψ)ψ
    w ← w + (δ + Q − Q_old)e − α(Q − Q_old)ψ
    R̄ ← R̄ + βδ;  Q_old ← Q'

That is true online differential TD(λ) over ψ(s, a). With λ = 0 it is the differential semi-gradient Sarsa of Sutton and Barto
(2018, section 10.3). Departures: γ may be below 1, which makes it reward centering, and γ, λ, α and β may differ from step to
step.
"""

from __future__ import annotations

from trueonline.catalog import METHODS
from trueonline.control.agent import Agent
from trueonline.inputs import with_defaults
from trueonline.learners.average_reward import WithRewardRate
from trueonline.learners.docstrings import AGENT, NO_ADAPTATION, SECOND


class TrueOnlineDifferentialSarsa(WithRewardRate, Agent):
    """True online differential Sarsa(λ): an agent that learns to maximise the mean reward of a step.

    `reward_rate` is its estimate R̄ of that mean. `second_step_size` is β of R̄ ← R̄ + βδ. `discount` is 1 by default. The trace
    carries the step-size within it. There is no step-size adaptation.

    Examples
    --------
    >>> agent = TrueOnlineDifferentialSarsa(1, 2, step_size=0.1, trace_decay=0.5, second_step_size=0.05, seed=0)
    >>> action = agent.start(0)
    >>> for _ in range(2_000):                       # one state; action 1 pays 1, action 0 nothing
    ...     action = agent.step(float(action), 0)
    >>> agent.values(0).argmax(), round(agent.reward_rate, 1)   # ε = 0.1: 95 % of the steps pay
    (np.int64(1), 0.9)
    """

    _shared_parameters = AGENT + SECOND + NO_ADAPTATION
    method = METHODS["true_online_differential_sarsa"]

    __init__ = with_defaults(Agent.__init__, "options", discount=1.0)
