"""Destinations of predictions: one row for each sample, with its time and the prediction of each question.

| class     | module              | writes                                                                          |
|-----------|---------------------|---------------------------------------------------------------------------------|
| `Csv`     | `csv_output.py`     | lines to a file, which another program can follow while it grows                |
| `Parquet` | `parquet_output.py` | parts to the folder PATH.parts; at the end they are merged into one file        |
| `Lines`   | here                | CSV lines to a stream such as standard output                                   |
| `Nowhere` | here                | nothing                                                                         |

A run that was killed resumes from a checkpoint. Predictions carry a mark, by which a later run knows them. Nothing else is replaced
unless the user says so, and nothing old is removed before there are rows to put in its place.
"""

from __future__ import annotations

import csv
import io
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, TextIO

import numpy as np


class Output(ABC):
    """A destination for rows."""

    rows = 0  # written so far
    last_time = -math.inf  # of the rows that a resumed run found
    at_checkpoints: ClassVar[bool] = False  # whether rows are only written when a checkpoint is

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


class FileOutput(Output):
    """A file of predictions."""

    def __init__(self, path: Path, names: Sequence[str], resuming: bool = False) -> None:
        self._path = path
        self._columns = ["time", *names]
        self._resuming = resuming

    @classmethod
    @abstractmethod
    def holds_predictions(cls, path: Path) -> bool:
        """Whether a file has the mark of predictions."""

    def check_place(self) -> None:
        """ValueError if something else is where this output keeps its rows on the way."""

    def _other_columns(self, path: Path) -> ValueError:
        return ValueError(
            f"{path} has other columns than these questions; name another file, or start from scratch with --fresh"
        )

    def _missing_rows(self, present: int, rows: int) -> ValueError:
        return ValueError(
            f"{self._path} has {present:,} rows, but {rows:,} were written to it; start from scratch with --fresh"
        )


def check_out(path: str) -> Path:
    """The place of an output. ValueError if it cannot be written: a folder, a pipe, or a file in a folder that does not exist."""
    place = Path(path).resolve()  # a link stays a link
    if not place.parent.is_dir():
        raise ValueError(f"there is no folder {place.parent} to write {place.name} to; create it first")
    if place.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    if place.exists() and not place.is_file():
        raise ValueError(f"{path} is not a file on a disk; to write to a pipe or a device, use --out - and redirect it")
    return place


def open_output(
    path: str | None, names: Sequence[str], stream: TextIO, resuming: bool = False, fresh: bool = False
) -> Output:
    """The output for a path: `*.parquet`, another file, `-` for `stream`, or None for nowhere.

    An existing file of predictions is replaced unless `resuming`. Any other file is refused, unless `fresh`.
    """
    if path is None:
        return Nowhere()
    if path == "-":
        return Lines(stream, names)
    from trueonline.nexting.csv_output import Csv
    from trueonline.nexting.parquet_output import Parquet

    place = check_out(path)
    kind: type[FileOutput] = Parquet if path.lower().endswith((".parquet", ".pq")) else Csv
    if not fresh and place.exists() and place.stat().st_size and not kind.holds_predictions(place):
        raise ValueError(
            f"{path} is there already, and is not known as predictions of an earlier run; name another file, or replace it with "
            "--fresh"
        )
    output = kind(place, names, resuming)
    output.check_place()
    return output


class Nowhere(Output):
    """Counts rows and drops them."""

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self.rows += len(times)


class Lines(Output):
    """Writes CSV to a stream that is already open."""

    def __init__(self, stream: TextIO, names: Sequence[str]) -> None:
        self._stream = stream
        self._head = head_line(["time", *names])

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self._stream.write(self._head + lines(times, predictions))
        self._stream.flush()
        self._head = ""
        self.rows += len(times)


def head_line(columns: Sequence[str]) -> str:
    """The first line of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(columns)
    return text.getvalue()


def lines(times: np.ndarray, predictions: np.ndarray) -> str:
    """Numbers as Python writes them: the shortest text that reads back as the same number."""
    rows = np.column_stack([times, predictions]).tolist()
    return "".join(",".join(map(repr, row)) + "\n" for row in rows)
