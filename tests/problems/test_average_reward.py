"""Average-reward problems, held to answers found another way: by summing, by iterating and by simulating."""

import numpy as np
import pytest

from tests.oracles import average_reward as naive
from trueonline.problems import AccessControl, AverageReward, FiniteMRP, random_mrp, random_walk

CYCLE = FiniteMRP([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0, 3, 0], [0, 0, 0], [0, 0, 0]], discount=0.5)
SPREAD = FiniteMRP([[0, 0.5, 0.5], [0.3, 0, 0.7]], [[0, 1, 4], [2, 0, 0]], start=[0.2, 0.8])
TRANSIENT = FiniteMRP([[0.5, 0.5, 0], [0, 0.2, 0.8], [0, 1, 0]], [[9, 9, 0], [0, 1, 2], [0, 3, 0]])
PROCESSES = {
    "random": random_mrp(8, 3, 0.1, seed=1),
    "cycle": CYCLE,
    "transient state": TRANSIENT,
    "walk, episode after episode": random_walk(5),
    "episodes that begin in several states": SPREAD,
}


@pytest.mark.parametrize("mrp", PROCESSES.values(), ids=PROCESSES.keys())
def test_rate_and_differential_values_are_those_of_summing(mrp):
    k = mrp.n_states
    P = mrp.transitions[:, :k].copy()
    starts = np.eye(k)[mrp.start] if np.ndim(mrp.start) == 0 else mrp.start
    P += mrp.transitions[:, k:].sum(axis=1, keepdims=True) * starts
    r = (mrp.transitions * mrp.rewards).sum(axis=1)
    rate = naive.reward_rate(P, r)
    assert mrp.reward_rate == pytest.approx(rate, abs=1e-3)
    np.testing.assert_allclose(
        np.diff(mrp.differential_values), np.diff(naive.differential_values(P, r, mrp.reward_rate)), atol=1e-9
    )
    assert mrp.stationary @ mrp.differential_values == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(mrp.differential_values, r - mrp.reward_rate + P @ mrp.differential_values, atol=1e-12)


def test_the_discount_does_not_matter_and_features_do_not_either():
    one, other = (random_mrp(8, 3, 0.1, discount=discount, seed=1) for discount in (0.5, 1.0))
    np.testing.assert_array_equal(one.differential_values, other.differential_values)
    assert one.with_features(np.ones((8, 2))).reward_rate == one.reward_rate


def test_a_process_in_parts_has_no_rate():
    parts = FiniteMRP(np.eye(2), np.eye(2))
    with pytest.raises(ValueError, match="more than one stationary distribution"):
        AverageReward(parts)
    with pytest.raises(ValueError, match="process must be a FiniteMRP, got 3"):
        AverageReward(3)


def test_the_error_leaves_out_constants():
    problem = AverageReward(PROCESSES["random"])
    assert problem.error(problem.values + 17.0) == pytest.approx(0.0, abs=1e-12)
    assert problem.error(problem.lms_weights) == pytest.approx(0.0, abs=1e-12)
    w = np.random.default_rng(0).normal(size=8)
    d, off = problem.process.stationary, w - problem.values
    variance = sum(d[s] * (off[s] - d @ off) ** 2 for s in range(8))
    assert problem.error(w) ** 2 == pytest.approx(variance)
    away = w - problem.lms_weights
    assert away @ problem.metric @ away == pytest.approx(variance)


def test_no_weights_do_better_than_the_lms_weights():
    problem = AverageReward(PROCESSES["random"].with_features(np.random.default_rng(1).normal(size=(8, 3))))
    least = problem.error(problem.lms_weights)
    rng = np.random.default_rng(2)
    assert all(problem.error(problem.lms_weights + rng.normal(size=3) * size) > least for size in (1e-3, 0.1, 1.0))
    assert problem.discount == 1.0
    assert repr(problem) == "AverageReward(FiniteMRP(8 states, 3 features, discount=0.99))"


def test_its_trajectories_are_those_of_the_process_without_ends():
    problem = AverageReward(random_walk(5))
    run, own = problem.trajectory(200, 3), random_walk(5).trajectory(200, 3)
    np.testing.assert_array_equal(run.states, own.states)
    np.testing.assert_array_equal(run.rewards, own.rewards)
    assert (run.discounts == 1.0).all()
    assert (own.discounts == 0.0).any()
    assert problem.fingerprint != problem.process.fingerprint


# --- Access control -----------------------------------------------------------------------------------


def test_the_queue_is_solved():
    queue = AccessControl()
    rate, greedy = naive.relative_value_iteration(queue.transitions, queue.rewards)
    assert queue.optimal_reward_rate == pytest.approx(rate, rel=1e-10)
    matters = np.arange(44) >= 4  # without a free server both actions are the same
    np.testing.assert_array_equal(queue.optimal_policy[matters], greedy[matters])
    explored = queue.reward_rate(0.05 + 0.9 * np.eye(2)[queue.optimal_policy])
    assert queue.reward_rate(np.ones(44, int)) < explored < queue.optimal_reward_rate


def test_exact_rates_are_those_of_a_simulation_server_by_server():
    servers = 3
    queue = AccessControl(servers, (1.0, 5.0), 0.3)
    policy = [int(s % 2 == 1 or s // 2 == servers) for s in range(queue.n_states)]  # the cheap only if all are free
    simulated = naive.queue_simulated(
        servers, (1.0, 5.0), 0.3, lambda free, priority: priority == 1 or free == servers, 40_000, 0
    )
    assert queue.reward_rate(policy) == pytest.approx(simulated, rel=0.03)


def test_steps_have_the_probabilities_of_the_model():
    queue, rng = AccessControl(3, (1.0, 5.0), 0.3), np.random.default_rng(2)
    for state, action in ((0, 1), (3, 1), (3, 0), (7, 1)):
        counts = np.zeros(queue.n_states)
        for _ in range(20_000):
            reward, there = queue.step(state, action, rng)
            assert reward == queue.rewards[state, action]
            counts[there] += 1
        np.testing.assert_allclose(counts / 20_000, queue.transitions[state, action], atol=0.02)
    np.testing.assert_allclose(queue.transitions.sum(axis=2), 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"servers": 0}, "servers must be a whole number"),
        ({"priorities": []}, "priorities must be at least one number"),
        ({"priorities": [1.0, np.nan]}, r"priorities\[1\] must be a finite number"),
        ({"free_probability": 1.5}, r"free_probability must be a number in \[0, 1\]"),
        ({"free_probability": 0.0}, "free_probability must be above 0"),
    ],
)
def test_impossible_queues_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        AccessControl(**arguments)


def test_impossible_steps_and_policies_are_refused():
    queue = AccessControl()
    for state, action in ((44, 0), (-1, 0), (0, 2)):
        with pytest.raises(ValueError, match="state must be from 0 to 43 and action 0 or 1"):
            queue.step(state, action, np.random.default_rng(0))
    for policy in (np.ones(43, int), np.full(44, 2), np.ones((44, 3))):
        with pytest.raises(ValueError, match="policy must be 44 actions"):
            queue.reward_rate(policy)
    with pytest.raises(ValueError, match=r"policy\[0\] must be probabilities"):
        queue.reward_rate(np.ones((44, 2)))
    assert repr(queue) == "AccessControl(10 servers, priorities 1, 2, 4, 8, free_probability=0.06)"
