"""`FiniteMRP`: its answers against slow computations, its streams against its definition, and bad processes refused."""

import inspect

import numpy as np
import pytest

import trueonline as to
from trueonline.problems import FiniteMRP, one_state, random_mrp, random_walk, two_state

FAIR = [[0.5, 0.5], [0.5, 0.5]]

PAY = [[1.0, 2.0], [3.0, 4.0]]

ENDING = [[0.2, 0.5, 0.3], [0.6, 0.0, 0.4]]


def continuing(k=6, discount=0.9, seed=1, **given):
    """A process without an end in which every state can follow every other."""
    rng = np.random.default_rng(seed)
    return FiniteMRP(rng.dirichlet(np.ones(k), size=k), rng.normal(size=(k, k)), discount=discount, **given)


def episodic(k=5, discount=1.0, seed=2, start=3, **given):
    """A process that ends from every state with a probability of about 1/(k + 1)."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k + 1), size=k)
    return FiniteMRP(P, rng.normal(size=(k, k + 1)), discount=discount, start=start, **given)


PROCESSES = {
    "continuing": continuing(),
    "undiscounted future": continuing(discount=0.0),
    "far-sighted": continuing(discount=0.999, features=np.random.default_rng(3).normal(size=(6, 3))),
    "episodic": episodic(),
    "episodic and discounted": episodic(discount=0.8, features=np.random.default_rng(4).normal(size=(5, 2))),
    "random": random_mrp(20, 3, 0.1, seed=5).with_features(to.features.binary_code(20)),
    "walk": random_walk(),
    "one state": one_state(),
    "two states": two_state(),
}

every_process = pytest.mark.parametrize("mrp", PROCESSES.values(), ids=PROCESSES.keys())


# --- Oracles --------------------------------------------------------------------------------------


def values_by_summing(mrp):
    """v = Σ_t γᵗPᵗr, term by term until the terms are nothing."""
    k = len(mrp.transitions)
    reward = np.array(
        [sum(p * r for p, r in zip(*row, strict=True)) for row in zip(mrp.transitions, mrp.rewards, strict=True)]
    )
    total, term = np.zeros(k), reward
    while np.abs(term).max() > 1e-14:
        total = total + term
        term = mrp.discount * mrp.transitions[:, :k] @ term
    return total


def stationary_by_powers(mrp):
    """Where a process is found after 2⁶⁰ steps, half of which it rests (so that a cycle does not matter)."""
    k = len(mrp.transitions)
    P = np.array(mrp.transitions[:, :k])
    if mrp.transitions.shape[1] > k:
        P[:, mrp.start] += mrp.transitions[:, k]
    P = (P + np.eye(k)) / 2.0
    for _ in range(60):
        P = P @ P
        P /= P.sum(axis=1, keepdims=True)
    return P[mrp.start]


def mean_squared_error(mrp, w, target):
    """Σ_s d(s) (target(s) − wᵀφ(s))², state by state."""
    visits = stationary_by_powers(mrp)
    return sum(d * (v - w @ phi) ** 2 for d, v, phi in zip(visits, target, mrp.features, strict=True))


# --- The model ------------------------------------------------------------------------------------


@every_process
def test_values_and_the_stationary_distribution_are_those_of_summing_and_of_a_long_time(mrp):
    np.testing.assert_allclose(mrp.values, values_by_summing(mrp), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(mrp.stationary, stationary_by_powers(mrp), atol=1e-10)
    assert mrp.stationary.sum() == pytest.approx(1.0, abs=1e-12)
    assert mrp.is_ergodic


@every_process
def test_lms_weights_solve_the_normal_equations(mrp):
    D, phi = np.diag(stationary_by_powers(mrp)), mrp.features
    left = phi.T @ D @ (values_by_summing(mrp) - phi @ mrp.lms_weights)
    np.testing.assert_allclose(left, 0.0, atol=1e-9)
    with pytest.raises(ValueError, match="features must have a row for each"):
        mrp.with_features(np.eye(3))


def test_of_many_best_weights_the_lms_weights_are_the_shortest():
    twice = np.repeat(np.eye(6), 2, axis=1)  # each feature twice: any split of its weight is as good
    mrp = continuing(features=twice)
    np.testing.assert_allclose(mrp.lms_weights, np.repeat(mrp.values, 2) / 2.0, rtol=1e-9)


@every_process
def test_the_metric_measures_the_distance_from_the_lms_solution(mrp):
    A = sum(d * np.outer(phi, phi) for d, phi in zip(stationary_by_powers(mrp), mrp.features, strict=True))
    np.testing.assert_allclose(mrp.metric, A, atol=1e-10)
    rng, best = np.random.default_rng(9), mrp.features @ mrp.lms_weights
    for _ in range(5):
        off = rng.normal(size=mrp.n_features)
        distance = mean_squared_error(mrp, mrp.lms_weights + off, best)
        assert off @ mrp.metric @ off == pytest.approx(distance, rel=1e-9)


def test_a_cycle_has_a_stationary_distribution_although_it_never_settles():
    mrp = FiniteMRP([[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.ones((3, 3)))
    np.testing.assert_allclose(mrp.stationary, 1.0 / 3.0)


def test_states_that_are_left_for_ever_are_not_counted():
    mrp = FiniteMRP([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]], np.ones((3, 3)))
    np.testing.assert_allclose(mrp.stationary, [0.0, 0.5, 0.5], atol=1e-15)
    assert mrp.stationary[0] == 0.0


def test_what_was_given_is_copied_and_then_fixed():
    P, R, phi = np.array(FAIR), np.array(PAY), np.eye(2)
    mrp = FiniteMRP(P, R, features=phi)
    P[0], R[0], phi[0] = 0.0, 9.0, 9.0
    np.testing.assert_array_equal(mrp.transitions, FAIR)
    np.testing.assert_array_equal(mrp.rewards, PAY)
    np.testing.assert_array_equal(mrp.features, np.eye(2))
    for array in (mrp.transitions, mrp.rewards, mrp.features):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_the_constructor_has_the_order_of_the_contract():
    names = list(inspect.signature(FiniteMRP).parameters)
    assert names == ["transitions", "rewards", "reward_std", "features", "discount", "start"]
    mrp = FiniteMRP(ENDING, np.ones((2, 3)), 0.5, [[1.0], [2.0]], 0.7, 1)
    assert (mrp.n_states, mrp.n_features, mrp.reward_std, mrp.discount, mrp.start) == (2, 1, 0.5, 0.7, 1)
    assert FiniteMRP(FAIR, PAY).start == 0
    assert repr(mrp) == "FiniteMRP(2 states, 1 features, discount=0.7)"


# --- Streams --------------------------------------------------------------------------------------


def test_a_sample_is_the_trajectory_of_a_seed_and_a_generator_will_do():
    mrp = PROCESSES["episodic"]
    states, rewards = mrp.sample(50, seed=3)
    run = mrp.trajectory(50, np.random.default_rng(3))
    np.testing.assert_array_equal(states, run.states)
    np.testing.assert_array_equal(rewards, run.rewards)


@pytest.mark.parametrize("mrp", [random_mrp(10, 3, 0.1, seed=1), episodic(reward_std=1.0)], ids=["random", "episodic"])
def test_features_do_not_change_the_trajectory_of_a_seed(mrp):
    k = mrp.n_states
    representations = (to.features.tabular(k), to.features.binary_code(k), to.features.random_unit(k, seed=2))
    seen = [mrp.with_features(phi) for phi in representations]
    for other, phi in zip(seen, representations, strict=True):
        np.testing.assert_array_equal(other.features, phi)
        for ours, theirs in zip(mrp.trajectory(80, [4, 2]), other.trajectory(80, [4, 2]), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(other.values, mrp.values)
        assert (other.reward_std, other.discount, other.start) == (mrp.reward_std, mrp.discount, mrp.start)


# --- Bad input ------------------------------------------------------------------------------------


# Numbers of other types are refused as `tests/learners/test_inputs.py` says.
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"transitions": [[0.5, 0.4], [0.5, 0.5]]},
            r"transitions\[0\] must be probabilities that sum to 1, got \[0.5 0.4\]",
        ),
        ({"transitions": [[0.5, 0.5], [1.5, -0.5]]}, r"transitions\[1\] must be probabilities that sum to 1"),
        ({"transitions": [[0.5, 0.5], [np.nan, 0.5]]}, r"transitions must be .* got nan at \(1, 0\)"),
        ({"transitions": [0.5, 0.5]}, r"transitions must be .* with 2 dimensions, got float64 of shape \(2,\)"),
        ({"transitions": [[1.0], [0.5, 0.5]]}, "transitions must be an array of numbers"),
        ({"transitions": "half"}, "transitions must be an array of finite numbers with 2 dimensions"),
        ({"transitions": np.ones((2, 2)) > 0.0}, "transitions must be an array of finite numbers .* got bool"),
        ({"transitions": np.ones((2, 4)) / 4}, r"k × k, or k × \(k \+ 1\) with the end last, got shape \(2, 4\)"),
        ({"transitions": np.ones((2, 1))}, r"k × k, or k × \(k \+ 1\)"),
        ({"transitions": np.empty((0, 0))}, r"k × k, or k × \(k \+ 1\)"),
        ({"transitions": ENDING}, r"rewards must have the shape of transitions, \(2, 3\), got \(2, 2\)"),
        ({"rewards": [[1.0, 2.0], [3.0, np.inf]]}, "rewards must be an array of finite numbers"),
        ({"features": [[1.0]]}, r"features must have a row for each of the 2 states, got shape \(1, 1\)"),
        ({"features": np.empty((2, 0))}, "features must have a row for each of the 2 states"),
        ({"features": [[1.0], [np.inf]]}, "features must be an array of finite numbers"),
        ({"reward_std": -0.1}, "reward_std must be a finite number ≥ 0, got -0.1"),
        ({"discount": 1.5}, r"discount must be a number in \[0, 1\], got 1.5"),
        ({"start": 2}, "start must be a state from 0 to 1, got 2"),
        ({"start": -1}, "start must be a state from 0 to 1, got -1"),
        ({"start": True}, "start must be a state from 0 to 1, got True"),
    ],
)
def test_bad_processes_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        FiniteMRP(**{"transitions": FAIR, "rewards": PAY, **given})


@pytest.mark.parametrize(
    "mrp",
    [
        FiniteMRP(FAIR, PAY, discount=1.0),
        FiniteMRP([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], np.ones((2, 3)), discount=1.0),  # state 1 is never left
    ],
    ids=["no end", "an end that one state cannot reach"],
)
def test_values_that_are_not_finite_are_refused(mrp):
    with pytest.raises(ValueError, match="with discount 1 every state must reach the end"):
        _ = mrp.values
    with pytest.raises(ValueError, match=r"with discount 1 every state must reach the end|more than one stationary"):
        _ = mrp.lms_weights


def test_several_stationary_distributions_are_refused():
    mrp = FiniteMRP(np.eye(2), PAY)
    assert not mrp.is_ergodic
    with pytest.raises(ValueError, match="more than one stationary distribution"):
        _ = mrp.stationary
    with pytest.raises(ValueError, match="more than one stationary distribution"):
        _ = mrp.lms_weights
    np.testing.assert_allclose(mrp.values, np.diag(PAY) / 0.01)  # values need no stationary distribution
