"""SwiftTD (Javed, Sharifnassab and Sutton 2024): true online TD(λ) with a step-size for each feature, learned by its meta-gradient.

Step-sizes follow their meta-gradient, a bound η limits the rate of learning τ = Σ_i α_i φ_i², and the step-sizes of the active
features decay if τ exceeds η. α_i stands for e^{β_i}, and h_i for the derivative of w_i by β_i. p and z̄ are its traces.

Departures from the printed algorithm: γ and λ may differ from state to state. A step begins with φ where the printed step ends with
φ', so that the trace decays by γλ of the state being left. The beginning of an episode is γ = 0: z, p and z̄ are cleared, and V^δ
is 0. w, h and α remain, because h belongs to w.
"""

from typing import Any, NamedTuple

from trueonline.core.compiling.kernels import contracted, kernel
from trueonline.core.exponential import exp
from trueonline.core.memory import decay
from trueonline.core.memory.meta_gradient import BOUND, LEAST, LOG_DECAY, META, enter, for_each, value_ahead

SMALLEST = 1e-300


class Step(NamedTuple):
    """The numbers of a step that all features share."""

    delta: Any  # δ = R + γ'V' − V_old
    v_delta: Any  # V^δ = δwᵀφ, with the δw of the step before
    b: Any  # zᵀφ
    scale: Any  # min(1, η/τ)
    meta: Any  # θ(δ − V^δ)
    bound: Any  # η
    least: Any  # η_min
    log_decay: Any  # ln of the decay


@contracted
def feature(phi, w, z, p, z_bar, h, h_old, alpha, step, exceeds):
    """One feature with trace. z, p and z̄ have decayed by γλ."""
    z_delta = step.scale * alpha * phi
    z += z_delta * (1.0 - step.b)
    p += h_old * phi
    z_bar += z_delta * (1.0 - step.b - z_bar * phi)
    h_temp = h - h_old * phi * (z - z_delta) - h * z_delta * phi
    if exceeds:  # τ > η
        active = phi != 0.0
        h_temp, h, z_bar = 0.0 if active else h_temp, 0.0 if active else h, 0.0 if active else z_bar
        alpha *= exp(step.log_decay * phi * phi)
        alpha = SMALLEST if alpha < SMALLEST else alpha  # for the division below, where φ is very large
    delta_w = step.delta * z - z_delta * step.v_delta
    w += delta_w
    alpha *= exp(step.meta * p / alpha)
    alpha = step.bound if alpha > step.bound else alpha
    alpha = step.least if alpha < step.least else alpha
    h_old, h = h, h_temp + step.delta * z_bar - z_delta * step.v_delta
    return w, z, p, z_bar, h, h_old, alpha, delta_w


for_each_feature = for_each(feature)


@kernel
def swift_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    settings = memory.settings
    decay(memory, gamma * lam)  # z ← γλz, p ← γλp, z̄ ← γλz̄
    v, b, tau, v_delta = enter(memory, x, alpha)  # V ← wᵀφ,  b ← zᵀφ,  τ ← Σ_i α_i φ_i²,  V^δ ← δwᵀφ
    v_next = value_ahead(memory, x_next)  # V' ← wᵀφ'
    error = reward + gamma_next * v_next - v  # δ − V^δ
    if gamma == 0.0:  # at a beginning nothing has changed V
        v_delta = 0.0
    exceeds = tau > settings[BOUND]
    scale = settings[BOUND] / tau if exceeds else 1.0
    meta = settings[META] * error
    step = Step(error + v_delta, v_delta, b, scale, meta, settings[BOUND], settings[LEAST], settings[LOG_DECAY])
    for_each_feature(memory, step, exceeds)
    return v, error, v_next
