"""What was found by the first horizons, checked with numbers at later ones: a target may change its mind, or look at values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

from trueonline.derivation.factoring import CHANGES, Factors, NotDerivableError
from trueonline.derivation.forward_view import FIRST, LAST, VALUES, At, ForwardView, ForwardViewError, Numbers

HORIZONS = (6, 7, 8, 9, 10, 15, 25, 50)  # with all k
FAR = (100, 200)  # with some k
TIMES = (*range(60), 100, 300, 1000)  # of first targets and step-sizes
TOLERANCE = 1e-9
DOUBLING = 1.6  # a target whose work grows by more, from each horizon to the next, cannot be followed far


def confirm_later(view: ForwardView, factors: Factors) -> None:
    """(★), the first targets and the step-sizes, up to time 1,000.

    Once with numbers near 1, so that a product of hundreds of them is neither 0 nor infinite; and once with whole numbers among
    them, for targets that compare.
    """
    for whole in (False, True):
        given = _drawn(whole)
        first, beta, b, c, d = (
            _compiled(part, given) for part in (factors.first, factors.beta, factors.b, factors.c, factors.d)
        )
        _at_most_doubling(view, given)
        for k in TIMES:
            for what, now, found in (
                ("the first target", view.number(k, k + 1, given), first(k)),
                ("the step-size", view.step_number(k, given), beta(k)),
            ):
                if not _close(now, found):
                    _refuse(k, k + 1, f"{what} is another than at first, by", now - found, CHANGES)
        for h in (*HORIZONS, *FAR):
            grown, decay = d(h), 1.0
            for k in range(h - 1, -1, -1):
                decay *= c(k + 1)
                if h in FAR and k % 25 and k < h - 1:
                    continue
                later, now = view.number(k, h + 1, given), view.number(k, h, given)
                if math.isfinite(now) and not _close(later, now + b(k) * decay * grown):
                    _refuse(k, h, f"this is left of U_{k}^{h + 1} − U_{k}^{h}", later - now - b(k) * decay * grown)


def _drawn(whole: bool) -> dict[str, Any]:
    """Numbers for everything that a target may ask for."""
    rng = np.random.default_rng(20160801)
    size = max(TIMES) + 2

    def draw(name: str) -> list[float]:
        numbers = rng.normal(size=size) if name == "R" else rng.uniform(0.85, 1.15, size)
        if whole:
            numbers = np.where(rng.random(size) < 0.3, rng.integers(1 if name == "alpha" else 0, 2, size), numbers)
        return numbers.tolist()

    given: dict[str, Any] = {name: Numbers(rng.uniform(0.9, 1.0), draw(name), FIRST[name]) for name in LAST}
    given["greedy"] = Numbers(math.nan, rng.integers(0 if whole else 1, 2, size).astype(float).tolist(), FIRST["greedy"])
    for number, kind in enumerate(VALUES):
        given[kind] = lambda i, j, phase=number: 2.0 * math.sin(12.9898 * i + 78.233 * j + phase)
    return given


def _compiled(part: sp.Expr, given: dict[str, Any]) -> Callable[[int], float]:
    symbols = sorted(part.free_symbols, key=str)
    function = sp.lambdify(symbols, part, modules="math")

    def at(symbol: sp.Symbol, time: int) -> float:
        if not isinstance(symbol, At):
            return float(given[symbol.name])
        times = [time + each for each in symbol.at]
        return given[symbol.letter](*times) if symbol.letter in VALUES else given[symbol.letter][times[0]]

    def value(time: int) -> float:
        try:
            return float(function(*(at(symbol, time) for symbol in symbols)))
        except (ZeroDivisionError, ValueError, OverflowError):
            return math.nan

    return value


def _close(target: float, found: float) -> bool:
    """Equal; or the target divides by 0 there, and anything will do."""
    return not math.isfinite(target) or abs(target - found) <= TOLERANCE * (1.0 + abs(target) + abs(found))


def _refuse(k: int, h: int, why: str, left: float, *headline: str) -> None:
    if math.isfinite(left):
        raise NotDerivableError(k, h, f"{why} (with numbers)", sp.Float(left, 3), *headline)
    raise ForwardViewError(f"with numbers, U(k={k}, h={h}) or what was derived from it is not finite there")


def _at_most_doubling(view: ForwardView, given: dict[str, Any]) -> None:
    """Refuse a target that calls itself twice, before it is asked for one that takes years."""
    counts = []
    for h in (8, 9, 10):
        asked = 0

        def value(i: int, j: int) -> float:
            nonlocal asked
            asked += 1
            return given["V"](i, j)

        class Counted(Numbers):
            def __getitem__(self, j: int) -> float:
                nonlocal asked
                asked += 1
                return super().__getitem__(j)

        counted = {name: Counted(float(each), each.steps, each.first) for name, each in given.items() if name in LAST}
        view.number(0, h, {**counted, **dict.fromkeys(VALUES, value)})
        counts.append(asked)
    if counts[2] > DOUBLING * counts[1] > DOUBLING * DOUBLING * counts[0]:
        raise ForwardViewError(
            f"the work of U(k, h) grows {counts[2] / counts[1]:.1f}-fold from each horizon to the next: does it call itself twice? "
            "Keep what it has worked out"
        )
