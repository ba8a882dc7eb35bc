"""Expected Sarsa(λ) (van Seijen and others 2009; with traces Sutton and Barto 2018, section 12.9), over features of actions.

The TD error has the mean value of the state entered under the target policy. The trace is cut by the ratio of each action, of which
the first is given.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def expected_sarsa(memory, x, reward, x_expected, alpha, gamma, lam, gamma_next, rho):
    v, _, v_next = recall(memory, x, x_expected)
    delta = reward + gamma_next * v_next - v  # δ ← R + γ'wᵀφ̄' − wᵀφ
    decay(memory, rho * gamma * lam)  # e ← ργλe …
    imprint(memory, x, 1.0, 0.0)  # … + φ
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next
