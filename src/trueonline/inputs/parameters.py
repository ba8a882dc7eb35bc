"""The parameters of a learner, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trueonline.inputs.kinds import Schedule
from trueonline.inputs.numbers import along, at, count, first_bad, positive, unit


@dataclass(frozen=True, eq=False)
class Parameters:
    """The checked parameters of every learner."""

    n_features: int
    step_size: float | Schedule
    trace_decay: float
    discount: float
    initial_weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "n_features": count("n_features", self.n_features),
            "trace_decay": unit("trace_decay", self.trace_decay),
            "discount": unit("discount", self.discount),
        }
        if not callable(self.step_size):
            checked["step_size"] = positive("step_size", self.step_size)
        if self.initial_weights is not None:
            given = np.asarray(self.initial_weights)
            if given.dtype.kind not in "fiu" or given.shape != (self.n_features,) or not np.isfinite(given).all():
                raise ValueError(
                    f"initial_weights must be {self.n_features} finite numbers, "
                    f"got {given.dtype} of shape {given.shape}{'' if given.dtype.kind != 'f' else first_bad(given)}"
                )
            checked["initial_weights"] = given.astype(np.float64)
            checked["initial_weights"].flags.writeable = False
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def alpha(self, t: int) -> float:
        """α_t."""
        return at("step_size", self.step_size, t, positive)

    def alphas(self, t: int, learned: np.ndarray) -> np.ndarray:
        """α of each coming transition that is learned from, or a single number for all of them."""
        return along("step_size", self.step_size, t, learned, positive)


class Parametrised:
    """A learner or an agent with parameters that can be read."""

    _parameters: Parameters

    @property
    def step_size(self) -> float | Schedule:
        """The step-size α, or its schedule."""
        return self._parameters.step_size

    @property
    def trace_decay(self) -> float:
        """The trace decay λ, the default of every transition."""
        return self._parameters.trace_decay

    @property
    def discount(self) -> float:
        """The discount γ, the default of every transition."""
        return self._parameters.discount
