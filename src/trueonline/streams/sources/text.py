"""Bytes of CSV or JSON lines to blocks, for files and pipes.

A text that begins with "{" is JSON lines (see `json_rows`). Any other text is CSV (see `csv_rows`). Blank lines, lines that
begin with # and Excel's line `sep=;` may come before that. A line longer than 1 MiB is malformed.

The last line may lack its line break and is then counted as `unterminated`. RFC 4180 allows that, so the line is read like
any other unless it ends in a separator. But nothing tells "1.5" from the beginning of "1.57". Use `whole_lines` for a text
that may break off in the middle of a line. Such a line is then left.
"""

from __future__ import annotations

import re
from typing import Any

from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.csv_rows import CsvRows, decoded
from trueonline.streams.sources.json_rows import JsonRows, Objects
from trueonline.streams.sources.lines import Lines
from trueonline.streams.sources.sample import ROWS, Block

MARK = b"\xef\xbb\xbf"  # the byte-order mark of UTF-8
NAMED_SEPARATOR = re.compile(r'"?sep=([,;:|~^&!\t])"?', re.IGNORECASE)


class Text:
    """Bytes in, blocks out. It keeps at most a chunk of whole lines, and the beginning of one that is not whole."""

    def __init__(self, name: str, signals: tuple[str, ...], clock: Clock) -> None:
        self.name, self.signals, self.clock = name, signals, clock
        self.malformed = 0
        self.row = 0  # the number of the next row
        self._unterminated = 0
        self._objects = Objects(signals, clock)
        self._lines = Lines(self._report)
        self._begin()

    def _begin(self) -> None:
        self._rows: CsvRows | JsonRows | None = None  # None until the first line is understood
        self._separator, self._latin = "", False  # as the lines before it say
        self._completed = False  # whether the last line got the line break that it lacked
        self._left = False  # whether the last line was left because it has no line break

    def restart(self) -> None:
        """Begin with another text. Its first line comes next, the counts stay, and a line that broke off is malformed."""
        if self._lines.tail:
            self._report("a line broke off when the file was cut or replaced", self._lines.tail, False)
        self._begin()
        self._lines.restart(0)

    def skip_line(self, offset: int) -> None:
        """Skip the bytes from `offset` on up to a line break. They are not the rest of the line before."""
        if self._lines.tail:
            self._report("a line broke off when the file was cut or replaced", self._lines.tail, False)
        self._lines.restart(offset, rest_of_line=True)

    def resume(self, position: dict[str, Any], past: bytes) -> None:
        """Resume from a position. The bytes from its `offset` on come next, and `past` is what comes before them."""
        self._lines.restart(position["offset"], past, rest_of_line=position["cut"])
        self._completed = self._left = False
        self.row, self.malformed = position["row"], position["malformed"]
        self._unterminated = position["unterminated"]

    def _report(self, why: str, sent: bytes, is_row: bool) -> None:
        self.malformed += 1
        self.row += is_row
        self._objects.complain(why, sent)

    @property
    def started(self) -> bool:
        """Whether the first line was understood."""
        return self._rows is not None

    @property
    def columns(self) -> list[str] | None:
        """The columns of a CSV text, or None."""
        return None if self._rows is None or self._rows.columns is None else list(self._rows.columns)

    @property
    def separator(self) -> str:
        """The separator of the cells of a CSV text, or ""."""
        return "" if self._rows is None else self._rows.separator

    @property
    def has_lines(self) -> bool:
        """Whether there are whole lines to take."""
        return not self._lines.empty

    def next_lines(self) -> list[str]:
        """The next lines as they are, at most as many as a block has."""
        return decoded(self._lines.take(ROWS)[0])[0].splitlines() if self.has_lines else []

    @property
    def _ended(self) -> bool:
        """Whether the last line was read although it has no line break."""
        return self._completed and self._lines.empty

    @property
    def unterminated(self) -> int:
        """How often the last line had no line break."""
        return self._unterminated + (self._left or self._ended)

    def position(self) -> dict[str, Any]:
        """The place where the next row begins, and the counts up to there."""
        return {
            "columns": self.columns,
            "offset": self._lines.offset - self._ended,
            "row": self.row,
            "malformed": self.malformed,
            "unterminated": self._unterminated + self._ended,
            "cut": self._ended,
        }

    def past(self) -> bytes:
        """Up to 4 KiB before the position."""
        return self._lines.past(unread=int(self._ended))

    def remark(self) -> str:
        """That the text was taken as Latin-1, or ""."""
        if self._latin or (self._rows is not None and self._rows.latin):
            return f"{self.name} is not UTF-8: it was read as Latin-1 (Windows-1252)"
        return ""

    def complaint(self) -> str | None:
        """The fault of the first line that could not be read, or None."""
        return self._objects.complaint()

    def feed(self, data: bytes) -> None:
        """Take more bytes, once `take` has nothing left."""
        self._lines.feed(data)
        if not self.started and self._lines.empty and (head := self._lines.skipped_head):
            if not head.removeprefix(MARK).lstrip().startswith(b"{"):
                raise ValueError(f"the first line of {self.name} must name the columns, but it is longer than 1 MiB")
            self._rows = JsonRows(self._objects)

    def finish(self, whole_lines: bool = False) -> None:
        """No more bytes come. The line that is left is the last one."""
        self._lines.end_skipped()
        rest = self._lines.tail.rstrip(b" \r")
        separator = self.separator.encode()
        if whole_lines or (separator and rest.endswith(separator)):
            self._left = bool(rest)
        elif rest:
            self.feed(b"\n")
            self._completed = True

    def take(self) -> Block | None:
        """The next block, perhaps an empty one, or None if more bytes are needed."""
        self.look()
        if self._rows is None or self._lines.empty:
            return None
        text, ends = self._lines.take(ROWS)
        block, rows = self._rows.read(text, ends, self.row)
        self.row += rows
        self.malformed += rows - len(block)
        return block

    def look(self) -> None:
        """Understand the first line, if it is there."""
        while self._rows is None and not self._lines.empty:
            line = self._lines.peek()
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise ValueError(f"{self.name} is UTF-16; save it as UTF-8")
            header, latin = decoded(line.removeprefix(MARK))
            header = header.strip(" \r\n")
            if header.startswith("{"):
                self._rows = JsonRows(self._objects)
                return
            if found := NAMED_SEPARATOR.fullmatch(header):
                self._separator = found[1]
            elif header and not header.startswith("#"):
                complain = self._objects.complain
                self._rows = CsvRows(self.name, header, self.signals, self.clock, complain, self._separator)
            self._latin |= latin
            self._lines.take(1)
