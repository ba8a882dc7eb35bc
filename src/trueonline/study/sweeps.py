"""From cases to a table: expand, run what is missing, gather."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.study import engines
from trueonline.study.store import Store
from trueonline.study.tasks import Case
from trueonline.study.work import Work

METHODS = ("accumulate", "replace", "true_online")
OFF_POLICY = (
    *("off_policy", "true_online_off_policy", "gtd", "true_online_gtd"),
    *("emphatic", "true_online_emphatic"),
)  # those that heed importance ratios
STEP_SIZES = tuple(float(alpha) for alpha in (*10.0 ** np.arange(-3.0, -1.0, 0.2), *np.arange(1, 21) / 10.0))
TRACE_DECAYS = tuple(float(lam) for lam in (*np.arange(9) / 10.0, *np.arange(90, 101) / 100.0))

# Called with a task that is done, how many are done so far, and of how many; with None for what need not be done. Where tasks
# are long (spawned), steps are counted instead of tasks, and it is called whenever one of them has moved on.
Progress = Callable[[Work | None, int, int], None]


def execute(
    cases: Sequence[Case],
    out: str | os.PathLike,
    *,
    engine: str = "local",
    share: str | None = None,
    threads: int | None = None,
    progress: Progress = lambda task, done, of: None,
) -> None:
    """Compute what is missing in the folder `out`: every result is a file as soon as it is there."""
    tasks = [task for case in cases for task in case.tasks()]
    execute_tasks(tasks, out, engine=engine, share=share, threads=threads, progress=progress)


def execute_tasks(
    tasks: Sequence[Work],
    out: str | os.PathLike,
    *,
    engine: str = "local",
    share: str | None = None,
    threads: int | None = None,
    progress: Progress = lambda task, done, of: None,
) -> None:
    """The same for tasks of any kind. Those that hold the interpreter run as processes, and may leave checkpoints in `out`."""
    store = Store(out)
    mine = engines.shard(list({task.name: task for task in tasks}.values()), share)
    missing = store.missing(mine)
    in_steps = any(task.spawned for task in mine)
    sizes = {task.name: task.steps if in_steps else 1 for task in mine}
    reached = dict.fromkeys((task.name for task in missing), 0)
    whole = sum(sizes.values())
    so_far = whole - sum(sizes[name] for name in reached)
    progress(None, so_far, whole)

    def reach(task: Work, steps: int, fresh: bool) -> None:
        nonlocal so_far
        so_far += steps - reached[task.name]
        reached[task.name] = steps
        progress(task if fresh else None, so_far, whole)

    def moved(task: Work, steps: int, begun: bool) -> None:
        reach(task, min(steps, sizes[task.name] - 1), fresh=not begun)  # all of it is done when the result is stored

    def done(task: Work, table: pa.Table) -> None:
        store.write(task, table)
        reach(task, sizes[task.name], fresh=True)

    engines.run(missing, engine, done, moved, store.scratch, threads=threads)
    if share is None:
        store.tidy()


def read_task(task: Work, out: str | os.PathLike) -> pa.Table | None:
    """The result of a task; None while it is missing."""
    return Store(out).read(task)


def gather_tasks(tasks: Iterable[Work], out: str | os.PathLike) -> pa.Table | None:
    """The results of tasks, one after the other; None while some are missing."""
    store = Store(out)
    tables = [store.read(task) for task in tasks]
    if not tables:
        raise ValueError("a study needs at least one task")
    return None if any(table is None for table in tables) else pa.concat_tables(tables)


def gather(case: Case, out: str | os.PathLike) -> pa.Table | None:
    """The results of a case in the order of method, run, step-size and trace decay; None while some are missing."""
    table = gather_tasks(case.tasks(), out)
    return None if table is None else _labelled(table, case.labels)


def run(cases: Sequence[Case], out: str | os.PathLike | None = None, **options: Any) -> pa.Table | None:
    """Run a study (see `execute`); return its results, or None while other shares of it are missing."""
    if not cases:
        raise ValueError("a study needs at least one case")
    if len({tuple(case.labels) for case in cases}) > 1:
        raise ValueError(f"all cases must have the same labels, got {sorted({tuple(case.labels) for case in cases})}")
    if out is None and options.get("share") is not None:
        raise ValueError("a share needs a folder that all shares have in common: give out")
    with contextlib.nullcontext(out) if out is not None else tempfile.TemporaryDirectory() as folder:
        execute(cases, folder, **options)
        tables = [gather(case, folder) for case in cases]
    return None if any(table is None for table in tables) else pa.concat_tables(tables)


def applicable(problem: Any) -> tuple[str, ...]:
    """The methods that the problem allows: replacing traces need binary features, and `ratios` methods that heed them."""
    if hasattr(problem, "ratios"):
        return OFF_POLICY
    binary = np.isin(problem.features, (0.0, 1.0)).all()
    return METHODS if binary else tuple(name for name in METHODS if name != "replace")


def _labelled(table: pa.Table, labels: Mapping[str, Any]) -> pa.Table:
    for position, (name, value) in enumerate(labels.items()):
        table = table.add_column(position, name, pa.array([value] * len(table)))
    return table


def sweep(
    problem: Any,
    methods: Iterable[str] | Mapping[str, Any] = METHODS,
    step_sizes: Iterable[float] = STEP_SIZES,
    trace_decays: Iterable[float] = TRACE_DECAYS,
    runs: int = 50,
    steps: int = 100,
    seed: int = 0,
    engine: str = "local",
    out: str | os.PathLike | None = None,
    after: int = 0,
) -> pa.Table:
    """Sweep methods over step-sizes and trace decays; return a table of `method, step_size, trace_decay, run, error`.

    `error` is the mean squared error against the LMS solution, over that of the weights that learning begins with (zeros, or
    the problem's `initial_weights`), averaged over the steps (section 5.1), or over those after the first `after`; infinite
    where the run diverged. All methods and parameters of a run see the same trajectory. `methods` are names (by default all
    that apply to the problem: its features, and whether it has importance ratios), or a mapping from names to a kernel or
    class of learners of your own, a `study.Method`, or None for this package's. The default grids are the paper's.

    >>> import trueonline as to
    >>> table = to.sweep(to.problems.random_mrp(10, 3, 0.1), step_sizes=[0.1, 0.2], trace_decays=[0.9], runs=2)
    >>> table.num_rows, table.column_names
    (12, ['method', 'step_size', 'trace_decay', 'run', 'error'])
    """
    if methods is METHODS:
        methods = applicable(problem)
    if isinstance(methods, str):
        methods = (methods,)
    if not isinstance(methods, Iterable):
        raise ValueError(f"methods must be names, or a mapping from names to methods, got {methods!r}")
    chosen = methods if isinstance(methods, Mapping) else dict.fromkeys(methods)
    case = Case(problem, chosen, step_sizes, trace_decays, runs, steps, seed, after=after)  # type: ignore[arg-type]
    table = run([case], engine=engine, out=out)
    assert table is not None, "without shares nothing is missing"
    return table
