"""A forward view: its target and its step-size, called with symbols for the derivation and with numbers for the check.

The module `quantities` has the table of what a forward view may ask for.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import sympy as sp

from trueonline.catalog import Parameter
from trueonline.core.transition import Transition
from trueonline.derivation.quantities import (
    CONSTANTS,
    FEATURE,
    FIRST,
    LAST,
    VALUES,
    At,
    Constant,
    ForwardViewError,
    Own,
    Quantity,
    Steps,
    Values,
)
from trueonline.words import listed

# The names of quantities, of transitions, and of what is in a method file:
TAKEN = {*LAST, *VALUES, *Transition._fields, "k", "h", "i", "memory", "v", "trace_x", "v_next", "c", "d", "rate", "np"}
TAKEN |= {"kernel", "decay", "imprint", "learn", "recall", "min", "max", "abs"}
HINTS = {  # for messages of Python and SymPy
    "truth value": "; for a minimum or maximum use Min and Max of trueonline.derivation",
    "to float": "; use functions of SymPy: sympy.exp, log, sqrt, Abs",
    "ufunc": "; use functions of SymPy: sympy.exp, log, sqrt, Abs",
}
# A float is taken for a fraction with a denominator up to LARGEST, or a decimal of DIGITS digits, if it is within a few roundings:
LARGEST, DIGITS, ROUNDING = 10**6, 13, Fraction(4, 2**52)


@dataclass(frozen=True)
class ForwardView:
    """A target U(k, h, …), and the step-size β(k, …) of the update: θ_{k+1} = θ_k + β_k (U_k^h − θ_kᵀφ_k) φ_k.

    A step-size β(k, i, …) is that of feature i. Then β_k is a diagonal matrix. Both may have parameters.
    """

    target: Callable[..., Any]
    step: Callable[..., Any] | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.parameters:
            if name in TAKEN:
                raise ForwardViewError(
                    f"a parameter may not be called {name!r}: a forward view or its method has this name"
                )
            if name not in (*self.letters, *self.letters_of_step):
                raise ForwardViewError(
                    f"there is a parameter {name!r}, which neither the target nor the step-size asks for"
                )

    @cached_property
    def per_feature(self) -> bool:
        """Whether the step-size has an argument i, the feature."""
        with contextlib.suppress(TypeError, ValueError):
            return self.step is not None and list(inspect.signature(self.step).parameters)[1:2] == ["i"]
        return False

    @property
    def _step_arguments(self) -> tuple[str, ...]:
        return ("k", "i") if self.per_feature else ("k",)

    @property
    def name(self) -> str:
        """The name of the target's function."""
        return getattr(self.target, "__name__", "forward view")

    @cached_property
    def letters(self) -> list[str]:
        """The names of the quantities in the target."""
        return asked(self.target, ("k", "h"), (*LAST, *VALUES, *self.parameters))

    @cached_property
    def letters_of_step(self) -> list[str]:
        """The names of the quantities in the step-size."""
        return [] if self.step is None else asked(self.step, self._step_arguments, (*LAST, *self.parameters))

    @cached_property
    def _interim(self) -> dict[tuple[int, int], sp.Expr]:
        return {}

    def interim(self, k: int, h: int) -> sp.Expr:
        """The interim target U_k^h, as an expression. It is made once, because several checks ask for it."""
        if (k, h) not in self._interim:
            self._interim[k, h] = self._made(k, h)
        return self._interim[k, h]

    def _made(self, k: int, h: int) -> sp.Expr:
        what = f"U(k={k}, h={h})"
        return _begun(_expression(self.target, what, k, h, **self._symbols(h, what)), what)

    def _symbols(self, h: int, what: str) -> dict[str, Any]:
        """What the target asks for, at horizon h."""
        given: dict[str, Any] = {name: Steps(name, h + last, what) for name, last in LAST.items()}
        given |= {kind: Values(kind, h, what) for kind in VALUES} | self._own
        return {name: given[name] for name in self.letters}

    @property
    def _own(self) -> dict[str, Any]:
        """The parameters, as symbols."""
        return {name: Quantity(Own(name, real=True)) for name in self.parameters}

    @cached_property
    def has_floats(self) -> bool:
        """Whether the target has floats in it."""
        return sp.sympify(self.target(0, 3, **self._symbols(3, "U"))).has(sp.Float)

    def beta(self, k: int) -> sp.Expr:
        """The step-size of update k, as an expression. If it is per feature, alpha[k] in it is that of the feature."""
        if self.step is None:
            return At("alpha", k)
        what = f"the step-size of update {k}"
        given: dict[str, Any] = {
            name: Steps(name, k + 1 + last, what, self.per_feature and name == "alpha") for name, last in LAST.items()
        }
        given = {name: {**given, **self._own}[name] for name in self.letters_of_step}
        feature = (Quantity(FEATURE),) if self.per_feature else ()
        found = _begun(_expression(self.step, what, k, *feature, **given), what)
        alpha = At("alpha", k)
        if self.per_feature and (found == 0 or alpha in sp.cancel(found / alpha).free_symbols):
            raise ForwardViewError(
                f"{what} must be alpha[k, i] times what all features share, such as alpha[k, i] * rho[k], got {found}: give "
                "the rest to the learner, in its step_size"
            )
        return found

    def target_of(self, given: Mapping[str, Any]) -> Callable[[int, int], float]:
        """The interim target U_k^h from numbers, as a function of k and h."""
        return _numerical(self.target, "U(k={}, h={})", {name: given[name] for name in self.letters})

    def step_of(self, given: Mapping[str, Any]) -> Callable[..., float]:
        """The step-size from numbers, as a function of the update k, and of the feature i if it is per feature."""
        if self.step is None:
            return given["alpha"].__getitem__
        return _numerical(self.step, "the step-size of update {}", {name: given[name] for name in self.letters_of_step})


def asked(function: Any, first: tuple[str, ...], known: tuple[str, ...]) -> list[str]:
    """The names of the quantities that a function asks for, after its first arguments."""
    if not callable(function):
        raise ForwardViewError(f"a forward view must be a function U({', '.join(first)}, …), got {function!r:.80}")
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ForwardViewError(f"the arguments of {function!r:.80} cannot be seen; give a plain function") from None
    names = list(parameters)
    if tuple(names[: len(first)]) != first:
        raise ForwardViewError(f"the first arguments must be {listed(first)}, got {listed(names)}")
    wanted = [name for name in names[len(first) :] if parameters[name].default is inspect.Parameter.empty]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ForwardViewError(
            f"there is no {unknown[0]!r} to write a forward view with; there are {', '.join(known)}. If it is a parameter, give "
            f"its value, as in parameters={{{unknown[0]!r}: 1.0}}"
        )
    return wanted


def _expression(function: Callable, what: str, *arguments: Any, **given: Any) -> sp.Expr:
    try:
        found = function(*arguments, **given)
        found = found if isinstance(found, str) else exact(sp.sympify(found))
    except ForwardViewError:
        raise
    except Exception as error:
        hint = next((hint for sign, hint in HINTS.items() if sign in str(error)), "")
        raise ForwardViewError(f"{what} failed: {type(error).__name__}: {error}{hint}") from error
    if not isinstance(found, sp.Expr) or found.has(sp.zoo, sp.nan, sp.oo):
        raise ForwardViewError(f"{what} must be a finite expression, got {found!r:.80}")
    for symbol in sorted(found.free_symbols, key=str):
        if symbol is FEATURE:
            raise ForwardViewError(f"{what} depends on i beside alpha[k, i]: features differ by their step-sizes alone")
        if not isinstance(symbol, At | Constant):
            raise ForwardViewError(f"{what} has {symbol} in it, which is none of the arguments: use the arguments only")
        if isinstance(symbol, Constant) and not isinstance(symbol, Own) and symbol.name not in CONSTANTS:
            raise ForwardViewError(f"{what} has {symbol} without an index; write {symbol}[j] for that of time j")
        if isinstance(symbol, Constant) and any(
            isinstance(s, At) and s.letter == symbol.name for s in found.free_symbols
        ):
            raise ForwardViewError(
                f"{what} has {symbol} with and without an index; where it varies, write {symbol}[j] everywhere"
            )
    return found


def exact(expression: sp.Expr) -> sp.Expr:
    """The expression with fractions for its floats, so that 0.1 · 3 is 0.3."""
    if not isinstance(expression, sp.Basic):
        return expression
    return expression.xreplace({each: _fraction(each) for each in expression.atoms(sp.Float)})


def _fraction(number: sp.Float) -> sp.Rational:
    """The short fraction or decimal within a few roundings of a float, or else the float itself."""
    value = float(number)
    if not math.isfinite(value) or (value == 0.0) != (number == 0):
        raise ForwardViewError(f"the number {number} is beyond the range of floats: scale the rewards instead")
    near = Fraction(value).limit_denominator(LARGEST), Fraction(f"{value:.{DIGITS - 1}e}")
    short = (each for each in near if abs(each - Fraction(value)) <= ROUNDING * abs(Fraction(value)))
    return sp.Rational(next(short, Fraction(value)))


def _numerical(function: Callable, what: str, given: Mapping[str, Any]) -> Callable[..., float]:
    """A function of times, with these numbers; nan where it divides by 0. `what` names its value in an error."""

    def number(*times: int) -> float:
        try:
            return float(function(*times, **given))
        except ForwardViewError:
            raise
        except (OverflowError, ZeroDivisionError):
            return math.nan
        except Exception as error:
            raise ForwardViewError(
                f"{what.format(*times)} failed with numbers: {type(error).__name__}: {error}"
            ) from error

    return number


def _begun(expression: sp.Expr, what: str) -> sp.Expr:
    """Refuse quantities from before the beginning, unless they cancel."""
    early = [s for s in expression.free_symbols if isinstance(s, At) and min(s.at) < FIRST[s.letter]]
    if early:
        left = sp.cancel(expression).free_symbols
        for symbol in sorted(early, key=str):
            if symbol in left:
                raise ForwardViewError(
                    f"{what} needs {symbol}, which is before the beginning: use times from {FIRST[symbol.letter]} on"
                )
    return expression
