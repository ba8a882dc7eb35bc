"""
Three kinds of traces
=====================

A trace remembers that a feature was active, and fades. Here a feature is active at the marked times. An accumulating
trace, that of accumulate TD(λ), adds 1 each time. A replacing trace, that of replace TD(λ), is set to 1. A dutch trace,
that of true online TD(λ), adds 1 too, but first lets go of a share α of what is left: the step-size α is the share of
an earlier update that a new one takes back.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.lab.style import line, look

visits = [3, 4, 5, 6, 7, 8, 22, 25, 28, 31, 46]
X = np.zeros((61, 1))
X[visits] = 1.0
learners = {
    "accumulate": to.AccumulateTD,
    "true_online": to.TrueOnlineTD,
    "replace": to.ReplaceTD,
}

with look():
    _, axis = plt.subplots(figsize=(5.4, 3.3), layout="constrained")
    for name, make in learners.items():
        learner = make(n_features=1, step_size=0.3, trace_decay=0.9, discount=1.0)
        trace = []
        for t in range(60):
            learner.run(X[t : t + 2], rewards=[0.0], resume=True)  # one transition
            trace.append(learner.trace[0])
        line(axis, np.arange(60), trace, name)
    axis.plot(
        visits,
        np.full(len(visits), -0.15),
        "k|",
        markersize=9,
        label="the feature is active",
    )
    axis.set(xlabel="time", ylabel="trace", title="γλ = 0.9, α = 0.3")
    axis.legend()
    plt.show()
