"""exp for loops that are vectorised: as exact as that of the C library."""

import math

import numpy as np
import pytest

from trueonline.core.exponential import exp


@pytest.mark.parametrize("reach", [1e-8, 0.1, 1.0, 30.0, 700.0])
def test_is_exact_to_rounding(reach):
    t = np.random.default_rng(0).uniform(-reach, reach, 2000)
    np.testing.assert_array_max_ulp([exp(each) for each in t], np.exp(t), 2)


def test_edges():
    assert exp(0.0) == 1.0
    assert math.isnan(exp(math.nan))
    assert exp(1e300) == exp(math.inf) == exp(700.0) < math.inf
    assert exp(-1e300) == exp(-math.inf) == exp(-700.0) > 0.0
