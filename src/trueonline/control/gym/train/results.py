"""The files that `trueonline train` leaves in its folder: settings, tables, the curve, the agent and the film."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trueonline.control.gym import curves, environments, films
from trueonline.control.gym.train.runs import EPISODES
from trueonline.control.gym.train.settings import LENGTHS, TrainingSettings
from trueonline.control.gym.train.texts import headline
from trueonline.features.spaces import Maker
from trueonline.files import write_whole
from trueonline.learners.loading import load
from trueonline.optional import version_of
from trueonline.study import results as tables

VERSION = 1
PACKAGES = ("trueonline", "gymnasium", "numpy", "numba")


@dataclass(frozen=True)
class Trained:
    """The results of all runs."""

    settings: TrainingSettings
    out: Path
    results: pa.Table
    features: Maker
    no_film: str | None = None  # why there is none

    @property
    def runs(self) -> int:
        return len(pc.unique(self.results["run"]))

    def phase(self, name: str) -> pa.Table:
        """The episodes of a phase, as a table for people."""
        rows = self.results.filter(pc.equal(self.results["phase"], name))
        return rows.select([column for column, _ in EPISODES])

    def by_run(self, name: str, column: str) -> np.ndarray:
        """A column of a phase, a row for each run."""
        return self.phase(name)[column].to_numpy().reshape(self.runs, -1)

    @property
    def diverged(self) -> list[int]:
        """The numbers of the runs whose weights are no longer finite."""
        bad = self.results.filter(self.results["diverged"])
        return sorted(pc.unique(bad["run"]).to_pylist())


def refuse_others(out: Path, settings: TrainingSettings) -> None:
    """ValueError where the folder holds a training whose settings differ in more than the length."""
    path = out / "settings.json"
    if not path.exists():
        return
    try:
        there = json.loads(path.read_text("utf-8"))["settings"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged; remove the folder, or choose another with --out") from None
    here = settings.plain()
    different = [name for name in here if name not in LENGTHS and there.get(name) != here[name]]
    if different and any((out / "tasks").glob("**/*")):
        shown = "; ".join(f"{name} is {there.get(name)!r} there and {here[name]!r} here" for name in different)
        raise ValueError(f"the folder {out} holds a training with other settings: {shown}. Choose another with --out")


def write_settings(out: Path, settings: TrainingSettings, env: Any, maker: Maker) -> None:
    """Write the settings into the folder, unless they are there already."""
    path = out / "settings.json"
    if path.exists() and json.loads(path.read_text("utf-8"))["settings"] == settings.plain():
        return
    about = {
        "format": "trueonline training",
        "version": VERSION,
        "settings": settings.plain(),
        "step_size": settings.alpha(maker),
        "features": maker.settings(),
        "environment": environments.described(env),
        "versions": {name: number for name in PACKAGES if (number := version_of(name))},
    }
    out.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(json.dumps(about, indent=2, ensure_ascii=False).encode()))


def write(trained: Trained) -> None:
    """Write tables, agent and curve, unless they are there already."""
    out = trained.out
    phases = {"episodes": trained.phase("train")}
    if trained.settings.evaluate:
        phases["evaluation"] = trained.phase("evaluate")
    wanted = [*(f"{name}.csv" for name in phases), "curve.png", "agent.npz"]
    if all((out / name).exists() for name in wanted) and all(_same(out / f"{n}.parquet", t) for n, t in phases.items()):
        return
    for name, table in phases.items():
        tables.write(table, out / name)
    first = trained.results.filter(pc.equal(trained.results["run"], 0))
    agent, path = first["agent"][len(first) - 1].as_py(), out / "agent.npz"
    if not path.exists() or path.read_bytes() != agent:
        (out / "film.gif").unlink(missing_ok=True)
        write_whole(path, lambda file: file.write(agent))
    curves.curve(out / "curve.png", trained.by_run("train", "return"), title=headline(trained.settings, trained.features))


def _same(path: Path, table: pa.Table) -> bool:
    try:
        return pq.read_table(path, partitioning=None).equals(table)
    except (OSError, pa.ArrowException):
        return False


def film(trained: Trained) -> str | None:
    """Film the first run's policy. Return why there is no film, if there is none."""
    path, settings = trained.out / "film.gif", trained.settings
    if path.exists():
        return None
    try:
        agent = load(trained.out / "agent.npz")
        films.film(settings.environment, agent, trained.features, path, seed=settings.seed, options=settings.options)
    except ValueError as error:
        return str(error)
    return None
