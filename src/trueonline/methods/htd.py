"""HTD(λ), hybrid TD (Hackman 2012; White and White 2016): GTD(λ) off-policy, and TD(λ) where the policies agree.

The correction goes along the difference of two traces: e with ratios, and b without, that of the behaviour. With ρ = 1 throughout
both are the same, and nothing is corrected. The inner products hᵀe, eᵀe, hᵀb and eᵀb are kept as numbers, as in `gtd`.

Examples
--------
>>> import trueonline as to
>>> learner = to.HTD(n_features=1, step_size=0.5, trace_decay=0.0, discount=1.0, second_step_size=0.5)
>>> learner.start(0)
>>> _ = learner.update(1.0, None, ratio=0.5), learner.start(0), learner.update(1.0, None, ratio=2.0)
>>> learner.weights, learner.second_weights   # w = ¼, then + ½ · 2 · ¾ + ½ · ¼
(array([1.125]), array([0.875]))
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, length_squared, recall, settle, shift, trace_along


@kernel
def htd(memory, x, reward, x_next, alpha, beta, gamma, lam, gamma_next, rho, carried):
    second, third = memory.second, memory.third  # w and e; h and e; b
    v, _, v_next = recall(memory, x, x_next)
    h_x, _, _ = recall(second, x, x_next)
    _, _, _ = recall(third, x, x_next)
    delta, g, xx = reward + gamma_next * v_next - v, gamma * lam, length_squared(x)
    c = rho * g
    decay(second, c)  # e ← ργλe + ρφ
    imprint(second, x, rho, 0.0)
    settle(second, x)
    decay(third, g)  # b ← γλb + φ
    imprint(third, x, 1.0, 0.0)
    settle(third, x)
    e_x, b_x = trace_along(second, x), trace_along(third, x)
    h_e, h_b = rho * h_x, h_x  # hᵀe and hᵀb, eᵀe and eᵀb, of the new traces
    e_e, e_b = 2.0 * rho * e_x - rho * rho * xx, rho * b_x + e_x - rho * xx
    if g > 0.0:
        h_e, h_b = h_e + c * carried[0], h_b + g * carried[1]
        e_e, e_b = e_e + c * c * carried[2], e_b + c * g * carried[3]
    correction = alpha * (h_e - h_b)
    decay(memory, c)
    imprint(memory, x, rho, correction)
    learn(memory, alpha * delta)  # w ← w + αδe + α(hᵀ(e − b))(φ − γ'φ')
    shift(memory, x_next, -gamma_next * correction)
    learn(second, beta * delta)  # h ← h + βδe − β(hᵀb)(φ − γ'φ')
    shift(second, x, -beta * h_b)
    shift(second, x_next, beta * gamma_next * h_b)
    carried[0] = h_e + beta * (delta * e_e - h_b * (e_x - gamma_next * trace_along(second, x_next)))
    carried[1] = h_b + beta * (delta * e_b - h_b * (b_x - gamma_next * trace_along(third, x_next)))
    carried[2], carried[3] = e_e, e_b
    return v, delta, v_next
