"""Accumulate TD(λ): the classic method (Sutton 1988; Algorithm 1 of van Seijen et al. 2016).

It approximates the online λ-return algorithm for small step-sizes (Theorem 1) and can diverge for large ones.
Departures from the printed algorithm: γ and λ may differ from state to state, and α from step to step.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def accumulate_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v  # δ ← R + γ wᵀφ' − wᵀφ
    decay(memory, gamma * lam)  # e ← γλe …
    imprint(memory, x, 1.0, 0.0)  # … + φ
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next
