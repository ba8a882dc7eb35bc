"""Stream Q(λ) with convolutions: learn a game of MinAtar from its pixels, each moment once.

    pip install "trueonline[torch]" minatar
    python examples/minatar_pixels.py --steps 100000

The network is a PyTorch module, and `deep.ObGD` is its optimiser. The rest is what `deep.StreamQ` does with its own networks: layer
normalisation, sparse initialisation, scaled rewards, and an ε that falls from 1 to 0.01 over a fifth of the steps.
"""

import argparse
import math

import gymnasium as gym
import numpy as np
import torch
from minatar.gym import register_envs

import trueonline as to
from trueonline import deep


def network(channels, actions):
    """A convolution, a hidden layer, and a value for each action. 90 % of the weights of each unit begin at 0."""
    norm = {"elementwise_affine": False}
    module = torch.nn.Sequential(
        *(torch.nn.Conv2d(channels, 16, 3), torch.nn.LayerNorm([16, 8, 8], **norm), torch.nn.LeakyReLU()),
        *(torch.nn.Flatten(0), torch.nn.Linear(16 * 8 * 8, 128), torch.nn.LayerNorm(128, **norm), torch.nn.LeakyReLU()),
        torch.nn.Linear(128, actions),
    )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
            if parameter.ndim > 1:  # weights
                fan_in = parameter[0].numel()
                for unit in parameter.view(len(parameter), fan_in):
                    kept = torch.randperm(fan_in)[math.ceil(0.9 * fan_in) :]
                    unit[kept] = (2.0 * torch.rand(len(kept)) - 1.0) / math.sqrt(fan_in)
    return module


def train(game="Breakout", steps=100_000, seed=0):
    """The return of each episode."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    if f"MinAtar/{game}-v1" not in gym.registry:
        register_envs()
    env, rng = gym.make(f"MinAtar/{game}-v1"), np.random.default_rng(seed)
    module = network(env.observation_space.shape[-1], env.action_space.n)
    optimiser, scale = deep.ObGD(module.parameters(), discount=0.99, trace_decay=0.8), deep.RewardScale(discount=0.99)
    policy = to.control.EpsilonGreedy(to.control.Linear(1.0, 0.01, steps // 5))
    returns = [0.0]
    x = _pixels(env.reset(seed=seed)[0])
    for t in range(steps):
        values = module(x)
        shown = values.detach().numpy().astype(float)
        action = policy(shown, rng, t)
        observation, reward, terminated, truncated, _ = env.step(action)
        returns[-1] += reward
        x = _pixels(observation)
        with torch.no_grad():
            ahead = 0.0 if terminated else 0.99 * module(x).max().item()
        values[action].backward()
        end = terminated or truncated
        delta = scale.observe(float(reward), end) + ahead - shown[action]
        optimiser.step(delta, reset=end or shown[action] < shown.max())
        if end:
            returns.append(0.0)
            x = _pixels(env.reset()[0])
    return returns[:-1]


def _pixels(observation):
    """Channels first, as convolutions take them."""
    return torch.from_numpy(np.moveaxis(observation, -1, 0).astype(np.float32))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--game", default="Breakout")
    parser.add_argument("--steps", type=int, default=100_000)
    found = np.array(train(**vars(parser.parse_args())))
    for name, part in zip(("first", "second", "third", "fourth", "last"), np.array_split(found, 5), strict=True):
        print(f"{name} fifth of {len(found)} episodes: mean return {part.mean():.2f}")
