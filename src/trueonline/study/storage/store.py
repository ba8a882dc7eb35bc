"""Results as files: one Parquet file for each task. A study resumes by reading which files exist."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trueonline.files import UNSEALED, is_sealed, seal, write_renamed
from trueonline.platforms import sync_folder
from trueonline.study.storage.work import Work

STALE_SECONDS = 3600.0  # seconds after which a partial file is abandoned
TASK = re.compile(r".+-[0-9a-f]{24}")  # the name of a task. Nothing else in the folder is touched
MAX_DICTIONARY = 4096  # bytes: a column with more distinct values than that is written as it is
PART = re.compile(r"\..+-[0-9a-f]{24}\.parquet\.[0-9a-f]{8}\.part")


class Store:
    """A folder of results, and of checkpoints of tasks without a result."""

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)

    def begin(self) -> None:
        """Make the folder, and remove the temporary files and checkpoints of killed processes. Readers need not call it."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"results are kept in a folder, and {self.folder} is a file; name another one")
        self.folder.mkdir(parents=True, exist_ok=True)
        for litter in self.folder.glob(".*.part"):
            if PART.fullmatch(litter.name) and time.time() - litter.stat().st_mtime > STALE_SECONDS:
                litter.unlink(missing_ok=True)
        self._sweep_scratch()  # of a process that was killed before it removed them

    def _sweep_scratch(self) -> None:
        """Remove the checkpoints of tasks that have a result."""
        for litter in self.folder.glob("scratch/*"):
            if TASK.fullmatch(litter.name) and (self.folder / f"{litter.name}.parquet").exists():
                shutil.rmtree(litter, ignore_errors=True)

    def path(self, task: Work) -> Path:
        return self.folder / f"{task.name}.parquet"

    def scratch(self, task: Work) -> Path:
        """The folder for the checkpoints of a task. The task makes it."""
        return self.folder.absolute() / "scratch" / task.name

    def read(self, task: Work) -> pa.Table | None:
        """The result of a task, or None if the file is missing, truncated or damaged."""
        file = self._opened(task)
        try:
            return file and file.read(use_threads=False)  # threads take longer to start than to read
        except (OSError, pa.ArrowException):
            return None

    def _opened(self, task: Work) -> pq.ParquetFile | None:
        """The result of a task if its checksum and columns are right, not yet decoded."""
        try:
            content = self.path(task).read_bytes()
            file = pq.ParquetFile(pa.BufferReader(content)) if is_sealed(content) else None
        except (OSError, pa.ArrowException):
            return None
        return file if file and _fits(task, file.schema_arrow, file.metadata.num_rows) else None

    def write(self, task: Work, table: pa.Table) -> None:
        """Store a result, and remove the checkpoints of the task. A crash of the machine before `flush` may undo this."""
        if not _fits(task, table.schema, len(table)):
            raise ValueError(
                f"the task {task.name} must give a table of {'any' if task.rows is None else task.rows} rows with the columns "
                f"{_columns(task.schema)}, got {len(table)} rows with {_columns(table.schema)}"
            )
        write_renamed(self.path(task), lambda file: file.write(seal(_as_parquet(table))))
        shutil.rmtree(self.scratch(task), ignore_errors=True)

    def flush(self) -> None:
        """Flush the folder, so that the names of results survive a crash of the machine. One call is enough for many results."""
        sync_folder(self.folder)

    def tidy(self) -> None:
        """Remove leftovers. Call it when nobody else uses the folder. (A cluster may have run a task twice.)"""
        self._sweep_scratch()
        with contextlib.suppress(OSError):  # there is no such folder, or it has checkpoints
            (self.folder / "scratch").rmdir()

    def missing(self, tasks: Iterable[Work]) -> list[Work]:
        """The tasks without a result. A checksum tells, so nothing is decoded."""
        there = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        return [task for task in tasks if self.path(task).name not in there or self._opened(task) is None]


def _as_parquet(table: pa.Table) -> bytes:
    """A Parquet file with a place for its checksum."""
    file = pa.BufferOutputStream()
    with pq.ParquetWriter(file, table.schema, write_statistics=False, dictionary_pagesize_limit=MAX_DICTIONARY) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"seal": UNSEALED.decode()})
    return file.getvalue().to_pybytes()


def _fits(task: Work, schema: pa.Schema, rows: int) -> bool:
    return schema.equals(task.schema) and task.rows in (None, rows)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
