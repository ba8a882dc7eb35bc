"""A fleet of signals: bytes a signal, the time of a sample, and what ten thousand signals need."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import Seconds, Section, Settings, Table, Target
from trueonline import files
from trueonline.streams.fleet import Fleet, FleetCleaner
from trueonline.streams.predictor import Setup
from trueonline.streams.sources import Block, Cleaner, Labels

SIGNALS, SAMPLES, FEW = (
    1000,
    400,
    50,
)  # signals that are measured, and samples of each that come before and while they are
WANTED, INTERVAL = 10_000, 60.0  # signals, and seconds between the samples of each
MOST_BYTES, MOST_SHARE = 4e9, 0.5  # of memory, and of a core


def memory() -> int:
    """The bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fleet_of(samples: int, signals: int) -> tuple[Fleet, FleetCleaner, list[Block]]:
    """A fleet, its cleaner, and a block for each time, in which every signal has a sample: daily patterns with noise."""
    rng, labels = np.random.default_rng(0), Labels("signal")
    setup = Setup(signals=["x"], targets=["x"], horizons=[3600.0])
    cleaner = FleetCleaner(labels, lambda name: Cleaner(["x"]))
    codes = np.array([labels.code(f"signal {i}") for i in range(signals)])
    phases, blocks = rng.uniform(0.0, 6.3, signals), []
    for t in range(samples):
        x = 10.0 + 3.0 * np.sin(2.0 * np.pi * t * INTERVAL / 86400.0 + phases) + rng.standard_normal(signals)
        blocks.append(Block(np.full(signals, t * INTERVAL), np.column_stack([x, codes])))
    return Fleet(setup, labels, cleaner), cleaner, blocks


def measure(settings: Settings) -> Section:
    """Measure."""
    signals, samples = (50, 60) if settings.quick else (SIGNALS, SAMPLES)
    warm, warm_cleaner, blocks = fleet_of(3, 2)
    for block in blocks:
        warm.learn(warm_cleaner(block))
    fleet, cleaner, blocks = fleet_of(samples + FEW, signals)
    gc.collect()
    before = memory()
    # A thousand samples at a time, which is quick; and then as they come.
    for begin in range(0, samples, 100):
        part = blocks[begin : min(begin + 100, samples)]
        fleet.learn(cleaner(Block(np.concatenate([b.times for b in part]), np.concatenate([b.values for b in part]))))
    grown = (memory() - before) / signals
    begin = time.process_time()
    for block in blocks[samples:]:
        fleet.learn(cleaner(block))
    each = (time.process_time() - begin) / (FEW * signals)
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        files.write_learner(path, "Predictor", {}, fleet.state())
        saved, saving = path.stat().st_size / signals, (time.process_time() - begin) / signals
    need, share = grown * WANTED, each * WANTED / INTERVAL
    return Section(
        "A fleet of signals",
        f"{signals:,} signals with a sample a minute and a horizon of an hour, after {samples} samples of each. The time is that "
        "of samples through cleaners and predictors, one sample of each signal after another.",
        tables=[
            Table(
                ("", "a signal", f"{WANTED:,} signals, a sample a minute"),
                [
                    ("memory", f"{grown / 1e3:.0f} kB", f"{need / 1e9:.2f} GB"),
                    ("a sample", Seconds(each), f"{share:.0%} of a core"),
                    ("a checkpoint", f"{saved / 1e3:.0f} kB", f"{saved * WANTED / 1e9:.2f} GB"),
                    ("writing it", Seconds(saving), Seconds(saving * WANTED)),
                ],
            )
        ],
        targets=[
            Target("memory", f"≤ {MOST_BYTES / 1e9:.0f} GB", f"{need / 1e9:.2f} GB", need <= MOST_BYTES),
            Target("time", f"≤ {MOST_SHARE:.0%} of a core", f"{share:.0%}", share <= MOST_SHARE),
        ],
    )
