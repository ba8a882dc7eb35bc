"""A derivation made to run: its method as a kernel, a learner over it, and the forward view itself as a learner to hold it to."""

from __future__ import annotations

import hashlib
import linecache
from typing import Any

import numpy as np

from trueonline.derive.backward import Derivation
from trueonline.derive.forward_view import LAST, ForwardViewError, asked
from trueonline.forward.definition import Definition
from trueonline.learners import MemoryLearner


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
    return type(_title(derivation.name), (MemoryLearner,), made)


class Numbers(float):
    """A quantity as numbers: one for each step, and without an index the constant."""

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

        def _weights_now(self) -> np.ndarray:
            h = len(self.rewards)
            series = {
                "R": Numbers(np.nan, self.rewards, 1),
                "gamma": Numbers(self.discount, self.discounts, 1),
                "lam": Numbers(self.trace_decay, self.trace_decays, 1),
                "alpha": Numbers(self.alphas[0], self.alphas, 0),
            }
            features = [self.x[0], *self.reached]
            given = {**series, "V": lambda i, j: float(self.weights_then[i] @ features[j])}
            unknown = [name for name in (*wanted, *of_step) if name not in given]
            if unknown:
                raise ForwardViewError(f"a learner of predictions has no {unknown[0]}")
            w = self._first_weights.copy()
            for k in range(h):
                target = view.target(k, h, **{name: given[name] for name in wanted})
                beta = self.alphas[k] if view.step is None else view.step(k, **{name: given[name] for name in of_step})
                w = w + beta * (target - w @ self.x[k]) * self.x[k]
            return w

        def _weights_at_end(self) -> np.ndarray:
            return self._weights

        @property
        def trace(self) -> np.ndarray:
            raise AttributeError("a forward view has no trace")

    Forward.__name__ = Forward.__qualname__ = f"{_title(derivation.name)}ForwardView"
    assert set(LAST) >= {"R", "gamma", "lam", "alpha"}
    return Forward


def _title(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or "Derived"
