"""Proximal GTD2(λ) (Mahadevan and others 2014, as GTD2-MP; Liu and others 2015): GTD2(λ) with a look half a step ahead.

Examples
--------
>>> import trueonline as to
>>> learner = to.ProximalGTD2(n_features=1, step_size=0.5, trace_decay=0.0, discount=1.0, second_step_size=0.5)
>>> learner.start(0)
>>> learner.update(1.0, None)
1.0
>>> learner.weights, learner.second_weights
(array([0.25]), array([0.25]))
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import (
    decay,
    imprint,
    learn,
    length_squared,
    recall,
    shift,
    value,
)


@kernel
def proximal_gtd2(memory, x, reward, x_next, alpha, beta, gamma, lam, gamma_next, lam_next, rho, carried):
    second = memory.second  # w and e; h and e
    v, _, v_next = recall(memory, x, x_next)
    h_x, trace_x, _ = recall(second, x, x_next)
    delta, c, xx = reward + gamma_next * v_next - v, rho * gamma * lam, length_squared(x)
    p, q = rho * h_x, rho * rho * xx  # hᵀe, of the new e, and eᵀe, as in `gtd`
    if c > 0.0:
        p += c * carried[0]
        q += c * (c * carried[1] + 2.0 * rho * trace_x)
    e_x, share = c * trace_x + rho * xx, gamma_next * (1.0 - lam_next)
    h_x_half = h_x + beta * (delta * e_x - h_x * xx)  # h½ = h + β(δe − (hᵀφ)φ)
    p_half = p + beta * (delta * q - h_x * e_x)
    shift(memory, x, alpha * h_x)  # w½ = w + α((hᵀφ)φ − γ'(1 − λ')(hᵀe)φ')
    shift(memory, x_next, -alpha * share * p)
    delta_half = reward + gamma_next * value(memory, x_next) - value(memory, x)
    shift(memory, x_next, -alpha * share * (p_half - p))  # w ← w + α((h½ᵀφ)φ − γ'(1 − λ')(h½ᵀe)φ')
    decay(memory, c)  # e ← ργλe + ρφ
    imprint(memory, x, rho, alpha * (h_x_half - h_x))
    decay(second, c)
    imprint(second, x, rho, -beta * h_x_half)
    learn(second, beta * delta_half)  # h ← h + β(δ½e − (h½ᵀφ)φ)
    carried[0] = p + beta * (delta_half * q - h_x_half * e_x)
    carried[1] = q
    return v, delta, v_next
