"""An environment of your own: heat a room at the right time.

    python examples/own_environment.py                                    # train, and compare with a thermostat
    cd examples && trueonline train own_environment:Room-v0 --runs 4      # the same by the command, with curve and film

Electricity is expensive in the evening and cheap at night. A thermostat heats when it is cold. An agent can learn to heat before
electricity gets expensive. A day does not *end*. It is truncated after 96 quarters of an hour, so the agent bootstraps from its
last state.
"""

import gymnasium as gym
import numpy as np

import trueonline as to

QUARTERS = 96  # of an hour, a day
LEVELS = (0.0, 1.0, 2.0)  # kW


class Room(gym.Env):
    """The agent observes the temperature of the room (°C) and the hour, and heats with 0, 1 or 2 kW."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}  # noqa: RUF012
    observation_space = gym.spaces.Box(np.array([10.0, 0.0], np.float32), np.array([30.0, 24.0], np.float32))
    action_space = gym.spaces.Discrete(len(LEVELS))

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # this seeds self.np_random, the only source of randomness
        self.quarter = 0
        self.inside = self.np_random.uniform(17.0, 21.0)
        self.history = []
        return self._observation(), {}

    def step(self, action):
        power = LEVELS[action]
        hour = self.quarter / 4.0
        outside = 3.0 - 5.0 * np.cos(2.0 * np.pi * (hour - 3.0) / 24.0) + self.np_random.normal(0.0, 0.5)
        self.inside += 0.25 * ((outside - self.inside) / 20.0 + 0.8 * power)
        reward = -(price(hour) * power * 0.25 + 0.02 * (self.inside - 20.0) ** 2)
        self.history.append((self.inside, power))
        self.quarter += 1
        return self._observation(), float(reward), False, False, {}  # `register` below sets the length of a day

    def _observation(self):
        return np.array([np.clip(self.inside, 10.0, 30.0), self.quarter % QUARTERS / 4.0], np.float32)

    def render(self):
        """Draw the day so far: expensive hours in grey, heating in orange, the temperature in blue."""
        picture = np.full((240, 5 * QUARTERS, 3), 255, np.uint8)
        for quarter in range(QUARTERS):
            if price(quarter / 4.0) > 1.0:
                picture[:, 5 * quarter : 5 * quarter + 5] = 232
        picture[row(20.0)] = 160
        for quarter, (inside, power) in enumerate(self.history[:QUARTERS]):
            here = slice(5 * quarter, 5 * quarter + 5)
            picture[240 - int(30 * power) :, here] = (230, 159, 0)
            picture[row(inside) - 2 : row(inside) + 2, here] = (0, 114, 178)
        return picture


def price(hour):
    return 3.0 if 16.0 <= hour < 21.0 else 1.0


def row(temperature):
    """The row of the picture that shows a temperature."""
    return int(np.clip(200 - 12 * (temperature - 12.0), 2, 237))


gym.register("Room-v0", Room, max_episode_steps=QUARTERS)


def thermostat(env, episodes=20):
    """The mean return of a day with a thermostat at 20 °C."""
    returns = []
    for day in range(episodes):
        (inside, _), _ = env.reset(seed=day)
        total, done = 0.0, False
        while not done:
            (inside, _), reward, terminated, truncated, _ = env.step(2 if inside < 20.0 else 0)
            total, done = total + reward, terminated or truncated
        returns.append(total)
    return np.mean(returns)


def main(episodes=1000):
    env = gym.make("Room-v0")
    features = to.features.from_space(env.observation_space, bins=[20, 24], tilings=8)
    agent = to.control.TrueOnlineSarsa(
        features.n_features,
        n_actions=len(LEVELS),
        step_size=0.3 / features.n_active,
        trace_decay=0.9,
        discount=0.99,
        policy=to.control.EpsilonGreedy(0.01),
        seed=1,
    )
    # With the checkpoint, a second run of this program resumes where the first one stopped.
    training = to.control.train(env, agent, features, episodes=episodes, seed=0, checkpoint="room.npz")
    evaluation = to.control.evaluate(env, agent, features, episodes=20)
    print(f"a day with a thermostat: {thermostat(env):6.2f}")
    print(f"the first days of the agent: {training.returns[:20].mean():6.2f}")
    print(f"its days after {episodes} of them: {evaluation.mean:6.2f} ± {evaluation.standard_error:.2f}")
    to.control.curve("room.png", training.returns, title="Room-v0")
    to.control.film("Room-v0", agent, features, "room.gif")
    print("The curve is in room.png, a day in room.gif.")


if __name__ == "__main__":
    main()
