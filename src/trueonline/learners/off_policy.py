"""What learners over more than one memory show: second and provisional weights (section 7 of the paper)."""

from __future__ import annotations

import numpy as np

from trueonline.core import memory, two_traces
from trueonline.inputs import Schedule, read_only


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


class WithProvisionalWeights:
    """The provisional weights of provisional methods."""

    @property
    def provisional_weights(self) -> np.ndarray:
        """A dense, read-only copy of u. The next action's ratio ρ changes w by (ρ − 1)u, and so by −u if ρ = 0."""
        return read_only(two_traces.owed(self._memory.numbers, *self._each()))  # type: ignore[attr-defined]
