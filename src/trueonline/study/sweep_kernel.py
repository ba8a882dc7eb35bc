"""The sweep kernel: one trajectory, every step-size and trace decay, the error measured after every step."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numba import types

from trueonline import catalog
from trueonline.core.forms import Active, Dense, pointer
from trueonline.core.kernels import operation, specialise
from trueonline.core.loops import attach, key_of, names_of, rule
from trueonline.core.memory import KINDS, enlist_all, offset
from trueonline.core.memory.layout import CARRIED
from trueonline.core.transition import Transition, asked
from trueonline.inputs import ratio


def sweep(numbers, places, features, trajectory, discount, measure, second, alphas, lams, errors):
    """Write to errors[i, j] the mean of ‖B(w − w*)‖² over the steps but the first `after`, over its value at the weights
    that learning begins with, for α_i and λ_j, and β = ηα with η = `second` for methods with second weights.

    Infinite where it is no longer a finite number.
    """
    states, rewards, discounts, ratios = trajectory
    root, target, first, after = measure
    memory, carried = attach(numbers, places), pointer(numbers, CARRIED)
    nothing = np.zeros(memory.n)
    off = first - target
    initial = squared(root, off)
    for i in range(alphas.size):
        for j in range(lams.size):
            enlist_all(memory, first, nothing)
            carried[0] = carried[1] = carried[2] = 0.0  # they may be infinite: what came before diverged
            total = v_old = gamma = 0.0
            rho_old = 1.0
            for t in range(rewards.size):
                x = seen(features, states[t], states[max(t - 1, 0)])
                x_next = seen(features, states[t + 1], states[t])
                rho = ratios[min(t, ratios.size - 1)]
                transition = Transition(
                    x,
                    rewards[t],
                    x_next,
                    x_next,
                    v_old,
                    alphas[i],
                    second * alphas[i],
                    gamma,
                    lams[j],
                    discounts[t],
                    lams[j],
                    rho,
                    rho_old,
                    1.0,
                    carried,
                    0.0,
                    discount,
                    lams[j],
                )
                _, _, v_old = rule(memory, transition)
                gamma, rho_old = discounts[t], rho
                if t >= after:
                    offset(memory, x, target, off)
                    total += squared(root, off)
                    if not total < np.inf:
                        break
            errors[i, j] = total / (rewards.size - after) / initial if total < np.inf else np.inf


def seen(features, state, before):
    """The features of a state: from a matrix of all of them, or of the indices of the active ones."""
    raise NotImplementedError("for kernels only")


@operation(seen)
def _seen(features, state, before):
    def active(features, state, before):
        size = features.shape[1]
        return Active(pointer(features, state * size), size)

    def dense(features, state, before):
        size = features.shape[1]
        return Dense(pointer(features, state * size), pointer(features, before * size), size)

    return active if isinstance(features.dtype, types.Integer) else dense


def squared(root, off):
    """‖Br‖², with B a matrix or the diagonal of one. A sum of squares: rounding cannot turn it negative."""
    raise NotImplementedError("for kernels only")


@operation(squared, reassociate=True)
def _squared(root, off):
    def diagonal(root, off):
        total = 0.0
        for i in range(off.size):
            part = root[i] * off[i]
            total += part * part
        return total

    def full(root, off):
        total = 0.0
        for i in range(off.size):
            part = 0.0
            for j in range(off.size):
                part += root[i, j] * off[j]
            total += part * part
        return total

    return diagonal if root.ndim == 1 else full


@cache
def compiled(rule: Any, memory: str) -> Any:
    """The sweep kernel of a rule over a kind of memory."""
    names = names_of(rule, memory, binary=False, adapted=False)
    return specialise(sweep, rule.py_func.__name__, partial(key_of, rule), **names)


@dataclass(frozen=True)
class Method:
    """A method to sweep, as data.

    Parameters
    ----------
    rule : str, catalog.Method or kernel
        The name of a method that sweeps have a kernel for, a method made by `trueonline.method`, or an update rule of your own.
    memories : int, optional
        How many memories a kernel of your own asks for; 1 by default.
    second : float, optional
        η: a method with second weights or a reward rate has the step-size β = ηα for them, so that α can be swept alone. 1 by
        default.

    Examples
    --------
    >>> Method("gtd", second=0.1)
    Method(rule='gtd', memories=2, second=0.1)
    """

    rule: Any
    memories: int | None = None
    second: float | None = None

    def __post_init__(self) -> None:
        rule: Any = _named(self.rule)
        if isinstance(rule, str) and rule not in catalog.names(swept=True):
            raise ValueError(f"unknown rule {rule!r}; known are {', '.join(catalog.names(swept=True))}, or give a kernel")
        row = catalog.METHODS[rule] if isinstance(rule, str) else rule if isinstance(rule, catalog.Method) else None
        known = None if row is None else row.memory
        count = self.memories if self.memories is not None else KINDS[known].memories if known else 1
        kinds = {1: "one", 2: "two", 3: "three"}
        if isinstance(count, bool) or count not in kinds or (known and KINDS[known].memories != count):
            wanted = f"{KINDS[known].memories} for {_name(rule)}" if known else "1, 2 or 3"
            raise ValueError(f"memories must be {wanted}, got {self.memories!r}")
        usual = 1.0 if row is None else row.options.get("second_step_size", 1.0)
        second = ratio("second", usual if self.second is None else self.second)
        for name, value in (("rule", rule), ("memories", count), ("second", second), ("_memory", known or kinds[count])):
            object.__setattr__(self, name, value)

    @property
    def row(self) -> catalog.Method | None:
        """The row of the catalogue, or the method of one's own; None for a bare kernel."""
        row = catalog.METHODS[self.rule] if isinstance(self.rule, str) else self.rule
        return row if isinstance(row, catalog.Method) else None

    @property
    def kernel(self) -> Any:
        """The compiled sweep."""
        rule = self.rule if self.row is None else self.row.resolve("rule")
        return compiled(rule, self._memory)  # type: ignore[attr-defined]


def _named(rule: Any) -> Any:
    """A kernel of this package by its name in the catalogue; any other rule as it is. ValueError if it is not a rule."""
    if isinstance(rule, str | catalog.Method):
        return rule
    try:
        asked(rule)
    except TypeError as error:
        raise ValueError(str(error)) from None
    rows = [row for row in catalog.METHODS.values() if row.swept and not row.options and row.resolve("rule") is rule]
    return rows[0].name if rows else rule


def _name(rule: Any) -> str:
    return rule if isinstance(rule, str) else rule.name if isinstance(rule, catalog.Method) else rule.py_func.__name__


def swept(name: str, method: Any) -> Any:
    """What a case's method stands for: a `Method`, or a class of learners that goes a step at a time.

    A method of one's own is swept by its kernel, also where its class of learners is given.
    """
    if method is None:
        method = catalog.METHODS[name]
    row = getattr(method, "method", None) if inspect.isclass(method) else method
    if isinstance(row, catalog.Method) and row is not method and row.group != "own":
        return method
    if isinstance(row, catalog.Method):
        return Method(row if row.group == "own" else row.name) if row.swept else row.resolve("learner")
    return method if inspect.isclass(method) or isinstance(method, Method) else Method(method)


# The names that a case may give without a method: predictions from one vector of features. Some have no kernel of a sweep.
NAMES = tuple(
    row.name
    for row in catalog.METHODS.values()
    if row.group in ("prediction", "off-policy", "average reward")
    and row.name != "provisional_q"  # it needs φ̄' too
    and (row.swept or "second_step_size" not in row.settings)  # without a kernel a method has one step-size here
)
