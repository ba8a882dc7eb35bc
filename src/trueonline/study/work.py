"""What an engine and a store ask of a task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyarrow as pa

Beat = Callable[[int], None]


class Work(Protocol):
    """A piece of a study with one table as its result. Yours may be of any class; no base class is needed.

    Short works whose kernels release the interpreter share the threads of a process. Long ones that hold it (`spawned`) get
    a process each: they are pickled on the way there, so what cannot be pickled (an environment) is made by `compute`. A
    process may be killed at any moment and started anew: with checkpoints in `scratch` not all is lost.

    It may also have a `unit`: what its steps are called where progress is shown, such as "frames".
    """

    @property
    def name(self) -> str:
        """A file name: the hash of everything that determines the result."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""

    @property
    def rows(self) -> int | None:
        """How many rows the result has; None where that is not known beforehand."""

    @property
    def steps(self) -> int:
        """How many steps it takes, or about how many."""

    @property
    def spawned(self) -> bool:
        """Whether it holds the interpreter, and so wants a process of its own."""

    def compute(self, scratch: Path | None = None, beat: Beat = lambda steps: None) -> pa.Table:
        """The result. It must not depend on how often the work was interrupted.

        `scratch` is a folder for checkpoints of this work alone, None where there is none. It may not be there yet: make
        it (with its parents) before every write. It is removed once the result is stored. `beat` says how many of the steps
        are done: call it at the beginning, also of a work that goes on from a checkpoint, and then as often as you like.
        Works that are not spawned are called without arguments.
        """
