"""Tree Backup(λ) (Precup, Sutton and Singh 2000; Sutton and Barto 2018, section 12.10), over features of actions.

It is Expected Sarsa(λ), with the target policy's probability of each action in the place of its ratio.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def tree_backup_q(memory, x, reward, x_expected, alpha, gamma, lam, gamma_next, pi):
    v, _, v_next = recall(memory, x, x_expected)
    delta = reward + gamma_next * v_next - v  # δ ← R + γ'wᵀφ̄' − wᵀφ
    decay(memory, pi * gamma * lam)  # e ← πγλe …
    imprint(memory, x, 1.0, 0.0)  # … + φ
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next
