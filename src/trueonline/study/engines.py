"""Engines run tasks and store their results: the threads of this machine, one share of many, or a Dask cluster.

Whichever engine runs a task, its result is the same bit for bit: seeds come from the run's number, never from the worker.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import pyarrow as pa

from trueonline.study.tasks import Task

Done = Callable[[Task, pa.Table], None]


def run(tasks: Sequence[Task], engine: str, done: Done, *, threads: int | None = None) -> None:
    """Run tasks on an engine; `done` is called with each task and its result, one at a time, as they come.

    `engine` is "local", "dask" for a cluster on this machine, or "dask:tcp://host:port" for one that is there already.
    """
    if not isinstance(engine, str) or not re.fullmatch(r"local|dask(:.+)?", engine):
        raise ValueError(f"unknown engine {engine!r}; known are local, dask and dask:ADDRESS")
    if not tasks:
        return
    if engine == "local":
        _run_local(tasks, done, threads or os.cpu_count() or 1)
    else:
        _run_dask(tasks, done, engine.partition(":")[2] or None, threads)


def shard(tasks: Sequence[Task], share: str | None) -> list[Task]:
    """The share "i/N" of the tasks: every N-th of them in the order of their names."""
    ordered = sorted(tasks, key=lambda task: task.name)
    if share is None:
        return list(tasks)
    match = re.fullmatch(r"(\d+)/(\d+)", share)
    number, of = (int(part) for part in match.groups()) if match else (0, 0)
    if not 1 <= number <= of:
        raise ValueError(f"shard must be i/N with 1 ≤ i ≤ N, got {share!r}")
    return ordered[number - 1 :: of]


def _run_local(tasks: Sequence[Task], done: Done, threads: int) -> None:
    """Threads: the kernels release the interpreter. No more is begun than runs, so that Ctrl-C is quick."""
    waiting = iter(tasks)
    with ThreadPoolExecutor(threads) as pool:
        running: dict[Future, Task] = {}
        try:
            _fill(running, waiting, pool, threads)
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    done(running.pop(future), future.result())
                _fill(running, waiting, pool, threads)
        except KeyboardInterrupt:
            for future, task in running.items():  # about a second each: let them finish, and keep them
                done(task, future.result())
            raise


def _fill(running: dict[Future, Task], waiting: Iterator[Task], pool: ThreadPoolExecutor, threads: int) -> None:
    while len(running) < threads and (task := next(waiting, None)) is not None:
        running[pool.submit(task.compute)] = task


def _run_dask(tasks: Sequence[Task], done: Done, address: str | None, threads: int | None) -> None:
    """Results travel to this process, which stores them: the workers need no shared folder. Lost tasks are retried."""
    try:
        from distributed import Client, LocalCluster, as_completed
    except ImportError:
        raise ValueError("the engine dask needs the extra: pip install 'trueonline[dask]'") from None
    cluster: Any = address or LocalCluster(
        n_workers=threads or os.cpu_count() or 1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    )
    try:
        with Client(cluster) as client:
            futures = {client.submit(_compute, task, key=task.name, retries=5, pure=True): task for task in tasks}
            try:
                for future in as_completed(futures):
                    done(futures[future], future.result())
                    future.release()
            except KeyboardInterrupt:
                client.cancel(list(futures))
                raise
    finally:
        if address is None:
            cluster.close()


def _compute(task: Task) -> pa.Table:
    return task.compute()
