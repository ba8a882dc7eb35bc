"""
Baird's counterexample
======================

Seven states share eight weights. One policy acts, and another is to be predicted. All rewards are 0, so all values
are 0. Off-policy TD(0) moves away from this answer without bound. Gradient TD has second weights that correct the
direction.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.lab.style import line, look

problem = to.problems.baird()
stream = problem.trajectory(steps=4000, seed=0)
X = problem.features[stream.states]


def errors(second_step_size):
    """The error after every 20 steps. It is 1 before learning."""
    learner = to.GTD(
        n_features=problem.n_features,
        step_size=0.005,
        trace_decay=0.0,
        discount=problem.discount,
        second_step_size=second_step_size,
        initial_weights=problem.initial_weights,
    )
    after = [1.0]
    for t in range(0, 4000, 20):
        part = slice(t, t + 20)
        learner.run(
            X[t : t + 21],
            stream.rewards[part],
            stream.discounts[part],
            ratios=stream.ratios[part],
            resume=True,
        )
        after.append(problem.error(learner.weights))
    return after


with look():
    _, axis = plt.subplots(figsize=(5.4, 3.3), layout="constrained")
    line(axis, np.arange(0, 4001, 20), errors(0.0), "off_policy")
    line(axis, np.arange(0, 4001, 20), errors(0.05), "gtd")
    axis.axhline(1.0, color="0.6", linewidth=0.8)
    axis.set(
        yscale="log",
        xlabel="step",
        ylabel="error (1: before learning)",
        title="α = 0.005, β = 0.05, λ = 0",
    )
    axis.legend()
    plt.show()
