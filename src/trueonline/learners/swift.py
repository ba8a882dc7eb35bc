"""SwiftTD as a learner, and what it shares with Swift-Sarsa: step-sizes that are learned, and their settings."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trueonline import inputs
from trueonline.catalog import METHODS
from trueonline.core.memory import Buffers, meta_gradient
from trueonline.core.memory.meta_gradient import BOUND, BOUNDED, LEAST, LOG_DECAY, META
from trueonline.core.thread_guard import guarded
from trueonline.inputs import explains_arguments
from trueonline.learners.docstrings import LEARNER, with_learned_step_sizes
from trueonline.learners.interface import Learner
from trueonline.learners.memory_learner import MemoryLearner
from trueonline.learners.over_memory import OverMemory


class SwiftSettings(NamedTuple):
    """The settings of SwiftTD, checked."""

    bound: float
    decay: float
    meta_step_size: float
    min_step_size: float


def checked(bound: Any, decay: Any, meta_step_size: Any, min_step_size: Any) -> SwiftSettings:
    """The settings; ValueError for a number that makes no sense."""
    eta = inputs.positive("bound", bound)
    return SwiftSettings(
        eta,
        inputs.number("decay", decay, "a number in (0, 1]", lambda v: 0.0 < v <= 1.0),
        inputs.ratio("meta_step_size", meta_step_size),
        inputs.number(
            "min_step_size", min_step_size, f"a number in (0, {eta:g}], at most bound", lambda v: 0.0 < v <= eta
        ),
    )


def refuse_schedule(kind: str, step_size: Any) -> None:
    """ValueError for a schedule as step-size."""
    if callable(step_size):
        raise ValueError(
            f"step_size of {kind} must be a number, the step-size that features begin with, got a schedule; "
            "step-sizes are learned from there, and meta_step_size says how fast"
        )


class LearnedStepSizes(OverMemory):
    """A method over a memory of the kind "meta-gradient", with its settings."""

    _learned: SwiftSettings
    _more_settings: ClassVar[tuple[str, ...]] = ("_learned",)

    @property
    def bound(self) -> float:
        """η, the largest share of an error that an update may close, and the largest step-size."""
        return self._learned.bound

    @property
    def decay(self) -> float:
        """The factor of step-sizes when the bound is exceeded and x_i = 1."""
        return self._learned.decay

    @property
    def meta_step_size(self) -> float:
        """θ, by which step-sizes follow their meta-gradient."""
        return self._learned.meta_step_size

    @property
    def min_step_size(self) -> float:
        """The smallest step-size of a feature."""
        return self._learned.min_step_size

    @property
    @guarded
    def step_sizes(self) -> np.ndarray:
        """The step-size of each weight now: a read-only copy, in the shape of the weights."""
        sizes = meta_gradient.step_sizes(self._memory, self._parameters.alpha(0))
        return inputs.read_only(sizes.reshape(self._shape))

    @property
    def bounded(self) -> int:
        """The number of transitions at which the rate of learning exceeded `bound`."""
        return int(meta_gradient.kept(self._memory).settings[BOUNDED])

    def _tune(self, buffers: Buffers) -> None:
        settings, (eta, decay, theta, least) = meta_gradient.kept(buffers).settings, self._learned
        settings[[BOUND, LOG_DECAY, META, LEAST]] = eta, math.log(decay), theta, least

    def _dump_memory(self) -> dict[str, np.ndarray]:
        return {**OverMemory._dump_memory(self), **meta_gradient.dump(self._memory)}

    def _restore_memory(self, parts: dict[str, np.ndarray]) -> None:
        OverMemory._restore_memory(self, parts)
        meta_gradient.rebuild(self._memory, parts)

    def _step_size_settings(self) -> dict[str, Any]:
        return self._learned._asdict()


class SwiftTD(LearnedStepSizes, MemoryLearner):
    """SwiftTD (Javed, Sharifnassab and Sutton 2024): true online TD(λ) that learns a step-size for each feature.

    Three ideas keep it fast and safe: step-sizes follow their meta-gradient, the rate of learning is bounded, and step-sizes
    decay where the bound is exceeded. Features that matter soon have large step-sizes, and noise has small ones. A step costs the
    features with trace. `start` and γ = 0 clear the trace and the traces of the meta-gradient, and keep what was learned.

    Examples
    --------
    >>> learner = SwiftTD(n_features=2, step_size=0.1, trace_decay=0.9, discount=0.0, bound=0.5, meta_step_size=0.1)
    >>> rng = np.random.default_rng(0)
    >>> for noise in rng.normal(size=2000):
    ...     learner.start([1.0, noise])
    ...     _ = learner.update(1.0 + noise + rng.normal(), None)
    >>> learner.weights.round(1), learner.bounded > 0
    (array([1., 1.]), True)
    """

    _shared_parameters = with_learned_step_sizes(LEARNER)
    method = METHODS["swift_td"]

    @explains_arguments
    def __init__(
        self,
        n_features: int,
        step_size: float,
        trace_decay: float,
        discount: float,
        initial_weights: ArrayLike | None = None,
        *,
        bound: float = 0.1,
        decay: float = 0.999,
        meta_step_size: float = 0.001,
        min_step_size: float = 1e-10,
    ) -> None:
        self._learned = checked(bound, decay, meta_step_size, min_step_size)
        refuse_schedule("SwiftTD", step_size)
        Learner.__init__(self, n_features, step_size, trace_decay, discount, initial_weights)
