"""
Bias and variance: which λ?
===========================

With λ = 0 a state learns from its successor, which may still be wrong. With λ = 1 it learns from the whole return,
which varies. The best λ lies between, and needs its own step-size. This is true online TD(λ) on the textbooks' random
walk over 19 states.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.look import look

decays = [0.0, 0.4, 0.8, 0.9, 0.95, 0.99, 1.0]
table = to.sweep(
    to.problems.random_walk(19),
    "true_online",
    np.geomspace(0.01, 1, 25),
    decays,
    runs=50,
    steps=1000,
)  # about ten episodes a run
means = (
    table.group_by(["trace_decay", "step_size"])
    .aggregate([("error", "mean")])
    .sort_by("step_size")
    .to_pylist()
)

with look():
    _, axis = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    for decay, colour in zip(
        decays, plt.cm.viridis(np.linspace(0, 0.92, len(decays))), strict=True
    ):
        points = [
            (row["step_size"], row["error_mean"])
            for row in means
            if row["trace_decay"] == decay
        ]
        axis.plot(
            *zip(*points, strict=True), color=colour, linewidth=1.8, label=f"λ = {decay:g}"
        )
    axis.set(
        xscale="log",
        xlabel="step-size α",
        ylabel="mean squared error (1: before learning)",
        ylim=(0, 1.1),
    )
    axis.legend(ncols=2)
    plt.show()
