"""The examples of section 3, against what the paper says of them."""

import numpy as np
import pytest

from trueonline.problems import one_state, random_walk, two_state


def test_the_value_of_a_place_in_the_random_walk_is_the_expected_number_of_steps_to_the_left_end():
    """A step left takes h_i on average: h_9 = 1/0.7 at the wall, and h_i = 1 + 0.3 (h_{i+1} + h_i) elsewhere."""
    one_left = [1.0 / 0.7]
    for _ in range(9):
        one_left.append((1.0 + 0.3 * one_left[-1]) / 0.7)
    expected = np.cumsum(one_left[::-1])  # from place s: h_0 + … + h_s
    np.testing.assert_allclose(random_walk().values, expected, rtol=1e-12)


def test_the_random_walk_is_that_of_figure_1():
    walk = random_walk()
    assert (walk.n_states, walk.n_features, walk.discount, walk.start) == (10, 10, 1.0, 9)
    states, rewards, discounts = walk.trajectory(2_000, seed=1)
    assert (rewards == 1.0).all()
    assert set(states[:-1][discounts == 0.0].tolist()) == {0}, "it ends beyond the left-most place only"
    moves = np.diff(states)[discounts > 0.0]
    assert set(moves.tolist()) == {-1, 0, 1}
    assert set(states[:-1][discounts > 0.0][moves == 0].tolist()) == {9}, "it stays at the right-most place only"


def test_the_random_walks_of_the_textbook_have_its_values():
    """Sutton and Barto 2018, Example 6.2 (five states, true values 1/6 … 5/6) and Example 7.1 (19 states)."""
    five, nineteen = random_walk(5), random_walk(n_states=19)
    np.testing.assert_allclose(five.values, np.arange(1, 6) / 6.0, rtol=1e-12)
    np.testing.assert_allclose(nineteen.values, np.arange(-9, 10) / 10.0, atol=1e-12)
    assert (five.start, nineteen.start) == (2, 9)
    assert (five.discount, nineteen.discount, five.reward_std) == (1.0, 1.0, 0.0)
    assert nineteen.transitions.shape == (19, 20)


def test_the_ends_of_a_random_walk_pay_what_they_are_told_to():
    np.testing.assert_allclose(random_walk(2, end_rewards=(0.0, 3.0)).values, [1.0, 2.0])
    walk = random_walk(4, end_rewards=(-2.0, 3.0))
    np.testing.assert_allclose(walk.values, -2.0 + 5.0 * np.arange(1, 5) / 5.0, atol=1e-12)
    run = walk.trajectory(2000, seed=1)
    ended = run.discounts == 0.0
    assert set(run.rewards[ended]) == {-2.0, 3.0}
    assert set(run.rewards[~ended]) == {0.0}
    assert set(run.states[:-1][ended & (run.rewards == -2.0)]) == {0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "n_states must be a whole number from 1"),
        ((1,), "n_states must be at least 2"),
        ((5.0,), "n_states must be a whole number from 1"),
        ((5, 1.0), "end_rewards must be two numbers"),
        ((5, (1.0, 2.0, 3.0)), "end_rewards must be two numbers"),
        ((5, (0.0, np.inf)), r"end_rewards\[1\] must be a finite number, got inf"),
        ((None, (0.0, 1.0)), "give n_states too"),
    ],
)
def test_bad_random_walks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        random_walk(*arguments)


def test_the_one_state_is_worth_1():
    mrp = one_state()
    assert (mrp.values.tolist(), mrp.lms_weights.tolist(), mrp.stationary.tolist()) == ([1.0], [1.0], [1.0])


def test_the_two_states_are_worth_2_and_0_and_the_best_single_weight_is_1():
    mrp = two_state()
    np.testing.assert_allclose(mrp.values, [2.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(mrp.lms_weights, [1.0], rtol=1e-12)
    rms = np.sqrt(np.mean((mrp.values - mrp.features @ mrp.lms_weights) ** 2))
    assert rms == pytest.approx(1.0), "an RMS error of 1, says section 3.3"
