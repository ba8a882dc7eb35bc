"""GTD2(λ) (Sutton and others 2009; with traces Maei 2011): the weights follow the gradient that the second weights estimate.

Examples
--------
>>> import trueonline as to
>>> learner = to.GTD2(n_features=1, step_size=0.5, trace_decay=0.0, discount=1.0, second_step_size=0.5)
>>> learner.start(0)
>>> learner.update(1.0, None), learner.start(0), learner.update(1.0, None)
(1.0, None, 1.0)
>>> learner.weights, learner.second_weights
(array([0.25]), array([0.75]))
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import (
    decay,
    imprint,
    learn,
    length_squared,
    recall,
    shift,
)


@kernel
def gtd2(memory, x, reward, x_next, alpha, beta, gamma, lam, gamma_next, lam_next, rho, carried):
    second = memory.second  # w and e; h and e
    v, _, v_next = recall(memory, x, x_next)
    h_x, trace_x, _ = recall(second, x, x_next)
    delta, c, xx = reward + gamma_next * v_next - v, rho * gamma * lam, length_squared(x)
    p, q = rho * h_x, rho * rho * xx  # hᵀe, of the new e, and eᵀe, as in `gtd`
    if c > 0.0:
        p += c * carried[0]
        q += c * (c * carried[1] + 2.0 * rho * trace_x)
    for_h = -beta * h_x
    decay(memory, c)  # e ← ργλe + ρφ
    imprint(memory, x, rho, alpha * h_x)  # w ← w + α(hᵀφ)φ …
    share = gamma_next * (1.0 - lam_next)
    if share > 0.0:
        shift(memory, x_next, -alpha * share * p)  # … − αγ'(1 − λ')(hᵀe)φ'
    decay(second, c)
    imprint(second, x, rho, for_h)
    learn(second, beta * delta)  # h ← h + βδe − β(hᵀφ)φ
    carried[0] = p + beta * delta * q + for_h * (c * trace_x + rho * xx)
    carried[1] = q
    return v, delta, v_next
