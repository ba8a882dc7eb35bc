"""WIS-TO-GTD(λ) (Mahmood and Sutton 2015): true online GTD(λ) with a step-size for each feature, 1 over its usage.

α is a diagonal matrix, A = diag(1 / U), in the forward view and here (`core.memory.usage`). The method equals its forward view at
every step. The memory of w writes Aφ in place of φ. The second weights keep their own step-size β. `alpha` is η, the step-size
of learners, by which usage is forgotten.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import settle
from trueonline.core.memory.usage import use
from trueonline.methods.true_online_gtd import true_online_gtd


@kernel
def wis_true_online_gtd(memory, x, reward, x_next, v_old, alpha, beta, gamma, lam, gamma_next, lam_next, rho, carried):
    use(memory.usage, x, alpha, rho, gamma * lam)
    v, delta, v_next = true_online_gtd(
        memory, x, reward, x_next, v_old, 1.0, beta, gamma, lam, gamma_next, lam_next, rho, carried
    )
    settle(memory, x)  # an imprint takes the step-sizes of now
    return v, delta, v_next
