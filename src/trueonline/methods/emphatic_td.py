"""Emphatic TD(λ) (Sutton, Mahmood and White 2016): a state is updated in proportion to its emphasis.

The emphasis M says how interesting a state is (I, `interest` of a transition), and how much the predictions of interesting
states before it bootstrap from it. After γ = 0 the follow-on trace F is I, and so is M, for every λ.

Examples
--------
>>> import trueonline as to
>>> learner = to.EmphaticTD(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
>>> learner.start(0)
>>> learner.update(1.0, None, interest=0.5)
1.0
>>> learner.weights
array([0.25])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.emphasis import emphasis
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def emphatic_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next, rho, rho_old, interest, carried):
    carried[0], m = emphasis(carried[0], gamma, lam, rho_old, interest)  # F and M
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, rho * gamma * lam)  # e ← ργλe …
    imprint(memory, x, rho * m, 0.0)  # … + ρMφ
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next
