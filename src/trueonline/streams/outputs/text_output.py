"""Predictions as CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TextIO

import numpy as np

from trueonline.files import write_whole
from trueonline.streams.outputs.marks import fitting_marks, mark, mark_next
from trueonline.streams.outputs.output import FileOutput, Output, with_none
from trueonline.streams.sources.cells import moment
from trueonline.streams.sources.clock import Clock


class TextOutput(FileOutput):
    """Writes lines to a file, which appears with its first rows. A subclass says what a line is."""

    _head = b""

    _file: IO[bytes] | None = None  # open from the first row

    @abstractmethod
    def _lines(self, times: np.ndarray, predictions: np.ndarray) -> str:
        """Rows as text."""

    @abstractmethod
    def _columns_fit(self, line: bytes) -> bool:
        """Whether the first line of a file is of these columns."""

    @abstractmethod
    def _time(self, line: bytes) -> str:
        """The time of a row, as it was written."""

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        content = self._lines(times, predictions).encode()
        if self._file is None:
            self._file = self._begin(self._head + content)
        else:
            self._file.write(content)
            self._file.flush()
        self.rows += len(times)

    def _begin(self, content: bytes) -> IO[bytes]:
        """Replace an existing file by one with the first rows."""

        def write(file: IO[bytes]) -> None:
            file.write(content)
            mark_next(self._path, file, whole=False)

        write_whole(self._path, write)
        return open(self._path, "ab")

    def sync(self) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())

    def resume(self, rows: int, drop: bool) -> int:
        if rows == 0 and (drop or not self._is_unfinished()):
            return 0  # existing rows belong to an earlier run
        if not self._path.exists():
            raise ValueError(
                f"{self._path} is gone, but the checkpoint resumes from its {rows:,} rows; start from scratch with --fresh"
            )
        file = self._file = open(self._path, "r+b")  # noqa: SIM115
        first = file.readline()
        if not self._columns_fit(first):
            raise self._other_columns(self._path)
        end = at = len(self._head)
        file.seek(at)
        present, last = 0, b""
        for line in file:
            if not line.endswith(b"\n"):
                break  # incomplete
            present, at = present + 1, at + len(line)
            if present <= rows or not drop:
                end, last = at, line
        if present < rows:
            raise self._missing_rows(present, rows)
        # The rows that follow do not belong to a file that was marked as whole. So that it is known if this run is killed:
        mark(self._path, end, whole=False)
        file.seek(end)
        file.truncate()
        self.rows = rows if drop else present
        if last:
            self.last_time = moment(self._time(last), Clock("time", unit=self.style.unit))
        return present - rows

    def _is_unfinished(self) -> bool:
        """Whether the file is of a run that was killed."""
        return any(not each["whole"] for each in fitting_marks(self._path))

    def close(self) -> None:
        """Mark the file as whole. A run without rows leaves what was there."""
        if self._file is not None:
            self._file.close()
            mark(self._path, self._path.stat().st_size, whole=True)

    def abandon(self) -> None:
        if self._file is not None:
            self._file.close()


class Csv(TextOutput):
    """Writes CSV."""

    def __init__(self, path: Path, names: Sequence[str], about: Mapping[str, str] | None = None) -> None:
        super().__init__(path, names, about)
        self._head = _head_line(self._columns).encode()
        if len(self._head.splitlines()) > 1:  # the rows of a killed run are found by their line breaks
            raise ValueError(f"{path}: a column's name has a line break; name another file, .jsonl or .parquet")

    def _lines(self, times: np.ndarray, predictions: np.ndarray) -> str:
        return _csv_lines(self, times, predictions)

    def _columns_fit(self, line: bytes) -> bool:
        return line == self._head

    def _time(self, line: bytes) -> str:
        return line.partition(b",")[0].decode()


class JsonLines(TextOutput):
    """Writes an object for each row."""

    def _lines(self, times: np.ndarray, predictions: np.ndarray) -> str:
        rows = with_none(predictions)
        if self.labels is not None:
            rows = [[*row[:-1], name] for row, name in zip(rows, self.labels.of(predictions[:, -1]), strict=True)]
        found = zip(self.style.values(times), rows, strict=True)
        objects = (dict(zip(self._columns, (time, *row), strict=True)) for time, row in found)
        return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)

    def _columns_fit(self, line: bytes) -> bool:
        try:
            row = json.loads(line)
        except ValueError:
            return not line.endswith(b"\n")  # it was killed in its first row
        return isinstance(row, dict) and list(row) == self._columns

    def _time(self, line: bytes) -> str:
        return str(json.loads(line)["time"])


class Lines(Output):
    """Writes CSV to a stream that is already open."""

    def __init__(self, stream: TextIO, names: Sequence[str]) -> None:
        self._stream = stream
        self._head = _head_line(["time", *names])

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self._stream.write(self._head + _csv_lines(self, times, predictions))
        self._stream.flush()
        self._head = ""
        self.rows += len(times)


def _head_line(columns: Sequence[str]) -> str:
    """The first line of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(columns)
    return text.getvalue()


def _csv_lines(output: Output, times: np.ndarray, predictions: np.ndarray) -> str:
    """Numbers as Python writes them: the shortest text that reads back as the same number. NaN is an empty cell."""
    numbers = predictions if output.labels is None else predictions[:, :-1]
    rows = [",".join(map(repr, row)) for row in numbers.tolist()]
    if np.isnan(numbers).any():
        rows = [row.replace("nan", "") for row in rows]
    if output.labels is not None:
        names = {name: _head_line([name]) for name in set(output.labels.of(predictions[:, -1]))}
        rows = [f"{row},{names[name][:-1]}" for row, name in zip(rows, output.labels.of(predictions[:, -1]), strict=True)]
    return "".join(f"{stamp},{row}\n" for stamp, row in zip(output.style.texts(times), rows, strict=True))
