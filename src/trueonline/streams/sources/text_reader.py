"""The reader of an open text file: it reads on as the file grows, and notices that it was rotated, emptied or changed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trueonline.streams.sources.gzip_file import Gunzipped, open_bytes
from trueonline.streams.sources.positions import FROM_SCRATCH, short_hash
from trueonline.streams.sources.records import CHUNK_BYTES, PAST_BYTES
from trueonline.streams.sources.replayable_file import FileReader
from trueonline.streams.sources.rotation import earlier_parts
from trueonline.streams.sources.sample import Block, nothing, opening, shown
from trueonline.streams.sources.text import Text


class TextReader(FileReader):
    """Reads a file of lines, and a log as it is rotated. `TextFile` says what it does with files that change."""

    def __init__(self, path: Path, text: Text, follow: bool, whole_lines: bool, parts: Sequence[Path]) -> None:
        self._path, self._text, self._follow, self._whole_lines = path, text, follow, whole_lines
        self._truncated = self._replaced = 0
        self._ended = False
        self._last = b""  # what was read before the place of reading
        with opening(path):
            first, *others = [self._open(part) for part in (*parts, path)]
        self._next: deque[Any] = deque(others)  # files that come after this one, open, because their names may change
        self._turn_to(first)

    def _open(self, path: Path) -> Any:
        file = open_bytes(path)
        if self._follow and path == self._path and isinstance(file, Gunzipped):
            file.close()
            raise ValueError(f"{path} is compressed and cannot be followed; follow the plain file")
        return file

    def _turn_to(self, file: Any) -> None:
        self._file = file
        self._status = os.fstat(getattr(file, "fileobj", file).fileno())

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
            data = self._file.read(CHUNK_BYTES)
            self._note(data)
            self._text.feed(data or b"\n")
            self._text.look()
            if not data and not self._text.started:
                raise ValueError(short)
        columns = self._text.columns
        if position.get("columns") != columns:
            there = "JSON lines" if columns is None else shown(", ".join(columns))
            raise ValueError(f"{self._path} has other columns than when the position was taken: {there}; {FROM_SCRATCH}")
        size = min(PAST_BYTES, offset)
        self._file.seek(offset - size)
        past = self._file.read(size)
        if len(past) < size:
            raise ValueError(short)
        if position.get("hash") != short_hash(past):
            raise ValueError(
                f"{self._path} is not the file that was read, or was changed: what comes before byte {offset:,} is not what "
                f"it was; {FROM_SCRATCH}"
            )
        self._last = past
        self._text.resume(position, past)

    def take(self) -> Block | None:
        self.waiting = False
        while (block := self._text.take()) is None:
            if self._ended:
                return None
            if not self._more() and self._follow and not self._moved_on():
                self.waiting = True
                return nothing(len(self._text.signals))
        return block

    def blocks(self) -> Iterator[Block]:
        """A last line without a line break is left alone, because its earlier reader used all of its block."""
        while True:
            block = self._text.take()
            if block is not None:
                yield block
            elif data := self._file.read(CHUNK_BYTES):
                self._note(data)
                self._text.feed(data)
            else:
                return

    def _more(self) -> bool:
        """Read a chunk, or notice the end of the file, or that it was emptied."""
        data = self._file.read(CHUNK_BYTES)
        if self._is_cut(data):
            if self._follow and isinstance(self._file, Gunzipped):
                self._truncated += 1
                return False  # a part of a log; the next one comes
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
        self._last = (self._last + data)[-PAST_BYTES:] if len(data) < PAST_BYTES else data[-PAST_BYTES:]

    def _is_cut(self, data: bytes) -> bool:
        """Whether the file ends before it should, or what was read of it no longer stands there.

        This is asked after `data` was read. So data that was read while the file was emptied is noticed too.
        """
        if isinstance(self._file, Gunzipped):
            return not data and self._file.cut
        at = self._file.tell() - len(data) - len(self._last)
        before = (self._last + data[:PAST_BYTES])[:PAST_BYTES]
        return self._bytes_at(at, len(before)) != before

    def _bytes_at(self, offset: int, size: int) -> bytes:
        """Bytes of the file. The place of reading stays."""
        place = self._file.tell()
        self._file.seek(offset)
        found: bytes = self._file.read(size)
        self._file.seek(place)
        return found

    def _begin_again(self, unused: int) -> bool:
        """Go to the beginning of a file that was emptied, or stay before a hole. False if nothing is there yet."""
        self._file.seek(-unused, os.SEEK_CUR)
        beginning = self._bytes_at(0, 1)
        if not beginning:
            return False  # the first byte will tell whether its writer begins from scratch
        copy = self._copy()
        if copy is not None:
            self._next.append(self._file)
            self._file.seek(0)
            self._turn_to(copy)
            return True
        self._truncated += 1
        self._last = b""
        if beginning != b"\0" or os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._text.restart()
        elif self._bytes_at(self._file.tell(), 1) == b"\0":
            self._text.skip_line(self._file.tell())
        return True

    def _copy(self) -> Any:
        """A rotated part with all that was read of this file and more, at the place of reading. None if there is none."""
        if self._last.count(b"\n") < 2:  # a header alone tells nothing
            return None
        at = self._file.tell()
        for part in reversed(earlier_parts(self._path)):
            try:
                copy = self._open(part)
            except OSError:  # it has another name now
                continue
            copy.seek(at - len(self._last))
            if copy.read(len(self._last)) == self._last and copy.read(1):
                copy.seek(at)
                return copy
            copy.close()
        return None

    def _moved_on(self) -> bool:
        """At the end of this file, open the next file, or the file that has its name now. False if there is none yet."""
        if not self._next and not self._find_next():
            return False
        self._replaced += 1
        self._file.close()
        self._turn_to(self._next.popleft())
        self._last = b""
        self._text.restart()
        return True

    def _find_next(self) -> bool:
        """Look whether another file has the name of this one, and something in it. Parts that were missed come before it."""
        try:
            there = os.stat(self._path)
            if os.path.samestat(self._status, there) or not there.st_size:
                return False  # while the new file is empty, its writer may still have the old one
            if self._more():
                return False  # it was written to just before; the next look finds the rest
            self._next.extend(self._open(part) for part in (*self._missed_parts(), self._path))
        except OSError:  # renamed or deleted, and nothing new is there yet
            return False
        return True

    def _missed_parts(self) -> list[Path]:
        """The parts that were written after this one, and rotated away before they were looked at."""
        self._turn_to(self._file)  # the time of its last change may be another now
        here = self._status.st_mtime_ns
        later = {part: os.stat(part) for part in earlier_parts(self._path)}
        return [p for p, found in later.items() if found.st_mtime_ns > here and not os.path.samestat(self._status, found)]

    def place(self) -> dict[str, Any]:
        counted = {"truncated": self._truncated, "replaced": self._replaced}
        inode = {"inode": self._status.st_ino} if self._follow else {}
        return {**self._text.position(), "hash": short_hash(self._text.past()), **counted, **inode}

    def counters(self) -> dict[str, int]:
        return {**self._text.counters(), "truncated": self._truncated, "replaced": self._replaced}

    def complaint(self) -> str | None:
        return self._text.complaint()

    def remark(self) -> str:
        return self._text.remark()

    def progress(self) -> float | None:
        if self._follow:
            return None
        file = getattr(self._file, "fileobj", self._file)  # of a compressed file, the compressed bytes
        return min(file.tell() / max(os.fstat(file.fileno()).st_size, 1), 1.0)

    def close(self) -> None:
        for file in (self._file, *self._next):
            file.close()
