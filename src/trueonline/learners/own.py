"""An update rule of your own as a full method: a learner, an agent, a row for `verify`, and a method for sweeps.

The file is one thing, `method` and what it makes, and half of it documents arguments.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import math
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from trueonline.catalog import OWN_MEMORIES, TRACES, Method, Parameter
from trueonline.core.compiling.identity import text_identity
from trueonline.core.memory.layout import CARRIED, SAVED_PLACE
from trueonline.core.rule_checks import check_rule
from trueonline.core.transition import asked
from trueonline.inputs import Schedule, number, read_only
from trueonline.learners.docstrings import LEARNER, PER_FEATURE
from trueonline.learners.loading import load_one_of
from trueonline.learners.memory_learner import MemoryLearner

CONSTANTS = ("gamma", "lam", "alpha")
RESERVED_NAMES = (
    *inspect.signature(MemoryLearner).parameters,
    "n_actions",
    "policy",
    "seed",
    "method",
    "run",
    "error",
    "problem",
    "eta",
)
PARTS = ("rule", "definition", "agent_definition")  # arguments of `method` that pickles do not carry as settings
# By digest, so that a pickle finds the method of this process. A method that nothing else holds is collected.
_METHODS: WeakValueDictionary[str, OwnMethod] = WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class OwnMethod(Method):
    """A method that `trueonline.method` made.

    `learner` and `agent` are its classes. Sweeps take the method itself, or either class of learners.

    Parameters
    ----------
    source : str
        The text of the rule, if it has no file.
    agent_definition : class, optional
        An agent that the method's agent must equal at every step.
    """

    source: str = ""
    agent_definition: Any = None

    @cached_property
    def digest(self) -> str:
        """A hash of the rule: a saved file can only be loaded with the same rule."""
        about: tuple = (self.name, self.memory, self.trace, self.binary, self.greedy, self.cuts, self.constants)
        about += ("per feature",) if self.per_feature else ()
        about += (tuple(sorted(self.parameters)),) if self.parameters else ()
        unknown: list[str] = []
        digest = text_identity((about, self.source or self.rule, self.varying), unknown=unknown)[:16]
        return secrets.token_hex(8) if unknown else digest  # a file can then be loaded by this process alone

    @cached_property
    def agent(self) -> Any:
        """The class of agents over ψ(s, a) (see `trueonline.control.Agent`)."""
        base = import_module("trueonline.control.agent").Agent
        return self._class(base, self.agent_definition)

    def verify(self, **options: Any) -> Any:
        """Compare the learner with its definition, or the agent of a rule for agents only (see `trueonline.verify`).

        Parameters
        ----------
        **options
            Arguments of `trueonline.verify`.

        Returns
        -------
        Report
            With `exact` and `max_error`.
        """
        kind = self.agent if self.learner is None else self.learner  # a rule that asks for `greedy` has agents only
        return import_module("trueonline.checks.verification").verify(kind, **options)

    def _class(self, base: Any, definition: Any) -> Any:
        title = "".join(part[:1].upper() + part[1:] for part in self.name.split("_")) or "Own"
        about = inspect.cleandoc(self.rule.py_func.__doc__ or self.title)
        own = {"__doc__": f"{about}\n", "__module__": __name__, "method": self, "constants": self.constants}
        if definition is not None:
            own["definition"] = definition
        if self.per_feature:
            own["_shared_parameters"] = base._shared_parameters.replace(LEARNER, PER_FEATURE)
        if "beta" in asked(self.rule):
            own["second_step_size"] = property(lambda learner: learner._second_step_size, doc="β, or its schedule.")
        if "carried" in asked(self.rule):
            own["carried"] = property(
                _carried, doc="A read-only copy of the four numbers that the rule carries from step to step."
            )
        return type(title, (Own, base), own)

    def __reduce__(self) -> tuple[Callable, tuple]:
        module, name = self.rule.py_func.__module__, self.rule.py_func.__name__
        reference: Any = self.rule
        if self.source:
            reference = (self.source, name)
        elif module != "__main__" and getattr(_imported(module), name, None) is self.rule:
            reference = (module, name)
        settings = {name: getattr(self, name) for name in inspect.signature(method).parameters if name not in PARTS}
        return _again, (self.digest, reference, settings)


def method(
    rule: Any,
    definition: Any = None,
    *,
    name: str | None = None,
    title: str | None = None,
    memory: str = "one",
    trace: str = "none",
    binary: bool = False,
    greedy: bool = False,
    cuts: bool = True,
    varying: Any = None,
    agent_definition: Any = None,
    constants: tuple[str, ...] = (),
    source: str = "",
    per_feature: bool = False,
    parameters: Mapping[str, float | Parameter] | None = None,
) -> OwnMethod:
    """Make a full method of an update rule of your own.

    The method has a class of learners (`learner`: saved, loaded, `run`, sparse and dense), a class of agents (`agent`), is compared
    with its definition by `verify()`, and can be swept: `trueonline.sweep(problem, {"mine": method})`, or in a sweep file as
    "file.py:name".

    Parameters
    ----------
    rule : kernel
        A function with the decorator `trueonline.kernel`. Its first argument is `memory`; the others name what it needs of a
        transition (`trueonline.core.transition.Transition` lists what there is). It changes the memory by the operations of
        `trueonline.core.memory`, on `x` and `x_next` only: sweeps rely on it. It returns V, δ and V'. Learners and agents of a
        rule with `carried` show these numbers in an attribute of that name.
    definition : class, optional
        A learner that the method must equal at every step, for `verify`. The online λ-return algorithm by default.
    name : str, optional
        The name in sweeps and files; the rule's name by default.
    title : str, optional
        The name in plots; the name by default.
    memory : str, optional
        "one" vector of weights and trace, "two" or "three" (`memory.second`, `memory.third`), or "two traces".
    trace : str, optional
        "accumulating", "replacing" or "dutch". Only step-size adaptation needs it.
    binary : bool, optional
        Whether the rule is defined for binary features only.
    greedy : bool, optional
        Whether agents bootstrap from the best action instead of the action that they take next.
    cuts : bool, optional
        Whether the trace of such agents is cut when they take another action than the best.
    varying : kernel, optional
        The rule for step-size schedules, if that is another one.
    agent_definition : class, optional
        An agent that the method's agent must equal at every step.
    constants : tuple of str, optional
        Which of "gamma", "lam" and "alpha" must not change from step to step.
    source : str, optional
        The text of the rule, if it has no file.
    per_feature : bool, optional
        Whether `step_size` may have an entry for each feature. Then the rule reads φ and writes α_iφ_i, and its own `alpha` is 1.
    parameters : mapping, optional
        The parameters of the rule: the names in its signature that no transition has. Each has a default, or a
        `trueonline.Parameter` with a default, a range and a sentence for the docstring. They are keyword arguments of the classes,
        and sweeps sweep them.

    Returns
    -------
    OwnMethod
        The method.

    Raises
    ------
    TypeError
        If the rule is not a kernel, or has other parameters than `parameters`.
    ValueError
        If `memory`, `trace` or `constants` are none of those above.

    Examples
    --------
    >>> import trueonline as to
    >>> from trueonline.core.memory import decay, imprint, learn, recall
    >>> @to.kernel
    ... def td_zero(memory, x, reward, x_next, alpha, gamma_next):
    ...     v, _, v_next = recall(memory, x, x_next)
    ...     delta = reward + gamma_next * v_next - v
    ...     decay(memory, 0.0)
    ...     imprint(memory, x, 1.0, 0.0)
    ...     learn(memory, alpha * delta)
    ...     return v, delta, v_next
    >>> learner = to.method(td_zero).learner(n_features=2, step_size=0.5, trace_decay=0.0, discount=1.0)
    >>> learner.run([0, 1, 1], rewards=[1.0, 2.0])
    array([0., 0.])
    >>> learner.weights
    array([0.5, 1. ])
    """
    own = declared(parameters)
    names, used = asked(rule), check_rule(rule, own)
    if varying is not None:
        check_rule(varying, own)
    for what, value, known in (("memory", memory, OWN_MEMORIES), ("trace", trace, TRACES)):
        if value not in known:
            raise ValueError(f"{what} must be one of {', '.join(known)}, got {value!r}")
    if isinstance(constants, str) or not set(constants) <= set(CONSTANTS):
        raise ValueError(f"constants must be a tuple of names among {', '.join(CONSTANTS)}, got {constants!r}")
    if used > (2 if memory == "two traces" else OWN_MEMORIES.index(memory) + 1):
        raise ValueError(
            f"the rule {rule.py_func.__name__} uses memory.{'second' if used == 2 else 'third'}, which memory={memory!r} does "
            f"not have: give memory={OWN_MEMORIES[used - 1]!r}"
        )
    label = name or rule.py_func.__name__
    learns = "greedy" not in names
    row = OwnMethod(
        *(label, title or label, "own"),
        learner=None,
        definition=definition,
        rule=rule,
        varying=varying,
        memory=memory,
        trace=trace,
        binary=binary,
        greedy=greedy,
        cuts=cuts,
        swept=memory != "two traces",
        constants=constants,
        per_feature=per_feature,
        source=source,
        agent_definition=agent_definition,
        parameters=own,
    )
    if learns:
        object.__setattr__(row, "learner", row._class(MemoryLearner, definition))
    _METHODS[row.digest] = row
    return row


def declared(parameters: Any) -> dict[str, Parameter]:
    """The parameters that a user gives, checked."""
    if not isinstance(parameters, Mapping | None) or not all(isinstance(name, str) for name in parameters or ()):
        raise ValueError(f"parameters must be a mapping from names to defaults, got {parameters!r}")
    checked = {}
    for name, given in (parameters or {}).items():
        each = given if isinstance(given, Parameter) else Parameter(given)
        for end in ("least", "most"):
            number(f"the {end} {name}", getattr(each, end), "a number", lambda v: not math.isnan(v))
        each.checked(f"the default of {name}", each.default)
        if (
            name in RESERVED_NAMES
            or hasattr(MemoryLearner, name)
            or hasattr(import_module("trueonline.control.agent").Agent, name)
        ):
            raise ValueError(f"a parameter may not be called {name!r}: learners, agents or tables have this name already")
        checked[name] = each
    return checked


@cache
def rule_of(source: str, name: str) -> Any:
    """The kernel in a text, such as `Derivation.source` gives."""
    path = f"<rule {name} {hashlib.sha256(source.encode()).hexdigest()[:8]}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)  # for tracebacks and `inspect`
    scope: dict[str, Any] = {"__name__": f"rule_{name}"}
    exec(compile(source, path, "exec"), scope)
    return scope[name]


class Own:
    """Files and pickles of learners and agents whose class is not in a module."""

    method: Any

    @classmethod
    def _role(cls) -> str:
        return "agent" if hasattr(cls, "truncate") else "learner"

    @classmethod
    def _kind(cls) -> str:
        return f"own {cls.method.name} {cls._role()} {cls.method.digest}"

    @classmethod
    def load(
        cls,
        path: str | os.PathLike,
        *,
        step_size: Schedule | None = None,
        second_step_size: Schedule | None = None,
        policy: Any = None,
    ) -> Any:
        """Load the learner or the agent that `save` wrote. It resumes bit for bit.

        Parameters
        ----------
        path : path
            The file.
        step_size : callable, optional
            The step-size schedule, if there was one. Schedules are code and are not saved.
        second_step_size : callable, optional
            The schedule of second step-sizes, if there was one.
        policy : callable, optional
            The policy of an agent, if it had one of your own.

        Returns
        -------
        Learner or Agent
            As it was when saved.
        """
        return load_one_of({cls._kind(): cls}, path, step_size, policy, second_step_size)

    def __reduce__(self) -> tuple[Callable, tuple]:
        return _rebuilt, (self.method, self._role(), self.__getstate__())


def made_here() -> dict[str, type]:
    """The classes of methods made in this process, by the names that files give them."""
    learners = {row.learner._kind(): row.learner for row in _METHODS.values() if row.learner is not None}
    agents = {row.agent._kind(): row.agent for row in _METHODS.values() if "agent" in vars(row)}
    return learners | agents


def _carried(learner: Any) -> np.ndarray:
    return read_only(learner._memory.numbers[CARRIED:SAVED_PLACE].copy())


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        return None


def _again(digest: str, reference: Any, settings: dict[str, Any]) -> OwnMethod:
    """A pickled method: that of this process, or made from its rule."""
    if digest in _METHODS:
        return _METHODS[digest]
    if not isinstance(reference, tuple):
        row = method(reference, **settings)
    elif settings["source"]:
        row = method(rule_of(*reference), **settings)
    else:
        row = method(getattr(import_module(reference[0]), reference[1]), **settings)
        if row.digest != digest:
            raise ValueError(f"{row.name} was pickled with another rule: {'.'.join(reference)} has changed since")
    vars(row)["digest"] = digest  # a rule that came by value has no text to hash
    _METHODS[digest] = row
    return row


def _rebuilt(row: OwnMethod, kind: str, state: dict[str, Any]) -> Any:
    """A pickled learner or agent. (A pickle is code anyway; files of `save` hold none.)"""
    made = getattr(row, kind)
    copy = made.__new__(made)
    copy.__setstate__(state)
    return copy
