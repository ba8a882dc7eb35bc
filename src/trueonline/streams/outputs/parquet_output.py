"""Predictions as Parquet. Such a file has its table of contents at its end and cannot grow, so rows go to parts at first."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from trueonline.files import write_whole
from trueonline.optional import optional
from trueonline.platforms import rename_over
from trueonline.streams.outputs.marks import mark_next
from trueonline.streams.outputs.output import FileOutput
from trueonline.streams.sources.arrow_columns import floats, seconds

PART_NUMBERS = 2**20  # numbers in a part, about
PART_METADATA = {b"trueonline": b"predictions"}  # in the metadata of every part
PART_NAMES = re.compile(r"\d{6,}\.parquet|\.\d{6,}\.parquet\.[0-9a-f]{8}\.part")


class Parquet(FileOutput):
    """Writes parts to the folder PATH.parts whenever a checkpoint is written, and merges them at the end."""

    at_checkpoints: ClassVar[bool] = True

    def __init__(self, path: Path, names: Sequence[str], about: Mapping[str, str] | None = None) -> None:
        super().__init__(path, names, about)
        pa, self._pq = _pyarrow()
        self._pa = pa
        self._folder = path.with_name(path.name + ".parts")
        self._old = path.with_name(path.name + ".parts.old")  # parts after they were merged
        self._parts = 0  # full ones
        self._tail: list[np.ndarray] = []  # rows of the last part, which is not full
        self._tail_rows, self._tail_synced = 0, 0
        self._begun = False  # whether the parts in the folder are of this run

    @property
    def _schema(self) -> Any:
        """Times are timestamps if they came as ISO 8601, and seconds otherwise."""
        pa, style = self._pa, self.style
        zone = "UTC" if style.zone == "Z" else style.zone or None
        time = pa.timestamp("us", zone) if style.is_iso else pa.float64()
        kinds = [time, *[pa.float64()] * (len(self._columns) - 1)]
        if self.labels is not None:
            kinds[-1] = pa.string()
        about = PART_METADATA | {name.encode(): text.encode() for name, text in self._about.items()}
        about |= {} if style.is_iso else {b"unit of time": b"s"}
        return pa.schema(list(zip(self._columns, kinds, strict=True)), about)

    def check_place(self) -> None:
        """ValueError if the folders for parts hold anything that is not a part of predictions. No option removes that."""
        super().check_place()
        for folder in (self._folder, self._old):
            if folder.is_symlink():
                raise ValueError(f"{folder} is a link, but it would be used for parts of predictions; name another --out")
            for path in folder.iterdir() if folder.is_dir() else [folder] if folder.exists() else []:
                if not PART_NAMES.fullmatch(path.name) or (path.suffix == ".parquet" and not self._is_part(path)):
                    raise ValueError(
                        f"{path} is not a part of predictions, but {folder.name} would be used for them; move it away, or name "
                        "another --out"
                    )

    def _is_part(self, path: Path) -> bool:
        """Whether the metadata of a file say that it holds predictions."""
        try:
            metadata = self._pq.read_schema(path).metadata or {}
        except (self._pa.ArrowException, OSError):
            return False
        return bool(metadata.items() >= PART_METADATA.items())

    def write(self, times: np.ndarray, predictions: np.ndarray) -> None:
        self._tail.append(np.column_stack([times, predictions]))
        self._tail_rows += len(times)
        self.rows += len(times)
        if self._tail_rows * len(self._columns) >= PART_NUMBERS:
            self.sync()
            self._parts += 1
            self._tail, self._tail_rows, self._tail_synced = [], 0, 0

    def sync(self) -> None:
        """Write the last part again, with the new rows. Parts are small."""
        if self._tail_rows > self._tail_synced:
            rows = np.concatenate(self._tail)
            self._tail = [rows]
            times, *predictions = rows.T
            stamps = self.style.microseconds(times) if self.style.is_iso else times
            schema = self._schema
            cells = [self._pa.array(column, from_pandas=True) for column in predictions]  # NaN is null
            if self.labels is not None:
                cells[-1] = self._pa.array(self.labels.of(predictions[-1]), self._pa.string())
            columns = [self._pa.array(stamps).cast(schema.types[0]), *cells]
            table = self._pa.Table.from_arrays(columns, schema=schema)
            self._begin()
            write_whole(self._part(self._parts), lambda file: self._pq.write_table(table, file))
            self._tail_synced = self._tail_rows  # not before: on a full disk these rows are written later

    def _begin(self) -> None:
        """Make the folder for parts. Parts of an earlier run go now, when there are rows in their place."""
        self._folder.mkdir(exist_ok=True)
        if not self._begun:
            _remove_parts(self._old)
            for part in sorted(self._folder.iterdir()):
                part.unlink()
            self._begun = True

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:06}.parquet"

    def _existing_parts(self) -> Iterator[Path]:
        number = 0
        while self._part(number).exists():
            yield self._part(number)
            number += 1

    def resume(self, rows: int, drop: bool) -> int:
        if rows == 0 and (drop or not self._part(0).exists()):
            return 0  # existing rows belong to an earlier run
        self._folder.mkdir(exist_ok=True)
        self._begun = True
        _remove_parts(self._old)
        if self._path.exists() and not self._part(0).exists():  # the last run was stopped in good order
            self._length(self._path)  # ValueError if it is something else
            _link(self._path, self._part(0))
        lengths = [self._length(part) for part in self._existing_parts()]
        present = sum(lengths)
        if present < rows:
            raise self._missing_rows(present, rows)
        self.rows = left = rows if drop else present
        while left and lengths[self._parts] <= left:
            left -= lengths[self._parts]
            self._parts += 1
        if left:
            part = self._part(self._parts)
            write_whole(part, lambda file: self._copy([part], file, left))
            self._parts += 1
        for part in list(self._existing_parts())[self._parts :]:
            part.unlink()
        if self._parts:
            with self._pq.ParquetFile(self._part(self._parts - 1)) as last:
                times = last.read_row_group(last.num_row_groups - 1, ["time"])["time"]
                self.last_time = float((seconds if self.style.is_iso else floats)(times)[-1])
        return present - rows

    def _length(self, part: Path) -> int:
        """The number of rows of a part. ValueError if it is something else, or has other columns."""
        try:
            with self._pq.ParquetFile(part) as file:
                if file.schema_arrow.equals(self._schema):
                    return file.metadata.num_rows
        except (self._pa.ArrowException, OSError) as error:
            raise ValueError(f"{part} is damaged ({error}); start from scratch with --fresh") from None
        raise self._other_columns(part)

    def _copy(self, parts: Sequence[Path], file: Any, rows: int | None = None) -> None:
        """Write the rows of parts to one file, or the first of them. One group of rows at a time is in memory."""
        left, schema = rows, self._schema
        with self._pq.ParquetWriter(file, schema) as writer:
            for part in parts:
                with self._pq.ParquetFile(part) as source:
                    for group in range(source.num_row_groups):
                        table = source.read_row_group(group).slice(0, left).cast(schema)
                        if len(table):
                            writer.write_table(table)
                        left = None if left is None else left - len(table)

    def close(self) -> None:
        """Merge the parts into one file. A run without rows leaves what was there."""
        self.sync()
        if not self._begun:
            return
        parts = list(self._existing_parts())[: self._parts + bool(self._tail_rows)]

        def write(file: IO[bytes]) -> None:
            self._copy(parts, file)
            mark_next(self._path, file, whole=True)

        write_whole(self._path, write)
        # At once, because a few parts beside the merged file would be taken for all rows:
        rename_over(self._folder, self._old)
        _remove_parts(self._old)


def _pyarrow() -> tuple[Any, Any]:
    pa = optional("--out to a Parquet file needs pyarrow", "pyarrow", "pyarrow.parquet", extra="streams")
    return pa, pa.parquet


def _remove_parts(folder: Path) -> None:
    """Remove the parts in a folder, and the folder if nothing else is in it."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if PART_NAMES.fullmatch(path.name):
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def _link(path: Path, other: Path) -> None:
    """Give a file a second name, or a copy where the file system has no links."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copyfile(path, other)
