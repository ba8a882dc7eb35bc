"""Results as files: one Parquet file per task, whose name is the commit record. To resume is to look what is there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trueonline.files import write_whole
from trueonline.study.tasks import SCHEMA, Task

STALE = 3600.0  # seconds after which nobody is writing a file any more


class Store:
    """A folder of results."""

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for litter in self.folder.glob(".*.part"):  # of a process that was killed while it wrote, long ago
            if time.time() - litter.stat().st_mtime > STALE:
                litter.unlink(missing_ok=True)

    def path(self, task: Task) -> Path:
        return self.folder / f"{task.name}.parquet"

    def read(self, task: Task) -> pa.Table | None:
        """The result of a task; None where it is missing, truncated or damaged, so that it is computed again."""
        try:
            table = pq.read_table(self.path(task), partitioning=None, page_checksum_verification=True)
        except (OSError, pa.ArrowException):
            return None
        return table if table.schema.equals(SCHEMA) and len(table) == task.rows else None

    def write(self, task: Task, table: pa.Table) -> None:
        write_whole(self.path(task), lambda file: pq.write_table(table, file, write_page_checksum=True))

    def missing(self, tasks: Iterable[Task]) -> list[Task]:
        return [task for task in tasks if self.read(task) is None]
