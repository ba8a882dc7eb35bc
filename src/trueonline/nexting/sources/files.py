"""Files: CSV and JSON lines, compressed or growing, and Parquet. All can be replayed, and none is held in memory."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueonline.nexting.sources.compressed import GZIP, Gunzipped
from trueonline.nexting.sources.records import MalformedError, moment
from trueonline.nexting.sources.sample import (
    ANEW,
    ROWS,
    Block,
    Clock,
    Patience,
    Source,
    after_skipped,
    found,
    named,
    nothing,
    nothing_skipped,
    opening,
    shown,
    told_of_skipped,
    wholes,
)
from trueonline.nexting.sources.text import CHUNK, PAST, Text

POLL = 0.01  # seconds between looks at a file that may grow
BUFFER = 2**20  # bytes of a Parquet column that are read at a time
RECENT = 64  # rows before a position that tell one Parquet file from another


class TextFile(Source):
    """A CSV file, or one of JSON lines, plain or gzipped; see `text` for what is understood.

    `follow` goes on as the file grows, and waits for more at its end. It then takes whole lines only. When the file becomes
    shorter, or another file takes its name, it goes on from the beginning of what is there (`truncated`, `replaced`).

    Without `follow` the end of the file is the end. Of a file that is being written, ask for `whole_lines`: a last line
    without a line break is then left, and a later reading that goes on from this one's position finds it whole. A file
    that became shorter while it was read, or whose compressed part breaks off, ends where its last whole line does, and
    is counted as `truncated`.

    A position holds a hash of the up to 4 KiB before it, and `seek` refuses a file that has something else there. It reads
    the samples that the position leaves out after that place, and refuses others too.
    """

    replayable = True

    def __init__(
        self,
        path: str | os.PathLike,
        signals: Sequence[str],
        *,
        time: str | None = None,
        rate: float | None = None,
        time_unit: str = "s",
        follow: bool = False,
        whole_lines: bool = False,
    ) -> None:
        self.path, self.follow, self.whole_lines = Path(path), follow, whole_lines
        self.signals = named(signals, time)
        self._text = Text(str(self.path), self.signals, Clock(time, rate, time_unit))
        self._closed, self._lock = threading.Event(), threading.Lock()
        self._truncated = self._replaced = 0
        self._ended = False
        self._rest: tuple[Block, dict[str, Any]] | None = None  # of the block where a position ends, and that position
        with opening(self.path):
            self._file = self._open()
        try:
            if not follow:
                self._first()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> Any:
        with open(self.path, "rb") as file:
            compressed = file.read(len(GZIP)) == GZIP
        if not compressed:
            return open(self.path, "rb", buffering=0)
        if self.follow:
            raise ValueError(f"{self.path} is compressed and cannot be followed; follow the plain file")
        return Gunzipped(self.path)

    def _first(self) -> None:
        """Read as far as the first line."""
        while not self._text.started and not self._ended:
            self._more()
            self._text.look()
        if not self._text.started:
            raise ValueError(f"{self.path} is empty; its first line must name the columns")

    def _more(self) -> bool:
        """Read a chunk, or notice that there is none."""
        data = self._file.read(CHUNK)
        if data:
            self._text.feed(data)
        elif not self.follow:
            cut = self._shorter()
            self._truncated += cut
            if not cut:
                self._text.finish(self.whole_lines)
            self._ended = True
        return bool(data)

    def _shorter(self) -> bool:
        """Whether the file ends before it should."""
        if isinstance(self._file, Gunzipped):
            return self._file.cut
        return os.fstat(self._file.fileno()).st_size < self._file.tell()

    def read(self, timeout: float | None = None) -> Block | None:
        patience = Patience(timeout)
        while True:
            with self._lock:
                if self._closed.is_set():
                    return None
                block: Block | None
                if self._rest is not None:
                    block, self._rest = self._rest[0], None
                else:
                    block = self._text.take()
                if block is not None and len(block):
                    return block
                if block is None:
                    if self._ended:
                        return None
                    if self._more() or not self.follow:
                        continue
                    self._look_again()
            self._closed.wait(patience.left(POLL) if block is None else 0.0)
            if patience.over:
                return nothing(len(self.signals))

    def _look_again(self) -> None:
        """Whether the file has become shorter, or another one has its name."""
        if self._shorter():
            self._truncated += 1
            self._file.seek(0)
            self._anew()
            return
        here = os.fstat(self._file.fileno())
        try:
            there = os.stat(self.path)
            if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) or self._more():
                return
            other = self._open()
        except OSError:  # renamed or deleted, and nothing new is there yet
            return
        self._replaced += 1
        self._file.close()
        self._file = other
        self._anew()

    def _anew(self) -> None:
        self._text.renew()
        self._rest = None

    def position(self) -> dict[str, Any]:
        if self._rest is not None:
            return dict(self._rest[1])
        return {
            "kind": "text",
            **self._text.position(),
            "hash": _hash(self._text.past()),
            "truncated": self._truncated,
            "replaced": self._replaced,
            "skip": 0,
            "skipped": nothing_skipped(self.signals),
        }

    def seek(self, position: dict[str, Any]) -> None:
        if self._closed.is_set():
            raise ValueError(f"{self.path} was closed; open it again")
        wholes(position, "text", "offset", "row", "malformed", "unterminated", "truncated", "replaced", "skip")
        with opening(self.path):
            file = self._open()
        try:
            text, rest = self._placed(file, position), None
            if position["skip"]:
                block = after_skipped(str(self.path), position, self.signals, self._blocks(file, text))
                rest = block, {**position, "skipped": told_of_skipped(position, self.signals)}
        except BaseException:
            file.close()
            raise
        with self._lock:
            self._file.close()
            self._file, self._text, self._ended, self._rest = file, text, False, rest
            self._truncated, self._replaced = position["truncated"], position["replaced"]

    def _blocks(self, file: Any, text: Text) -> Iterator[Block]:
        """What comes next in a file. The line at its end is left alone: whoever took it had all of the block."""
        while True:
            block = text.take()
            if block is not None:
                yield block
            elif data := file.read(CHUNK):
                text.feed(data)
            else:
                return

    def _placed(self, file: Any, position: dict[str, Any]) -> Text:
        """Put a file to a position, after a look whether it can be the one in which that was taken."""
        text, offset = Text(self._text.name, self.signals, self._text.clock), position["offset"]
        if offset == 0:
            text.resume(position, b"")
            return text
        short = f"{self.path} is shorter than what was read of it, {offset:,} bytes; {ANEW}"
        while not text.started:
            data = file.read(CHUNK)
            text.feed(data or b"\n")
            text.look()
            if not data and not text.started:
                raise ValueError(short)
        columns = None if text.columns is None else list(text.columns)
        if position.get("columns") != columns:
            there = "JSON lines" if columns is None else shown(", ".join(columns))
            raise ValueError(f"{self.path} has other columns than when the position was taken: {there}; {ANEW}")
        size = min(PAST, offset)
        file.seek(offset - size)
        past = file.read(size)
        if len(past) < size:
            raise ValueError(short)
        if position.get("hash") != _hash(past):
            raise ValueError(
                f"{self.path} is not the file that was read, or was changed: what comes before byte {offset:,} is not what "
                f"it was; {ANEW}"
            )
        text.resume(position, past)
        return text

    def counters(self) -> dict[str, int]:
        return {
            "malformed": self._text.malformed,
            "unterminated": self._text.unterminated,
            "truncated": self._truncated,
            "replaced": self._replaced,
        }

    def complaint(self) -> str | None:
        return self._text.complaint()

    def progress(self) -> float | None:
        if self.follow or self._file.closed:
            return None
        file = getattr(self._file, "fileobj", self._file)  # of a compressed file, the compressed bytes
        return min(file.tell() / max(os.fstat(file.fileno()).st_size, 1), 1.0)

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._file.close()


class ParquetFile(Source):
    """The columns of a Parquet file: numbers, and for the time also timestamps (UTC without a time zone) or ISO 8601 text.

    Rows without a time are malformed. Other nulls are missing values.

    A position holds a hash of the up to 64 rows before it, column by column, and `seek` refuses a file that has others
    there, or others than those that the position leaves out after that place. So a file that was written anew with more
    rows than before can be gone on with.
    """

    replayable = True

    def __init__(
        self,
        path: str | os.PathLike,
        signals: Sequence[str],
        *,
        time: str | None = None,
        rate: float | None = None,
        time_unit: str = "s",
    ) -> None:
        self.path = Path(path)
        self.signals = named(signals, time)
        self._clock = Clock(time, rate, time_unit)
        self._wanted = [*self.signals, *([] if time is None else [time])]
        self._row = self._malformed = 0
        self._complaint: str | None = None
        self._rest: tuple[Block, dict[str, Any]] | None = None  # of the block where a position ends, and that position
        self._recent = np.empty((0, len(self._wanted)))  # the rows before that one
        self._lock = threading.Lock()
        self._closed = False
        self._file = self._open()
        try:
            self._check()
        except BaseException:
            self._file.close()
            raise
        self._batches = self._from(0)

    def _open(self) -> Any:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ValueError("Parquet files need pyarrow: pip install 'trueonline[study]'") from None
        with opening(self.path), open(self.path, "rb"):  # or say why not; what pyarrow says may be about anything
            pass
        try:
            return pq.ParquetFile(self.path, buffer_size=BUFFER, pre_buffer=False)
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(
                f"{self.path} is not a Parquet file, or is cut short: one that is still being written cannot be read ({error})"
            ) from None

    def _check(self) -> None:
        from pyarrow import types

        schema = self._file.schema_arrow
        found(str(self.path), schema.names, self._wanted, "the columns of the Parquet file")
        for name in self._wanted:
            kind = schema.field(name).type
            fits = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind)
            if name == self._clock.time:
                fits = fits or types.is_timestamp(kind) or types.is_string(kind) or types.is_large_string(kind)
            if not fits:
                raise ValueError(
                    f"column {name} of {self.path} must hold numbers, got {kind}; convert it or leave it out"
                )

    def _from(self, row: int) -> Iterator[Any]:
        """Batches of rows from a row on."""
        groups, before = self._file.num_row_groups, 0
        for group in range(groups):
            size = self._file.metadata.row_group(group).num_rows
            skip, before = max(row - before, 0), before + size
            if skip >= size:
                continue
            options = {"batch_size": ROWS, "row_groups": [group], "columns": self._wanted, "use_threads": False}
            for batch in self._file.iter_batches(**options):
                drop = min(skip, batch.num_rows)
                skip -= drop
                if drop < batch.num_rows:
                    yield batch.slice(drop)

    def _next(self, batches: Iterator[Any]) -> Any:
        try:
            return next(batches, None)
        except (OSError, ValueError) as error:  # pyarrow's errors are among them
            raise ValueError(f"{self.path} is damaged or was cut short after row {self._row:,}: {error}") from None

    def read(self, timeout: float | None = None) -> Block | None:
        while True:
            with self._lock:
                if self._closed:
                    return None
                block: Block | None
                if self._rest is not None:
                    block, self._rest = self._rest[0], None
                else:
                    block = self._read()
            if block is None or len(block):
                return block

    def _read(self) -> Block | None:
        batch = self._next(self._batches)
        return None if batch is None else self._block(batch)

    def _blocks(self) -> Iterator[Block]:
        while (block := self._read()) is not None:
            yield block

    def _matrix(self, batch: Any) -> np.ndarray:
        """The columns of a batch as floats: the signals and the time."""
        columns = [batch.column(batch.schema.get_field_index(name)) for name in self._wanted]
        matrix = np.empty((batch.num_rows, len(columns)))
        for j, column in enumerate(columns):
            is_time = j == len(self.signals)
            matrix[:, j] = _times(column, self._clock.per_second) if is_time else _floats(column)
        return matrix

    def _block(self, batch: Any) -> Block:
        matrix, size = self._matrix(batch), len(self.signals)
        first, self._row = self._row, self._row + len(matrix)
        self._recent = np.concatenate([self._recent, matrix[-RECENT:]])[-RECENT:]
        if self._clock.time is None:
            return Block(self._clock.made(np.arange(first, self._row)), matrix)
        good = np.isfinite(matrix[:, size])
        if not good.all():
            self._malformed += len(good) - int(good.sum())
            at = int(np.argmin(good))
            if self._complaint is None:
                given = batch.column(batch.schema.get_field_index(self._clock.time))[at].as_py()
                self._complaint = f"row {first + at:,} has no time: in column {self._clock.time} is {shown(given)}"
        return Block(matrix[good, size], matrix[good, :size])

    def position(self) -> dict[str, Any]:
        if self._rest is not None:
            return dict(self._rest[1])
        return {
            "kind": "parquet",
            "row": self._row,
            "malformed": self._malformed,
            "hash": self._hashes(self._recent),
            "skip": 0,
            "skipped": nothing_skipped(self.signals),
        }

    def _hashes(self, recent: np.ndarray) -> dict[str, str]:
        return {name: _hash(recent[:, j].tobytes()) for j, name in enumerate(self._wanted)}

    def seek(self, position: dict[str, Any]) -> None:
        if self._closed:
            raise ValueError(f"{self.path} was closed; open it again")
        row, malformed, skip = wholes(position, "parquet", "row", "malformed", "skip")
        there = self._file.metadata.num_rows
        if row > there:
            raise ValueError(f"{self.path} has {there:,} rows, fewer than the {row:,} that were read; {ANEW}")
        hashes = position.get("hash")
        if not isinstance(hashes, dict):
            raise ValueError(f"the position is damaged: hash must hold a hash for each column, got {str(hashes)[:80]}")
        with self._lock:
            recent = self._before(row)
            for name, here in self._hashes(recent).items():
                if hashes.get(name, here) != here:
                    raise ValueError(
                        f"{self.path} is not the file that was read, or was changed: column {name} before row {row:,} is "
                        f"not what it was; {ANEW}"
                    )
            was = self._row, self._malformed, self._recent, self._batches, self._rest
            self._row, self._malformed, self._recent, self._batches, self._rest = (
                row,
                malformed,
                recent,
                self._from(row),
                None,
            )
            try:
                if skip:
                    block = after_skipped(str(self.path), position, self.signals, self._blocks())
                    self._rest = block, {**position, "skipped": told_of_skipped(position, self.signals)}
            except BaseException:
                self._row, self._malformed, self._recent, self._batches, self._rest = was
                raise

    def _before(self, row: int) -> np.ndarray:
        """The rows that come just before a row."""
        first = max(row - RECENT, 0)
        recent = np.empty((0, len(self._wanted)))
        batches = self._from(first)
        while len(recent) < row - first:
            recent = np.concatenate([recent, self._matrix(self._next(batches))])
        return recent[: row - first]

    def counters(self) -> dict[str, int]:
        return {"malformed": self._malformed}

    def complaint(self) -> str | None:
        return self._complaint

    def progress(self) -> float | None:
        return None if self._closed else self._row / max(self._file.metadata.num_rows, 1)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._batches = iter(())
            self._file.close()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _floats(column: Any) -> np.ndarray:
    """A column of numbers as floats, with NaN for null."""
    import pyarrow as pa

    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _times(column: Any, per_second: float) -> np.ndarray:
    """A column of times in seconds, with NaN for null and for text that is no time."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        parts = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
        whole = column.cast(pa.int64()).fill_null(0).to_numpy()
        seconds = whole // parts + (whole % parts) / parts  # each is exact, where the number as a whole may not be
        return np.where(column.is_null().to_numpy(zero_copy_only=False), np.nan, seconds)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array([_moment(text, per_second) for text in column.to_pylist()])
    return _floats(column) / per_second


def _moment(text: str | None, per_second: float) -> float:
    try:
        return np.nan if text is None else moment(text, per_second)
    except MalformedError:
        return np.nan
