"""The quantities that a forward view is made of, as symbols and as numbers.

A forward view is a function U(k, h, …): the target of update k when everything up to time h is known. The names of its other
arguments say which quantities it needs:

| argument       | used as       | meaning                                                                              |
|----------------|---------------|--------------------------------------------------------------------------------------|
| `R`            | `R[j]`        | the reward of the transition into S_j                                                |
| `gamma`, `lam` | `gamma[j]`    | γ and λ of S_j; constants without an index                                           |
| `alpha`        | `alpha[j]`    | the step-size of update j; without an index, constant                                |
|                | `alpha[j, i]` | the step-size of feature i in update j, in a step-size (k, i, …) only                |
| `rho`          | `rho[j]`      | the importance ratio of the action taken in S_j                                      |
| `rbar`         | `rbar[j]`     | R̄_j, the estimate of the reward rate before the transition out of S_j                |
| `greedy`       | `greedy[j]`   | 1 where the action taken in S_j is greedy, 0 elsewhere                               |
| `V`            | `V(i, j)`     | the value of S_j under the weights of time i, θ_iᵀφ_j; with actions that of (S_j, A_j) |
| `V_max`        | `V_max(i, j)` | with actions: that of the best action in S_j                                         |
| a parameter    | as a number   | one of `parameters` of `derive`                                                      |

At horizon h there are rewards, γ and λ up to R_h, γ_h and λ_h, weights up to θ_{h−1}, and actions up to A_{h−1}. The value of a
state that ends an episode is 0.

U gives an expression if it is called with symbols, and a number if it is called with numbers. So one function serves both the
derivation and the check.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import sympy as sp

LAST = {"R": 0, "gamma": 0, "lam": 0, "alpha": -1, "rho": -1, "rbar": -1, "greedy": -1}  # relative to h
FIRST = {"R": 1, "gamma": 1, "lam": 1, "alpha": 0, "rho": 0, "rbar": 0, "greedy": 1, "V": 0, "V_max": 0}
VALUES = ("V", "V_max")
CONSTANTS = ("gamma", "lam", "alpha")  # that may stand without an index


class ForwardViewError(ValueError):
    """A function that is not a forward view, or a wrong use of a forward view.

    The message names the target, the step-size or the quantity, and says what to write instead.
    """


class At(sp.Symbol):
    """A quantity of one step (kind and time), or a value (kind, time of the weights, time of the state)."""

    def __new__(cls, kind: str, *at: int) -> At:
        where = f"({at[0]}, {at[1]})" if kind in VALUES else f"[{at[0]}]"
        made = super().__new__(cls, f"{kind}{where}", real=True)
        made.letter, made.at = kind, at
        return made

    def __getnewargs_ex__(self) -> Any:
        return (self.letter, *self.at), {}

    def shifted(self, by: int) -> At:
        return At(self.letter, *(time + by for time in self.at))


class Constant(sp.Symbol):
    """A quantity without an index."""


class Own(Constant):
    """A parameter of the forward view."""


def constant(name: str) -> Constant:
    """The symbol of a quantity without an index."""
    return Constant(name, real=True)


FEATURE = constant("i")  # the feature that a step-size (k, i, …) is about


def _expression(value: Any) -> Any:
    return value.expression if isinstance(value, Quantity) else value


def _quantity(result: Any) -> Any:
    return Quantity(result) if isinstance(result, sp.Expr) else result


def _operation(operation: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """An operation of two quantities, and the same with the quantity on the right."""
    return (
        lambda self, other: _quantity(operation(self.expression, _expression(other))),
        lambda self, other: _quantity(operation(_expression(other), self.expression)),
    )


class Quantity:
    """An expression of SymPy, as a forward view gets it.

    A forward view may not branch on a quantity: symbols take one branch, but numbers may take another. So a symbol refuses to
    be compared, and nothing made of symbols has a place in a dictionary, a set or a cache. A comparison of a larger expression
    is answered: `later_horizons` looks for its effect.
    """

    _op_priority = 100.0  # SymPy asks this class before its own to add, multiply, …

    def __init__(self, expression: sp.Expr) -> None:
        self.expression = expression

    def _sympy_(self) -> sp.Expr:
        return self.expression

    def __repr__(self) -> str:
        return str(self.expression)

    def __float__(self) -> float:
        return float(self.expression)

    def __bool__(self) -> bool:
        return self != 0

    def __eq__(self, other: object) -> bool:
        if self.expression.is_Symbol:
            raise ForwardViewError(
                f"a forward view may not depend on whether {self} is {other!r}, because symbols and numbers would differ; for a "
                "minimum or maximum use Min and Max"
            )
        return bool(self.expression == _expression(other))

    def __hash__(self) -> int:
        raise TypeError(  # "unhashable type:", as Python has it, tells SymPy not to cache
            f"unhashable type: a forward view may not depend on the place of {self} in a dictionary, a set or a cache, because "
            "symbols and numbers would differ"
        )

    __add__, __radd__ = _operation(operator.add)
    __sub__, __rsub__ = _operation(operator.sub)
    __mul__, __rmul__ = _operation(operator.mul)
    __truediv__, __rtruediv__ = _operation(operator.truediv)
    __pow__, __rpow__ = _operation(operator.pow)
    __lt__, __gt__ = _operation(operator.lt)
    __le__, __ge__ = _operation(operator.le)

    def __neg__(self) -> Quantity:
        return Quantity(-self.expression)

    def __pos__(self) -> Quantity:
        return self

    def __abs__(self) -> Quantity:
        return Quantity(abs(self.expression))


class Steps(Quantity):
    """A quantity that has a symbol for each step, and without an index is a constant."""

    def __init__(self, kind: str, last: int, what: str, of_feature: bool = False) -> None:
        super().__init__(constant(kind))
        self.last, self.what, self.of_feature = last, what, of_feature

    __iter__ = None  # what has items is not a sequence here

    def __getitem__(self, j: Any) -> Quantity:
        j, *feature = j if isinstance(j, tuple) else (j,)
        if [_expression(each) is FEATURE for each in feature] != [True] * self.of_feature:
            raise ForwardViewError(
                f"{self}, in {self.what}, {'has' if self.of_feature else 'does not have'} a number for each feature: write "
                f"{self}[{'j, i' if self.of_feature else 'j'}]; a step-size (k, i, …) has alpha[k, i]"
            )
        return Quantity(At(str(self), _known(f"{self}[{j}], in {self.what},", j, self.last)))


class Values:
    """V(i, j) as symbols, for a forward view."""

    def __init__(self, kind: str, h: int, what: str) -> None:
        self.kind, self.h, self.what = kind, h, what

    def __call__(self, *at: Any) -> Quantity:
        if len(at) != 2:
            raise ForwardViewError(
                f"{self.kind}, in {self.what}, takes two times: {self.kind}(i, j), weights of i and state of j"
            )
        which = f"{self.kind}({at[0]}, {at[1]}), in {self.what},"
        return Quantity(At(self.kind, _known(which, at[0], self.h - 1), _known(which, at[1], self.h)))

    def __getitem__(self, j: Any) -> Quantity:
        return self()


def Max(*values: Any) -> Any:  # noqa: N802
    """The largest of some numbers or symbols, for use in a forward view. (SymPy's own is slow with numbers.)

    Parameters
    ----------
    *values : number or sympy.Expr
        The values.

    Returns
    -------
    number or sympy.Expr
        The largest value.
    """
    return sp.Max(*values) if any(isinstance(value, sp.Basic | Quantity) for value in values) else max(values)


def Min(*values: Any) -> Any:  # noqa: N802
    """The smallest of some numbers or symbols, for use in a forward view.

    Parameters
    ----------
    *values : number or sympy.Expr
        The values.

    Returns
    -------
    number or sympy.Expr
        The smallest value.
    """
    return sp.Min(*values) if any(isinstance(value, sp.Basic | Quantity) for value in values) else min(values)


def _known(what: str, j: Any, last: int) -> int:
    try:
        time = operator.index(j)
    except TypeError:
        raise ForwardViewError(f"{what} has a time that is not a whole number, {j!r}: give a whole number") from None
    if time > last:
        raise ForwardViewError(f"{what} is beyond the horizon: the last one that is known is {last}")
    if time < -1:  # −1 is let through: it may cancel, as V(k − 1, k) does in the λ-return written with TD errors
        raise ForwardViewError(f"{what} is before the beginning, time 0")
    return time


class Numbers(float):
    """A quantity as numbers: one for each step from `first` on (0 before that), and without an index the constant.

    With an index (j, i), the number of feature i at step j.
    """

    steps: dict[int, Any]

    def __new__(cls, constant: float, steps: Iterable[Any], first: int) -> Numbers:
        made = super().__new__(cls, constant)
        made.steps = dict(enumerate(steps, first))
        return made

    def __getitem__(self, j: Any) -> float:
        try:
            return self.steps[j]
        except KeyError:
            return self._other(j)

    def _other(self, j: Any) -> float:
        """The number of a feature, or of a time before the first."""
        if isinstance(j, tuple):
            step, i = j
            return float(self[step][i])  # type: ignore[index]
        if j > max(self.steps, default=-1):
            raise ForwardViewError(f"there is nothing at time {j} yet: use times up to the horizon")
        return 0.0
