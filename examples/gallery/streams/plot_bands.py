"""
A band around a prediction
==========================

The predictor has nothing to tune. It learns a noisy wave while it arrives, and gives a band that should contain 90 % of
what comes true. Half-way the noise becomes three times as large, and the band follows.
"""

import matplotlib.pyplot as plt
import numpy as np

from trueonline.look import look
from trueonline.streams import Clean, Predictor, Setup

rng = np.random.default_rng(seed=1)
steps, horizon = 6000, 1.0
times = np.arange(steps) / 10  # ten samples a second
noise = np.where(np.arange(steps) < steps // 2, 0.3, 0.9)
signal = np.sin(times / 2) + noise * rng.standard_normal(steps)

predictor = Predictor(Setup(signals=["x"], targets=["x"], horizons=[horizon]))
answers = predictor.learn(Clean(times, signal[:, None], starts=np.arange(steps) == 0))
low, high = answers.low[:, 0], answers.high[:, 0]

gamma, truth = np.exp(-0.1 / horizon), np.full(steps, signal[-1])
for i in range(steps - 2, -1, -1):
    truth[i] = (1 - gamma) * signal[i + 1] + gamma * truth[i + 1]
inside = np.mean((low <= truth) & (truth <= high), where=np.isfinite(low))

part = slice(steps // 2 - 250, steps // 2 + 250)
with look():
    _, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    axis.plot(times[part], signal[part], color="0.8", linewidth=0.7, label="signal")
    axis.fill_between(
        times[part],
        low[part],
        high[part],
        color="#56B4E9",
        alpha=0.4,
        linewidth=0,
        label="band",
    )
    axis.plot(
        times[part], truth[part], color="black", linewidth=0.9, label="what came true"
    )
    axis.plot(
        times[part],
        answers.predictions[part, 0],
        color="#0072B2",
        linewidth=1.4,
        label="prediction",
    )
    axis.set(
        xlabel="seconds",
        ylabel="signal",
        title=f"in the band over the whole stream: {inside:.0%}",
    )
    axis.legend(ncols=4, loc="lower center")
    plt.show()
