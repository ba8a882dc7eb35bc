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

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from trueonline.derivation.forward_view import At, ForwardView, ForwardViewError
from trueonline.derivation.writing import NAMES, TEXT, word

HORIZONS = 5  # that are looked at
PLACES = [(k, h) for h in range(1, HORIZONS + 1) for k in range(h)]
ENTERED = ("R", "gamma", "lam")  # what belongs to the state entered, and so is known one step earlier than its own


class NotDerivableError(ValueError):
    """The condition does not hold: there is no such backward view."""

    def __init__(
        self, k: int, h: int, why: str, terms: sp.Expr, headline: str = "the target does not grow by a product"
    ) -> None:
        self.k, self.h, self.terms = k, h, terms
        super().__init__(
            f"{headline}: at k = {k}, h = {h} {why}: {_short(terms)}. So it has no backward view of this kind, at a cost that does "
            "not grow with time"
        )


CHANGES = "the forward view is not the same at all times (for step-sizes that change, give the learner a schedule)"


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
    one, nothing = sp.Integer(1), sp.Integer(0)
    b, c, d = (one, nothing, nothing) if all(D[at] == 0 for at in PLACES) else _parts(view, D)
    _confirm(D, b, c, d)
    return Factors(b, c, d, first, beta)


def _always(view: ForwardView) -> tuple[sp.Expr, sp.Expr]:
    """The first target, U_t^{t+1}, and the step-size, β_t. They must be made in the same way at all times."""
    t = 2
    first, beta = moved(view.interim(t, t + 1), -t), moved(view.beta(t), -t)
    for k in (0, 1, t + 1):
        for what, then, now in (("first target", view.interim(k, k + 1), first), ("step-size", view.beta(k), beta)):
            other = sp.cancel(moved(then, -k) - now)
            if other != 0:
                raise NotDerivableError(k, k + 1, f"the {what} is another than at k = {t}, by", other, CHANGES)
    return tidy(first), beta


def _parts(view: ForwardView, D: Growth) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """b, c and d: the first way to split their ratio that needs nothing but what is at hand, and divides by nothing new."""
    missing: list[sp.Symbol] = []
    own = {*_below(view.interim(1, 3)), *_below(view.beta(1)), At("alpha", 0)}  # α is never 0
    divided = sp.Integer(0)
    for found, c in _splits(_ratio(D)):
        b = found
        d = tidy(sp.cancel(moved(D[1, 2], -2) / (moved(b, -1) * c)))  # from U_1^3 − U_1^2 = b_1 c_2 d_2
        if b != 1 and d.could_extract_minus_sign():
            b, d = tidy(-b), tidy(-d)
        unknown = [s for part in (b, c, d) for s in symbols(part) if (s.letter, *s.at) not in NAMES]
        new = [each for part in (b, c, d) for each in _below(part) if each not in own]
        below = sp.denom(sp.together(d))
        new += [below] if below.xreplace(dict.fromkeys(filter(_before, symbols(below)), sp.Integer(0))) == 0 else []
        if not (unknown or new):
            return b, c, d
        missing, divided = missing or unknown, [divided, *new][-1]
    if missing:
        names = ", ".join(sorted({word(symbol, TEXT) for symbol in missing}))
        raise ForwardViewError(f"the update of time t would need {names}, which is not at hand then")
    raise NotDerivableError(0, 2, "its factors would divide by what may be 0 while the target does not", divided)


def _ratio(D: Growth) -> sp.Expr:
    """U_k^{h+1} − U_k^h over the same for k + 1, moved so that k + 1 is 0. It must be the same for every k and h."""
    found = None
    for h in range(2, HORIZONS + 1):
        for k in range(h - 1):
            if D[k + 1, h] == 0:
                if D[k, h] != 0:
                    raise NotDerivableError(k, h, f"U_{k + 1} does not grow, while U_{k}^{h + 1} − U_{k}^{h} is", D[k, h])
                continue
            ratio = sp.cancel(D[k, h] / D[k + 1, h])
            strange = [s for s in symbols(ratio) if not _known_by(s, k + 1)]
            if strange:
                raise NotDerivableError(k, h, f"{_over(k, h)} depends on {_names(strange)}", ratio)
            ratio = moved(ratio, -(k + 1))
            if found is None:
                found = ratio
            elif sp.cancel(found - ratio) != 0:
                another = sp.cancel(ratio - found)
                raise NotDerivableError(k, h, f"{_over(k, h)} is another than for smaller k and h, by", another)
    if found is None or found == 0:  # (★) would let U_k grow with one h alone, or one k with each
        k, h = next(at for at in PLACES if D[at] == 0)
        other, when = next(((j, h) for j in range(h) if D[j, h] != 0), (0, 1))
        still = f"U_{k} has stopped growing, while U_{other}^{when + 1} − U_{other}^{when} is"
        raise NotDerivableError(k, h, still, D[other, when])
    return found


def _known_by(symbol: At, t: int) -> bool:
    """Whether it belongs to the steps t − 1 and t."""
    first, *second = symbol.at
    if symbol.letter in ENTERED:
        return t - 1 <= first <= t + 1
    return t - 1 <= first <= t and all(t - 1 <= time <= t + 1 for time in second)


def _splits(ratio: sp.Expr) -> Iterator[tuple[sp.Expr, sp.Expr]]:
    """Ways to write it as b_{−1} c_0 / b_0."""
    powers = dict(sp.factor(ratio).as_powers_dict())
    b = sp.Integer(1)  # whatever is divided by now, and was multiplied by a step before
    for base, power in powers.items():
        if power.is_Number and power < 0 and powers.get(moved(base, -1)) == -power:
            b *= base**-power
    yield b, sp.cancel(ratio * b / moved(b, -1))
    yield sp.Integer(1), ratio
    before = sp.Integer(1)
    for base, power in powers.items():
        before *= base**power if {s.at[0] for s in symbols(base)} == {-1} else 1
    yield moved(before, 1), sp.cancel(ratio * moved(before, 1) / before)


def _below(expression: sp.Expr) -> list[sp.Expr]:
    """The factors of its denominator, each moved to the beginning of time."""
    found = []
    for base in sp.factor(sp.denom(sp.together(expression))).as_powers_dict():
        times = [time for s in symbols(base) for time in s.at]
        if base.free_symbols:
            found.append(moved(base, -min(times)) if times else base)
    return found


def _before(symbol: At) -> bool:
    """Whether it is not known, or 0, at a beginning."""
    return symbol in (At("gamma", 0), At("lam", 0), At("greedy", 0), At("rho", -1), At("V", -1, 0), At("V_max", -1, 0))


def _confirm(D: Growth, b: sp.Expr, c: sp.Expr, d: sp.Expr) -> None:
    """(★) for all k and h that are looked at."""
    for k, h in PLACES:
        product = moved(b, k) * sp.prod([moved(c, j) for j in range(k + 1, h + 1)]) * moved(d, h)
        left = sp.cancel(D[k, h] - product)
        if left != 0:
            raise NotDerivableError(k, h, f"this is left of U_{k}^{h + 1} − U_{k}^{h} when it is written as one", left)


def symbols(expression: sp.Expr) -> list[At]:
    return sorted((s for s in expression.free_symbols if isinstance(s, At)), key=str)


def moved(expression: sp.Expr, by: int) -> sp.Expr:
    """The same at another time."""
    return expression.xreplace({symbol: symbol.shifted(by) for symbol in symbols(expression)})


def _over(k: int, h: int) -> str:
    return f"(U_{k}^{h + 1} − U_{k}^{h}) / (U_{k + 1}^{h + 1} − U_{k + 1}^{h})"


def _names(strange: list[At]) -> str:
    return ", ".join(map(str, strange[:3]))


def _short(expression: sp.Expr) -> str:
    text = str(expression)
    return text if len(text) <= 160 else f"{text[:157].rsplit(' ', 1)[0]} …"


def tidy(expression: sp.Expr) -> sp.Expr:
    """The shortest of some ways to write it."""
    spread = sp.expand(expression)
    ways = [sp.factor(expression), spread, *(sp.collect(spread, s) for s in sorted(spread.free_symbols, key=str))]
    least = min(ways, key=lambda way: (sp.count_ops(way), len(str(way))))
    number, rest = least.as_coeff_Mul()
    sums = [part for part in sp.Mul.make_args(rest) if part.is_Add]
    if number.is_Integer or not sums:
        return least
    return (rest / sums[0]) * sp.expand(number * sums[0])  # 0.3·R + 0.7·V, and not 0.1·(3·R + 7·V)
