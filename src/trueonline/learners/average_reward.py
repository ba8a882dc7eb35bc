"""The average-reward learner, for continuing tasks without discount."""

from __future__ import annotations

from trueonline.catalog import METHODS
from trueonline.core.memory.layout import CARRIED
from trueonline.inputs import Schedule, with_defaults
from trueonline.learners.docstrings import LEARNER, NO_ADAPTATION, SECOND
from trueonline.learners.memory_learner import MemoryLearner


class WithRewardRate:
    """The estimate of the reward rate, and its step-size. Learners and agents share it."""

    @property
    def second_step_size(self) -> float | Schedule:
        """β of the reward rate, or its schedule."""
        return self._second_step_size  # type: ignore[attr-defined]

    @property
    def reward_rate(self) -> float:
        """R̄, the estimate of the mean reward of a step. It begins at 0, and `start` does not change it."""
        return float(self._memory.numbers[CARRIED])  # type: ignore[attr-defined]


class TrueOnlineDifferentialTD(WithRewardRate, MemoryLearner):
    """True online differential TD(λ), for continuing tasks without discount (after Wan, Naik and Sutton 2021).

    The learner estimates the reward rate R̄, the mean reward of a step in the long run. It predicts the *differential value* of a
    state: by how much the rewards from there on exceed R̄, in total. `second_step_size` is β of R̄ ← R̄ + βδ. Wan et al. write β = ηα.
    `discount` is 1 by default. With a smaller γ the method is reward centering (Naik, Wan, Tomar and Sutton 2024). The trace
    carries the step-size within it. There is no step-size adaptation.

    Differential values are determined up to a constant. λ should be below 1: an undiscounted trace does not fade with λ = 1.

    Examples
    --------
    >>> learner = TrueOnlineDifferentialTD(n_features=2, step_size=0.1, trace_decay=0.5, second_step_size=0.01)
    >>> values = learner.run([0, 1] * 2_000, rewards=[0.0, 2.0] * 1_999 + [0.0])   # two states, one after the other
    >>> round(learner.reward_rate, 3)
    1.0
    >>> round(learner.predict(1) - learner.predict(0), 3)
    1.0
    """

    _shared_parameters = LEARNER + SECOND + NO_ADAPTATION
    method = METHODS["true_online_differential"]

    __init__ = with_defaults(MemoryLearner.__init__, "initial_step_size", discount=1.0)
