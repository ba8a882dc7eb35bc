"""The compiled sampler of states, against the loop with `bisect` that it stands for."""

from bisect import bisect

import numpy as np
import pytest

import trueonline as to
from trueonline.problems import FiniteMRP, chain


def first_states(start, steps, rng):
    if isinstance(start, int):
        return [start] * steps
    possible = np.flatnonzero(start)
    bounds = np.cumsum(start[possible])[:-1].tolist()
    return [int(possible[bisect(bounds, choice)]) for choice in rng.random(steps).tolist()]


def on_policy(mrp, steps, seed):
    """A run of a `FiniteMRP`, a state at a time."""
    rng, k = np.random.default_rng(seed), mrp.n_states
    choices, noise = rng.random(steps), rng.normal(size=steps) * mrp.reward_std
    cumulative = np.cumsum(mrp.transitions, axis=1)[:, :-1].tolist()
    first = first_states(mrp.start, steps + 1, rng)
    states, rewards, discounts = [first[0]], [], []
    for t in range(steps):
        here = states[-1]
        there = bisect(cumulative[here], choices[t])
        rewards.append(mrp.rewards[here, there] + noise[t])
        discounts.append(mrp.discount if there < k else 0.0)
        states.append(there if there < k else first[t + 1])
    return states, rewards, discounts


def off_policy(problem, steps, seed):
    """A run of an `OffPolicyProblem`, a state at a time: actions that lead nowhere are left out beforehand."""
    rng, k, width = np.random.default_rng(seed), problem.n_states, problem.transitions.shape[2]
    choices, noise = rng.random(steps), rng.normal(size=steps) * problem.reward_std
    joint = (problem.behaviour[:, :, None] * problem.transitions).reshape(k, -1)
    first = first_states(problem.start, steps + 1, rng)
    states, rewards, discounts, ratios = [first[0]], [], [], []
    for t in range(steps):
        here = states[-1]
        possible = np.flatnonzero(joint[here])
        bounds = np.cumsum(joint[here, possible])[:-1].tolist()
        action, there = divmod(int(possible[bisect(bounds, choices[t])]), width)
        rewards.append(problem.rewards[here, action, there] + noise[t])
        discounts.append(problem.discount if there < k else 0.0)
        ratios.append(problem.ratios[here, action])
        states.append(there if there < k else first[t + 1])
    return states, rewards, discounts, ratios


def ending(start):
    """Six states of which each can go to some others, or to the end."""
    rng = np.random.default_rng(5)
    P = np.where(rng.random((6, 7)) < 0.5, 0.0, rng.random((6, 7)))
    P[:, -1] += 0.1
    P /= P.sum(axis=1, keepdims=True)
    return FiniteMRP(P, rng.normal(size=P.shape), 0.3, discount=0.9, start=start)


ON_POLICY = {
    "ten states": to.problems.random_mrp(10, 3, 0.1, seed=1),
    "a hundred states": to.problems.random_mrp(100, 10, 0.1, seed=2),
    "a cycle": FiniteMRP(np.roll(np.eye(5), 1, axis=1), np.eye(5)),
    "all next states": to.problems.random_mrp(9, 9, 1.0, seed=3),
    "one state": FiniteMRP([[1.0]], [[2.0]]),
    "episodes": to.problems.random_walk(),
    "episodes that begin anywhere": ending([0.1, 0.0, 0.3, 0.2, 0.0, 0.4]),
    "episodes that begin in one state": ending(4),
}
OFF_POLICY = {
    "continuing": to.problems.random_mdp(20, 3, 4, 0.2, seed=3),
    "off-policy episodes": to.problems.collision(),
    "actions of one policy alone": to.problems.baird(),
}


def parts(problem, steps, seed):
    return (off_policy if problem in OFF_POLICY.values() else on_policy)(problem, steps, seed)


@pytest.mark.parametrize("problem", [*ON_POLICY.values(), *OFF_POLICY.values()], ids=[*ON_POLICY, *OFF_POLICY])
@pytest.mark.parametrize("loading", [0, 10**9], ids=["compiled", "plain"])
def test_runs_are_those_of_a_loop_with_bisect(problem, loading, monkeypatch):
    monkeypatch.setattr(chain, "MAX_PLAIN_STEPS", loading)
    for seed, steps in enumerate((1, 700, 700)):
        found, expected = problem.trajectory(steps, [7, seed]), parts(problem, steps, [7, seed])
        assert len(found) == len(expected)
        for part, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part, wanted)  # bit for bit


class Given:
    """A source of chosen numbers instead of random ones."""

    def __init__(self, choices):
        self.choices = choices

    def random(self, size):
        return np.array(self.choices)

    def normal(self, size):
        return np.zeros(size)


def outcomes(shares, choices, **rest):
    """What is chosen in state 0 of a process that always returns to it."""
    shares = np.array([shares, *([[1.0] + [0.0] * (len(shares) - 1)] * (len(shares) - 1))])
    return [int(chain.MarkovChain(shares, len(shares), **rest).sample(1, 0, Given([choice]))[1][0]) for choice in choices]


@pytest.mark.parametrize("loading", [0, 10**9], ids=["compiled", "plain"])
def test_a_choice_on_a_boundary_belongs_to_the_outcome_after_it(loading, monkeypatch):
    monkeypatch.setattr(chain, "MAX_PLAIN_STEPS", loading)
    below, above = np.nextafter(0.25, 0.0), np.nextafter(0.25, 1.0)
    assert outcomes([0.0, 0.25, 0.0, 0.75, 0.0], [0.0, below, 0.25, above, np.nextafter(1.0, 0.0)]) == [1, 1, 3, 3, 3]


def test_what_the_probabilities_lack_to_1_goes_to_the_last_possible_outcome_or_to_the_one_that_is_named():
    shares = [0.1] * 3 + [0.7 - 1e-12, 0.0]
    beyond = 1.0 - 1e-13
    assert outcomes(shares, [beyond]) == [3]
    assert outcomes(shares, [beyond], rest=4) == [4]
    mrp = FiniteMRP(np.vstack((shares, np.eye(5)[1:])), np.zeros((5, 5)))
    assert outcomes(shares, [0.5, beyond], rest=4) == [
        bisect(np.cumsum(mrp.transitions[0])[:-1].tolist(), c) for c in (0.5, beyond)
    ]


# --- One process, several features ----------------------------------------------------------------


def test_problems_with_the_same_process_compute_its_answers_once(monkeypatch):
    solved = []
    for name in ("lstsq", "solve", "cond", "matrix_rank"):
        solve = getattr(np.linalg, name)
        monkeypatch.setattr(
            np.linalg, name, lambda *given, _solve=solve, _name=name: solved.append(_name) or _solve(*given)
        )
    mrp = to.problems.random_mrp(10, 3, 0.1, seed=1)
    seen = [mrp.with_features(features) for features in (np.eye(10), 2.0 * np.eye(10))]
    for each in (*seen, seen[0].with_features(np.eye(10)), mrp):
        assert each.values is mrp.values
        assert each.stationary is mrp.stationary
        assert each.differential_values is mrp.differential_values
        assert each.fingerprint == mrp.fingerprint
    assert sorted(solved) == ["cond", "lstsq", "matrix_rank", "solve", "solve"]
    np.testing.assert_allclose(seen[1].lms_weights, mrp.lms_weights / 2.0)


@pytest.mark.parametrize(
    "problem", [ON_POLICY["episodes"], OFF_POLICY["off-policy episodes"]], ids=["on-policy", "off-policy"]
)
def test_a_run_may_have_no_steps_and_not_fewer(problem):
    assert [len(part) for part in problem.trajectory(0)][:3] == [1, 0, 0]
    with pytest.raises(ValueError, match="negative"):
        problem.trajectory(-1)
