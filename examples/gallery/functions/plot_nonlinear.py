"""
A network learns a value function
=================================

Forward TD(λ) is for functions that are not linear. It waits until enough has come true, and then moves the function
towards the λ-return. Here a network of eight tanh units learns the values of a random walk. It sees nothing but the
position.
"""

import matplotlib.pyplot as plt
import numpy as np

from trueonline.look import look
from trueonline.nonlinear import ForwardTD

places = np.linspace(-1, 1, 19)


def network(w, x):
    """The value and its gradient."""
    a, c, b = w
    h = np.tanh(a * x + c)
    return float(b @ h), np.stack((b * (1 - h**2) * x, b * (1 - h**2), h))


rng = np.random.default_rng(seed=5)
learner = ForwardTD(
    network, rng.normal(size=(3, 8)), step_size=0.003, trace_decay=0.9, discount=1.0
)
snapshots = {0: [learner.predict(x) for x in places]}
for episode in range(1, 101):
    i = 9
    learner.start(places[i])
    while 0 <= i <= 18:
        i += 1 if rng.random() < 0.5 else -1
        inside = 0 <= i <= 18
        learner.update(0.0 if inside else np.sign(i), places[i] if inside else None)
    if episode in (3, 10, 100):
        snapshots[episode] = [learner.predict(x) for x in places]

with look():
    _, axis = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    for (episode, values), colour in zip(
        snapshots.items(), plt.cm.viridis_r(np.linspace(0.1, 0.9, 4)), strict=True
    ):
        axis.plot(
            places, values, color=colour, linewidth=1.8, label=f"after {episode} episodes"
        )
    axis.plot(places, 0.9 * places, "k--", linewidth=1.2, label="exact")
    axis.set(xlabel="position", ylabel="value")
    axis.legend()
    plt.show()
