"""Provisional TD(λ), or PTD(λ) (after Sutton, Mahmood, Precup and van Hasselt 2014): it undoes updates where policies differ.

Updates of earlier states are provisional until the actions that follow are known. If ρ = 0 they are undone, and if ρ > 1 they
count for more. The method equals its interim forward view at every step. The trace carries the step-size within it. The rule is
derived from the interim forward view, `forward.ProvisionalTDView`, without the text of the paper. γ, λ and α may differ from
step to step. The provisional weights u = γλv are kept as v, which decays as e does. With ρ = 1 throughout and a constant α the
method is TD(λ) with accumulating traces.

Examples
--------
>>> import trueonline as to
>>> learner = to.ProvisionalTD(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0, initial_weights=[0.0, 8.0])
>>> learner.start(0)
>>> learner.update(0.0, 1)
8.0
>>> learner.weights, learner.provisional_weights
(array([4., 8.]), array([4., 0.]))
>>> _ = learner.update(0.0, None, ratio=0.0)   # the target policy would not have done this
>>> learner.weights
array([0., 8.])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import learn
from trueonline.core.memory.two_traces import decay_both, imprint_both, learn_from_second, recall_both, second_learns


@kernel
def provisional_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next, rho):
    v, v_next = recall_both(memory, x, x_next)
    delta = reward + gamma_next * v_next - v  # δ ← R + γ'wᵀφ' − wᵀφ
    learn_from_second(memory, (rho - 1.0) * gamma * lam)  # w ← w + (ρ − 1)γλv …
    decay_both(memory, rho * gamma * lam)  # e ← ργλe …
    imprint_both(memory, x, alpha * rho, 0.0, 0.0)  # … + αρφ
    learn(memory, delta)  # … + δe
    second_learns(memory, delta + (1.0 - gamma_next) * v_next)  # v ← ργλv + (δ + (1 − γ')V')e
    return v, delta, v_next
