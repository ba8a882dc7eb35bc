"""The emphasis of a state (Sutton, Mahmood and White 2016): for emphatic rules, and for bounding their step-sizes."""

from __future__ import annotations

from trueonline.core.compiling.kernels import kernel


@kernel
def emphasis(follow_on, gamma, lam, rho_old, interest):
    """F and M of this step, from F of the step before. After γ = 0 both are I for every λ."""
    f = m = interest
    if gamma != 0.0:
        f = rho_old * gamma * follow_on + interest  # F ← ρ_{t−1}γF + I
        m = lam * interest + (1.0 - lam) * f  # M ← λI + (1 − λ)F
    return f, m
