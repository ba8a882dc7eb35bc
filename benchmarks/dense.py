"""Dense features: the library against eager loops in C, and what true online costs beside accumulating traces."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks import c_loops, streams
from benchmarks.report import Ratio, Section, Settings, Table, Target
from benchmarks.timing import race
from trueonline import AccumulateTD, ReplaceTD, TrueOnlineTD

METHODS = {
    "accumulate": (AccumulateTD, "dense_accumulate"),
    "replace": (ReplaceTD, "dense_replace"),
    "true online": (TrueOnlineTD, "dense_true_online"),
}
COLUMNS = ("n", "steps", "method", "`run`", "C, same method", "`run` against C", "against C accumulate")
PARAMETERS = {"trace_decay": 0.9, "discount": 0.99}


def measure(settings: Settings) -> Section:
    section = Section(
        "Dense features",
        "`run` against the eager loop in C of the same method, compiled with leave to reassociate: "
        f"`cc {' '.join(c_loops.REASSOCIATING)}`. Both read the same X, and `run` checks it. For replace, X is binary. Once "
        "with long streams, whose X (80 MB, for n = 10 32 MB) comes from main memory, for which both wait; and once with "
        "short ones, whose X (1 MB) stays in the cache, and where the fixed cost of calling `run` shows. "
        "The last column compares true online by `run` with *accumulate* in C. Times are per step.",
    )
    if not c_loops.available():
        section.notes.append(c_loops.MISSING)
        return section
    for kind, numbers in (("long streams", 10_000_000), ("short streams", 130_000)):
        rows, same, beside = [], [], []
        for n in (10, 100, 1_000) if settings.quick else (10, 100, 1_000, 10_000, 100_000):
            steps = min(400_000, numbers // n)
            if steps < 10:
                continue  # of so many features not even a short stream fits into the cache
            for name in METHODS:
                row, ratio, other = _race(settings, name, n, steps)
                rows.append(row)
                same.append((ratio, f"{name}, n = {n:,}"))
                if other is not None and n >= 100:
                    beside.append((other, f"n = {n:,}"))
        section.tables.append(Table(COLUMNS, rows))
        section.targets.append(_worst(f"{kind}: `run` against C, worst of all methods and n", 1.3, same))
        section.targets.append(_worst(f"{kind}: true online against C accumulate, worst from n = 100 up", 1.25, beside))
    return section


def _race(settings: Settings, name: str, n: int, steps: int) -> tuple[list, Ratio, Ratio | None]:
    binary = name == "replace"
    X, rewards = streams.dense(n, steps, binary=binary)
    # A tenth of the n binary features are active, so α shrinks with n to keep α·φᵀφ the same, and learning stable.
    parameters = PARAMETERS | {"step_size": 0.01 / (0.1 * n if binary else 1.0)}
    learner, loop = METHODS[name]

    def in_c(loop: str) -> c_loops.Eager:
        return c_loops.Eager(loop, n, **parameters, flags=c_loops.REASSOCIATING)

    values = learner(n, **parameters).run(X, rewards)
    np.testing.assert_allclose(in_c(loop).run(X, rewards), values, rtol=0.0, atol=1e-9)
    competitors = {
        "run": partial(learner(n, **parameters).run, X, rewards),
        "same": partial(in_c(loop).run, X, rewards),
    }
    if name == "true online":
        competitors["accumulate"] = partial(in_c("dense_accumulate").run, X, rewards)
    times = race(competitors, rounds=settings.rounds)
    ratio = times.ratio("run", "same")
    other = times.ratio("run", "accumulate") if name == "true online" else None
    row = [f"{n:,}", f"{steps:,}", name, times.per_step("run", steps), times.per_step("same", steps), ratio, other or "–"]
    return row, ratio, other


def _worst(name: str, limit: float, ratios: list[tuple[Ratio, str]]) -> Target:
    ratio, where = max(ratios, key=lambda pair: pair[0].median)
    over = sum(pair[0].median > limit for pair in ratios)
    return Target(name, f"≤ {limit:g}×", f"{ratio} at {where}; {over} of {len(ratios)} over", over == 0)
