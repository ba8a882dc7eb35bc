"""TD(λ) with accumulating traces (Sutton 1988; Algorithm 1 of van Seijen et al. 2016).

The method approximates the online λ-return algorithm as α → 0 (Theorem 1). It can diverge for large α and λ. The property
`diverged` of a learner says whether it has.

Departures from the printed algorithm: γ and λ may differ from state to state, and α from step to step.

Examples
--------
>>> import trueonline as to
>>> learner = to.AccumulateTD(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0)
>>> learner.start(0)
>>> learner.update(0.0, 1), learner.update(1.0, None)
(0.0, 1.0)
>>> learner.weights
array([0.5, 0.5])
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
