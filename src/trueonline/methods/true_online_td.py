"""True online TD(λ): the online λ-return algorithm, exactly, at every step (Algorithm 2 of van Seijen et al. 2016).

With a schedule as step-size the method is Algorithm 4 (`methods/true_online_td_varying.py`), exact under any sequence, and
`trace` is e⁺. With one integer as features, the state, it is the tabular method (Algorithm 6).

Departures from the printed algorithm: γ and λ may differ from state to state. The forward view is then the interim λ-return
with those γ and λ, and the equality still holds.

Examples
--------
>>> import trueonline as to
>>> learner = to.TrueOnlineTD(n_features=3, step_size=lambda t: 1.0 / (t + 1), trace_decay=0.9, discount=1.0)
>>> values = learner.run([0, 1, 2, 2], rewards=[1.0, 1.0, 1.0], discounts=[1.0, 1.0, 0.0])
>>> learner.weights.round(3)
array([2.71 , 0.95 , 0.333])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def true_online_td(memory, x, reward, x_next, v_old, alpha, gamma, lam, gamma_next):
    v, trace_x, v_next = recall(memory, x, x_next)  # V ← wᵀφ,  eᵀφ,  V' ← wᵀφ'
    delta = reward + gamma_next * v_next - v  # δ ← R + γV' − V
    decay(memory, gamma * lam)  # e ← γλe …
    dutch = 1.0 - alpha * gamma * lam * trace_x
    imprint(memory, x, dutch, -alpha * (v - v_old))  # … + φ − αγλ(eᵀφ)φ  and  w ← w − α(V − V_old)φ
    learn(memory, alpha * (delta + v - v_old))  # w ← w + α(δ + V − V_old)e
    return v, delta, v_next
