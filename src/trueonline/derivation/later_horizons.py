"""The factors of the first horizons, checked with numbers at later horizons: a target may change its form late."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import repeat
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import sympy as sp

from trueonline.derivation.factoring import FIRST_TIMES, HORIZONS, Factors
from trueonline.derivation.forward_view import ForwardView
from trueonline.derivation.quantities import FIRST, LAST, VALUES, At, ForwardViewError, Numbers
from trueonline.derivation.refusals import (
    STEP_ADVICE,
    WEIGHT_ADVICE,
    NotDerivableError,
    changes_with_time,
    no_backward_view,
)

LAST_TIME = 1000  # of first targets, of their first growth, and of step-sizes
TIMES = range(LAST_TIME + 1)
LAST_HORIZON = 200  # of the growth of older targets
WHOLE_HORIZONS = (*range(6, 16), 25, 50)  # horizons with all k
FAR_HORIZONS = (100, 200)  # horizons with some k, the first ones too
TOLERANCE = 1e-11
MAX_GROWTH = 1.6  # a target whose work grows by more, from each horizon to the next, takes too long at later horizons
RANGES = {
    "R": (-math.inf, math.inf),
    "gamma": (0.0, 1.0),
    "lam": (0.0, 1.0),
    "alpha": (1e-3, 2.0),
    "rho": (0.0, 10.0),
    "rbar": (-math.inf, math.inf),
    "greedy": (0.0, 1.0),
}
MAX_OWN_NUMBER = 100.0  # numbers of the view's own that are larger would drown the others


def confirm_later(view: ForwardView, factors: Factors) -> None:
    """Check (★) up to horizon 200, and first targets, their first growth and step-sizes at every time up to 1,000.

    NotDerivableError if one fails. One pass uses numbers near 1, so that a product of hundreds of them is neither 0 nor
    infinite. A second pass has whole numbers among them, and a third one the numbers in the code of the view, for targets that
    compare.
    """
    own = [number for number in numbers_in(view.target, view.step) if abs(number) <= MAX_OWN_NUMBER]
    for among, most in ((), LAST_HORIZON), ((0.0, 1.0), LAST_HORIZON), (own, HORIZONS):
        numbers = _drawn(among, view)
        first, beta, b, c, d = (
            _at_all_times(part, numbers) for part in (factors.first, factors.beta, factors.b, factors.c, factors.d)
        )
        _at_most_doubling(view, numbers)
        target = cache(view.target_of(numbers))  # most are asked for at two horizons
        targets = [target(k, k + 1) for k in TIMES]
        _compare("the first target", targets, first, WEIGHT_ADVICE)
        _compare("the step-size", _step_sizes(view, numbers), beta, STEP_ADVICE)
        size = _size(targets)
        for h in range(1, LAST_TIME):
            for k in _updates(h, most):
                later, now = target(k, h + 1), target(k, h)
                grown = b[k] * math.prod(c[k + 1 : h + 1]) * d[h]
                if math.isfinite(now) and not _close(later, now + grown, size):
                    raise _refusal(target, k, h, later - now - grown)


def _step_sizes(view: ForwardView, numbers: dict[str, Any]) -> list[float]:
    if not view.per_feature:
        return [*map(view.step_of(numbers), TIMES)]
    alphas = [[alpha] for alpha in numbers["alpha"].steps.values()]  # of a single feature
    step = view.step_of({**numbers, "alpha": Numbers(math.nan, alphas, FIRST["alpha"])})
    return [step(k, 0) for k in TIMES]


def _updates(h: int, most: int) -> Iterable[int]:
    """The updates whose growth at horizon h is looked at, the newest first. An old update costs time."""
    if h <= HORIZONS or (h <= most and h in WHOLE_HORIZONS):
        return range(h - 1, -1, -1)
    newest = range(h - 1, h - 3, -1)
    if h > most:
        return newest
    return [*newest, *range(0, h - 2, 25)] if h in FAR_HORIZONS else [*newest, max(h - 3 - 7 * h % 25, 0)]


def _size(values: Iterable[float]) -> float:
    """The usual size of some values, to which differences are compared: that of most, so that a few cannot hide others."""
    found = sorted(abs(value) for value in values if math.isfinite(value) and value != 0.0)
    return found[len(found) // 2] if found else 1.0


def numbers_in(*functions: Any) -> list[float]:
    """The numbers in the code of functions, in their defaults, and in the functions that they call by name in their own modules."""
    found: set[float] = set()
    seen: set[int] = set()
    waiting = list(functions)
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, int | float):
            found.add(float(each))
        elif isinstance(each, tuple | frozenset):
            waiting += each
        elif isinstance(each, CodeType):
            waiting += each.co_consts
        elif isinstance(each, FunctionType):
            near = (each.__globals__.get(name) for name in each.__code__.co_names)
            waiting += [one for one in near if getattr(one, "__module__", None) == each.__module__]
            waiting += [each.__code__, *(each.__defaults__ or ()), *(each.__kwdefaults__ or {}).values()]
    return sorted(found)


def _compare(part: str, numbers: Sequence[float], expected: Sequence[float], advice: str) -> None:
    """Refuse first targets or step-sizes that are not, at every time, the number that the expression of the first times gives."""
    size = _size(expected)
    wrong = [k for k, pair in enumerate(zip(numbers, expected, strict=True)) if not _close(*pair, size)]
    if not wrong:
        return
    k = wrong[0]
    _must_be_finite(k, k + 1, numbers[k] - expected[k])
    difference = sp.Float(numbers[k] - expected[k], 3)
    if k in FIRST_TIMES:
        raise NotDerivableError(
            f"{part} of k = {k} is {numbers[k]:.6g} with numbers, but its expression in symbols gives {expected[k]:.6g}. Write a "
            "function that computes the same from numbers as from symbols",
            k,
            k + 1,
            difference,
        )
    shown = f"with numbers, that of k = {k} differs by {difference} from the first times"
    raise changes_with_time(part, shown, k, k + 1, difference, advice)


def _refusal(target: Callable[[int, int], float], k: int, h: int, left: float) -> ValueError:
    """The error for a growth at (k, h) that is not the product of the factors; `left` is the difference."""
    _must_be_finite(k, h, left)
    difference = sp.Float(left, 3)
    if _proportional(target, k, h):
        shown = f"with numbers, U_{k}^{h + 1} − U_{k}^{h} differs by {difference} from the product of the first factors"
        return changes_with_time("the growth of the target", shown, k, h, difference)
    return no_backward_view(k, h, f"this is left of U_{k}^{h + 1} − U_{k}^{h} (with numbers)", difference)


def _proportional(target: Callable[[int, int], float], k: int, h: int) -> bool:
    """Whether U_k grows at h in the same proportion to other targets as at other horizons. (★) says so, for all factors."""

    def growth(k: int, h: int) -> float:
        return target(k, h + 1) - target(k, h)

    for j in {0, k // 2, k - 1, k + 1, (k + h) // 2, h - 1} & {*range(h)} - {k}:
        least = max(j, k) + 1
        for i in {least, (least + h) // 2, h - 1, h + 1} & {*range(least, h + 2)} - {h}:
            here, there, across = growth(k, h), growth(j, i), (growth(k, i), growth(j, h))
            size = abs(here) + abs(there) + abs(across[0]) + abs(across[1])
            if abs(here * there - across[0] * across[1]) > TOLERANCE * size:
                return False
    return True


def _must_be_finite(k: int, h: int, difference: float) -> None:
    if not math.isfinite(difference):
        raise ForwardViewError(
            f"with numbers, U(k={k}, h={h}) or the method derived from it is not finite. Write it without a division by a "
            "number that may be 0"
        )


def _drawn(among: Sequence[float], view: ForwardView) -> dict[str, Any]:
    """Numbers for every quantity that a target may ask for. Some are those of `among`, if they are in range."""
    rng = np.random.default_rng(20160801)
    size = LAST_TIME + 2

    def draw(name: str) -> list[float]:
        drawn = rng.normal(size=size) if name in ("R", "rbar") else rng.uniform(0.85, 1.15, size)
        possible = [number for number in among if RANGES[name][0] <= number <= RANGES[name][1]]
        if possible:
            drawn = np.where(rng.random(size) < 0.3, rng.choice(possible, size), drawn)
        return drawn.tolist()

    numbers: dict[str, Any] = {name: Numbers(rng.uniform(0.9, 1.0), draw(name), FIRST[name]) for name in LAST}
    numbers["greedy"] = Numbers(
        math.nan, rng.integers(0 if among else 1, 2, size).astype(float).tolist(), FIRST["greedy"]
    )
    for number, kind in enumerate(VALUES):

        def value(i: int, j: int, phase: int = number) -> float:
            if among and (3 * i + j + phase) % 7 == 0:
                return float(among[(i + 2 * j) % len(among)])
            return 2.0 * math.sin(12.9898 * i + 78.233 * j + phase)

        numbers[kind] = value
    own = {name: float(np.clip(rng.uniform(0.85, 1.15), each.least, each.most)) for name, each in view.parameters.items()}
    return numbers | own


def _at_all_times(part: sp.Expr, numbers: dict[str, Any]) -> list[float]:
    """An expression of time t = 0 at every time, with these numbers; nan where it divides by 0."""
    symbols = list(part.free_symbols)
    function = sp.lambdify(symbols, part, modules="math")

    def value(*given: float) -> float:
        try:
            return float(function(*given))
        except (ZeroDivisionError, ValueError, OverflowError):
            return math.nan

    columns = [_symbol_at_all_times(symbol, numbers) for symbol in symbols]
    return list(map(value, *columns)) if columns else [value()] * len(TIMES)


def _symbol_at_all_times(symbol: sp.Symbol, numbers: dict[str, Any]) -> Iterable[float]:
    if not isinstance(symbol, At):
        return repeat(float(numbers[symbol.name]), len(TIMES))
    given, (i, *j) = numbers[symbol.letter], symbol.at
    return [given(t + i, t + j[0]) for t in TIMES] if j else [given[t + i] for t in TIMES]


def _close(target: float, expected: float, size: float) -> bool:
    """Whether the two are equal, for targets of that size. A target that divides by 0 equals any number."""
    return not math.isfinite(target) or abs(target - expected) <= TOLERANCE * (size + abs(target) + abs(expected))


def _at_most_doubling(view: ForwardView, numbers: dict[str, Any]) -> None:
    """Refuse a target that calls itself twice, before a later horizon takes years."""
    asked = 0

    def value(i: int, j: int) -> float:
        nonlocal asked
        asked += 1
        return numbers["V"](i, j)

    class CountedNumbers(Numbers):
        def __getitem__(self, j: int) -> float:
            nonlocal asked
            asked += 1
            return super().__getitem__(j)

    counted = {name: CountedNumbers(numbers[name], numbers[name].steps.values(), FIRST[name]) for name in LAST}
    target = view.target_of({**numbers, **counted, **dict.fromkeys(VALUES, value)})
    counts = []
    for h in (8, 9, 10):
        before = asked
        target(0, h)
        counts.append(asked - before)
    if counts[2] > MAX_GROWTH * counts[1] > MAX_GROWTH * MAX_GROWTH * counts[0]:
        raise ForwardViewError(
            f"the work of U(k, h) grows {counts[2] / counts[1]:.1f}-fold from each horizon to the next: does it call itself twice? "
            "Call it once and keep the result"
        )
