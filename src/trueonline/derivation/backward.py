"""The backward view that follows from (★): its equations as text and LaTeX, and as a method in the style of `methods/`."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sympy as sp

from trueonline.derivation.factoring import Factors, factor, moved, tidy
from trueonline.derivation.forward_view import At, ForwardView, ForwardViewError
from trueonline.derivation.proof import prove
from trueonline.derivation.writing import KERNEL, LATEX, NAMES, TEXT, joined, product, word, written

BOOTSTRAPPED = (At("V", 0, 1), At("V_max", 0, 1))  # V'
HEADER = (
    "ratio",
    "ratio_old",
    "lam_next",
    "greedy",
    "discount",
    "trace_decay",
)  # what a kernel finds in its memory's header


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
        return f"derived_{text}" if not text.isidentifier() or keyword.iskeyword(text) else text

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

    @cached_property
    def correction(self) -> sp.Expr:
        """What φ_t is moved by beside the trace, over β_t: U_t^{t+1} − b_t·d_t − V_t(S_t)."""
        f = self.factors
        return tidy(sp.cancel(f.first - f.b * f.d - At("V", 0, 0)))

    # --- To run ---

    @cached_property
    def method(self) -> Any:
        """The kernel, with the nine arguments of those in `trueonline.methods`."""
        from trueonline.derived import method

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
        from trueonline.verification import verify

        return verify(self.agent if self.acts else self.learner, **{"kinds": self.kinds(), **options})

    def kinds(self) -> list[Any]:
        """The kinds of streams to hold it to: with its constants constant."""
        from trueonline.verification import KINDS

        constant = tuple(sorted(self.constants & {"gamma", "lam"}))
        kinds = [replace(kind, constant=kind.constant or constant) for kind in KINDS]
        return [kind for kind in kinds if not kind.schedule] if "alpha" in self.constants else kinds

    # --- To read ---

    def forward(self) -> list[tuple[str, str]]:
        """The forward view, for the first two horizons, as pairs of left and right sides."""
        return [(f"U_t^{{t+{n}}}", written(self._target(n), TEXT)) for n in (1, 2)]

    def equations(self) -> list[tuple[str, str]]:
        """The backward view as pairs of left and right sides."""
        f = self.factors
        beta, imprint = written(f.beta, TEXT), written(f.beta * f.b, TEXT)
        return [
            ("c_t", written(f.c, TEXT)),
            ("d_t", written(f.d, TEXT)),
            ("e_t", f"c_t·(e_{{t−1}} − {beta}·(φ_tᵀe_{{t−1}})·φ_t) + {imprint}·φ_t"),
            ("θ_{t+1}", joined("θ_t + d_t·e_t", written(f.beta * self.correction, TEXT), "·φ_t")),
        ]

    def __str__(self) -> str:
        return "\n".join(["\n".join(_equation(pair) for pair in self.forward()), "", self._equations()])

    def _equations(self) -> str:
        return "\n".join(_equation(pair) for pair in self.equations())

    def latex(self) -> str:
        """Both views for LaTeX, in an `align*`."""
        write = lambda expression: written(expression, LATEX)  # noqa: E731
        f = self.factors
        moves = joined(r"\theta_t + d_t \mathbf{e}_t", write(f.beta * self.correction), r" \phi_t")
        dutch = rf"\mathbf{{e}}_{{t-1}} - {write(f.beta)} (\phi_t^\top \mathbf{{e}}_{{t-1}}) \phi_t"
        lines = [
            *(rf"U_t^{{t+{n}}} &= {write(self._target(n))} \\" for n in (1, 2)),
            rf"c_t &= {write(f.c)} \\",
            rf"d_t &= {write(f.d)} \\",
            rf"\mathbf{{e}}_t &= c_t \left({dutch}\right) + {write(f.beta * f.b)} \phi_t \\",
            rf"\theta_{{t+1}} &= {moves}",
        ]
        return "\n".join([r"\begin{align*}", *lines, r"\end{align*}"])

    def _target(self, n: int) -> sp.Expr:
        return moved(self.view.interim(2, 2 + n), -2)

    def source(self) -> str:
        """A method file that a person can read, and that is what gets compiled."""
        f = self.factors
        c, beta, b = _left(f.c), f.beta, f.b
        d, correction = _entered(f.d), _entered(f.beta * self.correction)
        cut = (
            ""
            if c.xreplace({At("gamma", 0): sp.Integer(0)}) == 0
            else " if gamma > 0.0 else 0.0  # no trace at a beginning"
        )
        ended = [part.xreplace({At("gamma", 1): sp.Integer(0)}).has(*BOOTSTRAPPED) for part in (d, correction)]
        end = "    v_next = v_next if gamma_next > 0.0 else 0.0  # nothing follows an end\n" if any(ended) else ""
        dutch = f"{_code(beta * b)} - {product(_code(beta), 'c')} * trace_x"
        parts = [_code(part) for part in (c, d, correction)]
        used = set().union(*(part.free_symbols for part in (c, d, correction, beta, b)))
        asked = [name for name in HEADER if name in {word(symbol, KERNEL) for symbol in used}]
        header = "".join(f"    {name} = memory.head[{name.upper()}]\n" for name in asked)
        imports = ", ".join([*(name.upper() for name in asked), "decay", "imprint", "learn", "recall"])
        numpy = "import numpy as np\n\n" if "np." in "".join([*parts, dutch]) else ""
        indented = "\n".join(f"    {line}" for line in self._equations().splitlines())
        return f'''"""{self.name}: the backward view that was derived from a forward view, and equals it at every step.

{indented}
"""

{numpy}from trueonline.kernels import kernel
from trueonline.memory import {imports}


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
    found = Derivation(view, factor(view))
    strange = [symbol for symbol in found.symbols if isinstance(symbol, At) and (symbol.letter, *symbol.at) not in NAMES]
    if strange:
        names = ", ".join(sorted(word(symbol, TEXT) for symbol in strange))
        raise ForwardViewError(f"the update of time t would need {names}, which is not at hand then")
    if {"V_max"} & found.letters and {At("V", 0, 1), At("V", -1, 0)} & found.symbols:
        raise ForwardViewError(
            "an agent bootstraps from the best action or from the one it takes, not from both V_max and V"
        )
    found.source()  # or its parts cannot be written
    prove(found)
    return found


# --- Code --------------------------------------------------------------------------------------------


def _equation(pair: tuple[str, str]) -> str:
    return " = ".join(pair)


def _code(expression: sp.Expr) -> str:
    return f"{expression}.0" if expression.is_Integer else written(expression, KERNEL)


def _constant(expression: sp.Expr, name: str) -> sp.Symbol | None:
    return next((s for s in expression.free_symbols if not isinstance(s, At) and s.name == name), None)


def _left(c: sp.Expr) -> sp.Expr:
    """c with γ, where it is a constant and a factor, as that of the state left: it is 0 where an episode begins."""
    gamma = _constant(c, "gamma")
    if gamma is None:
        return c
    rest = sp.cancel(c / gamma)
    return c if gamma in rest.free_symbols else At("gamma", 0) * rest


def _entered(expression: sp.Expr) -> sp.Expr:
    """With γ, where it is a constant and does nothing but discount V', as that of the state entered: it is 0 at an end."""
    gamma = _constant(expression, "gamma")
    if gamma is None:
        return expression
    others = expression.xreplace({gamma: sp.Integer(0)})
    rest = sp.cancel((expression - others) / gamma)
    nothing = rest.xreplace(dict.fromkeys(BOOTSTRAPPED, sp.Integer(0)))
    alone = gamma not in rest.free_symbols and nothing == 0 and not others.has(*BOOTSTRAPPED)
    return others + At("gamma", 1) * rest if alone else expression
