"""Policies: their probabilities, ties, schedules and errors."""

from typing import Any

import numpy as np
import pytest

from tests.control.agent_streams import every_agent
from trueonline.control import EpsilonGreedy, Greedy, Softmax, TrueOnlineSarsa, Uniform


def counts(policy, values, times=10_000, seed=0, t=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.array(values, float)
    return np.bincount([policy(values, rng, t) for _ in range(times)], minlength=len(values))


def assert_probabilities(found: np.ndarray, wanted: Any) -> None:
    """Every count is within 5σ of its expectation; what is impossible never happens."""
    wanted, times = np.array(wanted, float), found.sum()
    deviation = np.sqrt(times * wanted * (1.0 - wanted))
    assert np.all(np.abs(found - times * wanted) <= 5.0 * deviation)


def test_epsilon_greedy_explores_as_often_as_it_says():
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        wanted = np.full(4, epsilon / 4.0) + np.array([0, 0, 1.0 - epsilon, 0])
        assert_probabilities(counts(EpsilonGreedy(epsilon), [1.0, -2.0, 3.0, 2.9]), wanted)
    assert_probabilities(counts(EpsilonGreedy(0.2), [1.0, 1.0, 0.0]), [0.2 / 3 + 0.4, 0.2 / 3 + 0.4, 0.2 / 3])


def test_the_default_policy_is_epsilon_greedy_with_a_tenth():
    assert TrueOnlineSarsa(1, 2, 0.1, 0.9, 0.9).policy == EpsilonGreedy(0.1)


def test_ties_are_broken_evenly():
    assert_probabilities(counts(Greedy(), [2.0, 1.0, 2.0, 2.0]), [1 / 3, 0, 1 / 3, 1 / 3])
    assert_probabilities(counts(Greedy(), np.zeros(7)), np.full(7, 1 / 7))
    assert_probabilities(counts(Greedy(), [-5.0, -5.0 - 1e-10, -5.0 - 1e-8]), [0.5, 0.5, 0.0])  # relative: 5e-10
    assert_probabilities(counts(Greedy(), [1e12, 1e12 - 10.0, 1e12 - 1e3]), [0.5, 0.5, 0.0])
    assert_probabilities(counts(Greedy(), [0.0, -0.5e-10, -1e-9]), [0.5, 0.5, 0.0])  # absolute near 0
    assert_probabilities(counts(Greedy(0.1), [1.0, 0.95, 0.85]), [0.5, 0.5, 0.0])
    assert_probabilities(counts(Greedy(0.0), [1.0, 1.0, 1.0 - 1e-15]), [0.5, 0.5, 0.0])
    assert_probabilities(counts(EpsilonGreedy(0.0, tolerance=0.1), [1.0, 0.95, 0.85]), [0.5, 0.5, 0.0])


def test_uniform_does_not_look():
    assert_probabilities(counts(Uniform(), [5.0, -1e9, np.nan, 0.0, 0.0]), np.full(5, 0.2))


@pytest.mark.parametrize("temperature", [0.2, 1.0, 30.0])
def test_softmax_has_the_probabilities_of_its_formula(temperature):
    values = np.array([0.3, -0.2, 0.5, 0.5])
    shares = np.exp(values / temperature) / np.exp(values / temperature).sum()
    for shift in (0.0, 1e6):  # the same for any shift of the values, however large
        found = counts(Softmax(temperature), values + shift)
        assert_probabilities(found, shares)
        chi_squared = np.sum((found - found.sum() * shares) ** 2 / (found.sum() * shares))
        assert chi_squared < 28.0  # 3 degrees of freedom: beyond 28 in 4 of a million cases


def test_softmax_with_extreme_values():
    assert_probabilities(counts(Softmax(1e-300), [1.0, 2.0, 2.0], 2000), [0.0, 0.5, 0.5])
    assert_probabilities(counts(Softmax(1.0), [-1e308, 1e308], 100), [0.0, 1.0])
    assert_probabilities(counts(Softmax(1.0), [0.0, -np.inf], 100), [1.0, 0.0])


@pytest.mark.parametrize("policy", [Greedy(), EpsilonGreedy(0.3), Softmax(0.5), Uniform(), Greedy(0.0)], ids=repr)
@pytest.mark.parametrize(
    "values",
    [
        [np.nan, 1.0, 2.0],
        [1.0, np.nan, 2.0],
        [np.nan, np.nan, np.nan],
        [np.inf, 0.0, 1.0],
        [np.inf, np.inf, -np.inf],
        [-np.inf, -np.inf, -np.inf],
        [np.nan, np.inf, 0.0],
    ],
)
def test_values_that_are_not_finite_do_not_crash_a_policy(policy, values):
    found = counts(policy, values, 300)
    assert found.sum() == 300
    assert len(found) == 3
    if not np.isfinite(values).any():
        assert (found > 0).all() or values == [np.inf, np.inf, -np.inf]


def test_a_greedy_action_is_a_number():
    assert_probabilities(counts(Greedy(), [np.nan, 1.0, np.nan, 2.0], 100), [0, 0, 0, 1])
    assert_probabilities(counts(Greedy(), [-np.inf, -1e300], 100), [0, 1])


@every_agent
def test_an_agent_that_diverged_still_acts(agent_class):
    for policy in (Greedy(), EpsilonGreedy(0.2), Softmax(1.0), Uniform()):
        agent = agent_class(2, 3, 1e200, 1.0, 1.0, policy, seed=1, initial_weights=np.full((2, 3), 1e200))
        agent.start(0)
        for t in range(30):
            assert 0 <= agent.step(1e300, t % 2) < 3
        assert agent.diverged
        agent.end(1.0)


@every_agent
def test_schedules_are_told_how_many_transitions_there_were(agent_class):
    told: dict[str, list] = {"policy": [], "ε": [], "τ": [], "α": []}

    def note(name, value):
        return lambda t: told[name].append(t) or value

    def policy(values, rng, t):
        told["policy"].append(t)
        return EpsilonGreedy(note("ε", 0.5))(values, rng, t) and Softmax(note("τ", 0.5))(values, rng, t)

    agent = agent_class(2, 2, note("α", 0.1), 0.9, 0.9, policy, seed=0)
    agent.start(0)  # t = 0
    for _ in range(3):
        agent.step(1.0, 1)  # t = 1, 2, 3
    agent.truncate(1.0, 0)  # t = 4: an action to bootstrap from
    agent.start(0)  # t = 4
    agent.step(1.0, 1)  # t = 5
    agent.end(1.0)
    agent.values(0)
    agent.start(1)  # t = 6
    assert told["policy"] == told["ε"] == [0, 1, 2, 3, 4, 4, 5, 6]
    assert set(told["τ"]) <= set(told["policy"])
    assert told["α"] == [0, 1, 2, 3, 4, 5]
    assert agent.steps == 6


def test_the_greedy_action_is_taken_more_and_more_often():
    policy = EpsilonGreedy(lambda t: 1.0 / (1.0 + t))
    assert_probabilities(counts(policy, [0.0, 1.0], t=0), [0.5, 0.5])
    assert_probabilities(counts(policy, [0.0, 1.0], t=9), [0.05, 0.95])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EpsilonGreedy(1.1), r"epsilon must be a number in \[0, 1\], got 1.1"),
        (lambda: EpsilonGreedy(-0.1), "epsilon must be"),
        (lambda: EpsilonGreedy(np.nan), "epsilon must be"),
        (lambda: EpsilonGreedy(True), "epsilon must be"),
        (lambda: EpsilonGreedy("0.1"), "epsilon must be"),
        (lambda: EpsilonGreedy(0.1, tolerance=-1.0), "tolerance must be a finite number ≥ 0, got -1.0"),
        (lambda: Greedy(np.inf), "tolerance must be"),
        (lambda: Softmax(0.0), "temperature must be a finite number > 0, got 0.0"),
        (lambda: Softmax(np.inf), "temperature must be"),
        (lambda: TrueOnlineSarsa(2, 2, 0.1, 0.9, 0.9, "greedy"), r"policy must be callable as policy\(values, rng, t\)"),
        (
            lambda: TrueOnlineSarsa(2, 2, 0.1, 0.9, 0.9, EpsilonGreedy),
            "got the class EpsilonGreedy; make an object of it",
        ),
        (
            lambda: TrueOnlineSarsa(2, 2, 0.1, 0.9, 0.9, lambda v: 0),
            r"policy\(values, rng, t\), got one that takes \(v\)",
        ),
    ],
)
def test_bad_policies_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("policy", [Greedy(), EpsilonGreedy(0.5), Softmax(1.0), Uniform()], ids=repr)
def test_values_are_one_number_for_each_action(policy):
    rng = np.random.default_rng(0)
    for bad in (None, [], np.zeros((1, 2)), np.array(["a"]), np.ma.masked_array([0.0, 1.0], [True, False])):
        for call in (lambda values: policy(values, rng, 0), lambda values: policy.probabilities(values, 0)):
            with pytest.raises(ValueError, match="values must"):
                call(bad)
    assert policy([0, 1], rng, 0) in (0, 1)
    np.testing.assert_array_equal(policy.probabilities([0, 1], 0), policy.probabilities(np.array([0.0, 1.0]), 0))
