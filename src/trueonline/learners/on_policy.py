"""The prediction methods of the paper, and Monte Carlo, as learners."""

from __future__ import annotations

from trueonline.catalog import METHODS
from trueonline.learners.memory_learner import MemoryLearner


class AccumulateTD(MemoryLearner):
    """TD(λ) with accumulating traces (Algorithm 1).

    The method approximates the online λ-return algorithm as α → 0 (Theorem 1). It can diverge for large α and λ. The property
    `diverged` says whether it has.

    Examples
    --------
    >>> learner = AccumulateTD(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> learner.update(0.0, 1), learner.update(1.0, None)
    (0.0, 1.0)
    >>> learner.weights
    array([0.5, 0.5])
    """

    method = METHODS["accumulate"]


class ReplaceTD(MemoryLearner):
    """TD(λ) with replacing traces, for binary features (section 2.3).

    Examples
    --------
    >>> learner = ReplaceTD(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.run([0, 0, 0], rewards=[0.0, 1.0], discounts=[1.0, 0.0])
    array([0., 0.])
    >>> learner.weights, learner.trace
    (array([0.5]), array([1.]))
    """

    method = METHODS["replace"]


class TrueOnlineTD(MemoryLearner):
    """True online TD(λ): the online λ-return algorithm, exactly, at every step (Algorithm 2).

    With a schedule as step-size the method is Algorithm 4, exact under any sequence, and `trace` is e⁺. With one integer as
    features, the state, it is the tabular method (Algorithm 6).

    Examples
    --------
    >>> learner = TrueOnlineTD(n_features=3, step_size=lambda t: 1.0 / (t + 1), trace_decay=0.9, discount=1.0)
    >>> values = learner.run([0, 1, 2, 2], rewards=[1.0, 1.0, 1.0], discounts=[1.0, 1.0, 0.0])
    >>> learner.weights.round(3)
    array([2.71 , 0.95 , 0.333])
    """

    method = METHODS["true_online"]


class MonteCarlo(MemoryLearner):
    """Monte Carlo prediction with dutch traces: no bootstrapping, in constant memory (van Hasselt and Sutton 2015).

    At the end of an episode the weights are those of storing the episode and updating each of its states towards its return. Before
    the end they are as if the episode ended now. `trace_decay` has no meaning here and is ignored.

    Examples
    --------
    >>> learner = MonteCarlo(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> _ = learner.update(1.0, 1), learner.update(1.0, None)
    >>> learner.weights
    array([1. , 0.5])
    """

    method = METHODS["monte_carlo"]


class TDStar(MemoryLearner):
    """TD*(λ) (after Schapire and Warmuth 1996): TD(λ) whose errors consist of the predictions that are made.

    The value of the state entered is that of the weights after the step. `update` returns the TD error of the weights before it, as
    every learner does.

    Examples
    --------
    >>> learner = TDStar(n_features=1, step_size=0.5, trace_decay=0.0, discount=0.5)
    >>> learner.start(0)
    >>> learner.update(3.0, 0)
    3.0
    >>> learner.weights   # w' = 0.5 (3 + 0.5 w')
    array([2.])
    """

    method = METHODS["td_star"]
