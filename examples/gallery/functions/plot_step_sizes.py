"""
A step-size for each feature
============================

Two features. The right weight of the first drifts. The right weight of the second never changes, but much noise comes
with it. No single step-size is good for both. With ``meta_step_size`` each feature finds its own. A given step-size
that is much too large still costs something, because it takes long to come down.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.look import look

rng = np.random.default_rng(seed=0)
steps, piece = 40_000, 200
drift = np.cumsum(0.05 * rng.standard_normal(steps))
which = rng.integers(2, size=steps + 1)  # one of the two features is active
X = np.eye(2)[which]
rewards = np.where(which[:-1] == 0, drift, 1.0 + 3.0 * rng.standard_normal(steps))
target = np.column_stack((drift, np.ones(steps)))


def learn(alpha, **adaptation):
    """The error of the weights along the way, and the step-sizes."""
    learner = to.TrueOnlineTD(2, alpha, trace_decay=0.0, discount=0.0, **adaptation)
    errors, sizes = [], []
    for begin in range(0, steps, piece):
        part = slice(begin, begin + piece)
        learner.run(X[begin : begin + piece + 1], rewards[part], resume=True)
        errors.append(((learner.weights - target[begin + piece - 1]) ** 2).sum())
        sizes.append(learner.step_sizes.copy())
    return np.mean(errors), np.array(sizes)


alphas = np.geomspace(0.003, 1.0, 12)
fixed = [learn(alpha)[0] for alpha in alphas]
adaptive = [learn(alpha, bound=1.0, meta_step_size=0.1)[0] for alpha in alphas]
_, sizes = learn(0.05, bound=1.0, meta_step_size=0.1)
with look():
    _, (left, right) = plt.subplots(1, 2, figsize=(5.4, 3.6), layout="constrained")
    left.plot(
        piece * np.arange(1, len(sizes) + 1),
        sizes,
        linewidth=1.6,
        label=["drifts", "constant, noisy"],
    )
    left.set(
        yscale="log",
        xlabel="step",
        ylabel="step-size of the feature",
        title="the adapted step-sizes",
    )
    left.legend()
    right.plot(alphas, fixed, "s--", color="#D55E00", markersize=4, label="one step-size")
    right.plot(alphas, adaptive, "o-", color="#009E73", markersize=4, label="adapted")
    right.set(
        xscale="log",
        yscale="log",
        xlabel="given step-size",
        ylabel="mean squared error of the weights",
    )
    right.set_title("what they are worth")
    right.legend()
    plt.show()
