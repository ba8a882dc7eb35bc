"""The sweep behind Figure 6: one stream of active features, and the error of every setting that learns from it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from trueonline import catalog, study
from trueonline.core import memory
from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.core.compiling.sources import package_code
from trueonline.core.forms import Active, pointer
from trueonline.core.loops import attach, rule
from trueonline.core.memory import decay
from trueonline.core.memory.layout import CARRIED
from trueonline.core.transition import asking, on_policy
from trueonline.features import TileCoder
from trueonline.lab.experiment import SETTING
from trueonline.lab.recordings import SIGNALS, Recording
from trueonline.study.storage.work import Beat, StoredWork, add_to

DISCOUNT = 0.97
BINS, TILINGS, FEATURES = 10, 8, 200_000
STEP_SIZES = tuple(2.0**power for power in range(-9, 2))  # over the number of active features
TRACE_DECAYS = study.TRACE_DECAYS
COMPARED = study.METHODS
TARGETS = ("position", "force")
BLOCKS = 50  # consecutive parts of the recording, each with an error of its own
UNKNOWN_SHARE = 1e-3  # a return is scored if at most this share of the largest possible return is unknown
DIVERGENCE = 1e100  # a value beyond it has diverged
LAMS_PER_TASK = 5  # trace decays in each task
SCHEMA = pa.schema(SETTING | {"block": pa.int64(), "error": pa.float64()})


# --- In kernels -----------------------------------------------------------------------------------


def follow(numbers, places, begins, indices, starts, cumulants, returns, blocks, alpha, gamma_, lam, sums):
    """Learn from a stream, and add |V_t(S_t) − G_t| to sums[blocks[t]] unless blocks[t] is −1. False if it diverges."""
    memory = attach(numbers, places)
    v_old = gamma = 0.0
    x = active(begins, indices, 0)
    for t in range(cumulants.size):
        x_next = active(begins, indices, t + 1)
        if starts[t + 1]:  # no transition leads there
            v_old = gamma = 0.0
            decay(memory, 0.0)
        else:
            transition = on_policy(x, cumulants[t], x_next, v_old, alpha, gamma, lam, gamma_, pointer(numbers, CARRIED))
            v, _, v_next = rule(memory, transition)
            v_old, gamma = v_next, gamma_
            if not abs(v) < DIVERGENCE:
                return False
            if blocks[t] >= 0:
                sums[blocks[t]] += abs(v - returns[t])
        x = x_next
    return True


@kernel
def active(begins, indices, t):
    return Active(pointer(indices, begins[t]), begins[t + 1] - begins[t])


KERNELS = {name: specialise(follow, name, rule=asking(catalog.METHODS[name].resolve("rule"))) for name in COMPARED}


# --- Streams --------------------------------------------------------------------------------------


def tail(discount: float) -> int:
    """How many samples must follow a sample, so that its return is known to within UNKNOWN_SHARE of the largest return."""
    return math.ceil(math.log(UNKNOWN_SHARE) / math.log(discount))


def returns(cumulants: np.ndarray, starts: np.ndarray, discount: float) -> np.ndarray:
    """G_t = C_{t+1} + γ·G_{t+1}, from the end backwards; 0 at the last sample of each recording.

    `cumulants` are C_1, …, C_T, and `starts` has T + 1 marks. A mark says that a new recording begins.
    """
    discounted = np.zeros(len(cumulants))
    g = 0.0
    for t in range(len(cumulants) - 1, -1, -1):
        g = 0.0 if starts[t + 1] else float(cumulants[t]) + discount * g
        discounted[t] = g
    return discounted


def scored(starts: np.ndarray, least: int) -> np.ndarray:
    """For each sample but the last, whether at least `least` samples follow it in its recording."""
    ends = np.append(np.flatnonzero(starts[1:]), len(starts) - 1)
    t = np.arange(len(starts) - 1)
    return ends[np.searchsorted(ends, t)] - t >= least


@dataclass(frozen=True, eq=False)
class Stream:
    """The features and the cumulant of one prediction on a recording. Features that never occur are left out."""

    source: str
    target: str
    begins: np.ndarray  # the active features at t are indices[begins[t] : begins[t + 1]]
    indices: np.ndarray
    starts: np.ndarray
    cumulants: np.ndarray
    returns: np.ndarray
    blocks: np.ndarray  # the block in which t lies, −1 if t is not scored
    n_features: int  # that occur
    n_active: int
    discount: float
    parts: int

    @cached_property
    def digest(self) -> str:
        """A hash of the stream."""
        digest = hashlib.sha256(repr((self.n_features, self.n_active, self.discount, self.parts)).encode())
        add_to(digest, self.begins, self.indices, self.starts, self.cumulants, self.returns, self.blocks)
        return digest.hexdigest()

    @property
    def scored(self) -> int:
        return int((self.blocks >= 0).sum())


def streams(recording: Recording, coder: TileCoder | None = None) -> list[Stream]:
    """The streams of a recording, one for each target, with the paper's features."""
    coder = coder or tiles()
    rows = coder.many(recording.normalised())
    begins = np.cumsum([0, *map(len, rows)])
    raw = np.concatenate(list(rows))
    # Features are numbered as they first occur, so those of one step lie together. Learning is the same bit for bit.
    _, first, inverse = np.unique(raw, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    indices = rank[inverse].astype(np.int32)
    counted = scored(recording.starts, tail(DISCOUNT))
    if counted.sum() < BLOCKS * 10:
        raise ValueError(
            f"the {recording.name} is too short: {counted.sum():,} of its {len(recording.signals):,} samples at 40 Hz are followed "
            f"by {tail(DISCOUNT)} others, as their returns need, but at least {BLOCKS * 10:,} must be"
        )
    blocks = np.where(counted, (np.cumsum(counted) - 1) * BLOCKS // counted.sum(), -1)
    predictions = []
    for target in TARGETS:
        cumulants = np.ascontiguousarray(recording.signals[1:, SIGNALS.index(target)])
        true = returns(cumulants, recording.starts, DISCOUNT)
        numbers = (len(first), coder.n_active, DISCOUNT, BLOCKS)
        parts = (begins, indices, recording.starts, cumulants, true, blocks)
        predictions.append(Stream(recording.name, target, *parts, *numbers))
    return predictions


def tiles() -> TileCoder:
    """10 bins × 8 tilings, jointly over the five signals, and a bias unit: 800,001 features, hashed to 200,000."""
    size = len(SIGNALS)
    return TileCoder([0.0] * size, [1.0] * size, bins=BINS, tilings=TILINGS, bias=True, size=FEATURES)


# --- Tasks ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sweep(StoredWork):
    """A task: one method on one stream, all step-sizes and some trace decays. Its kernels release the interpreter."""

    schema: ClassVar[pa.Schema] = SCHEMA
    stream: Stream
    method: str
    step_sizes: tuple[float, ...]
    trace_decays: tuple[float, ...]

    @property
    def title(self) -> str:
        return f"myoelectric-{self.method}"

    def about(self) -> tuple[str]:
        code = package_code(__name__, "trueonline.methods")
        return (repr((self.stream.digest, self.method, self.step_sizes, self.trace_decays, DIVERGENCE, code)),)

    @property
    def rows(self) -> int:
        return len(self.step_sizes) * len(self.trace_decays) * self.stream.parts

    @property
    def steps(self) -> int:
        return len(self.step_sizes) * len(self.trace_decays) * len(self.stream.cumulants)

    def compute(self, scratch: Path | None = None, beat: Beat = lambda steps: None) -> pa.Table:
        grid = np.meshgrid(self.step_sizes, self.trace_decays, np.arange(self.stream.parts), indexing="ij")
        error = errors(self.stream, self.method, self.step_sizes, self.trace_decays)
        columns = [np.full(error.size, self.method), *(part.ravel() for part in grid), error.ravel()]
        return pa.table(columns, schema=SCHEMA)


def errors(stream: Stream, method: str, step_sizes: tuple[float, ...], trace_decays: tuple[float, ...]) -> np.ndarray:
    """An array over α, λ and block. Its mean over blocks is the mean absolute error, infinite where learning diverged."""
    sums = np.zeros((len(step_sizes), len(trace_decays), stream.parts))
    buffers = memory.allocate(stream.n_features)
    fresh = memory.snapshot(buffers)  # resetting costs a copy of the features that occur
    parts = (stream.begins, stream.indices, stream.starts, stream.cumulants, stream.returns, stream.blocks)
    for i, alpha in enumerate(step_sizes):
        for j, lam in enumerate(trace_decays):
            memory.undo(buffers, fresh)
            numbers = (alpha / stream.n_active, stream.discount, lam)
            if not call(KERNELS[method], *buffers, *parts, *numbers, sums[i, j]):
                sums[i, j] = np.inf
    return sums * (stream.parts / stream.scored)


def tasks(all_streams: list[Stream]) -> list[Sweep]:
    """In the order of stream, method and trace decay."""
    some = [TRACE_DECAYS[first : first + LAMS_PER_TASK] for first in range(0, len(TRACE_DECAYS), LAMS_PER_TASK)]
    return [Sweep(stream, name, STEP_SIZES, lams) for stream in all_streams for name in COMPARED for lams in some]
