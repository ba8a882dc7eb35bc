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

At horizon h there are rewards, γ and λ up to R_h, γ_h and λ_h, weights up to θ_{h−1}, and actions up to A_{h−1}. The value of a
state that ends an episode is 0.

U gives an expression if it is called with symbols, and a number if it is called with numbers. So one function serves both the
derivation and the check.
"""

from __future__ import annotations

import contextlib
import operator
import sys
import threading
from collections.abc import Iterator, Sequence
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


PASSED_ON = ("__hash__", "_hashable_content")  # SymPy's, by which an expression asks its symbols
_asked = threading.local()  # `now`: whether a forward view is being called with symbols, in this thread


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Let symbols refuse what a forward view may not ask them."""
    _asked.now = True
    try:
        yield
    finally:
        _asked.now = False


class Uncertain(sp.Symbol):
    """A symbol that a forward view may not branch on: symbols take one branch, but numbers may take another.

    The symbol refuses comparisons, dictionaries, sets and `isinstance` if the forward view itself asks. SymPy may ask. A
    comparison of a whole expression cannot be seen here: `later_horizons` looks for its effect.
    """

    def __bool__(self) -> bool:
        self._refuse("whether {} is 0")
        return True

    def __eq__(self, other: object) -> bool:
        self._refuse("whether {} is {}", other)
        return sp.Symbol.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._refuse("whether {} is {}", other)
        return sp.Symbol.__ne__(self, other)

    def __hash__(self) -> int:
        self._refuse("the place of {} in a dictionary, a set or a cache")
        return sp.Symbol.__hash__(self)

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # `isinstance` asks for it, where the symbol is not of the class
        self._refuse("the class of {}")
        return type(self)

    def _refuse(self, what: str, *others: object) -> None:
        if getattr(_asked, "now", False) and _is_asked_by_view():
            _asked.now = False  # to write the message is to ask again
            asked_for = what.format(self, *map(repr, others))
            _asked.now = True
            raise ForwardViewError(
                f"a forward view may not depend on {asked_for}, because symbols and numbers would differ; for a minimum or maximum "
                "use Min and Max"
            )


def _is_asked_by_view() -> bool:
    """Whether a forward view asks a symbol, and not SymPy or the standard library on its behalf."""
    frame = sys._getframe(3)
    while frame.f_back is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        is_passed_on = package == "abc" or (package == "sympy" and frame.f_code.co_name in PASSED_ON)
        if not is_passed_on:
            return package not in ("sympy", "mpmath") and package not in sys.stdlib_module_names
        frame = frame.f_back
    return True


class At(Uncertain):
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


class Quantity(Uncertain):
    """A quantity that has a symbol for each step, and without an index is a constant."""

    def __new__(cls, kind: str, last: int, what: str, of_feature: bool = False) -> Quantity:
        made = sp.Symbol.__xnew__(cls, kind, real=True)  # not the one that SymPy keeps for all: `last` is its own
        made.letter, made.last, made.what, made.of_feature = kind, last, what, of_feature
        return made

    def __getnewargs_ex__(self) -> Any:
        return (self.letter, self.last, self.what, self.of_feature), {}

    __iter__ = None  # what has items is not a sequence here

    def __getitem__(self, j: Any) -> At:
        j, *feature = j if isinstance(j, tuple) else (j,)
        if [each is FEATURE for each in feature] != [True] * self.of_feature:
            raise ForwardViewError(
                f"{self.letter}, in {self.what}, {'has' if self.of_feature else 'does not have'} a number for each feature: write "
                f"{self.letter}[{'j, i' if self.of_feature else 'j'}]; a step-size (k, i, …) has alpha[k, i]"
            )
        return At(self.letter, _known(f"{self.letter}[{j}], in {self.what},", j, self.last))


def constant(name: str) -> sp.Symbol:
    """The symbol of a quantity without an index."""
    return Quantity(name, 0, "a constant")


FEATURE = Uncertain("i")  # the feature that a step-size (k, i, …) is about


class Values:
    """V(i, j) as symbols."""

    def __init__(self, kind: str, h: int, what: str) -> None:
        self.kind, self.h, self.what = kind, h, what

    def __call__(self, *at: Any) -> At:
        if len(at) != 2:
            raise ForwardViewError(
                f"{self.kind}, in {self.what}, takes two times: {self.kind}(i, j), weights of i and state of j"
            )
        which = f"{self.kind}({at[0]}, {at[1]}), in {self.what},"
        return At(self.kind, _known(which, at[0], self.h - 1), _known(which, at[1], self.h))

    def __getitem__(self, j: Any) -> At:
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
    return sp.Max(*values) if any(isinstance(value, sp.Basic) for value in values) else max(values)


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
    return sp.Min(*values) if any(isinstance(value, sp.Basic) for value in values) else min(values)


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

    steps: Sequence[Any]
    first: int

    def __new__(cls, constant: float, steps: Sequence[Any], first: int) -> Numbers:
        made = super().__new__(cls, constant)
        made.steps, made.first = steps, first
        return made

    def __getitem__(self, j: Any) -> float:
        if isinstance(j, tuple):
            step, i = j
            return float(self[step][i])  # type: ignore[index]
        if j - self.first >= len(self.steps):
            raise ForwardViewError(f"there is nothing at time {j} yet: use times up to the horizon")
        return self.steps[j - self.first] if j >= self.first else 0.0
