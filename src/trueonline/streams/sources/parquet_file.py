"""Parquet files: columns of numbers, and of times."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from trueonline.streams.sources.arrow_columns import floats, pyarrow, seconds, texts_to_seconds
from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.labels import Labels
from trueonline.streams.sources.positions import FROM_SCRATCH, short_hash, whole_numbers
from trueonline.streams.sources.replayable_file import FileReader, ReplayableFile
from trueonline.streams.sources.sample import BLOCK_ROWS, Block, check_columns, opening, shown

BUFFER_BYTES = 2**20  # bytes of a column that are read at a time, in a large file
SMALL = 2**25  # bytes of a file that is read without a buffer, for which a damaged page could claim any size
# What a damaged file may end in, beside pyarrow's own errors.
DAMAGE_ERRORS = (OSError, ValueError, MemoryError, OverflowError)
RECENT_ROWS = 64  # rows before a position that tell one file from another


class ParquetFile(ReplayableFile):
    """Columns of a Parquet file. Rows without a time are malformed, other nulls are missing values.

    A position holds a hash of up to 64 rows before it, column by column. `seek` refuses a file that has others there, or
    other samples than those that the position leaves out after that place. A file that was written again with more rows is
    accepted.

    Parameters
    ----------
    path : str or path
        The file.
    signals : sequence of str
        The columns to read. They must hold numbers.
    time : str, optional
        The column with the times: numbers, timestamps (UTC without a time zone) or ISO 8601.
    rate : float, optional
        Samples per second, to make times from if there is no such column.
    time_unit : {"s", "ms", "us", "ns"}
        The unit of times that are numbers.
    time_format : str, optional
        The form of times that are text, as `datetime.strptime` knows it.
    labels : Labels, optional
        The codes of the last of the signals, which is a column of names.
    first_row : int
        The number of the first row, for times from `rate`, if other files come before this one.
    """

    kind = "parquet"

    def __init__(
        self,
        path: str | os.PathLike,
        signals: Sequence[str],
        *,
        time: str | None = None,
        rate: float | None = None,
        time_unit: str = "s",
        time_format: str | None = None,
        labels: Labels | None = None,
        first_row: int = 0,
    ) -> None:
        super().__init__(path, signals, Clock(time, rate, time_unit, time_format, first_row, labels))

    def _opened(self, position: dict[str, Any] | None) -> FileReader:
        if position is not None:
            whole_numbers(position, self.kind, "row", "malformed")
        reader = _ParquetReader(self.path, self.signals, self._clock)
        try:
            reader.check_columns()
            if position is not None:
                reader.resume(position)
        except BaseException:
            reader.close()
            raise
        return reader


class _ParquetReader(FileReader):
    def __init__(self, path: Path, signals: tuple[str, ...], clock: Clock) -> None:
        self._pa = pyarrow("Parquet files", "parquet")
        self._path, self._signals, self._clock = path, signals, clock
        self._wanted = [*signals, *([] if clock.time is None else [clock.time])]
        self._row = self._malformed = 0
        self._complaint: str | None = None
        self._recent = np.empty((0, len(self._wanted)))  # the rows before the next one
        with opening(path), open(path, "rb"):  # pyarrow's own reasons are hard to read
            pass
        try:
            options = {"pre_buffer": False, "page_checksum_verification": True}
            buffer = 0 if os.path.getsize(path) <= SMALL else BUFFER_BYTES
            self._file = self._pa.parquet.ParquetFile(path, buffer_size=buffer, **options)
        except (self._pa.ArrowException, *DAMAGE_ERRORS) as error:
            raise ValueError(
                f"{path} is not a Parquet file, or is truncated: one that is still being written cannot be read ({error})"
            ) from None
        self._batches = self._from(0)

    def check_columns(self) -> None:
        with self._damage():
            schema, types = self._file.schema_arrow, self._pa.types
        check_columns(str(self._path), schema.names, self._wanted, "the columns of the Parquet file")
        for name in self._wanted:
            kind = schema.field(name).type
            fits = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind)
            if name == self._clock.time:
                if self._clock.form is not None and types.is_timestamp(kind):
                    raise ValueError(f"column {name} of {self._path} has timestamps; leave the time format out")
                fits = fits or types.is_timestamp(kind) or types.is_string(kind) or types.is_large_string(kind)
            fits = fits or (self._clock.labels is not None and name == self._clock.labels.column)
            if not fits:
                raise ValueError(
                    f"column {name} of {self._path} must hold numbers, got {kind}; convert it or leave it out"
                )

    def resume(self, position: dict[str, Any]) -> None:
        """Go to a position, if the file can be the one in which it was taken."""
        row, there, hashes = position["row"], self._file.metadata.num_rows, position.get("hash")
        if row > there:
            raise ValueError(f"{self._path} has {there:,} rows, fewer than the {row:,} that were read; {FROM_SCRATCH}")
        if not isinstance(hashes, dict):
            raise ValueError(f"the position is damaged: hash must hold a hash for each column, got {str(hashes)[:80]}")
        self._recent = self._before(row)
        for name, here in self._hashes().items():
            if hashes.get(name, here) != here:
                raise ValueError(
                    f"{self._path} is not the file that was read, or was changed: column {name} before row {row:,} is "
                    f"not what it was; {FROM_SCRATCH}"
                )
        self._row, self._malformed, self._batches = row, position["malformed"], self._from(row)

    def _before(self, row: int) -> np.ndarray:
        """The rows that come just before a row."""
        first = max(row - RECENT_ROWS, 0)
        recent = np.empty((0, len(self._wanted)))
        batches = self._from(first)
        while len(recent) < row - first:
            batch = self._next(batches)
            if batch is None:
                raise ValueError(
                    f"{self._path} is damaged: it has fewer rows than it says, {self._file.metadata.num_rows:,}"
                )
            recent = np.concatenate([recent, self._matrix(batch)])
        return recent[: row - first]

    def _hashes(self) -> dict[str, str]:
        return {name: short_hash(self._recent[:, j].tobytes()) for j, name in enumerate(self._wanted)}

    def _from(self, row: int) -> Iterator[Any]:
        """Batches of rows from a row on."""
        before = 0
        for group in range(self._file.num_row_groups):
            size = self._file.metadata.row_group(group).num_rows
            skip, before = max(row - before, 0), before + size
            if skip >= size:
                continue
            options = {"batch_size": BLOCK_ROWS, "row_groups": [group], "columns": self._wanted, "use_threads": False}
            for batch in self._file.iter_batches(**options):
                size -= batch.num_rows
                drop = min(skip, batch.num_rows)
                skip -= drop
                if drop < batch.num_rows:
                    yield batch.slice(drop)
            if size:  # pyarrow says nothing of a column that is shorter than the others
                raise ValueError(f"a column of row group {group} lacks {size:,} values")

    def _next(self, batches: Iterator[Any]) -> Any:
        with self._damage():
            return next(batches, None)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Turn what pyarrow makes of a damaged file into a ValueError. (ArrowNotImplementedError is not among the others.)"""
        try:
            yield
        except (self._pa.ArrowException, *DAMAGE_ERRORS) as error:
            raise ValueError(f"{self._path} is damaged or truncated after row {self._row:,}: {error}") from None

    def _matrix(self, batch: Any) -> np.ndarray:
        """The columns of a batch as doubles: the signals and the time."""
        matrix = np.empty((batch.num_rows, len(self._wanted)))
        with self._damage():
            for j, name in enumerate(self._wanted):
                column = batch.column(batch.schema.get_field_index(name))
                if self._clock.labels is not None and name == self._clock.labels.column:
                    matrix[:, j] = self._clock.labels.codes(column.to_pylist())[0]
                else:
                    matrix[:, j] = self._times(column) if j == len(self._signals) else floats(column)
        return matrix

    def _times(self, column: Any) -> np.ndarray:
        """A column of times in seconds, NaN for null and for text that is not a time."""
        if self._pa.types.is_timestamp(column.type):
            return seconds(column)
        text = self._pa.types.is_string(column.type) or self._pa.types.is_large_string(column.type)
        if text or self._clock.form is not None:
            return texts_to_seconds(column.cast(self._pa.string()), self._clock)[0]
        return floats(column) / self._clock.per_second

    def take(self) -> Block | None:
        batch = self._next(self._batches)
        if batch is None:
            return None
        matrix, size = self._matrix(batch), len(self._signals)
        first, self._row = self._row, self._row + len(matrix)
        self._recent = np.concatenate([self._recent, matrix[-RECENT_ROWS:]])[-RECENT_ROWS:]
        if self._clock.time is None:
            return Block(self._clock.made(np.arange(first, self._row)), matrix)
        good, stamps = np.isfinite(matrix[:, size]), batch.column(batch.schema.get_field_index(self._clock.time))
        if not good.all():
            self._malformed += len(good) - int(good.sum())
            at = int(np.argmin(good))
            if self._complaint is None:
                self._complaint = (
                    f"row {first + at:,} has no time: in column {self._clock.time} is {shown(stamps[at].as_py())}"
                )
        if self._clock.style is None and good.any():
            self._note(stamps[int(np.argmax(good))])
        return Block(matrix[good, size], matrix[good, :size], self._clock.offset)

    def _note(self, stamp: Any) -> None:
        """Let the clock see how a time is written. A timestamp is ISO 8601, with the offset that its zone has then."""
        if self._pa.types.is_timestamp(stamp.type):
            stamp = stamp.cast(self._pa.timestamp("us", stamp.type.tz), safe=False).as_py().isoformat()
        self._clock.note(str(stamp))

    def blocks(self) -> Iterator[Block]:
        return iter(self.take, None)

    def place(self) -> dict[str, Any]:
        return {"row": self._row, "malformed": self._malformed, "hash": self._hashes()}

    def counters(self) -> dict[str, int]:
        return {"malformed": self._malformed}

    def complaint(self) -> str | None:
        return self._complaint

    def progress(self) -> float | None:
        return self._row / max(self._file.metadata.num_rows, 1)

    def close(self) -> None:
        self._batches = iter(())
        self._file.close()
