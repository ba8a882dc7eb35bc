"""Off-policy problems, held to answers found another way: by iterating, by summing, by counting and by simulating."""

import inspect

import numpy as np
import pytest

import trueonline as to
from trueonline.problems import OffPolicyProblem, baird, random_mdp, random_mrp
from trueonline.problems.counterexamples import two_state

BEHAVIOUR, TARGET = [[0.5, 0.5], [0.25, 0.75]], [[0.9, 0.1], [0.0, 1.0]]
FAIR = np.full((2, 2, 2), 0.5)


def continuing(k=5, n=3, discount=0.9, seed=1, **given):
    """A process without an end, in which every state can follow every other, and two policies."""
    rng = np.random.default_rng(seed)
    P, b, pi = (
        rng.dirichlet(np.ones(k), size=(k, n)),
        rng.dirichlet(3.0 * np.ones(n), size=k),
        rng.dirichlet(np.ones(n), size=k),
    )
    return OffPolicyProblem(P, rng.normal(size=P.shape), b, pi, discount=discount, **given)


def episodic(k=4, n=2, discount=1.0, seed=2, start=2, **given):
    """A process that ends soon, and two policies; no two actions of a state have the same ratio."""
    rng = np.random.default_rng(seed)
    P = 0.5 * rng.dirichlet(np.ones(k + 1), size=(k, n))
    P[:, :, k] += 0.5
    b, pi = rng.dirichlet(3.0 * np.ones(n), size=k), rng.dirichlet(np.ones(n), size=k)
    return OffPolicyProblem(P, rng.normal(size=P.shape), b, pi, discount=discount, start=start, **given)


PROBLEMS = {
    "continuing": continuing(),
    "two features": continuing(discount=0.99, seed=3, features=np.random.default_rng(3).normal(size=(5, 2))),
    "episodic": episodic(),
    "episodic and discounted": episodic(discount=0.8, features=np.random.default_rng(4).normal(size=(4, 2))),
    "random": random_mdp(12, 3, 2, 0.1, discount=0.95, seed=5).with_features(to.features.binary_code(12)),
    "two states": two_state(),
    "baird": baird(),
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


# --- Oracles --------------------------------------------------------------------------------------


def backup(problem, values, policy):
    """What the Bellman equation of a policy makes of values, sum by sum."""
    k, n, width = problem.transitions.shape
    made = np.zeros(k)
    for s in range(k):
        for a in range(n):
            for s_next in range(width):
                onwards = values[s_next] if s_next < k else 0.0
                gain = problem.rewards[s, a, s_next] + problem.discount * onwards
                made[s] += policy[s, a] * problem.transitions[s, a, s_next] * gain
    return made


def values_by_iterating(problem):
    values, change = np.zeros(problem.n_states), np.inf
    step = np.array([backup(problem, unit, problem.target) for unit in np.eye(problem.n_states)]).T
    at_zero = backup(problem, values, problem.target)
    step -= at_zero[:, None]  # the backup is affine: one matrix and one vector, iterated
    while change > 1e-14:
        new = at_zero + step @ values
        change, values = np.abs(new - values).max(), new
    return values


def chain(problem, policy):
    """The matrix of transitions between states under a policy, without those that end an episode."""
    k, n, _ = problem.transitions.shape
    return sum(np.diag(policy[:, a]) @ problem.transitions[:, a, :k] for a in range(n))


def stationary_by_powers(problem):
    """Where the behaviour is found after many steps, half of which it rests (so that a cycle does not matter)."""
    P = chain(problem, problem.behaviour)
    P[:, problem.start] += 1.0 - P.sum(axis=1)
    P = (P + np.eye(len(P))) / 2.0
    where = np.eye(len(P))[problem.start]
    for _ in range(20_000):
        where = where @ P
    return where


def update_by_summing(problem, w, trace_decay):
    """The mean of δ_t e_t for fixed weights: Σ_i of (γλ)^i times how the states i steps ago correlate with the error now."""
    P, phi = chain(problem, problem.target), problem.features
    error = backup(problem, phi @ w, problem.target) - phi @ w  # E[ρδ | s]
    weighted, total = phi.T * stationary_by_powers(problem), np.zeros(phi.shape[1])
    while np.abs(weighted).max() > 1e-16:
        total += weighted @ error
        weighted = problem.discount * trace_decay * weighted @ P  # one step on, weighted by ρ: as the target goes
    return total


# --- The model ------------------------------------------------------------------------------------


@every_problem
def test_values_are_those_of_the_target_and_the_distribution_and_the_ratios_those_of_the_behaviour(problem):
    np.testing.assert_allclose(problem.values, values_by_iterating(problem), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(problem.stationary, stationary_by_powers(problem), atol=1e-10)
    assert problem.is_ergodic
    np.testing.assert_allclose((problem.behaviour * problem.ratios).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(problem.behaviour * problem.ratios, problem.target, rtol=1e-12)


@every_problem
def test_metric_and_lms_weights_are_weighted_by_where_the_behaviour_goes(problem):
    D, phi = np.diag(stationary_by_powers(problem)), problem.features
    np.testing.assert_allclose(problem.metric, phi.T @ D @ phi, atol=1e-9)
    np.testing.assert_allclose(phi.T @ D @ (values_by_iterating(problem) - phi @ problem.lms_weights), 0.0, atol=1e-8)


@pytest.mark.parametrize("trace_decay", [0.0, 0.5, 1.0])
@every_problem
def test_the_expected_update_is_the_sum_over_all_earlier_states_and_zero_at_the_fixed_point(problem, trace_decay):
    A, b = problem.expected_update(trace_decay)
    w = np.random.default_rng(6).normal(size=problem.n_features)
    np.testing.assert_allclose(b + A @ w, update_by_summing(problem, w, trace_decay), atol=1e-9)
    w = problem.fixed_point(trace_decay)
    np.testing.assert_allclose(update_by_summing(problem, w, trace_decay), 0.0, atol=1e-9)


def test_features_that_depend_on_each_other_have_a_shortest_fixed_point():
    problem = continuing(features=np.repeat(np.eye(5), 2, axis=1))
    np.testing.assert_allclose(problem.fixed_point(), np.repeat(problem.values, 2) / 2.0, rtol=1e-9)


def test_a_singular_update_has_no_fixed_point():
    with pytest.raises(ValueError, match=r"off-policy TD\(0\) has no unique fixed point here: its matrix A is singular"):
        two_state(discount=5.0 / 6.0).fixed_point()
    assert two_state(discount=5.0 / 6.0).fixed_point(0.5).tolist() == [0.0]


def test_the_error_is_measured_in_units_of_that_of_the_initial_weights():
    problem = baird()
    d, phi = stationary_by_powers(problem), problem.features
    first = sum(p * (x @ problem.initial_weights) ** 2 for p, x in zip(d, phi, strict=True))
    other = np.arange(8.0)
    assert problem.error(problem.initial_weights) == 1.0
    assert problem.error(np.zeros(8)) == 0.0
    assert problem.error(other) == pytest.approx(sum(p * (x @ other) ** 2 for p, x in zip(d, phi, strict=True)) / first)
    learnt = continuing()  # from zero weights
    assert learnt.error(np.zeros(5)) == 1.0
    assert learnt.error(learnt.values) == pytest.approx(0.0, abs=1e-20)
    with pytest.raises(ValueError, match="the error of the initial weights is zero: give other initial_weights"):
        problem.with_features(phi).error(other)
    with pytest.raises(ValueError, match=r"weights must be a number for each of the 8 features, got shape \(2,\)"):
        problem.error([1.0, 2.0])


def test_what_was_given_is_copied_and_then_fixed():
    P, b, w = FAIR.copy(), np.array(BEHAVIOUR), np.ones(2)
    problem = OffPolicyProblem(P, FAIR, b, TARGET, initial_weights=w)
    P[0], b[0], w[0] = 0.0, 0.0, 7.0
    np.testing.assert_array_equal(problem.transitions, FAIR)
    np.testing.assert_array_equal(problem.behaviour, BEHAVIOUR)
    np.testing.assert_array_equal(problem.initial_weights, [1.0, 1.0])
    for name in ("transitions", "rewards", "behaviour", "target", "features", "initial_weights", "ratios"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(problem, name)[0] = 0.0


def test_the_constructor_has_the_order_of_the_contract():
    names = "transitions rewards behaviour target reward_std features discount start initial_weights"
    assert list(inspect.signature(OffPolicyProblem).parameters) == names.split()
    problem = OffPolicyProblem(FAIR, FAIR, BEHAVIOUR, TARGET, 0.5, [[1.0], [2.0]], 0.7, 1, [3.0])
    assert (problem.n_states, problem.n_actions, problem.n_features) == (2, 2, 1)
    assert (problem.reward_std, problem.discount, problem.start, problem.initial_weights.tolist()) == (0.5, 0.7, 1, [3.0])
    assert repr(problem) == "OffPolicyProblem(2 states, 2 actions, 1 features, discount=0.7)"


# --- Streams --------------------------------------------------------------------------------------


def test_features_do_not_change_the_run_of_a_seed():
    problem = random_mdp(6, 2, 2, 0.1, seed=1)
    runs = [each.trajectory(50, seed=[3, 1]) for each in (problem, problem.with_features(np.ones((6, 1))))]
    for part, again in zip(*runs, strict=True):
        np.testing.assert_array_equal(part, again)


def test_the_fingerprint_tells_problems_apart():
    def made(**given):
        parts = {"transitions": FAIR, "rewards": FAIR, "behaviour": BEHAVIOUR, "target": TARGET}
        return OffPolicyProblem(**{**parts, **given}).fingerprint

    unfair = np.array(FAIR)
    unfair[0, 0] = [0.4, 0.6]
    others = [
        {"transitions": unfair},
        {"rewards": unfair},
        {"behaviour": TARGET},
        {"target": BEHAVIOUR},
        {"reward_std": 0.1},
        {"discount": 0.5},
        {"start": 1},
        {"initial_weights": [1.0, 0.0]},
    ]
    assert made() == made()
    assert len({made(), *(made(**other) for other in others)}) == 1 + len(others)


# --- The counterexamples --------------------------------------------------------------------------


def test_the_two_states_are_those_of_the_literature():
    problem = two_state()
    assert (problem.features.tolist(), problem.discount, problem.initial_weights.tolist()) == ([[1.0], [2.0]], 0.9, [1.0])
    assert problem.ratios.tolist() == [[0.0, 2.0], [0.0, 2.0]]
    states, rewards, discounts, ratios = problem.trajectory(200, seed=2)
    assert (ratios == 2.0 * states[1:]).all(), "what the target does too leads to the second state"
    assert (rewards == 0.0).all()
    assert (discounts == 0.9).all()
    assert set(states.tolist()) == {0, 1}
    assert problem.values.tolist() == problem.lms_weights.tolist() * 2 == [0.0, 0.0]
    for discount in (0.0, 0.8, 0.99):  # E[ρδφ] per unit of θ: half of 1·(2γ − 1), half of 2·(2γ − 2)
        A, b = two_state(discount).expected_update()
        assert A.item() == pytest.approx(0.5 * (2.0 * discount - 1.0) + (2.0 * discount - 2.0), abs=1e-12)
        assert b.item() == 0.0
    with pytest.raises(ValueError, match=r"trace_decay must be a number in \[0, 1\]"):
        problem.fixed_point(1.1)


def test_baird_is_that_of_sutton_and_barto():
    problem = baird()
    assert (problem.n_states, problem.n_features, problem.n_actions, problem.discount) == (7, 8, 2, 0.99)
    w = np.random.default_rng(1).normal(size=8)
    expected = [2.0 * w[i] + w[7] for i in range(6)] + [w[6] + 2.0 * w[7]]
    np.testing.assert_allclose(problem.features @ w, expected, rtol=1e-12)
    np.testing.assert_array_equal(problem.initial_weights, [1, 1, 1, 1, 1, 1, 10, 1])
    np.testing.assert_allclose(problem.stationary, 1.0 / 7.0, rtol=1e-12)
    np.testing.assert_allclose(problem.ratios, [[0.0, 7.0]] * 7, rtol=1e-12)
    states, rewards, _, ratios = problem.trajectory(2_000, seed=1)
    assert ((ratios > 0.0) == (states[1:] == 6)).all(), "solid leads to the seventh state, dashed to another"
    assert set(states.tolist()) == set(range(7))
    assert (rewards == 0.0).all()
    assert problem.with_behaviour(problem.target).stationary.tolist() == [0.0] * 6 + [1.0]


# --- Random processes -----------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n", "b"), [(10, 3, 2), (10, 2, 10), (5, 4, 1), (1, 1, 1)])
def test_every_action_of_a_random_mdp_has_b_next_states(k, n, b):
    problem = random_mdp(k, n, b, 0.1, seed=k + b)
    assert problem.transitions.shape == (k, n, k)
    assert ((problem.transitions > 0.0).sum(axis=2) == b).all()
    assert ((problem.rewards != 0.0) == (problem.transitions > 0.0)).all()
    assert problem.is_ergodic


def test_with_one_action_a_random_mdp_is_a_random_mrp():
    problem, mrp = random_mdp(6, 1, 1, 0.25, discount=0.9, seed=3), random_mrp(6, 1, 0.25, discount=0.9, seed=3)
    np.testing.assert_array_equal(problem.transitions[:, 0], mrp.transitions)
    np.testing.assert_array_equal(problem.rewards[:, 0], mrp.rewards)
    assert (problem.reward_std, problem.discount) == (mrp.reward_std, mrp.discount)


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0])
def test_the_target_of_a_random_mdp_is_as_far_from_the_behaviour_as_asked_for(distance):
    problem = random_mdp(20, 4, 2, 0.1, distance=distance, seed=2)
    np.testing.assert_allclose(problem.behaviour, 0.25)
    apart = 0.5 * np.abs(problem.target - problem.behaviour).sum(axis=1)
    np.testing.assert_allclose(apart, 0.75 * distance, atol=1e-12)
    np.testing.assert_allclose(np.sort(problem.ratios, axis=1), [[1.0 - distance] * 3 + [1.0 + 3.0 * distance]] * 20)
    variance = (problem.behaviour * (problem.ratios - 1.0) ** 2).sum(axis=1)
    np.testing.assert_allclose(variance, 3.0 * distance**2, atol=1e-12)
    if distance:
        assert len(set(problem.target.argmax(axis=1).tolist())) == 4, "each state has an action of its own"


def test_a_random_mdp_follows_from_its_seed_and_its_distance_does_not_change_the_process():
    first, again, other = (random_mdp(8, 3, 2, 0.1, seed=seed) for seed in (1, 1, 2))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    farther = random_mdp(8, 3, 2, 0.1, distance=1.0, seed=1)
    np.testing.assert_array_equal(farther.transitions, first.transitions)
    np.testing.assert_array_equal(farther.target.argmax(axis=1), first.target.argmax(axis=1))
    np.testing.assert_array_equal(farther.trajectory(50, 3).states, first.trajectory(50, 3).states)


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"transitions": 0.9 * FAIR}, r"transitions\[0, 0\] must be probabilities that sum to 1, got \[0.45 0.45\]"),
        ({"transitions": FAIR[0]}, r"transitions must be .* with 3 dimensions, got float64 of shape \(2, 2\)"),
        (
            {"transitions": np.full((2, 2, 4), 0.25)},
            r"k × n × k, or k × n × \(k \+ 1\) with the end last, got .*\(2, 2, 4\)",
        ),
        ({"transitions": np.empty((0, 0, 0))}, "k × n × k"),
        ({"transitions": np.empty((1, 0, 1))}, "k × n × k"),
        ({"rewards": np.zeros((2, 2, 3))}, r"rewards must have the shape of transitions, \(2, 2, 2\), got \(2, 2, 3\)"),
        ({"behaviour": [[0.5, 0.5]]}, r"behaviour must have a row for each of 2 states .* 2 actions, got \(1, 2\)"),
        ({"behaviour": [[0.5, 0.5], [0.5, 0.6]]}, r"behaviour\[1\] must be probabilities that sum to 1, got \[0.5 0.6\]"),
        ({"target": [0.5, 0.5]}, r"target must be .* with 2 dimensions, got float64 of shape \(2,\)"),
        ({"target": [[0.5, 0.5], [1.5, -0.5]]}, r"target\[1\] must be probabilities that sum to 1"),
        (
            {"behaviour": [[0.5, 0.5], [0.0, 1.0]], "target": [[0.5, 0.5], [0.25, 0.75]]},
            "takes action 0 in state 1 with .* 0.25",
        ),
        (
            {"behaviour": [[0.5, 0.5], [5e-324, 1.0]], "target": [[0.5, 0.5], [1.0, 0.0]]},
            "must be a finite number, but action 0",
        ),
        ({"features": [[1.0]]}, r"features must have a row for each of the 2 states, got shape \(1, 1\)"),
        ({"initial_weights": [1.0]}, r"initial_weights must be a number for each of the 2 features, got shape \(1,\)"),
        ({"initial_weights": [1.0, np.nan]}, r"initial_weights must be .* with 1 dimension, got nan at \(1,\)"),
        ({"reward_std": -0.1}, "reward_std must be a finite number ≥ 0, got -0.1"),
        ({"discount": 1.5}, r"discount must be a number in \[0, 1\], got 1.5"),
        ({"start": 2}, "start must be a state from 0 to 1, got 2"),
    ],
)
def test_bad_problems_are_refused(given, message):
    parts = {"transitions": FAIR, "rewards": FAIR, "behaviour": BEHAVIOUR, "target": TARGET}
    with pytest.raises(ValueError, match=message):
        OffPolicyProblem(**{**parts, **given})


def test_probabilities_that_are_off_by_rounding_are_taken():
    less = 1.0 - 9e-10  # each within what is allowed, their product not
    problem = OffPolicyProblem(less * FAIR, FAIR, less * np.array(BEHAVIOUR), less * np.array(TARGET), discount=0.5)
    np.testing.assert_allclose(problem.values, 1.0, rtol=1e-8)  # a reward of 1/2 at every step
    np.testing.assert_allclose(problem.stationary, 0.5, rtol=1e-8)


def test_an_action_that_neither_policy_takes_is_no_harm():
    one = [[1.0, 0.0], [1.0, 0.0]]
    problem = OffPolicyProblem(FAIR, FAIR, one, one)
    assert problem.ratios.tolist() == one
    assert (problem.trajectory(50, seed=1).ratios == 1.0).all()


def test_without_an_end_for_the_target_a_discount_of_1_is_refused():
    """Action 0 ends the episode, but the target never takes it."""
    problem = OffPolicyProblem([[[0.0, 1.0], [1.0, 0.0]]], np.ones((1, 2, 2)), [[0.5, 0.5]], [[0.0, 1.0]], discount=1.0)
    with pytest.raises(ValueError, match="the values are not finite"):
        _ = problem.values
    with pytest.raises(ValueError, match="the target must reach the end of an episode from every state"):
        problem.expected_update(1.0)
    with pytest.raises(ValueError, match=r"TD\(0\.5\) has no unique fixed point"):
        problem.fixed_point(0.5)


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((3, 2, 4, 0.1), {}, "branching must be at most n_states = 3, got 4"),
        ((0, 2, 1, 0.1), {}, "n_states must be a whole number from 1"),
        ((3, 0, 1, 0.1), {}, "n_actions must be a whole number from 1"),
        ((3, 2, 1.5, 0.1), {}, "branching must be a whole number from 1"),
        ((3, 2, 2, -0.1), {}, "must be a finite number ≥ 0, got -0.1"),
        ((3, 2, 2, 0.1), {"distance": 1.1}, r"distance must be a number in \[0, 1\], got 1.1"),
        ((3, 2, 2, 0.1), {"discount": np.nan}, r"discount must be a number in \[0, 1\], got nan"),
    ],
)
def test_bad_random_mdps_are_refused(arguments, more, message):
    with pytest.raises(ValueError, match=message):
        random_mdp(*arguments, **more)
