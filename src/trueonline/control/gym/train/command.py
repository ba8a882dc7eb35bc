"""The command `trueonline train`: the runs of one training that are missing, and all files that they leave."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from trueonline import study
from trueonline.control.gym import environments
from trueonline.control.gym.train import results as files
from trueonline.control.gym.train.results import Trained
from trueonline.control.gym.train.runs import TrainingRun, resume_earlier
from trueonline.control.gym.train.settings import TrainingSettings, option
from trueonline.control.gym.train.texts import intention, suitable, summary
from trueonline.inputs import count
from trueonline.study import engines
from trueonline.study.storage.store import Store
from trueonline.terminal import EpisodesBar, TasksBar, print_table


def run(
    environment: str,
    *,
    options: Sequence[str],
    parameters: Sequence[str],
    raw_step_size: bool,
    bins: int | None,
    tilings: int | None,
    order: int | None,
    hidden: str | None,
    runs: int,
    film: bool,
    out: str | None,
    engine: str,
    threads: int | None,
    **given: Any,
) -> None:
    """Train as the options of the command say, and print what came of it."""
    grids = {"bins": bins, "tilings": tilings, "order": order, "hidden": None if hidden is None else _layers(hidden)}
    settings = TrainingSettings(
        environment,
        dict(map(option, options)),
        parameters=dict(map(option, parameters)),
        divided=not raw_step_size,
        feature_options={name: value for name, value in grids.items() if value is not None},
        **given,
    )
    folder = out or f"train/{environment.replace(':', '/')}"
    trained = train(settings, folder, runs=runs, film=film, engine=engine, threads=threads, say=print)
    for line in summary(trained):
        print(line)
    if film and trained.no_film:
        print(f"No film: {trained.no_film}", file=sys.stderr)


def _layers(text: str) -> list[int]:
    """Read the units of hidden layers, such as 32,32."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise ValueError(f"--hidden must be whole numbers of units, such as 32,32, got {text!r}")
    return [int(part) for part in parts]


def print_environments() -> None:
    """Print the registered environments that can be trained on here."""
    print_table(("environment", "actions", "features", "observations"), suitable())


def train(
    settings: TrainingSettings,
    out: str | Path,
    *,
    runs: int = 1,
    film: bool = True,
    engine: str = "local",
    threads: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Do the runs that are missing in a folder, and leave tables, curve, agent and film there.

    Parameters
    ----------
    settings : TrainingSettings
        The settings, which determine the runs. More episodes than the folder holds extend its runs.
    out : path-like
        The folder.
    runs : int
        How many independent runs.
    film : bool
        Whether to film a greedy episode of the first run.
    engine, threads
        As in `study.execute_tasks`, without engines for GPUs.
    say : callable
        It gets what is about to be done, line by line.

    Returns
    -------
    Trained

    Raises
    ------
    ValueError
        If there is no such engine, or if the folder holds a training with other settings, or a longer one. Nothing changes then.
    """
    out, runs = Path(out), count("runs", runs)
    if engine.startswith("cuda"):
        raise ValueError(f"--engine must be local, dask or dask:ADDRESS, got {engine!r}: agents do not train on a GPU")
    engines.check(engine)
    tasks = [TrainingRun(settings, number) for number in range(runs)]
    with closing(settings.environment_made()) as env:
        maker = settings.features_for(env)
        environments.fitting(env, settings.agent(env, maker, 0), maker)
        files.refuse_others(out, settings)
        replaced: list[Path] = []
        if (out / "tasks").exists():
            store = Store(out / "tasks")
            store.begin()
            replaced = [path for task in tasks for path in resume_earlier(task, store, env, maker)]
        files.write_settings(out, settings, env, maker)
    for line in intention(settings, maker, runs):
        say(line)
    if runs == 1 and engine == "local":
        alone(tasks[0], out / "tasks")
    else:
        with TasksBar("Training") as progress:
            study.execute_tasks(tasks, out / "tasks", engine=engine, threads=threads, progress=progress)
    results = study.gather_tasks(tasks, out / "tasks")
    assert results is not None, "all of them were done"
    for path in replaced:
        path.unlink(missing_ok=True)
    trained = Trained(settings, out, results, maker)
    files.write(trained)
    return replace(trained, no_film=files.film(trained) if film else "none was asked for")


def alone(task: TrainingRun, folder: Path) -> None:
    """Do one run in this process, with a bar about its episodes."""
    store = Store(folder)
    store.begin()
    if store.read(task) is None:
        with EpisodesBar(task.settings.episodes) as bar:
            store.write(task, task.compute(store.scratch(task), progress=bar))
        store.flush()
