"""The study of the myoelectric arm: every α and λ of three methods over 58,000 steps, and the eager loop it replaces."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter

import numba
import numpy as np

from benchmarks.report import Seconds, Section, Settings, Table, Target, short
from benchmarks.timing import race
from trueonline.lab import recordings
from trueonline.lab.experiment import Settings as PaperSettings
from trueonline.lab.experiments import myoelectric, myoelectric_runs

THREADS, LIMIT = 2, 30.0
ALPHA, LAM = 0.5, 0.9
STRETCH = 200  # steps of the eager loop
LAMS = (0.0, 0.5, 0.9, 0.99, 1.0)


def measure(settings: Settings) -> Section:
    recording = recordings.simulated(myoelectric.STEPS + myoelectric_runs.tail(myoelectric_runs.DISCOUNT))
    stream = myoelectric_runs.streams(recording)[0]
    rows = myoelectric_runs.tiles().many(recording.normalised()[: STRETCH + 1])
    section = Section(
        "Myoelectric arm",
        f"{stream.n_active} active of {myoelectric_runs.FEATURES:,} features, of which {stream.n_features:,} occur, "
        f"{len(stream.cumulants):,} steps; the absolute return error is measured at each. The eager loop is Algorithm 2 in Numba "
        "over dense w and e, with the active features by their indices, in one pass over all features a step.",
    )
    section.tables.append(_per_step(stream, settings))
    steps, seconds, sweep = _study(settings)
    scale = " (a fifth of the trace decays)" if settings.quick else ""
    section.tables.append(
        Table(
            ("the whole study" + scale, ""),
            [
                ("learning steps, without settings that diverge", f"{steps:,}"),
                (f"the sweep alone, {THREADS} threads", Seconds(sweep)),
                (f"learning steps a second, {THREADS} threads", f"{short(steps / sweep / 1e6)} million"),
                ("all of it: simulator, features, sweep, bootstrap, pictures drawn", Seconds(seconds)),
            ],
        )
    )
    section.targets.append(
        Target(f"the arm study, warm, {THREADS} threads", f"≤ {LIMIT:g} s", Seconds(seconds), seconds <= LIMIT)
    )
    eager = _Eager(rows, stream)
    _agree(eager, stream, rows)
    competitors = {"sweep": lambda: _one(stream, "true_online", LAM), "eager": eager.run}
    times = race(competitors, rounds=settings.rounds, tries=2)
    ratio = times.ratio("eager", "sweep", STRETCH, len(stream.cumulants))
    table = [
        ("sweep", times.per_step("sweep", len(stream.cumulants)), "1"),
        ("eager dense loop, Numba", times.per_step("eager", STRETCH), ratio),
    ]
    section.tables.append(Table((f"true online, λ = {LAM:g}", "per step", "ratio"), table))
    return section


def _one(stream: myoelectric_runs.Stream, method: str, lam: float) -> np.ndarray:
    """One setting; with a small α, where accumulating traces would diverge with a larger one and stop early."""
    return myoelectric_runs.errors(stream, method, (ALPHA if method == "true_online" else 0.01,), (lam,))


def _per_step(stream: myoelectric_runs.Stream, settings: Settings) -> Table:
    rows: list[tuple] = []
    for method in myoelectric_runs.COMPARED:
        competitors = {f"{lam:g}": partial(_one, stream, method, lam) for lam in LAMS}
        times = race(competitors, rounds=settings.rounds, tries=1)
        rows.append((method, *(times.per_step(name, len(stream.cumulants)) for name in competitors)))
    return Table(("per step, one thread", *(f"λ = {lam:g}" for lam in LAMS)), rows)


def _study(settings: Settings) -> tuple[int, float, float]:
    """Learning steps of settings that do not diverge, seconds of all, and of the sweep alone."""
    decays = myoelectric_runs.TRACE_DECAYS
    if settings.quick:
        myoelectric_runs.TRACE_DECAYS = decays[::5]
    try:
        with tempfile.TemporaryDirectory() as folder:
            begun: list[float] = []

            def progress(task: object, done: int, of: int) -> None:
                begun.append(perf_counter())

            begin = perf_counter()
            outcome = myoelectric.run(PaperSettings(Path(folder), threads=THREADS, progress=progress))
            seconds = perf_counter() - begin
        finite = int(np.isfinite(outcome.data["error"].to_numpy()).sum())
        return finite * (myoelectric.STEPS + myoelectric_runs.tail(0.97)), seconds, begun[-1] - begun[0]
    finally:
        myoelectric_runs.TRACE_DECAYS = decays


# --- The eager loop -------------------------------------------------------------------------------


@numba.njit(fastmath={"reassoc", "contract", "nsz"})
def eager_true_online(w, e, X, lengths, cumulants, alpha, gamma, lam, values):  # type: ignore[no-untyped-def]
    """Algorithm 2 with plain vectors."""
    w[:] = 0.0
    e[:] = 0.0
    v_old = 0.0
    for t in range(cumulants.size):
        v = trace_x = v_next = 0.0
        for j in range(lengths[t]):
            v += w[X[t, j]]
            trace_x += e[X[t, j]]
        for j in range(lengths[t + 1]):
            v_next += w[X[t + 1, j]]
        delta = cumulants[t] + gamma * v_next - v
        dutch = 1.0 - alpha * gamma * lam * trace_x
        step, decay = alpha * (delta + v - v_old), gamma * lam
        for i in range(w.size):
            e[i] *= decay
            w[i] += step * e[i]
        for j in range(lengths[t]):
            e[X[t, j]] += dutch
            w[X[t, j]] += step * dutch - alpha * (v - v_old)
        values[t] = v
        v_old = v_next


class _Eager:
    def __init__(self, rows: object, stream: myoelectric_runs.Stream) -> None:
        self.lengths = np.array([len(row) for row in rows])  # type: ignore[attr-defined]
        self.X = np.zeros((len(self.lengths), stream.n_active), np.int64)
        for t, row in enumerate(rows):  # type: ignore[arg-type, var-annotated]
            self.X[t, : len(row)] = row
        self.w, self.e = np.zeros(myoelectric_runs.FEATURES), np.zeros(myoelectric_runs.FEATURES)
        self.cumulants, self.values = stream.cumulants[:STRETCH], np.zeros(STRETCH)
        self.numbers = (ALPHA / stream.n_active, stream.discount, LAM)

    def run(self) -> None:
        eager_true_online(self.w, self.e, self.X, self.lengths, self.cumulants, *self.numbers, self.values)


def _agree(eager: _Eager, stream: myoelectric_runs.Stream, rows: object) -> None:
    """It must predict what the package's learner predicts; AssertionError otherwise."""
    from trueonline import TrueOnlineTD

    eager.run()
    alpha, gamma, lam = eager.numbers
    values = TrueOnlineTD(myoelectric_runs.FEATURES, alpha, lam, gamma).run(rows, stream.cumulants[:STRETCH])
    np.testing.assert_allclose(eager.values, values, rtol=1e-9)
