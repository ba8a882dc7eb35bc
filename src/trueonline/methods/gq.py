"""GQ(λ) (Maei and Sutton 2010; Sutton and Barto 2018, section 12.11): Expected Sarsa(λ) with the correction of GTD(λ).

The inner product hᵀe is kept as a number, as in `gtd`.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, length_squared, recall, shift


@kernel
def gq(memory, x, reward, x_expected, alpha, beta, gamma, lam, gamma_next, lam_next, rho, carried):
    second = memory.second  # w and e; h and e
    v, _, v_next = recall(memory, x, x_expected)
    h_x, trace_x, _ = recall(second, x, x_expected)
    delta, c, xx = reward + gamma_next * v_next - v, rho * gamma * lam, length_squared(x)
    h_e, e_e = h_x, xx  # hᵀe and eᵀe, of the new e
    if c > 0.0:
        h_e += c * carried[0]
        e_e += c * (c * carried[1] + 2.0 * trace_x)
    decay(memory, c)  # e ← ργλe + φ
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)  # w ← w + αδe …
    share = gamma_next * (1.0 - lam_next)
    if share > 0.0:
        shift(memory, x_expected, -alpha * share * h_e)  # … − αγ'(1 − λ')(hᵀe)φ̄'
    decay(second, c)
    imprint(second, x, 1.0, -beta * h_x)
    learn(second, beta * delta)  # h ← h + βδe − β(hᵀφ)φ
    carried[0] = h_e + beta * (delta * e_e - h_x * (c * trace_x + xx))
    carried[1] = e_e
    return v, delta, v_next
