"""Replace TD(λ): TD(λ) with replacing traces, for binary features (section 2.3 of van Seijen et al. 2016).

A feature that is active again has its trace set to 1 instead of raised by 1, which guards against divergence and loses
some of the multi-step character: with one feature that is always active, it is TD(0) at every λ.
Departures from the printed equations: γ and λ may differ from state to state, and α from step to step.
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
