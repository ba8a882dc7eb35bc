"""A forward view as a learner and as an agent, by its definition. `verify` compares derived methods with them. Slow and obvious."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from trueonline.derivation.quantities import FIRST, ForwardViewError, Numbers
from trueonline.forward.agents import DefinitionAgent
from trueonline.forward.base import with_parameters
from trueonline.forward.differential import DifferentialDefinition
from trueonline.forward.off_policy_returns import FamilyDefinition

if TYPE_CHECKING:
    from trueonline.derivation.backward import Derivation


def definition(derivation: Derivation, title: str) -> type[FamilyDefinition]:
    """A class of learners that makes all updates from scratch at every time h, with the targets of horizon h."""
    view = derivation.view
    base: Any = with_parameters(
        DifferentialDefinition if "rbar" in derivation.letters else FamilyDefinition, view.parameters
    )

    class Forward(base):
        """θ_{k+1}^h = θ_k^h + β_k (U_k^h − φ_kᵀθ_k^h) φ_k for 0 ≤ k < h, and θ_h = θ_h^h."""

        takes = ("ratio",) if "rho" in derivation.letters else ()
        per_feature = view.per_feature

        def _redone(self) -> np.ndarray:
            h = len(self.rewards)
            ends = self.discounts[-1] == 0.0
            features = [*self.x, self.reached[-1] * (not ends)]  # φ_0, …, φ_h; of (S_j, A_j), where there are actions

            def best(i: int, j: int) -> float:
                state = features[j].reshape(-1, self.n_actions).sum(axis=1)
                return float((state @ self.weights_then[i].reshape(-1, self.n_actions)).max()) if i >= 0 else 0.0

            given = {
                "R": Numbers(np.nan, self.rewards, FIRST["R"]),
                "gamma": Numbers(self.discount, self.discounts, FIRST["gamma"]),
                "lam": Numbers(self.trace_decay, self.trace_decays, FIRST["lam"]),
                "alpha": Numbers(np.nan if view.per_feature else self.alphas[0], self.alphas, FIRST["alpha"]),
                "rho": Numbers(np.nan, self.ratios, FIRST["rho"]),
                "rbar": Numbers(np.nan, getattr(self, "reward_rates", [0.0] * h), FIRST["rbar"]),
                "greedy": Numbers(np.nan, [float(greedy) for greedy in self.goes_on], FIRST["greedy"]),
                "V": cache(lambda i, j: float(self.weights_then[i] @ features[j]) if i >= 0 else 0.0),
                "V_max": cache(best),
            }
            given |= {name: getattr(self, name) for name in view.parameters}
            target_of, step_of = view.target_of(given), view.step_of(given)
            w = self._first_weights.copy()
            for k in range(h):
                target = target_of(k, h)
                if not np.isfinite(target) and np.isfinite(self.weights_then).all():
                    raise ForwardViewError(
                        f"U(k={k}, h={h}) is not a finite number here: does it divide by a number that may be 0?"
                    )
                step = np.array([step_of(k, i) for i in range(len(w))]) if view.per_feature else step_of(k)
                w = w + step * (target - w @ self.x[k]) * self.x[k]
            return w

        @property
        def trace(self) -> np.ndarray:
            raise AttributeError("a forward view has no trace: use the derived learner")

    Forward.__name__ = Forward.__qualname__ = f"{title}ForwardView"
    return Forward


def definition_agent(derivation: Derivation, title: str) -> type[DefinitionAgent]:
    """A class of agents that does the same over ψ(s, a)."""
    made = {"definition": definition(derivation, title), "greedy": derivation.greedily}
    return type(f"{title}ForwardView", (DefinitionAgent,), made)
