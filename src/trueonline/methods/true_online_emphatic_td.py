"""True online emphatic TD(λ) (Sutton 2015): true online TD(λ) with the step-size αρM, and traces that decay by ργλ.

Equal at every step to redoing all updates with the off-policy interim λ-return, each with its step-size α_kρ_kM_k.
"""

from trueonline.core.kernels import kernel
from trueonline.core.memory import RATIO, decay, imprint, learn, recall
from trueonline.methods.emphatic_td import emphasise


@kernel
def true_online_emphatic_td(memory, v_old, x, reward, x_next, alpha, gamma, gamma_next, lam):
    rho = memory.head[RATIO]
    beta, c = alpha * rho * emphasise(memory, gamma, lam), rho * gamma * lam
    v, trace_x, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, c)  # e ← ργλe …
    imprint(memory, x, beta - beta * c * trace_x, -beta * (v - v_old))  # … + βφ − βργλ(eᵀφ)φ  and  w ← w − β(V − V_old)φ
    learn(memory, delta + v - v_old)  # w ← w + (δ + V − V_old)e
    return v, delta, v_next
