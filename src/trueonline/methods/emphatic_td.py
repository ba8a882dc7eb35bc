"""Emphatic TD(λ) (Sutton, Mahmood and White 2016).

A state is updated in proportion to its emphasis M: how interesting it is (I), and how much the predictions of interesting states
before it bootstrap from it. After γ = 0 the follow-on trace F is I, and so is M, whatever λ is.
"""

from trueonline.core.kernels import kernel
from trueonline.core.memory import CARRIED, INTEREST, RATIO, RATIO_OLD, decay, imprint, learn, recall


@kernel
def emphatic_td(memory, v_old, x, reward, x_next, alpha, gamma, gamma_next, lam):
    rho = memory.head[RATIO]
    emphasis = emphasise(memory, gamma, lam)
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, rho * gamma * lam)  # e ← ργλe …
    imprint(memory, x, rho * emphasis, 0.0)  # … + ρMφ
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next


@kernel
def emphasise(memory, gamma, lam):
    """M of this step; F is carried along."""
    memory.head[CARRIED], emphasis = emphases(memory.head, gamma, lam)
    return emphasis


@kernel
def emphases(head, gamma, lam):
    """F and M of this step."""
    if gamma == 0.0:
        return head[INTEREST], head[INTEREST]
    follow_on = head[RATIO_OLD] * gamma * head[CARRIED] + head[INTEREST]  # F ← ρ_{t−1}γF + I
    return follow_on, lam * head[INTEREST] + (1.0 - lam) * follow_on  # M ← λI + (1 − λ)F
