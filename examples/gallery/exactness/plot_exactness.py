"""
Exact at every step
===================

The online λ-return algorithm says what TD(λ) should compute: at every step it repeats all updates of the past with
the newest targets. Its cost grows with time. True online TD(λ) has the same weights at a constant cost. The other two
are approximations.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.lab.style import line, look

problem = to.problems.random_mrp(k=10, b=3, sigma=0.1, seed=3)
stream = problem.trajectory(steps=100, seed=1)
X = problem.features[stream.states]  # one binary feature for each state


def weights(make):
    """The weights after every step."""
    learner = make(n_features=10, step_size=0.2, trace_decay=0.9, discount=problem.discount)
    after = []
    for t in range(100):
        learner.run(X[t : t + 2], stream.rewards[t : t + 1], resume=True)
        after.append(learner.weights.copy())
    return np.array(after)


definition = weights(to.OnlineLambdaReturn)
size = np.abs(definition).max()
with look():
    _, axis = plt.subplots(figsize=(5.4, 3.3), layout="constrained")
    for name, make in {
        "accumulate": to.AccumulateTD,
        "replace": to.ReplaceTD,
        "true_online": to.TrueOnlineTD,
    }.items():
        difference = np.abs(weights(make) - definition).max(axis=1) / size
        line(
            axis, np.arange(1, 101), np.maximum(difference, 1e-17), name
        )  # so that 0 can be drawn
    axis.set(
        yscale="log",
        xlabel="step",
        ylabel="largest difference / largest weight",
        ylim=(1e-18, 10),
    )
    axis.set_title("distance from the online λ-return algorithm")
    axis.legend(loc="center right")
    plt.show()
