"""
Emphasis instead of second weights
==================================

Two states with the values w and 2w, and rewards of 0, so that w = 0 is right. Off-policy TD(0) diverges. Emphatic
TD(λ) updates a state more if predictions of earlier states depend on it. It has one weight vector and one step-size,
and it converges here. Its price is the variance: five runs are shown.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.lab.style import line, look

problem = to.problems.off_policy.two_state()


def weights(learner, seed):
    """The weight after every 10 steps."""
    stream = problem.trajectory(steps=1500, seed=seed)
    X, after = problem.features[stream.states], [learner.weights[0]]
    for t in range(0, 1500, 10):
        part = slice(t, t + 10)
        learner.run(
            X[t : t + 11],
            stream.rewards[part],
            stream.discounts[part],
            ratios=stream.ratios[part],
            resume=True,
        )
        after.append(learner.weights[0])
    return after


steps, first = np.arange(0, 1501, 10), {"initial_weights": problem.initial_weights}
with look():
    _, axis = plt.subplots(figsize=(5.4, 3.3), layout="constrained")
    for seed in range(5):
        plain = to.GTD(1, 0.004, 0.0, problem.discount, second_step_size=0.0, **first)
        emphatic = to.EmphaticTD(1, 0.002, 0.0, problem.discount, **first)
        line(axis, steps, weights(plain, seed), "off_policy", linewidth=1)
        line(axis, steps, weights(emphatic, seed), "emphatic", linewidth=1)
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.set(
        xlabel="step",
        ylabel="weight (right: 0)",
        ylim=(-1, 5),
        title="α = 0.004 and 0.002, λ = 0",
    )
    axis.legend(*(part[:2] for part in axis.get_legend_handles_labels()))
    plt.show()
