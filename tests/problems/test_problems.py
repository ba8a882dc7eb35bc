"""Problems with known answers, held to answers found another way: by summing, by counting and by simulating."""

import inspect

import numpy as np
import pytest
from scipy import stats

import trueonline as to
from trueonline.problems import ONE_STATE_TERMINATION, FiniteMRP, one_state, random_mrp, random_walk, two_state

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
def test_values_are_the_discounted_sums_of_expected_rewards(mrp):
    np.testing.assert_allclose(mrp.values, values_by_summing(mrp), rtol=1e-9, atol=1e-10)


@every_process
def test_stationary_is_where_a_long_time_leads(mrp):
    np.testing.assert_allclose(mrp.stationary, stationary_by_powers(mrp), atol=1e-10)
    assert mrp.stationary.sum() == pytest.approx(1.0, abs=1e-12)
    assert mrp.is_ergodic


@pytest.mark.parametrize("mrp", [continuing(reward_std=0.5), episodic(reward_std=0.5)], ids=["continuing", "episodic"])
def test_values_are_the_mean_returns_of_a_simulation(mrp):
    rng, k, runs = np.random.default_rng(7), mrp.n_states, 8_000
    for state in range(k):
        here, alive = np.full(runs, state), np.ones(runs, bool)
        returns, discount = np.zeros(runs), 1.0
        for _ in range(150):
            there = (rng.random(runs)[:, None] > np.cumsum(mrp.transitions, axis=1)[here]).sum(axis=1)
            reward = mrp.rewards[here, np.minimum(there, mrp.rewards.shape[1] - 1)] + 0.5 * rng.normal(size=runs)
            returns += np.where(alive, discount * reward, 0.0)
            discount *= mrp.discount
            alive &= there < k
            here = np.where(alive, there, 0)
        standard_error = returns.std() / np.sqrt(runs)
        assert abs(returns.mean() - mrp.values[state]) < 4.5 * standard_error, f"state {state}"


@every_process
def test_lms_weights_solve_the_normal_equations(mrp):
    D, phi = np.diag(stationary_by_powers(mrp)), mrp.features
    left = phi.T @ D @ (values_by_summing(mrp) - phi @ mrp.lms_weights)
    np.testing.assert_allclose(left, 0.0, atol=1e-9)


@every_process
def test_no_other_weights_are_better_than_the_lms_weights(mrp):
    rng, target = np.random.default_rng(8), values_by_summing(mrp)
    least = mean_squared_error(mrp, mrp.lms_weights, target)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(20):
            other = mrp.lms_weights + size * rng.normal(size=mrp.n_features)
            assert mean_squared_error(mrp, other, target) >= least * (1.0 - 1e-12)


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


def test_features_are_tabular_unless_given_and_then_the_weights_are_the_values():
    mrp = continuing()
    np.testing.assert_array_equal(mrp.features, np.eye(6))
    np.testing.assert_allclose(mrp.lms_weights, mrp.values, rtol=1e-9)


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


@every_process
def test_a_sample_has_a_state_more_than_rewards_and_is_the_same_for_the_same_seed(mrp):
    states, rewards = mrp.sample(50, seed=3)
    assert (states.shape, rewards.shape) == ((51,), (50,))
    assert np.issubdtype(states.dtype, np.integer)
    assert states[0] == mrp.start
    assert states.min() >= 0
    assert states.max() < mrp.n_states
    again = mrp.sample(50, seed=3)
    np.testing.assert_array_equal(again[0], states)
    np.testing.assert_array_equal(again[1], rewards)
    np.testing.assert_array_equal(mrp.trajectory(50, np.random.default_rng(3)).states, states)  # a generator will do


def test_another_seed_gives_another_sample():
    mrp = continuing(reward_std=0.1)
    found = {mrp.sample(50, seed=seed)[1].tobytes() for seed in (0, 1, 2, [0, 1], [0, 2], [1, 1])}
    assert len(found) == 6


def test_a_sample_of_no_steps_is_the_start():
    states, rewards = episodic().sample(0)
    assert states.tolist() == [3]
    assert rewards.size == 0


@pytest.mark.parametrize("mrp", [continuing(reward_std=0.3), episodic(reward_std=0.3)], ids=["continuing", "episodic"])
def test_transitions_are_as_frequent_as_their_probabilities(mrp):
    k, steps = mrp.n_states, 60_000
    states, rewards, discounts = mrp.trajectory(steps, seed=11)
    to_ = np.where(discounts == 0.0, k, states[1:])
    for s in range(k):
        visits = (states[:-1] == s).sum()
        for s_next in range(mrp.transitions.shape[1]):
            taken = (states[:-1] == s) & (to_ == s_next)
            p = mrp.transitions[s, s_next]
            assert abs(taken.sum() - visits * p) < 4.5 * np.sqrt(visits * p * (1.0 - p)), (s, s_next)
            around = rewards[taken] - mrp.rewards[s, s_next]
            assert abs(around.mean()) < 4.5 * 0.3 / np.sqrt(taken.sum()), (s, s_next)


def test_the_noise_of_rewards_is_normal_with_the_given_deviation_and_has_no_memory():
    mrp = continuing(reward_std=0.3)
    states, rewards = mrp.sample(20_000, seed=12)
    noise = (rewards - mrp.rewards[states[:-1], states[1:]]) / 0.3
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 4.0 / np.sqrt(noise.size)


def test_without_deviation_rewards_are_their_expectations():
    mrp = continuing()
    states, rewards = mrp.sample(100, seed=1)
    np.testing.assert_array_equal(rewards, mrp.rewards[states[:-1], states[1:]])


def test_an_episode_ends_with_discount_zero_and_the_next_begins_at_the_start():
    mrp = episodic(discount=0.9)
    states, rewards, discounts = mrp.trajectory(5_000, seed=13)
    ended = discounts == 0.0
    assert 100 < ended.sum() < 4_900
    assert set(discounts.tolist()) == {0.0, 0.9}
    assert (states[1:][ended] == mrp.start).all()
    np.testing.assert_array_equal(rewards[ended], mrp.rewards[states[:-1][ended], mrp.n_states])


def test_long_run_frequencies_are_the_stationary_distribution():
    mrp = episodic()
    states, _ = mrp.sample(200_000, seed=14)
    found = np.bincount(states, minlength=5) / states.size
    np.testing.assert_allclose(found, mrp.stationary, atol=0.01)


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


# --- The examples of section 3 --------------------------------------------------------------------


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


def test_an_episode_of_length_t_multiplies_the_error_of_accumulate_td_1_by_1_minus_alpha_t():
    """V_T = V_0 + Tα(1 − V_0), section 3.2."""
    alpha, (_, rewards, discounts) = 0.1, one_state().trajectory(500, seed=4)
    learner = to.AccumulateTD(1, alpha, 1.0, 1.0)
    learner.start([1.0])
    error, length, lengths = 1.0, 0, []
    for reward, discount in zip(rewards, discounts, strict=True):
        learner.update(float(reward), [1.0], float(discount))
        length += 1
        if discount == 0.0:
            error *= 1.0 - alpha * length
            assert 1.0 - learner.weights[0] == pytest.approx(error, rel=1e-9, abs=1e-12)
            lengths.append(length)
            length = 0
    assert len(lengths) > 80
    assert max(lengths) > 5


@pytest.mark.parametrize("episodes", [1, 2, 3])
def test_accumulate_td_1_does_best_on_the_one_state_near_the_0_15_of_the_paper(episodes):
    """The mean of ∏(1 − αT)² over simulated episodes is least at p/(2 − p)."""
    p = ONE_STATE_TERMINATION
    assert p / (2.0 - p) == pytest.approx(0.15, abs=0.015)
    lengths = np.random.default_rng(5).geometric(p, size=(episodes, 400_000))
    alphas = np.linspace(0.05, 0.30, 126)
    errors = [np.mean(np.prod(1.0 - alpha * lengths, axis=0) ** 2) for alpha in alphas]
    best = alphas[np.argmin(errors)]
    assert best == pytest.approx(p / (2.0 - p), abs=0.01)
    assert best == pytest.approx(0.15, abs=0.02)


def test_the_two_states_are_worth_2_and_0_and_the_best_single_weight_is_1():
    mrp = two_state()
    np.testing.assert_allclose(mrp.values, [2.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(mrp.lms_weights, [1.0], rtol=1e-12)
    rms = np.sqrt(np.mean((mrp.values - mrp.features @ mrp.lms_weights) ** 2))
    assert rms == pytest.approx(1.0), "an RMS error of 1, says section 3.3"


def test_td_0_finds_the_weight_2_on_the_two_states():
    """Where E[δφ] = 0: Σ_s d(s) φ(s)(r + φ(s')ᵀw − φ(s)ᵀw) = 0, and nothing follows the end."""
    mrp = two_state()
    A = b = 0.0
    for s in range(2):
        for s_next in range(3):
            p = mrp.stationary[s] * mrp.transitions[s, s_next]
            phi_next = mrp.features[s_next, 0] if s_next < 2 else 0.0
            A += p * mrp.features[s, 0] * (mrp.features[s, 0] - phi_next)
            b += p * mrp.features[s, 0] * mrp.rewards[s, s_next]
    assert b / A == pytest.approx(2.0)
    states, rewards, discounts = mrp.trajectory(20_000, seed=0)
    learner = to.AccumulateTD(1, 0.01, 0.0, 1.0)
    learner.run(mrp.features[states], rewards, discounts)
    assert learner.weights[0] == pytest.approx(2.0, abs=0.05)


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


def test_rewards_of_random_mrps_do_not_depend_on_the_probabilities(many):
    transitions, rewards = many
    there = transitions > 0.0
    correlation = np.corrcoef(transitions[there], rewards[there])[0, 1]
    assert abs(correlation) < 4.0 / np.sqrt(there.sum())


@pytest.mark.parametrize("sigma", [0.0, 0.1, 2.0])
def test_rewards_of_a_random_mrp_scatter_by_sigma(sigma):
    mrp = random_mrp(10, 3, sigma, seed=3)
    states, rewards = mrp.sample(20_000, seed=4)
    noise = rewards - mrp.rewards[states[:-1], states[1:]]
    assert abs(noise.std() - sigma) <= 4.0 * sigma / np.sqrt(2 * noise.size)
    assert abs(noise.mean()) <= 4.0 * sigma / np.sqrt(noise.size)


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"transitions": [[0.5, 0.4], [0.5, 0.5]]}, r"sum to 1, got row 0: \[0.5 0.4\]"),
        ({"transitions": [[0.5, 0.5], [1.5, -0.5]]}, r"probabilities that sum to 1, got row 1"),
        ({"transitions": [[0.5, 0.5], [np.nan, 0.5]]}, "transitions must be a matrix of finite numbers"),
        ({"transitions": [[0.5, 0.5], [np.inf, 0.5]]}, "transitions must be a matrix of finite numbers"),
        ({"transitions": [0.5, 0.5]}, r"transitions must be a matrix of finite numbers, got shape \(2,\)"),
        ({"transitions": [[1.0], [0.5, 0.5]]}, "transitions must be a matrix of numbers"),
        ({"transitions": "half"}, "transitions must be a matrix of numbers, got 'half'"),
        ({"transitions": np.ones((2, 4)) / 4}, r"k × k, or k × \(k \+ 1\) with the end last, got shape \(2, 4\)"),
        ({"transitions": np.ones((2, 1))}, r"k × k, or k × \(k \+ 1\)"),
        ({"transitions": np.empty((0, 0))}, r"k × k, or k × \(k \+ 1\)"),
        ({"transitions": ENDING}, r"rewards must have the shape of transitions, \(2, 3\), got \(2, 2\)"),
        ({"rewards": [1.0, 2.0]}, "rewards must be a matrix of finite numbers"),
        ({"rewards": [[1.0, 2.0], [3.0, np.nan]]}, "rewards must be a matrix of finite numbers"),
        ({"features": [[1.0]]}, r"features must have a row for each of the 2 states, got shape \(1, 1\)"),
        ({"features": np.empty((2, 0))}, "features must have a row for each of the 2 states"),
        ({"features": [1.0, 2.0]}, "features must be a matrix of finite numbers"),
        ({"features": [[1.0], [np.inf]]}, "features must be a matrix of finite numbers"),
        ({"reward_std": -0.1}, "reward_std must be a finite number ≥ 0, got -0.1"),
        ({"reward_std": np.nan}, "reward_std must be a finite number ≥ 0, got nan"),
        ({"reward_std": np.inf}, "reward_std must be a finite number ≥ 0, got inf"),
        ({"reward_std": None}, "reward_std must be a finite number ≥ 0, got None"),
        ({"reward_std": "0.1"}, "reward_std must be a finite number ≥ 0, got '0.1'"),
        ({"reward_std": 0.1j}, "reward_std must be a finite number ≥ 0"),
        ({"reward_std": [0.1]}, "reward_std must be a finite number ≥ 0"),
        ({"discount": 1.5}, r"discount must be a number in \[0, 1\], got 1.5"),
        ({"discount": -0.1}, "discount must be a number in"),
        ({"discount": np.nan}, "discount must be a number in"),
        ({"discount": "0.9"}, "discount must be a number in"),
        ({"start": 2}, "start must be a state from 0 to 1, got 2"),
        ({"start": -1}, "start must be a state from 0 to 1, got -1"),
        ({"start": 0.0}, "start must be a state from 0 to 1, got 0.0"),
        ({"start": True}, "start must be a state from 0 to 1, got True"),
        ({"start": None}, "start must be a state from 0 to 1, got None"),
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
        ((3, 2, np.nan), "must be a finite number ≥ 0, got nan"),
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
@pytest.mark.parametrize("seed", [[1, 2, 3], (1,), np.arange(3), range(2)], ids=str)
def test_a_list_of_seeds_is_refused(draw, seed):
    """NumPy would take it for a single seed, and one process would stand for several."""
    with pytest.raises(ValueError, match=r"seed must be a whole number ≥ 0, got .*; call once for each seed"):
        draw(seed)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_seeds_that_are_none_are_refused(seed):
    with pytest.raises(ValueError, match="seed must be a whole number ≥ 0"):
        random_mrp(10, 3, 0.1, seed=seed)


def test_numpys_own_seeds_are_taken():
    """A sequence of numbers is one seed as a SeedSequence, and the same as NumPy makes of a list."""
    sequence, generator = np.random.SeedSequence([31, 0]), np.random.default_rng([31, 0])
    np.testing.assert_array_equal(
        random_mrp(10, 3, 0.1, seed=sequence).transitions, random_mrp(10, 3, 0.1, seed=generator).transitions
    )
    np.testing.assert_array_equal(
        random_mrp(10, 3, 0.1, seed=np.int64(4)).rewards, random_mrp(10, 3, 0.1, seed=4).rewards
    )


@pytest.mark.parametrize("discount", [1.01, -0.01, np.nan])
def test_random_mrps_with_a_bad_discount_are_refused(discount):
    with pytest.raises(ValueError, match=r"discount must be a number in \[0, 1\]"):
        random_mrp(3, 2, 0.1, discount=discount)


@pytest.mark.parametrize("mrp", [continuing(), random_walk()])
def test_other_features_must_fit_the_states(mrp):
    with pytest.raises(ValueError, match="features must have a row for each"):
        mrp.with_features(np.eye(3))


# --- Features -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 10])
def test_tabular_features_tell_states_apart(k):
    phi = to.features.tabular(k)
    assert phi.shape == (k, k)
    for s in range(k):
        assert phi[s].tolist() == [float(i == s) for i in range(k)]


def test_the_binary_code_is_the_papers_example():
    code = to.features.binary_code(10)
    assert code[:3].tolist() == [[0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, 1]]
    assert code[9].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(("k", "length"), [(10, 4), (100, 7), (1, 1), (7, 3), (8, 4)])
def test_the_binary_code_is_the_states_number_from_1_in_digits(k, length):
    code = to.features.binary_code(k)
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


def test_the_binary_code_takes_numpy_integers():
    np.testing.assert_array_equal(to.features.binary_code(np.int64(10)), to.features.binary_code(10))


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
