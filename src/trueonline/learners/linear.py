"""The classes of linear learners. Each is made of a row of the catalogue: a memory, and the rule that works on it.

The rule's file says what the class does, and its docstring is that of the class. A class is made when it is first asked for.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from trueonline import catalog
from trueonline.core import memory
from trueonline.core.memory import two_traces
from trueonline.inputs import Schedule, read_only
from trueonline.learners.memory_learner import MemoryLearner


class WithSecondWeights:
    """The second weights h of gradient methods, and their step-size."""

    @property
    def second_step_size(self) -> float | Schedule:
        """β, or its schedule."""
        return self._second_step_size  # type: ignore[attr-defined]

    @property
    def second_weights(self) -> np.ndarray:
        """A dense, read-only copy of h."""
        return read_only(memory.weights(memory.each(self._memory)[1]))  # type: ignore[attr-defined]


class WithProvisionalWeights:
    """The provisional weights of provisional methods."""

    @property
    def provisional_weights(self) -> np.ndarray:
        """A dense, read-only copy of u. The next action's ratio ρ changes w by (ρ − 1)u, and so by −u if ρ = 0."""
        return read_only(two_traces.owed(self._memory.numbers, *memory.each(self._memory)))  # type: ignore[attr-defined]


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


# What learners over a kind of memory show.
MIXINS: dict[str, tuple[type, ...]] = {
    "two": (WithSecondWeights,),
    "three": (WithSecondWeights,),
    "two traces": (WithProvisionalWeights,),
    "two traces and usage": (WithUsage,),
    "two and usage": (WithUsage, WithSecondWeights),
    "three and usage": (WithUsage, WithSecondWeights),
}


def make(row: catalog.Method) -> type[MemoryLearner]:
    """The class of learners of a row.

    Parameters
    ----------
    row : Method
        A row whose `learner` is the name of the class.

    Returns
    -------
    type
        A subclass of `MemoryLearner`.
    """
    about = inspect.getmodule(row.resolve("rule").py_func).__doc__
    content: dict[str, Any] = {"__doc__": about, "__module__": __name__, "method": row}
    return type(row.learner, (*MIXINS.get(row.memory, ()), MemoryLearner), content)


def __getattr__(name: str) -> type[MemoryLearner]:
    row = catalog.classes().get(name)
    if row is None or row.learner != name:
        raise AttributeError(f"{__name__} has no {name!r}")
    made = globals()[name] = make(row)
    return made
