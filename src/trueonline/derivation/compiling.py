"""A derivation made to run: its method as a kernel, a learner over it, and the forward view itself as a learner to hold it to."""

from __future__ import annotations

import hashlib
import linecache
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.control.agent import Agent
from trueonline.control.transitions import entries, greedy, sarsa
from trueonline.derivation.backward import Derivation
from trueonline.derivation.forward_view import ForwardViewError, asked
from trueonline.forward.agents import DefinitionAgent
from trueonline.forward.definition import Definition
from trueonline.learners import MemoryLearner
from trueonline.memory import RATIO


def method(derivation: Derivation) -> Any:
    """The kernel, compiled from the text that `source` gives."""
    text, name = derivation.source(), derivation.identifier
    path = f"<derived {name} {hashlib.sha256(text.encode()).hexdigest()[:8]}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)  # for tracebacks and `inspect`
    names: dict[str, Any] = {"__name__": "trueonline.derived"}
    exec(compile(text, path, "exec"), names)
    return names[name]


def learner(derivation: Derivation) -> type[MemoryLearner]:
    """A class of learners with the whole interface of those in `trueonline.learners`."""
    kernel = method(derivation)
    about = f"{derivation.name}, derived from its forward view.\n\n{derivation}"
    made = {"__doc__": about, "_methods": (kernel, kernel), "definition": definition(derivation)}
    fixed = [name for name, public in PUBLIC.items() if name in derivation.constants]
    if fixed:
        made |= _held_to(fixed)
    if "rho" in derivation.letters:
        made |= {"takes_ratios": True, "update": _update_with_ratio, "run": _run_with_ratios}
    return type(_title(derivation.name), (MemoryLearner,), made)


def _update_with_ratio(
    self: MemoryLearner,
    reward: float,
    x_next: Any,
    discount: float | None = None,
    trace_decay: float | None = None,
    ratio: float = 1.0,
) -> float:
    """As always; `ratio` is ρ of the action that was taken: how likely the target policy is to take it, over how likely it was."""
    numbers = self._memory.numbers
    before, numbers[RATIO] = numbers[RATIO], inputs.ratio("ratio", ratio)
    try:
        return MemoryLearner.update(self, reward, x_next, discount, trace_decay)
    except BaseException:
        numbers[RATIO] = before
        raise


def _run_with_ratios(
    self: MemoryLearner,
    X: Any,
    rewards: Any,
    discounts: Any = None,
    *,
    trace_decays: Any = None,
    starts: Any = None,
    ratios: Any = None,
) -> np.ndarray:
    """As always; `ratios[t]` is ρ of the action that led from row t to row t + 1."""
    rho = inputs.ratios("ratios", ratios, len(np.atleast_1d(rewards)))
    return self._run(X, rewards, discounts, trace_decays, starts, rho)


PUBLIC = {"gamma": "discount", "lam": "trace_decay"}


def _held_to(fixed: list[str]) -> dict[str, Any]:
    """`update` and `run` that refuse other values of what the forward view has as constants. (γ = 0 ends an episode.)"""

    def refuse_others(self: MemoryLearner, **given: Any) -> None:
        for name in fixed:
            own, values = getattr(self, PUBLIC[name]), given[name]
            allowed = (own, 0.0) if name == "gamma" else (own,)
            if values is not None and not np.isin(np.asarray(values, float), allowed).all():
                raise ValueError(
                    f"{PUBLIC[name]} is a constant of this forward view, {own:g}; write {name}[j] in it to let it vary"
                )

    def update(
        self: MemoryLearner, reward: float, x_next: Any, discount: float | None = None, trace_decay: float | None = None
    ) -> float:
        refuse_others(self, gamma=discount, lam=trace_decay)
        return MemoryLearner.update(self, reward, x_next, discount, trace_decay)

    def run(
        self: MemoryLearner, X: Any, rewards: Any, discounts: Any = None, *, trace_decays: Any = None, starts: Any = None
    ) -> np.ndarray:
        refuse_others(self, gamma=discounts, lam=trace_decays)
        return MemoryLearner.run(self, X, rewards, discounts, trace_decays=trace_decays, starts=starts)

    return {"update": update, "run": run}


class Numbers(float):
    """A quantity as numbers: one for each step, and without an index the constant."""

    steps: list[float]
    first: int

    def __new__(cls, constant: float, steps: list[float], first: int) -> Numbers:
        made = super().__new__(cls, constant)
        made.steps, made.first = steps, first
        return made

    def __getitem__(self, j: int) -> float:
        if not 0 <= j - self.first < len(self.steps):
            raise ForwardViewError(f"there is nothing at time {j}")
        return self.steps[j - self.first]


def definition(derivation: Derivation) -> type[Definition]:
    """The forward view by its definition: at every time h, all updates are made anew with the targets of horizon h."""
    view = derivation.view
    wanted = asked(view.target, ("k", "h"))
    of_step = [] if view.step is None else asked(view.step, ("k",))

    class Forward(Definition):
        """θ_{k+1}^h = θ_k^h + β_k (U_k^h − φ_kᵀθ_k^h) φ_k for 0 ≤ k < h, and θ_h = θ_h^h."""

        takes_ratios = True
        ratio = 1.0  # of the last transition

        def _weights_now(self) -> np.ndarray:
            h = len(self.rewards)
            series = {
                "R": Numbers(np.nan, self.rewards, 1),
                "gamma": Numbers(self.discount, self.discounts, 1),
                "lam": Numbers(self.trace_decay, self.trace_decays, 1),
                "alpha": Numbers(self.alphas[0], self.alphas, 0),
            }
            features = [*self.x, self.reached[-1]]  # of (S_j, A_j), where there are actions

            def best(i: int, j: int) -> float:
                state = features[j].reshape(-1, self.n_actions).sum(axis=1)
                return float((state @ self.weights_then[i].reshape(-1, self.n_actions)).max())

            given = {**series, "V": lambda i, j: float(self.weights_then[i] @ features[j]), "V_max": best}
            given["rho"] = Numbers(np.nan, self.ratios, 0)
            given["greedy"] = Numbers(np.nan, [float(goes_on) for goes_on in self.goes_on], 1)
            unknown = [name for name in (*wanted, *of_step) if name not in given]
            if unknown:
                raise ForwardViewError(f"a learner of predictions has no {unknown[0]}")
            w = self._first_weights.copy()
            for k in range(h):
                target = view.target(k, h, **{name: given[name] for name in wanted})
                beta = self.alphas[k] if view.step is None else view.step(k, **{name: given[name] for name in of_step})
                w = w + beta * (target - w @ self.x[k]) * self.x[k]
            return w

        def update(
            self,
            reward: float,
            x_next: Any,
            discount: float | None = None,
            trace_decay: float | None = None,
            ratio: float = 1.0,
        ) -> float:
            self.ratio = ratio
            return Definition.update(self, reward, x_next, discount, trace_decay)

        @property
        def ratios(self) -> list[float]:
            """ρ_0, ρ_1, … of the history."""
            kept = getattr(self, "_ratios", [])
            self._ratios = [*kept[: len(self.rewards) - 1], self.ratio]
            return self._ratios

        def _weights_at_end(self) -> np.ndarray:
            return self._weights

        @property
        def trace(self) -> np.ndarray:
            raise AttributeError("a forward view has no trace")

    Forward.__name__ = Forward.__qualname__ = f"{_title(derivation.name)}ForwardView"
    return Forward


def agent(derivation: Derivation) -> type[Agent]:
    """A class of agents over ψ(s, a): it bootstraps from the best action where the forward view has V_max, else from the next."""
    kernel = method(derivation)
    greedily = "V_max" in asked(derivation.view.target, ("k", "h"))
    rule = entries(kernel, greedy if greedily else sarsa)
    forward = type(
        f"{_title(derivation.name)}ForwardView",
        (DefinitionAgent,),
        {"definition": definition(derivation), "greedy": greedily},
    )
    about = f"{derivation.name}, derived from its forward view.\n\n{derivation}"
    made = {"__doc__": about, "_rule": lambda self: (rule, rule), "definition": forward}
    return type(_title(derivation.name), (Agent,), made)


def _title(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or "Derived"
