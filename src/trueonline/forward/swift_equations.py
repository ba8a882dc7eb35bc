"""SwiftTD by its equations (Javed, Sharifnassab and Sutton 2024): eager, with dense vectors."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from trueonline import inputs
from trueonline.forward.base import Definition
from trueonline.learners.docstrings import LEARNER, with_learned_step_sizes


class SwiftTDEquations(Definition):
    """SwiftTD, one equation after the other, with α_i for e^{β_i}.

    When S is left: z, p and z̄ decay by γλ of S, and with b = zᵀφ and τ = Σ_i α_i φ_i²

        V^δ = δwᵀφ;   z^δ = min(1, η/τ) αφ;   z ← z + z^δ(1 − b);   p ← p + h_old φ;   z̄ ← z̄ + z^δ(1 − b − z̄φ)
        h_temp = h − h_old φ(z − z^δ) − h z^δ φ
        where τ > η and φ_i ≠ 0:   h_temp, h, h_old, z̄ ← 0;   α ← α decay^{φ²}

    Then, with δ = R + γ'V' − V_old

        δw = δz − z^δ V^δ;   w ← w + δw;   α ← α e^{(θ/α)(δ − V^δ)p}, within [η_min, η] if the feature was ever active
        h_old ← h;   h ← h_temp + δz̄ − z^δ V^δ

    At the beginning of an episode, z, p, z̄ and δw are 0, and V_old is V.

    Examples
    --------
    >>> learner = SwiftTDEquations(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0, bound=0.5)
    >>> learner.start(0)
    >>> _ = [learner.update(0.0, 0), learner.update(1.0, None)]
    >>> learner.weights
    array([0.75])
    """

    _shared_parameters = with_learned_step_sizes(LEARNER)
    options = MappingProxyType(
        {"bound": inputs.positive, "decay": inputs.unit, "meta_step_size": inputs.ratio, "min_step_size": inputs.positive}
    )
    bound: float = 0.1
    decay: float = 0.999
    meta_step_size: float = 0.001
    min_step_size: float = 1e-10

    def reset(self) -> None:
        nothing = np.zeros(self.n_features)
        self.step_sizes = nothing + self._parameters.alpha(0)
        self.h = self.h_old = nothing
        self.met = np.zeros(self.n_features, bool)  # whether a feature was ever active
        Definition.reset(self)

    def _forget(self) -> None:
        Definition._forget(self)
        self.z = self.p = self.z_bar = self.delta_w = np.zeros(self.n_features)

    def _weights_now(self) -> np.ndarray:
        phi, alpha, eta = self.x[-1], self.step_sizes, self.bound
        active = phi != 0.0
        self.met = self.met | active
        v_old = self.next_values[-2] if len(self.x) > 1 else float(self._weights @ phi)
        z, p, z_bar = (self._decays()[-1] * trace for trace in (self.z, self.p, self.z_bar))

        b, tau, v_delta = z @ phi, alpha @ phi**2, self.delta_w @ phi
        z_delta = min(1.0, eta / tau if tau > 0.0 else 1.0) * alpha * phi
        z = z + z_delta * (1.0 - b)
        p = p + self.h_old * phi
        z_bar = z_bar + z_delta * (1.0 - b - z_bar * phi)
        h, h_temp = self.h, self.h - self.h_old * phi * (z - z_delta) - self.h * z_delta * phi
        if tau > eta:
            h_temp, h, z_bar = (np.where(active, 0.0, each) for each in (h_temp, h, z_bar))
            alpha = np.maximum(alpha * self.decay ** (phi**2), 1e-300)

        delta = self.rewards[-1] + self.discounts[-1] * self.next_values[-1] - v_old
        self.delta_w = delta * z - z_delta * v_delta
        alpha = alpha * np.exp(np.clip(self.meta_step_size / alpha * (delta - v_delta) * p, -700.0, 700.0))
        self.step_sizes = np.where(self.met, np.clip(alpha, self.min_step_size, eta), alpha)
        self.h_old, self.h = h, h_temp + delta * z_bar - z_delta * v_delta
        self.z, self.p, self.z_bar = z, p, z_bar
        return self._weights + self.delta_w

    def _trace(self) -> np.ndarray:
        return self.z

    def _dump(self) -> dict[str, np.ndarray]:
        raise NotImplementedError("SwiftTDEquations cannot be saved, only pickled: save the SwiftTD that it defines")
