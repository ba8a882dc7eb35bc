"""The costs of the methods beside one another, on sparse features."""

from __future__ import annotations

from functools import partial

from benchmarks import streams
from benchmarks.report import Section, Settings, Table
from benchmarks.timing import race
from trueonline import AccumulateTD, ReplaceTD, TrueOnlineTD

N = 200_000
PARAMETERS = {"trace_decay": 0.9, "discount": 0.99}


def schedule(t: int) -> float:
    return 0.01 / (1.0 + 1e-5 * t)


def measure(settings: Settings) -> Section:
    steps = 10_000 if settings.quick else 50_000
    X, rewards = streams.tile_coded(N, steps)
    learners = {
        "accumulate": AccumulateTD(N, step_size=0.01, **PARAMETERS),
        "replace": ReplaceTD(N, step_size=0.01, **PARAMETERS),
        "true online": TrueOnlineTD(N, step_size=0.01, **PARAMETERS),
        "true online, schedule": TrueOnlineTD(N, step_size=schedule, **PARAMETERS),
    }
    competitors = {name: partial(learner.run, X, rewards) for name, learner in learners.items()}
    competitors["the schedule alone"] = lambda: [schedule(t) for t in range(steps)]
    times = race(competitors, rounds=settings.rounds)
    rows = [(name, times.per_step(name, steps), times.ratio(name, "accumulate")) for name in competitors]
    return Section(
        "Methods",
        f"`run` on the tile-coded stream, {streams.ACTIVE} active of {N:,} features, {steps:,} steps. A schedule is a "
        "Python function that is called once a step before the compiled loop begins; the last row is these calls alone.",
        [Table(("method", "per step", "against accumulate"), rows)],
    )
