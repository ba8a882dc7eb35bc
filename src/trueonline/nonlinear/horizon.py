"""The horizon K of forward TD(λ): how many transitions a state waits for its update."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from trueonline import inputs


def horizon_within(tolerance: float, discount: float, trace_decay: float) -> int:
    """The smallest horizon K with (γλ)^K ≤ η: K = ⌈log η / log γλ⌉, and at least 1.

    (γλ)^K is the weight in the λ-return of the first TD error that a target of horizon K leaves out.

    Parameters
    ----------
    tolerance : float
        η, a number in (0, 1).
    discount : float
        γ, a number in [0, 1].
    trace_decay : float
        λ, a number in [0, 1].

    Returns
    -------
    int
        K.

    Raises
    ------
    ValueError
        If an argument is out of range, or if γλ = 1. Then no horizon is within a tolerance.

    Examples
    --------
    >>> horizon_within(0.01, discount=0.99, trace_decay=0.9), horizon_within(0.01, discount=1.0, trace_decay=0.0)
    (40, 1)
    """
    tolerance = inputs.number("tolerance", tolerance, "a number in (0, 1)", lambda v: 0.0 < v < 1.0)
    decay = inputs.unit("discount", discount) * inputs.unit("trace_decay", trace_decay)
    if decay == 1.0:
        raise ValueError(
            f"discount · trace_decay = 1 leaves no horizon within a tolerance of {tolerance:g}: give the horizon, or "
            "horizon=math.inf to wait for the end of every episode"
        )
    if decay == 0.0:
        return 1
    return max(1, math.ceil(math.log(tolerance) / math.log(decay) - 1e-9))  # 2, not 3, for 0.1² = 0.01


def checked_horizon(horizon: Any) -> float:
    """A horizon that a user gave; ValueError unless it is a whole number ≥ 1 or infinite."""
    whole = isinstance(horizon, Integral) and not isinstance(horizon, bool)
    if not (whole and horizon >= 1) and not (isinstance(horizon, float) and horizon == math.inf):
        raise ValueError(f"horizon must be a whole number ≥ 1, or math.inf, got {horizon!r}")
    return int(horizon) if whole else math.inf
