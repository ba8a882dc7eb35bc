"""The classes of linear learners. Each is made of a row of the catalogue: a memory, and the rule that works on it.

The rule's file says what the class does, and its docstring is that of the class. A class is made when it is first asked for.
"""

from __future__ import annotations

import inspect
from typing import Any

from trueonline import catalog
from trueonline.learners.memory_learner import MemoryLearner
from trueonline.learners.off_policy import WithProvisionalWeights, WithSecondWeights
from trueonline.learners.weighted import WithUsage

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
