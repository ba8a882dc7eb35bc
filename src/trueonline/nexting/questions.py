"""What is asked of a stream: general value functions (Sutton et al. 2011), with names, units and time scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trueonline.inputs import positive, unit
from trueonline.nexting.answers import METHODS


@dataclass(frozen=True)
class Question:
    """How much of a signal will there be, discounted? A prediction of Σ_k (∏ γ) C_{t+k+1}.

    `discount` is γ of every step, or the name of a signal whose value at each sample is γ (0 where what is asked about
    ends). The cumulant C is handed in with each sample, under the question's name.
    """

    name: str
    discount: float | str
    trace_decay: float = 0.9
    step_size: float = 0.1
    method: str = "true_online"
    unit: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a question must have a name, got {self.name!r}")
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method!r}; known are {', '.join(METHODS)}")
        checked: dict[str, float] = {
            "trace_decay": unit("trace_decay", self.trace_decay),
            "step_size": positive("step_size", self.step_size),
        }
        if not isinstance(self.discount, str):
            checked["discount"] = unit("discount", self.discount)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def shares(self) -> tuple[str, float, float | str, float]:
        """What questions must have in common to share a trace."""
        return self.method, self.step_size, self.discount, self.trace_decay


def discount_of(horizon: float, rate: float) -> float:
    """γ for a time scale in seconds at a sampling rate in Hz: the mean horizon 1/(1 − γ) is that many samples.

    >>> discount_of(horizon=2.0, rate=40.0)
    0.9875
    """
    samples = positive("horizon", horizon) * positive("rate", rate)
    if samples < 1.0:
        raise ValueError(f"a horizon must be at least one sample, 1/rate = {1.0 / rate:g} s, got {horizon:g} s")
    return 1.0 - 1.0 / samples


def horizon_of(discount: float, rate: float) -> float:
    """The time scale in seconds of a discount at a sampling rate in Hz: the mean horizon of 1/(1 − γ) samples.

    >>> horizon_of(discount=0.75, rate=40.0)
    0.1
    """
    left = 1.0 - unit("discount", discount)
    return 1.0 / (left * positive("rate", rate)) if left > 0.0 else math.inf
