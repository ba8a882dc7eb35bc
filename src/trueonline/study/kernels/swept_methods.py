"""The methods that a sweep takes: by name, a kernel, a method or a class of learners."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trueonline import catalog
from trueonline.core.compiling.kernels import call
from trueonline.core.family import members
from trueonline.core.memory import KINDS
from trueonline.core.rule_checks import check_rule
from trueonline.core.transition import asked
from trueonline.inputs import number, protocol_of, ratio
from trueonline.study.checks import grid, initial_weights, provided
from trueonline.study.kernels.sweep_kernel import compiled, vector_numbers
from trueonline.words import listed

NAMES = catalog.sweepable()  # that a case may give without a method
ETA_METHODS = tuple(row.name for row in catalog.METHODS.values() if row.swept and "second_step_size" in row.settings)


@dataclass(frozen=True)
class SweptMethod:
    """A method to sweep, as data.

    Parameters
    ----------
    rule : str, catalog.Method or kernel
        The name of a method that sweeps have a kernel for, a method made by `trueonline.method`, or an update rule of your own.
    memories : int, optional
        How many memories a kernel of your own asks for; by default as many as it reads: 2 with `memory.second`.
    second : float, optional
        η: a method with second weights or a reward rate has the step-size β = ηα for them, so that α can be swept alone. 1 by
        default.
    ignores : tuple of str, optional
        ("ratio",) sweeps a rule without importance ratios on a problem that has them. Otherwise this is an error.
    parameters : mapping, optional
        Values of the rule's own parameters; the defaults of the method for the others.

    Examples
    --------
    >>> SweptMethod("gtd", second=0.1)
    SweptMethod(rule='gtd', memories=2, second=0.1)
    """

    rule: Any
    memories: int | None = None
    second: float | None = None
    ignores: tuple[str, ...] = field(default=(), repr=False)
    parameters: Mapping[str, float] = field(default_factory=dict, repr=False, hash=False)
    kind: str = field(init=False, repr=False, compare=False)  # of memory

    def __post_init__(self) -> None:
        rule: Any = _named(self.rule)
        if isinstance(rule, str) and rule not in catalog.names(swept=True):
            raise ValueError(f"unknown rule {rule!r}; known are {', '.join(catalog.names(swept=True))}, or give a kernel")
        row = catalog.METHODS[rule] if isinstance(rule, str) else rule if isinstance(rule, catalog.Method) else None
        known = None if row is None else row.memory
        used = KINDS[known].memories if known else check_rule(rule)
        count = used if self.memories is None else self.memories
        kinds = {1: "one", 2: "two", 3: "three"}
        if isinstance(count, bool) or count not in kinds or count < used or (known and used != count):
            wanted = f"{used} for {_name(rule)}" if known else f"from {used} to 3, which {_name(rule)} uses"
            raise ValueError(f"memories must be {wanted}, got {self.memories!r}")
        usual = 1.0 if row is None else row.options.get("second_step_size", 1.0)
        second = ratio("second", usual if self.second is None else self.second)
        checked = {"rule": rule, "memories": count, "second": second, "kind": known or kinds[count]}
        declared = {} if row is None else row.parameters
        for name in self.parameters:
            if name not in declared:
                has = f"its parameters are {listed(declared)}" if declared else "it has no parameters"
                raise ValueError(f"{_name(rule)} takes no parameter {name!r}: {has}")
        checked["parameters"] = {
            name: each.checked(name, self.parameters.get(name, each.default)) for name, each in declared.items()
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def row(self) -> catalog.Method | None:
        """The row of the catalogue, or the method of one's own; None for a bare kernel."""
        row = catalog.METHODS[self.rule] if isinstance(self.rule, str) else self.rule
        return row if isinstance(row, catalog.Method) else None

    @property
    def update(self) -> Any:
        """The update rule, a kernel."""
        return self.rule if self.row is None else self.row.resolve("rule")

    @property
    def numbers(self) -> np.ndarray:
        """The parameters as kernels take them."""
        return np.array([self.parameters[name] for name in sorted(self.parameters)] or [0.0])

    @property
    def checks(self) -> dict[str, Callable[[str, Any], float]]:
        """The parameters that a sweep may have for this method, each with its check: those of the rule, and η."""
        row = self.row
        fixed = row is not None and "second_step_size" in row.options
        eta = {"eta": ratio} if "beta" in asked(self.update) and not fixed else {}
        return {**eta, **({} if row is None else {name: each.checked for name, each in row.parameters.items()})}

    def at(self, point: Mapping[str, float]) -> SweptMethod:
        """The method with other values of its parameters.

        Parameters
        ----------
        point : mapping
            Values of parameters that the method has, "eta" among them.

        Returns
        -------
        SweptMethod
            The method.
        """
        own = {name: value for name, value in point.items() if name != "eta"}
        return replace(self, second=point.get("eta", self.second), parameters={**self.parameters, **own})

    def sweep(
        self,
        arrays: Sequence[np.ndarray],
        discount: float,
        after: int,
        trajectories: Iterable,
        alphas: np.ndarray,
        lams: np.ndarray,
        errors: np.ndarray,
    ) -> None:
        """Run the compiled sweep.

        Parameters
        ----------
        arrays : sequence of numpy.ndarray
            The features, B, w* and the first weights (`Case.arrays`).
        discount : float
            The discount of the problem.
        after : int
            The number of steps before the first that counts.
        trajectories : iterable
            States, rewards, discounts, and ρ and π of each run (`Case.trajectory`).
        alphas : numpy.ndarray
            The step-sizes.
        lams : numpy.ndarray
            The trace decays.
        errors : numpy.ndarray
            The result: the error of each run, step-size and trace decay.
        """
        features, root, target, first = arrays
        rule, n = self.update, len(target)
        root = (
            root if features.ndim == 1 else np.atleast_2d(root)
        )  # with dense features, one kernel serves both forms of B
        measure = root, target, first, discount, self.second, after, self.numbers, members(self.kind).get(rule, 0)
        entry, numbers = compiled(rule, self.kind), np.empty(vector_numbers(n, KINDS[self.kind].memories))
        for trajectory, error in zip(trajectories, errors, strict=True):
            call(entry, numbers, features, n, trajectory, measure, alphas, lams, error)


def _named(rule: Any) -> Any:
    """A kernel of this package by its name in the catalogue; any other rule as it is. ValueError if it is not a rule."""
    if isinstance(rule, str | catalog.Method):
        return rule
    try:
        check_rule(rule)
    except TypeError as error:
        raise ValueError(str(error)) from None
    rows = [row for row in catalog.METHODS.values() if row.swept and not row.options and row.resolve("rule") is rule]
    return rows[0].name if rows else rule


def _name(rule: Any) -> str:
    return rule if isinstance(rule, str) else rule.name if isinstance(rule, catalog.Method) else rule.py_func.__name__


def resolved(methods: Any, problem: Any) -> dict[str, Any]:
    """The methods of a case: each a `SweptMethod`, or a class of learners that takes one step at a time.

    ValueError if one of them is not a method, or does not fit the problem.
    """
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError(f"methods must name at least one of {', '.join(NAMES)}, got {methods!r}")
    found = {name: resolve(name, method) for name, method in methods.items()}
    for name, method in found.items():
        if inspect.isclass(method):
            _check_class(name, method, problem)
        check_parts(name, method, provided(problem))
        row = method.row if isinstance(method, SweptMethod) else method
        if getattr(row, "binary", False) and not np.isin(problem.features, (0.0, 1.0)).all():
            raise ValueError(f"{name} needs binary features; leave it out of methods")
        if getattr(row, "group", "") == "average reward" and not getattr(problem, "average_reward", False):
            raise ValueError(
                f"{name} learns values up to a constant: sweep it on trueonline.problems.AverageReward(problem), whose error "
                "leaves out constants"
            )
    return found


def checks_of(method: Any) -> dict[str, Callable[[str, Any], float]]:
    """The parameters that a sweep may have for a method, each with its check: for a class, its arguments that are numbers."""
    if isinstance(method, SweptMethod):
        return method.checks
    eta: dict[str, Callable[[str, Any], float]] = {"eta": ratio} if second_step_size(method) is not None else {}
    try:
        arguments = list(inspect.signature(method).parameters.values())[4:]
    except (TypeError, ValueError):  # some hide their signature
        return eta
    own = [each.name for each in arguments if type(each.default) in (int, float) and each.name != "second_step_size"]
    return {**eta, **dict.fromkeys(own, number)}


def check_points(name: str, method: Any, points: Iterable[Mapping[str, Any]], *common: Any) -> None:
    """ValueError if a class refuses some values of its parameters."""
    for point in points:
        own = {each: value for each, value in point.items() if value is not None and each != "eta"}
        if own and inspect.isclass(method):
            try:
                method(*common, **own)
            except (TypeError, ValueError) as error:
                raise ValueError(f"parameters of {name} cannot be {own}: {error}") from None


def second_step_size(kind: Any) -> float | None:
    """η of a class of learners, unless a sweep has others: 1, or NaN where the class has a default of its own. None without η."""
    try:
        argument = inspect.signature(kind).parameters.get("second_step_size")
    except (TypeError, ValueError):  # some hide their signature
        return None
    row = getattr(kind, "method", None)
    if argument is None or (isinstance(row, catalog.Method) and "beta" not in asked(row.resolve("rule"))):
        return None
    return 1.0 if isinstance(row, catalog.Method) or argument.default is argument.empty else np.nan


def checked_parameters(given: Any, methods: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """The grids of parameters of a case. ValueError if no method has one of them, or a value is out of range."""
    if not isinstance(given, Mapping):
        raise ValueError(f'parameters must be a mapping, such as {{"regularization": [0.0, 1.0]}}, got {given!r}')
    known = {name: checks_of(method) for name, method in methods.items()}
    found = {}
    for name, values in given.items():
        checks = [each[name] for each in known.values() if name in each]
        if not checks:
            has = "; ".join(f"{method} has {listed(each)}" for method, each in known.items() if each)
            raise ValueError(
                f"parameters has {name!r}, which is a parameter of none of the methods {listed(known)}"
                f"{f': {has}' if has else ', and they have no parameters'}"
            )
        found[name] = grid(f"parameters[{name!r}]", values, checks[0])
        for check in checks[1:]:
            grid(f"parameters[{name!r}]", values, check)
    return found


def check_parts(name: str, method: Any, parts: Collection[str]) -> None:
    """ValueError if a problem provides a part of its transitions that a method cannot take, and does not say that it ignores."""
    if not isinstance(method, SweptMethod):
        try:
            protocol_of(method).check(parts, "the problem")
        except TypeError as error:
            raise ValueError(f"the method {name!r} does not fit the problem: {error}") from None
    elif "ratio" in parts and "rho" not in asked(method.update) and "ratio" not in method.ignores:
        raise ValueError(
            f"the rule of {name} takes no rho, but the problem has importance ratios: take an off-policy method, or, to learn "
            'without them, give study.SweptMethod(…, ignores=("ratio",))'
        )


def resolve(name: Any, method: Any) -> Any:
    """A method by its name, a kernel, a method of one's own or a class: as a `SweptMethod`, or a class of learners."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a method must be a text, got {name!r}")
    if isinstance(method, str):
        raise ValueError(
            f"the method {name!r} must be a kernel, a method or a class of learners, got the text {method!r}"
        )
    if method is None:
        if name not in NAMES:
            raise ValueError(f"unknown method {name!r}; known are {', '.join(NAMES)}, or give a kernel or a class")
        method = catalog.METHODS[name]
    row: Any = getattr(method, "method", None) if inspect.isclass(method) else method
    own = isinstance(row, catalog.Method) and row.group == "own"
    if own or isinstance(method, catalog.Method):  # a method of one's own has a kernel, also if its class is given
        return SweptMethod(row if own else row.name) if row.swept else row.resolve("learner")
    if inspect.isclass(method) or isinstance(method, SweptMethod):
        return method
    try:
        return SweptMethod(method)
    except ValueError as error:
        raise ValueError(f"the method {name!r} is neither a class of learners nor an update rule: {error}") from None


def _check_class(name: str, kind: Any, problem: Any) -> None:
    if hasattr(kind, "step"):
        raise ValueError(f"the method {name!r} is a class of agents; a sweep is of predictions, and takes learners")
    try:
        signature = inspect.signature(kind)
    except (TypeError, ValueError):  # some hide it; then we shall see
        return
    more = {"initial_weights": None} if initial_weights(problem).any() else {}
    second = {} if second_step_size(kind) is None else {"second_step_size": 0.1}
    try:
        signature.bind(1, 0.1, 0.9, 0.9, **more, **second)
    except TypeError as error:
        raise ValueError(
            f"the method {name!r} must be made by (n_features, step_size, trace_decay, discount)"
            f"{' and initial_weights, which this problem has' if more else ''}, but: {error}; a second "
            "step-size must be called second_step_size"
        ) from None
