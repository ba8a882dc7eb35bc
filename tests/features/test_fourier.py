"""The Fourier basis: every wave against the formula in the docstring."""

import math
from itertools import product

import numpy as np
import pytest

from tests.features.formulas import drawn, scaled
from trueonline.features import Fourier


@pytest.mark.parametrize("seed", range(8))
def test_waves_are_those_of_the_formula(seed):
    rng = np.random.default_rng(seed)
    d, order = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    low, high, _, scales = drawn(rng, d)
    coupled = bool(seed % 2)
    basis = Fourier(low, high, order=order, coupled=coupled, scales=scales)
    if coupled:
        vectors = [list(c) for c in product(range(order + 1), repeat=d)]
    else:
        vectors = [[0] * d] + [[k * (i == j) for j in range(d)] for i in range(d) for k in range(1, order + 1)]
    assert basis.coefficients.tolist() == vectors
    assert not basis.coefficients.flags.writeable
    assert basis.n_features == basis.n_active == len(vectors)
    lengths = [math.sqrt(sum(k * k for k in c)) for c in vectors]
    np.testing.assert_allclose(basis.step_size_scales, [1.0, *(1.0 / each for each in lengths[1:])], rtol=1e-15)
    X = rng.normal(size=(20, d)) * 20
    expected = []
    for x in X.tolist():
        u = [scaled(*each) for each in zip(x, low.tolist(), high.tolist(), scales.tolist(), strict=True)]
        expected.append([math.cos(math.pi * sum(a * b for a, b in zip(c, u, strict=True))) for c in vectors])
    np.testing.assert_allclose([basis(x) for x in X], expected, atol=1e-13)
    np.testing.assert_allclose(basis.many(X), expected, atol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": 0}, "order must be a whole number from 1"),
        ({"coupled": 0}, "coupled must be True or False"),
        ({"order": 1000}, r"makes 1e\+06 features, more than 1,000,000; give coupled=False or a lower order"),
        ({"low": 0.0, "high": [1.0] * 200, "order": 5000, "coupled": False}, "1,000,000; give a lower order"),
        ({"kind": "tiles"}, "kind must be 'fourier'"),
    ],
)
def test_bad_settings_of_waves_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Fourier(**{"low": [0.0, 0.0], "high": [1.0, 1.0], **arguments})
