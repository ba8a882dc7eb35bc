"""From cases to a table: expand the cases, run the missing tasks, gather the results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from trueonline.inputs import count
from trueonline.study import engines
from trueonline.study.cases import Case, expand
from trueonline.study.storage.store import Store
from trueonline.study.storage.work import Work
from trueonline.study.storage.writer import Writer

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
        a method cannot be distinguished from another (see `Case.version`).
    OSError
        If a result cannot be written, or if the GPU stops answering. Results that are stored stay.
    """
    tasks = [task for some in expand(cases, kept=True) for task in some]
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
    if threads is not None:
        count("threads", threads)
    store = Store(out)
    mine = engines.shard(list({task.name: task for task in tasks}.values()), share)
    missing = store.missing(mine)
    if missing:
        engines.check(engine)  # before the folder is made
    store.begin()
    tally = _Count(mine, missing, progress)
    with Writer(store, tally.finish) as writer:
        engines.run(missing, engine, writer.write, tally.move, store.scratch, threads=threads)
    if share is None:
        store.tidy()


class _Count:
    """What is finished of some tasks, told to `progress`: in tasks, or in steps if some are long."""

    def __init__(self, tasks: Sequence[Work], missing: Sequence[Work], progress: Progress) -> None:
        self._progress, self._in_steps = progress, any(task.spawned for task in tasks)
        self._reached = {id(task): 0 for task in missing}  # not by name, which may take long to find
        self._whole = sum(map(self._size, tasks))
        self._so_far = self._whole - sum(map(self._size, missing))
        progress(None, self._so_far, self._whole)

    def _size(self, task: Work) -> int:
        return task.steps if self._in_steps else 1

    def _reach(self, task: Work, steps: int, fresh: bool) -> None:
        self._so_far += steps - self._reached[id(task)]
        self._reached[id(task)] = steps
        self._progress(task if fresh else None, self._so_far, self._whole)

    def move(self, task: Work, steps: int, begun: bool) -> None:
        self._reach(task, min(steps, self._size(task) - 1), fresh=not begun)  # the last step counts at the end

    def finish(self, task: Work) -> None:
        self._reach(task, self._size(task), fresh=True)


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
    return None if any(table is None for table in tables) else pa.concat_tables(tables, promote_options="default")


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
        The folder of the results. By default the results stay in memory.
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
    if out is None:
        return _in_memory(cases, **options)
    tasks = expand(cases, kept=True)
    execute_tasks([task for some in tasks for task in some], out, **options)
    found = [gather_tasks(some, out) for some in tasks]
    tables = [table and _labelled(table, case.labels) for case, table in zip(cases, found, strict=True)]
    return None if any(table is None for table in tables) else pa.concat_tables(tables, promote_options="default")


def _in_memory(
    cases: Sequence[Case],
    *,
    engine: str = "local",
    share: str | None = None,
    threads: int | None = None,
    progress: Progress = lambda task, done, of: None,
) -> pa.Table:
    """The results of all cases, which go nowhere else."""
    if share is not None:
        raise ValueError("a share needs a folder that all shares have in common: give out")
    engines.check(engine)
    tasks = [task for case in cases for task in case.expanded()]
    count, found = _Count(tasks, tasks, progress), dict[Work, pa.Table]()

    def done(task: Work, table: pa.Table) -> None:
        found[task] = table
        count.finish(task)

    engines.run(tasks, engine, done, threads=threads)
    return pa.concat_tables([_labelled(found[task], task.case.labels) for task in tasks], promote_options="default")


def _labelled(table: pa.Table, labels: Mapping[str, Any]) -> pa.Table:
    for position, (name, value) in enumerate(labels.items()):
        table = table.add_column(position, name, pa.repeat(value, len(table)))
    return table
