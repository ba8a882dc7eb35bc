"""Off-policy learners: they learn about one policy while another one acts (section 7 of the paper).

These are gradient, emphatic and provisional methods. Their transitions may carry `ratio`, the importance ratio of the action taken.
"""

from __future__ import annotations

import numpy as np

from trueonline.catalog import METHODS
from trueonline.core import memory, two_traces
from trueonline.inputs import Schedule, read_only
from trueonline.learners.memory_learner import MemoryLearner


class EmphaticTD(MemoryLearner):
    """Emphatic TD(λ) (Sutton, Mahmood and White 2016): a state is updated in proportion to its emphasis.

    Transitions may carry `interest`, how much the state left matters.

    Examples
    --------
    >>> learner = EmphaticTD(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> learner.update(1.0, None, interest=0.5)
    1.0
    >>> learner.weights
    array([0.25])
    """

    method = METHODS["emphatic"]


class TrueOnlineEmphaticTD(MemoryLearner):
    """True online emphatic TD(λ) (Sutton 2015): equal to its forward view at every step.

    Transitions may carry `interest`, how much the state left matters.
    """

    method = METHODS["true_online_emphatic"]


class WithSecondWeights:
    """The second weights h of gradient methods, and their step-size."""

    @property
    def second_step_size(self) -> float | Schedule:
        """β, or its schedule."""
        return self._second_step_size  # type: ignore[attr-defined]

    @property
    def second_weights(self) -> np.ndarray:
        """A dense, read-only copy of h."""
        return read_only(memory.weights(self._each()[1]))  # type: ignore[attr-defined]


class GTD(WithSecondWeights, MemoryLearner):
    """GTD(λ) (Maei 2011): off-policy, with second weights that correct the gradient.

    Examples
    --------
    >>> learner = GTD(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0, second_step_size=0.5)
    >>> learner.start(0)
    >>> learner.update(1.0, None, ratio=0.5)
    1.0
    >>> learner.weights, learner.second_weights
    (array([0.25]), array([0.25]))
    """

    method = METHODS["gtd"]


class TrueOnlineGTD(WithSecondWeights, MemoryLearner):
    """True online GTD(λ) (van Hasselt, Mahmood and Sutton 2014): equal to its forward view at every step."""

    method = METHODS["true_online_gtd"]


class WithProvisionalWeights:
    """The provisional weights of provisional methods."""

    @property
    def provisional_weights(self) -> np.ndarray:
        """A dense, read-only copy of u. The next action's ratio ρ changes w by (ρ − 1)u, and so by −u if ρ = 0."""
        return read_only(two_traces.owed(self._memory.numbers, *self._each()))  # type: ignore[attr-defined]


class ProvisionalTD(WithProvisionalWeights, MemoryLearner):
    """Provisional TD(λ) (after Sutton, Mahmood, Precup and van Hasselt 2014): equal to its interim forward view at every step.

    The method takes back what the target policy would not have done. The trace carries the step-size within it. The equations were
    derived here, from the forward views in `forward.provisional_views`, without the text of the paper.

    Examples
    --------
    >>> learner = ProvisionalTD(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0, initial_weights=[0.0, 8.0])
    >>> learner.start(0)
    >>> learner.update(0.0, 1)
    8.0
    >>> learner.weights, learner.provisional_weights
    (array([4., 8.]), array([4., 0.]))
    >>> _ = learner.update(0.0, None, ratio=0.0)   # the target policy would not have done this
    >>> learner.weights
    array([0., 8.])
    """

    method = METHODS["provisional_td"]


class ProvisionalQ(WithProvisionalWeights, MemoryLearner):
    """Provisional Q(λ): provisional TD(λ) for action values.

    Features are those of a state and the action taken there. A transition also has φ̄', the mean of the features of the state
    entered over the actions of the target policy. With a greedy target policy these are the features of the best action. By
    default φ̄' is `x_next`.

    Examples
    --------
    >>> learner = ProvisionalQ(n_features=4, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> learner.update(1.0, 3, x_expected=([2, 3], [0.5, 0.5]), ratio=1.0)
    1.0
    >>> learner.weights
    array([0.5, 0. , 0. , 0. ])
    """

    method = METHODS["provisional_q"]
