"""Engines run tasks: the threads and processes of this machine, one share of many, a GPU, or a Dask cluster.

The result of a task is the same on every engine, bit for bit. Seeds come from the number of the run, never from the worker.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from trueonline.optional import optional
from trueonline.platforms import MAX_CHILDREN, ctrl_c_postponed
from trueonline.study.engines import processes
from trueonline.study.storage.work import Work

Done = Callable[[Work, pa.Table], None]
Moved = Callable[[Work, int, bool], None]
Scratch = Callable[[Work], Path]
AnyWork = TypeVar("AnyWork", bound=Work)


def run(
    tasks: Sequence[Work],
    engine: str,
    done: Done,
    moved: Moved = lambda task, steps, begun: None,
    scratch: Scratch | None = None,
    *,
    threads: int | None = None,
) -> None:
    """Run tasks on an engine. `done` is called with each task and its result, one at a time.

    `engine` is "local", "dask" for a cluster on this machine, "dask:tcp://host:port" for a cluster that runs already,
    "cuda" for a GPU, or "cuda:1" for another one. At most `threads` tasks run at a time, by default one for each core. `moved` is
    called now and then with a spawned task, its finished steps, and whether it has just started or resumed. `scratch` gives the
    folder of a spawned task's checkpoints. Without spawned tasks it is not needed.
    """
    _check_name(engine)
    if not tasks:
        return
    if engine.startswith("cuda"):
        tasks = _run_cuda(tasks, done, engine)  # what has no kernel is left
        engine = "local"
    if engine == "local":
        limit = threads or os.cpu_count() or 1
        _run_threads([task for task in tasks if not task.spawned], done, limit)
        if spawned := [task for task in tasks if task.spawned]:
            assert scratch is not None, "they have checkpoints"
            processes.run(spawned, done, moved, scratch, min(limit, MAX_CHILDREN))
    else:
        _run_dask(tasks, done, scratch, _address(engine), threads)


def check(engine: str) -> None:
    """Check that there is such an engine, its GPU and its packages, before anything runs or is written. ValueError if not.

    OSError if nobody answers at the address of a cluster.
    """
    _check_name(engine)
    if engine.startswith("cuda"):
        _gpu(engine)
    elif engine.startswith("dask"):
        distributed, address = _distributed(), _address(engine)
        if address is not None:
            distributed.Client(address).close()


def _address(engine: str) -> str | None:
    """The address of the cluster of "dask:ADDRESS"; None for a cluster on this machine."""
    return engine.partition(":")[2] or None


def _check_name(engine: str) -> None:
    if not isinstance(engine, str) or not re.fullmatch(r"local|dask(:.+)?|cuda(:\d+)?", engine):
        raise ValueError(f"unknown engine {engine!r}; known are local, dask, dask:ADDRESS, cuda and cuda:NUMBER")


def shard(tasks: Sequence[AnyWork], share: str | None) -> list[AnyWork]:
    """The share "i/N" of the tasks: every N-th of them in the order of their names."""
    if share is None:
        return list(tasks)
    ordered = sorted(tasks, key=lambda task: task.name)
    match = re.fullmatch(r"(\d+)/(\d+)", share)
    number, of = (int(part) for part in match.groups()) if match else (0, 0)
    if not 1 <= number <= of:
        raise ValueError(f"shard must be i/N with 1 ≤ i ≤ N, got {share!r}")
    mine = {task.name for task in ordered[number - 1 :: of]}
    return [task for task in tasks if task.name in mine]  # in the order of the study, in which tasks share trajectories


def _run_threads(tasks: Sequence[Work], done: Done, threads: int) -> None:
    """Run tasks in threads, since the kernels release the interpreter."""
    with ThreadPoolExecutor(threads) as pool:
        running = {pool.submit(task.compute): task for task in tasks}
        try:
            for future in as_completed(running):
                done(running.pop(future), future.result())
        except BaseException:  # Ctrl-C, or the error of a task
            begun = {future: task for future, task in running.items() if not future.cancel()}
            for future, task in begun.items():  # about a second each: let them finish, and keep their results
                with suppress(Exception):
                    done(task, future.result())
            raise


def _run_dask(
    tasks: Sequence[Work], done: Done, scratch: Scratch | None, address: str | None, threads: int | None
) -> None:
    """Results travel to this process, which stores them, so workers need no shared folder. Lost tasks are retried."""
    distributed = _distributed()
    cluster: Any = address
    try:
        if address is None:
            with ctrl_c_postponed():  # it would reach the workers as well, and each would print where it was
                cluster = distributed.LocalCluster(
                    n_workers=threads or os.cpu_count() or 1,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    host="127.0.0.1",
                    silence_logs=logging.ERROR,
                )
        with distributed.Client(cluster) as client:
            futures = {
                client.submit(_compute, task, scratch and scratch(task), retries=5, pure=False): task for task in tasks
            }
            try:
                for future in distributed.as_completed(futures):
                    done(futures.pop(future), future.result())
                    future.release()
            except BaseException:  # Ctrl-C, or the error of a task: the others that have finished are kept
                for future in [future for future in futures if future.status == "finished"]:
                    with suppress(Exception):
                        done(futures.pop(future), future.result())
                with suppress(Exception):  # the cluster may be gone
                    client.cancel(list(futures))
                raise
    finally:
        if address is None and cluster is not None:
            cluster.close()


def _distributed() -> Any:
    """Dask's package for clusters."""
    return optional("the engine dask needs the extra", "distributed", extra="dask")


def _run_cuda(tasks: Sequence[Work], done: Done, engine: str) -> list[Work]:
    """Run sweeps on a GPU, and return the tasks that are not sweeps by kernels."""
    gpu = _gpu(engine)
    from trueonline.study.engines.cuda import batches
    from trueonline.study.engines.cuda import engine as on_gpu

    sweeps, others = batches.sweeps(tasks)
    on_gpu.run(sweeps, done, gpu)
    return others


def _gpu(engine: str) -> Any:
    """The GPU of "cuda" or "cuda:NUMBER". ValueError if there is none, or if a package is missing."""
    try:
        from trueonline.study.engines.cuda import device
    except ImportError as error:
        raise ValueError(
            f"the engine cuda needs the extra for your driver ({error}): pip install 'trueonline[cuda13]', or 'trueonline[cuda12]' "
            "for a driver that does not know CUDA 13; the engine local gives the same results without a GPU"
        ) from None
    return device.gpu(int(engine.partition(":")[2] or 0))


def _compute(task: Work, scratch: Path | None) -> pa.Table:
    """Compute a task on a worker. With a shared folder, the task of a lost worker resumes from its checkpoint."""
    if scratch is None or not task.spawned:
        return task.compute()
    try:
        scratch.parents[1].stat()  # the folder of the results: if it is missing, it is not shared
        scratch.mkdir(parents=True, exist_ok=True)
    except OSError:
        return task.compute()
    return task.compute(scratch)
