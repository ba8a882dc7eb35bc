"""Learn from a stream by one peer, once for every line of input; started by `peers.py` as a script.

It first prints the peer's version and predictions, and then a line whenever it has learned, all as JSON.

It imports NumPy and the peer, and nothing of this repository, because the peer may live in another environment.
"""

import gc
import json
import sys
from importlib.metadata import version

import numpy as np


def mushroom(X, rewards, n, alpha, lam, gamma):
    """State t stands for row t, whose features are made beforehand: making them is not what is compared.

    It wants two actions or more; where the first is always taken, its Q is V, and Sarsa is prediction.
    """
    from mushroom_rl.algorithms.value import TrueOnlineSARSALambda
    from mushroom_rl.core import MDPInfo
    from mushroom_rl.policy.td_policy import TDPolicy
    from mushroom_rl.utils.parameters import Parameter
    from mushroom_rl.utils.spaces import Box, Discrete

    action = np.array([0])

    class First(TDPolicy):
        def draw_action(self, state):
            return action

    features = np.zeros((len(X), n))
    np.put_along_axis(features, X, 1.0, axis=1)
    info = MDPInfo(Box(0.0, float(len(X)), (1,)), Discrete(2), gamma, len(X))
    agent = TrueOnlineSARSALambda(
        info,
        First(),
        Parameter(alpha),
        lambda_coeff=lam,
        features=lambda state: features[int(state[0])],
        approximator_params={"input_shape": (n,), "output_shape": (2,), "n_actions": 2},
    )
    states = [np.array([t]) for t in range(len(X))]

    def learn():
        agent.episode_start()
        for t, reward in enumerate(rewards):
            agent.fit([(states[t], action, reward, states[t + 1], False, False)])

    def predictions():  # before each update, as `run` gives them
        agent.episode_start()
        values = []
        for t, reward in enumerate(rewards):
            values.append(float(agent.Q.predict(features[t], action)))
            agent.fit([(states[t], action, reward, states[t + 1], False, False)])
        return values

    return predictions, learn


def swift(X, rewards, n, alpha, lam, gamma, adapt=True):
    """`step` takes the features entered and the reward on the way there, and returns their value."""
    from swift_td import SwiftTDBinaryFeatures

    options = {"eta": 0.5, "decay": 0.99, "meta_step_size": 1e-3, "epsilon": 1e-8}
    if not adapt:
        options = {"eta": 1.0, "decay": 1.0, "meta_step_size": 0.0, "epsilon": 1e-12}
    learner = SwiftTDBinaryFeatures(num_of_features=n, lambda_=lam, alpha=alpha, gamma=gamma, eta_min=1e-10, **options)
    rows = X.tolist()  # lists: it reads arrays element by element, which is slower

    def learn():
        step = learner.step
        step(rows[0], 0.0)
        for t, reward in enumerate(rewards):
            step(rows[t + 1], reward)

    def predictions():  # `step` returns the value from before it learned, `run` gives the one from after
        values = []
        for t, reward in enumerate([0.0, *rewards[:-1]]):
            learner.step(rows[t], reward)
            values.append(learner.predict(rows[t]))
        return values

    return predictions, learn


def main():
    peer, steps = sys.argv[1], int(sys.argv[2])
    with np.load(sys.argv[3]) as stream:
        X, rewards = stream["X"][: steps + 1], stream["rewards"][:steps].tolist()
        parameters = (int(stream["n"]), *(float(stream[name]) for name in ("step_size", "trace_decay", "discount")))
    if peer == "mushroom":
        predictions, learn = mushroom(X, rewards, *parameters)
    else:
        predictions, learn = swift(X, rewards, *parameters, adapt=peer == "swift")
    answer([version("mushroom-rl" if peer == "mushroom" else "swifttd"), predictions()])
    gc.disable()  # as for those it takes turns with
    for _ in sys.stdin:
        learn()
        answer([])


def answer(what):
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
