"""What `trueonline train` does: runs of one training, what they leave, and going on where they were stopped."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trueonline import control, features, study
from trueonline.control.gym import curves, environments
from trueonline.control.gym.evaluation import Evaluation, standard_error
from trueonline.control.gym.training import Progress, Training
from trueonline.features.spaces import Maker
from trueonline.files import write_whole
from trueonline.inputs import count, positive, unit
from trueonline.learners.loading import load
from trueonline.study import results as tables
from trueonline.study.store import Store
from trueonline.study.work import Beat
from trueonline.terminal import TasksBar

METHODS = {  # name → class in `trueonline.control`, and what it is called
    "true_online_sarsa": ("TrueOnlineSarsa", "true online Sarsa(λ)"),
    "accumulate_sarsa": ("AccumulateSarsa", "Sarsa(λ) with accumulating traces"),
    "replace_sarsa": ("ReplaceSarsa", "Sarsa(λ) with replacing traces"),
    "watkins_q": ("WatkinsQ", "Watkins's Q(λ)"),
    "true_online_watkins_q": ("TrueOnlineWatkinsQ", "true online Watkins's Q(λ)"),
}
CHECKPOINT_EVERY = 10.0  # seconds
LAST = 100  # episodes that the summary is about
VERSION = 1
PACKAGES = ("trueonline", "gymnasium", "numpy", "numba")

EPISODES = [
    ("run", pa.int64()),
    ("episode", pa.int64()),  # counted from 1
    ("return", pa.float64()),
    ("length", pa.int64()),
    ("terminated", pa.bool_()),
]
# A run's result: its episodes, then its greedy ones. The agent that it ends with goes along in the last row, so that a result
# needs nothing but this table, wherever it was computed.
SCHEMA = pa.schema([("phase", pa.string()), *EPISODES, ("diverged", pa.bool_()), ("agent", pa.large_binary())])


@dataclass(frozen=True)
class Linear:
    """A schedule that goes from one number to another in so many steps, and stays there."""

    first: float
    last: float
    steps: int

    def __call__(self, t: int) -> float:
        return self.first + (self.last - self.first) * min(t / self.steps, 1.0)


@dataclass(frozen=True)
class Settings:
    """All that determines a run, but its number."""

    environment: str
    options: dict[str, Any] = field(default_factory=dict)  # for gymnasium.make
    method: str = "true_online_sarsa"
    step_size: float = 0.5
    divided: bool = True  # the step-size by the number of active features
    trace_decay: float = 0.9
    discount: float = 0.99
    epsilon: float = 0.1
    epsilon_final: float | None = None
    epsilon_steps: int | None = None
    features: str = "auto"
    feature_options: dict[str, Any] = field(default_factory=dict)
    episodes: int = 500
    evaluate: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method!r}; known are {', '.join(METHODS)}")
        positive("step-size", self.step_size)
        unit("trace-decay", self.trace_decay)
        unit("discount", self.discount)
        unit("epsilon", self.epsilon)
        count("episodes", self.episodes)
        environments.entropy(self.seed)
        if self.evaluate:
            count("evaluate", self.evaluate)
        if (self.epsilon_final is None) != (self.epsilon_steps is None):
            raise ValueError("epsilon-final and epsilon-steps belong together: give both, or neither")
        if self.epsilon_final is not None:
            unit("epsilon-final", self.epsilon_final)
            count("epsilon-steps", self.epsilon_steps)

    def plain(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))

    def environment_made(self) -> Any:
        if ":" in self.environment and "" not in sys.path:
            sys.path.insert(0, "")  # module:Name is looked for in the current folder too
        return environments.make(self.environment, **self.options)

    def features_for(self, env: Any) -> Maker:
        try:
            made = features.from_space(env.observation_space, self.features, **self.feature_options)
        except TypeError:
            given = ", ".join(f"--{name}" for name in self.feature_options)
            raise ValueError(
                f"these features have no {given}; bins and tilings are for tiles, order for fourier"
            ) from None
        if self.method == "replace_sarsa" and isinstance(made, features.Fourier):
            raise ValueError("replacing traces need binary features, which --features fourier are not; use tiles")
        return made

    def alpha(self, made: Maker) -> float:
        return self.step_size / made.n_active if self.divided else self.step_size

    def schedule(self) -> float | Linear:
        if self.epsilon_final is None or self.epsilon_steps is None:
            return self.epsilon
        return Linear(self.epsilon, self.epsilon_final, self.epsilon_steps)

    def agent(self, env: Any, made: Maker, run: int) -> control.Agent:
        kind: type[control.Agent] = getattr(control, METHODS[self.method][0])
        actions = int(environments.discrete(env).n)
        policy = control.EpsilonGreedy(self.schedule())
        seed = [self.seed, run]
        return kind(made.n_features, actions, self.alpha(made), self.trace_decay, self.discount, policy, seed=seed)


@dataclass(frozen=True)
class Run:
    """One run: a `study.Work`."""

    settings: Settings
    number: int
    checkpoint_every: float = field(default_factory=lambda: CHECKPOINT_EVERY)  # how it is computed, not what
    spawned = True
    schema = SCHEMA
    unit = "episodes"

    @cached_property
    def name(self) -> str:
        about = json.dumps([self.settings.plain(), self.number], sort_keys=True)
        return f"run-{self.number}-{hashlib.sha256(about.encode()).hexdigest()[:24]}"

    @property
    def rows(self) -> int:
        return self.settings.episodes + self.settings.evaluate

    @property
    def steps(self) -> int:
        return self.settings.episodes

    def compute(
        self, scratch: Path | None = None, beat: Beat = lambda steps: None, progress: Progress | None = None
    ) -> pa.Table:
        """Train, going on from the checkpoint if there is one; then play greedily."""
        given = self.settings
        seed = (given.seed, self.number)
        with closing(given.environment_made()) as env:
            made = given.features_for(env)
            agent = given.agent(env, made, self.number)
            training = control.train(
                env,
                agent,
                made,
                episodes=given.episodes,
                seed=seed,
                checkpoint=None if scratch is None else scratch / "checkpoint.npz",
                checkpoint_every=self.checkpoint_every,
                progress=progress or (lambda episode, total, length: beat(episode)),
            )
            played = control.evaluate(env, agent, made, given.evaluate, seed=seed) if given.evaluate else None
        epsilon = given.schedule()
        if isinstance(epsilon, Linear):  # a schedule is code and cannot be saved; what it has come to can
            agent.policy = control.EpsilonGreedy(epsilon(agent.steps))
        parts: list[tuple[str, Training | Evaluation]] = [("train", training)]
        if played is not None:
            parts.append(("evaluate", played))
        phases = [phase for phase, some in parts for _ in some.returns]
        columns = [
            phases,
            [self.number] * len(phases),
            [number for _, some in parts for number in range(1, len(some.returns) + 1)],
            *(
                np.concatenate([getattr(some, name) for _, some in parts])
                for name in ("returns", "lengths", "terminated")
            ),
            [agent.diverged] * len(phases),
            [*[None] * (len(phases) - 1), _saved(agent)],
        ]
        return pa.table(columns, schema=SCHEMA)


def _saved(agent: control.Agent) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder, "agent.npz"))
        return Path(folder, "agent.npz").read_bytes()


# --- The command ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trained:
    """What there is after all runs."""

    settings: Settings
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
        """A row for each run."""
        return self.phase(name)[column].to_numpy().reshape(self.runs, -1)

    @property
    def diverged(self) -> list[int]:
        bad = self.results.filter(self.results["diverged"])
        return sorted(pc.unique(bad["run"]).to_pylist())


def train(
    settings: Settings,
    out: str | Path,
    *,
    runs: int = 1,
    film: bool = True,
    engine: str = "local",
    threads: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Do the runs that are missing in the folder `out`, and leave tables, curve, agent and film there.

    A folder that other settings have written is a ValueError. `say` is told what is about to be done.
    """
    out, runs = Path(out), count("runs", runs)
    with closing(settings.environment_made()) as env:
        made = settings.features_for(env)
        environments.fitting(env, settings.agent(env, made, 0), made)
        _claim(out, settings, env, made)
    for line in _intended(settings, made, runs):
        say(line)
    tasks = [Run(settings, number) for number in range(runs)]
    if runs == 1 and engine == "local":
        _alone(tasks[0], out / "tasks")
    else:
        with TasksBar("Training") as progress:
            study.execute_tasks(tasks, out / "tasks", engine=engine, threads=threads, progress=progress)
    results = study.gather_tasks(tasks, out / "tasks")
    assert results is not None, "all of them were done"
    trained = Trained(settings, out, results, made)
    _leave(trained)
    return replace(trained, no_film=_filmed(trained) if film else "none was asked for")


def _alone(task: Run, folder: Path) -> None:
    """One run needs no other process, and can be watched."""
    store = Store(folder)
    if store.read(task) is None:
        with EpisodesBar(task.settings.episodes) as bar:
            store.write(task, task.compute(store.scratch(task), progress=bar))


def _claim(out: Path, settings: Settings, env: Any, made: Maker) -> None:
    """Write the settings into the folder, or see that they are the same as those there."""
    path = out / "settings.json"
    if path.exists():
        try:
            there = json.loads(path.read_text())["settings"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path} is damaged; remove the folder, or choose another with --out") from None
        here = settings.plain()
        different = [name for name in here if there.get(name) != here[name]]
        begun = any((out / "tasks").glob("**/*"))
        if different and begun:
            shown = "; ".join(f"{name} is {there.get(name)!r} there and {here[name]!r} here" for name in different)
            raise ValueError(f"the folder {out} holds a training with other settings: {shown}. Choose another with --out")
        if not different:
            return
    about = {
        "format": "trueonline training",
        "version": VERSION,
        "settings": settings.plain(),
        "step_size": settings.alpha(made),
        "features": made.settings(),
        "environment": environments.described(env),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
    }
    out.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(json.dumps(about, indent=2, ensure_ascii=False).encode()))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _leave(trained: Trained) -> None:
    """Tables, agent and curve, unless they are there already."""
    out, episodes = trained.out, trained.phase("train")
    wanted = ("episodes.csv", "episodes.parquet", "curve.png", "agent.npz")
    if all((out / name).exists() for name in wanted) and _same(out / "episodes.parquet", episodes):
        return
    tables.write(episodes, out / "episodes")
    if trained.settings.evaluate:
        tables.write(trained.phase("evaluate"), out / "evaluation")
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


def _filmed(trained: Trained) -> str | None:
    """Film the first run's policy; why there is no film, if there is none. All else is there already."""
    path, given = trained.out / "film.gif", trained.settings
    if path.exists():
        return None
    try:
        agent = load(trained.out / "agent.npz")
        curves.film(given.environment, agent, trained.features, path, seed=given.seed, options=given.options)
    except ValueError as error:
        return str(error)
    return None


# --- Words ----------------------------------------------------------------------------------------


def headline(settings: Settings, made: Maker) -> str:
    return f"{settings.environment}: {METHODS[settings.method][1]}, α = {_alpha(settings, made)}, λ = {settings.trace_decay:g}"


def _alpha(settings: Settings, made: Maker) -> str:
    return (
        f"{settings.step_size:g}/{made.n_active}" if settings.divided and made.n_active > 1 else f"{settings.step_size:g}"
    )


def _intended(settings: Settings, made: Maker, runs: int) -> Iterable[str]:
    yield f"{settings.environment} with {METHODS[settings.method][1]}"
    alpha = f"{settings.alpha(made):.4g}"
    if settings.divided:
        alpha += f" ({settings.step_size:g} divided by the {made.n_active} active feature{'s' * (made.n_active > 1)})"
    epsilon = f"{settings.epsilon:g}"
    if settings.epsilon_final is not None:
        epsilon += f" → {settings.epsilon_final:g} in {settings.epsilon_steps:,} steps"
    yield _row("step-size", f"{alpha}, λ = {settings.trace_decay:g}, γ = {settings.discount:g}, ε = {epsilon}")
    yield _row("features", _featured(made))
    several = f", {runs} runs" if runs > 1 else ""
    yield _row("episodes", f"{settings.episodes:,}{several}, seed {settings.seed}")


def _featured(made: Maker) -> str:
    about, n = made.settings(), f"{made.n_features:,}"
    if about["kind"] == "table":
        return f"{n}, one for each state"
    if about["kind"] == "fourier":
        return f"{n} cosines of order {about['order']}"
    several = f" for each of {len(about['groups'])} groups of dimensions" if about["groups"] else ""
    return f"{n} tiles: {about['tilings']} tilings{several}, bins {about['bins']}"


def summary(trained: Trained) -> Iterable[str]:
    """What came of it."""
    returns = trained.by_run("train", "return")
    last = returns[:, -LAST:]
    what = f"last {last.shape[1]}" if last.shape[1] < returns.shape[1] else f"all {last.shape[1]}"
    over = "runs" if trained.runs > 1 else "episodes"
    yield _row(what, f"mean return {_mean(last)} (standard error over {over})")
    if trained.settings.evaluate:
        greedy = trained.by_run("evaluate", "return")
        each = " each" if trained.runs > 1 else ""
        yield _row("greedy", f"mean return {_mean(greedy)}, {greedy.shape[1]} episodes{each} without learning")
    if trained.diverged:
        runs = ", ".join(map(str, trained.diverged))
        which = f"in run {runs} " if trained.runs > 1 else ""
        yield _row("diverged", f"{which}the weights are no longer finite numbers: try a smaller --step-size")
    names = ["episodes.csv", "episodes.parquet", *(["evaluation.csv"] if trained.settings.evaluate else [])]
    names += ["curve.png", "agent.npz", "settings.json", *([] if trained.no_film else ["film.gif"])]
    yield _row("files", f"{trained.out}/{{{', '.join(names)}}}")


def _mean(returns: np.ndarray) -> str:
    """Of one run over its episodes, of several over the runs; with its standard error."""
    values = returns[0] if len(returns) == 1 else returns.mean(axis=1)
    error = standard_error(values)
    return _number(values.mean(), 4) + ("" if np.isnan(error) else f" ± {_number(error, 2)}")


def _number(value: float, digits: int) -> str:
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def _row(name: str, text: str) -> str:
    return f"  {name:<10} {text}"


def suitable() -> Iterable[str]:
    """The registered environments that can be made here and have discrete actions and features, a line each."""
    gym = environments.gymnasium()
    for name, spec in list(gym.registry.items()):
        if str(spec.entry_point).startswith("ale_py"):  # games, which `trueonline atari` plays
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                env = environments.make(name)
                made = features.from_space(env.observation_space)
                actions = environments.discrete(env).n
            except ValueError:
                continue
        yield f"{name:<26} {actions:>2} actions   {made.n_features:>7,} features   {_observed(env.observation_space)}"


def _observed(space: Any) -> str:
    return f"{space.shape[0]} numbers" if type(space).__name__ == "Box" else str(space)


def option(text: str) -> tuple[str, Any]:
    """KEY=VALUE as it is meant: numbers, true, false, none and JSON as such, all else as text.

    >>> option("is_slippery=false"), option("map_name=8x8"), option("max_episode_steps=1000")
    (('is_slippery', False), ('map_name', '8x8'), ('max_episode_steps', 1000))
    """
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise ValueError(f"an option must be KEY=VALUE, got {text!r}")
    words = {"true": True, "false": False, "none": None, "null": None}
    if value.lower() in words:
        return key, words[value.lower()]
    for read in (json.loads, ast.literal_eval):
        try:
            return key, read(value)
        except (ValueError, SyntaxError):
            continue
    return key, value


class EpisodesBar:
    """Progress of one run: episodes, the return of the last, the mean of the last hundred, the time left."""

    def __init__(self, episodes: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (BarColumn(bar_width=16), MofNCompleteColumn(), TextColumn("episodes  {task.fields[news]}"))
        left = (TextColumn("left"), TimeRemainingColumn(compact=True))
        self.bar = Progress(*columns, *left, console=console, disable=not console.is_terminal)
        self.task = self.bar.add_task("", total=episodes, news="")
        self.recent: deque[float] = deque(maxlen=LAST)
        self.done, self.shown = 0, -1.0

    def __call__(self, episode: int, total: float, length: int) -> None:
        self.done = episode
        self.recent.append(total)
        if time.monotonic() - self.shown >= 0.1:
            self._show()

    def _show(self) -> None:
        self.shown = time.monotonic()
        news = f"return {self.recent[-1]:g}, mean {np.mean(self.recent):.4g}" if self.recent else ""
        self.bar.update(self.task, completed=self.done, news=news)

    def __enter__(self) -> EpisodesBar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._show()
        self.bar.stop()
