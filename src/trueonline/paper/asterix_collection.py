"""The finished runs of Figure 8's race, which are kept for good, and playing what the race asks for next."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from trueonline import study
from trueonline.control import atari
from trueonline.files import read_json, write_json
from trueonline.paper.asterix_race import Race, Setting, grid
from trueonline.paper.asterix_runs import Runs, code
from trueonline.paper.experiment import Settings, Unfinished

SEEDS = 100_000  # seeds for each seed of the study


@dataclass(frozen=True)
class Collection:
    """A folder with one small file for each finished run. The name of a file says which run it is, so folders can be merged."""

    folder: Path
    seed: int
    frames: int

    def path(self, setting: Setting, run: int) -> Path:
        seed = self.seed * SEEDS + run
        return self.folder / f"{setting.method}-{setting.step_size:g}-{setting.trace_decay:g}-seed-{seed:06d}.json"

    def read(self) -> tuple[dict[Setting, dict[int, dict[str, Any]]], list[str]]:
        """The finished runs of each setting by their number, and the names of damaged files, which count as missing."""
        found: dict[Setting, dict[int, dict[str, Any]]] = {}
        damaged = []
        names = {path.name for path in self.folder.glob("*.json")}
        for setting in grid():
            stem = self.path(setting, 0).name.rpartition("-")[0]
            for name in sorted(name for name in names if name.startswith(f"{stem}-")):
                run = int(name.removesuffix(".json").rpartition("-")[2]) - self.seed * SEEDS
                if not 0 <= run < SEEDS:
                    continue
                record = read_json(self.folder / name)
                if record is None:
                    damaged.append(name)
                else:
                    found.setdefault(setting, {})[run] = self._checked(record, setting, run)
        return found, damaged

    def _checked(self, record: Any, setting: Setting, run: int) -> dict[str, Any]:
        expected = {
            **setting._asdict(),
            "seed": self.seed * SEEDS + run,
            "protocol": "paper",
            "asked_frames": self.frames,
        }
        for name, value in expected.items():
            if not isinstance(record, dict) or record.get(name) != value:
                theirs = record.get(name) if isinstance(record, dict) else record
                raise ValueError(
                    f"{self.path(setting, run)} holds another run than its name says: its {name} is {theirs!r}, expected "
                    f"{value!r}; move it out of the folder"
                )
        return record

    def add(self, task: Runs, row: Mapping[str, Any]) -> None:
        """Keep a finished run."""
        (played,) = task.settings
        setting = Setting(played.method, played.step_size, played.trace_decay)
        record = {
            **row,
            "protocol": played.protocol,
            "seed": played.seed,
            "asked_frames": played.frames,
            "background": hashlib.sha256(task.background).hexdigest()[:16],
            "versions": {name: version(name) for name in ("trueonline", "ale-py", "numpy", "numba")},
            "kernels": code()[0],
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.path(setting, row["run"]), record)


def play(settings: Settings, collection: Collection, background: np.ndarray, say: Callable[[str], None]) -> Race:
    """Play what the race asks for until it is decided, or until `settings.more` runs were played. Every finished run is kept."""
    shared, left = background.tobytes(), math.inf if settings.more is None else settings.more
    while True:
        records, damaged = collection.read()
        for name in damaged:
            say(f"{collection.folder / name} is damaged and counts as missing")
        race = Race({setting: {run: row["score"] for run, row in rows.items()} for setting, rows in records.items()})
        if left <= 0 or race.decided:
            return race
        wanted = [each for each in race.next_runs() if _is_mine(collection.path(*each).name, settings.share)]
        if not wanted:
            raise Unfinished(
                f"share {settings.share} of this round of asterix is done; others are not. Copy their files into "
                f"{collection.folder}, then run the same again"
            )
        some = wanted[: int(min(left, len(wanted)))]
        left -= len(some)
        say(f"{race.played} runs are done. Next: {len(some)} of {collection.frames:,} frames each")
        _execute([_task(setting, run, collection, shared) for setting, run in some], settings, collection)


def _is_mine(name: str, share: str | None) -> bool:
    """Whether a run belongs to the share "i/N". Its name alone decides, so machines agree, no matter which runs are done."""
    if share is None:
        return True
    match = re.fullmatch(r"(\d+)/(\d+)", share)
    number, of = (int(part) for part in match.groups()) if match else (0, 0)
    if not 1 <= number <= of:
        raise ValueError(f"shard must be i/N with 1 ≤ i ≤ N, got {share!r}")
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % of == number - 1


def _task(setting: Setting, run: int, collection: Collection, background: bytes) -> Runs:
    played = atari.Settings("paper", *setting, collection.seed * SEEDS + run, frames=collection.frames)
    return Runs((played,), run, background)


def _execute(tasks: Sequence[Runs], settings: Settings, collection: Collection) -> None:
    """Run tasks, and keep each run as soon as it is finished."""
    waiting = {task.name: task for task in tasks}

    def keep(task: Any, done: int, of: int) -> None:
        settings.progress(task, done, of)
        for name in [name for name in waiting if (settings.tasks / f"{name}.parquet").exists()]:
            table = study.read_task(waiting[name], settings.tasks)
            if table is not None:
                collection.add(waiting.pop(name), table.to_pylist()[0])

    study.execute_tasks(tasks, settings.tasks, engine=settings.engine, threads=settings.threads, progress=keep)
