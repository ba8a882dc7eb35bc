"""TDRC(λ) (Ghiassian, Patterson, Garg, Gupta, White and White 2020): GTD(λ) whose second weights are pulled towards zero.

The second step-size is the step-size if none is given, so that there is nothing more to tune.

Examples
--------
>>> import trueonline as to
>>> learner = to.TDRC(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
>>> learner.start(0)
>>> learner.update(1.0, 0), learner.update(1.0, None)
(1.0, 0.5)
>>> learner.weights, learner.second_weights
(array([1.]), array([0.5]))
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import (
    decay,
    imprint,
    learn,
    length_squared,
    recall,
    scale,
    shift,
)


@kernel
def tdrc(memory, x, reward, x_next, alpha, beta, gamma, lam, gamma_next, lam_next, rho, carried, regularization):
    second = memory.second  # w and e; h and e
    v, _, v_next = recall(memory, x, x_next)
    h_x, trace_x, _ = recall(second, x, x_next)
    delta, c, xx = reward + gamma_next * v_next - v, rho * gamma * lam, length_squared(x)
    p, q = rho * h_x, rho * rho * xx  # hᵀe, of the new e, and eᵀe, as in `gtd`
    if c > 0.0:
        p += c * carried[0]
        q += c * (c * carried[1] + 2.0 * rho * trace_x)
    for_h, kept = -beta * h_x, 1.0 - beta * regularization
    decay(memory, c)  # e ← ργλe + ρφ
    imprint(memory, x, rho, 0.0)
    learn(memory, alpha * delta)  # w ← w + αδe …
    share = gamma_next * (1.0 - lam_next)
    if share > 0.0:
        shift(memory, x_next, -alpha * share * p)  # … − αγ'(1 − λ')(hᵀe)φ'
    decay(second, c)
    scale(second, kept)  # h ← (1 − βκ)h …
    imprint(second, x, rho, for_h)
    learn(second, beta * delta)  # … + βδe − β(hᵀφ)φ
    carried[0] = kept * p + beta * delta * q + for_h * (c * trace_x + rho * xx)
    carried[1] = q
    return v, delta, v_next
