"""The condition for a backward view that costs O(n), and the factors that follow from it.

A backward view needs one trace if the target of every update grows by a product, from each horizon to the next.

**Condition.** For all k < h, with b, c and d that depend on what is known at one step alone,

    U_k^{h+1} − U_k^h = b_k · (c_{k+1} c_{k+2} ⋯ c_h) · d_h                                                             (★)

**Then** θ_t := θ_t^t obeys, with e_{−1} = 0,

    e_t = c_t (I − β_t φ_t φ_tᵀ) e_{t−1} + β_t b_t φ_t
    θ_{t+1} = θ_t + d_t e_t + β_t (U_t^{t+1} − b_t d_t − θ_tᵀφ_t) φ_t

β_t may be a diagonal matrix, with a step-size for each feature. docs/guides/derive.md has the proof.

This module checks the condition on the targets of the first horizons, as expressions. It reads b, c and d off the growth:
U_k^{h+1} − U_k^h over the same for k + 1 is b_k c_{k+1} / b_{k+1}, for every h. `later_horizons` then checks later horizons with
numbers. The derived update is one for all times, so b, c, d, U_t^{t+1} and β_t must not depend on the time itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import sympy as sp

from trueonline.derivation.forward_view import ForwardView
from trueonline.derivation.quantities import At
from trueonline.derivation.refusals import (
    STEP_ADVICE,
    WEIGHT_ADVICE,
    changes_with_time,
    no_backward_view,
    not_at_hand,
    short,
)
from trueonline.derivation.text.writing import NAMES, TEXT, word

HORIZONS = 5  # the first horizons, which are checked as expressions
FIRST_TIMES = (2, 0, 1, 3)  # of first targets and step-sizes that are checked as expressions
PLACES = [(k, h) for h in range(1, HORIZONS + 1) for k in range(h)]
ARRIVALS = ("R", "gamma", "lam")  # of the state entered: known one step before its own


@dataclass(frozen=True)
class Factors:
    """b, c, d, the first target U_t^{t+1} and the step-size β, as expressions in what is known at time t = 0 ± 1."""

    b: sp.Expr
    c: sp.Expr
    d: sp.Expr
    first: sp.Expr
    beta: sp.Expr


class Growth(dict[tuple[int, int], sp.Expr]):
    """U_k^{h+1} − U_k^h by (k, h). It is computed on demand, so that a target that does not factor is refused early."""

    def __init__(self, view: ForwardView) -> None:
        self.view = view

    def __missing__(self, at: tuple[int, int]) -> sp.Expr:
        k, h = at
        self[at] = simplified(sp.factor, self.view.interim(k, h + 1) - self.view.interim(k, h))
        return self[at]


def factor(view: ForwardView) -> Factors:
    """b, c and d of a forward view; NotDerivableError if it has none, or if it changes with time."""
    firsts = {k: view.interim(k, k + 1) for k in FIRST_TIMES}
    betas = {k: view.beta(k) for k in FIRST_TIMES}
    growth = Growth(view)
    grows = any(growth[at] != 0 for at in PLACES)
    ratios = _ratios(growth) if grows else {}
    _same_at_all_times("the first target", "U_{0}^{1}", firsts)
    _same_at_all_times("the step-size", "β_{0}", betas, STEP_ADVICE)
    b, c, d = _parts(view, growth, _ratio(growth, ratios)) if grows else (sp.Integer(1), sp.Integer(0), sp.Integer(0))
    _confirm(growth, b, c, d)
    t = FIRST_TIMES[0]
    return Factors(b, c, d, tidy(moved(firsts[t], -t)), moved(betas[t], -t))


def _same_at_all_times(part: str, name: str, by_time: dict[int, sp.Expr], advice: str = WEIGHT_ADVICE) -> None:
    """Refuse expressions of several times that are not the same expression, moved in time."""
    times = sorted(by_time)
    for n, t in enumerate(times):
        difference = sp.cancel(moved(by_time[t], -t) - moved(by_time[times[0]], -times[0]))
        if difference != 0:
            shown = [f"{name.format(time, time + 1)} = {short(by_time[time], 60)}" for time in times[: n + 1]]
            raise changes_with_time(part, f"{', '.join(shown)}, …", t, t + 1, difference, advice)


def _parts(view: ForwardView, growth: Growth, ratio: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """b, c and d: the first way to split their ratio that needs only what is known, and divides by nothing new."""
    missing: list[sp.Symbol] = []
    own = {*_below(view.interim(1, 3)), *_below(view.beta(1)), At("alpha", 0)}  # α is never 0
    divided = sp.Integer(0)
    for b, c in _splits(ratio):
        d = tidy(sp.cancel(moved(growth[1, 2], -2) / (moved(b, -1) * c)))  # from U_1^3 − U_1^2 = b_1 c_2 d_2
        if b != 1 and d.could_extract_minus_sign():
            b, d = tidy(-b), tidy(-d)  # noqa: PLW2901
        unknown = [s for part in (b, c, d) for s in symbols(part) if (s.letter, *s.at) not in NAMES]
        new = [each for part in (b, c, d) for each in _below(part) if each not in own]
        below = sp.denom(sp.together(d))
        new += [below] if below.xreplace(dict.fromkeys(filter(_before, symbols(below)), sp.Integer(0))) == 0 else []
        if not (unknown or new):
            return b, c, d
        missing, divided = missing or unknown, [divided, *new][-1]
    if missing:
        raise not_at_hand(sorted({word(symbol, TEXT) for symbol in missing}))
    raise no_backward_view(0, 2, "its factors would divide by a term that may be 0 while the target does not", divided)


def _ratios(growth: Growth) -> dict[int, sp.Expr]:
    """The growth of U_k over that of U_{k+1}, by k. For each k it must be the same at every h."""
    ratios: dict[int, sp.Expr] = {}
    for h in range(2, HORIZONS + 1):
        for k in range(h - 1):
            if growth[k + 1, h] == 0:
                if growth[k, h] != 0:
                    raise _standstill(growth, k, h)
                continue
            ratio = simplified(sp.cancel, growth[k, h] / growth[k + 1, h])
            strange = [s for s in symbols(ratio) if not _known_by(s, k + 1)]
            if strange:
                raise no_backward_view(k, h, f"{_over(k, h)} depends on {_names(strange)}", ratio)
            difference = sp.cancel(ratio - ratios.setdefault(k, ratio))
            if difference != 0:
                raise no_backward_view(k, h, f"{_over(k, h)} differs from that of a smaller h by", difference)
            if ratio == 0 and growth[k, k + 1] != 0:  # b_k or c_{k+1} would be 0, but b_k c_{k+1} d_{k+1} is not
                why = f"U_{k} has stopped growing, while {_step(k + 1, h)} is"
                raise no_backward_view(k, h, why, growth[k + 1, h])
    return ratios


def _standstill(growth: Growth, k: int, h: int) -> ValueError:
    """The error for U_{k+1} that does not grow at h, while U_k does. It may never grow: then b_{k+1} = 0 at that time alone."""
    never = all(growth[k + 1, later] == 0 for later in range(k + 2, HORIZONS + 1))
    if never and all(_proportional(growth, *at) for at in combinations(range(HORIZONS + 1), 4)):
        shown = f"{_step(k, h)} = {short(growth[k, h], 60)}, {_step(k + 1, h)} = 0, …"
        return changes_with_time("the growth of the target", shown, k, h, growth[k, h])
    return no_backward_view(k, h, f"U_{k + 1} does not grow, while {_step(k, h)} is", growth[k, h])


def _proportional(growth: Growth, k: int, later_k: int, h: int, later_h: int) -> bool:
    """Whether two updates grow in the same proportion at two horizons, as (★) says."""
    return sp.cancel(growth[k, h] * growth[later_k, later_h] - growth[k, later_h] * growth[later_k, h]) == 0


def _ratio(growth: Growth, ratios: dict[int, sp.Expr]) -> sp.Expr:
    """b_{t−1} c_t / b_t at t = 0. It must be the same at all times."""
    _same_at_all_times("the factor c_t", "c_{0}", {k + 1: ratio for k, ratio in ratios.items()})
    if not any(ratios.values()):  # U_k^{k+2} − U_k^{k+1} is then 0 for some k, and not for others
        _same_at_all_times(
            "the growth of the target", "the first of U_{0}", {k: growth[k, k + 1] for k in range(HORIZONS)}
        )
    k = min(ratios)
    return moved(ratios[k], -(k + 1))


def _known_by(symbol: At, t: int) -> bool:
    """Whether it belongs to the steps t − 1 and t."""
    first, *second = symbol.at
    if symbol.letter in ARRIVALS:
        return t - 1 <= first <= t + 1
    return t - 1 <= first <= t and all(t - 1 <= time <= t + 1 for time in second)


def _splits(ratio: sp.Expr) -> Iterator[tuple[sp.Expr, sp.Expr]]:
    """Ways to write it as b_{−1} c_0 / b_0."""
    powers = dict(sp.factor(ratio).as_powers_dict())
    b = sp.Integer(1)  # the factors that are divided by now, and were multiplied by a step before
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


def _confirm(growth: Growth, b: sp.Expr, c: sp.Expr, d: sp.Expr) -> None:
    """(★) for all k and h of the first horizons."""
    for k, h in PLACES:
        weight = moved(b, k) * sp.prod([moved(c, j) for j in range(k + 1, h + 1)])
        if sp.cancel(growth[k, h] - weight * moved(d, h)) != 0:  # b and c are right for all k: so d is not that of this h
            shown = {t: sp.cancel(growth[t - 1, t] / (moved(b, t - 1) * moved(c, t))) for t in range(1, HORIZONS + 1)}
            _same_at_all_times("the factor d_t", "d_{0}", shown)
            left = sp.cancel(growth[k, h] - weight * moved(d, h))
            raise no_backward_view(k, h, f"this is left of {_step(k, h)} when it is written as a product", left)


def symbols(expression: sp.Expr) -> list[At]:
    return sorted((s for s in expression.free_symbols if isinstance(s, At)), key=str)


def moved(expression: sp.Expr, by: int) -> sp.Expr:
    """The same at another time."""
    return expression.xreplace({symbol: symbol.shifted(by) for symbol in symbols(expression)})


def simplified(simplify: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    """The expression, simplified. Most expressions are those of another time, moved: these are simplified once."""
    first = min((time for symbol in symbols(expression) for time in symbol.at), default=0)
    return moved(_simplified(simplify, moved(expression, -first)), first)


@lru_cache(1000)
def _simplified(simplify: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    return simplify(expression)


def _step(k: int, h: int) -> str:
    return f"U_{k}^{h + 1} − U_{k}^{h}"


def _over(k: int, h: int) -> str:
    return f"({_step(k, h)}) / ({_step(k + 1, h)})"


def _names(strange: list[At]) -> str:
    return ", ".join(map(str, strange[:3]))


@lru_cache(1000)  # several equations have the same parts
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
