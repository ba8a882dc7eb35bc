"""The costs of the methods beside one another, on sparse features, and those of what a rule of one's own may do."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import trueonline as to
from benchmarks import streams
from benchmarks.report import Section, Settings, Table, at_most
from benchmarks.timing import race
from trueonline import AccumulateTD, ReplaceTD, TrueOnlineTD
from trueonline.core.memory import decay, imprint, learn, recall, scale

N = 200_000
PARAMETERS = {"trace_decay": 0.9, "discount": 0.99}


KAPPA = 0.01


@to.kernel
def with_a_constant(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, (1.0 - KAPPA) * alpha * delta)
    return v, delta, v_next


@to.kernel
def with_a_parameter(memory, x, reward, x_next, alpha, gamma, lam, gamma_next, kappa):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, (1.0 - kappa) * alpha * delta)
    return v, delta, v_next


@to.kernel
def with_scaled_weights(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    scale(memory, 1.0 - KAPPA * alpha)
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, (1.0 - KAPPA) * alpha * delta)
    return v, delta, v_next


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
    section = Section(
        "Methods",
        f"`run` on the tile-coded stream, {streams.ACTIVE} active of {N:,} features, {steps:,} steps. A schedule is a "
        "Python function that is called once a step before the compiled loop begins; the last row is these calls alone. Rules of "
        "one's own are the same rule with a number in its text, with a parameter, and with w ← (1 − ακ)w in every step.",
        [Table(("method", "per step", "against accumulate"), rows)],
    )
    made = {
        "constant": to.method(with_a_constant),
        "parameter": to.method(with_a_parameter, parameters={"kappa": KAPPA}),
        "scaled weights": to.method(with_scaled_weights),
    }
    rows = []
    for what, (n, given) in {
        f"{streams.ACTIVE} of {N:,} features": (N, (X, rewards)),
        f"{streams.ACTIVE} of 20,000,000 features": (20_000_000, streams.few(20_000_000, steps, 2_000)),
        "100 dense features": (100, (_dense(steps), rewards)),
    }.items():
        learners = {name: each.learner(n, step_size=0.001, **PARAMETERS) for name, each in made.items()}
        times = race({name: partial(each.run, *given) for name, each in learners.items()}, rounds=settings.rounds)
        own = [times.ratio(name, "constant") for name in ("parameter", "scaled weights")]
        rows.append([what, times.per_step("constant", steps), *own])
        section.targets.append(at_most(f"a rule with a parameter, {what}", 1.02, own[0]))
        section.targets.append(at_most(f"a rule that scales its weights, {what}", 1.05, own[1]))
    section.tables.append(
        Table(("rules of one's own", "with a constant", "with a parameter", "with scaled weights"), rows)
    )
    return section


def _dense(steps: int) -> Any:
    return np.random.default_rng(0).normal(size=(steps + 1, 100)) / 10.0
