"""The factors of the first horizons, checked with numbers at later horizons: a target may change its form late."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

from trueonline.derivation.factoring import FIRST_TIMES, Factors
from trueonline.derivation.forward_view import FIRST, LAST, VALUES, At, ForwardView, ForwardViewError, Numbers
from trueonline.derivation.refusals import (
    STEP_ADVICE,
    WEIGHT_ADVICE,
    NotDerivableError,
    changes_with_time,
    no_backward_view,
)

HORIZONS = (6, 7, 8, 9, 10, 15, 25, 50)  # with all k
FAR = (100, 200)  # with some k
TIMES = (*range(60), 100, 300, 1000)  # of first targets and step-sizes
TOLERANCE = 1e-9
DOUBLING = 1.6  # a target whose work grows by more, from each horizon to the next, takes too long at later horizons


def confirm_later(view: ForwardView, factors: Factors) -> None:
    """Check (★) up to horizon 200, and first targets and step-sizes up to time 1,000; NotDerivableError if one fails.

    One pass uses numbers near 1, so that a product of hundreds of them is neither 0 nor infinite. A second pass has whole
    numbers among them, for targets that compare.
    """
    for whole in (False, True):
        numbers = _drawn(whole)
        first, beta, b, c, d = (
            _compiled(part, numbers) for part in (factors.first, factors.beta, factors.b, factors.c, factors.d)
        )
        _at_most_doubling(view, numbers)
        for k in TIMES:
            _compare("the first target", k, view.number(k, k + 1, numbers), first(k), WEIGHT_ADVICE)
            _compare("the step-size", k, view.step_number(k, numbers), beta(k), STEP_ADVICE)
        for h in (*HORIZONS, *FAR):
            grown, decay = d(h), 1.0
            for k in range(h - 1, -1, -1):
                decay *= c(k + 1)
                if h in FAR and k % 25 and k < h - 1:
                    continue
                later, now = view.number(k, h + 1, numbers), view.number(k, h, numbers)
                if math.isfinite(now) and not _close(later, now + b(k) * decay * grown):
                    raise _refusal(view, numbers, k, h, later - now - b(k) * decay * grown)


def _compare(part: str, k: int, number: float, expected: float, advice: str) -> None:
    """Refuse a first target or a step-size that is not the number that the expression of the first times gives."""
    if _close(number, expected):
        return
    _must_be_finite(k, k + 1, number - expected)
    difference = sp.Float(number - expected, 3)
    if k in FIRST_TIMES:
        raise NotDerivableError(
            f"{part} of k = {k} is {number:.6g} with numbers, but its expression in symbols gives {expected:.6g}. Write a function "
            "that computes the same from numbers as from symbols",
            k,
            k + 1,
            difference,
        )
    shown = f"with numbers, that of k = {k} differs by {difference} from the first times"
    raise changes_with_time(part, shown, k, k + 1, difference, advice)


def _refusal(view: ForwardView, numbers: dict[str, Any], k: int, h: int, left: float) -> ValueError:
    """The error for a growth at (k, h) that is not the product of the factors; `left` is the difference."""
    _must_be_finite(k, h, left)
    difference = sp.Float(left, 3)
    if _proportional(view, numbers, k, h):
        shown = f"with numbers, U_{k}^{h + 1} − U_{k}^{h} differs by {difference} from the product of the first factors"
        return changes_with_time("the growth of the target", shown, k, h, difference)
    return no_backward_view(k, h, f"this is left of U_{k}^{h + 1} − U_{k}^{h} (with numbers)", difference)


def _proportional(view: ForwardView, numbers: dict[str, Any], k: int, h: int) -> bool:
    """Whether U_k grows at h in the same proportion to other targets as at other horizons. (★) says so, whatever its factors."""

    def growth(k: int, h: int) -> float:
        return view.number(k, h + 1, numbers) - view.number(k, h, numbers)

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


def _drawn(whole: bool) -> dict[str, Any]:
    """Numbers for every quantity that a target may ask for."""
    rng = np.random.default_rng(20160801)
    size = max(TIMES) + 2

    def draw(name: str) -> list[float]:
        drawn = rng.normal(size=size) if name == "R" else rng.uniform(0.85, 1.15, size)
        if whole:
            drawn = np.where(rng.random(size) < 0.3, rng.integers(1 if name == "alpha" else 0, 2, size), drawn)
        return drawn.tolist()

    numbers: dict[str, Any] = {name: Numbers(rng.uniform(0.9, 1.0), draw(name), FIRST[name]) for name in LAST}
    numbers["greedy"] = Numbers(
        math.nan, rng.integers(0 if whole else 1, 2, size).astype(float).tolist(), FIRST["greedy"]
    )
    for number, kind in enumerate(VALUES):
        numbers[kind] = lambda i, j, phase=number: 2.0 * math.sin(12.9898 * i + 78.233 * j + phase)
    return numbers


def _compiled(part: sp.Expr, numbers: dict[str, Any]) -> Callable[[int], float]:
    """An expression of time t = 0 as a function of the time, over these numbers."""
    symbols = sorted(part.free_symbols, key=str)
    function = sp.lambdify(symbols, part, modules="math")

    def at(symbol: sp.Symbol, time: int) -> float:
        if not isinstance(symbol, At):
            return float(numbers[symbol.name])
        times = [time + each for each in symbol.at]
        return numbers[symbol.letter](*times) if symbol.letter in VALUES else numbers[symbol.letter][times[0]]

    def value(time: int) -> float:
        try:
            return float(function(*(at(symbol, time) for symbol in symbols)))
        except (ZeroDivisionError, ValueError, OverflowError):
            return math.nan

    return value


def _close(target: float, expected: float) -> bool:
    """Whether the two are equal. A target that divides by 0 equals any number."""
    return not math.isfinite(target) or abs(target - expected) <= TOLERANCE * (1.0 + abs(target) + abs(expected))


def _at_most_doubling(view: ForwardView, numbers: dict[str, Any]) -> None:
    """Refuse a target that calls itself twice, before a later horizon takes years."""
    counts = []
    for h in (8, 9, 10):
        asked = 0

        def value(i: int, j: int) -> float:
            nonlocal asked
            asked += 1
            return numbers["V"](i, j)

        class Counted(Numbers):
            def __getitem__(self, j: int) -> float:
                nonlocal asked
                asked += 1
                return super().__getitem__(j)

        counted = {name: Counted(float(each), each.steps, each.first) for name, each in numbers.items() if name in LAST}
        view.number(0, h, {**counted, **dict.fromkeys(VALUES, value)})
        counts.append(asked)
    if counts[2] > DOUBLING * counts[1] > DOUBLING * DOUBLING * counts[0]:
        raise ForwardViewError(
            f"the work of U(k, h) grows {counts[2] / counts[1]:.1f}-fold from each horizon to the next: does it call itself twice? "
            "Call it once and keep the result"
        )
