"""The method of a backward view, as a file of `methods/` is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from trueonline.core.transition import Transition
from trueonline.derivation.quantities import At, constant
from trueonline.derivation.text.equations import lines
from trueonline.derivation.text.writing import KERNEL, as_float, plus, word, written

if TYPE_CHECKING:
    from trueonline.derivation.backward import Derivation

BOOTSTRAPS = (At("V", 0, 1), At("V_max", 0, 1))  # V'


def method_file(derivation: Derivation) -> str:
    """The text of the file."""
    f = derivation.factors
    c, beta, b = _left(f.c), f.beta, f.b
    d, correction = _entered(f.d), _entered(f.beta * derivation.correction)
    fades = sp.denom(sp.together(c)) == 1 and c.xreplace({At("gamma", 0): sp.Integer(0)}) == 0
    cut = "" if fades else " if gamma > 0.0 else 0.0  # no trace at a beginning"
    ended = [part.xreplace({At("gamma", 1): sp.Integer(0)}).has(*BOOTSTRAPS) for part in (d, correction)]
    end = "    v_next = v_next if gamma_next > 0.0 else 0.0  # nothing follows an end\n" if any(ended) else ""
    dutch = plus(_code(beta * b), -beta, KERNEL, "c * trace_x")
    parts = [_code(part) for part in (c, d, correction)]
    used = set().union(*(part.free_symbols for part in (c, d, correction, beta, b)))
    needed = {word(symbol, KERNEL) for symbol in used} | {"x", "reward", "x_next", "gamma_next"}
    needed |= {"gamma"} if cut else set()
    rated = "rbar" in derivation.letters
    needed |= {"beta", "carried"} if rated else set()
    begun = "    rate = carried[0]  # R̄\n" if rated else ""
    delta = f"reward{' - rate' * rated} + gamma_next * v_next - v"
    ratio, letter = ("rho * ", "ρ") if "rho" in derivation.letters else ("", "")
    learned = f"    carried[0] = rate + beta * {ratio}({delta})  # R̄ ← R̄ + β{letter}δ\n" if rated else ""
    arguments = ", ".join(name for name in (*Transition._fields, *derivation.view.parameters) if name in needed)
    numpy = "import numpy as np\n\n" if "np." in "".join([*parts, dutch]) else ""
    indented = "\n".join(f"    {line}" for line in lines(derivation.equations()).splitlines())
    if derivation.view.per_feature:
        indented += "\n\nA memory with a step-size for each feature writes α_{t,i}·φ_i for φ_i. Then alpha is 1."
    return f'''"""{derivation.identifier}: the backward view that was derived from a forward view, and equals it at every step.

{indented}
"""

{numpy}from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def {derivation.identifier}(memory, {arguments}):
{begun}    v, trace_x, v_next = recall(memory, x, x_next)  # V ← θᵀφ,  eᵀφ,  V' ← θᵀφ'
{end}    c = {parts[0]}{cut}
    d = {parts[1]}
    decay(memory, c)  # e ← c·e …
    imprint(memory, x, {dutch}, {parts[2]})  # … and what φ moves
    learn(memory, d)  # θ ← θ + d·e
{learned}    return v, {delta}, v_next
'''


def _code(expression: sp.Expr) -> str:
    return repr(as_float(expression)) if expression.is_Number else written(expression, KERNEL)


def _left(c: sp.Expr) -> sp.Expr:
    """c with a constant γ that is a factor replaced by γ of the state left, which is 0 at the start of an episode."""
    gamma = constant("gamma")
    if gamma not in c.free_symbols:
        return c
    rest = sp.cancel(c / gamma)
    return c if gamma in rest.free_symbols else At("gamma", 0) * rest


def _entered(expression: sp.Expr) -> sp.Expr:
    """The expression with a constant γ that only discounts V' replaced by γ of the state entered, which is 0 at an end."""
    gamma = constant("gamma")
    if gamma not in expression.free_symbols:
        return expression
    others = expression.xreplace({gamma: sp.Integer(0)})
    rest = sp.cancel((expression - others) / gamma)
    nothing = rest.xreplace(dict.fromkeys(BOOTSTRAPS, sp.Integer(0)))
    alone = gamma not in rest.free_symbols and nothing == 0 and not others.has(*BOOTSTRAPS)
    return others + At("gamma", 1) * rest if alone else expression
