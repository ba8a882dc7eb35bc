"""
The cost of a step
==================

Nine features are active at each step. Written with NumPy, a step of TD(λ) passes over all weights and traces, so it
costs more the more features there are. Here a step touches the active features only. The times were measured when
this page was made. (All rows draw on the same 2,000 features, spread over the whole range. Where every step meets new
ones, it also waits for the machine's memory.)
"""

from itertools import pairwise
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import trueonline as to
from trueonline.look import look

rng = np.random.default_rng(seed=0)
steps, sizes = 20_000, [2_000, 20_000, 200_000, 2_000_000]


def seconds(work, *arguments):
    """The shortest of five tries."""
    tries = []
    for _ in range(5):
        begin = perf_counter()
        work(*arguments)
        tries.append(perf_counter() - begin)
    return min(tries)


def with_numpy(w, e, rows, alpha=0.01, gamma=0.99, lam=0.9):
    for x, x_next in pairwise(rows):
        e *= gamma * lam
        e[x] += 1.0
        w += alpha * (1.0 + gamma * w[x_next].sum() - w[x].sum()) * e


ours, numpy = [], []
for n in sizes:
    used = rng.choice(n, size=2_000, replace=False)
    rows = used[rng.permuted(np.tile(np.arange(2_000), (200, 1)), axis=1)[:, :9]]
    rows = rows[rng.integers(200, size=steps + 1)]
    learner = to.TrueOnlineTD(n, step_size=0.01, trace_decay=0.9, discount=0.99)
    learner.run(rows[:2], [1.0])  # compiles
    ours.append(seconds(learner.run, rows, np.ones(steps)) / steps)
    few = min(500, 20_000_000 // n)
    numpy.append(seconds(with_numpy, np.zeros(n), np.zeros(n), rows[: few + 1]) / few)

with look():
    _, axis = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    axis.plot(
        sizes, 1e6 * np.array(numpy), "s--", color="#D55E00", label="TD(λ) with NumPy"
    )
    axis.plot(
        sizes,
        1e6 * np.array(ours),
        "o-",
        color="#009E73",
        label="true online TD(λ), this package",
    )
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="number of features",
        ylabel="microseconds a step",
    )
    axis.legend()
    plt.show()
