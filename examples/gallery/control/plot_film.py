"""
A policy as a film strip
========================

An agent learns to swing up an Acrobot, two links that hang from a bar and are driven at the elbow only. The strip
shows a greedy episode after learning, from the left to the right and from the top to the bottom. It ends
when the tip is above the line.
"""

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.look import look

env = gymnasium.make("Acrobot-v1", render_mode="rgb_array")
coder = to.features.from_space(env.observation_space)
agent = to.control.TrueOnlineSarsa(
    n_features=coder.n_features,
    n_actions=3,
    step_size=0.2 / coder.n_active,
    trace_decay=0.9,
    discount=1.0,
    policy=to.control.EpsilonGreedy(0.0),
    seed=0,
)
training = to.control.train(env, agent, coder, episodes=30, seed=0)

frames, (observation, _), ended = [], env.reset(seed=4), False
while not ended:
    frames.append(env.render())
    observation, _, terminated, truncated, _ = env.step(
        int(np.argmax(agent.values(coder(observation))))
    )
    ended = terminated or truncated
frames.append(env.render())

chosen = np.linspace(0, len(frames) - 1, 12).astype(int)
with look():
    picture, axes = plt.subplots(3, 4, figsize=(5.4, 4.3), layout="constrained")
    for axis, t in zip(axes.flat, chosen, strict=True):
        axis.imshow(frames[t][80:480, 50:450])
        axis.set_title(f"step {t}", fontsize=8)
        axis.axis("off")
    plt.show()
