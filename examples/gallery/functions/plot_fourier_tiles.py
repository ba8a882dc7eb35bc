"""
Fourier basis or tiles?
=======================

A walk over 200 places pays 1 for each step on one stretch of them, so the value function has two edges. Waves see the
whole range at once: they are smooth, and they swing around an edge. Tiles are local: they follow the edge, and pick
up more noise elsewhere.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.features import Fourier, TileCoder
from trueonline.look import look

k = 200
place = np.arange(k)
P = np.zeros((k, k))
for move in (-2, -1, 1, 2):
    P[place, np.clip(place + move, 0, k - 1)] += 0.225
P += 0.1 / k  # sometimes it jumps anywhere
reward = ((place >= 100) & (place < 160)).astype(float)
problem = to.problems.FiniteMRP(P, np.tile(reward, (k, 1)), discount=0.9)

makers = {
    "Fourier basis, order 9": (Fourier(low=[0], high=[k - 1], order=9), 0.005, "#D55E00"),
    "8 tilings of 12 tiles": (
        TileCoder(low=[0], high=[k - 1], bins=12, tilings=8),
        0.04 / 8,
        "#0072B2",
    ),
}
with look():
    picture, axes = plt.subplots(
        1, 2, figsize=(5.4, 3.6), layout="constrained", sharey=True
    )
    for axis, steps in zip(axes, (5_000, 100_000), strict=True):
        axis.plot(place, problem.values, color="black", linewidth=1, label="exact value")
        stream = problem.trajectory(steps, seed=0)
        for name, (maker, alpha, colour) in makers.items():
            rows = maker.many(place[:, None].astype(float))
            learner = to.TrueOnlineTD(
                maker.n_features, alpha, trace_decay=0.4, discount=problem.discount
            )
            learner.run(rows[stream.states], stream.rewards)
            axis.plot(
                place, [learner.predict(row) for row in rows], color=colour, label=name
            )
        axis.set(xlabel="place", title=f"after {steps:,} steps")
    axes[0].set_ylabel("value")
    picture.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3
    )
    plt.show()
