"""What a forward view is written in, as symbols and as numbers.

A forward view is a function U(k, h, …): what the update of time k aims at when everything up to time h is known. What it is made
of it asks for by the names of its other arguments:

| argument       | used as       | what it is                                                                           |
|----------------|---------------|--------------------------------------------------------------------------------------|
| `R`            | `R[j]`        | the reward of the transition into S_j                                                |
| `gamma`, `lam` | `gamma[j]`    | γ and λ of S_j; without an index, constants                                          |
| `alpha`        | `alpha[j]`    | the step-size of update j; without an index, constant                                |
| `rho`          | `rho[j]`      | the importance ratio of the action taken in S_j                                      |
| `greedy`       | `greedy[j]`   | 1 where the action taken in S_j is greedy, 0 elsewhere                               |
| `V`            | `V(i, j)`     | the value of S_j under the weights of time i, θ_iᵀφ_j; with actions that of (S_j, A_j) |
| `V_max`        | `V_max(i, j)` | with actions: that of the best action in S_j                                         |

At horizon h there are rewards, γ and λ up to R_h, γ_h and λ_h, weights up to θ_{h−1}, and actions up to A_{h−1}.

Called with symbols U gives an expression, and called with numbers a number: what is derived from and what is checked against is one
function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp

LAST = {"R": 0, "gamma": 0, "lam": 0, "alpha": -1, "rho": -1, "greedy": -1}  # relative to h
VALUES = ("V", "V_max")


class ForwardViewError(ValueError):
    """A forward view that cannot be understood."""


class At(sp.Symbol):
    """A quantity of one step (kind and time), or a value (kind, time of the weights, time of the state)."""

    def __new__(cls, kind: str, *at: int) -> At:
        made = super().__new__(cls, f"{kind}{list(at)}", real=True)
        made.letter, made.at = kind, at
        return made

    def __getnewargs_ex__(self) -> Any:
        return (self.letter, *self.at), {}

    def shifted(self, by: int) -> At:
        return At(self.letter, *(time + by for time in self.at))


class Quantity(sp.Symbol):
    """A quantity that has a symbol for each step, and without an index is a constant."""

    def __new__(cls, kind: str, last: int) -> Quantity:
        made = super().__new__(cls, kind, real=True)
        made.letter, made.last = kind, last
        return made

    def __getnewargs_ex__(self) -> Any:
        return (self.letter, self.last), {}

    __iter__ = None  # what has items is not a sequence here

    def __getitem__(self, j: int) -> At:
        _known(f"{self.letter}[{j}]", j, self.last)
        return At(self.letter, j)


def _known(what: str, j: Any, last: int) -> None:
    if isinstance(j, bool) or not isinstance(j, int):
        raise ForwardViewError(f"{what}: a time must be a whole number, got {j!r}")
    if j > last:
        raise ForwardViewError(f"{what} is beyond the horizon: the last one that is known is {last}")
    if j < -1:
        raise ForwardViewError(f"{what} is before the beginning, time 0")


@dataclass(frozen=True)
class ForwardView:
    """A target U(k, h, …), and the step-size β(k, …) of the update: θ_{k+1} = θ_k + β_k (U_k^h − θ_kᵀφ_k) φ_k."""

    target: Callable[..., Any]
    step: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        asked(self.target, ("k", "h"))
        if self.step is not None:
            asked(self.step, ("k",))

    @property
    def name(self) -> str:
        return getattr(self.target, "__name__", "forward view")

    def interim(self, k: int, h: int) -> sp.Expr:
        """The interim target U_k^h."""
        given: dict[str, Any] = {name: Quantity(name, h + last) for name, last in LAST.items()}

        def values(kind: str) -> Callable[[int, int], At]:
            def value(i: int, j: int) -> At:
                _known(f"{kind}({i}, {j}), at horizon {h}", i, h - 1)
                _known(f"{kind}({i}, {j}), at horizon {h}", j, h)
                return At(kind, i, j)

            return value

        given |= {kind: values(kind) for kind in VALUES}
        names = asked(self.target, ("k", "h"))
        return _expression(self.target, f"U(k={k}, h={h})", k, h, **{name: given[name] for name in names})

    def beta(self, k: int) -> sp.Expr:
        if self.step is None:
            return At("alpha", k)
        given = {name: Quantity(name, k) for name in LAST}
        return _expression(
            self.step, f"the step-size of update {k}", k, **{n: given[n] for n in asked(self.step, ("k",))}
        )


def asked(function: Any, first: tuple[str, ...]) -> list[str]:
    """The names of what a function asks for, after its first arguments."""
    if not callable(function):
        raise ForwardViewError(f"a forward view must be a function U({', '.join(first)}, …), got {function!r:.80}")
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise ForwardViewError(f"the arguments of {function!r:.80} cannot be seen; give a plain function") from None
    if tuple(names[: len(first)]) != first:
        raise ForwardViewError(f"the first arguments must be {' and '.join(first)}, got {', '.join(names) or 'none'}")
    known = (*LAST, *VALUES)
    unknown = [name for name in names[len(first) :] if name not in known]
    if unknown:
        raise ForwardViewError(f"there is no {unknown[0]!r} to write a forward view with; there are {', '.join(known)}")
    return names[len(first) :]


def _expression(function: Callable, what: str, *arguments: Any, **given: Any) -> sp.Expr:
    try:
        found = sp.sympify(function(*arguments, **given))
    except ForwardViewError:
        raise
    except Exception as error:
        raise ForwardViewError(f"{what} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, sp.Expr) or found.has(sp.zoo, sp.nan, sp.oo):
        raise ForwardViewError(f"{what} must be a finite expression, got {found!s:.80}")
    return found
