"""One transition at a time, from Python: the cost of a call."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks import streams
from benchmarks.eager import EagerDense, EagerSparse, follow
from benchmarks.report import Section, Settings, Table, Target, at_least, at_most
from benchmarks.timing import race
from trueonline import TrueOnlineTD

PARAMETERS = {"step_size": 0.01, "trace_decay": 0.9, "discount": 0.99}
STEPS = 2_000
LARGE = 200_000


def measure(settings: Settings) -> Section:
    section = Section(
        "Single updates",
        "True online TD(λ), one call of `update` per transition from a loop in Python, against Algorithm 2 in NumPy, in "
        "place. The rewards are Python floats, except where it says NumPy (`np.float64`).",
    )
    X, rewards = streams.dense(100, STEPS, binary=False)
    learner, numpy = TrueOnlineTD(100, **PARAMETERS), EagerDense(100, **PARAMETERS)
    rows, numbers = list(X), rewards.tolist()
    follow(learner, rows, numbers)
    follow(numpy, rows, numbers)
    np.testing.assert_allclose(numpy.w, learner.weights, rtol=0.0, atol=1e-9)
    times = race(
        {
            "update": partial(follow, learner, rows, numbers),
            "boxed": partial(follow, learner, rows, list(rewards)),
            "numpy": partial(follow, numpy, rows, numbers),
        },
        rounds=settings.rounds,
    )
    ratio = times.ratio("numpy", "update")
    boxed = times.ratio("boxed", "update")
    table = [
        ("dense, n = 100", "`update`", times.per_step("update", STEPS), "1"),
        ("dense, n = 100", "`update`, NumPy rewards", times.per_step("boxed", STEPS), boxed),
        ("dense, n = 100", "NumPy", times.per_step("numpy", STEPS), ratio),
    ]
    section.targets.append(at_least("NumPy against `update`, n = 100", 8.0, ratio))

    X, rewards = streams.tile_coded(LARGE, STEPS)
    few = 30
    learner, numpy = TrueOnlineTD(LARGE, **PARAMETERS), EagerSparse(LARGE, **PARAMETERS)
    rows, numbers = list(X), rewards.tolist()
    times = race(
        {
            "update": partial(follow, learner, rows, numbers),
            "numpy": partial(follow, numpy, rows[: few + 1], numbers[:few]),
        },
        rounds=settings.rounds,
    )
    what = f"{streams.ACTIVE} of n = {LARGE:,}"
    took = times.per_step("update", STEPS)
    table.append((what, "`update`", took, "1"))
    table.append((what, "NumPy", times.per_step("numpy", few), times.ratio("numpy", "update", few, STEPS)))
    section.tables.append(Table(("features", "what", "per call", "takes, against `update`"), table))
    section.tables.append(_cliffs(section, settings))
    section.tables.append(_fixed_cost(settings))
    section.targets.append(Target(f"`update`, {what}", "≤ 2.5 µs", took, took.seconds <= 2.5e-6))
    return section


def _cliffs(section: Section, settings: Settings) -> Table:
    """The same features and numbers given in other ways, against an array of indices and a Python float."""
    calls = 1_000
    active, state = np.array([7, 90, 150, 160, 333, 722, 1044, 1167, 1911]), np.array([7])
    read_only, strided = active.copy(), np.repeat(active, 2)[::2]
    read_only.flags.writeable = False
    ways = {
        "an array of 9 indices, a float reward": (active, 1.0, {}),
        "an int reward": (active, 1, {}),
        "a NumPy reward, float32": (active, np.float32(1.0), {}),
        "a NumPy reward, float64": (active, np.float64(1.0), {}),
        "`discount=` given": (active, 1.0, {"discount": 0.9}),
        "`trace_decay=` given": (active, 1.0, {"trace_decay": 0.5}),
        "a read-only array": (read_only, 1.0, {}),
        "an array that is not contiguous": (strided, 1.0, {}),
        "an array of 1 index, a float reward": (state, 1.0, {}),
        "an int state": (7, 1.0, {}),
    }
    races = {}
    for name, (x, reward, more) in ways.items():
        learner = TrueOnlineTD(2_000, **PARAMETERS)
        learner.start(x)
        races[name] = partial(_repeat, learner, x, reward, more, calls)
    times = race(races, rounds=settings.rounds)
    first, *_, one, single = ways
    rows = [(name, times.per_step(name, calls), times.ratio(name, one if name == single else first)) for name in ways]
    for name in ways:
        if name not in (first, one):
            section.targets.append(at_most(name, 1.5, times.ratio(name, one if name == single else first)))
    return Table(("`update` with", "per call", "against an array and a float"), rows)


def _repeat(learner: TrueOnlineTD, x: object, reward: float, more: dict, calls: int) -> None:
    for _ in range(calls):
        learner.update(reward, x, **more)


def _fixed_cost(settings: Settings) -> Table:
    """The cost of one call of `run` before its first step."""
    runs = {}
    for n in (10, 1_000, 100_000):
        X, rewards = streams.dense(n, 1, binary=False)
        runs[f"dense, n = {n:,}"] = partial(TrueOnlineTD(n, **PARAMETERS).run, X, rewards)
    X, rewards = streams.tile_coded(LARGE, 1)
    runs[f"{streams.ACTIVE} of n = {LARGE:,}"] = partial(TrueOnlineTD(LARGE, **PARAMETERS).run, X, rewards)
    times = race(runs, rounds=settings.rounds)
    return Table(("features", "`run` of a single transition"), [(name, times.per_step(name, 1)) for name in runs])
