"""Expressions as text, as LaTeX, and as the code of a kernel.

SymPy's own printers order terms by their names; these keep the sense.
"""

from __future__ import annotations

import re

import sympy as sp

from trueonline.derivation.forward_view import At, ForwardViewError

KERNEL, TEXT, LATEX = range(3)
MINUS, TIMES = ("-", "−", "-"), (" * ", "·", " ")

# What a kernel is handed at time t = 0, or finds in the header of its memory.
NAMES = {
    ("R", 1): "reward",
    ("gamma", 0): "gamma",
    ("gamma", 1): "gamma_next",
    ("lam", 0): "lam",
    ("lam", 1): "lam_next",
    ("alpha", 0): "alpha",
    ("greedy", 0): "greedy",
    ("rho", -1): "ratio_old",
    ("rho", 0): "ratio",
    ("V", 0, 0): "v",
    ("V", 0, 1): "v_next",
    ("V", -1, 0): "v_old",
    ("V_max", 0, 1): "v_next",
    ("V_max", -1, 0): "v_old",
}
CONSTANTS = {"gamma": "discount", "lam": "trace_decay", "alpha": "alpha"}  # in a kernel
LETTERS = {
    "R": ("R", "R"),
    "gamma": ("γ", r"\gamma"),
    "lam": ("λ", r"\lambda"),
    "alpha": ("α", r"\alpha"),
    "greedy": ("g", "g"),
    "rho": ("ρ", r"\rho"),
}
# Functions beside + − · / and powers: in a kernel, as text, as LaTeX.
FUNCTIONS = {
    sp.Min: ("min", "min", r"\min"),
    sp.Max: ("max", "max", r"\max"),
    sp.Abs: ("abs", "abs", r"\operatorname{abs}"),
    sp.exp: ("np.exp", "exp", r"\exp"),
    sp.log: ("np.log", "log", r"\log"),
}


def written(expression: sp.Expr, how: int) -> str:
    if expression.is_Symbol:
        return word(expression, how)
    if expression.is_Rational and not expression.is_Integer:
        return _over(sp.Integer(expression.p), sp.Integer(expression.q), how)
    if expression.is_Number:
        text = str(expression) if expression.is_Integer else repr(float(expression))
        return text.replace("-", MINUS[how], 1) if text.startswith("-") else text
    if expression.is_Add:
        first, *others = sorted(expression.args, key=_sense)
        text = written(first, how)
        for term in others:
            text = joined(text, written(term, how))
        return text
    if expression.is_Mul:
        return _product(expression, how)
    if expression.is_Pow:
        return _power(expression.base, expression.exp, how)
    if expression.func in FUNCTIONS:
        arguments = ", ".join(written(each, how) for each in sorted(expression.args, key=_sense))
        return f"{FUNCTIONS[expression.func][how]}({arguments})"
    known = "+ − · / **, Min, Max, and SymPy's Abs, exp, log and sqrt"
    raise ForwardViewError(f"a forward view may be made with {known}, got {expression.func.__name__}")


def word(symbol: sp.Symbol, how: int) -> str:
    """A symbol by its name."""
    if how == KERNEL:
        return NAMES[symbol.letter, *symbol.at] if isinstance(symbol, At) else CONSTANTS[symbol.name]
    if not isinstance(symbol, At):
        return LETTERS[symbol.name][how - 1]
    times = [_time(time, how) for time in symbol.at]
    if symbol.letter == "V":
        return f"V_{times[0]}(S_{times[1]})"
    if symbol.letter == "V_max":
        return rf"{'' if how == TEXT else chr(92)}max_a Q_{times[0]}(S_{times[1]}, a)"
    return f"{LETTERS[symbol.letter][how - 1]}_{times[0]}"


def _time(time: int, how: int) -> str:
    return "t" if time == 0 else f"{{t{'+' if time > 0 else MINUS[how]}{abs(time)}}}"


def bracketed(expression: sp.Expr, how: int) -> str:
    """As a factor of a product."""
    text = written(expression, how)
    return f"({text})" if expression.is_Add or (expression.is_Number and (expression < 0 or "/" in text)) else text


def joined(left: str, right: str, after: str = "") -> str:
    """left + right, with a minus in front of right taken for the sign between them; nothing where right is 0."""
    if right == "0":
        return left
    sign = right[:1] if right[:1] in "-−" else "+"
    rest = right[1:] if sign != "+" else right
    if after and re.search(r"^[^(]* [+−-] ", rest):  # a sum on its outside
        rest = f"({rest})"
    return f"{left} {sign} {rest}{after}"


def product(left: str, right: str) -> str:
    """The code of a product of two that are code already."""
    parts = [f"({each})" if re.search(r" [+-] ", each) else each for each in (left, right) if each != "1"]
    return " * ".join(parts) or "1.0"


def _product(expression: sp.Expr, how: int) -> str:
    if expression.as_coeff_Mul()[0] < 0:
        rest = -expression
        return MINUS[how] + (written(rest, how) if rest.is_Mul else bracketed(rest, how))
    numerator, denominator = sp.fraction(expression)
    if denominator != 1:
        return _over(numerator, denominator, how)
    return TIMES[how].join(bracketed(part, how) for part in sorted(expression.args, key=_weight))


def _over(numerator: sp.Expr, denominator: sp.Expr, how: int) -> str:
    if how == LATEX:
        return rf"\frac{{{written(numerator, how)}}}{{{written(denominator, how)}}}"
    below = bracketed(denominator, how)
    below = f"({below})" if denominator.is_Mul else below
    return f"{bracketed(numerator, how)}{' / ' if how == KERNEL else '/'}{below}"


def _power(base: sp.Expr, power: sp.Expr, how: int) -> str:
    if power.is_Number and power < 0:
        return _over(sp.Integer(1), base ** (-power), how)
    if power == sp.Rational(1, 2):
        inner = written(base, how)
        return (f"np.sqrt({inner})", f"√({inner})", rf"\sqrt{{{inner}}}")[how]
    inner = f"({written(base, how)})" if not (base.is_Symbol or base.func in FUNCTIONS) else written(base, how)
    if how == LATEX:
        return f"{{{inner}}}^{{{written(power, how)}}}"
    exponent = written(power, how) if power.is_Integer or power.is_Symbol else f"({written(power, how)})"
    return f"{inner}{'**' if how == KERNEL else '^'}{exponent}"


def _sense(term: sp.Expr) -> tuple[int, str]:
    """Of the terms of a sum: rewards before what is bootstrapped from, before what it is compared with."""
    ranks = {"R": -1, "alpha": 0, "rho": 1, "gamma": 2, "lam": 3, "greedy": 4, "V": 6, "V_max": 6}
    negative = term.is_Mul and term.as_coeff_Mul()[0] < 0
    return 10 if negative else min((ranks[letter] for letter in _letters(term)), default=-2), str(term)


def _weight(factor: sp.Expr) -> tuple[int, str]:
    """Of the factors of a product: step-sizes, ratios and discounts before what they weigh."""
    ranks = {"alpha": 0, "rho": 1, "gamma": 2, "lam": 3, "greedy": 4, "R": 5, "V": 6, "V_max": 6}
    return max((ranks[letter] for letter in _letters(factor)), default=-1), str(factor)


def _letters(expression: sp.Expr) -> list[str]:
    return [getattr(symbol, "letter", symbol.name) for symbol in expression.free_symbols]
