"""
Monte Carlo without storing the episode
=======================================

The usual way to learn from whole returns is to store an episode, and to make all updates when it has ended. A dutch
trace does the same updates in constant memory. The weights agree at the end of each episode, and before it they
already use the rewards so far.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.look import look

problem = to.problems.random_walk()  # ten states, every reward is 1
stream = problem.trajectory(steps=150, seed=2)
X, alpha = problem.features[stream.states], 0.1

learner = to.MonteCarlo(n_features=10, step_size=alpha, trace_decay=1.0, discount=1.0)
w, episode, online, stored, waiting = np.zeros(10), [], [], [], []
for t, (reward, discount) in enumerate(zip(stream.rewards, stream.discounts, strict=True)):
    learner.run(X[t : t + 2], [reward], [discount], resume=True)
    episode.append((X[t], reward))
    waiting.append(len(episode))
    if discount == 0.0:  # the end of an episode
        for k, (x, _) in enumerate(episode):
            w = w + alpha * (sum(r for _, r in episode[k:]) - w @ x) * x
        assert np.allclose(learner.weights, w, rtol=1e-12)
        episode = []
    online.append(learner.weights[5])
    stored.append(w[5])

with look():
    _, (top, bottom) = plt.subplots(
        2, 1, figsize=(5.4, 3.7), layout="constrained", sharex=True, height_ratios=[2, 1]
    )
    top.step(
        range(1, 151),
        stored,
        color="#D55E00",
        linewidth=1.6,
        where="post",
        label="stored episode",
    )
    top.plot(range(1, 151), online, color="#0072B2", linewidth=1.2, label="dutch trace")
    top.set(ylabel="a weight")
    top.legend()
    bottom.fill_between(
        range(1, 151), waiting, color="#D55E00", alpha=0.4, linewidth=0, step="post"
    )
    bottom.axhline(1, color="#0072B2")
    bottom.set(xlabel="step", ylabel="transitions kept")
    plt.show()
