"""Does a forward view have a backward view that costs O(n)? The condition, and what follows from it.

**Condition.** For all k < h, with b, c and d that depend on what is known at one step alone,

    U_k^{h+1} − U_k^h = b_k · (c_{k+1} c_{k+2} ⋯ c_h) · d_h                                                             (★)

**Then** θ_t := θ_t^t obeys, with e_{−1} = 0,

    e_t = c_t (I − β_t φ_t φ_tᵀ) e_{t−1} + β_t b_t φ_t
    θ_{t+1} = θ_t + d_t e_t + β_t (U_t^{t+1} − b_t d_t − θ_tᵀφ_t) φ_t

docs/derive.md has the proof. Here the condition is checked on the targets of the first horizons, as polynomials, and b, c and d
are read off: U_k^{h+1} − U_k^h over the same for k + 1 is b_k c_{k+1} / b_{k+1}, whatever h.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from trueonline.derivation.forward_view import At, ForwardView

HORIZONS = 5  # that are looked at


class NotDerivableError(ValueError):
    """The condition does not hold: there is no such backward view."""

    def __init__(self, k: int, h: int, why: str, terms: sp.Expr) -> None:
        self.k, self.h, self.terms = k, h, terms
        super().__init__(
            f"the target does not grow by a product: at k = {k}, h = {h} {why}: {_short(terms)}. So no backward view of this "
            "kind, at a cost that does not grow with time, is equal to it"
        )


@dataclass(frozen=True)
class Factors:
    """b, c, d, the first target U_t^{t+1} and the step-size β, as expressions in what is known at time t = 0 ± 1."""

    b: sp.Expr
    c: sp.Expr
    d: sp.Expr
    first: sp.Expr
    beta: sp.Expr


def factor(view: ForwardView, horizons: int = HORIZONS) -> Factors:
    """Find b, c and d; NotDerivableError where there are none."""
    D = {
        (k, h): sp.factor(sp.together(view.interim(k, h + 1) - view.interim(k, h)))
        for h in range(1, horizons + 1)
        for k in range(h)
    }
    t = 2  # far enough from the beginning for everything to be as it is later
    first = _moved(view.interim(t, t + 1), -t)
    _same(view, first, t)
    beta = _moved(view.beta(t), -t)
    if all(difference == 0 for difference in D.values()):
        return Factors(sp.Integer(1), sp.Integer(0), sp.Integer(0), first, beta)
    ratio = _ratio(D, horizons)
    before, now = _split(ratio)  # of k = −1 and of k + 1 = 0
    b = _moved(before, 1)
    c = sp.cancel(b * now)
    d = sp.factor(sp.cancel(_moved(D[1, 2], -2) / (before * c)))
    if sp.denom(sp.together(d)).free_symbols:  # would divide by what may be 0: c remembers the step before instead
        b, c = sp.Integer(1), ratio
        d = sp.factor(sp.cancel(_moved(D[1, 2], -2) / c))
    factors = Factors(b, c, d, first, beta)
    _confirm(D, factors)
    return factors


def _ratio(D: dict[tuple[int, int], sp.Expr], horizons: int) -> sp.Expr:
    """The ratio of neighbouring differences, moved so that k + 1 is 0. It must be the same for every k and h."""
    found = None
    for h in range(2, horizons + 1):
        for k in range(h - 1):
            if D[k + 1, h] == 0:
                if D[k, h] != 0:
                    raise NotDerivableError(k, h, "it grows, but that of the next time does not; by", D[k, h])
                continue
            ratio = sp.cancel(D[k, h] / D[k + 1, h])
            strange = [s for s in _symbols(ratio) if s.letter in ("R", "V", "V_max") or s.at[0] not in (k, k + 1)]
            if strange:
                raise NotDerivableError(
                    k, h, f"its growth, over that of the next time, depends on {_names(strange)}", ratio
                )
            ratio = _moved(ratio, -(k + 1))
            if found is None:
                found = ratio
            elif sp.cancel(found - ratio) != 0:
                raise NotDerivableError(
                    k, h, "its growth, over that of the next time, is another than before", sp.cancel(ratio - found)
                )
    if found is None or found == 0:
        k, h = next(at for at, difference in D.items() if difference != 0)
        raise NotDerivableError(
            max(k - 1, 0), h, "it has stopped growing, while that of later times has not; these still grow by", D[k, h]
        )
    return found


def _split(ratio: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The ratio as f · g, with f of step −1 alone and g of step 0 alone (and constants)."""
    before, now = sp.Integer(1), sp.Integer(1)
    for base, power in sp.factor(ratio).as_powers_dict().items():
        times = {s.at[0] for s in _symbols(base)}
        if times == {-1, 0}:
            raise NotDerivableError(0, 2, "its growth mixes two steps", base**power)
        if times == {-1}:
            before *= base**power
        else:
            now *= base**power
    return before, now


def _confirm(D: dict[tuple[int, int], sp.Expr], factors: Factors) -> None:
    """(★) for all k and h that were looked at."""
    for (k, h), difference in D.items():
        product = (
            _moved(factors.b, k) * sp.prod([_moved(factors.c, j) for j in range(k + 1, h + 1)]) * _moved(factors.d, h)
        )
        left = sp.cancel(sp.expand(difference - product))
        if left != 0:
            raise NotDerivableError(k, h, "what is left over when it is written as one", left)


def _same(view: ForwardView, first: sp.Expr, t: int) -> None:
    """The first target, U_t^{t+1}, must be made in the same way at all times."""
    later = _moved(view.interim(t + 1, t + 2), -(t + 1))
    if sp.expand(later - first) != 0:
        raise NotDerivableError(t + 1, t + 2, "the first target is another than before", sp.expand(later - first))


def _symbols(expression: sp.Expr) -> list[At]:
    return sorted((s for s in expression.free_symbols if isinstance(s, At)), key=str)


def _shift(expression: sp.Expr, by: int) -> dict[At, At]:
    return {symbol: symbol.shifted(by) for symbol in _symbols(expression)}


def _moved(expression: sp.Expr, by: int) -> sp.Expr:
    return expression.xreplace(_shift(expression, by))


def _names(symbols: list[At]) -> str:
    return ", ".join(map(str, symbols[:3]))


def _short(expression: sp.Expr) -> str:
    text = str(expression)
    return text if len(text) <= 160 else f"{text[:157]}..."
