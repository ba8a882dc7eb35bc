"""Features of the states of a process: tabular, the binary code, and random directions."""

import numpy as np
import pytest
from scipy import stats

import trueonline as to


@pytest.mark.parametrize(("k", "length"), [(10, 4), (100, 7), (1, 1), (7, 3), (8, 4)])
def test_tables_tell_states_apart_and_the_binary_code_is_the_states_number_from_1_in_digits(k, length):
    np.testing.assert_array_equal(to.features.tabular(k), [[float(i == s) for i in range(k)] for s in range(k)])
    code = to.features.binary_code(np.int64(k))
    assert code.shape == (k, length)
    assert code.dtype == float
    expected = [[float(digit) for digit in format(number, f"0{length}b")] for number in range(1, k + 1)]
    assert code.tolist() == expected


def test_the_binary_code_of_unit_length_points_the_same_way():
    code, unit = to.features.binary_code(100), to.features.binary_code(100, unit_length=True)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0, rtol=1e-12)
    for plain, scaled in zip(code, unit, strict=True):
        np.testing.assert_allclose(scaled * np.sqrt(plain.sum()), plain, rtol=1e-12)


def test_random_unit_features_have_unit_length_and_any_direction():
    phi = to.features.random_unit(20_000, seed=1)
    assert phi.shape == (20_000, 5)
    np.testing.assert_allclose(np.linalg.norm(phi, axis=1), 1.0, rtol=1e-12)
    assert (np.abs(phi.mean(axis=0)) < 4.0 * np.sqrt(1.0 / 5.0 / 20_000)).all()
    np.testing.assert_allclose(phi.T @ phi / 20_000, np.eye(5) / 5.0, atol=0.01)  # no direction is preferred
    one = stats.beta(0.5, 2.0)  # the square of one coordinate of a uniform direction in five dimensions
    assert stats.kstest(phi[:, 0] ** 2, one.cdf).pvalue > 1e-4


def test_random_unit_features_follow_from_the_seed():
    first = to.features.random_unit(10, 3, seed=1)
    assert first.shape == (10, 3)
    np.testing.assert_array_equal(first, to.features.random_unit(10, 3, seed=1))
    assert not np.array_equal(first, to.features.random_unit(10, 3, seed=2))


@pytest.mark.parametrize(
    "make",
    [
        lambda: to.features.binary_code(0),
        lambda: to.features.binary_code(-3),
        lambda: to.features.binary_code(2.5),
        lambda: to.features.tabular(0),
        lambda: to.features.random_unit(3, 0),
    ],
)
def test_feature_sizes_that_are_no_positive_whole_numbers_are_refused(make):
    with pytest.raises(ValueError, match="must be a whole number from 1"):
        make()
