"""True online differential TD(λ): true online TD(λ) for the reward above average, with the average learned beside it.

The reward rate R̄ learns from the TD error, as Wan, Naik and Sutton (2021) have it: R̄ ← R̄ + ηαδ, with β = ηα. The weights learn
by true online TD(λ) (Algorithm 4 of van Seijen et al. 2016) from rewards R − R̄. They equal at every step the online λ-return
algorithm whose rewards are R_{t+1} − R̄_t, with the R̄_t of each time. The trace is e⁺, which carries the step-size within it.
Departures: Wan et al. have λ = 0 and γ = 1. Here γ, λ, α and β may differ from step to step. γ < 1 makes it reward centering.
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def true_online_differential_td(memory, x, reward, x_next, v_old, alpha, beta, gamma, lam, gamma_next, carried):
    v, trace_x, v_next = recall(memory, x, x_next)  # V ← wᵀφ,  (e⁺)ᵀφ,  V' ← wᵀφ'
    delta = reward - carried[0] + gamma_next * v_next - v  # δ ← R − R̄ + γV' − V
    decay(memory, gamma * lam)  # e⁺ ← γλe⁺ …
    dutch = alpha - alpha * gamma * lam * trace_x
    imprint(memory, x, dutch, -alpha * (v - v_old))  # … + αφ − αγλ((e⁺)ᵀφ)φ  and  w ← w − α(V − V_old)φ
    learn(memory, delta + v - v_old)  # w ← w + (δ + V − V_old)e⁺
    carried[0] += beta * delta  # R̄ ← R̄ + βδ
    return v, delta, v_next
