"""
The value function of Mountain Car
==================================

A weak car has to swing in a valley to reach the top. Each step costs 1, so the value is minus the number of steps to
go. True online Sarsa(λ) over tiles learned this picture. Slow states at the bottom of the valley are dark, for they
are farthest from the top. Along the rim, values are still near 0 where the car has never been.
"""

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.look import look

env = gymnasium.make("MountainCar-v0")
coder = to.features.TileCoder(low=[-1.2, -0.07], high=[0.6, 0.07], bins=8, tilings=8)
agent = to.control.TrueOnlineSarsa(
    n_features=coder.n_features,
    n_actions=3,
    step_size=0.5 / coder.n_active,
    trace_decay=0.9,
    discount=1.0,
    policy=to.control.EpsilonGreedy(0.0),
    seed=0,
)
training = to.control.train(env, agent, coder, episodes=150, seed=0)

position, velocity = np.linspace(-1.2, 0.5, 90), np.linspace(-0.07, 0.07, 70)
values = np.array(
    [[agent.values(coder(np.array([x, v]))).max() for x in position] for v in velocity]
)
with look():
    _, (left, right) = plt.subplots(
        1, 2, figsize=(5.4, 3.6), layout="constrained", width_ratios=[3, 2]
    )
    mesh = left.pcolormesh(position, velocity, values, cmap="viridis", rasterized=True)
    left.contour(
        position, velocity, values, levels=10, colors="white", linewidths=0.5, alpha=0.6
    )
    left.set(xlabel="position", ylabel="velocity", title="value of the best action")
    left.grid(False)
    plt.colorbar(mesh, ax=left)
    right.plot(training.lengths, ".", color="#009E73", markersize=4)
    right.set(xlabel="episode", ylabel="steps to the top", ylim=(0, None), title="learning")
    plt.show()
