"""Provisional Q(λ), or PQ(λ) (after Sutton, Mahmood, Precup and van Hasselt 2014): provisional TD(λ) for action values.

Derived from the interim forward view, `forward.ProvisionalQView`, as provisional TD(λ) is.

φ belongs to a state and the action taken there. A transition also has φ̄', `x_expected`: the mean of the features of the state
entered over the actions of the target policy. With a greedy target policy these are the features of the best action. By default
φ̄' is the `x_next` of `update`. In the rule `x_next` is φ̄', not the features of the next action. V_old is wᵀφ̄ of the state
being left, with the current weights, as the previous step returned it. The action being updated is given, and so it has no
ratio.

Examples
--------
>>> import trueonline as to
>>> learner = to.ProvisionalQ(n_features=4, step_size=0.5, trace_decay=1.0, discount=1.0)
>>> learner.start(0)
>>> learner.update(1.0, 3, x_expected=([2, 3], [0.5, 0.5]), ratio=1.0)
1.0
>>> learner.weights
array([0.5, 0. , 0. , 0. ])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import learn, settle_all, value
from trueonline.core.memory.two_traces import (
    decay_both,
    imprint_both,
    learn_from_second,
    recall_both,
    second_learns,
)


@kernel
def provisional_q(memory, x, reward, x_expected, v_old, alpha, gamma, lam, gamma_next, rho):
    v, v_next = recall_both(memory, x, x_expected)
    delta = reward + gamma_next * v_next - v  # δ ← R + γ'wᵀφ̄' − wᵀφ
    m = v - v_old if gamma > 0.0 else 0.0  # m ← wᵀφ − wᵀφ̄; there is nothing before a beginning that it could matter to
    learn_from_second(memory, (rho - 1.0) * gamma * lam)  # w ← w + (ρ − 1)γλv …
    decay_both(memory, rho * gamma * lam)  # e ← ργλe …
    imprint_both(memory, x, alpha, -alpha * m, -alpha * m)  # … + αφ;  w and v: … − αmφ
    learn(memory, delta + m)  # w: … + (δ + m)e
    second_learns(memory, delta + m + (1.0 - gamma_next) * v_next)  # v ← ργλv + (δ + m + (1 − γ')V')e − αmφ
    settle_all(memory, x)
    v_bar = value(memory, x_expected)  # wᵀφ̄', with the weights of now
    return v, delta, v_bar
