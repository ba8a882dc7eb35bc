"""Samples, files and clocks that tests of sources share."""

import gzip
import json
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.processes import PATIENCE
from trueonline.streams.sources import pacing
from trueonline.streams.sources.sample import BLOCK_ROWS

NAN, INF = float("nan"), float("inf")


def joined(source, signals=None):
    """All that a source gives, as one block."""
    with source:
        blocks = list(source)
    assert all(0 < len(block) <= BLOCK_ROWS for block in blocks)
    return together(blocks, len(signals or source.signals))


def together(blocks, signals):
    times = np.concatenate([np.empty(0), *(block.times for block in blocks)])
    return times, np.concatenate([np.empty((0, signals)), *(block.values for block in blocks)])


def wait_for(source, samples):
    """As many samples of a live source."""
    blocks, end = [], time.monotonic() + PATIENCE
    while sum(map(len, blocks)) < samples:
        assert time.monotonic() < end, f"{sum(map(len, blocks))} of {samples} samples came; {source.counters()}"
        block = source.read(0.2)
        assert block is not None
        blocks.append(block)
    return together(blocks, len(source.signals))


def text_of(times, values, names=("time", "a", "b"), end="\n"):
    rows = [",".join(names)]
    rows += [",".join(map(repr, [float(t), *map(float, row)])) for t, row in zip(times, values, strict=True)]
    return "".join(row + end for row in rows)


def some(n, seed=0, signals=2):
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.random(n)), rng.standard_normal((n, signals))


def written(path, times, values):
    """The same samples in the form that a path asks for, with some rows that cannot be read."""
    if path.suffix == ".parquet":
        stamps = pa.array([None if i % 1000 == 7 else t for i, t in enumerate(times.tolist())], pa.float64())
        table = pa.table({"b": values[:, 1], "time": stamps, "a": values[:, 0]})
        pq.write_table(table, path, row_group_size=5000)
    elif path.suffix == ".jsonl":
        with open(path, "w", encoding="utf-8") as file:
            for i, (t, (a, b)) in enumerate(zip(times.tolist(), values.tolist(), strict=True)):
                file.write("oops\n" if i % 1000 == 7 else json.dumps({"b": b, "time": t, "a": a}) + "\n")
    else:
        lines = text_of(times, values).splitlines(keepends=True)
        lines[8::1000] = ["oops\n"] * len(lines[8::1000])
        with (
            gzip.open(path, "wt", compresslevel=1) if path.suffix == ".gz" else open(path, "w", encoding="utf-8") as file
        ):
            file.writelines(lines)
    kept = np.arange(len(times)) % 1000 != 7
    return times[kept], values[kept]


class Hands:
    """A clock that stands still but for waiting, or when it is set."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(pacing, "monotonic", lambda: self.now)

    def drive(self, source):
        source._closed.wait = self.wait
        return source

    def wait(self, seconds):
        assert seconds > 0.0
        self.now += seconds
