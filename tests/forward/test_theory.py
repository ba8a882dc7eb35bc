"""The paper's theory as tests, each with the statement that it tests.

Statements are those of van Seijen, Mahmood, Pilarski, Machado and Sutton, *True Online Temporal-Difference Learning*,
JMLR 17(145), 2016.
"""

from typing import NamedTuple

import numpy as np
import pytest

import trueonline as to
from tests.oracles import prediction as naive
from trueonline.forward import interim_lambda_return, lambda_return, n_step_returns

EVERY_METHOD = (to.AccumulateTD, to.ReplaceTD, to.TrueOnlineTD, to.OnlineLambdaReturn)


class Stream(NamedTuple):
    """T transitions. Episodes end where γ = 0."""

    x: np.ndarray  # φ_0, …, φ_T
    rewards: np.ndarray
    discounts: np.ndarray
    trace_decays: np.ndarray


def drawn(seed: int, steps: int, n: int, binary: bool = False, ends: tuple[int, ...] = ()) -> Stream:
    """Random features, rewards, γ and λ; an episode ends with each of the transitions `ends`."""
    rng = np.random.default_rng(seed)
    x = (rng.random((steps + 1, n)) < 0.4).astype(float) if binary else rng.normal(size=(steps + 1, n)) / np.sqrt(n)
    discounts = rng.uniform(0.5, 1.0, size=steps)
    discounts[list(ends)] = 0.0
    return Stream(x, rng.normal(size=steps), discounts, rng.uniform(0.3, 1.0, size=steps))


def followed(learner, stream: Stream, what: str = "weights") -> np.ndarray:
    """The learner's weights (or trace) after every transition."""
    learner.start(stream.x[0])
    result = []
    for t, reward in enumerate(stream.rewards):
        learner.update(float(reward), stream.x[t + 1], float(stream.discounts[t]), float(stream.trace_decays[t]))
        result.append(getattr(learner, what))
    return np.array(result)


def assert_same(actual, wanted, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(actual, wanted, rtol=0.0, atol=tolerance * np.abs(wanted).max())


def differ(actual, wanted) -> bool:
    return bool(np.abs(actual - wanted).max() > 1e-3 * np.abs(wanted).max())


# --- Theorem 1 (section 3.1, proof in Appendix A) -------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("constant", [True, False], ids=["γ and λ as printed", "γ and λ of every state"])
@pytest.mark.parametrize("forward_class", [to.OnlineLambdaReturn, to.TrueOnlineTD])
def test_theorem_1_accumulate_td_approaches_the_online_forward_view_in_proportion_to_the_step_size(
    forward_class, constant, seed
):
    """‖w_t^td − w_t^λ‖ / ‖w_t^td − w_0‖ = O(α) / (C + O(α)) with C = ‖Σ_i Δ_i^t‖, at all times t, if C ≠ 0.

    So the ratio halves with α, ever more exactly, and ‖w_t^td − w_0‖ / α becomes C. Δ_i^t is (Ḡ_i^{λ|t} − w_0ᵀφ_i)φ_i,
    where Ḡ takes all its values from w_0.
    """
    steps, n = 12, 4
    stream = drawn(seed, steps, n)
    if constant:
        stream = stream._replace(discounts=np.full(steps, 0.9), trace_decays=np.full(steps, 0.8))
    w_0 = np.random.default_rng(seed + 100).normal(size=n)
    alphas = 2.0 ** -np.arange(7, 15)
    ratios, moved = np.empty((2, len(alphas), steps))
    for k, alpha in enumerate(alphas):
        w_td = followed(to.AccumulateTD(n, alpha, 0.5, 0.5, initial_weights=w_0), stream)
        w_lambda = followed(forward_class(n, alpha, 0.5, 0.5, initial_weights=w_0), stream)
        moved[k] = np.linalg.norm(w_td - w_0, axis=1)
        ratios[k] = np.linalg.norm(w_td - w_lambda, axis=1) / moved[k]

    episode = naive.Episode(*stream, alphas=())
    first_values = stream.x[1:] @ w_0
    for t in range(2, steps + 1):
        delta = [
            (naive.interim_lambda_return(episode, first_values, i, t) - w_0 @ stream.x[i]) * stream.x[i] for i in range(t)
        ]
        C = np.linalg.norm(np.sum(delta, axis=0))
        assert C > 0.01, "the theorem's condition does not hold: choose another stream"
        off = np.abs(moved[:, t - 1] / alphas / C - 1.0)
        assert off[-1] < 0.01
        assert off[-1] < off[0] / 32.0  # O(α): α itself fell by 128

        ratio = ratios[:, t - 1]
        assert ratio[0] > 1e-6, "no difference to begin with: nothing is tested"
        halving = ratio[1:] / ratio[:-1]
        assert abs(halving[-1] - 0.5) < 2e-3
        assert ratio[-1] < ratio[0] / 100.0
    np.testing.assert_allclose(ratios[:, 0], 0.0, atol=1e-9)  # the first update is the same at any α


# --- Proposition 1 (section 4.2) ------------------------------------------------------------------


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
def test_proposition_1_all_methods_are_one_where_lambda_is_0(method, schedule):
    """For λ = 0 all traces are φ_t, and the δ-correction is 0. TD(0), written out, is the standard."""
    stream = drawn(11, 60, 6, binary=True, ends=(9, 30))._replace(trace_decays=np.zeros(60))
    alphas = np.random.default_rng(11).uniform(0.05, 0.5, size=60) if schedule else np.full(60, 0.2)
    w, td_0 = np.zeros(6), []
    for t, (x, x_next) in enumerate(zip(stream.x, stream.x[1:], strict=False)):
        w = w + alphas[t] * (stream.rewards[t] + stream.discounts[t] * w @ x_next - w @ x) * x
        td_0.append(w)
    step_size = (lambda t: float(alphas[t])) if schedule else 0.2
    assert_same(followed(method(6, step_size, trace_decay=0.0, discount=0.9), stream), np.array(td_0))


def test_where_lambda_is_not_0_no_two_methods_are_the_same():
    """The streams of proposition 1 do tell the methods apart, as soon as λ > 0."""
    stream = drawn(11, 60, 6, binary=True, ends=(9, 30))
    accumulate, replace, true_online, online = (followed(method(6, 0.2, 0.5, 0.5), stream) for method in EVERY_METHOD)
    assert differ(accumulate, replace)
    assert differ(accumulate, true_online)
    assert differ(replace, true_online)
    assert_same(true_online, online)


# --- Proposition 2 (section 4.2) ------------------------------------------------------------------


def no_revisit(kind: str) -> Stream:
    """Four episodes of six transitions, in each of which no feature is active twice."""
    rng = np.random.default_rng(22)
    episodes, length, group = 4, 6, 1 if kind == "tabular" else 3
    n = length * group
    x = np.zeros((episodes * length + 1, n))
    for episode in range(episodes):
        order = rng.permutation(n).reshape(length, group)
        for t, active in enumerate(order):
            x[episode * length + t, active] = rng.normal(size=group) if kind == "real" else 1.0
    steps = episodes * length
    discounts = rng.uniform(0.5, 1.0, size=steps)
    discounts[length - 1 :: length] = 0.0
    return Stream(x, rng.normal(size=steps), discounts, rng.uniform(0.5, 1.0, size=steps))


@pytest.mark.parametrize("kind", ["tabular", "binary", "real"])
@pytest.mark.parametrize("lam", [None, 0.4, 1.0], ids=["λ of every state", "λ = 0.4", "λ = 1"])
def test_proposition_2_all_methods_are_one_where_no_feature_returns(kind, lam):
    """If e_{t−1}^acc[i]·φ_t[i] = 0 for all i and t, then all methods behave the same, for any λ.

    "A domain with tabular features, where a state is never revisited within the same episode" is the paper's example.
    Replacing traces are for binary features; for real-valued ones the other methods are still one.
    """
    stream = no_revisit(kind)
    n, alpha = stream.x.shape[1], 0.3
    if lam is not None:
        stream = stream._replace(trace_decays=np.full(len(stream.rewards), lam))
    wanted = followed(to.AccumulateTD(n, alpha, 0.5, 0.5), stream)
    for method in EVERY_METHOD[1:]:
        if kind != "real" or not method.binary:
            assert_same(followed(method(n, alpha, 0.5, 0.5), stream), wanted)
    td_0 = followed(to.AccumulateTD(n, alpha, 0.5, 0.5), stream._replace(trace_decays=np.zeros(len(stream.rewards))))
    assert differ(wanted, td_0)  # λ does matter here


# --- The one-state example (section 3.2) ----------------------------------------------------------


def value_after_one_episode(method, T: int, alpha: float, V_0: float) -> float:
    """One state that T − 1 times leads to itself with reward 0, and then ends with reward 1. λ = γ = 1."""
    learner = method(1, alpha, trace_decay=1.0, discount=1.0, initial_weights=[V_0])
    learner.start(0)
    for _ in range(T - 1):
        learner.update(0.0, 0)
    learner.update(1.0, None)
    return learner.predict(0)


ONE_STATE = pytest.mark.parametrize(
    ("T", "alpha", "V_0"),
    [(1, 0.3, 0.6), (2, 0.01, 0.0), (7, 0.15, -3.0), (40, 0.15, 0.6), (12, 1.0, 0.0), (3, 1.3, -3.0)],
)


# The pseudo step-size of the whole episode: V_T = V_0 + share·(1 − V_0).
SHARES = {
    to.AccumulateTD: lambda T, alpha: T * alpha,  # it grows without bound
    to.ReplaceTD: lambda T, alpha: alpha,  # the trace never exceeds 1
    **dict.fromkeys(
        (to.OnlineLambdaReturn, to.TrueOnlineTD, to.OfflineLambdaReturn),
        lambda T, alpha: 1.0 - (1.0 - alpha) ** T,  # it stays below 1 while α ≤ 1
    ),
}


@ONE_STATE
@pytest.mark.parametrize("method", SHARES)
def test_one_state(method, T, alpha, V_0):
    wanted = V_0 + SHARES[method](T, alpha) * (1.0 - V_0)
    assert value_after_one_episode(method, T, alpha, V_0) == pytest.approx(wanted, rel=1e-9)


# --- The two-state example (section 3.3) ----------------------------------------------------------
# left —(R = 2)→ right —(R = 0)→ the end, γ = 1: values 2 and 0. One feature, 1 in both states.


def two_states(episodes: int) -> dict:
    """The stream for `run`: the feature is active always, and every second transition ends an episode."""
    return {
        "X": np.zeros(2 * episodes + 1, dtype=int),
        "rewards": np.tile([2.0, 0.0], episodes),
        "discounts": np.tile([1.0, 0.0], episodes),
    }


@pytest.mark.parametrize("lam", [0.0, 0.3, 0.9, 1.0])
def test_two_states_replace_is_td_0_at_every_step_for_every_lambda(lam):
    """Because the single feature is active at all time steps, its trace is always 1."""
    replace = to.ReplaceTD(1, 0.1, trace_decay=lam, discount=1.0)
    td_0 = to.AccumulateTD(1, 0.1, trace_decay=0.0, discount=1.0)
    np.testing.assert_allclose(replace.run(**two_states(200)), td_0.run(**two_states(200)), rtol=1e-13)
    np.testing.assert_allclose(replace.weights, td_0.weights, rtol=1e-13)
    if lam > 0.0:
        accumulate = to.AccumulateTD(1, 0.1, trace_decay=lam, discount=1.0)
        assert differ(accumulate.run(**two_states(200)), td_0.run(**two_states(200)))


# Where one episode leads from w back to w. Accumulate: e = 1, 1 + λ and δ = 2, −(w + 2α), so that
# 2 = (1 + λ)(w + 2α). The λ-return: targets 2 + (1 − λ)w and 0, so that w = (1 − α)(w + 2α − αλw). Replace: as λ = 0.
FIXED_POINTS = {
    to.AccumulateTD: lambda alpha, lam: 2.0 / (1.0 + lam) - 2.0 * alpha,
    to.ReplaceTD: lambda alpha, lam: 2.0 - 2.0 * alpha,
    to.TrueOnlineTD: lambda alpha, lam: 2.0 * (1.0 - alpha) / (1.0 + lam - alpha * lam),  # and so the online λ-return
}


@pytest.mark.parametrize("lam", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("method", FIXED_POINTS)
def test_two_states_each_method_settles_at_its_fixed_point(method, lam):
    """With the figure's α = 0.01. At λ = 1 that is the LMS error of 1, but √2, as for TD(0), for replace TD(λ)."""
    alpha, episodes = 0.01, 2000
    learner = method(1, alpha, trace_decay=lam, discount=1.0, initial_weights=[0.3])
    learner.run(**two_states(episodes))
    wanted = FIXED_POINTS[method](alpha, lam)
    assert learner.weights[0] == pytest.approx(wanted, rel=1e-6)
    if lam == 1.0:
        error = np.sqrt(np.mean((np.array([2.0, 0.0]) - learner.weights[0]) ** 2))
        assert error == pytest.approx(np.sqrt(2.0) if method is to.ReplaceTD else 1.0, abs=0.02)


# --- Returns (section 3.1, Appendix B) ------------------------------------------------------------


def returns_of(seed: int, steps: int = 20) -> tuple[naive.Episode, np.ndarray]:
    """Rewards, γ, λ, and the values that an online λ-return learner had: V(S_{t+1} | w_t)."""
    stream = drawn(seed, steps, 3)
    rng = np.random.default_rng(seed)
    stream.discounts[rng.random(steps) < 0.2] = 1.0
    stream.trace_decays[rng.random(steps) < 0.2] = 1.0
    stream.trace_decays[rng.random(steps) < 0.1] = 0.0
    w = np.vstack((np.zeros(3), followed(to.OnlineLambdaReturn(3, 0.3, 0.5, 0.5), stream)))
    return naive.Episode(*stream, alphas=np.full(steps, 0.3)), np.einsum("ti,ti->t", w[:-1], stream.x[1:])


@pytest.mark.parametrize("seed", range(2))
def test_returns_are_their_definitions(seed):
    """G_k^{(n)}, G_k^{λ|h} and G_k^λ, with γ and λ of every state."""
    episode, values = returns_of(seed)
    R, gamma, lam = episode.rewards, episode.discounts, episode.trace_decays
    T = len(R)
    for k in range(T):
        assert_same(
            n_step_returns(k, T, R, gamma, values),
            np.array([naive.n_step_return(episode, values, k, n) for n in range(1, T - k + 1)]),
        )
        for h in range(k + 1, T + 1):
            wanted = naive.interim_lambda_return(episode, values, k, h)
            assert interim_lambda_return(k, h, R, gamma, lam, values) == pytest.approx(wanted, rel=1e-11, abs=1e-13)
        wanted = naive.lambda_return(episode, values, k)
        assert lambda_return(k, R, gamma, lam, values) == pytest.approx(wanted, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("seed", range(2))
def test_a_longer_horizon_adds_one_discounted_modified_td_error(seed):
    """G_i^{λ|h+1} − G_i^{λ|h} = (∏_{j=i+1}^{h} λ_jγ_j) δ'_h with δ'_h = R_{h+1} + γ_{h+1}w_hᵀφ_{h+1} − w_{h−1}ᵀφ_h.

    Appendix B, where the product is (λγ)^{h−i}.
    """
    episode, values = returns_of(seed)
    R, gamma, lam = episode.rewards, episode.discounts, episode.trace_decays
    for h in range(1, len(R)):
        delta_prime = R[h] + gamma[h] * values[h] - values[h - 1]
        for i in range(h):
            history = (R, gamma, lam, values)
            gained = interim_lambda_return(i, h + 1, *history) - interim_lambda_return(i, h, *history)
            wanted = np.prod(lam[i:h] * gamma[i:h]) * delta_prime
            assert gained == pytest.approx(wanted, rel=1e-9, abs=1e-13)
        assert abs(delta_prime) > 1e-6


def test_the_weights_are_those_of_appendix_b_in_closed_form():
    """w_t = A_0^{t−1}w_init + α Σ_{i=0}^{t−1} A_{i+1}^{t−1}φ_i G_i^{λ|t} with A_i^j = (I − αφ_jφ_jᵀ) ⋯ (I − αφ_iφ_iᵀ)."""
    stream, alpha, w_init = drawn(31, 15, 3), 0.4, np.array([1.0, -2.0, 0.5])
    weights = followed(to.TrueOnlineTD(3, alpha, 0.5, 0.5, initial_weights=w_init), stream)
    before = np.vstack((w_init, weights[:-1]))
    values = np.einsum("ti,ti->t", before, stream.x[1:])
    shrink = [np.eye(3) - alpha * np.outer(x, x) for x in stream.x]
    for t in range(1, 16):
        A, w = np.eye(3), np.zeros(3)
        for i in reversed(range(t)):  # A is A_{i+1}^{t−1} here
            w += alpha * A @ stream.x[i] * interim_lambda_return(i, t, *stream[1:], values)
            A = A @ shrink[i]
        assert_same(weights[t - 1], A @ w_init + w, 1e-11)


@pytest.mark.parametrize("forward_class", [to.OnlineLambdaReturn, to.TrueOnlineTD])
def test_at_lambda_1_online_and_offline_are_one_at_the_end_of_an_episode(forward_class):
    """Section 3.1, footnote: "if λ = 1 there is never a difference because there is no bootstrapping"."""
    ends = (7, 8, 19, 29)
    stream = drawn(41, 30, 4, ends=ends)
    without = stream._replace(trace_decays=np.ones(30))
    online = followed(forward_class(4, 0.3, 0.5, 0.5), without)
    offline = followed(to.OfflineLambdaReturn(4, 0.3, 0.5, 0.5), without)
    assert_same(online[list(ends)], offline[list(ends)])
    assert differ(online[5], offline[5])  # on the way they are not
    online, offline = (followed(c(4, 0.3, 0.5, 0.5), stream) for c in (forward_class, to.OfflineLambdaReturn))
    assert differ(online[list(ends)], offline[list(ends)])  # nor at the end, for other λ


# --- Time-dependent step-sizes (section 6.1) ------------------------------------------------------


@pytest.mark.parametrize("method", [to.TrueOnlineTD, to.OnlineLambdaReturn])
def test_for_a_fixed_step_size_the_trace_e_plus_is_alpha_times_e(method):
    """e⁺_t = αe_t for all t, and the weights are the same."""
    alpha, stream = 0.37, drawn(51, 40, 5)
    fixed, scheduled = (method(5, step_size, 0.5, 0.5) for step_size in (alpha, lambda t: alpha))
    e, e_plus = followed(fixed, stream, "trace"), followed(scheduled, stream, "trace")
    assert_same(e_plus, alpha * e)
    assert_same(scheduled.weights, fixed.weights)
    assert np.abs(e).max() > 0.5


# --- The tabular case (section 6.3) ---------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 1.7])
def test_a_tabular_dutch_trace_update_is_the_average_of_an_accumulating_and_a_replacing_one(alpha):
    """The weight of the former is 1 − α and that of the latter α."""
    rng = np.random.default_rng(63)
    states = rng.integers(4, size=41)
    stream = drawn(64, 40, 4)._replace(x=np.eye(4)[states])
    traces = followed(to.TrueOnlineTD(4, alpha, 0.5, 0.5), stream, "trace")
    revisits = 0.0
    for t in range(1, 40):
        decayed = stream.discounts[t - 1] * stream.trace_decays[t - 1] * traces[t - 1]
        accumulating, replacing = decayed.copy(), decayed.copy()
        accumulating[states[t]] += 1.0
        replacing[states[t]] = 1.0
        np.testing.assert_allclose(traces[t], (1.0 - alpha) * accumulating + alpha * replacing, rtol=1e-12, atol=1e-12)
        revisits = max(revisits, abs(decayed[states[t]]))
    assert revisits > 0.3  # the two updates do differ
