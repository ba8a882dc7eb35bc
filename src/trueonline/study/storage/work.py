"""The interface of a task, for engines and stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyarrow as pa

Beat = Callable[[int], None]


class Work(Protocol):
    """A task of a study, with one table as its result. Any class with these attributes is one; no base class is needed.

    Short tasks whose kernels release the interpreter run in threads. Long tasks that hold the interpreter (`spawned`) get a
    process each. They are pickled on the way to their process, so `compute` has to make what cannot be pickled, such as an
    environment. A process may be killed at any moment and started again. With checkpoints in `scratch` it can resume.

    Attributes
    ----------
    name : str
        A file name: a hash of everything that determines the result.
    schema : pyarrow.Schema
        The columns of the result.
    rows : int or None
        The number of rows of the result, or None if it is not known in advance.
    steps : int
        The number of steps of the task, or an estimate.
    spawned : bool
        Whether the task holds the interpreter, and so needs a process of its own.
    unit : str, optional
        The name of a step in progress bars, such as "frames".
    """

    @property
    def name(self) -> str:
        """A file name: a hash of everything that determines the result."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""

    @property
    def rows(self) -> int | None:
        """The number of rows of the result, or None if it is not known in advance."""

    @property
    def steps(self) -> int:
        """The number of steps of the task, or an estimate."""

    @property
    def spawned(self) -> bool:
        """Whether the task holds the interpreter, and so needs a process of its own."""

    def compute(self, scratch: Path | None = None, beat: Beat = lambda steps: None) -> pa.Table:
        """Compute the result. It must not depend on how often the task was interrupted.

        Tasks that are not spawned are called without arguments.

        Parameters
        ----------
        scratch : Path or None
            A folder for checkpoints of this task. It may not exist yet, so make it (with its parents) before every write.
            It is removed once the result is stored.
        beat : callable
            Call it with the number of finished steps: at the beginning, also when resuming from a checkpoint, and then as
            often as you like.

        Returns
        -------
        pyarrow.Table
            A table with the columns of `schema`.
        """
