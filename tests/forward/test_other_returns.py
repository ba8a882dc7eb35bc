"""The γ-return and other averages of n-step returns, against their formulas by explicit loops."""

from functools import partial

import numpy as np
import pytest

import trueonline as to
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


def stream(seed):
    """Transitions (φ, R, φ', γ, λ) of some episodes; γ = 0 ends one, and one is cut short after transition 25."""
    rng = np.random.default_rng(seed)
    X, rewards = rng.normal(size=(T + 1, N)), rng.normal(size=T)
    gammas, lams = rng.uniform(0.3, 1.0, size=(2, T))
    gammas[[11, 33]] = 0.0
    return X, rewards, gammas, lams


CUT = 25


def learned(learner, X, rewards, gammas, lams):
    """The weights after every transition."""
    weights = []
    learner.start(X[0])
    for t in range(T):
        learner.update(rewards[t], X[t + 1], gammas[t], lams[t])
        if t == CUT:
            learner.start(X[t + 1])
        weights.append(learner.weights)
    return np.array(weights)


def naive(shares, X, rewards, gammas, alpha, offline=False):
    """The weights after every transition, by the definition: all updates since the last beginning at every step.

    `shares(γ_{k+1}, …, γ_h)` are those of G_k^{(1)}, …, G_k^{(h−k)}.
    """
    w = np.zeros(N)
    weights, first, begin, values = [], w, 0, []
    for t in range(T):
        h = t + 1
        values.append(w @ X[t + 1])  # V(S_{t+1} | w_t)
        over = gammas[t] == 0.0 or t == CUT
        if not offline or over:
            w = first.copy()
            for k in range(begin, h):
                target = 0.0
                for n, share in enumerate(shares(gammas[k:h]), start=1):
                    total, product = 0.0, 1.0
                    for i in range(n):
                        total += product * rewards[k + i]
                        product *= gammas[k + i]
                    target += share * (total + product * values[k + n - 1])
                w = w + alpha * (target - w @ X[k]) * X[k]
        if over:
            first, begin = w, h
        weights.append(w)
    return np.array(weights)


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


@pytest.mark.parametrize("offline", [False, True], ids=["online", "offline"])
@pytest.mark.parametrize("case", CASES)
def test_learners_equal_their_definition(case, offline):
    kind, options, shares = CASES[case]
    X, rewards, gammas, lams = stream(2)
    wanted = naive(shares, X, rewards, gammas, 0.1, offline)
    for decays in (lams, np.ones(T)):  # of λ nothing is taken
        learner = kind(N, 0.1, 0.5, 0.9, offline=offline, **options)
        np.testing.assert_allclose(learned(learner, X, rewards, gammas, decays), wanted, rtol=1e-10, atol=1e-12)
        assert learner.steps == T


def test_the_gamma_return_is_the_view_that_derive_refuses():
    gamma = 0.8
    X, rewards, _, _ = stream(3)
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
    X, rewards, _, _ = stream(10)
    lengths = {}
    for case, (kind, options, _) in CASES.items():
        learner = kind(N, 0.01, 0.0, 0.9, **options)
        learner.start(X[0])
        seen = []
        for t in range(T):
            learner.update(rewards[t], X[t + 1])
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
