"""exp as a branch-free kernel, which vectorises: a call of the C library's exp would keep a loop from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from trueonline.core.compiling.kernels import contracted, primitive

MOST = 700.0  # e^700 is below the largest number, and e^−700 above the smallest
SHIFT = 1.5 * 2.0**52  # a number this large has no binary digits behind the point: adding it rounds to an integer
LOG2_E = 1.4426950408889634
LN_2, LN_2_REST = 0.693147180369123816490, 1.90821492927058770002e-10  # the first has zeros at its end: k·LN_2 is exact


@primitive
def bits(context: Any, number: Any) -> Any:
    """The binary digits of a number, as an integer."""
    return types.int64(types.float64), lambda context, builder, signature, arguments: builder.bitcast(
        arguments[0], context.get_value_type(types.int64)
    )


@primitive
def from_bits(context: Any, digits: Any) -> Any:
    """The number with these binary digits."""
    return types.float64(types.int64), lambda context, builder, signature, arguments: builder.bitcast(
        arguments[0], context.get_value_type(types.float64)
    )


@contracted
def exp(t):
    """e^t within two units of the last digit; |t| counts as at most MOST, and NaN stays.

    With k the integer nearest to t / ln 2 and r = t − k ln 2, it is 2^k e^r: a power series, and k added to the exponent.
    """
    t = MOST if t > MOST else t
    t = -MOST if t < -MOST else t
    shifted = t * LOG2_E + SHIFT
    k = shifted - SHIFT
    r = (t - k * LN_2) - k * LN_2_REST
    e = 1.0 / 6227020800.0  # Σ_{n ≤ 13} r^n / n!, from its end: |r| ≤ 0.35, so that the rest is below 1e-17
    e = e * r + 1.0 / 479001600.0
    e = e * r + 1.0 / 39916800.0
    e = e * r + 1.0 / 3628800.0
    e = e * r + 1.0 / 362880.0
    e = e * r + 1.0 / 40320.0
    e = e * r + 1.0 / 5040.0
    e = e * r + 1.0 / 720.0
    e = e * r + 1.0 / 120.0
    e = e * r + 1.0 / 24.0
    e = e * r + 1.0 / 6.0
    e = e * r + 0.5
    e = e * r + 1.0
    e = e * r + 1.0
    return from_bits(bits(e) + (bits(shifted) << np.int64(52)))
