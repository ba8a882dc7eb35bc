"""Questions about a stream: general value functions (Sutton et al. 2011), with names, units and time scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trueonline.inputs import positive, unit
from trueonline.streams.horde.horde_layout import TRACE_CODES


@dataclass(frozen=True)
class Question:
    """How much of a signal will there be, discounted? The answer predicts Σ_k (∏ γ) C_{t+k+1}.

    The cumulant C comes with each sample, in the order of the horde's questions.

    Parameters
    ----------
    name : str
        The name of the question.
    discount : float or str
        γ of every step, or the name of a signal whose value at each sample is γ. γ = 0 ends the sum.
    trace_decay : float
        λ, in [0, 1].
    step_size : float
        α, larger than 0.
    method : str
        "true_online", "accumulate" or "replace".
    unit : str
        The unit of the signal, for labels.

    Raises
    ------
    ValueError
        If the name is empty, the method is unknown, or a number is out of range.

    Examples
    --------
    >>> Question("force", discount=discount_of(horizon=2.0, rate=40.0), unit="N").discount
    0.9875
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
        if self.method not in TRACE_CODES:
            raise ValueError(f"unknown method {self.method!r}; known are {', '.join(TRACE_CODES)}")
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
        """The parts that questions must have in common to share a trace: method, step-size, discount and trace decay."""
        return self.method, self.step_size, self.discount, self.trace_decay


def discount_of(horizon: float, rate: float) -> float:
    """Compute γ for a time scale: the mean horizon 1/(1 − γ) is that many samples.

    Parameters
    ----------
    horizon : float
        The time scale in seconds, at least one sample.
    rate : float
        The sampling rate in Hz.

    Returns
    -------
    float
        γ = 1 − 1/(horizon · rate).

    Raises
    ------
    ValueError
        If the horizon is shorter than one sample.

    Examples
    --------
    >>> discount_of(horizon=2.0, rate=40.0)
    0.9875
    """
    samples = positive("horizon", horizon) * positive("rate", rate)
    if samples < 1.0:
        raise ValueError(f"a horizon must be at least one sample, 1/rate = {1.0 / rate:g} s, got {horizon:g} s")
    return 1.0 - 1.0 / samples


def horizon_of(discount: float, rate: float) -> float:
    """Compute the time scale of a discount: the mean horizon of 1/(1 − γ) samples.

    Parameters
    ----------
    discount : float
        γ, in [0, 1].
    rate : float
        The sampling rate in Hz.

    Returns
    -------
    float
        The time scale in seconds. It is infinite for γ = 1.

    Examples
    --------
    >>> horizon_of(discount=0.75, rate=40.0)
    0.1
    """
    left = 1.0 - unit("discount", discount)
    return 1.0 / (left * positive("rate", rate)) if left > 0.0 else math.inf
