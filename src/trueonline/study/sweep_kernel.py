"""The sweep kernel: one trajectory, every step-size and trace decay, the error measured after every step."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from numba import types

from trueonline import catalog
from trueonline.core.kernels import inlined, kernel, operation, specialise
from trueonline.core.loops import key_of
from trueonline.core.memory import KINDS
from trueonline.core.memory.layout import HEADER
from trueonline.core.memory.short_runs import listed, spread_out, three, two
from trueonline.core.pointers import on_stack, since
from trueonline.core.transition import asked, asking
from trueonline.inputs import ratio
from trueonline.study import sweep_body
from trueonline.study.sweep_body import Diagonal, Given, Run, Triangular, learner

FEW = 0  # a placeholder: the number of features, where it is known when the kernel is compiled


def sweep(numbers, features, n, run, measure, alphas, lams, errors):
    """Write to errors[i, j] the error of a learner with α_i and λ_j on a run (`sweep_body.learner`)."""
    states, rewards, discounts, ratios = run
    root, target, first, discount, second, after = measure
    size = FEW if FEW > 0 else n
    own = on_stack(OWN)
    vectors = since(own, LISTS) if FEW > 0 else since(numbers, 0)
    memory = lay_out(own, vectors, size, features)
    off = since(vectors, 2 * MEMORIES * size)
    given = Given(since(features, 0), rooted(root), since(target, 0), since(first, 0), discount, second, after)
    trajectory = Run(
        since(states, 0), since(rewards, 0), since(discounts, 0), since(ratios, 0), ratios.size - 1, rewards.size
    )
    for i in range(alphas.size):
        for j in range(lams.size):
            errors[i, j] = learner(memory, own, off, given, trajectory, alphas[i], lams[j])


def rooted(root):
    """B, from the diagonal of a matrix or from an upper triangular one."""
    raise NotImplementedError("for kernels only")


@operation(rooted)
def _rooted(root):
    return (lambda root: Diagonal(since(root, 0))) if root.ndim == 1 else (lambda root: Triangular(since(root, 0)))


# --- Where the numbers of a learner lie -----------------------------------------------------------
#
# On the stack: what the rule carries, and the headers of memories. Beside them, or elsewhere if there are many features: two
# vectors of each memory, and w − w*.

CARRIED = 4
OWN = LISTS = 0  # placeholders: the numbers on the stack, and where vectors begin among them
MEMORIES = 1  # a placeholder


def vector_numbers(n: int, memories: int) -> int:
    """How many numbers the vectors of a learner have."""
    return (2 * memories + 1) * n


def part(own, vectors, n, which, features):
    """One of the memories."""
    raise NotImplementedError("for kernels only")


@operation(part)
def _part(own, vectors, n, which, features):
    def sparse(own, vectors, n, which, features):
        head, z = since(own, CARRIED + which * HEADER), 2 * which * n - 1
        return listed(n, head, since(vectors, z), since(vectors, z + n))

    def dense(own, vectors, n, which, features):
        head, u = since(own, CARRIED + which * HEADER), 2 * which * n
        return spread_out(n, head, since(vectors, u), since(vectors, u + n - 1))

    return sparse if isinstance(features.dtype, types.Integer) else dense


@kernel
def lay_out_one(own, vectors, n, features):
    return part(own, vectors, n, 0, features)


@kernel
def lay_out_two(own, vectors, n, features):
    return two(part(own, vectors, n, 0, features), part(own, vectors, n, 1, features))


@kernel
def lay_out_three(own, vectors, n, features):
    first, second = part(own, vectors, n, 0, features), part(own, vectors, n, 1, features)
    return three(first, second, part(own, vectors, n, 2, features))


lay_out = lay_out_one  # a placeholder
LAYOUTS = {"one": lay_out_one, "two": lay_out_two, "three": lay_out_three}


def names_of(rule: Any, memory: str, few: int) -> dict[str, Any]:
    """The global names of the templates of sweeps, on processors and GPUs: the learner with its rule, and where numbers lie."""
    memories = KINDS[memory].memories
    lists = CARRIED + memories * HEADER
    return {
        "learner": inlined(sweep_body.learner, rule=asking(rule)),
        "lay_out": LAYOUTS[memory],
        "MEMORIES": memories,
        "FEW": few,
        "LISTS": lists,
        "OWN": lists + (vector_numbers(few, memories) if few else 0),
    }


@cache
def compiled(rule: Any, memory: str, few: int = 0) -> Any:
    """The sweep kernel of a rule over a kind of memory, for any number of features or for `few`."""
    name = f"{rule.py_func.__name__}{f'_{few}' if few else ''}"
    return specialise(sweep, name, partial(key_of, rule), **names_of(rule, memory, few), rule=rule)


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
    kind: str = field(init=False, repr=False, compare=False)  # of memory

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
        for name, value in (("rule", rule), ("memories", count), ("second", second), ("kind", known or kinds[count])):
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

    def kernel(self, few: int = 0) -> Any:
        """The compiled sweep.

        Parameters
        ----------
        few : int
            The number of features that the kernel is for, so that loops over them unroll. The default is a kernel for any number.

        Returns
        -------
        numba.core.dispatcher.Dispatcher
            The kernel (`sweep`).
        """
        return compiled(self.update, self.kind, few)


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
    """The method of a case, resolved: a `Method`, or a class of learners that takes one step at a time.

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
