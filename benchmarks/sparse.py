"""Nine active features of 200,000: the library against C, lazy and eager, and against NumPy."""

from __future__ import annotations

import numpy as np

from benchmarks import c_loops, streams
from benchmarks.eager import EagerSparse, follow
from benchmarks.report import Section, Settings, Table, at_least, at_most
from benchmarks.timing import race
from trueonline import TrueOnlineTD

N = 200_000
STEPS = 50_000
PARAMETERS = {"step_size": 0.01, "trace_decay": 0.9, "discount": 0.99}


def measure(settings: Settings) -> Section:
    section = Section(
        "Sparse features",
        f"True online TD(λ), {streams.ACTIVE} active of {N:,} features, {STEPS:,} steps, α = 0.01, λ = 0.9, γ = 0.99. "
        "`run` checks its input, the C loops do not. All go on with warm memory. Times are per step.",
    )
    rows = []
    for name, stream in (("tile-coded", streams.tile_coded), ("uniform", streams.uniform)):
        X, rewards = stream(N, STEPS)
        rows += _race(section, settings, name, X, rewards)
    section.tables.append(Table(("stream", "what", "per step", "takes, against `run`"), rows))
    if not c_loops.available():
        section.notes.append(c_loops.MISSING)
    return section


def _race(section: Section, settings: Settings, stream: str, X: np.ndarray, rewards: np.ndarray) -> list[tuple]:
    few = 30  # steps for those that need many
    some = 300
    learner = TrueOnlineTD(N, **PARAMETERS)
    numpy = EagerSparse(N, **PARAMETERS)
    rows_, rewards_ = list(X[: few + 1]), rewards[:few].tolist()
    competitors = {"run": lambda: learner.run(X, rewards)}
    slow = {"run": competitors["run"], "numpy": lambda: follow(numpy, rows_, rewards_)}
    if c_loops.available():
        lazy = c_loops.Lazy(N, **PARAMETERS)
        eager = c_loops.Eager("eager_true_online", N, **PARAMETERS, flags=c_loops.PLAIN)
        _agree(X, rewards, some)
        competitors["lazy"] = lambda: lazy.run(X, rewards)
        slow["eager"] = lambda: eager.run(X[: some + 1], rewards[:some])
    times = race(competitors, rounds=settings.rounds)
    rows = [(stream, "`run`", times.per_step("run", STEPS), "1")]
    if c_loops.available():
        rows.append((stream, "C, lazy", times.per_step("lazy", STEPS), times.ratio("lazy", "run")))
        if stream == "tile-coded":
            section.targets.append(at_most("`run` against the lazy loop in C", 1.2, times.ratio("run", "lazy")))
    times = race(slow, rounds=settings.rounds, tries=2)
    if c_loops.available():
        ratio = times.ratio("eager", "run", some, STEPS)
        rows.append((stream, "C, eager", times.per_step("eager", some), ratio))
        if stream == "tile-coded":
            section.targets.append(at_least("the eager loop in C against `run`", 500.0, ratio))
    ratio = times.ratio("numpy", "run", few, STEPS)
    rows.append((stream, "NumPy, eager", times.per_step("numpy", few), ratio))
    return rows


def _agree(X: np.ndarray, rewards: np.ndarray, some: int) -> None:
    """All must predict the same before they are timed; AssertionError otherwise."""
    values = TrueOnlineTD(N, **PARAMETERS).run(X, rewards)
    lazy = c_loops.Lazy(N, **PARAMETERS).run(X, rewards)
    eager = c_loops.Eager("eager_true_online", N, **PARAMETERS, flags=c_loops.PLAIN)
    np.testing.assert_allclose(lazy, values, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(eager.run(X[: some + 1], rewards[:some]), values[:some], rtol=0.0, atol=1e-9)
