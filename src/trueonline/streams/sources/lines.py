"""Bytes go in as they arrive, whole lines come out, and their place in the text stays known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LIMIT = 2**20  # bytes in a line
CHUNK = 2**18  # bytes that are read at a time
PAST = 4096  # bytes before a position that tell one file from another
HEAD = 400  # bytes of a skipped line that are kept to be shown
NEWLINE = 10

Report = Callable[[str, bytes, bool], None]


@dataclass
class _Skipped:
    """A line, or the rest of one, that is passed over as it arrives."""

    why: str
    is_row: bool
    size: int = 0
    head: bytes = b""
    last: bytes = b""
    blank: bool = True

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.head = (self.head + data[:HEAD])[:HEAD]
        self.last = (self.last + data[-PAST:])[-PAST:]
        self.blank = self.blank and not data.strip()


class Lines:
    """At most a chunk of whole lines, and the beginning of a line whose end has not come.

    A line longer than 1 MiB is passed over. `report` is called for it with the reason, its beginning, and whether it counts
    as a row.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self.restart(0)

    def restart(self, offset: int, past: bytes = b"", rest_of_line: bool = False) -> None:
        """The bytes from `offset` on come next, after those of `past`; with `rest_of_line`, they end a line read before."""
        self._base, self._past = offset, past
        self._tail = bytearray()
        self._skipped = _Skipped("the rest of a line whose beginning was read", False) if rest_of_line else None
        self._hold(b"")

    def _hold(self, lines: bytes) -> None:
        self._lines, self._at, self._next = lines, 0, 0
        self._ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == NEWLINE) + 1
        sizes = np.diff(self._ends, prepend=0) if len(lines) > LIMIT else self._ends[:0]
        self._long = np.flatnonzero(sizes > LIMIT + 1).tolist()

    @property
    def empty(self) -> bool:
        """Whether no whole line is left."""
        return self._at == len(self._lines)

    @property
    def offset(self) -> int:
        """The place of the next line in the text."""
        return self._base + self._at

    @property
    def tail(self) -> bytes:
        """The line whose end has not come."""
        return bytes(self._tail)

    @property
    def skipped_head(self) -> bytes:
        """The beginning of the line that is passed over now."""
        return b"" if self._skipped is None else self._skipped.head

    def past(self, unread: int = 0) -> bytes:
        """Up to 4 KiB before the next line, less the newest `unread` bytes."""
        return (self._past + self._lines[max(self._at - unread - PAST, 0) : self._at - unread])[-PAST:]

    def feed(self, data: bytes) -> None:
        """Take more bytes, once all lines were taken."""
        if self._skipped is not None:
            stop = data.find(b"\n") + 1
            self._skipped.add(data[:stop] if stop else data)
            if not stop:
                return
            self.end_skipped()
            data = data[stop:]
        self._pass(self._lines, len(self._lines))
        stop = data.rfind(b"\n") + 1
        self._hold(bytes(self._tail) + data[:stop] if stop else b"")
        if stop:
            self._tail.clear()
        self._tail += data[stop:]
        if len(self._tail) > LIMIT:
            self._skipped = _Skipped("a line is longer than 1 MiB", True)
            self._skipped.add(self.tail)
            self._tail.clear()

    def end_skipped(self) -> None:
        """The line that is passed over has ended, if there is one."""
        skipped, self._skipped = self._skipped, None
        if skipped is None:
            return
        self._pass(self._lines, len(self._lines))
        self._hold(b"")
        self._pass(skipped.last, skipped.size)
        if not skipped.blank:
            self._report(skipped.why, skipped.head, skipped.is_row)

    def _pass(self, data: bytes, size: int) -> None:
        """Let go of `size` bytes that end with these."""
        self._base += size
        self._past = (self._past + data)[-PAST:] if len(data) < PAST else data[-PAST:]

    def peek(self) -> bytes:
        """The next line, which stays."""
        return self._lines[self._at : int(self._ends[self._next])]

    def take(self, most: int) -> tuple[bytes, np.ndarray]:
        """Up to `most` lines as one text, and where each of them ends in it. There may be none."""
        if self._long and self._long[0] == self._next:
            end = int(self._ends[self._long.pop(0)])
            if line := self._lines[self._at : end].strip():
                self._report("a line is longer than 1 MiB", line[:HEAD], True)
            self._at, self._next = end, self._next + 1
        last = min([self._next + most, len(self._ends), *self._long[:1]])
        ends = self._ends[self._next : last] - self._at
        text = self._lines[self._at : self._at + int(ends[-1])] if len(ends) else b""
        self._at, self._next = self._at + len(text), last
        return text, ends
