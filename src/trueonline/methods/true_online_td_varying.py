"""True online TD(λ) with a time-dependent step-size (Algorithm 4 of van Seijen et al. 2016).

Equal to the online λ-return algorithm whose k-th update uses α_k, under any sequence α. The trace is e⁺, which carries
the step-size within it; for a constant step-size e⁺ = αe and the method is `true_online_td`.
Departures from the printed algorithm: γ and λ may differ from state to state.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def true_online_td_varying(memory, x, reward, x_next, v_old, alpha, gamma, lam, gamma_next):
    v, trace_x, v_next = recall(memory, x, x_next)  # V ← wᵀφ,  (e⁺)ᵀφ,  V' ← wᵀφ'
    delta_ = reward + gamma_next * v_next - v_old  # δ' ← R + γV' − V_old
    decay(memory, gamma * lam)  # e⁺ ← γλe⁺ …
    dutch = alpha - alpha * gamma * lam * trace_x
    imprint(memory, x, dutch, -alpha * (v - v_old))  # … + αφ − αγλ((e⁺)ᵀφ)φ  and  w ← w − α(V − V_old)φ
    learn(memory, delta_)  # w ← w + δ'e⁺
    return v, reward + gamma_next * v_next - v, v_next
