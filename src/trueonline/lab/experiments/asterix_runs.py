"""The runs of Asterix behind Figure 8: the grid, the scales, and a task that resumes after its process was killed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.control import atari
from trueonline.control.atari.screens import WIDTH
from trueonline.core.compiling.sources import package_code
from trueonline.lab.experiment import SETTING, Settings
from trueonline.study.storage.work import WorkInPieces
from trueonline.words import count, duration

COMPARED = ("accumulate", "replace", "true_online")  # names of players in control.atari
STEP_SIZES = (0.2, 0.5, 0.8, 1.1, 1.4, 1.7, 2.0)
TRACE_DECAYS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)
SIMILARITY = 0.1  # best scores that differ by less than a tenth are similar
SCHEMA = pa.schema(
    SETTING
    | {"run": pa.int64(), "score": pa.float64(), "episodes": pa.int64(), "frames": pa.int64(), "diverged": pa.bool_()}
)


@dataclass(frozen=True)
class Scale:
    """How much of the paper's experiment is run."""

    name: str
    frames: int  # of each run
    step_sizes: tuple[float, ...]
    runs: int  # of each setting
    says: str


SCALES = (
    Scale(
        "quick",
        40_000,
        (0.5, 1.4),
        3,
        "This scale shows that everything works, and how the first episodes go. It cannot tell which method is best, or what is "
        "learned in 20 hours.",
    ),
    Scale(
        "evening",
        atari.FRAMES,
        (0.5, 1.1, 1.7),
        4,
        "This scale shows what is learned in 20 hours, and how scores depend on λ. Small differences between methods are within "
        "the noise of so few runs.",
    ),
    Scale("paper", atari.FRAMES, STEP_SIZES, 400, "All of the paper's settings."),
)


def scale_of(settings: Settings) -> Scale:
    """The scale that `--scale` names, by default the smallest."""
    name = settings.options.get("scale") or SCALES[0].name
    return next(scale for scale in SCALES if scale.name == name)


@dataclass(frozen=True)
class AsterixRuns(WorkInPieces):
    """A task: some runs of one setting, in a process of its own."""

    settings: tuple[atari.AtariSettings, ...]
    first: int  # the number of the first of these runs
    background: bytes

    unit = "frames"
    schema = SCHEMA

    @property
    def title(self) -> str:
        return f"asterix-{self.settings[0].method}"

    def about(self) -> tuple[str, bytes]:
        return json.dumps([[asdict(settings) for settings in self.settings], self.first, _code()]), self.background

    @property
    def pieces(self) -> list[tuple[tuple[int, atari.AtariSettings], int]]:
        return [((number, settings), settings.frames or 0) for number, settings in enumerate(self.settings, self.first)]

    def row(
        self, piece: tuple[int, atari.AtariSettings], checkpoint: Path | None, beat: Callable[[int], Any]
    ) -> dict[str, Any]:
        number, settings = piece
        background = np.frombuffer(self.background, np.uint8).reshape(-1, WIDTH)
        run = atari.play(settings, background, checkpoint, beat=beat)
        return {
            "method": settings.method,
            "step_size": settings.step_size,
            "trace_decay": settings.trace_decay,
            "run": number,
            "score": run.mean_score,
            "episodes": len(run.episodes),
            "frames": run.played,
            "diverged": run.diverged,
        }


@cache
def _code() -> tuple[str, str]:
    """The versions of our kernels and of the emulator."""
    return package_code(__name__, "trueonline.methods"), version("ale-py")


def tasks(settings: Settings, background: np.ndarray) -> list[AsterixRuns]:
    """All runs, in tasks of at least about 100,000 frames. Methods have the same seeds."""
    scale = scale_of(settings)
    runs = settings.number(scale.runs)
    block = max(1, 100_000 // scale.frames)
    grid = [(method, alpha, lam) for method in COMPARED for lam in TRACE_DECAYS for alpha in scale.step_sizes]
    grid.append(("random", 1.0, 0.0))
    all_runs, shared = [], background.tobytes()  # there are many tasks, and they share one background
    for method, alpha, lam in grid:
        for first in range(0, runs, block):
            some = tuple(
                atari.AtariSettings("paper", method, alpha, lam, settings.seed * 100_000 + run, frames=scale.frames)
                for run in range(first, min(first + block, runs))
            )
            all_runs.append(AsterixRuns(some, first, shared))
    return all_runs


def estimate(missing: Sequence[AsterixRuns], of: int, settings: Settings, background: np.ndarray) -> str:
    """The time that the missing tasks will take, from a trial on this machine."""
    for trial_frames in (5_000, 20_000):  # the first trial compiles, or loads what has been compiled
        trial = atari.AtariRun(atari.AtariSettings("paper", "true_online", 1.1, 0.95, frames=trial_frames), background)
        began = time.process_time()  # other work on the machine does not count
        trial.play()
        rate = trial.played / (time.process_time() - began)
    frames = sum(task.steps for task in missing)
    seconds = frames / rate
    done = "" if len(missing) == of else f" ({of - len(missing)} of {of} tasks are done already)"
    each, runs = settings.threads or os.cpu_count() or 1, count(sum(task.rows for task in missing), "run")
    return (
        f"Asterix, scale {scale_of(settings).name}: {runs}, {frames:,} frames{done}. At "
        f"{rate:,.0f} frames a second on one core, this takes {duration(seconds)} of core time, or {duration(seconds / each)} on "
        f"{each} cores."
    )
