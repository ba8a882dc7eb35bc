"""Train MushroomRL on Mountain Car and print seconds per step as JSON; called by `mountain_car.py` as a script.

It imports NumPy and MushroomRL, and nothing of this repository, because that may live in another environment, often without
Gymnasium: so the car is moved here, by the equations of MountainCar-v0. The car is not what is compared.
"""

import json
import math
import sys
from statistics import median
from time import perf_counter

import numpy as np

LOW, HIGH = np.array([-1.2, -0.07]), np.array([0.6, 0.07])
LIMIT = 200  # steps in an episode, which is then truncated


def moved(state, action):
    position, velocity = state
    velocity = min(max(velocity + (action - 1) * 0.001 - 0.0025 * math.cos(3.0 * position), -0.07), 0.07)
    position = min(max(position + velocity, -1.2), 0.6)
    if position == -1.2 and velocity < 0.0:
        velocity = 0.0
    return np.array([position, velocity]), position >= 0.5


def training(episodes, tilings, bins, alpha, lam, gamma, epsilon, seed):
    """Seconds that the agent takes for each step, with its features, and the lengths of the episodes."""
    from mushroom_rl.algorithms.value import TrueOnlineSARSALambda
    from mushroom_rl.core import MDPInfo
    from mushroom_rl.features import Features
    from mushroom_rl.features.tiles import Tiles
    from mushroom_rl.policy import EpsGreedy
    from mushroom_rl.utils.parameters import Parameter
    from mushroom_rl.utils.spaces import Box, Discrete

    np.random.seed(seed)  # it draws from there
    features = Features(tilings=Tiles.generate(tilings, [bins, bins], LOW, HIGH))
    agent = TrueOnlineSARSALambda(
        MDPInfo(Box(LOW, HIGH), Discrete(3), gamma, LIMIT),
        EpsGreedy(Parameter(epsilon)),
        Parameter(alpha),
        lambda_coeff=lam,
        features=features,
        approximator_params={"input_shape": (features.size,), "output_shape": (3,), "n_actions": 3},
    )
    spent, lengths = 0.0, []
    starts = np.random.default_rng(seed)
    for _ in range(episodes):
        state, ended, length = np.array([starts.uniform(-0.6, -0.4), 0.0]), False, 0
        begin = perf_counter()
        agent.episode_start()
        action = agent.draw_action(state)
        spent += perf_counter() - begin
        while not ended and length < LIMIT:
            state_next, ended = moved(state, int(action[0]))
            length += 1
            begin = perf_counter()
            agent.fit([(state, action, -1.0, state_next, ended, ended or length == LIMIT)])
            action = agent.draw_action(state_next)
            spent += perf_counter() - begin
            state = state_next
        lengths.append(length)
    return spent / sum(lengths), lengths


def main():
    settings = json.loads(sys.argv[1])
    rounds = settings.pop("rounds")
    found = [training(**settings, seed=seed) for seed in range(rounds)]
    lengths = [length for _, lengths in found for length in lengths[-10:]]
    print(json.dumps({"seconds": median(seconds for seconds, _ in found), "last": sum(lengths) / len(lengths)}))


if __name__ == "__main__":
    main()
