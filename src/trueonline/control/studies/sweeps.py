"""`control.sweep`: agents on environments, over step-sizes, trace decays and seeds. It resumes after a crash."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from trueonline.control.gym import environments
from trueonline.control.gym.train.settings import TrainingSettings
from trueonline.control.gym.training import limits, train
from trueonline.core.compiling.sources import package_code
from trueonline.inputs import count, number, positive, unit
from trueonline.study import engines
from trueonline.study.checks import check_known, grid
from trueonline.study.storage.execution import execute_tasks, gather_tasks
from trueonline.study.storage.work import Beat, WorkInPieces
from trueonline.terminal import TasksBar

CHECKPOINT_EVERY = 10.0  # seconds
SEEDS_OF_A_TASK = 5  # a task is a process, which takes a second or two to start
FINAL = 0.1  # the share of the steps or episodes that the final return is the mean of
SCHEMA = pa.schema(
    [
        ("environment", pa.string()),
        ("agent", pa.string()),
        ("step_size", pa.float64()),
        ("trace_decay", pa.float64()),
        ("seed", pa.int64()),
        ("mean_return", pa.float64()),
        ("final_return", pa.float64()),
        ("diverged", pa.bool_()),
        ("returns", pa.list_(pa.float64())),
        ("lengths", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True)
class SeveralTrainings(WorkInPieces):
    """A task: an agent with all its parameters on an environment, with some seeds."""

    agent: str  # its name in the table
    settings: TrainingSettings
    seeds: tuple[tuple[int, int], ...]  # pairs of a seed and the number of a run: the table has the seed
    episodes: int | None
    limit: int | None  # steps of a training

    schema = SCHEMA

    @property
    def title(self) -> str:
        return f"control-{self.settings.method}"

    def about(self) -> tuple[str]:
        code = package_code(__name__, "trueonline.methods"), version("gymnasium")
        return (
            json.dumps([self.agent, self.settings.plain(), self.seeds, self.episodes, self.limit, code], sort_keys=True),
        )

    @property
    def unit(self) -> str:  # type: ignore[override]
        return "steps" if self.episodes is None else "episodes"

    @property
    def pieces(self) -> list[tuple[tuple[int, int], int]]:
        length = self.limit if self.episodes is None else self.episodes
        assert length is not None, "one of them is given"
        return [(seed, length) for seed in self.seeds]

    def row(self, piece: tuple[int, int], checkpoint: Path | None, beat: Beat) -> dict[str, Any]:
        settings, done = replace(self.settings, seed=piece[0]), [0]

        def progress(episode: int, total: float, length: int) -> None:
            done[0] += length
            beat(episode if self.episodes is not None else min(done[0], self.limit or 0))

        with closing(settings.environment_made()) as env:
            maker = settings.features_for(env)
            agent = settings.agent(env, maker, piece[1])
            training = train(
                env,
                agent,
                maker,
                episodes=self.episodes,
                steps=self.limit,
                seed=piece,
                checkpoint=checkpoint,
                checkpoint_every=CHECKPOINT_EVERY,
                callback=progress,
            )
        return {
            "environment": settings.environment,
            "agent": self.agent,
            "step_size": settings.step_size,
            "trace_decay": settings.trace_decay,
            "seed": piece[0],
            "mean_return": float(training.returns.mean()),
            "final_return": training.mean(max(1, round(FINAL * len(training.returns)))),
            "diverged": bool(agent.diverged),
            "returns": training.returns.tolist(),
            "lengths": training.lengths.tolist(),
        }


def sweep(
    environment: str | Iterable[str],
    agents: str | Iterable[str] | Mapping[str, Mapping[str, Any]],
    step_sizes: Iterable[float],
    trace_decays: Iterable[float],
    seeds: int | Iterable[int] = 10,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    engine: str = "local",
    threads: int | None = None,
    out: str | os.PathLike | None = None,
    progress: bool = False,
    parameters: Mapping[str, Iterable[float]] | None = None,
    **settings: Any,
) -> pa.Table:
    """Train agents on Gymnasium environments, over step-sizes, trace decays and seeds, on all cores.

    A run's environment and agent are seeded by its seed alone. So all agents and parameters see the same episodes' beginnings, and
    another engine or number of processes gives the same numbers bit for bit.

    Parameters
    ----------
    environment : str or iterable of str
        Names of environments, such as "CartPole-v1" or "module:Name".
    agents : str, iterable of str, or mapping
        Names of agents, as `trueonline train --help` lists them. A mapping gives each agent a name of its own and its settings,
        such as ``{"often random": {"method": "true_online_sarsa", "epsilon": 0.3}}``.
    step_sizes, trace_decays : iterable of float
        The grid of α and λ. α is divided by the number of active features, as in `trueonline train`.
    seeds : int or iterable of int
        The seeds, or how many there are: 0, 1, 2, ….
    episodes : int, optional
        Episodes of each run.
    steps : int, optional
        Train until there are at least so many steps. With `episodes` too, the limit that is reached first ends a run.
    engine : str
        "local", "dask" or "dask:ADDRESS", as in `study.execute`.
    threads : int, optional
        The number of processes or workers, by default one for each core.
    out : path-like, optional
        A folder that keeps the results of all runs. After Ctrl-C or a crash, the same call computes only what is missing.
    progress : bool
        Whether to show a progress bar.
    parameters : mapping, optional
        Grids of further arguments of agents that are numbers, such as ``{"meta_step_size": [0.001, 0.01]}``, and "eta", the ratio
        of the second step-size to the first. The table has a column for each, which is null for agents without it.
    **settings
        Further settings of all agents: `discount`, `epsilon`, `epsilon_final`, `epsilon_steps`, `features`, `feature_options`,
        `options` (for `gymnasium.make`) and `divided`, as in `trueonline train`.

    Returns
    -------
    pyarrow.Table
        A row for each run: `environment`, `agent`, `step_size`, `trace_decay`, `seed`, `mean_return` over all episodes (the area
        under the learning curve), `final_return` over the last tenth of the episodes, `diverged`, and the `returns` and `lengths`
        of all episodes. Parameters come last.

    Raises
    ------
    ValueError
        If an environment, an agent, a parameter or the engine is not known or does not fit. Nothing has run then.

    See Also
    --------
    aggregate : interquartile means with intervals.
    profile : performance profiles.

    Examples
    --------
    >>> import trueonline as to
    >>> table = to.control.sweep(
    ...     "FrozenLake-v1", "true_online_sarsa", [0.5], [0.0, 0.9], seeds=2, episodes=20, options={"is_slippery": False}
    ... )
    >>> table.num_rows, len(table["returns"][0])
    (4, 20)
    """
    if engine.startswith("cuda"):
        raise ValueError(f"engine must be local, dask or dask:ADDRESS, got {engine!r}: agents do not train on a GPU")
    most, limit = limits(episodes, steps)
    numbers = (
        tuple(range(count("seeds", seeds))) if isinstance(seeds, int) else tuple(map(int, grid("seeds", seeds, _seed)))
    )
    alphas, lams = grid("step_sizes", step_sizes, positive), grid("trace_decays", trace_decays, unit)
    own_grid = {name: grid(f"parameters[{name!r}]", values, number) for name, values in (parameters or {}).items()}
    names = _names("environment", environment)
    tasks, unused = [], {*own_grid}
    for each, (agent, own) in product(names, _named(agents).items()):
        first = _settings(each, {**settings, **own}, alphas[0], lams[0])
        has = [name for name in own_grid if name in first.parameter_names]
        unused -= {*has}
        points = [dict(zip(has, values, strict=True)) for values in product(*(own_grid[name] for name in has))]
        with closing(first.environment_made()) as env:
            maker = first.features_for(env)
            for point in points:
                tried = replace(first, parameters={**first.parameters, **point})
                environments.fitting(env, tried.agent(env, maker, 0), maker)
        for alpha, lam, point in product(alphas, lams, points):
            one = replace(first, step_size=alpha, trace_decay=lam, parameters={**first.parameters, **point})
            for k in range(0, len(numbers), SEEDS_OF_A_TASK):
                pairs = tuple((seed, 0) for seed in numbers[k : k + SEEDS_OF_A_TASK])
                tasks.append(SeveralTrainings(agent, one, pairs, most, limit))
    if unused:
        raise ValueError(f"parameters has {min(unused)!r}, which is a parameter of none of the agents")
    engines.check(engine)
    with tempfile.TemporaryDirectory() if out is None else nullcontext(out) as folder:
        with TasksBar("Training") if progress else nullcontext(lambda *state: None) as watch:
            execute_tasks(tasks, folder, engine=engine, threads=threads, progress=watch)
        table = gather_tasks(tasks, folder)
    assert table is not None, "all of them were done"
    for name in own_grid:
        column = [task.settings.parameters.get(name) for task in tasks for _ in task.seeds]
        table = table.append_column(name, pa.array(column, pa.float64()))
    return table


def _seed(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{name} must be a number of seeds, or whole numbers ≥ 0, got {value!r}")
    return value


def _names(what: str, given: Any) -> tuple[str, ...]:
    """One name, or several. ValueError unless they differ."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        raise ValueError(f"{what} must be a name, or several different names, got {given!r:.80}")
    return names


def _named(agents: Any) -> dict[str, dict[str, Any]]:
    """The settings of each agent by its name."""
    names = _names("agents", agents)
    own = agents if isinstance(agents, Mapping) else {name: {"method": name} for name in names}
    if not all(isinstance(each, Mapping) for each in own.values()):
        raise ValueError(
            f"agents must be a mapping from names to settings, such as {{'mine': {{'epsilon': 0.1}}}}, got {own!r:.80}"
        )
    return {name: dict(each) for name, each in own.items()}


def _settings(environment: str, given: dict[str, Any], step_size: float, trace_decay: float) -> TrainingSettings:
    others = {"environment", "step_size", "trace_decay", "episodes", "evaluate", "seed"}
    check_known("setting of an agent", given, {*TrainingSettings.__dataclass_fields__} - others)
    return TrainingSettings(environment, step_size=step_size, trace_decay=trace_decay, evaluate=0, **given)
