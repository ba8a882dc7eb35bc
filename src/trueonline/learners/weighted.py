"""Off-policy learners by weighted importance sampling: the usage of each feature sets its step-size (Mahmood and Sutton 2015)."""

from __future__ import annotations

import numpy as np

from trueonline.catalog import METHODS
from trueonline.inputs import read_only
from trueonline.learners.memory_learner import MemoryLearner
from trueonline.learners.off_policy import WithSecondWeights


class WithUsage:
    """The usage of features."""

    @property
    def initial_step_size(self) -> float | None:
        """The step-size of each feature at first; None for the first of `step_size`."""
        return self._initial_step_size  # type: ignore[attr-defined]

    @property
    def usage(self) -> np.ndarray:
        """A dense, read-only copy of the usage of each feature. `step_sizes` are its inverses."""
        return read_only(self._used())  # type: ignore[attr-defined]


class WISTD(WithUsage, MemoryLearner):
    """WIS-TD(λ) (after Mahmood and Sutton 2015): equal to its forward view at every step.

    `step_size` is η, by which usage is forgotten. On-policy the step-size of each feature tends to it. Without `initial_step_size`
    the method is true online TD(λ) as long as all ratios are 1.

    Examples
    --------
    >>> learner = WISTD(n_features=1, step_size=0.01, trace_decay=0.0, discount=0.0, initial_step_size=1e6)
    >>> learner.start(0)
    >>> for reward, ratio in ((1.0, 3.0), (5.0, 1.0)):
    ...     _ = learner.update(reward, 0, ratio=ratio)
    >>> learner.weights.round(2)   # about (3·1 + 1·5) / (3 + 1)
    array([2.01])
    """

    method = METHODS["wis_td"]


class WISGTD(WithUsage, WithSecondWeights, MemoryLearner):
    """WIS-GTD(λ) (Mahmood and Sutton 2015): GTD(λ) with a step-size for each feature.

    `step_size` is η, by which usage is forgotten. A step costs the traced features, not only the active ones.

    Examples
    --------
    >>> learner = WISGTD(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0, second_step_size=0.5)
    >>> learner.start(0)
    >>> learner.update(1.0, None, ratio=3.0)
    1.0
    >>> learner.usage, learner.weights   # 3 of a usage of (1 − 0.5)·2 + 3
    (array([4.]), array([0.75]))
    """

    method = METHODS["wis_gtd"]


class WISTrueOnlineGTD(WithUsage, WithSecondWeights, MemoryLearner):
    """WIS-TO-GTD(λ) (Mahmood and Sutton 2015): true online GTD(λ) with a step-size for each feature.

    `step_size` is η, by which usage is forgotten. The method equals its forward view at every step.
    """

    method = METHODS["wis_true_online_gtd"]
