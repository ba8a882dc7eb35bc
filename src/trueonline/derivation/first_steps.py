"""A check of the first three steps: both views give the same weights, with symbols for everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from trueonline.derivation.factoring import moved
from trueonline.derivation.quantities import At, ForwardViewError

if TYPE_CHECKING:
    from trueonline.derivation.backward import Derivation

STEPS, FEATURES = 3, 2


def prove(derivation: Derivation) -> None:
    """Compare θ_1, θ_2 and θ_3 of the forward view and of the derived equations; ForwardViewError if they differ.

    Values V_i(S_j) stay symbols, because the views are equal for all values. The check cannot fail if the factors are
    right. It guards against mistakes in this package.
    """
    view, f = derivation.view, derivation.factors
    phi = [sp.Matrix(sp.symbols(f"phi{t}_:{FEATURES}")) for t in range(STEPS)]
    start = sp.Matrix(sp.symbols(f"theta_:{FEATURES}"))
    backward, e = start, sp.zeros(FEATURES, 1)
    steps = [_step_sizes(derivation, t) for t in range(STEPS)]
    for h in range(1, STEPS + 1):
        forward = start
        for k in range(h):
            forward = forward + (view.interim(k, h) - forward.dot(phi[k])) * steps[k] * phi[k]
        t = h - 1
        b, c, d, moves = (moved(part, t) for part in (f.b, f.c, f.d, derivation.correction + At("V", 0, 0)))
        written = steps[t] * phi[t]
        e = c * (e - e.dot(phi[t]) * written) + b * written
        backward = backward + d * e + (moves - backward.dot(phi[t])) * written
        for difference in forward - backward:
            if sp.expand(difference) != 0 and sp.expand(sp.numer(sp.together(difference))) != 0:
                raise ForwardViewError(
                    f"θ_{h} of the derived method is not that of the forward view. This is a bug in trueonline: please report it"
                )


def _step_sizes(derivation: Derivation, t: int) -> sp.Matrix:
    """β_t as a diagonal matrix, with a symbol for each feature if features have step-sizes of their own."""
    beta = moved(derivation.factors.beta, t)
    own = [sp.Symbol(f"alpha{t}_{i}") if derivation.view.per_feature else At("alpha", t) for i in range(FEATURES)]
    return sp.diag(*(beta.xreplace({At("alpha", t): alpha}) for alpha in own))
