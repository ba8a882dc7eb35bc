"""True online GTD(λ) (van Hasselt, Mahmood and Sutton 2014): equal at every step to the forward view of w and of h.

Three traces, all of which decay by c = ργλ: the dutch trace e of w, the dutch trace f = ρe^h of h, and the accumulating g = e^∇.
The correction needs the inner product hᵀg of two long vectors. p = hᵀg and q = fᵀg change only by inner products with φ. If c > 1,
q grows by c per step, because the dutch trace f does not grow, but the rounding errors of q grow by c². So p and q are summed from
scratch before these errors have grown tenfold.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import (
    decay,
    imprint,
    learn,
    length_squared,
    products,
    recall,
    shift,
)


@kernel
def true_online_gtd(memory, x, reward, x_next, v_old, alpha, beta, gamma, lam, gamma_next, lam_next, rho, carried):
    second, third = memory.second, memory.third  # w and e; h and f; g
    v, trace_x, v_next = recall(memory, x, x_next)
    h_x, f_x, _ = recall(second, x, x_next)
    _, g_x, _ = recall(third, x, x_next)
    delta, c, xx = reward + gamma_next * v_next - v, rho * gamma * lam, length_squared(x)
    a = beta * (rho - c * f_x)
    grown = c * max(1.0, carried[2])  # how much more the errors have grown than q
    if grown > 10.0:
        carried[0], carried[1] = products(second, third)
    carried[2] = c if grown > 10.0 else grown
    p, q = rho * h_x, a * rho * xx  # hᵀg, of the new g, and fᵀg
    if c > 0.0:
        p += c * carried[0]
        q += c * (c * carried[1] + rho * f_x + a * g_x)
    decay(second, c)  # f ← ργλf + aφ
    imprint(second, x, a, -beta * h_x)
    decay(third, c)  # g ← ργλg + ρφ
    imprint(third, x, rho, 0.0)
    decay(memory, c)  # e ← ργλe + αρ(1 − ργλeᵀφ)φ
    imprint(memory, x, alpha * rho * (1.0 - c * trace_x), -alpha * rho * (v - v_old))
    learn(memory, delta + v - v_old)  # w ← w + (δ + V − V_old)e − αρ(V − V_old)φ …
    share = gamma_next * (1.0 - lam_next)
    if share > 0.0:
        shift(memory, x_next, -alpha * share * p)  # … − αγ'(1 − λ')(hᵀg)φ'
    learn(second, delta)  # h ← h + δf − β(hᵀφ)φ
    carried[0] = p + delta * q - beta * h_x * (c * g_x + rho * xx)
    carried[1] = q
    return v, delta, v_next
