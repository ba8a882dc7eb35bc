"""The γ-return and other averages of n-step returns, against their formulas by explicit loops."""

from functools import partial

import numpy as np
import pytest

import trueonline as to
from tests.forward.test_family_definitions import STREAMS, assert_same, followed, made, weights_0
from tests.oracles.prediction import averaged_return
from trueonline.derivation import views
from trueonline.forward import ComplexReturn, GammaReturn, NStepReturn, OmegaReturn
from trueonline.forward.interim_returns import gamma_shares, omega_shares

N, T = 4, 40
LEARNERS = [GammaReturn, ComplexReturn, NStepReturn, OmegaReturn]
SHARES = (0.25, 0.0, 0.5, 0.25)
COVARIANCE = (0.9 ** np.abs(np.subtract.outer(range(5), range(5))) * np.sqrt(np.outer(range(1, 6), range(1, 6)))).tolist()


# --- The shares -----------------------------------------------------------------------------------


def naive_gamma_shares(gammas):
    """1 / Σ_{i=1}^{n} (∏_{j=1}^{i−1} γ_j)², over their sum."""
    inverse = []
    for n in range(1, len(gammas) + 1):
        variance = 0.0
        for i in range(1, n + 1):
            coefficient = 1.0
            for j in range(1, i):
                coefficient *= gammas[j - 1]
            variance += coefficient**2
        inverse.append(1.0 / variance)
    return [each / sum(inverse) for each in inverse]


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_gamma_shares_with_a_constant_discount_are_those_of_the_paper(gamma, length):
    """w(n, L) = (Σ_{i=1}^{n} γ^{2(i−1)})^{−1} / Σ_{m=1}^{L} (Σ_{i=1}^{m} γ^{2(i−1)})^{−1}."""
    model = [1.0 / sum(gamma ** (2 * (i - 1)) for i in range(1, n + 1)) for n in range(1, length + 1)]
    expected = [each / sum(model) for each in model]
    np.testing.assert_allclose(gamma_shares(np.full(length, gamma)), expected, rtol=1e-13)
    np.testing.assert_allclose(naive_gamma_shares([gamma] * length), expected, rtol=1e-13)


def test_gamma_shares_depend_on_all_discounts_but_the_last():
    gammas = np.array([0.9, 0.2, 1.0, 0.7])
    np.testing.assert_allclose(gamma_shares(gammas), naive_gamma_shares(gammas), rtol=1e-13)
    np.testing.assert_array_equal(gamma_shares(np.array([0.9, 0.2, 1.0, 0.0])), gamma_shares(gammas))
    assert not np.allclose(gamma_shares(gammas[::-1]), gamma_shares(gammas))


def test_omega_shares_vary_least():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(6, 6))
    covariance = root @ root.T
    shares = omega_shares(covariance)
    assert shares.sum() == pytest.approx(1.0)
    least = shares @ covariance @ shares
    for _ in range(20):
        other = shares + rng.normal(size=6)
        other += (1.0 - other.sum()) / 6
        assert other @ covariance @ other > least


# --- The learners, by explicit loops --------------------------------------------------------------


def of_capacity(shares, capacity):
    return lambda gammas: shares(gammas[:capacity])


def naive_given(gammas):
    known = list(SHARES[: len(gammas)])
    known[-1] += sum(SHARES[len(gammas) :])
    return known


def naive_omega(gammas):
    length = min(len(gammas), len(COVARIANCE))
    inverse = np.linalg.inv(np.array(COVARIANCE)[:length, :length])
    return inverse.sum(axis=1) / inverse.sum()


CASES = {
    "γ-return": (GammaReturn, {}, naive_gamma_shares),
    "γ-return of capacity 3": (GammaReturn, {"capacity": 3}, of_capacity(naive_gamma_shares, 3)),
    "given shares": (ComplexReturn, {"shares": SHARES}, naive_given),
    "five steps": (
        NStepReturn,
        {"n": 5},
        lambda gammas: [float(n == min(5, len(gammas))) for n in range(1, len(gammas) + 1)],
    ),
    "Ω-return": (OmegaReturn, {"covariance": COVARIANCE}, naive_omega),
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("offline", [False, True], ids=["online", "offline"])
@pytest.mark.parametrize("case", CASES)
def test_learners_equal_their_definition(case, offline, stream):
    """Of λ, which differs from step to step, nothing is taken."""
    kind, options, shares = CASES[case]
    episodes, w_0 = STREAMS[stream], weights_0(2)
    found = followed(made(kind, episodes, w_0, offline=offline, **options), episodes)
    assert_same(*found, list(averaged_return(episodes, w_0, shares, offline=offline)))


def test_the_gamma_return_is_the_view_that_derive_refuses():
    gamma = 0.8
    X, rewards = np.random.default_rng(3).normal(size=(T + 1, N)), np.random.default_rng(4).normal(size=T)
    learner = GammaReturn(N, 0.1, 0.0, gamma)
    learner.start(X[0])
    values, h = [], 9
    for t in range(h):
        values.append(learner.predict(X[t + 1]))
        learner.update(rewards[t], X[t + 1])
    w = np.zeros(N)
    for k in range(h):
        target = views.gamma_return(k, h, [None, *rewards], lambda t, s: values[s - 1], gamma)
        w += 0.1 * (target - w @ X[k]) * X[k]
    np.testing.assert_allclose(learner.weights, w, rtol=1e-12)


# --- What they cost -------------------------------------------------------------------------------


def test_the_history_grows_with_the_episode_unless_there_is_a_reach():
    X = np.random.default_rng(10).normal(size=(T + 1, N))
    lengths = {}
    for case, (kind, options, _) in CASES.items():
        learner = kind(N, 0.01, 0.0, 0.9, **options)
        learner.start(X[0])
        seen = []
        for t in range(T):
            learner.update(1.0, X[t + 1])
            seen.append(len(learner.x))
        lengths[case] = seen
    assert lengths.pop("γ-return") == list(range(1, T + 1))
    assert {case: max(seen) for case, seen in lengths.items()} == {
        "γ-return of capacity 3": 2,
        "given shares": 3,
        "five steps": 4,
        "Ω-return": 4,
    }


# --- The interface --------------------------------------------------------------------------------


@pytest.mark.parametrize("offline", [False, True], ids=["online", "offline"])
@pytest.mark.parametrize("case", CASES)
def test_they_keep_the_contract(case, offline):
    """Options are saved and copied with the rest."""
    kind, options, _ = CASES[case]
    make = partial(kind, **options, offline=offline)
    assert len(to.check_learner(make).kept) == 10
    with pytest.raises(AttributeError, match="no trace"):
        _ = make(N, 0.1, 0.0, 0.9).trace


def test_options_are_those_of_the_class_and_copied():
    shares = np.array([0.5, 0.5])
    learner = ComplexReturn(N, 0.1, 0.0, 0.9, shares=shares)
    shares[:] = 7.0
    np.testing.assert_array_equal(learner.shares, [0.5, 0.5])
    with pytest.raises(TypeError, match=r"NStepReturn takes no argument 'capacity'; it takes .*, offline, n"):
        NStepReturn(N, 0.1, 0.0, 0.9, capacity=3)


def test_a_file_with_options_that_make_no_sense_is_damaged(tmp_path):
    learner = NStepReturn(N, 0.1, 0.0, 0.9, n=3)
    learner.n = -3
    learner.save(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match=r"is damaged: n must be a whole number"):
        to.load(tmp_path / "learner.npz")


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (GammaReturn, {"offline": 1}, "offline must be True or False, got 1"),
        (GammaReturn, {"capacity": 0}, "capacity must be a whole number"),
        (GammaReturn, {"capacity": True}, "capacity must be a whole number"),
        (NStepReturn, {"n": 2.0}, "n must be a whole number"),
        (ComplexReturn, {"shares": [0.5, 0.6]}, "shares must sum to 1, got a sum of 1.1: divide them by it"),
        (ComplexReturn, {"shares": []}, "shares must be finite numbers that sum to 1"),
        (ComplexReturn, {"shares": [True]}, "shares must be finite numbers that sum to 1"),
        (ComplexReturn, {"shares": [[0.5], [0.5, 0.0]]}, "shares must be an array of numbers"),
        (ComplexReturn, {"shares": [float("nan"), 1.0]}, "shares must be finite numbers that sum to 1"),
        (OmegaReturn, {"covariance": [1.0]}, "covariance must be a symmetric positive definite matrix"),
        (OmegaReturn, {"covariance": [[1.0, 0.5]]}, "covariance must be a symmetric positive definite matrix"),
        (
            OmegaReturn,
            {"covariance": [[1.0, 0.5], [0.4, 1.0]]},
            "covariance must be a symmetric positive definite matrix",
        ),
        (OmegaReturn, {"covariance": [[1.0, 1.0], [1.0, 1.0]]}, "add a little to its diagonal"),
    ],
)
def test_bad_options_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(N, 0.1, 0.0, 0.9, **options)
