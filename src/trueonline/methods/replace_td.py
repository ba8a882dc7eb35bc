"""TD(λ) with replacing traces, for binary features (section 2.3 of van Seijen et al. 2016).

A feature that is active again has its trace set to 1 instead of raised by 1. This guards against divergence, and loses some of
the multi-step character: with one feature that is always active, the method is TD(0) at every λ.

Departures from the printed equations: γ and λ may differ from state to state, and α from step to step.

Examples
--------
>>> import trueonline as to
>>> learner = to.ReplaceTD(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
>>> learner.run([0, 0, 0], rewards=[0.0, 1.0], discounts=[1.0, 0.0])
array([0., 0.])
>>> learner.weights, learner.trace
(array([0.5]), array([1.]))
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, learn, recall, replace


@kernel
def replace_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v  # δ ← R + γ wᵀφ' − wᵀφ
    decay(memory, gamma * lam)  # e[i] ← γλe[i] where φ[i] = 0 …
    replace(memory, x)  # … and 1 where φ[i] = 1
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next
