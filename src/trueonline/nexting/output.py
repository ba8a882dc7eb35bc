"""Where predictions go: a row for each sample, with its time and the prediction of each question.

| | |
|---|---|
| `Csv` | appended to a file, line by line; a reader can follow it |
| `Parquet` | in parts, in the folder PATH.parts, until the end puts them together as one file |
| `Lines` | CSV lines to a stream such as standard output |
| `Nowhere` | not kept |

A file is cut back to the rows that a checkpoint knows of, so that a run that was killed goes on as if it had not been.
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

PART = 2**20  # numbers in a part


class Output(ABC):
    """A place for rows."""

    rows = 0  # so far

    @abstractmethod
    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        """Add rows."""

    def keep(self) -> None:  # noqa: B027  (what has nothing to do does nothing)
        """Make sure that all rows so far survive, whatever happens."""

    def go_on(self, rows: int, drop: bool) -> int:
        """Go on where a run stopped that knows of `rows` rows; return how many there are beyond them.

        Those are dropped, or kept where the samples that they belong to will not come again. ValueError where rows are lacking.
        """
        self.rows = rows
        return 0

    def close(self) -> None:  # noqa: B027
        """Nothing more will be added."""

    def abandon(self) -> None:  # noqa: B027
        """Leave everything as it is, for another run to go on from."""


def open_output(
    path: str | None, names: Sequence[str], stream: TextIO, going_on: bool = False, fresh: bool = False
) -> Output:
    """The output for a path: `*.parquet`, another file, `-` for `stream`, or None.

    Predictions that are there are replaced unless `going_on`, and other files only if they may be (`fresh`).
    """
    if path is None:
        return Nowhere()
    if path == "-":
        return Lines(stream, names)
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder} to write {Path(path).name} to; make it first")
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    parquet = path.lower().endswith((".parquet", ".pq"))
    if going_on and not parquet and not Path(path).exists():
        raise ValueError(f"{path} is gone, but the checkpoint goes on from its rows; begin anew with --fresh")
    if not (going_on or fresh) and Path(path).exists() and not _ours(Path(path), parquet):
        raise ValueError(
            f"{path} is there already, and holds no predictions; name another file, or replace it with --fresh"
        )
    return Parquet(Path(path), names, going_on) if parquet else Csv(Path(path), names, going_on)


def _ours(path: Path, parquet: bool) -> bool:
    """Whether a file is empty, or begins as one that this module wrote."""
    with open(path, "rb") as file:
        first = file.readline(2**16)
    if parquet:
        return not first or first.startswith(b"PAR1")
    return not first or (first.startswith(b"time,") and b"@" in first)


class Nowhere(Output):
    """Rows that nobody wants."""

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self.rows += len(times)


class Lines(Output):
    """CSV, to a stream that is already open."""

    def __init__(self, stream: TextIO, names: Sequence[str]) -> None:
        self._stream = stream
        self._head = _head(names)

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self._stream.write(self._head + _lines(times, predictions))
        self._stream.flush()
        self._head = ""
        self.rows += len(times)


class Csv(Output):
    """CSV, in a file."""

    def __init__(self, path: Path, names: Sequence[str], going_on: bool = False) -> None:
        self._path, self._head = path, _head(names).encode()
        self._file = open(path, "r+b" if going_on else "w+b")  # noqa: SIM115  (open for as long as this is)
        if not going_on:
            self._file.write(self._head)
            self._file.flush()

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self._file.write(_lines(times, predictions).encode())
        self._file.flush()
        self.rows += len(times)

    def keep(self) -> None:
        os.fsync(self._file.fileno())

    def go_on(self, rows: int, drop: bool) -> int:
        self._file.seek(0)
        if self._file.readline() != self._head:
            raise _others(self._path)
        end = at = self._file.tell()
        found = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break  # torn
            found, at = found + 1, at + len(line)
            end = at if found <= rows or not drop else end
        if found < rows:
            raise _lacking(self._path, found, rows)
        self._file.seek(end)
        self._file.truncate()
        self.rows = rows if drop else found
        return found - rows

    def close(self) -> None:
        self._file.close()

    abandon = close


class Parquet(Output):
    """Parquet. A file of this kind has its table of contents at its end, so it cannot grow; its parts can."""

    def __init__(self, path: Path, names: Sequence[str], going_on: bool = False) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ValueError("Parquet files need the extra: pip install 'trueonline[study]'") from None
        self._pa, self._pq = pa, pq
        self._path, self._folder = path, path.with_name(path.name + ".parts")
        self._schema = pa.schema([(name, pa.float64()) for name in ("time", *names)])
        self._parts = 0  # that are full
        self._tail: list[np.ndarray] = []  # rows of the part that is not
        self._tail_rows, self._tail_kept = 0, 0
        self._old = path.with_name(path.name + ".parts.old")  # that were put together
        shutil.rmtree(self._old, ignore_errors=True)
        if not going_on:
            shutil.rmtree(self._folder, ignore_errors=True)
            path.unlink(missing_ok=True)
        self._folder.mkdir(exist_ok=True)

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self._tail.append(np.column_stack([times, predictions]))
        self._tail_rows += len(times)
        self.rows += len(times)
        if self._tail_rows * len(self._schema) >= PART:
            self.keep()
            self._parts += 1
            self._tail, self._tail_rows, self._tail_kept = [], 0, 0

    def keep(self) -> None:
        """The last part is written anew, with what has come since; parts are small."""
        if self._tail_rows > self._tail_kept:
            rows = np.concatenate(self._tail)
            self._tail, self._tail_kept = [rows], self._tail_rows
            table = self._pa.Table.from_arrays([self._pa.array(column) for column in rows.T], schema=self._schema)
            write_whole(self._part(self._parts), lambda file: self._pq.write_table(table, file))

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:06}.parquet"

    def _found(self) -> Iterator[Path]:
        number = 0
        while self._part(number).exists():
            yield self._part(number)
            number += 1

    def go_on(self, rows: int, drop: bool) -> int:
        together = self._path.exists() and not self._part(0).exists()  # as it is when a run was stopped in good order
        lengths = [self._length(part) for part in ([self._path] if together else self._found())]
        if together:
            os.replace(self._path, self._part(0))
        found = sum(lengths)
        if found < rows:
            raise _lacking(self._path, found, rows)
        self.rows = left = rows if drop else found
        while left and lengths[self._parts] <= left:
            left -= lengths[self._parts]
            self._parts += 1
        if left:
            table = self._pq.read_table(self._part(self._parts), partitioning=None).slice(0, left)
            self._tail, self._tail_rows = [np.column_stack([column.to_numpy() for column in table.columns])], left
        for part in list(self._found())[self._parts + bool(left) :]:
            part.unlink()
        return found - rows

    def _length(self, part: Path) -> int:
        """How many rows a part has; ValueError where it is not one of ours."""
        with self._pq.ParquetFile(part) as file:
            if file.schema_arrow != self._schema:
                raise _others(part)
            return file.metadata.num_rows

    def close(self) -> None:
        """Put the parts together."""
        self.keep()

        def together(file: Any) -> None:
            with self._pq.ParquetWriter(file, self._schema) as writer:
                for part in list(self._found())[: self._parts + bool(self._tail_rows)]:
                    writer.write_table(self._pq.read_table(part, partitioning=None))

        write_whole(self._path, together)
        os.replace(self._folder, self._old)  # all at once: some parts beside the whole would be taken for the whole
        shutil.rmtree(self._old)


def _others(path: Path) -> ValueError:
    return ValueError(f"{path} has other columns than these questions; name another file, or begin anew with --fresh")


def _lacking(path: Path, found: int, rows: int) -> ValueError:
    return ValueError(f"{path} has {found:,} rows, but {rows:,} were written to it; begin anew with --fresh")


def _head(names: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(["time", *names])
    return text.getvalue()


def _lines(times: np.ndarray, predictions: np.ndarray) -> str:
    """Numbers as Python writes them: the shortest text that reads back as the same number."""
    rows = np.column_stack([times, predictions]).tolist()
    return "".join(",".join(map(repr, row)) + "\n" for row in rows)
