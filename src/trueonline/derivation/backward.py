"""The backward view that follows from (★): its equations as text and LaTeX, and as a method in the style of `methods/`."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from trueonline.derivation.factoring import Factors, factor
from trueonline.derivation.forward_view import At, ForwardView, ForwardViewError

# What a method is handed: letter and times relative to t → its name in a kernel, as text, as LaTeX.
WORDS: dict[tuple, tuple[str, str, str]] = {
    ("R", 1): ("reward", "R_{t+1}", r"R_{t+1}"),
    ("gamma", 0): ("gamma", "γ_t", r"\gamma_t"),
    ("gamma", 1): ("gamma_next", "γ_{t+1}", r"\gamma_{t+1}"),
    ("lam", 0): ("lam", "λ_t", r"\lambda_t"),
    ("lam", 1): ("lam_next", "λ_{t+1}", r"\lambda_{t+1}"),
    ("alpha", 0): ("alpha", "α_t", r"\alpha_t"),
    ("greedy", 0): ("greedy", "g_t", r"g_t"),
    ("rho", -1): ("ratio_old", "ρ_{t−1}", r"\rho_{t-1}"),
    ("rho", 0): ("ratio", "ρ_t", r"\rho_t"),
    ("V", 0, 0): ("v", "V_t(S_t)", r"V_t(S_t)"),
    ("V", 0, 1): ("v_next", "V_t(S_{t+1})", r"V_t(S_{t+1})"),
    ("V", -1, 0): ("v_old", "V_{t−1}(S_t)", r"V_{t-1}(S_t)"),
    ("V_max", 0, 1): ("v_next", "max_a Q_t(S_{t+1}, a)", r"\max_a Q_t(S_{t+1}, a)"),
    ("V_max", -1, 0): ("v_old", "max_a Q_{t−1}(S_t, a)", r"\max_a Q_{t-1}(S_t, a)"),
}
CONSTANTS = {"gamma": ("γ", r"\gamma"), "lam": ("λ", r"\lambda"), "alpha": ("α", r"\alpha")}
KERNEL, TEXT, LATEX = range(3)


@dataclass(frozen=True)
class Derivation:
    """A forward view, and the backward view that equals it at every step.

    >>> def monte_carlo(k, h, R, gamma):
    ...     return sum(gamma ** (i - k - 1) * R[i] for i in range(k + 1, h + 1))
    >>> print(derive(monte_carlo))
    c_t = γ
    d_t = R_{t+1}
    e_t = c_t·(e_{t−1} − α_t·(φ_tᵀe_{t−1})·φ_t) + α_t·φ_t
    θ_{t+1} = θ_t + d_t·e_t − α_t·V_t(S_t)·φ_t
    """

    view: ForwardView
    factors: Factors

    @property
    def name(self) -> str:
        return self.view.name

    @cached_property
    def _symbols(self) -> set[sp.Symbol]:
        f = self.factors
        return set().union(*(part.free_symbols for part in (f.b, f.c, f.d, f.beta, self.correction)))

    @property
    def letters(self) -> set[str]:
        """What its equations are made of, by the names of a forward view's arguments."""
        return {symbol.letter if isinstance(symbol, At) else symbol.name for symbol in self._symbols}

    @property
    def constants(self) -> set[str]:
        """Those of them that do not vary from step to step."""
        return {symbol.name for symbol in self._symbols if not isinstance(symbol, At)}

    @property
    def identifier(self) -> str:
        """Its name in code."""
        return _identifier(self.name)

    @cached_property
    def learner(self) -> Any:
        """A class of learners (see `trueonline.TrueOnlineTD`), compiled over the core's memory."""
        from trueonline.derivation.compiling import learner

        return learner(self)

    @cached_property
    def agent(self) -> Any:
        """A class of agents (see `trueonline.control.TrueOnlineSarsa`)."""
        from trueonline.derivation.compiling import agent

        return agent(self)

    @cached_property
    def correction(self) -> sp.Expr:
        """What φ_t is moved by beside the trace, over β_t: U_t^{t+1} − b_t·d_t − V_t(S_t)."""
        f = self.factors
        return sp.factor(sp.expand(sp.cancel(f.first - f.b * f.d - At("V", 0, 0))))

    def equations(self) -> list[tuple[str, str]]:
        """The backward view as pairs of left and right sides."""
        beta, b = self._said(self.factors.beta), self.factors.b
        imprint = beta if b == 1 else self._said(self.factors.beta * b)
        found = [("c_t", self._said(self.factors.c)), ("d_t", self._said(self.factors.d))]
        found.append(("e_t", f"c_t·(e_{{t−1}} − {beta}·(φ_tᵀe_{{t−1}})·φ_t) + {imprint}·φ_t"))
        found.append(("θ_{t+1}", _joined("θ_t + d_t·e_t", self._said(self.factors.beta * self.correction), "·φ_t")))
        return found

    def __str__(self) -> str:
        return "\n".join(f"{left} = {right}" for left, right in self.equations())

    def _said(self, expression: sp.Expr) -> str:
        return _written(expression, TEXT)

    def latex(self) -> str:
        """The same for LaTeX, in an `align*`."""
        write = lambda expression: _written(expression, LATEX)  # noqa: E731
        f = self.factors
        imprint = write(f.beta if f.b == 1 else f.beta * f.b)
        moved = _joined(r"\theta_t + d_t \mathbf{e}_t", write(f.beta * self.correction), r" \phi_t")
        dutch = rf"\mathbf{{e}}_{{t-1}} - {write(f.beta)} (\phi_t^\top \mathbf{{e}}_{{t-1}}) \phi_t"
        lines = [
            rf"c_t &= {write(f.c)} \\",
            rf"d_t &= {write(f.d)} \\",
            rf"\mathbf{{e}}_t &= c_t \left({dutch}\right) + {imprint} \phi_t \\",
            rf"\theta_{{t+1}} &= {moved}",
        ]
        return "\n".join([r"\begin{align*}", *lines, r"\end{align*}"])

    def source(self) -> str:
        """A method file that a person can read, and that is what gets compiled."""
        f, name = self.factors, self.identifier
        code = lambda expression, where: _written(_constants(expression, where), KERNEL)  # noqa: E731
        c, d, beta, b = code(f.c, "trace"), code(f.d, "target"), code(f.beta, "target"), code(f.b, "target")
        dutch = f"{_product(beta, b)} - {_product(beta, 'c')} * trace_x"
        correction = code(f.beta * self.correction, "target")
        more = [word for word in ("ratio", "ratio_old", "lam_next") if word in {_word(s, KERNEL) for s in self._symbols}]
        asked = "".join(f"    {word} = memory.head[{word.upper()}]\n" for word in more)
        indented = "\n".join(f"    {left} = {right}" for left, right in self.equations())
        return f'''"""{self.name}: the backward view that was derived from a forward view, and equals it at every step.

{indented}
"""

from trueonline.kernels import kernel
from trueonline.memory import {", ".join([*(word.upper() for word in more), "decay", "imprint", "learn", "recall"])}


@kernel
def {name}(memory, v_old, x, reward, x_next, alpha, gamma, gamma_next, lam):
{asked}    v, trace_x, v_next = recall(memory, x, x_next)  # V ← θᵀφ,  eᵀφ,  V' ← θᵀφ'
    c = {c}
    d = {d}
    decay(memory, c)  # e ← c·e …
    imprint(memory, x, {dutch}, {correction})  # … and what φ moves
    learn(memory, d)  # θ ← θ + d·e
    return v, reward + gamma_next * v_next - v, v_next
'''


def derive(target: Any, step: Any = None) -> Derivation:
    """The backward view of a forward view: of a function U(k, h, …), and of the step-size of its updates if that is not α_k."""
    view = ForwardView(target, step)
    found = Derivation(view, factor(view))
    strange = [s for s in found._symbols if isinstance(s, At) and (s.letter, *s.at) not in WORDS]
    if strange:
        raise ForwardViewError(
            f"an update of time t = 0 would need {', '.join(sorted(map(str, strange)))}, which is not at hand then"
        )
    return found


# --- Writing -----------------------------------------------------------------------------------------


def _word(symbol: sp.Symbol, how: int) -> str:
    if isinstance(symbol, At):
        return WORDS[symbol.letter, *symbol.at][how]
    return symbol.name if how == KERNEL else CONSTANTS[symbol.name][how - 1]


def _constants(expression: sp.Expr, where: str) -> sp.Expr:
    """γ as a constant is, in a kernel, that of the state left for the trace and that of the state entered for the target."""
    bare = {s for s in expression.free_symbols if not isinstance(s, At)}
    at = {"gamma": At("gamma", 0 if where == "trace" else 1), "lam": At("lam", 0), "alpha": At("alpha", 0)}
    greedy = {At("greedy", 0): sp.Integer(1)}  # λ is 0 where an action is not greedy: the agent sees to it
    return expression.xreplace({**{s: at[s.name] for s in bare}, **greedy})


def _written(expression: sp.Expr, how: int) -> str:
    """An expression in words. (SymPy's own printers order terms by their names; these keep the sense.)"""
    if expression.is_Add:
        terms = sorted(expression.args, key=lambda term: (_order(term), str(term)))
        text = _written(terms[0], how)
        for term in terms[1:]:
            text = _joined(text, _written(term, how))
        return text
    if expression.is_Mul:
        sign, rest = expression.as_coeff_Mul()
        if sign == -1:
            return ("-" if how != TEXT else "−") + (_written(rest, how) if rest.is_Mul else _bracketed(rest, how))
        times = {KERNEL: " * ", TEXT: "·", LATEX: " "}[how]
        parts = sorted(expression.args, key=lambda each: (_order(each), str(each)))
        return times.join(_bracketed(part, how) for part in parts)
    if expression.is_Pow:
        base, power = expression.args
        return f"{_bracketed(base, how)}{'**' if how == KERNEL else '^'}{_bracketed(power, how)}"
    if expression.is_Symbol:
        return _word(expression, how)
    return str(expression)


def _bracketed(expression: sp.Expr, how: int) -> str:
    text = _written(expression, how)
    return f"({text})" if expression.is_Add or (expression.is_Number and expression < 0) else text


def _joined(left: str, right: str, after: str = "") -> str:
    """left + right, with a minus in front of right taken for the sign between them; nothing where right is 0."""
    if right == "0":
        return left
    sign = right[:1] if right[:1] in "-−" else "+"
    rest = right[1:] if sign != "+" else right
    if after and re.search(r"^[^(]* [+−-] ", rest):  # a sum on its outside
        rest = f"({rest})"
    return f"{left} {sign} {rest}{after}"


def _order(expression: sp.Expr) -> int:
    """Rewards before what is bootstrapped from, before what it is compared with."""
    ranks = {"alpha": 0, "rho": 1, "gamma": 2, "lam": 3, "greedy": 4, "R": -1, "V": 6, "V_max": 6}
    symbols = list(expression.free_symbols)
    if expression.is_Mul and expression.as_coeff_Mul()[0] < 0:
        return 10
    return min((ranks.get(getattr(s, "letter", s.name), 5) for s in symbols), default=5)


def _product(left: str, right: str) -> str:
    return (
        " * ".join(f"({each})" if re.search(r"[ ][+-] ", each) else each for each in (left, right) if each != "1") or "1"
    )


def _identifier(name: str) -> str:
    text = re.sub(r"\W", "_", name)
    return f"derived_{text}" if not text.isidentifier() or keyword.iskeyword(text) else text
