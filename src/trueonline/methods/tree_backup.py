"""Tree Backup(λ) for prediction (Precup, Sutton and Singh 2000; Ghiassian and Sutton 2021): the trace carries no ratios.

The trace is cut by the probability of each action under the target policy, π(A|S). So it does not grow with large ratios. With
π = 1 and ρ = 1 throughout the method is TD(λ) with accumulating traces.

Examples
--------
>>> import trueonline as to
>>> learner = to.TreeBackup(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0)
>>> learner.start(0)
>>> _ = learner.update(0.0, 1, ratio=2.0, probability=0.8), learner.update(1.0, None, ratio=0.5)
>>> learner.weights   # ½ · 0.5 · 0.8, and ½ · 0.5
array([0.2 , 0.25])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def tree_backup(memory, x, reward, x_next, alpha, gamma, lam, gamma_next, rho, pi, carried):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam * carried[0])  # e ← γλπ_old e …
    imprint(memory, x, 1.0, 0.0)  # … + φ
    learn(memory, alpha * rho * delta)  # w ← w + αρδe
    carried[0] = pi
    return v, delta, v_next
