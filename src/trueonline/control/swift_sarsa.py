"""Swift-Sarsa (Javed and Sutton 2025): SwiftTD over ψ(s, a).

The rule is that of `methods.swift_td`, with its departures. Each pair of a feature and an action has a weight and a step-size.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from trueonline.catalog import METHODS
from trueonline.control.agent import Agent
from trueonline.control.policies import Policy
from trueonline.inputs import explains_arguments
from trueonline.learners.docstrings import AGENT, with_learned_step_sizes
from trueonline.learners.swift import LearnedStepSizes, checked, refuse_schedule


class SwiftSarsa(LearnedStepSizes, Agent):
    """Swift-Sarsa: SwiftTD over block features, which learns a step-size for each feature and action.

    Examples
    --------
    >>> agent = SwiftSarsa(1, 1, step_size=0.5, trace_decay=1.0, discount=1.0, bound=0.5)
    >>> agent.start(0), agent.step(0.0, 0), agent.end(1.0)
    (0, 0, None)
    >>> agent.weights   # two updates towards the return 1
    array([[0.75]])
    """

    _shared_parameters = with_learned_step_sizes(AGENT)
    method = METHODS["swift_sarsa"]

    @explains_arguments
    def __init__(
        self,
        n_features: int,
        n_actions: int,
        step_size: float,
        trace_decay: float,
        discount: float,
        policy: Policy | None = None,
        *,
        seed: Any = None,
        initial_weights: ArrayLike | None = None,
        bound: float = 0.1,
        decay: float = 0.999,
        meta_step_size: float = 0.001,
        min_step_size: float = 1e-10,
    ) -> None:
        self._learned = checked(bound, decay, meta_step_size, min_step_size)
        refuse_schedule("SwiftSarsa", step_size)
        Agent.__init__(
            self,
            n_features,
            n_actions,
            step_size,
            trace_decay,
            discount,
            policy,
            seed=seed,
            initial_weights=initial_weights,
        )
