"""The equations of both views, as text or as LaTeX."""

from __future__ import annotations

import re

import sympy as sp

from trueonline.derivation.factoring import Factors, moved, tidy
from trueonline.derivation.forward_view import ForwardView
from trueonline.derivation.quantities import At
from trueonline.derivation.text.writing import TEXT, TIMES, plus, written

Equations = list[tuple[str, str]]  # left and right sides
TIME = r"(t|\{[^}]*\})"
VALUE = re.compile(rf"V_{TIME}\(S_{TIME}\)")


def targets(view: ForwardView, how: int) -> Equations:
    """The targets of the first two horizons."""
    return [(f"U_t^{{t+{n}}}", written(moved(view.interim(2, 2 + n), -2), how)) for n in (1, 2)]


def updates(factors: Factors, correction: sp.Expr, how: int, per_feature: bool) -> Equations:
    """The factors c_t and d_t, the trace and the weights. With a step-size for each feature, A_t is their diagonal matrix."""
    e, theta, phi, dot = (("e", "θ", "φ_t", "φ_tᵀ"), (r"\mathbf{e}", r"\theta", r"\phi_t", r"\phi_t^\top "))[how - 1]
    times = TIMES[how]
    before = "{t−1}" if how == TEXT else "{t-1}"
    beta, matrix = factors.beta, []
    if per_feature:
        beta = sp.cancel(beta / At("alpha", 0))
        name, alpha, dots, diagonal = (
            ("A", "α", "…", "diag"),
            (r"\mathbf{A}", r"\alpha", r"\dots", r"\operatorname{diag}"),
        )[how - 1]
        phi = f"{name}_t{times}{phi}"
        matrix = [(f"{name}_t", f"{diagonal}({alpha}_{{t,1}}, {dots}, {alpha}_{{t,n}})")]
    inner = plus(f"{e}_{before}", -beta, how, f"({dot}{e}_{before}){times}{phi}")
    inner = f"({inner})" if how == TEXT else rf"\left({inner}\right)"
    return [
        ("c_t", written(factors.c, how)),
        ("d_t", written(factors.d, how)),
        *matrix,
        (f"{e}_t", plus(f"c_t{times}{inner}", beta * factors.b, how, phi)),
        (f"{theta}_{{t+1}}", plus(f"{theta}_t + d_t{times}{e}_t", tidy(beta * correction), how, phi)),
    ]


def with_actions(equations: Equations) -> Equations:
    """The same equations, with Q(S, A) for V(S)."""
    return [(left, VALUE.sub(r"Q_\1(S_\2, A_\2)", right)) for left, right in equations]


def lines(equations: Equations) -> str:
    """One equation a line."""
    return "\n".join(" = ".join(pair) for pair in equations)
