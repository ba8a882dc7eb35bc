"""The parameters of a learner, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trueonline.inputs.kinds import Schedule
from trueonline.inputs.numbers import as_array, at, count, first_bad, positive, read_only, unit


@dataclass(frozen=True, eq=False)
class Parameters:
    """The checked parameters of every learner."""

    n_features: int
    step_size: float | Schedule
    trace_decay: float
    discount: float
    initial_weights: np.ndarray | None = None
    per_feature: bool = False  # whether the step-size may be a vector, with an entry for each feature

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "n_features": count("n_features", self.n_features),
            "trace_decay": unit("trace_decay", self.trace_decay),
            "discount": unit("discount", self.discount),
        }
        if not callable(self.step_size):
            checked["step_size"] = self._step_size("step_size", self.step_size)
        if self.initial_weights is not None:
            given = as_array("initial_weights", self.initial_weights)
            if given.dtype.kind not in "fiu" or given.shape != (self.n_features,) or not np.isfinite(given).all():
                raise ValueError(
                    f"initial_weights must be {self.n_features} finite numbers, "
                    f"got {given.dtype} of shape {given.shape}{'' if given.dtype.kind != 'f' else first_bad(given)}"
                )
            checked["initial_weights"] = read_only(given.astype(np.float64))
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _step_size(self, name: str, given: Any) -> Any:
        """A step-size, or those of all features; ValueError unless all are positive."""
        if not self.per_feature or np.ndim(given) == 0:
            return positive(name, given)
        array = as_array(name, given)
        if array.dtype.kind not in "fiu" or array.shape != (self.n_features,):
            raise ValueError(
                f"{name} must be a number, or {self.n_features} numbers, one for each feature, got {array.dtype} of shape "
                f"{array.shape}"
            )
        bad = np.flatnonzero(~((array > 0) & (array < np.inf)))
        if bad.size:
            positive(f"{name}[{bad[0]}]", array[bad[0]].item())
        return read_only(array.astype(np.float64))

    def alpha(self, t: int) -> Any:
        """α_t, or α_{t,i} of all features if they may differ."""
        if not self.per_feature:
            return at("step_size", self.step_size, t, positive)
        given = self._step_size(f"step_size({t})", self.step_size(t)) if callable(self.step_size) else self.step_size
        return np.broadcast_to(given, self.n_features)

    def check_alphas(self, t: int, learned: np.ndarray) -> None:
        """ValueError for a schedule that is bad at one of the coming transitions that are learned from."""
        for i in range(int(learned.sum()) if callable(self.step_size) else 0):
            self.alpha(t + i)


class Parametrised:
    """A learner or an agent with parameters that can be read."""

    _parameters: Parameters
    weights: Any

    @property
    def diverged(self) -> bool:
        """Whether a weight is no longer a finite number."""
        return not bool(np.isfinite(self.weights).all())

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
