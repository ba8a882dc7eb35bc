"""Emphatic TD(λ, β) (Hallak, Tamar, Munos and Mannor 2016): the follow-on trace decays by β instead of γ.

A smaller β has less variance and more bias. β = γ is emphatic TD(λ).

Examples
--------
>>> import trueonline as to
>>> learner = to.EmphaticTDBeta(n_features=1, step_size=0.5, trace_decay=0.0, discount=1.0, follow_on_decay=0.5)
>>> learner.start(0)
>>> learner.update(0.0, 0), learner.update(1.0, None)
(0.0, 1.0)
>>> learner.weights   # F = 0.5 · 1 + 1
array([0.75])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def emphatic_td_beta(
    memory, x, reward, x_next, alpha, gamma, lam, gamma_next, rho, rho_old, interest, carried, follow_on_decay
):
    f = m = interest
    if gamma != 0.0:  # after γ = 0 an episode begins
        f = rho_old * follow_on_decay * carried[0] + interest  # F ← ρ_{t−1}βF + I
        m = lam * interest + (1.0 - lam) * f  # M ← λI + (1 − λ)F
    carried[0] = f
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, rho * gamma * lam)  # e ← ργλe …
    imprint(memory, x, rho * m, 0.0)  # … + ρMφ
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next
