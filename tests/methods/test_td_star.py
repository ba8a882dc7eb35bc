"""TD*(λ): its errors consist of the predictions that it makes. `tests/test_catalog.py` compares it with its definition."""

import numpy as np

import trueonline as to

N = 12


def stream(seed, T, ends=0.05):
    """Binary features, and γ and λ of every step; episodes end by γ = 0."""
    rng = np.random.default_rng(seed)
    X = (rng.random((T + 1, N)) < 0.25).astype(float)
    discounts = np.where(rng.random(T) < ends, 0.0, rng.uniform(0.5, 1.0, T))
    return X, rng.normal(size=T), discounts, rng.uniform(0.0, 1.0, T)


def test_an_adapted_step_size_is_that_of_each_visit():
    """The trace carries the step-sizes, and δ* = δ / (1 − γ'eᵀφ')."""
    X, rewards, discounts, decays = stream(7, T=50)
    learner = to.TDStar(N, 0.3, trace_decay=0.5, discount=0.5, bound=0.4)
    learner.start(X[0])
    for t in range(50):
        before = learner.weights
        delta = learner.update(rewards[t], X[t + 1], discounts[t], decays[t])
        e = learner.trace
        wanted = delta / (1.0 - discounts[t] * (e @ X[t + 1])) * e
        np.testing.assert_allclose(learner.weights - before, wanted, rtol=1e-9, atol=1e-12)
        assert e @ X[t] <= 0.4 + 1e-12
    assert learner.bounded > 5
