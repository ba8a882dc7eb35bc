"""Starts that are drawn, and the Collision task, whose levels are computed here from the definitions."""

import numpy as np
import pytest

from trueonline.problems import FiniteMRP, OffPolicyProblem, collision
from trueonline.study import sweep_file

STARTS = np.array([0.2, 0.0, 0.8])
# Three states, each with a way on and an end.
ENDING = np.array([[0.1, 0.3, 0.2, 0.4], [0.0, 0.5, 0.25, 0.25], [0.3, 0.0, 0.2, 0.5]])
POLICIES = {"behaviour": [[0.5, 0.5]] * 3, "target": [[1.0, 0.0]] * 3}


def process(start, **given):
    return FiniteMRP(ENDING, np.zeros((3, 4)), discount=0.9, start=start, **given)


def decisions(start, **given):
    transitions = np.stack([ENDING, ENDING[[1, 2, 0]]], axis=1)
    return OffPolicyProblem(transitions, np.zeros((3, 2, 4)), **POLICIES, discount=0.9, start=start, **given)


# --- Starts that are drawn ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [process, decisions])
def test_the_stationary_distribution_counts_all_starts(make):
    problem = make(STARTS)
    states = problem.trajectory(200_000, seed=4).states
    np.testing.assert_allclose(np.bincount(states) / len(states), problem.stationary, atol=0.01)


@pytest.mark.parametrize("make", [process, decisions])
def test_a_certain_start_is_a_start(make):
    """The values and distributions are the same, and so is the run: a start that is certain uses up no other number."""
    one, same = make(2), make([0.0, 0.0, 1.0])
    np.testing.assert_allclose(one.stationary, same.stationary, rtol=1e-12)
    for ours, theirs in zip(one.trajectory(300, seed=5), same.trajectory(300, seed=5), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("make", [process, decisions])
def test_starts_are_a_part_of_the_problem(make):
    problem, given = make(STARTS), STARTS.copy()
    assert len({make(start).fingerprint for start in (0, 2, STARTS, [0.3, 0.0, 0.7])}) == 4
    other = problem.with_features(np.ones((3, 1)))
    np.testing.assert_array_equal(other.start, given)
    np.testing.assert_array_equal(other.trajectory(50, seed=1).states, problem.trajectory(50, seed=1).states)
    with pytest.raises(ValueError, match="read-only"):
        problem.start[0] = 1.0


@pytest.mark.parametrize("make", [process, decisions])
@pytest.mark.parametrize(
    ("start", "message"),
    [
        (3, "start must be a state from 0 to 2, got 3; or give a probability for each state"),
        (None, "start must be a state from 0 to 2, got None"),
        ([0.5, 0.5], r"start must be a state, or a probability for each of the 3 states, got shape \(2,\)"),
        ([0.5, 0.6, -0.1], "probabilities that sum to 1"),
        ([0.5, 0.4, 0.0], "probabilities that sum to 1"),
        ([[1.0, 0.0, 0.0]], "start must be an array of finite numbers with 1 dimension"),
        ([np.nan, 0.0, 1.0], "start must be an array of finite numbers"),
    ],
)
def test_bad_starts_are_refused(make, start, message):
    with pytest.raises(ValueError, match=message):
        make(start)


def test_a_file_of_a_sweep_can_hold_starts(tmp_path):
    np.savez(tmp_path / "p.npz", transitions=ENDING, rewards=np.zeros((3, 4)), start=STARTS)
    (tmp_path / "s.toml").write_text('[[problems]]\nkind = "arrays"\npath = "p.npz"\n[[problems]]\nkind = "collision"\n')
    with pytest.raises(ValueError, match="zero"):  # a process without rewards has nothing to learn
        sweep_file.read(tmp_path / "s.toml")
    np.savez(tmp_path / "p.npz", transitions=ENDING, rewards=np.ones((3, 4)), start=STARTS)
    first, second = (case.problem for case in sweep_file.read(tmp_path / "s.toml"))
    np.testing.assert_array_equal(first.start, STARTS)
    assert second.fingerprint == collision().fingerprint


# --- The Collision task ---------------------------------------------------------------------------

VALUES = 0.9 ** np.arange(7, -1, -1)
# By counting: a quarter of the episodes begins in each of the first four states, and half of what is left goes on.
VISITS = np.array([1.0, 2.0, 3.0, 4.0, 4.0, 2.0, 1.0, 0.5]) / 17.5
ONWARDS = np.eye(8, k=1)


def levels(features):
    """The root of the mean squared error at the fixed points of TD(0) and emphatic TD(0), and of the best weights."""
    follow_on = np.zeros(8)
    for state in range(8):  # F = 1 + γρF of the state before, in the mean over visits
        follow_on[state] = VISITS[state] + (0.9 * follow_on[state - 1] if state else 0.0)

    def error(weights):
        return np.sqrt(VISITS @ (features @ weights - VALUES) ** 2)

    found = []
    for weighting in (VISITS, follow_on):
        A = features.T @ np.diag(weighting) @ (features - 0.9 * ONWARDS @ features)
        found.append(error(np.linalg.lstsq(A, weighting[7] * features[7])[0]))
    root = np.sqrt(VISITS)
    return np.array([*found, error(np.linalg.lstsq(root[:, None] * features, root * VALUES)[0])])


def test_collision_is_that_of_the_literature():
    problem = collision()
    np.testing.assert_allclose(problem.values, VALUES, rtol=1e-12)
    np.testing.assert_allclose(problem.stationary, VISITS, rtol=1e-12)
    assert problem.ratios.tolist() == [[1.0, 0.0]] * 4 + [[2.0, 0.0]] * 4
    assert (problem.features.sum(axis=1) == 3.0).all()
    states, rewards, discounts, ratios = problem.trajectory(3_000, seed=1)
    assert set(states[1:][discounts == 0.0].tolist()) == {0, 1, 2, 3}
    assert (rewards == ((states[:-1] == 7) & (ratios == 2.0))).all()
    assert (ratios[states[:-1] < 4] == 1.0).all()


def test_the_levels_of_the_first_published_run():
    problem = collision()

    def level(weights):
        return round(float(np.sqrt(problem.stationary @ (problem.features @ weights - problem.values) ** 2)), 3)

    assert level(problem.initial_weights) == 0.689  # as published
    assert level(problem.fixed_point()) == 0.528
    assert level(problem.fixed_point(weighting=problem.emphasis())) == 0.182
    assert level(problem.lms_weights) == 0.078
    np.testing.assert_array_equal(levels(problem.features).round(3), [0.528, 0.182, 0.078])


@pytest.mark.parametrize("trace_decay", [0.0, 0.6, 1.0])
def test_emphasis_is_the_series_of_the_definition(trace_decay):
    """m = Σ_n (P_λᵀ)ⁿ d, with P_λ of the targets of TD(λ)."""
    problem = collision()
    bootstrapped = np.eye(8) - np.linalg.inv(np.eye(8) - 0.9 * trace_decay * ONWARDS) @ (np.eye(8) - 0.9 * ONWARDS)
    expected, term = np.zeros(8), VISITS
    for _ in range(40):
        expected, term = expected + term, bootstrapped.T @ term
    np.testing.assert_allclose(problem.emphasis(trace_decay), expected, rtol=1e-12)


def test_bad_weightings_are_refused():
    with pytest.raises(ValueError, match="weighting must be a number for each of the 8 states"):
        collision().expected_update(weighting=[1.0])
    with pytest.raises(ValueError, match="seed"):
        collision([1, 2])
