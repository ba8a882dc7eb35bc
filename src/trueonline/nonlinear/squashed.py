"""Forward TD(λ) with V = tanh(wᵀx), with the parameters of every learner, so that `verify` can compare it with its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.inputs import Schedule
from trueonline.nonlinear.delayed_return import DelayedLambdaReturn
from trueonline.nonlinear.forward_td import ForwardTD

HORIZON = 8  # K: short enough that updates wait for it within an episode, and that episodes end before it


def forward_td(n_features: int, step_size: float | Schedule, trace_decay: float, discount: float) -> ForwardTD:
    """Forward TD(λ) over features."""
    return ForwardTD(squashed, np.zeros(n_features), step_size, trace_decay, discount, HORIZON)


def delayed_lambda_return(
    n_features: int, step_size: float | Schedule, trace_decay: float, discount: float
) -> DelayedLambdaReturn:
    """Its definition over features."""
    return DelayedLambdaReturn(squashed, np.zeros(n_features), step_size, trace_decay, discount, HORIZON)


def squashed(weights: np.ndarray, x: Any) -> tuple[float, np.ndarray]:
    """V and ∇V at x, in any of the forms of features."""
    phi = inputs.dense(inputs.features(x, weights.size), weights.size)
    value = math.tanh(weights @ phi)
    return value, (1.0 - value**2) * phi
