"""The paper's theory as tests, each with the statement that it tests.

Statements are those of van Seijen, Mahmood, Pilarski, Machado and Sutton, *True Online Temporal-Difference Learning*,
JMLR 17(145), 2016.
"""

from typing import NamedTuple

import numpy as np
import pytest

import trueonline as to
from tests.forward.test_family_definitions import assert_same, differ
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


def followed(learner, stream: Stream) -> np.ndarray:
    """The learner's weights after every transition."""
    learner.start(stream.x[0])
    result = []
    for t, reward in enumerate(stream.rewards):
        learner.update(float(reward), stream.x[t + 1], float(stream.discounts[t]), float(stream.trace_decays[t]))
        result.append(learner.weights)
    return np.array(result)


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
