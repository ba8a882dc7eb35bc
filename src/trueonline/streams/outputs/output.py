"""Destinations of predictions: one row for each sample, with its time and the prediction of each question.

| class       | module              | writes                                                                          |
|-------------|---------------------|---------------------------------------------------------------------------------|
| `Csv`       | `text_output.py`    | lines to a file, which another program can follow while it grows                |
| `JsonLines` | `text_output.py`    | the same with an object for each sample                                         |
| `Parquet`   | `parquet_output.py` | parts to the folder PATH.parts; at the end they are merged into one file        |
| `Lines`     | `text_output.py`    | CSV lines to a stream such as standard output                                   |
| `Nowhere`   | here                | nothing                                                                         |

Times are written as they came in, in the `style` that a run sets before it writes. A number that is missing (NaN) is an empty
cell, or null.

A run that was killed resumes from a checkpoint. Predictions carry a mark, by which a later run knows them. Nothing else is replaced
unless the user says so, and nothing old is removed before there are rows to put in its place.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np

from trueonline.streams.outputs.marks import check_mark_file, fitting_marks
from trueonline.streams.sources import Labels, TimeStyle

OTHER_FORMATS = (".gz", ".json", ".xls", ".xlsx", ".zip")  # endings that promise what is not written


class Output(ABC):
    """A destination for rows."""

    rows = 0  # written so far
    last_time = -math.inf  # of the rows that a resumed run found, in seconds
    labels: Labels | None = None  # the names behind the codes in the last column, where it names the signals of a fleet
    style = TimeStyle()  # of the times; set before the first row, and before `resume`
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

    def __init__(self, path: Path, names: Sequence[str], about: Mapping[str, str] | None = None) -> None:
        self._path = path
        self._columns = ["time", *names]
        self._about = dict(about or {})  # what the file says of itself, where its format has a place for it

    def check_place(self) -> None:
        """ValueError if something else is where this output keeps its mark, or its rows on the way."""
        check_mark_file(self._path)

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
    path: str | None,
    names: Sequence[str],
    stream: TextIO | None,
    fresh: bool = False,
    about: Mapping[str, str] | None = None,
    labels: Labels | None = None,
) -> Output:
    """The output for a path: `*.parquet`, `*.jsonl`, another file, `-` for `stream`, or None for nowhere.

    Predictions with a mark that fits are replaced, unless the run resumes. Any other file is refused, unless `fresh`. Parquet keeps
    `about` in its metadata. `labels` are the names of the signals of a fleet, whose codes are in the last column.
    """
    if path is None:
        return Nowhere()
    from trueonline.streams.outputs.parquet_output import Parquet
    from trueonline.streams.outputs.text_output import Csv, JsonLines, Lines

    if path == "-":
        assert stream is not None
        lines = Lines(stream, names)
        lines.labels = labels
        return lines
    place = check_out(path)
    if place.suffix.lower() in OTHER_FORMATS:
        raise ValueError(f"--out can be a .csv, .jsonl or .parquet file, got {path}; Excel opens .csv")
    kinds: dict[str, type[FileOutput]] = {".parquet": Parquet, ".pq": Parquet, ".jsonl": JsonLines, ".ndjson": JsonLines}
    kind = kinds.get(Path(path).suffix.lower(), Csv)
    if not fresh and place.exists() and place.stat().st_size and not fitting_marks(place):
        raise ValueError(
            f"{path} exists and was not written by this command, or was edited; choose another --out, or pass --fresh to "
            "overwrite it"
        )
    output = kind(place, names, about)
    output.labels = labels
    output.check_place()
    return output


def with_none(numbers: np.ndarray) -> list[Any]:
    """Numbers for JSON, which has none for what is not finite."""
    found = numbers.astype(object)
    found[~np.isfinite(numbers)] = None
    return found.tolist()


class Nowhere(Output):
    """Counts rows and drops them."""

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self.rows += len(times)
