"""A problem of your own, swept with the methods of the package.

    python examples/own_problem.py

The problem: from the hour of the day, predict how much a house will draw from the grid in the hours to come.
"""

import numpy as np

import trueonline as to


class House:
    """A day of 24 hours, one after the other. A study asks a problem for these four things and a trajectory."""

    def __init__(self, discount=0.97):
        hours = np.arange(24)
        self.discount = discount
        self.load = 0.3 + np.exp(-((hours - 8.0) ** 2) / 4.0) + 2.0 * np.exp(-((hours - 19.0) ** 2) / 8.0)  # kW
        away = np.abs(hours[:, None] - np.arange(0, 24, 4))
        self.features = (np.minimum(away, 24 - away) <= 2).astype(float)  # every four hours a block of five
        ahead = discount ** ((hours - hours[:, None]) % 24) / (1.0 - discount**24)  # all the days to come
        self.lms_weights = np.linalg.lstsq(self.features, ahead @ self.load)[0]  # every hour comes as often
        self.metric = self.features.T @ self.features / 24.0

    def trajectory(self, steps, seed):
        """States, rewards and discounts; the same seed gives the same days."""
        states = np.arange(steps + 1) % 24
        noise = 0.2 * np.random.default_rng(seed).normal(size=steps)
        return states, self.load[states[:-1]] + noise, np.full(steps, self.discount)


def main():
    methods = ("accumulate", "replace", "true_online")
    step_sizes, trace_decays = np.geomspace(0.01, 1.0, 13), [0.0, 0.5, 0.8, 0.9, 0.95, 1.0]
    table = to.sweep(House(), methods, step_sizes, trace_decays, runs=20, steps=7 * 24)

    means = table.group_by(["method", "step_size", "trace_decay"]).aggregate([("error", "mean")]).to_pylist()
    print("method        error      α     λ   (the best of each; mean over a week)")
    for method in methods:
        best = min((row for row in means if row["method"] == method), key=lambda row: row["error_mean"])
        print(f"{method:12} {best['error_mean']:6.4f} {best['step_size']:6.3f} {best['trace_decay']:5.2f}")


if __name__ == "__main__":  # so that engine="dask" may start workers, which read this file again
    main()
