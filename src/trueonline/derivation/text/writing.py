"""Expressions as text, as LaTeX, and as the code of a kernel.

SymPy's own printers order terms by their names. These order them by their meaning.
"""

from __future__ import annotations

import sympy as sp

from trueonline.derivation.quantities import At, ForwardViewError, Own

KERNEL, TEXT, LATEX = range(3)
MINUS, TIMES = ("-", "−", "-"), (" * ", "·", " ")

# The names that a rule gives to quantities of time t = 0: most are arguments of the rule (`core.transition`).
NAMES = {
    ("R", 1): "reward",
    ("gamma", 0): "gamma",
    ("gamma", 1): "gamma_next",
    ("lam", 0): "lam",
    ("lam", 1): "lam_next",
    ("alpha", 0): "alpha",
    ("greedy", 0): "greedy",
    ("rho", -1): "rho_old",
    ("rho", 0): "rho",
    ("rbar", 0): "rate",
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
    "rbar": ("R̄", r"\bar{R}"),
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
    if expression.is_Number or expression.is_NumberSymbol:
        return _number(expression, how)
    if expression.is_Add:
        first, *others = sorted(expression.args, key=_sense)
        text = written(first, how)
        for term in others:
            text = plus(text, term, how)
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
    if isinstance(symbol, Own):
        latex = sp.latex(symbol)  # knows the names of Greek letters
        return symbol.name if how != LATEX else latex if latex[0] == "\\" else rf"\mathit{{{latex}}}"
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


def _number(value: sp.Expr, how: int) -> str:
    """A number; fractions of small whole numbers as such, but for kernels."""
    if value < 0:
        return MINUS[how] + _number(-value, how)
    if value.is_Integer and value < 2**53:
        return str(value)
    if value.is_Rational and 1 < value.q <= 4 and how != KERNEL:
        return _over(sp.Integer(value.p), sp.Integer(value.q), how)
    return repr(as_float(value))


def as_float(value: sp.Expr) -> float:
    """A number of an equation in double precision; ForwardViewError where that is another number."""
    number = float(value)
    if abs(sp.Float(number, 30) - value.evalf(30)) > 1e-15 * abs(value):
        raise ForwardViewError(f"the number {value.evalf(5)} is beyond the range of floats: scale the rewards instead")
    return number


def bracketed(expression: sp.Expr, how: int) -> str:
    """As a factor of a product."""
    text = written(expression, how)
    return f"({text})" if expression.is_Add or text[0] in "-−" else text


def plus(left: str, term: sp.Expr, how: int, after: str = "") -> str:
    """left + term·after, with a minus in front of the term taken for the sign between them; nothing where it is 0."""
    if term == 0:
        return left
    negative = term.as_coeff_Mul()[0] < 0
    rest = -term if negative else term
    text = bracketed(rest, how) if after or rest.is_Add else written(rest, how)
    text = f"({text})" if after and "/" in text and text[0] != "(" else text
    text = f"{text}{TIMES[how]}{after}" if after and rest != 1 else after or text
    return f"{left} {MINUS[how] if negative else '+'} {text}"


def _product(expression: sp.Expr, how: int) -> str:
    number, rest = expression.as_coeff_Mul()
    if number < 0:
        return MINUS[how] + bracketed(-expression, how)
    numerator, denominator = sp.fraction(rest)
    if number.is_Rational and number.q <= 4 and how != KERNEL:
        numerator, denominator, number = numerator * number.p, denominator * number.q, sp.Integer(1)
    if denominator != 1:
        return _over(number * numerator, denominator, how)
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


def _sense(term: sp.Expr) -> tuple[float, str]:
    """The order of the terms of a sum: rewards first, then the bootstrapped values, then the values that are subtracted."""
    if _letters(term) == ["rbar"]:
        return -0.5, str(term)
    ranks = {"R": -1, "rbar": -1, "alpha": 0, "rho": 1, "gamma": 2, "lam": 3, "greedy": 4, "V": 6, "V_max": 6}
    negative = term.is_Mul and term.as_coeff_Mul()[0] < 0
    return 10 if negative else min((ranks.get(letter, 0) for letter in _letters(term)), default=-2), str(term)


def _weight(factor: sp.Expr) -> tuple[int, str]:
    """The order of the factors of a product: step-sizes, ratios and discounts first, then the rewards and values."""
    ranks = {"alpha": 0, "rho": 1, "gamma": 2, "lam": 3, "greedy": 4, "R": 5, "rbar": 5, "V": 6, "V_max": 6}
    return max((ranks.get(letter, 0) for letter in _letters(factor)), default=-1), str(factor)


def _letters(expression: sp.Expr) -> list[str]:
    return [getattr(symbol, "letter", symbol.name) for symbol in expression.free_symbols]
