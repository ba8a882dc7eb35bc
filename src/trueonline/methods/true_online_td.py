"""True online TD(λ): equal to the online λ-return algorithm at every step (Algorithm 2 of van Seijen et al. 2016).

Departures from the printed algorithm: γ and λ may differ from state to state (the forward view is then the interim
λ-return with those γ and λ, and the equality still holds). α is constant; see `true_online_td_varying` for α_t.
The tabular method (Algorithm 6) is this one with a single active feature, the state.
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
