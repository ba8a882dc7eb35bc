"""The backward view that follows from (★): its equations as text and LaTeX, and its method as a file of `methods/` is written."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import sympy as sp

from trueonline.derivation.factoring import Factors, tidy
from trueonline.derivation.forward_view import ForwardView
from trueonline.derivation.quantities import At, ForwardViewError, Own
from trueonline.derivation.text.equations import Equations, lines, targets, updates, with_actions
from trueonline.derivation.text.method_file import method_file
from trueonline.derivation.text.writing import LATEX, TEXT, TIMES, written

# A method file uses these names for other things:
RESERVED_NAMES = {"kernel", "memory", "decay", "imprint", "learn", "recall", "np", "min", "max", "abs"}
CHECK_KINDS = ("dense", "repeated features", "step-size schedule", "constant γ and λ")  # the streams of the short check
CHECK_STEPS, CHECK_STEP_SIZES = 25, (0.001, 0.01)  # short and small, so that hardly any forward view diverges


@dataclass(frozen=True)
class Derivation:
    """A forward view and the backward view that equals it at every step. `derive` returns it.

    `print(derivation)` shows both views. `learner` and `agent` are classes that run the backward view.

    Parameters
    ----------
    view : ForwardView
        The forward view: its target and its step-size.
    factors : Factors
        b, c, d, the first target U_t^{t+1} and the step-size β_t, as SymPy expressions of time t = 0 (see docs/guides/derive.md).

    Examples
    --------
    >>> from trueonline.derivation import derive
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
    <BLANKLINE>
    Checked at 100 steps of 4 random streams: the weights of both views differ by at most ... of the largest weight
    """

    view: ForwardView
    factors: Factors

    @property
    def name(self) -> str:
        """The name of the target's function."""
        return self.view.name

    @property
    def identifier(self) -> str:
        """The name of the method in code: `name`, made a Python name that the method file does not use otherwise."""
        text = re.sub(r"\W", "_", self.name)
        return f"derived_{text}" if not text.isidentifier() or keyword.iskeyword(text) or text in RESERVED_NAMES else text

    @cached_property
    def symbols(self) -> set[sp.Symbol]:
        """The symbols in the equations of the backward view."""
        f = self.factors
        return set().union(*(part.free_symbols for part in (f.b, f.c, f.d, f.beta, self.correction)))

    @property
    def letters(self) -> set[str]:
        """The same quantities by the names of a forward view's arguments, such as "R" and "lam"."""
        return {symbol.letter if isinstance(symbol, At) else symbol.name for symbol in self.symbols}

    @property
    def constants(self) -> set[str]:
        """The quantities that the forward view has without an index ("gamma", "lam", "alpha"). They may not vary."""
        return {symbol.name for symbol in self.symbols if not isinstance(symbol, At | Own)}

    @property
    def acts(self) -> bool:
        """Whether the forward view is about actions (`V_max`, `greedy`). Then it has an agent, but not a learner."""
        return bool({"V_max", "greedy"} & {*self.letters, *self.view.letters})

    def for_predictions(self) -> None:
        """Check that the forward view can predict.

        Raises
        ------
        ForwardViewError
            If the forward view is about actions.
        """
        if self.acts:
            raise ForwardViewError(
                f"{self.name} is about actions (V_max, greedy) and has neither a learner nor a method: use its agent, or verify"
            )

    @property
    def greedily(self) -> bool:
        """Whether agents bootstrap from the best action."""
        return "V_max" in self.letters

    @cached_property
    def correction(self) -> sp.Expr:
        """The correction of the weights along φ_t, divided by β_t: U_t^{t+1} − b_t·d_t − V_t(S_t)."""
        f = self.factors
        return tidy(sp.cancel(f.first - f.b * f.d - At("V", 0, 0)))

    # --- To run ---

    @cached_property
    def row(self) -> Any:
        """The method as `trueonline.method` makes it, with the forward view as its definition."""
        from trueonline.derivation.forward_learners import definition, definition_agent
        from trueonline.learners.own import method, rule_of

        title, source = "".join(part[:1].upper() + part[1:] for part in self.name.split("_")) or "Derived", self.source()
        return method(
            rule_of(source, self.identifier),
            None if self.acts else definition(self, title),
            name=self.name,
            greedy=self.greedily,
            cuts=False,  # the forward view says where a trace ends
            agent_definition=None if self.view.per_feature or "rho" in self.letters else definition_agent(self, title),
            constants=tuple(sorted(self.constants)),
            per_feature=self.view.per_feature,
            source=source,
            parameters=self.view.parameters,
        )

    @cached_property
    def method(self) -> Any:
        """The compiled update rule. It has the arguments of the rules in `trueonline.methods`, and `sweep` takes it.

        Returns
        -------
        compiled function

        Raises
        ------
        ForwardViewError
            If the forward view is about actions.
        """
        self.for_predictions()
        return self.row.rule

    @cached_property
    def learner(self) -> Any:
        """A class of learners with the interface of `trueonline.TrueOnlineTD`.

        If the forward view has `rho`, `update` takes `ratio` and `run` takes `ratios`. If its step-size is one for each feature,
        `step_size` may be an array of `n_features` numbers, or a schedule t → array.

        Returns
        -------
        type
            Called as `learner(n_features, step_size, trace_decay, discount)`.

        Raises
        ------
        ForwardViewError
            If the forward view is about actions.
        """
        self.for_predictions()
        return self.row.learner

    @cached_property
    def agent(self) -> Any:
        """A class of agents with the interface of `trueonline.control.TrueOnlineSarsa`.

        Agents bootstrap from the best action if the forward view has `V_max`, and otherwise from the next action.

        Returns
        -------
        type
            Called as `agent(n_features, n_actions, step_size, trace_decay, discount)`.

        Raises
        ------
        ForwardViewError
            If the forward view has importance ratios.
        """
        if self.view.per_feature:
            raise ForwardViewError("agents have one step-size for all features: use the learner of this forward view")
        if "rho" in self.letters:
            raise ForwardViewError("agents have no importance ratios: use the learner of this forward view")
        return self.row.agent

    def verify(self, **options: Any) -> Any:
        """Compare the compiled method with the forward view, at every step of random streams.

        Parameters
        ----------
        **options
            Options of `trueonline.verify`. `kinds` is `self.kinds()` by default.

        Returns
        -------
        Report
            With `max_error`, the largest difference of weights, and `exact`.
        """
        from trueonline.checks.verification import verify

        kind = self.agent if self.acts else self.learner
        return verify(self._chosen(kind), **{"kinds": self.kinds(), **options})

    def _chosen(self, kind: Any) -> Any:
        """A class with the step-size of the reward rate, if the forward view has one."""
        return partial(kind, second_step_size=0.2) if "rbar" in self.letters else kind

    @cached_property
    def checked(self) -> Any:
        """The short check that `derive` makes: the method as plain Python against the forward view, at every step of short streams.

        `verify` is the long check, of the compiled method.

        Returns
        -------
        Report
            With `max_error`, the largest difference of weights, and `exact`.
        """
        from trueonline.checks.verification import verify
        from trueonline.derivation.uncompiled import plain

        kinds = [replace(kind, step_sizes=CHECK_STEP_SIZES) for kind in self.kinds() if kind.name in CHECK_KINDS]
        made = self.row.agent_definition if self.acts else self.row.definition
        return verify(self._chosen(plain(self)), self._chosen(made), kinds=kinds, trials=1, steps=CHECK_STEPS)

    def check_line(self) -> str:
        """The result of the short check, as a sentence.

        Returns
        -------
        str
            The number of steps and streams, and the largest difference.
        """
        streams, error = len(self.checked.rows), self.checked.max_error
        return (
            f"Checked at {streams * CHECK_STEPS} steps of {streams} random streams: the weights of both views differ by at most "
            f"{error:.1e} of the largest weight"
        )

    def kinds(self) -> list[Any]:
        """The kinds of random streams that `verify` uses, with the constants of the forward view held constant.

        Returns
        -------
        list of StreamKind
            The kinds of streams.
        """
        from trueonline.checks.verification import KINDS

        constant = tuple(sorted(self.constants & {"gamma", "lam"}))
        own = self.view.per_feature
        kinds = [replace(kind, constant=kind.constant or constant, per_feature=own) for kind in KINDS]
        return [kind for kind in kinds if not kind.schedule] if "alpha" in self.constants else kinds

    # --- To read ---

    def forward(self) -> Equations:
        """The targets of the first two horizons.

        Returns
        -------
        list of (str, str)
            The left and the right side of each equation.
        """
        return self._named(targets(self.view, TEXT))

    def equations(self) -> Equations:
        """The backward view: c_t, d_t, the trace e_t, the weights θ_{t+1}, and the reward rate R̄_{t+1} if the view has one.

        Returns
        -------
        list of (str, str)
            The left and the right side of each equation.
        """
        return self._named([*updates(self.factors, self.correction, TEXT, self.view.per_feature), *self._rate(TEXT)])

    def _rate(self, how: int) -> Equations:
        """How the reward rate is learned, if the forward view has one: by the TD error, as Wan, Naik and Sutton (2021) have it."""
        if "rbar" not in self.letters:
            return []
        delta = At("R", 1) - At("rbar", 0) + At("gamma", 1) * At("V", 0, 1) - At("V", 0, 0)
        left, now, beta = (("R̄_{t+1}", "R̄_t", "β_t"), (r"\bar{R}_{t+1}", r"\bar{R}_t", r"\beta_t"))[how - 1]
        ratio = f"{written(At('rho', 0), how)}{TIMES[how]}" if "rho" in self.letters else ""
        return [(left, f"{now} + {beta}{TIMES[how]}{ratio}({written(delta, how)})")]

    def __str__(self) -> str:
        return "\n".join([lines(self.forward()), "", lines(self.equations()), "", self.check_line()])

    def _named(self, pairs: Equations) -> Equations:
        """The same equations, with Q(S, A) for V(S) if the forward view is about actions."""
        return with_actions(pairs) if self.acts else pairs

    def latex(self) -> str:
        """Both views as LaTeX.

        Returns
        -------
        str
            An `align*` environment.
        """
        backward = updates(self.factors, self.correction, LATEX, self.view.per_feature)
        pairs = [*targets(self.view, LATEX), *backward, *self._rate(LATEX)]
        aligned = " \\\\\n".join(f"{left} &= {right}" for left, right in self._named(pairs))
        return "\n".join([r"\begin{align*}", aligned, r"\end{align*}"])

    def source(self) -> str:
        """The method as a Python file. `method`, `learner` and `agent` compile this text.

        Returns
        -------
        str
            The text of the file.
        """
        return method_file(self)
