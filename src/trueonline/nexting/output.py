"""Destinations of predictions: one row for each sample, with its time and the prediction of each question.

| class     | writes                                                                             |
|-----------|------------------------------------------------------------------------------------|
| `Csv`     | lines to a file, which another program can follow while it grows                   |
| `Parquet` | parts to the folder PATH.parts; at the end they are merged into one file           |
| `Lines`   | CSV lines to a stream such as standard output                                      |
| `Nowhere` | nothing                                                                            |

A run that was killed resumes from a checkpoint. The output then drops the rows that the checkpoint does not know of.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from trueonline.files import write_whole

PART = 2**20  # numbers in a part, about


class Output(ABC):
    """A destination for rows."""

    rows = 0  # written so far

    @abstractmethod
    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        """Add rows."""

    def sync(self) -> None:  # noqa: B027  (an output that keeps nothing has nothing to do)
        """Make sure that all rows so far survive a crash."""

    def resume(self, rows: int, drop: bool) -> int:
        """Resume from a checkpoint that knows of `rows` rows. Return the number of rows beyond them.

        `drop` removes the rows beyond. They are kept if their samples will not come again. ValueError if rows are missing.
        """
        self.rows = rows
        return 0

    def close(self) -> None:  # noqa: B027
        """Finish: no more rows will be added."""

    def abandon(self) -> None:  # noqa: B027
        """Leave everything as it is, so that another run can resume."""


def open_output(
    path: str | None, names: Sequence[str], stream: TextIO, resuming: bool = False, fresh: bool = False
) -> Output:
    """The output for a path: `*.parquet`, another file, `-` for `stream`, or None for nowhere.

    An existing file of predictions is replaced unless `resuming`. Another existing file is replaced only if `fresh`.
    """
    if path is None:
        return Nowhere()
    if path == "-":
        return Lines(stream, names)
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder} to write {Path(path).name} to; create it first")
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    parquet = path.lower().endswith((".parquet", ".pq"))
    if resuming and not parquet and not Path(path).exists():
        raise ValueError(f"{path} is gone, but the checkpoint resumes from its rows; start from scratch with --fresh")
    if not (resuming or fresh) and Path(path).exists() and not _holds_predictions(Path(path), parquet):
        raise ValueError(
            f"{path} is there already and does not hold predictions; name another file, or replace it with --fresh"
        )
    return Parquet(Path(path), names, resuming) if parquet else Csv(Path(path), names, resuming)


def _holds_predictions(path: Path, parquet: bool) -> bool:
    """Whether a file is empty, or begins like a file that this module wrote."""
    with open(path, "rb") as file:
        first = file.readline(2**16)
    if parquet:
        return not first or first.startswith(b"PAR1")
    return not first or (first.startswith(b"time,") and b"@" in first)


class Nowhere(Output):
    """Counts rows and drops them."""

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self.rows += len(times)


class Lines(Output):
    """Writes CSV to a stream that is already open."""

    def __init__(self, stream: TextIO, names: Sequence[str]) -> None:
        self._stream = stream
        self._head = _head(names)

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self._stream.write(self._head + _lines(times, predictions))
        self._stream.flush()
        self._head = ""
        self.rows += len(times)


class Csv(Output):
    """Writes CSV to a file."""

    def __init__(self, path: Path, names: Sequence[str], resuming: bool = False) -> None:
        self._path, self._head = path, _head(names).encode()
        self._file = open(path, "r+b" if resuming else "w+b")  # noqa: SIM115  (open as long as this object)
        if not resuming:
            self._file.write(self._head)
            self._file.flush()

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self._file.write(_lines(times, predictions).encode())
        self._file.flush()
        self.rows += len(times)

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def resume(self, rows: int, drop: bool) -> int:
        self._file.seek(0)
        if self._file.readline() != self._head:
            raise _other_columns(self._path)
        end = at = self._file.tell()
        present = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break  # incomplete
            present, at = present + 1, at + len(line)
            end = at if present <= rows or not drop else end
        if present < rows:
            raise _missing_rows(self._path, present, rows)
        self._file.seek(end)
        self._file.truncate()
        self.rows = rows if drop else present
        return present - rows

    def close(self) -> None:
        self._file.close()

    abandon = close


class Parquet(Output):
    """Writes Parquet. Such a file has its table of contents at its end and cannot grow, so rows go to parts at first."""

    def __init__(self, path: Path, names: Sequence[str], resuming: bool = False) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ValueError("--out to a Parquet file needs pyarrow: pip install 'trueonline[streams]'") from None
        self._pa, self._pq = pa, pq
        self._path, self._folder = path, path.with_name(path.name + ".parts")
        self._schema = pa.schema([(name, pa.float64()) for name in ("time", *names)])
        self._parts = 0  # full ones
        self._tail: list[np.ndarray] = []  # rows of the last part, which is not full
        self._tail_rows, self._tail_synced = 0, 0
        self._old = path.with_name(path.name + ".parts.old")  # parts after they were merged
        shutil.rmtree(self._old, ignore_errors=True)
        if not resuming:
            shutil.rmtree(self._folder, ignore_errors=True)
            path.unlink(missing_ok=True)
        self._folder.mkdir(exist_ok=True)

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self._tail.append(np.column_stack([times, predictions]))
        self._tail_rows += len(times)
        self.rows += len(times)
        if self._tail_rows * len(self._schema) >= PART:
            self.sync()
            self._parts += 1
            self._tail, self._tail_rows, self._tail_synced = [], 0, 0

    def sync(self) -> None:
        """Write the last part again, with the new rows. Parts are small."""
        if self._tail_rows > self._tail_synced:
            rows = np.concatenate(self._tail)
            self._tail, self._tail_synced = [rows], self._tail_rows
            table = self._pa.Table.from_arrays([self._pa.array(column) for column in rows.T], schema=self._schema)
            write_whole(self._part(self._parts), lambda file: self._pq.write_table(table, file))

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:06}.parquet"

    def _existing_parts(self) -> Iterator[Path]:
        number = 0
        while self._part(number).exists():
            yield self._part(number)
            number += 1

    def resume(self, rows: int, drop: bool) -> int:
        merged = self._path.exists() and not self._part(0).exists()  # the last run was stopped in good order
        lengths = [self._length(part) for part in ([self._path] if merged else self._existing_parts())]
        if merged:
            os.replace(self._path, self._part(0))
        present = sum(lengths)
        if present < rows:
            raise _missing_rows(self._path, present, rows)
        self.rows = left = rows if drop else present
        while left and lengths[self._parts] <= left:
            left -= lengths[self._parts]
            self._parts += 1
        if left:
            table = self._pq.read_table(self._part(self._parts), partitioning=None).slice(0, left)
            self._tail, self._tail_rows = [np.column_stack([column.to_numpy() for column in table.columns])], left
        for part in list(self._existing_parts())[self._parts + bool(left) :]:
            part.unlink()
        return present - rows

    def _length(self, part: Path) -> int:
        """The number of rows of a part. ValueError if it has other columns."""
        with self._pq.ParquetFile(part) as file:
            if file.schema_arrow != self._schema:
                raise _other_columns(part)
            return file.metadata.num_rows

    def close(self) -> None:
        """Merge the parts into one file."""
        self.sync()

        def merge(file: Any) -> None:
            with self._pq.ParquetWriter(file, self._schema) as writer:
                for part in list(self._existing_parts())[: self._parts + bool(self._tail_rows)]:
                    writer.write_table(self._pq.read_table(part, partitioning=None))

        write_whole(self._path, merge)
        os.replace(self._folder, self._old)  # at once: a few parts beside the merged file would be taken for all rows
        shutil.rmtree(self._old)


def _other_columns(path: Path) -> ValueError:
    return ValueError(
        f"{path} has other columns than these questions; name another file, or start from scratch with --fresh"
    )


def _missing_rows(path: Path, present: int, rows: int) -> ValueError:
    return ValueError(f"{path} has {present:,} rows, but {rows:,} were written to it; start from scratch with --fresh")


def _head(names: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(["time", *names])
    return text.getvalue()


def _lines(times: np.ndarray, predictions: np.ndarray) -> str:
    """Numbers as Python writes them: the shortest text that reads back as the same number."""
    rows = np.column_stack([times, predictions]).tolist()
    return "".join(",".join(map(repr, row)) + "\n" for row in rows)
