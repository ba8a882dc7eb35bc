"""True online emphatic TD(λ) (Sutton 2015): equal to its forward view at every step.

It is true online TD(λ) with the step-size αρM, and traces that decay by ργλ. Its weights are those of redoing all updates with
the off-policy interim λ-return, each with its step-size α_kρ_kM_k. Transitions may carry `interest`, how much the state left
matters.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.emphasis import emphasis
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def true_online_emphatic_td(
    memory, x, reward, x_next, v_old, alpha, gamma, lam, gamma_next, rho, rho_old, interest, carried
):
    carried[0], m = emphasis(carried[0], gamma, lam, rho_old, interest)  # F and M
    beta, c = alpha * rho * m, rho * gamma * lam
    v, trace_x, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, c)  # e ← ργλe …
    imprint(memory, x, beta - beta * c * trace_x, -beta * (v - v_old))  # … + βφ − βργλ(eᵀφ)φ  and  w ← w − β(V − V_old)φ
    learn(memory, delta + v - v_old)  # w ← w + (δ + V − V_old)e
    return v, delta, v_next
