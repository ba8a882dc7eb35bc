"""TD*(λ) (after Schapire and Warmuth 1996): TD(λ) whose errors consist of the predictions that are made.

The error of a step has V(S') of the weights *after* the step, w' = w + αδe, because this is the value that the method predicts
in S'. The equation δ = R + γ'(w + αδe)ᵀφ' − V has one unknown, δ, and so no system of equations has to be solved. `update`
returns the TD error of the weights before the step, as every learner does.

Departures: γ, λ and α may differ from step to step. The article's text was not available (docs/methods/td_star.md).

Examples
--------
>>> import trueonline as to
>>> learner = to.TDStar(n_features=1, step_size=0.5, trace_decay=0.0, discount=0.5)
>>> learner.start(0)
>>> learner.update(3.0, 0)
3.0
>>> learner.weights   # w' = 0.5 (3 + 0.5 w')
array([2.])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall, settle, trace_along


@kernel
def td_star(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)  # V ← wᵀφ and V' ← wᵀφ'
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)  # e ← γλe + φ
    settle(memory, x)
    feedback = alpha * gamma_next * trace_along(memory, x_next)  # how much of δ comes back into δ by way of V'
    learn(memory, alpha * delta / (1.0 - feedback))  # w ← w + αδ*e, with δ* = δ / (1 − αγ'eᵀφ')
    return v, delta, v_next
