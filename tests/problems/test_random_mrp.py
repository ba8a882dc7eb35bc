"""Random processes: drawn as the paper says, from a seed, and bad wishes refused."""

import numpy as np
import pytest
from scipy import stats

import trueonline as to
from trueonline.problems import random_mrp

# --- Random processes -----------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "b"), [(10, 3), (10, 1), (10, 10), (100, 3), (1, 1)])
def test_every_state_of_a_random_mrp_has_b_next_states(k, b):
    mrp = random_mrp(k, b, 0.1, seed=k + b)
    assert ((mrp.transitions > 0.0).sum(axis=1) == b).all()
    np.testing.assert_allclose(mrp.transitions.sum(axis=1), 1.0, rtol=1e-12)
    assert mrp.transitions.shape == (k, k)
    assert mrp.is_ergodic


def test_a_random_mrp_is_as_it_was_asked_for():
    mrp = random_mrp(10, 3, 0.25, seed=1)
    assert (mrp.reward_std, mrp.discount, mrp.start) == (0.25, 0.99, 0)
    np.testing.assert_array_equal(mrp.features, np.eye(10))
    assert random_mrp(10, 3, 0.1, discount=0.5, seed=1).discount == 0.5
    again, other = random_mrp(10, 3, 0.25, seed=1), random_mrp(10, 3, 0.25, seed=2)
    np.testing.assert_array_equal(again.transitions, mrp.transitions)
    np.testing.assert_array_equal(again.rewards, mrp.rewards)
    assert not np.array_equal(other.transitions, mrp.transitions)


@pytest.fixture(scope="module")
def many():
    """The rows of 400 processes (10, 3, 0.1): transitions, rewards."""
    drawn = [random_mrp(10, 3, 0.1, seed=np.random.SeedSequence([77, number])) for number in range(400)]
    return np.concatenate([mrp.transitions for mrp in drawn]), np.concatenate([mrp.rewards for mrp in drawn])


def test_probabilities_of_random_mrps_are_parts_of_the_interval_cut_at_uniform_points(many):
    """Of b parts each has P(part > x) = (1 − x)^{b−1}. One part of each row: parts depend on each other."""
    transitions, _ = many
    one_each = transitions[np.arange(len(transitions)), (transitions > 0.0).argmax(axis=1)]
    assert stats.kstest(one_each, stats.beta(1, 2).cdf).pvalue > 1e-4
    second = one_each**2  # E[p²] = 2/(b(b + 1)); equal parts, or normalised uniforms, have less
    assert abs(second.mean() - 2.0 / 12.0) < 4.0 * second.std() / np.sqrt(second.size)
    largest = transitions.max(axis=1)  # E[max] = (1 + 1/2 + 1/3)/3
    assert abs(largest.mean() - 11.0 / 18.0) < 4.0 * largest.std() / np.sqrt(largest.size)


def test_every_state_is_a_next_state_of_random_mrps_as_often_as_any_other(many):
    transitions, _ = many
    rows = len(transitions)
    found = (transitions > 0.0).sum(axis=0)
    assert (np.abs(found - 0.3 * rows) < 4.0 * np.sqrt(rows * 0.3 * 0.7)).all(), found


def test_expected_rewards_of_random_mrps_are_standard_normal(many):
    transitions, rewards = many
    drawn = rewards[transitions > 0.0]
    n = drawn.size
    assert n == 12_000
    assert abs(drawn.mean()) < 4.0 / np.sqrt(n)
    assert abs(drawn.var() - 1.0) < 4.0 * np.sqrt(2.0 / n)
    assert abs((drawn**3).mean()) < 4.0 * np.sqrt(15.0 / n)
    assert abs((drawn**4).mean() - 3.0) < 4.0 * np.sqrt(96.0 / n)
    assert stats.kstest(drawn, "norm").pvalue > 1e-4
    correlation = np.corrcoef(transitions[transitions > 0.0], drawn)[0, 1]
    assert abs(correlation) < 4.0 / np.sqrt(n), "rewards do not depend on the probabilities"


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 4, 0.1), "b must be at most k = 3, got 4"),
        ((0, 1, 0.1), "k must be a whole number from 1"),
        ((3, 0, 0.1), "b must be a whole number from 1"),
        ((3, -1, 0.1), "b must be a whole number from 1"),
        ((3.5, 2, 0.1), "k must be a whole number from 1"),
        (("3", 2, 0.1), "k must be a whole number from 1"),
        ((3, 2, -0.1), "must be a finite number ≥ 0, got -0.1"),
    ],
)
def test_bad_random_mrps_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        random_mrp(*arguments)


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: random_mrp(10, 3, 0.1, seed=seed),
        lambda seed: to.problems.random_mdp(10, 3, 2, 0.1, seed=seed),
        lambda seed: to.features.random_unit(10, seed=seed),
    ],
    ids=["random_mrp", "random_mdp", "random_unit"],
)
@pytest.mark.parametrize("seed", [[1, 2, 3], (1,), np.arange(3), range(2), -1, 1.5, "1", True], ids=str)
def test_bad_seeds_are_refused(draw, seed):
    """NumPy would take a list for a single seed, and one process would stand for several."""
    with pytest.raises(ValueError, match="seed must be a whole number ≥ 0") as refused:
        draw(seed)
    assert ("call once for each seed" in str(refused.value)) == (np.size(seed) > 1 or np.ndim(seed) > 0)


def test_numpys_own_seeds_are_taken():
    """A sequence of numbers is one seed as a SeedSequence, and the same as NumPy makes of a list."""
    sequence, generator = np.random.SeedSequence([31, 0]), np.random.default_rng([31, 0])
    np.testing.assert_array_equal(
        random_mrp(10, 3, 0.1, seed=sequence).transitions, random_mrp(10, 3, 0.1, seed=generator).transitions
    )
    np.testing.assert_array_equal(
        random_mrp(10, 3, 0.1, seed=np.int64(4)).rewards, random_mrp(10, 3, 0.1, seed=4).rewards
    )
