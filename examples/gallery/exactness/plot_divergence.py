"""
When accumulating traces diverge
================================

One state, visited about four times in an episode. The reward is 1 at the end, so the value is 1. An accumulating
trace counts all visits. So an update goes past its target if the step-size times this count is more than one, and the
error grows. True online TD(λ) learns at any step-size up to 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.lab.style import line, look

problem = to.problems.one_state()
stream = problem.trajectory(steps=60, seed=0)
methods = {
    "accumulate": to.AccumulateTD,
    "replace": to.ReplaceTD,
    "true_online": to.TrueOnlineTD,
}

table = to.sweep(
    problem,
    methods=list(methods),
    step_sizes=np.linspace(0.05, 1, 20),
    trace_decays=[1.0],
    runs=500,
)
means = (
    table.group_by(["method", "step_size"])
    .aggregate([("error", "mean")])
    .sort_by("step_size")
    .to_pylist()
)

with look():
    _, (left, right) = plt.subplots(1, 2, figsize=(5.4, 3.6), layout="constrained")
    for name, make in methods.items():
        learner = make(n_features=1, step_size=0.8, trace_decay=1.0, discount=1.0)
        values = learner.run(np.ones((61, 1)), stream.rewards, stream.discounts)
        line(left, np.arange(60), values, name)
        points = [
            (row["step_size"], row["error_mean"]) for row in means if row["method"] == name
        ]
        line(right, *zip(*points, strict=True), name)
    left.axhline(1.0, color="black", linewidth=0.8)
    left.set(xlabel="step", ylabel="predicted value (right: 1)", title="one run, α = 0.8")
    left.set_yscale("symlog", linthresh=1)
    left.set_yticks([-10, 0, 1, 10], ["−10", "0", "1", "10"])
    right.set(
        xlabel="step-size α",
        ylabel="mean squared error",
        ylim=(0, 1.5),
        title="500 runs, λ = 1",
    )
    right.legend(handlelength=1.4, loc="right")
    plt.show()
