"""Bytes go in as they arrive, whole records come out, and their place in the text stays known.

A record ends at a line break. In CSV, a line break in a quoted cell belongs to the cell (RFC 4180).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

MAX_RECORD_BYTES = 2**20  # bytes in a record
CHUNK_BYTES = 2**18  # bytes that are read at a time
PAST_BYTES = 4096  # bytes before a position that tell one file from another
HEAD_BYTES = 400  # bytes of a skipped record that are kept to be shown
NEWLINE, QUOTE = b'\n"'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
RECORD, CELL, REST, QUOTED, CLOSED, COMMENT = range(6)  # where the next byte is: see `RecordEnds`

Report = Callable[[str, bytes, bool], None]


class RecordEnds:
    """Finds where records end in bytes that come in pieces.

    A cell is quoted if its first character is a quote. The next quote that is not doubled ends the quoting, and what follows in
    the cell is taken as it is. Python's csv module and pyarrow do the same. Quotes mean nothing in a record that begins with #.

    The next byte is at the beginning of a record (`RECORD`) or of a cell (`CELL`), in the rest of a cell (`REST`), between quotes
    (`QUOTED`), after a quote that may be doubled (`CLOSED`), or in a comment (`COMMENT`).

    Parameters
    ----------
    separators : bytes
        What separates cells. Without any, each line is a record.
    state : int
        Where the first byte is.
    """

    def __init__(self, separators: bytes = b"", state: int = RECORD) -> None:
        self._separators, self._state = separators, state
        if separators:
            self._end_of_cell = re.compile(
                rb'\n|[%b](?="|\Z)' % re.escape(separators)
            )  # a cell that is not quoted is skipped

    @property
    def in_quotes(self) -> bool:
        """Whether a quote is open."""
        return self._state == QUOTED

    def find(self, data: bytes) -> np.ndarray:
        """The places after each record that ends in the next bytes."""
        if not self._separators:
            return line_ends(data)
        ends: list[int] = []
        at = 0 if self._state == RECORD else self._walk(data, 0, ends, until_record=True)
        quick = np.empty(0, np.int64)
        if self._state == RECORD:
            stop = data.rfind(b"\n") + 1
            found = self._of_whole_lines(data[at:stop])
            if found is not None:
                quick, at = found + at, max(at, stop)
        rest: list[int] = []
        self._walk(data, at, rest)
        return np.concatenate([np.array(ends, np.int64), quick, np.array(rest, np.int64)])

    def _of_whole_lines(self, data: bytes) -> np.ndarray | None:
        """The ends in whole lines from the beginning of a record on. None if a quote may be part of a text or of a comment."""
        ends = line_ends(data)
        if QUOTE not in data:
            return ends
        array = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(array == QUOTE)
        before_opening = array[quotes[::2] - 1]  # for a quote at the beginning, the line break at the end
        if (
            data.startswith(b"#")
            or b"\n#" in data
            or not np.isin(before_opening, [NEWLINE, QUOTE, *self._separators]).all()
        ):
            return None
        if len(quotes) % 2:
            self._state = QUOTED
        return ends[np.searchsorted(quotes, ends) % 2 == 0]

    def _walk(self, data: bytes, at: int, ends: list[int], until_record: bool = False) -> int:
        """Go on from quote to quote and from line to line, and return the place that is reached."""
        while at < len(data):
            if self._state in (RECORD, CELL):
                begins_comment = self._state == RECORD and data[at] == ord("#")
                self._state = QUOTED if data[at] == QUOTE else COMMENT if begins_comment else REST
                at += self._state == QUOTED
            elif self._state == CLOSED:
                self._state = QUOTED if data[at] == QUOTE else REST
                at += self._state == QUOTED
            elif self._state == QUOTED:
                place = data.find(b'"', at)
                if place < 0:
                    return len(data)
                at, self._state = place + 1, CLOSED
            else:
                found = (re.compile(b"\n") if self._state == COMMENT else self._end_of_cell).search(data, at)
                if found is None:
                    return len(data)
                at, self._state = found.end(), CELL
                if found[0] == b"\n":
                    self._state = RECORD
                    ends.append(at)
                    if until_record:
                        return at
        return at


def line_ends(data: bytes) -> np.ndarray:
    """The places after each line break."""
    return np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE) + 1


@dataclass
class _Skipped:
    """A record, or the rest of one, that is passed over as it arrives."""

    why: str
    is_row: bool
    size: int = 0
    head: bytes = b""
    last: bytes = b""
    blank: bool = True

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.head = (self.head + data[:HEAD_BYTES])[:HEAD_BYTES]
        self.last = (self.last + data[-PAST_BYTES:])[-PAST_BYTES:]
        self.blank = self.blank and not data.strip()


class Records:
    """At most a chunk of whole records, and the beginning of a record whose end has not come.

    A record longer than 1 MiB is passed over. `report` is called for it with the reason, its beginning, and whether it counts
    as a row.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self.separators = b""  # of cells that may be quoted; without any, each line is a record
        self.restart(0)

    def restart(self, offset: int, past: bytes = b"", rest_of_line: bool = False) -> None:
        """The bytes from `offset` on come next, after those of `past`; with `rest_of_line`, they end a record read before."""
        self._base, self._past = offset, past
        self._tail = bytearray()
        self._scan = RecordEnds(self.separators, REST if rest_of_line else RECORD)
        self._skipped = _Skipped("the rest of a line whose beginning was read", False) if rest_of_line else None
        self._hold(b"")

    def split_by(self, separators: bytes) -> None:
        """From the next record on, cells may be quoted and hold line breaks. Without separators they may not."""
        left = self._records[self._at :] + self.tail
        self.separators = separators
        self.restart(self.offset, self.past())
        mark = BYTE_ORDER_MARK if left.startswith(BYTE_ORDER_MARK) else b""
        self._take_in(left, self._scan.find(left[len(mark) :]) + len(mark))

    def _hold(self, records: bytes, ends: np.ndarray | None = None) -> None:
        self._records, self._at, self._next = records, 0, 0
        self._ends = np.empty(0, np.int64) if ends is None else ends
        sizes = np.diff(self._ends, prepend=0) if len(records) > MAX_RECORD_BYTES else self._ends[:0]
        self._long = np.flatnonzero(sizes > MAX_RECORD_BYTES + 1).tolist()

    @property
    def empty(self) -> bool:
        """Whether no whole record is left."""
        return self._at == len(self._records)

    @property
    def offset(self) -> int:
        """The place of the next record in the text."""
        return self._base + self._at

    @property
    def tail(self) -> bytes:
        """The record whose end has not come."""
        return bytes(self._tail)

    @property
    def in_quotes(self) -> bool:
        """Whether all bytes so far end in a quoted cell."""
        return self._scan.in_quotes

    @property
    def skipped_head(self) -> bytes:
        """The beginning of the record that is passed over now."""
        return b"" if self._skipped is None else self._skipped.head

    def past(self, unread: int = 0) -> bytes:
        """Up to 4 KiB before the next record, less the newest `unread` bytes."""
        return (self._past + self._records[max(self._at - unread - PAST_BYTES, 0) : self._at - unread])[-PAST_BYTES:]

    def feed(self, data: bytes) -> None:
        """Take more bytes, once all records were taken."""
        ends = self._scan.find(data)
        if self._skipped is not None:
            stop = int(ends[0]) if len(ends) else len(data)
            self._skipped.add(data[:stop])
            if not len(ends):
                return
            self.end_skipped()
            data, ends = data[stop:], ends[1:] - stop
        self._pass(self._records, len(self._records))
        self._take_in(data, ends)

    def _take_in(self, data: bytes, ends: np.ndarray) -> None:
        """Hold the records that end in these bytes, and keep the rest."""
        stop = int(ends[-1]) if len(ends) else 0
        self._hold(self.tail + data[:stop] if stop else b"", ends + len(self._tail))
        if stop:
            self._tail.clear()
        self._tail += data[stop:]
        if self.empty and len(self._tail) > MAX_RECORD_BYTES:
            self._skipped = _Skipped("a row is longer than 1 MiB", True)
            self._skipped.add(self.tail)
            self._tail.clear()

    def end_skipped(self) -> None:
        """The record that is passed over has ended, if there is one."""
        skipped, self._skipped = self._skipped, None
        if skipped is None:
            return
        self._pass(self._records, len(self._records))
        self._hold(b"")
        self._pass(skipped.last, skipped.size)
        if not skipped.blank:
            self._report(skipped.why, skipped.head, skipped.is_row)

    def _pass(self, data: bytes, size: int) -> None:
        """Let go of `size` bytes that end with these."""
        self._base += size
        self._past = (self._past + data)[-PAST_BYTES:] if len(data) < PAST_BYTES else data[-PAST_BYTES:]

    def peek(self) -> bytes:
        """The next record, which stays."""
        return self._records[self._at : int(self._ends[self._next])]

    def take(self, most: int) -> tuple[bytes, np.ndarray]:
        """Up to `most` records as one text, and where each of them ends in it. There may be none."""
        if self._long and self._long[0] == self._next:
            end = int(self._ends[self._long.pop(0)])
            if record := self._records[self._at : end].strip():
                self._report("a row is longer than 1 MiB", record[:HEAD_BYTES], True)
            self._at, self._next = end, self._next + 1
        last = min([self._next + most, len(self._ends), *self._long[:1]])
        ends = self._ends[self._next : last] - self._at
        text = self._records[self._at : self._at + int(ends[-1])] if len(ends) else b""
        self._at, self._next = self._at + len(text), last
        return text, ends
