"""One run of `trueonline train` as a piece of a study: training, greedy episodes, and a table with both and the agent.

A run that is finished can be extended. Its table holds the returns and the agent, and so everything that a checkpoint holds.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trueonline import control
from trueonline.control.gym.checkpoints import TrainingCheckpoint
from trueonline.control.gym.evaluation import Evaluation
from trueonline.control.gym.train.settings import TrainingSettings
from trueonline.control.gym.training import Callback, History, Training
from trueonline.features.spaces import Maker
from trueonline.learners.loading import load
from trueonline.study.storage.store import Store
from trueonline.study.storage.work import Beat, StoredWork

CHECKPOINT_EVERY = 10.0  # seconds
CHECKPOINT = "checkpoint.npz"

EPISODES = [
    ("run", pa.int64()),
    ("episode", pa.int64()),  # counted from 1
    ("return", pa.float64()),
    ("length", pa.int64()),
    ("terminated", pa.bool_()),
]
# A run's result: its episodes, then its greedy ones. The agent that it ends with is in the last row, so that a result needs
# nothing but this table, wherever it was computed.
SCHEMA = pa.schema([("phase", pa.string()), *EPISODES, ("diverged", pa.bool_()), ("agent", pa.large_binary())])


@dataclass(frozen=True)
class TrainingRun(StoredWork):
    """One run: training, and greedy episodes afterwards."""

    settings: TrainingSettings
    number: int
    checkpoint_every: float = field(default_factory=lambda: CHECKPOINT_EVERY)  # how it is computed, not what
    spawned = True
    schema = SCHEMA
    unit = "episodes"

    @property
    def title(self) -> str:
        return f"run-{self.number}"

    def about(self) -> tuple[str]:
        return (json.dumps([self.settings.plain(), self.number], sort_keys=True),)

    @property
    def rows(self) -> int:
        return self.settings.episodes + self.settings.evaluate

    @property
    def steps(self) -> int:
        return self.settings.episodes

    @property
    def seed(self) -> tuple[int, int]:
        return self.settings.seed, self.number

    def compute(
        self, scratch: Path | None = None, beat: Beat = lambda steps: None, progress: Callback | None = None
    ) -> pa.Table:
        """Train, from the checkpoint if there is one. Then play greedily."""
        settings = self.settings
        with closing(settings.environment_made()) as env:
            maker = settings.features_for(env)
            agent = settings.agent(env, maker, self.number)
            training = control.train(
                env,
                agent,
                maker,
                episodes=settings.episodes,
                seed=self.seed,
                checkpoint=None if scratch is None else scratch / CHECKPOINT,
                checkpoint_every=self.checkpoint_every,
                callback=progress or (lambda episode, total, length: beat(episode)),
            )
            played = control.evaluate(env, agent, maker, settings.evaluate, seed=self.seed) if settings.evaluate else None
        phases: list[tuple[str, Training | Evaluation]] = [("train", training)]
        if played is not None:
            phases.append(("evaluate", played))
        return self._table(phases, agent)

    def _table(self, phases: list[tuple[str, Training | Evaluation]], agent: control.Agent) -> pa.Table:
        names = [name for name, episodes in phases for _ in episodes.returns]
        columns = [
            names,
            [self.number] * len(names),
            [number for _, episodes in phases for number in range(1, len(episodes.returns) + 1)],
            *(
                np.concatenate([getattr(episodes, column) for _, episodes in phases])
                for column in ("returns", "lengths", "terminated")
            ),
            [agent.diverged] * len(names),
            [*[None] * (len(names) - 1), _as_bytes(agent)],
        ]
        return pa.table(columns, schema=SCHEMA)


def _as_bytes(agent: control.Agent) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder, "agent.npz"))
        return Path(folder, "agent.npz").read_bytes()


def _from_bytes(content: bytes) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "agent.npz").write_bytes(content)
        return load(Path(folder, "agent.npz"))


# --- A run that is extended -----------------------------------------------------------------------


def resume_earlier(run: TrainingRun, store: Store, env: Any, maker: Maker) -> list[Path]:
    """Give a run the checkpoint of an earlier run that differs in its length alone. Return the results that it replaces.

    Raises
    ------
    ValueError
        If an earlier run has more episodes than this one asks for.
    """
    if store.read(run) is not None:
        return []
    results = _earlier_results(run, store)
    longest = max(results, default=None)
    if longest is not None and longest[0] > run.settings.episodes:
        raise ValueError(
            f"the folder {store.folder.parent} holds a training of {longest[0]:,} episodes, more than the "
            f"{run.settings.episodes:,} asked for. Ask for at least {longest[0]:,} with --episodes, or choose another "
            "folder with --out"
        )
    place = store.scratch(run) / CHECKPOINT
    if not place.exists():
        stopped = [path for path in store.folder.glob(f"scratch/run-{run.number}-*/{CHECKPOINT}") if path.is_file()]
        if stopped:  # a training that was interrupted got further than any that is finished
            place.parent.mkdir(parents=True, exist_ok=True)
            max(stopped, key=lambda path: path.stat().st_mtime_ns).replace(place)
        elif longest is not None:
            _as_checkpoint(run, pq.read_table(longest[1], partitioning=None), place, env, maker)
    return [path for _, path in results]


def _earlier_results(run: TrainingRun, store: Store) -> list[tuple[int, Path]]:
    """The results of the same run with other lengths: how many episodes, and the file."""
    earlier = []
    for path in store.folder.glob(f"run-{run.number}-*.parquet"):
        try:
            phases = pq.read_table(path, columns=["phase"], partitioning=None)["phase"]
        except (OSError, pa.ArrowException):
            continue
        episodes = pc.sum(pc.equal(phases, "train")).as_py() or 0
        # The name is a hash of all settings, so an equal name is a proof that the others are the same.
        if not episodes:
            continue
        same = replace(run.settings, episodes=episodes, evaluate=len(phases) - episodes)
        if TrainingRun(same, run.number).name == path.stem:
            earlier.append((episodes, path))
    return earlier


def _as_checkpoint(run: TrainingRun, result: pa.Table, place: Path, env: Any, maker: Maker) -> None:
    """Write the checkpoint that a finished run ended with."""
    trained = result.filter(pc.equal(result["phase"], "train"))
    history = History(trained["return"].to_pylist(), trained["length"].to_pylist(), trained["terminated"].to_pylist())
    beginning = run.settings.agent(env, maker, run.number)
    checkpoint = TrainingCheckpoint(place, beginning, env, maker, run.seed)
    checkpoint.write(_from_bytes(result["agent"][len(result) - 1].as_py()), history.arrays())
