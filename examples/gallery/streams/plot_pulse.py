"""
One signal, many horizons
=========================

A pulse comes every 60 samples. A horde asks about it at four time scales at once: how much of it will come, where
nearer counts more? Each answer rises before the pulse, the longer its horizon the earlier. The features are those of
time since the pulse, in a coarse code.
"""

import matplotlib.pyplot as plt
import numpy as np

from trueonline.look import look
from trueonline.streams import Horde, Question

horizons = [2, 5, 15, 40]  # samples; γ = 1 − 1/horizon
steps = 60 * 100
t = np.arange(steps + 1)
signal = (t % 60 < 3).astype(float)
coder = [
    (t + offset) % 60 // 4 + 15 * i for i, offset in enumerate((0, 1, 2, 3))
]  # four clocks, each a little later
X = np.column_stack(coder)

questions = [
    Question(f"{h} samples", discount=1 - 1 / h, trace_decay=0.9, step_size=0.05)
    for h in horizons
]
horde = Horde(n_features=60, questions=questions)
answers = horde.run(
    X, np.tile(signal[1:, None], len(horizons))
)  # the cumulant of a step is the value that it leads to

shown = slice(steps - 150, steps)
with look():
    _, axes = plt.subplots(5, 1, figsize=(5.4, 4), layout="constrained", sharex=True)
    axes[0].fill_between(t[shown], signal[shown], color="0.4", step="post", linewidth=0)
    axes[0].set_ylabel("pulse", rotation=0, ha="right", va="center")
    for axis, h, answer, colour in zip(
        axes[1:], horizons, answers.T, plt.cm.viridis([0.0, 0.3, 0.55, 0.8]), strict=True
    ):
        axis.fill_between(
            t[shown], answer[shown] / h, color=colour, alpha=0.8, linewidth=0
        )  # G times 1 − γ: the mean
        axis.set_ylabel(f"{h} samples", rotation=0, ha="right", va="center")
    for axis in axes:
        axis.set(yticks=[])
        axis.grid(False)
    axes[0].set_title("predicted mean of the coming values")
    axes[-1].set_xlabel("sample")
    plt.show()
