"""
A network learns from a stream
==============================

Stream TD(λ) learns a network from one transition at a time, without replay. Here the states are points on a circle, and the value
to learn is a wave. The picture shows what the network predicts after more and more steps, each of which was seen once.
"""

import matplotlib.pyplot as plt
import numpy as np

from trueonline import deep
from trueonline.look import look

n, discount = 60, 0.9
angles = 2 * np.pi * np.arange(n) / n
X = np.column_stack([f(k * angles) for k in (1, 2, 3) for f in (np.sin, np.cos)])
rewards = np.sin(3 * angles) + 0.5 * np.cos(angles)
P = sum(np.roll(np.eye(n), shift, axis=1) for shift in (1, 2, 3)) / 3
truth = np.linalg.solve(np.eye(n) - discount * P, rewards)

rng = np.random.default_rng(seed=0)
critic = deep.StreamTD(deep.MLP(6, (32, 32), sparsity=0.5, seed=0), discount, 0.8)
places = np.cumsum(rng.integers(1, 4, size=30_001)) % n

with look():
    drawing, axis = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
    done = 0
    for steps, shade in ((300, 0.3), (3_000, 0.6), (30_000, 1.0)):
        part = places[done : steps + 1]
        critic.run(X[part], rewards[part[:-1]], resume=True)
        done = steps
        values = [critic.predict(x) for x in X]
        axis.plot(angles, values, color="#0072B2", alpha=shade, label=f"{steps:,} steps")
    axis.plot(angles, truth, color="black", linestyle="--", label="true value")
    axis.set(xlabel="angle", ylabel="value")
    axis.legend(ncols=2)
