"""Work that is stored and resumed: the interface for engines and stores, and the base of all tasks of this package."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from trueonline.files import read_json, write_json

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


class StoredWork:
    """The base of the tasks of this package: short tasks that run in threads. `about` determines the name."""

    spawned: ClassVar[bool] = False
    unit: ClassVar[str] = "steps"

    @property
    @abstractmethod
    def title(self) -> str:
        """The beginning of the name, for people."""

    @abstractmethod
    def about(self) -> Iterable[Any]:
        """Everything that determines the result: arrays, and texts or bytes."""

    @cached_property
    def name(self) -> str:
        """The title, and a hash of everything that determines the result."""
        digest = hashlib.sha256()
        add_to(digest, *self.about())
        return f"{self.title}-{digest.hexdigest()[:24]}"


class WorkInPieces(StoredWork):
    """A long task, in a process of its own. Each of its pieces is a row of the result. Scratch holds the finished rows."""

    spawned: ClassVar[bool] = True
    schema: ClassVar[pa.Schema]

    @property
    @abstractmethod
    def pieces(self) -> Sequence[tuple[Any, int]]:
        """Each piece, and the number of its steps."""

    @abstractmethod
    def row(self, piece: Any, checkpoint: Path | None, beat: Beat) -> dict[str, Any]:
        """Compute a piece. It may store its state in the file `checkpoint`, and resume from it."""

    @property
    def rows(self) -> int:
        """The number of pieces."""
        return len(self.pieces)

    @property
    def steps(self) -> int:
        """The number of steps of all pieces."""
        return sum(steps for _, steps in self.pieces)

    def compute(self, scratch: Path | None = None, beat: Beat = lambda steps: None) -> pa.Table:
        """Compute the pieces that are missing in scratch."""
        stored = None if scratch is None else scratch / "rows.json"
        rows: list[dict[str, Any]] = (None if stored is None else read_json(stored)) or []
        before = 0
        for number, (piece, steps) in enumerate(self.pieces):
            if number >= len(rows):
                beat(before)
                checkpoint = None if scratch is None else scratch / f"piece-{number}.npz"
                if scratch is not None:
                    scratch.mkdir(parents=True, exist_ok=True)
                rows.append(self.row(piece, checkpoint, lambda done, before=before: beat(before + done)))  # type: ignore[misc]
                if stored is not None:
                    write_json(stored, rows)
            before += steps
        beat(before)
        return pa.Table.from_pylist(rows, schema=self.schema)


def add_to(digest: Any, *parts: Any) -> None:
    """Add texts, bytes and arrays to a hash. Arrays count with their shapes and types."""
    for part in parts:
        if isinstance(part, str | bytes):
            digest.update(part.encode() if isinstance(part, str) else part)
        else:
            array = np.asarray(part)
            digest.update(repr((array.shape, str(array.dtype))).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
