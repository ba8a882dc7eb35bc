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


def test_the_weights_are_a_sum_of_errors_of_lambda_returns_of_the_predictions_made():
    """w_t = w_0 + α Σ_k (G_k^{λ|t} − V_k) φ_k, where every return bootstraps from predictions that were made.

    TD(λ) has this only in the limit of α → 0, because its errors are about values that it never predicts.
    """
    X, rewards, discounts, decays = stream(4, T=40, ends=0.0)
    gaps = {}
    for kind in (to.TDStar, to.AccumulateTD):
        learner = kind(N, 0.1, trace_decay=0.5, discount=0.5)
        learner.start(X[0])
        made, worst = [0.0], 0.0
        for t in range(40):
            learner.update(rewards[t], X[t + 1], discounts[t], decays[t])
            made.append(learner.predict(X[t + 1]))
            target, total = made[-1], np.zeros(N)
            for k in reversed(range(t + 1)):
                mixed = (1.0 - decays[k]) * made[k + 1] + decays[k] * target if k < t else made[k + 1]
                target = rewards[k] + discounts[k] * mixed
                total += 0.1 * (target - made[k]) * X[k]
            worst = max(worst, float(np.abs(learner.weights - total).max()))
        gaps[kind] = worst
    assert gaps[to.TDStar] < 1e-12
    assert gaps[to.AccumulateTD] > 1e-2
