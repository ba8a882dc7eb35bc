"""HTD(λ), Tree Backup(λ), V-trace(λ) and ABTD(ζ): numbers by hand, where they meet others, and what they refuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import trueonline as to
from tests.saved_files import rewrite
from trueonline import files

SETTINGS = {"n_features": 3, "step_size": 0.5, "trace_decay": 0.5, "discount": 0.8}


def after_two(learner, *, pi=True):
    """States 0 and 1, then the end: R = 1 and 2, ρ = 2 and ½, π = 0.8 and 0.1."""
    learner.start(0)
    learner.update(1.0, 1, ratio=2.0, **({"probability": 0.8} if pi else {}))
    learner.update(2.0, None, ratio=0.5, **({"probability": 0.1} if pi else {}))
    return learner.weights.tolist()


def test_numbers_by_hand():
    """w_0 ← ½ρδ, and then δ = 2: state 1 gets ½ · ½ · 2 = ½, and state 0 gets γ·c of it more."""
    tree, abtd = to.TreeBackup(**SETTINGS), to.ABTD(**SETTINGS, psi_0=0.5)
    assert_allclose(after_two(tree), [1.0 + 0.5 * 0.8 * 0.5 * 0.8, 0.5, 0.0])
    assert_allclose(after_two(abtd), [1.0 + 0.5 * 0.8 * 0.5 * 0.8, 0.5, 0.0])  # ζ = ½: ψ = ψ₀ = ½
    assert_allclose(after_two(to.VTrace(**SETTINGS), pi=False), [0.5 + 0.5 * 0.8 * 0.5, 0.5, 0.0])
    wide = to.VTrace(**SETTINGS, largest_ratio=9.0, largest_trace_ratio=1.5)
    assert_allclose(after_two(wide, pi=False), [1.0 + 0.5 * 0.8 * 0.5 * 1.5, 0.5, 0.0])


def test_numbers_of_htd_by_hand():
    """e = 2φ_0, b = φ_0, d = φ_0 − 0.8φ_1 and h = 0: w = h = φ_0. Then c = ½ · 0.4: e = 0.4φ_0 + ½φ_1, b = 0.4φ_0 + φ_1.

    hᵀe = hᵀb = 0.4, δ = 2 and d = φ_1: w ← w + e, and h ← h + e − 0.2φ_1.
    """
    learner = to.HTD(**SETTINGS, second_step_size=0.5)
    assert_allclose(after_two(learner, pi=False), [1.4, 0.5, 0.0])
    assert_allclose(learner.second_weights, [1.4, 0.3, 0.0])


def test_proximal_gtd2_without_traces_is_algorithm_2_of_liu_and_others():
    """With p = hᵀφ, d = φ − γφ′, τ = αφᵀφ and κ = αdᵀd: h ← h + α((1 − τ)(δ − p) − κp)φ and w ← w + α(p + τ(δ − p))d."""
    rng, alpha, gamma = np.random.default_rng(0), 0.1, 0.9
    X, rewards = rng.normal(size=(51, 4)), rng.normal(size=50)
    learner = to.ProximalGTD2(4, alpha, 0.0, gamma, second_step_size=alpha)
    learner.run(X, rewards)
    w, h = np.zeros((2, 4))
    for phi, reward, phi_next in zip(X, rewards, X[1:], strict=False):
        d, p = phi - gamma * phi_next, h @ phi
        delta, tau, kappa = reward - d @ w, alpha * phi @ phi, alpha * d @ d
        h, w = h + alpha * ((1 - tau) * (delta - p) - kappa * p) * phi, w + alpha * (p + tau * (delta - p)) * d
    assert_allclose(learner.weights, w, rtol=1e-10)
    assert_allclose(learner.second_weights, h, rtol=1e-10)


def test_by_default_the_target_policy_is_deterministic():
    """π is min(1, ρ)."""
    rng = np.random.default_rng(0)
    X, rewards, ratios = rng.normal(size=(41, 5)), rng.normal(size=40), rng.uniform(0.0, 2.0, 40)
    for make in to.TreeBackup, to.ABTD:
        settings = (5, 0.1, 0.7, 0.9)
        told = make(*settings).run(X, rewards, ratios=ratios, probabilities=np.minimum(ratios, 1.0))
        np.testing.assert_array_equal(make(*settings).run(X, rewards, ratios=ratios), told)


@pytest.mark.parametrize("make", [to.TreeBackup, to.ABTD])
def test_impossible_probabilities_are_refused(make):
    learner = make(**SETTINGS)
    learner.start(0)
    for more in (
        {"probability": 1.2},
        {"ratio": 0.5, "probability": 0.6},
        {"probability": -0.1},
        {"probability": np.nan},
    ):
        with pytest.raises(ValueError, match="probability must be a number from 0 to"):
            learner.update(1.0, 1, **more)
    with pytest.raises(
        ValueError, match=r"probabilities must be at most 1, and at most the ratio, got 0\.6 at position 1"
    ):
        learner.run([0, 1, 2], [1.0, 1.0], ratios=[1.0, 0.5], probabilities=[0.6, 0.6])
    assert not learner.weights.any()


def test_a_file_of_an_older_version_loads(tmp_path):
    """Its place had 24 numbers: three carried ones, and settings behind them."""
    rng = np.random.default_rng(2)
    X, rewards = rng.normal(size=(21, 3)), rng.normal(size=20)
    learner = to.GTD(**SETTINGS, second_step_size=0.1)
    learner.run(X, rewards)
    learner.save(tmp_path / "new.npz")
    place = files.read_learner(tmp_path / "new.npz")[2]["place"]
    rewrite(tmp_path / "new.npz", out=tmp_path / "old.npz", place=np.append(place[:10], np.arange(14.0)))
    old = to.load(tmp_path / "old.npz")
    np.testing.assert_array_equal(old.run(X, rewards, resume=False), learner.run(X, rewards, resume=False))
