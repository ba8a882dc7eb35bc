"""The runs of the Atari Prediction Benchmark: the methods, and a task that resumes after its process was killed."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import trueonline
from trueonline import files
from trueonline.control.atari.prediction import N_ACTIVE, N_FEATURES, Replay
from trueonline.core.sources import package_code
from trueonline.inputs import saved_array
from trueonline.paper.experiment import Settings
from trueonline.report.page import duration

DISCOUNT, TRACE_DECAY = 0.98, 0.9
FRAMES = 210_000
WINDOWS, SHORTEST = 42, 500  # points of a learning curve, and frames behind each, if there are enough
STRETCH, AFTER = (
    500,
    300,
)  # frames whose predictions are kept, and frames after them, so that their returns are nearly whole
MARKS = (20_000, 30_000, 60_000, 210_000)  # frames at which others published lifetime errors
BLOCK = 256  # frames that all methods learn from in turn: their features are 17 MB
PATIENCE = 60.0  # seconds between two checkpoints
KIND = "Atari prediction"
SCHEMA = pa.schema(
    [
        ("game", pa.string()),
        ("method", pa.string()),
        ("step_size", pa.float64()),
        ("frames", pa.int64()),
        ("error", pa.float64()),  # the mean of (G - V)² over all frames
        ("microseconds", pa.float64()),  # to predict and to learn from a frame
        ("marks", pa.list_(pa.float64())),  # the lifetime errors of the runs that end at `MARKS`
        ("curve", pa.list_(pa.float64())),  # the mean of (G - V)² over each window
        ("stretch", pa.list_(pa.float64())),  # predictions of the frames of `stretch`
        ("returns", pa.list_(pa.float64())),  # and their returns
    ]
)


@dataclass(frozen=True)
class Compared:
    """A method with its parameters. `name` is what tables and pictures call it."""

    name: str
    learner: str  # the class, of `trueonline`
    step_size: float
    options: Mapping[str, float] = field(default_factory=dict)

    def new(self) -> Any:
        """A learner that has seen nothing."""
        kind = getattr(trueonline, self.learner)
        return kind(N_FEATURES, self.step_size, TRACE_DECAY, DISCOUNT, **self.options)


SWIFT, PLAIN, ADAPTED = "swift_td", "true_online", "adapted"
SHARES = (0.003, 0.01, 0.03, 0.1, 0.3)  # of the error that an update of plain true online TD(λ) closes
COMPARED = (
    Compared(SWIFT, "SwiftTD", 0.001, {"bound": 0.1, "decay": 0.999, "meta_step_size": 0.001}),
    *(Compared(PLAIN, "TrueOnlineTD", share / N_ACTIVE) for share in SHARES),
    Compared(ADAPTED, "TrueOnlineTD", 0.1, {"bound": 0.1, "meta_step_size": 0.1}),
)


@dataclass(frozen=True)
class Game:
    """A task: all methods on one game, in a process of its own. The game is emulated once."""

    game: str
    actions: str
    methods: tuple[Compared, ...]
    frames: int

    spawned = True
    unit = "frames"
    schema = SCHEMA

    @cached_property
    def name(self) -> str:
        methods = [[each.name, each.learner, each.step_size, dict(each.options)] for each in self.methods]
        fixed = [
            DISCOUNT,
            TRACE_DECAY,
            WINDOWS,
            SHORTEST,
            STRETCH,
            AFTER,
            MARKS,
            package_code(__name__, "trueonline.methods"),
            version("ale-py"),
        ]
        about = json.dumps([self.game, self.actions, methods, self.frames, fixed], sort_keys=True)
        return f"atari-prediction-{self.game}-{hashlib.sha256(about.encode()).hexdigest()[:24]}"

    @property
    def rows(self) -> int:
        return len(self.methods)

    @property
    def steps(self) -> int:
        return self.frames

    def compute(self, scratch: Path | None = None, beat: Callable[[int], Any] = lambda frames: None) -> pa.Table:
        run = Run(self)
        checkpoint = None
        if scratch is not None:
            scratch.mkdir(parents=True, exist_ok=True)
            checkpoint = scratch / "run.npz"
            if checkpoint.exists():
                run.resume(checkpoint)
        run.play(checkpoint, beat)
        return pa.Table.from_pylist(run.results(), schema=SCHEMA)


class Run:
    """The methods on one game, some frames at a time."""

    def __init__(self, task: Game) -> None:
        self.task = task
        self.replay = Replay(task.game, task.actions)
        self.learners = [method.new() for method in task.methods]
        self.rewards = np.zeros(task.frames)
        self.predictions = np.zeros((len(task.methods), task.frames))
        self.seconds = np.zeros(len(task.methods))

    def play(self, checkpoint: Path | None = None, beat: Callable[[int], Any] = lambda frames: None) -> None:
        """Play and learn to the end."""
        X, saved = np.empty((BLOCK, N_ACTIVE), np.int64), time.monotonic()
        beat(self.replay.frames)
        while (begin := self.replay.frames) < self.task.frames:
            now = slice(begin, min(begin + BLOCK, self.task.frames))
            block = X[: now.stop - begin]
            self.replay.play(block, self.rewards[now])
            for number, learner in enumerate(self.learners):
                began = time.perf_counter()
                learn(learner, block, self.rewards[now], self.predictions[number, now], first=begin == 0)
                self.seconds[number] += time.perf_counter() - began
            beat(self.replay.frames)
            if checkpoint is not None and time.monotonic() - saved >= PATIENCE:
                self.save(checkpoint)
                saved = time.monotonic()

    def save(self, path: Path) -> None:
        """Write a checkpoint: the emulator, all learners, and what they predicted."""
        arrays = self.replay.dump() | {name: getattr(self, name) for name in ("rewards", "predictions", "seconds")}
        for number, learner in enumerate(self.learners):
            arrays |= {f"learner{number}_{name}": part for name, part in learner._dump().items()}
        files.write_learner(path, KIND, {"task": self.task.name}, arrays)

    def resume(self, path: Path) -> None:
        """Resume from a checkpoint. ValueError if the file is of another task, or damaged."""
        kind, settings, arrays = files.read_learner(path)
        if (kind, settings) != (KIND, {"task": self.task.name}):
            raise ValueError(f"{path} is not a checkpoint of the task {self.task.name}: delete it")
        try:
            for number, learner in enumerate(self.learners):
                own = f"learner{number}_"
                learner._restore({name.removeprefix(own): part for name, part in arrays.items() if name.startswith(own)})
            for name in ("rewards", "predictions", "seconds"):
                setattr(self, name, saved_array(arrays, name, getattr(self, name).shape, np.float64))
            self.replay.restore(arrays)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ValueError(f"{path} is damaged ({type(error).__name__}: {error}): delete it") from None

    def results(self) -> list[dict[str, Any]]:
        """A row for each method."""
        returns = returns_of(self.rewards)
        late = stretch(self.task.frames)
        rows = []
        for method, values, seconds in zip(self.task.methods, self.predictions, self.seconds, strict=True):
            with np.errstate(over="ignore", invalid="ignore"):  # a learner that diverged
                squares = (returns - values) ** 2
                marks = [lifetime(self.rewards[:end], values[:end]) for end in MARKS if end <= self.task.frames]
                rows.append(
                    {
                        "game": self.task.game,
                        "method": method.name,
                        "step_size": method.step_size,
                        "frames": self.task.frames,
                        "error": float(squares.mean()),
                        "microseconds": 1e6 * seconds / self.task.frames,
                        "marks": marks,
                        "curve": [float(part.mean()) for part in np.split(squares, ends(self.task.frames)[:-1])],
                        "stretch": values[late].tolist(),
                        "returns": returns[late].tolist(),
                    }
                )
        return rows


def learn(learner: Any, X: np.ndarray, rewards: np.ndarray, predictions: np.ndarray, *, first: bool) -> None:
    """Predict at each frame, and then learn from the reward that came with it: the order of the published program."""
    for at, reward in enumerate(rewards.tolist()):
        predictions[at] = learner.predict(X[at])
        if first and at == 0:
            learner.start(X[0])
        else:
            learner.update(reward, X[at])


def returns_of(rewards: np.ndarray) -> np.ndarray:
    """G_t, the discounted sum of the rewards after frame t. Rewards after the last frame count as 0.

    >>> returns_of(np.array([5.0, 0.0, 1.0])).tolist()
    [0.98, 1.0, 0.0]
    """
    backwards = rewards[:0:-1].tolist()
    return np.array(list(accumulate(backwards, lambda later, reward: reward + DISCOUNT * later, initial=0.0))[::-1])


def lifetime(rewards: np.ndarray, predictions: np.ndarray) -> float:
    """The figure of merit of a run: the mean over all frames of (G_t - V_t)²."""
    return float(np.mean((returns_of(rewards) - predictions) ** 2))


def ends(frames: int) -> np.ndarray:
    """The frames at which the windows of a learning curve end."""
    windows = min(WINDOWS, max(frames // SHORTEST, min(frames, 4)))
    return np.linspace(0, frames, windows + 1).astype(int)[1:]


def stretch(frames: int) -> slice:
    """The frames whose predictions are kept: some, late in the run."""
    end = max(frames - AFTER, min(frames, STRETCH))
    return slice(max(0, end - STRETCH), end)


def estimate(missing: Sequence[Game], of: int, settings: Settings) -> str:
    """The time that the missing tasks will take, from a trial on this machine."""
    trial = replace(missing[0], frames=min(missing[0].frames, BLOCK))
    Run(trial).play()  # compiles, or loads what has been compiled
    began = time.perf_counter()
    Run(trial).play()
    rate = trial.frames / (time.perf_counter() - began)
    frames = sum(task.frames for task in missing)
    done = "" if len(missing) == of else f" ({of - len(missing)} of {of} games are done already)"
    each = min(settings.threads or os.cpu_count() or 1, len(missing))
    return (
        f"Atari prediction: {frames:,} frames of {len(missing)} games{done}, with {missing[0].rows} learners. At {rate:,.0f} "
        f"frames a second on one core, this takes {duration(frames / rate)} of core time, or {duration(frames / rate / each)} on "
        f"{each} cores."
    )
