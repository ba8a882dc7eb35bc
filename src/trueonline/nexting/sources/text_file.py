"""Files of CSV or JSON lines, plain or gzipped, which may grow while they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trueonline.nexting.sources.gzip_file import GZIP, Gunzipped
from trueonline.nexting.sources.lines import CHUNK, PAST
from trueonline.nexting.sources.positions import FROM_SCRATCH, short_hash, whole_numbers
from trueonline.nexting.sources.replayable_file import FileReader, ReplayableFile
from trueonline.nexting.sources.sample import Block, nothing, opening, shown
from trueonline.nexting.sources.text import Text


class TextFile(ReplayableFile):
    """A file of CSV or JSON lines, plain or gzipped.

    A followed file that is emptied and written again, or whose name another file takes, is read from the beginning of what
    is there. That is counted as `truncated` or `replaced`. Every look compares up to 4 KiB at the beginning of the file, and
    up to 4 KiB before the place of reading, with what was read there. So a file that was emptied and has grown again between
    two looks is noticed, unless both are the same as before. A writer that goes on at its old place after the file was
    emptied leaves zeros before that place. The file is then read from that place on, and counted as `truncated`.

    A file that is not followed and changes or becomes shorter while it is read, or whose compressed part breaks off, ends
    with its last whole line and is counted as `truncated`.

    A position holds a hash of up to 4 KiB before it. `seek` refuses a file that has something else there. It also reads the
    samples that the position leaves out after that place, and refuses others.

    Parameters
    ----------
    path : str or path
        The file.
    signals : sequence of str
        The columns, or the keys of the objects, to read.
    time : str, optional
        The column with the times.
    rate : float, optional
        Samples per second, to make times from if there is no such column.
    time_unit : {"s", "ms", "us", "ns"}
        The unit of the times.
    follow : bool
        Wait for more at the end of the file, and take whole lines only.
    whole_lines : bool
        Leave a last line without a line break. A later reading that resumes from this one's position finds it whole.
    first_row : int
        The number of the first row, for times from `rate`, if other files come before this one.
    """

    kind = "text"

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
        first_row: int = 0,
    ) -> None:
        self.follow, self.whole_lines = follow, whole_lines
        super().__init__(path, signals, time, rate, time_unit, first_row)

    def _opened(self, position: dict[str, Any] | None) -> FileReader:
        numbers = ("offset", "row", "malformed", "unterminated", "truncated", "replaced")
        if position is not None:
            whole_numbers(position, self.kind, *numbers)
            if type(position.get("cut")) is not bool:
                raise ValueError(f"the position is damaged: cut must be true or false, got {position.get('cut')!r:.80}")
        text = Text(str(self.path), self.signals, self._clock)
        reader = _TextReader(self.path, text, self.follow, self.whole_lines)
        try:
            if position is not None:
                reader.resume(position)
            elif not self.follow:
                reader.read_first_line()
        except BaseException:
            reader.close()
            raise
        return reader


class _TextReader(FileReader):
    def __init__(self, path: Path, text: Text, follow: bool, whole_lines: bool) -> None:
        self._path, self._text, self._follow, self._whole_lines = path, text, follow, whole_lines
        self._truncated = self._replaced = 0
        self._ended = False
        self._first = self._last = b""  # what was read at the beginning of the file, and before the place of reading
        with opening(path):
            self._file = self._open()

    def _open(self) -> Any:
        with open(self._path, "rb") as file:
            compressed = file.read(len(GZIP)) == GZIP
        if not compressed:
            return open(self._path, "rb", buffering=0)
        if self._follow:
            raise ValueError(f"{self._path} is compressed and cannot be followed; follow the plain file")
        return Gunzipped(self._path)

    def read_first_line(self) -> None:
        while not self._text.started and not self._ended:
            self._more()
            self._text.look()
        if not self._text.started:
            raise ValueError(f"{self._path} is empty; its first line must name the columns")

    def resume(self, position: dict[str, Any]) -> None:
        """Go to a position, if the file can be the one in which it was taken."""
        offset = position["offset"]
        self._truncated, self._replaced = position["truncated"], position["replaced"]
        if offset == 0:
            self._text.resume(position, b"")
            return
        short = f"{self._path} is shorter than what was read of it, {offset:,} bytes; {FROM_SCRATCH}"
        while not self._text.started:
            data = self._file.read(CHUNK)
            self._note(data)
            self._text.feed(data or b"\n")
            self._text.look()
            if not data and not self._text.started:
                raise ValueError(short)
        columns = self._text.columns
        if position.get("columns") != columns:
            there = "JSON lines" if columns is None else shown(", ".join(columns))
            raise ValueError(f"{self._path} has other columns than when the position was taken: {there}; {FROM_SCRATCH}")
        size = min(PAST, offset)
        self._file.seek(offset - size)
        past = self._file.read(size)
        if len(past) < size:
            raise ValueError(short)
        if position.get("hash") != short_hash(past):
            raise ValueError(
                f"{self._path} is not the file that was read, or was changed: what comes before byte {offset:,} is not what "
                f"it was; {FROM_SCRATCH}"
            )
        self._first, self._last = self._first[:offset], past
        self._text.resume(position, past)

    def take(self) -> Block | None:
        self.waiting = False
        while (block := self._text.take()) is None:
            if self._ended:
                return None
            if not self._more() and self._follow:
                self._look_again()
                self.waiting = True
                return nothing(len(self._text.signals))
        return block

    def blocks(self) -> Iterator[Block]:
        """A last line without a line break is left alone, because whoever read it used all of its block."""
        while True:
            block = self._text.take()
            if block is not None:
                yield block
            elif data := self._file.read(CHUNK):
                self._note(data)
                self._text.feed(data)
            else:
                return

    def _more(self) -> bool:
        """Read a chunk, or notice the end of the file, or that it was emptied."""
        data = self._file.read(CHUNK)
        if self._is_cut(data):
            if self._follow:
                return self._begin_again(len(data))
            self._truncated += 1
            self._ended = True
            return False
        if data:
            self._note(data)
            self._text.feed(data)
        elif not self._follow:
            self._text.finish(self._whole_lines)
            self._ended = True
        return bool(data)

    def _note(self, data: bytes) -> None:
        """Keep what tells whether this file still stands there."""
        if isinstance(self._file, Gunzipped):
            return
        if len(self._first) < PAST and len(self._first) + len(data) == self._file.tell():
            self._first = (self._first + data)[:PAST]
        self._last = (self._last + data)[-PAST:] if len(data) < PAST else data[-PAST:]

    def _is_cut(self, data: bytes) -> bool:
        """Whether the file ends before it should, or what was read of it no longer stands there.

        This is asked after `data` was read. So data that was read while the file was emptied is noticed too.
        """
        if isinstance(self._file, Gunzipped):
            return not data and self._file.cut
        handle, at = self._file.fileno(), self._file.tell() - len(data) - len(self._last)
        before = (self._last + data[:PAST])[:PAST]
        return os.pread(handle, len(before), at) != before or os.pread(handle, len(self._first), 0) != self._first

    def _begin_again(self, unused: int) -> bool:
        """Go to the beginning of a file that was emptied, or stay before a hole. False if nothing is there yet."""
        self._file.seek(-unused, os.SEEK_CUR)
        beginning = os.pread(self._file.fileno(), 1, 0)
        if not beginning:
            return False  # the first byte will tell whether its writer begins from scratch
        self._truncated += 1
        self._first = self._last = b""
        if beginning != b"\0" or os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._text.restart()
        elif os.pread(self._file.fileno(), 1, self._file.tell()) == b"\0":
            self._text.skip_line(self._file.tell())
        return True

    def _look_again(self) -> None:
        """Begin from the start if another file has the name of this one."""
        here = os.fstat(self._file.fileno())
        try:
            there = os.stat(self._path)
            if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) or self._more():
                return
            other = self._open()
        except OSError:  # renamed or deleted, and nothing new is there yet
            return
        self._replaced += 1
        self._file.close()
        self._file = other
        self._first = self._last = b""
        self._text.restart()

    def place(self) -> dict[str, Any]:
        counted = {"truncated": self._truncated, "replaced": self._replaced}
        return {**self._text.position(), "hash": short_hash(self._text.past()), **counted}

    def counters(self) -> dict[str, int]:
        counted = {"malformed": self._text.malformed, "unterminated": self._text.unterminated}
        return {**counted, "truncated": self._truncated, "replaced": self._replaced}

    def complaint(self) -> str | None:
        return self._text.complaint()

    def progress(self) -> float | None:
        if self._follow:
            return None
        file = getattr(self._file, "fileobj", self._file)  # of a compressed file, the compressed bytes
        return min(file.tell() / max(os.fstat(file.fileno()).st_size, 1), 1.0)

    def close(self) -> None:
        self._file.close()
