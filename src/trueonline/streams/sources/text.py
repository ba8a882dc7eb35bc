"""Bytes of CSV or JSON lines to blocks, for files and pipes.

A text that begins with "{" is JSON lines (see `json_rows`). Any other text is CSV (see `csv_rows`). Blank lines, lines that
begin with # and Excel's line `sep=;` may come before that. A row longer than 1 MiB is malformed.

The last line may lack its line break and is then counted as `unterminated`. RFC 4180 allows that, so the line is read like
any other unless it ends in a separator. But nothing tells "1.5" from the beginning of "1.57". Use `whole_lines` for a text
that may break off in the middle of a line. Such a line is then left. A row at the end whose quote is not closed is always left.
"""

from __future__ import annotations

import re
from typing import Any

from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.csv_rows import SEPARATORS, CsvRows, decoded
from trueonline.streams.sources.json_rows import JsonRows, Objects
from trueonline.streams.sources.records import BYTE_ORDER_MARK, Records
from trueonline.streams.sources.sample import BLOCK_ROWS, Block, shown

NAMED_SEPARATOR = re.compile(r'"?sep=([,;:|~^&!\t])"?', re.IGNORECASE)


class Text:
    """Bytes in, blocks out. It keeps at most a chunk of whole rows, and the beginning of one that is not whole."""

    def __init__(self, name: str, signals: tuple[str, ...], clock: Clock) -> None:
        self.name, self.signals, self.clock = name, signals, clock
        self.malformed = 0
        self.row = 0  # the number of the next row
        self._unterminated = 0
        self._spoiled = ""  # what a quote that is missing did to the last text
        self._objects = Objects(signals, clock)
        self._records = Records(self._report)
        self._begin()

    def _begin(self) -> None:
        self._rows: CsvRows | JsonRows | None = None  # None until the first line is understood
        self._separator, self._latin = "", False  # as the lines before it say
        self._completed = False  # whether the last line got the line break that it lacked
        self._left = False  # whether the last line was left because it has no line break, or a quote in it is not closed

    def restart(self) -> None:
        """Begin with another text. Its first line comes next, the counts stay, and a line that broke off is malformed."""
        self._report_broken()
        self._begin()
        self._records.separators = b""
        self._records.restart(0)

    def skip_line(self, offset: int) -> None:
        """Skip the bytes from `offset` on up to a line break. They are not the rest of the line before."""
        self._report_broken()
        self._records.restart(offset, rest_of_line=True)

    def _report_broken(self) -> None:
        if self._records.tail:
            self._report("a row broke off when the file was cut or replaced", self._records.tail, False)

    def resume(self, position: dict[str, Any], past: bytes) -> None:
        """Resume from a position. The bytes from its `offset` on come next, and `past` is what comes before them."""
        self._records.restart(position["offset"], past, rest_of_line=position["cut"])
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
    def has_records(self) -> bool:
        """Whether there are whole records to take."""
        return not self._records.empty

    def next_records(self) -> list[str]:
        """The next records as they are, at most as many as a block has."""
        text, ends = self._records.take(BLOCK_ROWS)
        return [decoded(text[begin:end])[0] for begin, end in zip([0, *ends], ends, strict=False)]

    @property
    def _ended(self) -> bool:
        """Whether the last line was read although it has no line break."""
        return self._completed and self._records.empty

    @property
    def unterminated(self) -> int:
        """How often the last line had no line break."""
        return self._unterminated + (self._left or self._ended)

    def counters(self) -> dict[str, int]:
        """The counts since the beginning."""
        return {"malformed": self.malformed, "unterminated": self.unterminated}

    def position(self) -> dict[str, Any]:
        """The place where the next row begins, and the counts up to there."""
        return {
            "columns": self.columns,
            "offset": self._records.offset - self._ended,
            "row": self.row,
            "malformed": self.malformed,
            "unterminated": self._unterminated + self._ended,
            "cut": self._ended,
        }

    def past(self) -> bytes:
        """Up to 4 KiB before the position."""
        return self._records.past(unread=int(self._ended))

    def remark(self) -> str:
        """That a quote is missing, that the text was taken as Latin-1, or ""."""
        if self._records.in_quotes and self._records.skipped_head:
            return self._unclosed()
        if spoiled := self._spoiled or ("" if self._rows is None else self._rows.spoiled):
            return spoiled
        if self._latin or (self._rows is not None and self._rows.latin):
            return f"{self.name} is not UTF-8: it was read as Latin-1 (Windows-1252)"
        return ""

    def _unclosed(self) -> str:
        begin = self._records.skipped_head or self._records.tail
        return f"row {self.row + 1:,} of {self.name} opens a quote that is not closed, so what follows is not read: {shown(begin)}"

    def complaint(self) -> str | None:
        """The fault of the first line that could not be read, or None."""
        return self._objects.complaint()

    def feed(self, data: bytes) -> None:
        """Take more bytes, once `take` has nothing left."""
        self._records.feed(data)
        if not self.started and self._records.empty and (head := self._records.skipped_head):
            if not head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"{"):
                why = "opens a quote that is not closed" if self._records.in_quotes else "is longer than 1 MiB"
                raise ValueError(f"the first line of {self.name} must name the columns, but it {why}")
            self._rows = JsonRows(self._objects)

    def finish(self, whole_lines: bool = False) -> None:
        """No more bytes come. What is left is the last line."""
        self.look()
        unclosed = self._records.in_quotes
        if unclosed and not self.started:
            raise ValueError(
                f"the first line of {self.name} must name the columns, but it opens a quote that is not closed"
            )
        if unclosed:
            self._spoiled = self._unclosed()
        self._records.end_skipped()
        rest = self._records.tail.rstrip(b" \r")
        separator = self.separator.encode()
        if whole_lines or unclosed or (separator and rest.endswith(separator)):
            self._left = bool(rest)
        elif rest:
            self.feed(b"\n")
            self._completed = True

    def take(self) -> Block | None:
        """The next block, perhaps an empty one, or None if more bytes are needed."""
        self.look()
        if self._rows is None or self._records.empty:
            return None
        text, ends = self._records.take(BLOCK_ROWS)
        block, rows = self._rows.read(text, ends, self.row)
        self.row += rows
        self.malformed += rows - len(block)
        return block

    def look(self) -> None:
        """Understand the first line, if it is there."""
        while self._rows is None and not self._records.empty:
            record = self._records.peek()
            if record.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise ValueError(f"{self.name} is UTF-16; save it as UTF-8")
            header, latin = decoded(record.removeprefix(BYTE_ORDER_MARK))
            header = header.strip(" \r\n")
            if header.startswith("{"):
                self._rows = JsonRows(self._objects)
                return
            if found := NAMED_SEPARATOR.fullmatch(header):
                self._separator = found[1]
            elif header and not header.startswith("#"):
                if not self._records.separators:  # names may be quoted, and their quotes may hold line breaks
                    self._records.split_by((self._separator or SEPARATORS).encode())
                    continue
                complain = self._objects.complain
                self._rows = CsvRows(self.name, header, self.signals, self.clock, complain, self._separator)
            self._latin |= latin
            self._records.take(1)
            if self._rows is not None:
                self._records.split_by(self._rows.separator.encode())
