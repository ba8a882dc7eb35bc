"""The engine `cuda`: sweeps on a GPU, from the same tasks to the same results as every other engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from trueonline.study.engines.cuda.batches import Batch, gather, plan, split
from trueonline.study.tasks import Task


class OutOfMemoryError(Exception):
    """The device has too little memory for a batch."""


class DeviceError(RuntimeError):
    """The device has answered with an error."""


class Device(Protocol):
    """A device that runs batches, such as `cuda.device.Gpu`."""

    def turn(self) -> AbstractContextManager[object]:
        """Be the one who uses the device. Other threads wait."""

    @property
    def most_bytes(self) -> float:
        """How many bytes a batch may have."""

    @property
    def most_steps(self) -> float:
        """How many learning steps a batch may have."""

    def submit(self, batch: Batch) -> Any:
        """Start a batch, without waiting for it. OutOfMemoryError if there is no room."""

    def collect(self, ticket: Any) -> list[np.ndarray]:
        """Wait for a batch, and return the errors of each of its launches: run × α × λ."""


def run(tasks: Sequence[Task], done: Callable[[Task, pa.Table], None], device: Device) -> None:
    """Run tasks on a device. While one batch is learning, the next is prepared, and the results of the last are stored.

    OSError if the device fails, and ValueError if it has too little memory for one task, or if a rule raises an error.
    """
    with _answering(), device.turn():
        _run(tasks, done, device)


def _run(tasks: Sequence[Task], done: Callable[[Task, pa.Table], None], device: Device) -> None:
    started: list[tuple[Batch, Any]] = []
    finished: Iterator[tuple[Task, np.ndarray]] = iter(())
    try:
        for batch, ticket in _submitted(tasks, device):
            started.append((batch, ticket))
            _store(finished, done)
            if len(started) > 1:
                finished = _finished(started, device)
        while started:
            _store(finished, done)
            finished = _finished(started, device)
        _store(finished, done)
    except BaseException:  # Ctrl-C, or an error: what has been learned, and what is being learned, is kept
        with suppress(Exception):
            _store(finished, done)
        while started:
            with suppress(Exception):
                _store(_finished(started, device), done)
        raise


def _submitted(tasks: Sequence[Task], device: Device) -> Iterator[tuple[Batch, Any]]:
    """The batches of these tasks, each started. If the device has no room for a batch, it gets smaller ones."""
    with _answering():
        most_bytes = device.most_bytes
    for some in plan(tasks, most_bytes, device.most_steps):
        waiting = [some]
        while waiting:
            batch = gather(waiting.pop(0))
            try:
                with _answering():
                    ticket = device.submit(batch)
            except OutOfMemoryError as error:
                mine = [task for launch in batch.launches for task in launch.tasks]
                if len(mine) == 1:
                    raise ValueError(
                        f"the GPU has too little free memory for {mine[0].rows} learners of {batch.n} features ({error}); free "
                        "some, or use the engine local"
                    ) from None
                waiting = [mine[: len(mine) // 2], mine[len(mine) // 2 :], *waiting]
            else:
                yield batch, ticket


def _finished(started: list[tuple[Batch, Any]], device: Device) -> Iterator[tuple[Task, np.ndarray]]:
    """The errors of the tasks of the oldest batch."""
    batch, ticket = started.pop(0)
    with _answering():
        errors = device.collect(ticket)
    return iter([pair for launch, each in zip(batch.launches, errors, strict=True) for pair in split(launch, each)])


@contextmanager
def _answering() -> Iterator[None]:
    """Say in words that a device has failed."""
    try:
        yield
    except DeviceError as error:
        raise OSError(
            f"the GPU stopped answering ({error}); results that were stored are kept: run the same command again, or use the "
            "engine local"
        ) from error


def _store(finished: Iterator[tuple[Task, np.ndarray]], done: Callable[[Task, pa.Table], None]) -> None:
    for task, errors in finished:
        done(task, task.table(_whole(task, errors)))


def _whole(task: Task, errors: np.ndarray) -> np.ndarray:
    """The errors of a task. A thread of a GPU whose rule raises an error ends, and leaves NaN. No learner finds NaN otherwise."""
    if np.isnan(errors).any():
        raise ValueError(
            f"the rule of {task.method} raised an error on the GPU, which cannot tell it; the engine local can"
        )
    return errors
