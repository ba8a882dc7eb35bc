"""V-trace(λ) (Espeholt and others 2018; with traces Ghiassian and Sutton 2021): off-policy TD(λ) whose ratios are clipped.

Examples
--------
>>> import trueonline as to
>>> learner = to.VTrace(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
>>> learner.start(0)
>>> learner.update(1.0, None, ratio=3.0)
1.0
>>> learner.weights
array([0.5])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def v_trace(memory, x, reward, x_next, alpha, gamma, lam, gamma_next, rho, largest_ratio):
    clipped = rho if rho < largest_ratio else largest_ratio
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, clipped * gamma * lam)  # e ← ρ̄γλe …
    imprint(memory, x, clipped, 0.0)  # … + ρ̄φ, with ρ̄ = min(ρ, largest)
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next
