"""A horde: thousands of questions over one stream, a sample at a time and in one call, against plain NumPy and bare copying."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np

from benchmarks.report import Section, Settings, Table, Target, short
from benchmarks.timing import race
from trueonline.features import TileCoder
from trueonline.problems import arm
from trueonline.streams.horde.horde import Horde
from trueonline.streams.questions.questions import Question, discount_of

STEP_SIZE, TRACE_DECAY = 0.1, 0.9  # the step-size is divided by the number of active features
CUT = 1e-9  # the NumPy version forgets smaller traces
COPIED = 2**28  # bytes read and written, beyond every cache
EIGHT = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # horizons in seconds
PIECE = 500  # samples that `run` is given at a time
SEED = 0


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    rate: float  # samples a second
    horizons: tuple[float, ...]  # in seconds: as many groups
    questions: int
    features: int
    rows: list[np.ndarray]  # the active features at each sample
    given: Any  # the same as `run` is given it
    plain: tuple[int, int]  # steps of the NumPy version: to begin with, and timed
    limit: float  # seconds per sample

    @property
    def active(self) -> int:
        return max(map(len, self.rows))

    @property
    def step_size(self) -> float:
        return STEP_SIZE / self.active

    def asked(self) -> list[Question]:
        """Each target at each horizon, beside each other."""
        discounts = [discount_of(horizon, self.rate) for horizon in self.horizons]
        return [
            Question(f"{i}", discounts[i % len(discounts)], TRACE_DECAY, self.step_size) for i in range(self.questions)
        ]

    @property
    def traffic(self) -> int:
        """Bytes that no update can spare: active weights read and written once, cumulants read, answers written."""
        return 8 * self.questions * (2 * self.active + 2)


def measure(settings: Settings) -> Section:
    section = Section(
        "Horde",
        f"True online TD(λ), λ = {TRACE_DECAY:g}, all features met before. `run` is given {PIECE} samples at a time. NumPy: all "
        "questions at once, weights a row for each feature, and the eager rule over a list of the traced features, from which "
        f"those below {CUT:g} are taken. Copying: the time in which as many bytes are copied as no update can spare (the weights "
        "of the active features read and written once, cumulants read, answers written); what is still in a cache is had for less.",
    )
    rows: list[tuple] = []
    for case in (_arm(settings), _random(settings), _large(settings)):
        rows += _race(case, settings, section)
    section.tables.append(Table(("stream", "what", "per sample", "of `run`", "of copying", "of a core"), rows))
    return section


def _race(case: Case, settings: Settings, section: Section) -> list[tuple]:
    steps = len(case.rows) - 1
    cumulants = np.random.default_rng(SEED).normal(size=(steps, case.questions))
    horde, single, plain = Horde(case.features, case.asked()), Horde(case.features, case.asked()), Plain(case)
    few, timed = case.plain
    found = horde.run(case.given, cumulants)[:few]
    expected = np.array([plain.step(cumulants[t], case.rows[t + 1]) for t in range(few)])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())
    ahead = cycle(zip(cumulants[few:], case.rows[few + 1 :], strict=True))
    copies = math.ceil(COPIED / case.traffic)
    source, target = np.ones((2, copies * case.traffic // 16))
    times = race(
        {
            "run": partial(_run, horde, case.given, cumulants),
            "update": partial(_follow, single, case.rows, cumulants),
            "plain": partial(_some, plain, ahead, timed),
            "copy": partial(np.copyto, target, source),
        },
        rounds=settings.rounds,
        tries=2,
    )
    table: list[tuple] = []
    for name, what, count in (
        ("run", "`run`", steps),
        ("update", "`update`", steps),
        ("plain", "NumPy", timed),
        ("copy", "copying", copies),
    ):
        took = times.per_step(name, count)
        share = f"{short(100.0 * took.seconds * case.rate)} % at {case.rate:g} Hz"
        of_run = "1" if name == "run" else times.ratio(name, "run", count, steps)
        of_copy = "1" if name == "copy" else times.ratio(name, "copy", count, copies)
        table.append((case.name if name == "run" else "", what, took, of_run, of_copy, share))
    wanted = f"≤ {case.limit * 1e6:g} µs" if case.limit < 1e-3 else f"≤ {case.limit * 1e3:g} ms"
    for name in ("run", "update"):
        took = times.per_step(name, steps)
        section.targets.append(Target(f"`{name}`, {case.name}", wanted, took, took.seconds <= case.limit))
    section.notes.append(
        f"{case.name}: {horde.groups} groups, {case.active} of {case.features:,} features active, "
        f"{int((horde._memory.rows >= 0).sum()):,} met, {len(plain.listed):,} of them on NumPy's list."
    )
    return table


def _run(horde: Horde, X: Any, cumulants: np.ndarray) -> None:
    """In pieces that share a row."""
    for t in range(0, len(cumulants), PIECE):
        horde.run(X[t : t + PIECE + 1], cumulants[t : t + PIECE], resume=t > 0)


def _follow(horde: Horde, rows: list[np.ndarray], cumulants: np.ndarray) -> None:
    horde.start(rows[0])
    for t in range(len(cumulants)):
        horde.update(cumulants[t], rows[t + 1])


def _some(plain: Plain, ahead: Iterator, count: int) -> None:
    for cumulants, x in islice(ahead, count):
        plain.step(cumulants, x)


# --- The streams ----------------------------------------------------------------------------------


def _arm(settings: Settings) -> Case:
    signals = arm.simulate(601 if settings.quick else 6001, SEED)
    low, high = signals.min(axis=0), signals.max(axis=0)
    X = TileCoder(low, high, bins=10, tilings=8, size=200_000, bias=True).many(signals)
    return Case("1,000 questions, the arm", arm.RATE, EIGHT, 1000, 200_000, list(X), X, (100, 20), 80e-6)


def _random(settings: Settings) -> Case:
    rng = np.random.default_rng(SEED)
    steps = 300 if settings.quick else 3000
    X = np.array([rng.choice(200_000, size=9, replace=False) for _ in range(steps + 1)])
    return Case("1,000 questions, all new", arm.RATE, EIGHT, 1000, 200_000, list(X), X, (200, 5), 80e-6)


def _large(settings: Settings) -> Case:
    """A tenth of the active features is exchanged at each sample."""
    rng = np.random.default_rng(SEED)
    features, active = 6000, 450
    order = rng.permutation(features)
    X = np.empty((21 if settings.quick else 101, active), np.int64)
    for x in X:
        leave, enter = rng.choice(active, 45, replace=False), active + rng.choice(features - active, 45, replace=False)
        order[leave], order[enter] = order[enter], order[leave]
        x[:] = order[:active]
    few = (10, 1) if settings.quick else (50, 1)
    return Case("6,000 questions", 10.0, (0.5, 2.0, 8.0, 32.0), features, features, list(X), X, few, 50e-3)


# --- Plain NumPy ----------------------------------------------------------------------------------


class Plain:
    """Algorithm 2 for all questions at once. Questions of a group lie beside each other, as many in each."""

    def __init__(self, case: Case) -> None:
        g = len(case.horizons)
        self.decays = np.array([TRACE_DECAY * discount_of(horizon, case.rate) for horizon in case.horizons])
        self.shape = g, case.questions // g
        self.gamma = np.repeat(self.decays / TRACE_DECAY, self.shape[1])
        self.alpha, self.x = case.step_size, case.rows[0]
        self.order = np.arange(case.questions).reshape(-1, g).T.ravel()
        self.W, self.v_old = np.zeros((case.features, case.questions)), np.zeros(case.questions)
        self.place = np.full(case.features, -1)  # of a feature on the list
        self.listed, self.E = np.zeros(0, np.int64), np.zeros((0, g))

    def step(self, cumulants: np.ndarray, x_next: np.ndarray) -> np.ndarray:
        x, W = self.x, self.W
        v, v_next = W[x].sum(axis=0), W[x_next].sum(axis=0)
        delta = cumulants[self.order] + self.gamma * v_next - v
        new = x[self.place[x] < 0]
        self.place[new] = np.arange(len(self.listed), len(self.listed) + len(new))
        self.listed = np.append(self.listed, new)
        self.E = np.concatenate([self.E * self.decays, np.zeros((len(new), self.shape[0]))])
        e_x = self.E[self.place[x]]
        self.E[self.place[x]] = e_x + 1.0 - self.alpha * e_x.sum(axis=0)
        step = self.alpha * (delta + v - self.v_old)
        W[self.listed] += (self.E[:, :, None] * step.reshape(self.shape)).reshape(len(self.listed), -1)
        W[x] -= self.alpha * (v - self.v_old)
        kept = (self.E > CUT).any(axis=1)
        if not kept.all():
            self.place[self.listed[~kept]] = -1
            self.listed, self.E = self.listed[kept], self.E[kept]
            self.place[self.listed] = np.arange(len(self.listed))
        self.x, self.v_old = x_next, v_next
        answers = np.empty_like(v)
        answers[self.order] = v
        return answers
