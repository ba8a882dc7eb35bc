"""V-trace(λ) (Espeholt and others 2018): off-policy TD(λ) whose ratios are clipped, in updates and in the trace.

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
def v_trace(memory, x, reward, x_next, alpha, gamma, lam, gamma_next, rho, rho_old, largest_ratio, largest_trace_ratio):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam * min(rho_old, largest_trace_ratio))  # e ← γλ min(ρ_old, c̄)e …
    imprint(memory, x, 1.0, 0.0)  # … + φ
    learn(memory, alpha * min(rho, largest_ratio) * delta)  # w ← w + α min(ρ, ρ̄)δe
    return v, delta, v_next
