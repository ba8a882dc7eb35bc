"""Lines of CSV to blocks, by pyarrow.

The first line names the columns, in any order. Cells are separated by commas, semicolons or tabs. The separator is the one
that gives the columns asked for. Between semicolons, a comma may stand for the decimal point. A cell may be quoted and then
hold separators, but a line break always ends the row, so that a lost quote cannot swallow the rest (a departure from RFC
4180). Empty cells and NA, N/A, nan, null and none, in any case, are missing values. Blank lines are nothing.

A row is *malformed*, skipped and counted if it has too few or too many cells, if a cell asked for is not a number, if its
time is missing or not finite, or if a quote is not closed.

pyarrow refuses a whole text for one bad cell. Such a text is read again with all columns as text, and each column is
converted by itself. A column with cells that pyarrow refuses is read as text from then on, until it has none.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import numpy as np

from trueonline.nexting.sources import arrow_columns as arrow
from trueonline.nexting.sources.cells import MalformedError, cell, moment
from trueonline.nexting.sources.sample import ROWS, Block, Clock, check_columns

SEPARATORS = (",", ";", "\t")
FEW = 32  # lines: so few are read faster without pyarrow, which takes 0.2 ms for the first one

Complain = Callable[[object, object], None]
Problems = dict[int, tuple[object, object]]  # number of a row → what is wrong with it, and what to show of it


class CsvRows:
    """The rows below a first line, `header`. `complain` is told about the first row that is malformed."""

    def __init__(self, name: str, header: str, signals: tuple[str, ...], clock: Clock, complain: Complain) -> None:
        self._pa = arrow.pyarrow("CSV files", "csv")
        self._signals, self._clock, self._complain = signals, clock, complain
        self._wanted = [*signals, *([] if clock.time is None else [clock.time])]
        self.separator, self.columns = _understood(name, header, self._wanted)
        self._places = [self.columns.index(each) for each in self._wanted]
        self._names = [str(place) for place in range(len(self.columns))]  # for pyarrow: names in the file may repeat
        self._after = (self.separator * (len(self.columns) - 1) or '""').encode() + b"\n"  # a row of missing values
        self._columns = np.empty(
            (len(self._wanted), ROWS)
        )  # used again and again: fresh memory takes longer than copying
        self._kinds = [self._pa.float64()] * len(self._wanted)  # as what each column is read

    def read(self, text: bytes, ends: np.ndarray, first: int) -> tuple[Block, int]:
        """The samples in these lines, of which `first` is the number of the first row, and the number of rows."""
        text, rows = _rows_only(text, ends)
        if not rows:
            return Block(np.empty(0), np.empty((0, len(self._signals)))), 0
        problems: Problems = {}
        few = rows <= FEW and b'"' not in text
        numbers, matrix = (self._split if few else self._parsed)(text, rows, problems)
        size, good = len(self._signals), np.ones(len(numbers), np.bool_)
        if problems:
            good = ~np.isin(numbers, list(problems))
        times = self._clock.made(first + numbers) if self._clock.time is None else matrix[:, size]
        if self._clock.time is not None and not np.isfinite(times[good]).all():
            timeless = numbers[good & ~np.isfinite(times)]
            why = f"the time in column {self._clock.time} is missing or not finite"
            problems |= {number: (why, text.split(b"\n")[number]) for number in timeless.tolist()[:1]}
            good &= np.isfinite(times)
        if problems:
            self._complain(*problems[min(problems)])
        if good.all():
            return Block(times.copy(), matrix[:, :size].copy()), rows
        return Block(times[good], np.ascontiguousarray(matrix[good, :size])), rows

    # --- A few lines, without pyarrow ---

    def _split(self, text: bytes, rows: int, problems: Problems) -> tuple[np.ndarray, np.ndarray]:
        matrix, per_second = np.empty((rows, len(self._wanted))), self._clock.per_second
        for number, line in enumerate(text.decode().split("\n")[:rows]):
            cells = line.split(self.separator)
            if len(cells) != len(self.columns):
                problems[number] = self._miscounted(len(cells)), line
                continue
            for j, place in enumerate(self._places):
                shown = cells[place].replace(",", ".") if self.separator == ";" else cells[place]
                try:
                    matrix[number, j] = cell(shown) if j < len(self._signals) else moment(shown, per_second)
                except MalformedError as error:
                    problems.setdefault(number, (self._wanted[j], str(error)))
        return np.arange(rows), matrix

    # --- Many lines ---

    def _parsed(self, text: bytes, rows: int, problems: Problems) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the rows that have all their cells, and those asked for as a matrix."""
        numbers = np.arange(rows)
        table, bad = self._table(text)
        if table.num_rows + len(bad) != rows + (b'"' in text):  # a quote that was not closed swallowed the lines after it
            lines = text.split(b"\n")
            closed = np.array([b'"' not in line or self._closed(line.decode()) for line in lines[:rows]])
            problems |= {n: ("a quote is not closed", lines[n]) for n in numbers[~closed].tolist()}
            numbers = numbers[closed]
            if not len(numbers):
                return numbers, np.empty((0, len(self._wanted)))
            table, bad = self._table(b"".join(lines[n] + b"\n" for n in numbers))
        problems |= {int(numbers[k]): (self._miscounted(cells), line) for k, (cells, line) in bad.items()}
        numbers = np.delete(numbers, list(bad))
        matrix = self._columns[:, : len(numbers)].T
        for j, place in enumerate(self._places):
            column = table.column(self._names[place])[: len(numbers)]
            if self._pa.types.is_floating(column.type):
                matrix[:, j] = column.to_numpy()
                matrix[:, j] /= self._clock.per_second if j == len(self._signals) else 1.0
            elif self._pa.types.is_timestamp(column.type):
                matrix[:, j] = arrow.iso_seconds(column)
            else:
                matrix[:, j], wrong = self._converted(column, j)
                problems |= {
                    n: (self._wanted[j], why) for k, why in wrong.items() if (n := int(numbers[k])) not in problems
                }
        return numbers, matrix

    def _table(self, text: bytes) -> tuple[Any, dict[int, tuple[int, str]]]:
        """What pyarrow makes of lines and one more, and the rows with too few or too many cells."""
        try:
            return self._read(text, self._kinds)
        except self._pa.ArrowInvalid:
            return self._read(text, [self._pa.string()] * len(self._wanted))

    def _read(self, text: bytes, kinds: list[Any]) -> tuple[Any, dict[int, tuple[int, str]]]:
        pa, bad = self._pa, {}

        def skip(row: Any) -> str:
            bad[row.number - 1] = row.actual_columns, row.text
            return "skip"

        names = [self._names[place] for place in self._places]
        if b'"' in text:  # a quote that is not closed swallows the row after it, and is noticed
            text += self._after
        table = pa.csv.read_csv(
            pa.BufferReader(text),
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=self._names),
            parse_options=pa.csv.ParseOptions(delimiter=self.separator, invalid_row_handler=skip),
            convert_options=pa.csv.ConvertOptions(
                include_columns=names,
                column_types=dict(zip(names, kinds, strict=True)),
                null_values=arrow.NULLS,
                strings_can_be_null=True,
                decimal_point="," if self.separator == ";" and b"," in text else ".",
            ),
        )
        return table, bad

    def _converted(self, column: Any, j: int) -> tuple[np.ndarray, arrow.Wrong]:
        """A column of text as numbers or times, and a note as what it is to be read from now on."""
        if self.separator == ";":
            column = arrow.with_points(column)
        if j == len(self._signals):
            values, wrong, kind = arrow.texts_to_seconds(column, self._clock.per_second)
        else:
            values, wrong, kind = arrow.texts_to_floats(column)
        mixed = self.separator == ";" and kind == self._pa.float64()  # perhaps commas and points: text suits both
        self._kinds[j] = self._pa.string() if mixed else kind
        return values, wrong

    def _closed(self, line: str) -> bool:
        """Whether each quote that opens a cell is closed in the same line."""
        try:
            return len(list(csv.reader([line, "next"], delimiter=self.separator))) == 2
        except csv.Error:  # a cell that is longer than the module takes
            return False

    def _miscounted(self, cells: int) -> str:
        return f"a row has {cells} cell{'s' * (cells != 1)}, and the first line has {len(self.columns)}"


def _rows_only(text: bytes, ends: np.ndarray) -> tuple[bytes, int]:
    """The lines that are not blank, as pyarrow takes them: valid UTF-8, with line feeds only. And how many they are."""
    firsts = np.frombuffer(text, np.uint8)[np.concatenate([[0], ends[:-1]])] if len(ends) else ends
    rows = len(ends)
    if (firsts <= ord(" ")).any():
        lines = [line for line in text.split(b"\n")[:-1] if line.strip(b" \r")]
        text, rows = b"".join(line + b"\n" for line in lines), len(lines)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    if not text.isascii():
        text = text.decode("utf-8", "replace").replace("\ufeff", "").encode()
    return text, rows


def _cells(header: str, separator: str) -> list[str]:
    """The cells of a first line. The csv module refuses a long one in which the separator does not occur."""
    try:
        return next(csv.reader([header], delimiter=separator))
    except csv.Error:
        if '"' in header or "\r" in header:
            raise
        return header.split(separator)


def _understood(name: str, header: str, wanted: list[str]) -> tuple[str, tuple[str, ...]]:
    """The separator and the columns of a first line: those that give most of what is wanted."""
    try:
        ways = [tuple(each.strip() for each in _cells(header, mark)) for mark in SEPARATORS]
    except csv.Error as error:
        raise ValueError(f"the first line of {name} must name the columns, but it is not CSV: {error}") from None
    best = max(range(len(SEPARATORS)), key=lambda i: (sum(each in ways[i] for each in wanted), len(ways[i])))
    check_columns(name, ways[best], wanted, "the first line must name them")
    return SEPARATORS[best], ways[best]
