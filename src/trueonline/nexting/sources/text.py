"""Text to blocks: CSV, read by a compiled loop, and JSON lines. For files, pipes and whatever else gives bytes.

**CSV.** The first line names the columns, in any order. Cells are separated by commas, semicolons or tabs: whichever gives
the columns asked for. With semicolons a comma may stand for the decimal point. A cell may be quoted, and hold separators
then, but a line break always ends the row: a lost quote cannot swallow the rest (a departure from RFC 4180). Cells that are
empty or say NA, N/A, nan, null or none, in large letters or small, are missing. A row is *malformed*, skipped and counted,
when it has too few or too many cells, when a cell asked for is not a number, when it has no time, or when it is longer than
1 MiB. Blank lines are nothing.

**JSON lines**, when the text begins with "{": one object a line. See `records`.

**The last line** may lack its line break, and is then counted as `unterminated`. RFC 4180 allows that, so it is read like any
other, unless it ends in a separator. But nothing tells "1.5" from the beginning of "1.57": where the text may break off in
the middle of a line, ask for `whole_lines`, and such a line is left.
"""

# Kernels are typed by Numba.
# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import csv
import math
from typing import Any

import numpy as np

from trueonline.core.forms import pointer
from trueonline.core.kernels import call, kernel, specialise
from trueonline.nexting.sources.decimals import LOWER, SPACE, decimal
from trueonline.nexting.sources.decimals import moment as moment_in
from trueonline.nexting.sources.records import MalformedError, Objects, cell, moment, parsed
from trueonline.nexting.sources.sample import ROWS, Block, Clock, found

LIMIT = 2**20  # bytes in a line
CHUNK = 2**18  # bytes that are read at a time
HARD = 4096  # cells of a block that are left to Python

NEWLINE, RETURN, QUOTE, A, N = (ord(c) for c in '\n\r"an')
NO_COMMA = -1
SEPARATORS = (",", ";", "\t")
PAST = 4096  # bytes before a position that tell one file from another
KEEP, LONG, REST = range(3)  # of the coming bytes: all, not the rest of a long line, not the rest of a line taken already


# --- In a kernel ----------------------------------------------------------------------------------


def rows(lines, begin, end, separator, comma, slots, per_second, first, out, numbers, hard):
    """Read lines[begin:end], whole lines, until `out` or `hard` is full.

    Column c goes to out[:, slots[c]] if that is not negative; the last place of `out` is for the time. Return where the
    reading stopped, how many rows were kept, how many cells are in `hard` (row, place, begin, end), how many rows were
    malformed, where the first of these begins (or −1), and the number of the next row.
    """
    text = pointer(lines, 0)
    at, number = begin, first
    kept = left = malformed = 0
    bad = -1
    while at < end and kept < out.shape[0] and left + out.shape[1] <= hard.shape[0]:
        a = stop = line = at
        while text[stop] != NEWLINE:
            stop += 1
        at = stop + 1
        b = stop - (stop > a and text[stop - 1] == RETURN)
        if blank(text, a, b):
            continue
        number += 1
        was = left
        c, more, right = 0, True, stop - a <= LIMIT
        while more and right:
            first_byte, last_byte, a = bounds(text, a, b, separator)
            more = a <= b
            if c == slots.size:
                right = False
                break
            slot = slots[c]
            if slot >= 0:
                value, read = number_in(text, first_byte, last_byte, comma)
                if slot == out.shape[1] - 1:
                    value /= per_second
                    if not read:
                        value, read = moment_in(text, first_byte, last_byte)
                    right = not read or np.isfinite(value)
                out[kept, slot] = value
                if not read:
                    hard[left, 0], hard[left, 1], hard[left, 2], hard[left, 3] = kept, slot, first_byte, last_byte
                    left += 1
            c += 1
        if right and c == slots.size:  # all that is left to say about it is in `hard`
            numbers[kept] = number - 1
            kept += 1
        else:
            if malformed == 0:
                bad = line
            malformed += 1
            left = was
    return at, kept, left, malformed, bad, number


@kernel
def blank(text, a, b):
    while a < b and text[a] == SPACE:
        a += 1
    return a == b


@kernel
def bounds(text, a, b, separator):
    """Where the cell at a begins and ends, without spaces and quotes, and where the next one begins (b + 1: nowhere)."""
    while a < b and text[a] == SPACE:
        a += 1
    if a < b and text[a] == QUOTE:
        i = a + 1
        while i < b and (text[i] != QUOTE or (i + 1 < b and text[i + 1] == QUOTE)):
            i += 1 + (text[i] == QUOTE)
        end = min(i, b)
        i = end + 1
        while i < b and text[i] == SPACE:
            i += 1
        if i >= b or text[i] == separator:
            return a + 1, end, min(i, b) + 1
    i = a
    while i < b and text[i] != separator:
        i += 1
    end = i
    while end > a and text[end - 1] == SPACE:
        end -= 1
    return a, end, i + 1


@kernel
def number_in(text, a, b, comma):
    """The number in a cell, NaN where it says that there is none, and whether it could be read."""
    if a == b:
        return math.nan, True
    value, read = decimal(text, a, b, comma)
    if read:
        return value, True
    if (text[a] | LOWER) == N and b - a <= 3 and b - a >= 2 and (text[a + 1] | LOWER) == A:
        return math.nan, b - a == 2 or (text[a + 2] | LOWER) == N
    return 0.0, False


_ROWS = specialise(rows, "text")


# --- Seen from Python -----------------------------------------------------------------------------


class Text:
    """Bytes in, blocks out. It keeps at most a chunk of whole lines, and the beginning of one that is not whole."""

    def __init__(self, name: str, signals: tuple[str, ...], clock: Clock) -> None:
        self.name, self.signals, self.clock = name, signals, clock
        self.malformed = self._unterminated = 0
        self.row = 0  # the number of the next row
        width = len(signals) + 1
        self._out, self._numbers = np.empty((ROWS, width)), np.empty(ROWS, np.int64)
        self._hard = np.empty((HARD + width, 4), np.int64)
        self._objects = Objects(signals, clock)
        self.columns: tuple[str, ...] | None = None
        self.json = False
        self._empty(0)

    def renew(self) -> None:
        """Begin with another text: its first line comes next. What was counted stays; a line that breaks off is malformed."""
        if self._tail:
            self.malformed += 1
            self._objects.complain("a line broke off when the file was cut or replaced", b"".join(self._tail))
        self.columns, self.json = None, False
        self._empty(0)

    def _empty(self, offset: int, past: bytes = b"") -> None:
        self._base = offset  # where in the whole text the lines at hand begin
        self._past = past  # the bytes before them
        self._lines, self._at = b"", 0
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._skip = KEEP
        self._skipped, self._skipped_any, self._skipped_last = 0, False, b""
        self._cut = False  # whether the last line was given the line break that it had not
        self._left = False  # whether it was left because of that

    @property
    def started(self) -> bool:
        """Whether the first line has been understood."""
        return self.json or self.columns is not None

    @property
    def unterminated(self) -> int:
        """How often the last line had no line break."""
        return self._unterminated + (self._left or (self._cut and self._at == len(self._lines)))

    def position(self) -> dict[str, Any]:
        """Where the next row begins."""
        ended = self._cut and self._at == len(self._lines)
        return {
            "columns": None if self.columns is None else list(self.columns),
            "offset": self._base + self._at - ended,
            "row": self.row,
            "malformed": self.malformed,
            "unterminated": self._unterminated + ended,
            "cut": ended,
        }

    def past(self) -> bytes:
        """The bytes before the position: as many of them as count."""
        ended = self._cut and self._at == len(self._lines)
        return (self._past + self._lines[: self._at - ended])[-PAST:]

    def resume(self, position: dict[str, Any], past: bytes) -> None:
        """Go on from a position, after these bytes: those from `offset` on come next."""
        self._empty(position["offset"], past)
        self.row, self.malformed = position["row"], position["malformed"]
        self._unterminated = position["unterminated"]
        self._skip = REST if position["cut"] else KEEP

    def feed(self, data: bytes) -> None:
        """Take more bytes, when `take` has nothing left."""
        if self._skip != KEEP:
            data = self._skipping(data)
        self._pass(self._lines, len(self._lines))
        stop = data.rfind(b"\n") + 1
        self._lines, self._at = b"".join([*self._tail, data[:stop]]) if stop else b"", 0
        if stop:
            self._tail, self._tail_size = [], 0
        if stop < len(data):
            self._tail.append(data[stop:])
            self._tail_size += len(data) - stop
        if self._tail_size > LIMIT:
            self._too_long()

    def _pass(self, data: bytes, size: int) -> None:
        """Let go of `size` bytes that end with these."""
        self._base += size
        self._past = (self._past + data)[-PAST:] if len(data) < PAST else data[-PAST:]

    def _too_long(self) -> None:
        """Let go of a line that is too long, and skip what else comes of it."""
        if not (self.started or self._lines):
            self.json = b"".join(self._tail).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
            if not self.json:
                raise ValueError(f"the first line of {self.name} must name the columns, but it is longer than 1 MiB")
        self._skip, self._skipped, self._skipped_any = LONG, self._tail_size, True
        self._skipped_last = b"".join(self._tail)[-PAST:]
        self._tail, self._tail_size = [], 0

    def _skipping(self, data: bytes) -> bytes:
        """What comes after the line that is being skipped."""
        stop = data.find(b"\n") + 1
        self._skipped += stop or len(data)
        self._skipped_last = (self._skipped_last + (data[:stop] if stop else data)[-PAST:])[-PAST:]
        self._skipped_any |= bool((data[:stop] if stop else data).strip())
        if not stop:
            return b""
        self._skipped_all()
        return data[stop:]

    def _skipped_all(self) -> None:
        self._pass(self._lines, len(self._lines))
        if self._skipped_any:
            what = "a line is longer than 1 MiB" if self._skip == LONG else "the rest of a line whose beginning was read"
            self._objects.complain(what, self._skipped_last)
        self._pass(self._skipped_last, self._skipped)
        self._lines, self._at = b"", 0
        self.malformed += self._skipped_any
        self.row += self._skip == LONG
        self._skip, self._skipped, self._skipped_any, self._skipped_last = KEEP, 0, False, b""

    def finish(self, whole_lines: bool = False) -> None:
        """No more bytes will come: what is left is the last line."""
        if self._skip != KEEP:
            self._skipped_all()
        rest = b"".join(self._tail).rstrip(b" \r")
        if whole_lines or (self.columns is not None and rest.endswith(bytes([self._separator]))):
            self._left = bool(rest)
        elif rest:
            self.feed(b"\n")
            self._cut = True

    def take(self) -> Block | None:
        """The next block, perhaps an empty one; None when more bytes are needed."""
        self.look()
        if self._at == len(self._lines):
            return None
        return self._from_json() if self.json else self._from_csv()

    # --- The first line ---

    def look(self) -> None:
        """Understand the first line, if it is there."""
        while not self.started and self._at < len(self._lines):
            self._first_line()

    def _first_line(self) -> None:
        stop = self._lines.index(b"\n", self._at)
        line = self._lines[self._at : stop]
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ValueError(f"{self.name} is UTF-16; save it as UTF-8")
        text = line.decode("utf-8-sig", "replace").strip(" \r")
        if text.startswith("{"):
            self.json = True
            return
        if text.strip():
            self._header(text)
        self._at = stop + 1

    def _header(self, text: str) -> None:
        """Find the columns asked for, under one separator or another."""
        wanted = [*self.signals, *([] if self.clock.time is None else [self.clock.time])]
        try:
            ways = [tuple(name.strip() for name in next(csv.reader([text], delimiter=each))) for each in SEPARATORS]
        except csv.Error as error:
            raise ValueError(f"the first line of {self.name} must name the columns, but it is not CSV: {error}") from None
        best = max(range(len(SEPARATORS)), key=lambda i: (sum(name in ways[i] for name in wanted), len(ways[i])))
        columns = ways[best]
        found(self.name, columns, wanted, "the first line must name them")
        slots = np.full(len(columns), -1, np.int64)
        for slot, name in enumerate(wanted):
            slots[columns.index(name)] = slot
        self._separator, self._slots, self._wanted = ord(SEPARATORS[best]), slots, wanted
        self._comma = ord(",") if SEPARATORS[best] == ";" else NO_COMMA
        self.columns = columns

    # --- The others ---

    def _from_csv(self) -> Block:
        text = np.frombuffer(self._lines, np.uint8)
        form = (self._separator, self._comma, self._slots, self.clock.per_second, self.row)
        answer = call(_ROWS, text, self._at, len(text), *form, self._out, self._numbers, self._hard)
        self._at, kept, left, malformed, bad, self.row = answer
        self.malformed += malformed
        if malformed and self.complaint() is None:
            line = self._lines[bad : self._lines.index(b"\n", bad)]
            self._objects.complain(self._why(line[: LIMIT + 1]), line)
        size = len(self.signals)
        times, values = self._out[:kept, size], self._out[:kept, :size]
        if self.clock.time is None:
            times = self.clock.made(self._numbers[:kept])
        if not left:
            return Block(times.copy(), values.copy())
        good = np.ones(kept, np.bool_)
        for k, slot, a, b in self._hard[:left].tolist():
            try:
                value = self._cell(self._lines[a:b], slot == size)
                self._out[k, slot] = value
                good[k] &= slot < size or math.isfinite(value)
            except MalformedError as error:
                good[k] = False
                if self.complaint() is None:
                    self._objects.complain(self._wanted[slot], str(error))
        self.malformed += kept - int(good.sum())
        return Block(times[good], values[good])

    def _why(self, line: bytes) -> str:
        """What is wrong with a row that the kernel called malformed, in words. It is asked once."""
        assert self.columns is not None
        if len(line) > LIMIT:
            return "a line is longer than 1 MiB"
        try:
            cells = len(next(csv.reader([line.decode("utf-8", "replace")], delimiter=chr(self._separator)), []))
        except csv.Error:
            cells = -1
        if cells == len(self.columns) and self.clock.time is not None:
            return f"the time in column {self.clock.time} is missing or not finite"
        if cells in (-1, len(self.columns)):
            return "a row is not like the first line"
        return f"a row has {cells} cell{'s' * (cells != 1)}, and the first line has {len(self.columns)}"

    def complaint(self) -> str | None:
        """What was wrong with the first line that could not be read; None where all could."""
        return self._objects.complaint()

    def _cell(self, text: bytes, is_time: bool) -> float:
        shown = text.decode("utf-8", "replace").replace('""', '"')
        if self._comma != NO_COMMA:
            shown = shown.replace(",", ".")
        return moment(shown, self.clock.per_second) if is_time else cell(shown)

    def _from_json(self) -> Block:
        times: list[float] = []
        values: list[list[float]] = []
        while self._at < len(self._lines) and len(times) < ROWS:
            stop = self._lines.index(b"\n", self._at)
            line, self._at = self._lines[self._at : stop], stop + 1
            if not line.strip():
                continue
            self.row += 1
            try:
                if len(line) > LIMIT:
                    raise MalformedError("a line is longer than 1 MiB")
                time, found = self._objects.row(parsed(line))
            except MalformedError as error:
                self.malformed += 1
                self._objects.complain(error, line)
                continue
            times.append(time if self.clock.time is not None else self.clock.made(self.row - 1))
            values.append(found)
        return Block(np.array(times), np.array(values).reshape(len(times), len(self.signals)))
