"""SwiftTD with 8,402 active features of 400,000: the library, and adapted step-sizes, against an eager loop in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import c_loops, streams
from benchmarks.report import Ratio, Section, Settings, Table, at_least, at_most
from benchmarks.timing import race
from trueonline import SwiftTD, TrueOnlineTD
from trueonline.core.memory.layout import COUNT, each

N, ACTIVE = 400_000, 8_402
EPSILON = 1e-9
LEARNED: dict[str, Any] = {"bound": 0.1, "decay": 0.999, "meta_step_size": 0.001, "min_step_size": 1e-10}
PARAMETERS: dict[str, Any] = {"trace_decay": 0.95, "discount": 0.98, **LEARNED}
LEAST = 5.0  # the target for SwiftTD
MOST = 0.33  # that for adapted step-sizes, of the time of SwiftTD as it is published
DENSE, MOST_DENSE = 100, 1.5  # features, and the target for adapted step-sizes over them, of the time of `SwiftTD`


def measure(settings: Settings) -> Section:
    section = Section(
        "SwiftTD",
        f"{ACTIVE:,} active of {N:,} binary features, λ = 0.95, γ = 0.98, otherwise the defaults. The loop in C is eager: plain "
        f"vectors of doubles, and a list of the features with trace, as in the published program, with its threshold for traces at "
        f"{EPSILON:.0e}. `run` drops only what cannot matter in double precision, and checks its input. “Exceeding” is the share "
        "of the steps at which the rate of learning is above its bound: `run` then has a second exponential to compute. The "
        "last columns are true online TD(λ) with `meta_step_size`, whose steps cost the active features only.",
    )
    if not c_loops.available():
        section.notes.append(c_loops.MISSING)
        return section
    steps = 200 if settings.quick else 600
    given = {
        "screens of a game": (*streams.game(steps), (1e-2, 1e-5)),
        "uniform": (*streams.many(N, ACTIVE, steps // 6), (1e-2,)),
    }
    rows = []
    for stream, (X, rewards, alphas) in given.items():
        for alpha in alphas:
            rows.append(_race(section, settings, stream, X, rewards, alpha))
    columns = (
        "stream",
        "α",
        "exceeding",
        "`run`, per step",
        "with trace",
        "C, per step",
        "with trace",
        "C takes, against `run`",
        "adapted, against C",
        "adapted, against `run`",
    )
    section.tables.append(Table(columns, rows))
    section.targets.append(
        at_most(f"adapted step-sizes against `SwiftTD`, {DENSE} dense features", MOST_DENSE, _dense(settings))
    )
    return section


def _dense(settings: Settings) -> Ratio:
    """The time of adapted step-sizes over dense features, of that of `SwiftTD`."""
    X, rewards = streams.dense(DENSE, 5_000, binary=False)
    swift = SwiftTD(DENSE, 0.1 / DENSE, **PARAMETERS)
    adapted = TrueOnlineTD(DENSE, 0.1, PARAMETERS["trace_decay"], PARAMETERS["discount"], meta_step_size=0.1)
    runs = {"swift": lambda: swift.run(X, rewards), "adapted": lambda: adapted.run(X, rewards)}
    return race(runs, rounds=settings.rounds).ratio("adapted", "swift")


def _race(section: Section, settings: Settings, stream: str, X: np.ndarray, rewards: np.ndarray, alpha: float) -> tuple:
    _agree(X[:101], rewards[:100], alpha)
    learner, eager = SwiftTD(N, alpha, **PARAMETERS), c_loops.Swift(N, alpha, **PARAMETERS, epsilon=EPSILON)
    with_first = np.append(0.0, rewards)  # the first row of the loop in C has a reward too, which teaches nothing
    adapted = TrueOnlineTD(N, alpha, PARAMETERS["trace_decay"], PARAMETERS["discount"], meta_step_size=0.1)
    runs = {
        "run": lambda: learner.run(X, rewards),
        "C": lambda: eager.run(X, with_first),
        "adapted": lambda: adapted.run(X, rewards),
    }
    times = race(runs, rounds=settings.rounds, tries=1)
    steps, ratios = len(rewards), [times.ratio(*pair) for pair in (("C", "run"), ("adapted", "C"), ("adapted", "run"))]
    section.targets.append(at_least(f"the eager loop in C against `run`, {stream}, α = {alpha:g}", LEAST, ratios[0]))
    section.targets.append(
        at_most(f"adapted step-sizes against the eager loop in C, {stream}, α = {alpha:g}", MOST, ratios[1])
    )
    traced = int(each(learner._memory)[0].numbers[COUNT])
    row = (times.per_step("run", steps), f"{traced:,}", times.per_step("C", steps), f"{eager.traced:,}", *ratios)
    return stream, f"{alpha:g}", f"{learner.bounded / learner.steps:.0%}", *row


def _agree(X: np.ndarray, rewards: np.ndarray, alpha: float) -> None:
    """Both must predict the same before they are timed, with traces that are not dropped; AssertionError otherwise."""
    learner, eager = SwiftTD(N, alpha, **PARAMETERS), c_loops.Swift(N, alpha, **PARAMETERS, epsilon=1e-30)
    wanted = eager.run(X, np.append(0.0, rewards))
    learner.start(X[0])
    values = [0.0]
    for x, reward in zip(X[1:], rewards.tolist(), strict=True):
        values.append(learner.predict(x))
        learner.update(reward, x)
    np.testing.assert_allclose(values, wanted, rtol=0.0, atol=1e-9 * np.abs(wanted).max())
