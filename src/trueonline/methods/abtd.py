"""ABTD(ζ) (Ghiassian and Sutton 2021, after ABQ(ζ) of Mahmood, Yu and Sutton 2017): bootstrapping that depends on the action.

The trace keeps ν(A, S)π(A|S) of itself, with ν = min(ψ, 1 / max(π, b)). So it carries no ratios. `trace_decay` is ζ, from which
ψ follows: ψ = 2ζψ₀ for ζ ≤ ½, and beyond that ψ goes from ψ₀ to ψ_max.

Examples
--------
>>> import trueonline as to
>>> learner = to.ABTD(n_features=2, step_size=0.5, trace_decay=0.25, discount=1.0)
>>> learner.start(0)
>>> _ = learner.update(0.0, 1, ratio=2.0, probability=0.8), learner.update(1.0, None, ratio=0.5)
>>> learner.weights   # ψ = ½: ½ · 0.5 · (½ · 0.8), and ½ · 0.5
array([0.1 , 0.25])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def abtd(memory, x, reward, x_next, alpha, gamma, lam, gamma_next, rho, rho_old, pi, carried, psi_0, psi_max):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    psi = 2.0 * lam * psi_0 + max(0.0, 2.0 * lam - 1.0) * (psi_max - 2.0 * psi_0)
    kept = min(psi * carried[0], 1.0, rho_old)  # νπ of the action before: π / max(π, b) is min(1, ρ)
    decay(memory, gamma * kept)  # e ← γνπ_old e …
    imprint(memory, x, 1.0, 0.0)  # … + φ
    learn(memory, alpha * rho * delta)  # w ← w + αρδe
    carried[0] = pi
    return v, delta, v_next
