"""Replacing traces for action values, with the traces of the other actions cleared (Singh and Sutton 1996).

The rule needs block features ψ(s, a): for every action b other than the one taken, e(s, b) ← 0. Singh and Sutton recommend this
variant. Departures: γ and λ may differ from state to state, and α from step to step.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.forms import Chosen
from trueonline.core.memory import decay, erase, learn, recall, replace


@kernel
def replace_clearing(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v  # δ ← R + γ wᵀψ' − wᵀψ
    decay(memory, gamma * lam)  # e ← γλe, but …
    for other in range(x.actions):
        if other != x.action:
            erase(memory, Chosen(x.features, x.actions, other, x.size))  # … 0 for other actions in this state …
    replace(memory, x)  # … and 1 where ψ[i] = 1
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next
