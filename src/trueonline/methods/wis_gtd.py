"""WIS-GTD(λ) (Mahmood and Sutton 2015): GTD(λ) with a step-size for each feature, 1 over its usage.

Usage is that of `core.memory.usage`. The current step-sizes multiply the whole trace, and change at every traced feature if ρ ≠ 1.
So no change can be postponed, and a step passes over all traced features, not only over the active ones. `alpha` is η, the
step-size of learners, by which usage is forgotten.

Examples
--------
>>> import trueonline as to
>>> learner = to.WISGTD(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0, second_step_size=0.5)
>>> learner.start(0)
>>> learner.update(1.0, None, ratio=3.0)
1.0
>>> learner.usage, learner.weights   # 3 of a usage of (1 − 0.5)·2 + 3
(array([4.]), array([0.75]))
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, products, recall, settle
from trueonline.core.memory.usage import learn_by_usage, shift_by_usage, use


@kernel
def wis_gtd(memory, x, reward, x_next, alpha, beta, gamma, lam, gamma_next, lam_next, rho):
    second = memory.second  # w and e; h and e
    use(memory.usage, x, alpha, rho, gamma * lam)
    v, _, v_next = recall(memory, x, x_next)
    h_x, _, _ = recall(second, x, x_next)
    delta, c = reward + gamma_next * v_next - v, rho * gamma * lam
    decay(memory, c)  # e ← ργλe + ρφ
    imprint(memory, x, rho, 0.0)
    settle(memory, x)
    h_e, _ = products(second, memory)
    learn_by_usage(memory, x, delta)  # w ← w + A(δe …
    shift_by_usage(memory, x_next, -gamma_next * (1.0 - lam_next) * h_e)  # … − γ'(1 − λ')(hᵀe)φ')
    decay(second, c)
    imprint(second, x, rho, -beta * h_x)
    learn(second, beta * delta)  # h ← h + βδe − β(hᵀφ)φ
    settle(second, x)
    return v, delta, v_next
