"""From cases to a table: expand the cases, run the missing tasks, gather the results."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import catalog
from trueonline.study import engines
from trueonline.study.checks import check_problem
from trueonline.study.store import Store
from trueonline.study.tasks import Case
from trueonline.study.work import Work
from trueonline.study.writer import Writer

METHODS = catalog.names("prediction", swept=True)
OFF_POLICY = catalog.names("off-policy", swept=True)  # methods that use importance ratios
AVERAGE_REWARD = catalog.names("average reward", swept=True)
STEP_SIZES = tuple(float(alpha) for alpha in (*10.0 ** np.arange(-3.0, -1.0, 0.2), *np.arange(1, 21) / 10.0))
TRACE_DECAYS = tuple(float(lam) for lam in (*np.arange(9) / 10.0, *np.arange(90, 101) / 100.0))

# Called with a finished task, the number of finished tasks, and the number of all tasks. The task is None for tasks that were
# finished before. If tasks are long (spawned), steps are counted instead of tasks, and the call comes whenever a task makes
# progress.
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
    """Compute the results of cases that are missing in a folder.

    Parameters
    ----------
    cases : sequence of Case
        The cases.
    out : path
        The folder of the results. Each result is written to a file as soon as it is computed.
    engine : str
        "local" for the cores of this machine, "cuda" for an NVIDIA GPU, "cuda:1" for another one, "dask" for a Dask cluster on
        this machine, or "dask:ADDRESS" for one that runs already. All give the same results, bit for bit. A GPU runs sweeps by
        kernels. Tasks of other kinds run on the cores.
    share : str, optional
        "i/N" computes the i-th of N shares of the tasks. All shares use the same folder.
    threads : int, optional
        The number of tasks that run at a time, by default one for each core.
    progress : callable, optional
        Called with a finished task (or None), the number of finished tasks, and the number of all tasks.

    Raises
    ------
    ValueError
        If `engine` or `share` is not one of those above, if there is no such GPU or it has too little memory for one task, or if
        a method cannot be told from another (see `Case.version`).
    OSError
        If a result cannot be written, or if the GPU stops answering. Results that are stored stay.
    """
    for case in cases:
        case.check_repeatable()
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
    """Compute the results of tasks of any kind that are missing in a folder.

    Tasks that hold the interpreter run in processes, and may leave checkpoints in the folder.

    Parameters
    ----------
    tasks : sequence of Work
        The tasks.
    out, engine, share, threads, progress : object
        The same as in `execute`.
    """
    store = Store(out)
    mine = engines.shard(list({task.name: task for task in tasks}.values()), share)
    missing = store.missing(mine)
    if missing:
        engines.check(engine)  # before the folder is made
    store.begin()
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
        reach(task, min(steps, sizes[task.name] - 1), fresh=not begun)  # the last step counts when the result is stored

    def stored(task: Work) -> None:
        reach(task, sizes[task.name], fresh=True)

    with Writer(store, stored) as writer:
        engines.run(missing, engine, writer.write, moved, store.scratch, threads=threads)
    if share is None:
        store.tidy()


def read_task(task: Work, out: str | os.PathLike) -> pa.Table | None:
    """Read the result of a task.

    Parameters
    ----------
    task : Work
        The task.
    out : path
        The folder of the results.

    Returns
    -------
    pyarrow.Table or None
        The result, or None if it is missing.
    """
    return Store(out).read(task)


def gather_tasks(tasks: Iterable[Work], out: str | os.PathLike) -> pa.Table | None:
    """Read the results of tasks.

    Parameters
    ----------
    tasks : iterable of Work
        The tasks.
    out : path
        The folder of the results.

    Returns
    -------
    pyarrow.Table or None
        The results, one after the other, or None if one is missing.

    Raises
    ------
    ValueError
        If there are no tasks.
    """
    store = Store(out)
    tables = [store.read(task) for task in tasks]
    if not tables:
        raise ValueError("a study needs at least one task")
    return None if any(table is None for table in tables) else pa.concat_tables(tables)


def gather(case: Case, out: str | os.PathLike) -> pa.Table | None:
    """Read the results of a case.

    Parameters
    ----------
    case : Case
        The case.
    out : path
        The folder of the results.

    Returns
    -------
    pyarrow.Table or None
        The results in the order of method, run, step-size and trace decay, or None if some are missing.
    """
    table = gather_tasks(case.tasks(), out)
    return None if table is None else _labelled(table, case.labels)


def run(cases: Sequence[Case], out: str | os.PathLike | None = None, **options: Any) -> pa.Table | None:
    """Run a study.

    Parameters
    ----------
    cases : sequence of Case
        The cases. All must have the same names of labels.
    out : path, optional
        The folder of the results, by default a temporary one.
    **options
        `engine`, `share`, `threads` and `progress`, as in `execute`.

    Returns
    -------
    pyarrow.Table or None
        The results of all cases, or None if other shares of the study are missing.

    Raises
    ------
    ValueError
        If there are no cases, if their labels differ, or if there is a share without `out`.
    """
    if not cases:
        raise ValueError("a study needs at least one case")
    if len({tuple(case.labels) for case in cases}) > 1:
        raise ValueError(f"all cases must have the same labels, got {sorted({tuple(case.labels) for case in cases})}")
    if out is None and options.get("share") is not None:
        raise ValueError("a share needs a folder that all shares have in common: give out")
    with contextlib.nullcontext(out) if out is not None else tempfile.TemporaryDirectory() as folder:
        for case in cases if out is not None else ():
            case.check_repeatable()
        tasks = [case.tasks() for case in cases]
        execute_tasks([task for some in tasks for task in some], folder, **options)
        found = [gather_tasks(some, folder) for some in tasks]
    tables = [table and _labelled(table, case.labels) for case, table in zip(cases, found, strict=True)]
    return None if any(table is None for table in tables) else pa.concat_tables(tables)


def applicable(problem: Any) -> tuple[str, ...]:
    """The methods that fit a problem.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    tuple of str
        The off-policy methods if the problem has importance ratios, and those with a reward rate for average-reward problems.
        Otherwise the methods of the paper, with replacing traces only if the features are binary.

    Examples
    --------
    >>> from trueonline import problems
    >>> applicable(problems.random_walk())
    ('accumulate', 'replace', 'true_online')
    """
    check_problem(problem)
    if hasattr(problem, "ratios"):
        return OFF_POLICY
    if getattr(problem, "average_reward", False):
        return AVERAGE_REWARD
    binary = np.isin(problem.features, (0.0, 1.0)).all()
    return tuple(name for name in METHODS if binary or not catalog.METHODS[name].binary)


def _labelled(table: pa.Table, labels: Mapping[str, Any]) -> pa.Table:
    for position, (name, value) in enumerate(labels.items()):
        table = table.add_column(position, name, pa.repeat(value, len(table)))
    return table


def sweep(
    problem: Any,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    step_sizes: Iterable[float] = STEP_SIZES,
    trace_decays: Iterable[float] = TRACE_DECAYS,
    runs: int = 50,
    steps: int = 100,
    seed: int = 0,
    engine: str = "local",
    out: str | os.PathLike | None = None,
    after: int = 0,
    version: str = "",
) -> pa.Table:
    """Sweep methods over step-sizes and trace decays, on one problem or on several.

    All methods and parameters of a run see the same trajectory. The default grids are the paper's.

    Parameters
    ----------
    problem : Problem, list of Problem, or mapping from labels to Problem
        The problem, such as a `FiniteMRP` or an `OffPolicyProblem`. Several problems are swept one after the other.
    methods : str, iterable of str, or mapping, optional
        Names of methods, or a mapping from names to methods. A method in a mapping is a kernel or a class of learners of
        your own, a `study.Method`, or None for the method of this package with that name. By default all methods that fit
        the problem: see `study.applicable`.
    step_sizes, trace_decays : iterable of float
        The grid of α and λ.
    runs : int
        The number of runs.
    steps : int
        The number of transitions in a run.
    seed : int
        The seed of the trajectories.
    engine : str
        "local", "cuda", "cuda:NUMBER", "dask" or "dask:ADDRESS", as in `study.execute`. All give the same results, bit for bit.
    out : path, optional
        A folder that keeps the results, so that a sweep can be resumed. By default a temporary one.
    after : int
        The number of steps at the beginning of a run that the error leaves out.
    version : str
        A text that is part of the name of each result. Change it when a method of yours changes in a way that its code does not
        show, such as a compiled library or a file that it reads. Changes of its Python code are noticed without it.

    Returns
    -------
    pyarrow.Table
        The columns are `method`, `step_size`, `trace_decay`, `run` and `error`. With several problems, the first column is
        `problem`: the label of the problem, or its class and its number in the list. `error` is the mean squared error
        against the LMS solution, averaged over the steps (section 5.1). It is relative to the error of the weights that
        learning begins with (zeros, or the problem's `initial_weights`), and infinite if the run diverged.

    Raises
    ------
    ValueError
        If an argument is out of range, if a method does not fit a problem, or if `engine` is a GPU that is not there.

    Examples
    --------
    >>> import trueonline as to
    >>> table = to.sweep(to.problems.random_mrp(10, 3, 0.1), step_sizes=[0.1, 0.2], trace_decays=[0.9], runs=2)
    >>> table.num_rows, table.column_names
    (12, ['method', 'step_size', 'trace_decay', 'run', 'error'])
    >>> walks = {"five": to.problems.random_walk(5), "nineteen": to.problems.random_walk(19)}
    >>> table = to.sweep(walks, "true_online", step_sizes=[0.1], trace_decays=[0.9], runs=1)
    >>> table["problem"].to_pylist()
    ['five', 'nineteen']
    """
    if isinstance(methods, str):
        methods = (methods,)
    if methods is not None and not isinstance(methods, Mapping):
        listed = tuple(methods) if isinstance(methods, Iterable) else (methods,)
        if not all(isinstance(name, str) for name in listed):
            raise ValueError(
                f'methods must be names, or a mapping from names to methods, such as {{"mine": my_method}}, got {methods!r}'
            )
        methods = dict.fromkeys(listed)
    grids = [tuple(grid) if isinstance(grid, Iterator) else grid for grid in (step_sizes, trace_decays)]
    common: Any = {
        "step_sizes": grids[0],
        "trace_decays": grids[1],
        "runs": runs,
        "steps": steps,
        "seed": seed,
        "after": after,
        "version": version,
    }
    cases = [
        Case(one, dict.fromkeys(applicable(one)) if methods is None else methods, labels=labels, **common)
        for one, labels in _labelled_problems(problem)
    ]
    table = run(cases, engine=engine, out=out)
    assert table is not None, "without shares nothing is missing"
    return table


def _labelled_problems(problem: Any) -> list[tuple[Any, dict[str, str]]]:
    """Problems with their labels. A problem alone has no label."""
    if isinstance(problem, Mapping):
        labelled = {str(label): one for label, one in problem.items()}
        if len(labelled) < len(problem):
            raise ValueError(f"the labels of problems must differ, got {list(problem)!r:.80}")
    elif isinstance(problem, list | tuple):
        labelled = {f"{type(one).__name__} {number}": one for number, one in enumerate(problem, 1)}
    else:
        return [(problem, {})]
    if not labelled:
        raise ValueError("problem must be a problem, or several, got none")
    return [(one, {"problem": label}) for label, one in labelled.items()]
