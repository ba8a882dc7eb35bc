"""Does a forward view have a backward view that costs O(n)? The condition, and what follows from it.

**Condition.** For all k < h, with b, c and d that depend on what is known at one step alone,

    U_k^{h+1} − U_k^h = b_k · (c_{k+1} c_{k+2} ⋯ c_h) · d_h                                                             (★)

**Then** θ_t := θ_t^t obeys, with e_{−1} = 0,

    e_t = c_t (I − β_t φ_t φ_tᵀ) e_{t−1} + β_t b_t φ_t
    θ_{t+1} = θ_t + d_t e_t + β_t (U_t^{t+1} − b_t d_t − θ_tᵀφ_t) φ_t

docs/derive.md has the proof. Here the condition is checked on the targets of the first horizons, as expressions, and b, c and d are
read off: U_k^{h+1} − U_k^h over the same for k + 1 is b_k c_{k+1} / b_{k+1}, whatever h. Then it is checked on later horizons, with
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sympy as sp

from trueonline.derivation.forward_view import FIRST, LAST, At, ForwardView, ForwardViewError, Numbers

HORIZONS = 5  # that are looked at as expressions
PLACES = [(k, h) for h in range(1, HORIZONS + 1) for k in range(h)]
LATER = (6, 7, 8, 9, 10, 15, 25, 50)  # that are looked at as numbers


class NotDerivableError(ValueError):
    """The condition does not hold: there is no such backward view."""

    def __init__(self, k: int, h: int, why: str, terms: sp.Expr) -> None:
        self.k, self.h, self.terms = k, h, terms
        super().__init__(
            f"the target does not grow by a product: at k = {k}, h = {h} {why}: {_short(terms)}. So it has no backward view of "
            "this kind, at a cost that does not grow with time"
        )


@dataclass(frozen=True)
class Factors:
    """b, c, d, the first target U_t^{t+1} and the step-size β, as expressions in what is known at time t = 0 ± 1."""

    b: sp.Expr
    c: sp.Expr
    d: sp.Expr
    first: sp.Expr
    beta: sp.Expr


class Growth(dict[tuple[int, int], sp.Expr]):
    """U_k^{h+1} − U_k^h by (k, h), worked out when it is asked for: what does not factor shows itself early."""

    def __init__(self, view: ForwardView) -> None:
        self.view = view

    def __missing__(self, at: tuple[int, int]) -> sp.Expr:
        k, h = at
        self[at] = sp.factor(sp.together(self.view.interim(k, h + 1) - self.view.interim(k, h)))
        return self[at]


def factor(view: ForwardView) -> Factors:
    """Find b, c and d; NotDerivableError where there are none."""
    first, beta = _always(view)
    D = Growth(view)
    if all(D[at] == 0 for at in PLACES):
        factors = Factors(sp.Integer(1), sp.Integer(0), sp.Integer(0), first, beta)
    else:
        ratio = _ratio(D)
        b, c = _split(ratio)
        d = _last(D, b, c)
        if not _safe(view, b, c, d):  # would divide by what may be 0: let c remember the step before instead
            b, c = sp.Integer(1), ratio
            d = _last(D, b, c)
        if not _safe(view, b, c, d):
            raise NotDerivableError(0, 2, "its factors would divide by what the target does not divide by", c * d)
        factors = Factors(b, c, d, first, beta)
    _confirm(D, factors)
    _confirm_later(view, factors)
    return factors


def _always(view: ForwardView) -> tuple[sp.Expr, sp.Expr]:
    """The first target, U_t^{t+1}, and the step-size, β_t. They must be made in the same way at all times."""
    t = 2
    first, beta = moved(view.interim(t, t + 1), -t), moved(view.beta(t), -t)
    for k in (0, 1, t + 1):
        for what, then, now in (("first target", view.interim(k, k + 1), first), ("step-size", view.beta(k), beta)):
            other = sp.cancel(moved(then, -k) - now)
            if other != 0:
                raise NotDerivableError(k, k + 1, f"the {what} is another than at k = {t}, by", other)
    return first, beta


def _last(D: Growth, b: sp.Expr, c: sp.Expr) -> sp.Expr:
    """d, from U_1^3 − U_1^2 = b_1 c_2 d_2."""
    return tidy(sp.cancel(moved(D[1, 2], -2) / (moved(b, -1) * c)))


def _safe(view: ForwardView, *parts: sp.Expr) -> bool:
    """Whether the parts divide by nothing but what the target itself divides by."""
    own = sp.denom(sp.together(view.interim(1, 3))).free_symbols
    known = {getattr(symbol, "letter", symbol.name) for symbol in own}
    below = set().union(*(sp.denom(sp.together(part)).free_symbols for part in parts))
    return {getattr(symbol, "letter", symbol.name) for symbol in below} <= known


def _ratio(D: Growth) -> sp.Expr:
    """The ratio of neighbouring differences, moved so that k + 1 is 0. It must be the same for every k and h."""
    found = None
    for h in range(2, HORIZONS + 1):
        for k in range(h - 1):
            if D[k + 1, h] == 0:
                if D[k, h] != 0:
                    raise NotDerivableError(k, h, f"U_{k + 1} does not grow, while U_{k}^{h + 1} − U_{k}^{h} is", D[k, h])
                continue
            ratio = sp.cancel(D[k, h] / D[k + 1, h])
            strange = [s for s in _symbols(ratio) if s.letter == "R" or not {*s.at} <= {k, k + 1}]
            if strange:
                raise NotDerivableError(k, h, f"{_over(k, h)} depends on {_names(strange)}", ratio)
            ratio = moved(ratio, -(k + 1))
            if found is None:
                found = ratio
            elif sp.cancel(found - ratio) != 0:
                raise NotDerivableError(
                    k, h, f"{_over(k, h)} is another than for smaller k and h, by", sp.cancel(ratio - found)
                )
    if found is None or found == 0:  # (★) would let U_k grow with one h alone, or one k with each
        k, h = next(at for at in PLACES if D[at] == 0)
        other, when = next(((j, h) for j in range(h) if D[j, h] != 0), (0, 1))
        still = f"U_{k} has stopped growing, while U_{other}^{when + 1} − U_{other}^{when} is"
        raise NotDerivableError(k, h, still, D[other, when])
    return found


def _split(ratio: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """b and c, each of one step alone, with ratio = b_{−1} c_0 / b_0; b = 1 where there are none."""
    before, now = sp.Integer(1), sp.Integer(1)
    for base, power in sp.factor(ratio).as_powers_dict().items():
        times = {s.at[0] for s in _symbols(base)}
        if times == {-1, 0}:
            return sp.Integer(1), ratio
        if times == {-1}:
            before *= base**power
        else:
            now *= base**power
    b = moved(before, 1)
    return b, sp.cancel(b * now)


def _confirm(D: Growth, factors: Factors) -> None:
    """(★) for all k and h that were looked at."""
    for k, h in PLACES:
        product = moved(factors.b, k) * sp.prod([moved(factors.c, j) for j in range(k + 1, h + 1)]) * moved(factors.d, h)
        left = sp.cancel(sp.expand(D[k, h] - product))
        if left != 0:
            raise NotDerivableError(k, h, f"this is left of U_{k}^{h + 1} − U_{k}^{h} when it is written as one", left)


def _confirm_later(view: ForwardView, factors: Factors) -> None:
    """(★) for later horizons, with numbers: a target may change its mind."""
    rng = np.random.default_rng(20160801)
    size = max(LATER) + 2
    given = {name: Numbers(rng.uniform(0.2, 0.9), rng.uniform(0.2, 1.1, size).tolist(), FIRST[name]) for name in LAST}
    given["greedy"] = Numbers(np.nan, rng.integers(0, 2, size).astype(float).tolist(), FIRST["greedy"])
    values = {kind: rng.normal(size=(size, size)) for kind in ("V", "V_max")}
    functions = {kind: (lambda i, j, table=table: float(table[i, j])) for kind, table in values.items()}

    def at(symbol: sp.Symbol, time: int) -> float:
        if not isinstance(symbol, At):
            return float(given[symbol.name])
        times = [time + each for each in symbol.at]
        return float(functions[symbol.letter](*times) if symbol.letter in functions else given[symbol.letter][times[0]])

    def compiled(part: sp.Expr) -> Callable[[int], float]:
        symbols = sorted(part.free_symbols, key=str)
        function = sp.lambdify(symbols, part, modules="math")
        return lambda time: float(function(*(at(symbol, time) for symbol in symbols)))

    b, c, d = (compiled(part) for part in (factors.b, factors.c, factors.d))
    for h in LATER:
        grown, decay = d(h), 1.0
        for k in range(h - 1, -1, -1):
            decay *= c(k + 1)
            try:
                later, now = (view.number(k, horizon, {**given, **functions}) for horizon in (h + 1, h))
            except Exception as error:
                raise ForwardViewError(f"U(k={k}, h={h}) failed: {type(error).__name__}: {error}") from error
            left = later - now - b(k) * decay * grown
            if not abs(left) <= 1e-9 * (1.0 + abs(later) + abs(now)):
                raise NotDerivableError(k, h, "what is left over, with numbers,", sp.Float(left, 3))


def _symbols(expression: sp.Expr) -> list[At]:
    return sorted((s for s in expression.free_symbols if isinstance(s, At)), key=str)


def _shift(expression: sp.Expr, by: int) -> dict[At, At]:
    return {symbol: symbol.shifted(by) for symbol in _symbols(expression)}


def moved(expression: sp.Expr, by: int) -> sp.Expr:
    return expression.xreplace(_shift(expression, by))


def _over(k: int, h: int) -> str:
    return f"(U_{k}^{h + 1} − U_{k}^{h}) / (U_{k + 1}^{h + 1} − U_{k + 1}^{h})"


def _names(symbols: list[At]) -> str:
    return ", ".join(map(str, symbols[:3]))


def _short(expression: sp.Expr) -> str:
    text = str(expression)
    return text if len(text) <= 160 else f"{text[:157]}..."


def tidy(expression: sp.Expr) -> sp.Expr:
    """The shortest of some ways to write it."""
    spread = sp.expand(expression)
    ways = [sp.factor(expression), spread, *(sp.collect(spread, s) for s in sorted(spread.free_symbols, key=str))]
    return min(ways, key=lambda way: (sp.count_ops(way), len(str(way))))
