"""The backward view that follows from (★): its equations as text and LaTeX, and as a method in the style of `methods/`."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sympy as sp

from trueonline.derivation.factoring import Factors, NotDerivableError, factor, moved, tidy
from trueonline.derivation.forward_view import At, ForwardView, ForwardViewError, Quantity
from trueonline.derivation.later import confirm_later
from trueonline.derivation.proof import prove
from trueonline.derivation.writing import KERNEL, LATEX, NAMES, TEXT, TIMES, plus, word, written

# Names that a method file uses for other things:
TAKEN = {"kernel", "memory", "decay", "imprint", "learn", "recall", "np", "min", "max", "abs"}
BOOTSTRAPPED = (At("V", 0, 1), At("V_max", 0, 1))  # V'
# What a kernel finds in the header of its memory:
HEADER = ("ratio", "ratio_old", "lam_next", "greedy", "discount", "trace_decay")


@dataclass(frozen=True)
class Derivation:
    """A forward view, and the backward view that equals it at every step.

    >>> def monte_carlo(k, h, R, gamma):
    ...     return sum(gamma ** (i - k - 1) * R[i] for i in range(k + 1, h + 1))
    >>> print(derive(monte_carlo))
    U_t^{t+1} = R_{t+1}
    U_t^{t+2} = R_{t+1} + γ·R_{t+2}
    <BLANKLINE>
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

    @property
    def identifier(self) -> str:
        """Its name in code."""
        text = re.sub(r"\W", "_", self.name)
        return f"derived_{text}" if not text.isidentifier() or keyword.iskeyword(text) or text in TAKEN else text

    @cached_property
    def symbols(self) -> set[sp.Symbol]:
        """What its equations are made of."""
        f = self.factors
        return set().union(*(part.free_symbols for part in (f.b, f.c, f.d, f.beta, self.correction)))

    @property
    def letters(self) -> set[str]:
        """The same by the names of a forward view's arguments."""
        return {symbol.letter if isinstance(symbol, At) else symbol.name for symbol in self.symbols}

    @property
    def constants(self) -> set[str]:
        """Those of them that do not vary from step to step."""
        return {symbol.name for symbol in self.symbols if not isinstance(symbol, At)}

    @property
    def acts(self) -> bool:
        """Whether it is about actions alone: then it is for agents, and not for learners of predictions."""
        return bool({"V_max", "greedy"} & {*self.letters, *self.view.letters})

    def for_predictions(self) -> None:
        """ForwardViewError where it is for agents alone."""
        if self.acts:
            raise ForwardViewError(
                "this forward view is about actions (V_max, greedy): use its agent, or verify, not its learner"
            )

    @property
    def greedily(self) -> bool:
        """Whether its agents bootstrap from the best action."""
        return "V_max" in self.letters

    @cached_property
    def correction(self) -> sp.Expr:
        """What φ_t is moved by beside the trace, over β_t: U_t^{t+1} − b_t·d_t − V_t(S_t)."""
        f = self.factors
        return tidy(sp.cancel(f.first - f.b * f.d - At("V", 0, 0)))

    # --- To run ---

    @cached_property
    def method(self) -> Any:
        """The kernel, with the nine arguments of those in `trueonline.methods`."""
        from trueonline.learners.derived import method

        self.for_predictions()
        return method(self.source(), self.identifier)

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

    def verify(self, **options: Any) -> Any:
        """Hold the compiled method to the forward view, at every step of random streams (see `trueonline.verify`)."""
        from trueonline.checks.verification import verify

        return verify(self.agent if self.acts else self.learner, **{"kinds": self.kinds(), **options})

    def kinds(self) -> list[Any]:
        """The kinds of streams to hold it to: with its constants constant."""
        from trueonline.checks.verification import KINDS

        constant = tuple(sorted(self.constants & {"gamma", "lam"}))
        kinds = [replace(kind, constant=kind.constant or constant) for kind in KINDS]
        return [kind for kind in kinds if not kind.schedule] if "alpha" in self.constants else kinds

    # --- To read ---

    def forward(self) -> list[tuple[str, str]]:
        """The forward view, for the first two horizons, as pairs of left and right sides."""
        return self._named([(f"U_t^{{t+{n}}}", written(self._target(n), TEXT)) for n in (1, 2)])

    def _named(self, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """With Q(S, A) for V(S), where there are actions."""
        time = r"(t|\{[^}]*\})"
        value = re.compile(rf"V_{time}\(S_{time}\)")
        return [(left, value.sub(r"Q_\1(S_\2, A_\2)", right)) for left, right in pairs] if self.acts else pairs

    def equations(self) -> list[tuple[str, str]]:
        """The backward view as pairs of left and right sides."""
        found = [("c_t", written(self.factors.c, TEXT)), ("d_t", written(self.factors.d, TEXT)), *self._updates(TEXT)]
        return self._named(found)

    def _updates(self, how: int) -> list[tuple[str, str]]:
        """Those of the trace and of the weights."""
        f = self.factors
        e, theta, phi, dot = (("e", "θ", "φ_t", "φ_tᵀ"), (r"\mathbf{e}", r"\theta", r"\phi_t", r"\phi_t^\top "))[how - 1]
        times = TIMES[how]
        before = "{t−1}" if how == TEXT else "{t-1}"
        inner = plus(f"{e}_{before}", -f.beta, how, f"({dot}{e}_{before}){times}{phi}")
        inner = f"({inner})" if how == TEXT else rf"\left({inner}\right)"
        return [
            (f"{e}_t", plus(f"c_t{times}{inner}", f.beta * f.b, how, phi)),
            (f"{theta}_{{t+1}}", plus(f"{theta}_t + d_t{times}{e}_t", tidy(f.beta * self.correction), how, phi)),
        ]

    def __str__(self) -> str:
        return "\n".join(["\n".join(_equation(pair) for pair in self.forward()), "", self._equations()])

    def _equations(self) -> str:
        return "\n".join(_equation(pair) for pair in self.equations())

    def latex(self) -> str:
        """Both views for LaTeX, in an `align*`."""
        pairs = [(f"U_t^{{t+{n}}}", written(self._target(n), LATEX)) for n in (1, 2)]
        pairs += [("c_t", written(self.factors.c, LATEX)), ("d_t", written(self.factors.d, LATEX)), *self._updates(LATEX)]
        lines = " \\\\\n".join(f"{left} &= {right}" for left, right in self._named(pairs))
        return "\n".join([r"\begin{align*}", lines, r"\end{align*}"])

    def _target(self, n: int) -> sp.Expr:
        return moved(self.view.interim(2, 2 + n), -2)

    def source(self) -> str:
        """A method file that a person can read, and that is what gets compiled."""
        f = self.factors
        c, beta, b = _left(f.c), f.beta, f.b
        d, correction = _entered(f.d), _entered(f.beta * self.correction)
        fades = sp.denom(sp.together(c)) == 1 and c.xreplace({At("gamma", 0): sp.Integer(0)}) == 0
        cut = "" if fades else " if gamma > 0.0 else 0.0  # no trace at a beginning"
        ended = [part.xreplace({At("gamma", 1): sp.Integer(0)}).has(*BOOTSTRAPPED) for part in (d, correction)]
        end = "    v_next = v_next if gamma_next > 0.0 else 0.0  # nothing follows an end\n" if any(ended) else ""
        dutch = plus(_code(beta * b), -beta, KERNEL, "c * trace_x")
        parts = [_code(part) for part in (c, d, correction)]
        used = set().union(*(part.free_symbols for part in (c, d, correction, beta, b)))
        asked = [name for name in HEADER if name in {word(symbol, KERNEL) for symbol in used}]
        header = "".join(f"    {name} = memory.head[{name.upper()}]\n" for name in asked)
        imports = ", ".join([*(name.upper() for name in asked), "decay", "imprint", "learn", "recall"])
        numpy = "import numpy as np\n\n" if "np." in "".join([*parts, dutch]) else ""
        indented = "\n".join(f"    {line}" for line in self._equations().splitlines())
        return f'''"""{self.identifier}: the backward view that was derived from a forward view, and equals it at every step.

{indented}
"""

{numpy}from trueonline.core.kernels import kernel
from trueonline.core.memory import {imports}


@kernel
def {self.identifier}(memory, v_old, x, reward, x_next, alpha, gamma, gamma_next, lam):
{header}    v, trace_x, v_next = recall(memory, x, x_next)  # V ← θᵀφ,  eᵀφ,  V' ← θᵀφ'
{end}    c = {parts[0]}{cut}
    d = {parts[1]}
    decay(memory, c)  # e ← c·e …
    imprint(memory, x, {dutch}, {parts[2]})  # … and what φ moves
    learn(memory, d)  # θ ← θ + d·e
    return v, reward + gamma_next * v_next - v, v_next
'''


def derive(target: Any, step: Any = None) -> Derivation:
    """The backward view of a forward view: of a function U(k, h, …), and of the step-size of its updates if that is not α_k.

    NotDerivableError where there is none, ForwardViewError where it cannot be understood; both are ValueErrors.
    """
    view = ForwardView(target, step)
    try:
        factors = factor(view)
    except NotDerivableError as error:
        if view.has_floats:
            error.args = (
                f"{error}. (If that is for its floats, which are not exact: give fractions, Fraction(7, 10) for 0.7.)",
            )
        raise
    found = Derivation(view, factors)
    if "alpha" in found.constants:  # α of an update is then that constant, too
        same = {At("alpha", 0): _constant("alpha")}
        found = Derivation(view, Factors(**{name: part.xreplace(same) for name, part in vars(factors).items()}))
    if "V_max" in found.letters and {At("V", 0, 1), At("V", -1, 0)} & found.symbols:
        raise ForwardViewError(
            "an agent bootstraps from the best action or from the one it takes, not from both V_max and V"
        )
    if found.acts and "rho" in found.letters:
        raise ForwardViewError(
            "a forward view with V_max or greedy is for agents, which have no importance ratios; leave rho out"
        )
    strange = [
        word(symbol, TEXT)
        for symbol in found.symbols
        if isinstance(symbol, At) and (symbol.letter, *symbol.at) not in NAMES
    ]
    if strange:
        raise ForwardViewError(f"the update of time t would need {', '.join(sorted(strange))}, which is not at hand then")
    found.source()  # or it says what cannot be written
    prove(found)
    confirm_later(view, factors)
    return found


# --- Code --------------------------------------------------------------------------------------------


def _equation(pair: tuple[str, str]) -> str:
    return " = ".join(pair)


def _code(expression: sp.Expr) -> str:
    return repr(float(expression)) if expression.is_Number else written(expression, KERNEL)


def _constant(name: str) -> sp.Symbol:
    return Quantity(name, 0, "a constant")


def _left(c: sp.Expr) -> sp.Expr:
    """c with γ, where it is a constant and a factor, as that of the state left: it is 0 where an episode begins."""
    gamma = _constant("gamma")
    if gamma not in c.free_symbols:
        return c
    rest = sp.cancel(c / gamma)
    return c if gamma in rest.free_symbols else At("gamma", 0) * rest


def _entered(expression: sp.Expr) -> sp.Expr:
    """With γ, where it is a constant and does nothing but discount V', as that of the state entered: it is 0 at an end."""
    gamma = _constant("gamma")
    if gamma not in expression.free_symbols:
        return expression
    others = expression.xreplace({gamma: sp.Integer(0)})
    rest = sp.cancel((expression - others) / gamma)
    nothing = rest.xreplace(dict.fromkeys(BOOTSTRAPPED, sp.Integer(0)))
    alone = gamma not in rest.free_symbols and nothing == 0 and not others.has(*BOOTSTRAPPED)
    return others + At("gamma", 1) * rest if alone else expression
