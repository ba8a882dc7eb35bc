"""Rows of CSV to blocks, by pyarrow.

The first line names the columns, in any order. Cells are separated by commas, semicolons or tabs. The separator is the one
that gives the columns asked for, unless a line `sep=;` before the first one names it, as Excel writes it. Between semicolons,
a comma may stand for the decimal point. A cell may be quoted and then hold separators and line breaks (RFC 4180). Empty cells
and NA, N/A, nan, null and none, in any case, are missing values. Blank lines and lines that begin with # are nothing. Bytes that
are not UTF-8 are taken as Latin-1.

A row is *malformed*, skipped and counted if it has too few or too many cells, if a cell asked for is not a number, or if its
time is missing or not finite. A row over several lines is also malformed if text follows a closed quote, because that quote
probably opened another cell. No part of a malformed row is read as a row.

pyarrow refuses a whole text for one bad cell. Such a text is read again with all columns as text, and each column is
converted by itself. A column with cells that pyarrow refuses is read as text from then on, until it has none.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from trueonline.streams.sources import arrow_columns as arrow
from trueonline.streams.sources.cells import MalformedError, cell, moment
from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.records import line_ends
from trueonline.streams.sources.sample import BLOCK_ROWS, Block, check_columns, shown
from trueonline.words import count

SEPARATORS = ",;\t"
FEW_ROWS = 32  # so few are read faster without pyarrow, which takes 0.2 ms for the first one
MANY_LINES = 100  # in a row: a quote may be missing

Complain = Callable[[object, object], None]
Problems = dict[int, tuple[object, object]]  # number of a row → what is wrong with it, and what to show of it


class CsvRows:
    """The rows below a first line, `header`. `complain` is called with the first malformed row of each block.

    `separator` is the one that the file names, "" if it names none. `latin` says whether any row was not UTF-8.
    """

    def __init__(
        self, name: str, header: str, signals: tuple[str, ...], clock: Clock, complain: Complain, separator: str = ""
    ) -> None:
        self._pa = arrow.pyarrow("CSV files", "csv")
        self._name, self._signals, self._clock, self._complain = name, signals, clock, complain
        self._wanted = [*signals, *([] if clock.time is None else [clock.time])]
        self.separator, self.columns = understood(name, header, self._wanted, separator)
        self.latin = False
        self.spoiled = ""  # the first row over several lines that cannot be used, or is very long
        self._places = [self.columns.index(each) for each in self._wanted]
        self._names = [str(place) for place in range(len(self.columns))]  # for pyarrow: names in the file may repeat
        mark = re.escape(self.separator)
        one_cell = rf'(?:"(?:[^"]|"")*+"|(?!")[^{mark}\n]*+)'
        self._strict = re.compile(rf"{one_cell}(?:{mark}{one_cell})*+\n")
        self._columns = np.empty(
            (len(self._wanted), BLOCK_ROWS)
        )  # used again and again: fresh memory takes longer than copying
        self._kinds = [self._pa.float64()] * len(self._wanted)  # as what each column is read
        if clock.form is not None:
            self._kinds[-1] = self._pa.string()
        self._label = -1 if clock.labels is None else len(signals) - 1  # the place of the column of names
        if clock.labels is not None:
            self._kinds[self._label] = self._pa.string()

    def read(self, text: bytes, ends: np.ndarray, first: int) -> tuple[Block, int]:
        """The samples in rows that end at `ends`, of which `first` is the number of the first one, and the number of rows."""
        rows = _Rows(text, ends)
        self.latin |= rows.latin
        if not len(rows):
            return Block(np.empty(0), np.empty((0, len(self._signals)))), 0
        problems: Problems = {}
        few = len(rows) <= FEW_ROWS and b'"' not in rows.text
        numbers, matrix = (self._split if few else self._parsed)(rows, problems)
        size, good = len(self._signals), np.ones(len(numbers), np.bool_)
        if problems:
            good = ~np.isin(numbers, list(problems))
        times = self._clock.made(first + numbers) if self._clock.time is None else matrix[:, size]
        if self._clock.time is not None and not np.isfinite(times[good]).all():
            timeless = numbers[good & ~np.isfinite(times)]
            why = f"the time in column {self._clock.time} is missing or not finite"
            problems |= {number: (why, rows[number]) for number in timeless.tolist()[:1]}
            good &= np.isfinite(times)
        if problems:
            self._complain(*problems[min(problems)])
        self._look_for_spoiled(rows, problems, first)
        if self._clock.style is None and good.any():
            self._note(rows[numbers[good][0]])
        if good.all():
            return Block(times.copy(), matrix[:, :size].copy(), self._clock.offset), len(rows)
        return Block(times[good], np.ascontiguousarray(matrix[good, :size]), self._clock.offset), len(rows)

    def _look_for_spoiled(self, rows: _Rows, problems: Problems, first: int) -> None:
        """Keep the first row whose quote probably took lines that were rows."""
        for number, lines in rows.over_several_lines():
            if not self.spoiled and (number in problems or lines > MANY_LINES):
                self.spoiled = (
                    f"row {first + number + 1:,} of {self._name} has {lines:,} lines, because a quote opens there; is one missing? "
                    f"{shown(rows[number])}"
                )

    def _note(self, row: str) -> None:
        """Let the clock see how the time of a row is written."""
        stamp = _cells(row, self.separator)[self._places[-1]]
        self._clock.note(stamp.replace(",", ".") if self._has_commas(len(self._signals)) else stamp)

    # --- A few rows, without pyarrow ---

    def _split(self, rows: _Rows, problems: Problems) -> tuple[np.ndarray, np.ndarray]:
        matrix = np.empty((len(rows), len(self._wanted)))
        for number, row in enumerate(rows.text.decode().split("\n")[: len(rows)]):
            cells = row.split(self.separator)
            if len(cells) != len(self.columns):
                problems[number] = self._miscounted(len(cells)), row
                continue
            for j, place in enumerate(self._places):
                comma = self._has_commas(j)
                try:
                    if self._clock.labels is not None and j == self._label:
                        matrix[number, j] = self._clock.labels.code(cells[place])
                    else:
                        is_time = j == len(self._signals)
                        matrix[number, j] = (
                            moment(cells[place], self._clock, comma) if is_time else cell(cells[place], comma)
                        )
                except MalformedError as error:
                    problems.setdefault(number, (self._wanted[j], str(error)))
        return np.arange(len(rows)), matrix

    # --- Many rows ---

    def _parsed(self, rows: _Rows, problems: Problems) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the rows that have all their cells, and those asked for as a matrix."""
        table, bad = self._table(rows.text)
        problems |= {number: (self._miscounted(cells), row) for number, (cells, row) in bad.items()}
        for number, _ in rows.over_several_lines():
            if not self._strict.fullmatch(rows[number]):
                problems[number] = "text follows a closed quote", rows[number]
        numbers = np.delete(np.arange(len(rows)), list(bad))
        matrix = self._columns[:, : len(numbers)].T
        for j, place in enumerate(self._places):
            column = table.column(self._names[place])
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
        """The table that pyarrow makes of rows, and the rows with too few or too many cells."""
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
        table = pa.csv.read_csv(
            pa.BufferReader(text),
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=self._names),
            parse_options=pa.csv.ParseOptions(
                delimiter=self.separator, newlines_in_values=True, invalid_row_handler=skip
            ),
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
        if self._clock.labels is not None and j == self._label:
            return self._clock.labels.codes(column.to_pylist())
        if j == len(self._signals):
            values, wrong, kind = arrow.texts_to_seconds(column, self._clock, self._has_commas(j))
        else:
            values, wrong, kind = arrow.texts_to_floats(column, self._has_commas(j))
        mixed = self.separator == ";" and kind == self._pa.float64()  # perhaps commas and points: text suits both
        self._kinds[j] = self._pa.string() if mixed else kind
        return values, wrong

    def _has_commas(self, j: int) -> bool:
        """Whether commas of a column may be decimal points. A form of times says itself where commas are."""
        return self.separator == ";" and (j < len(self._signals) or self._clock.form is None)

    def _miscounted(self, cells: int) -> str:
        return f"a row has {count(cells, 'cell')}, and the first line has {len(self.columns)}"


def decoded(data: bytes) -> tuple[str, bool]:
    """Bytes as text, and whether they were taken as Latin-1, in Windows' variety, because they are not UTF-8."""
    try:
        return data.decode(), False
    except UnicodeDecodeError:
        try:
            return data.decode("cp1252"), True
        except UnicodeDecodeError:
            return data.decode("latin-1"), True


class _Rows:
    """Rows as pyarrow takes them, valid UTF-8 with line feeds only. Blank lines and comments are left out.

    `latin` says whether they were not UTF-8.
    """

    def __init__(self, text: bytes, ends: np.ndarray) -> None:
        firsts = np.frombuffer(text, np.uint8)[np.concatenate([[0], ends[:-1]])] if len(ends) else ends
        if ((firsts <= ord(" ")) | (firsts == ord("#"))).any():
            rows = [text[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
            rows = [row for row in rows if row.strip(b" \r\n") and not row.startswith(b"#")]
            text, ends = b"".join(rows), np.cumsum([len(row) for row in rows], dtype=np.int64)
        self.latin = False
        self._lines = np.arange(1, len(ends) + 1)  # up to the end of each row
        if b'"' in text:
            self._lines = np.searchsorted(line_ends(text), ends, side="right")
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b" ")
        if not text.isascii():
            plain, self.latin = decoded(text)
            if self.latin:  # line by line, so that no line depends on others
                plain = "\n".join(decoded(line)[0] for line in text.split(b"\n"))
            text = plain.replace("\ufeff", " ").encode()
        self.text = text

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, number: int) -> str:
        ends = line_ends(self.text)[self._lines - 1]
        return self.text[ends[number - 1] if number else 0 : ends[number]].decode()

    def over_several_lines(self) -> list[tuple[int, int]]:
        """The rows that have more than one line, each with the number of its lines."""
        sizes = np.diff(self._lines, prepend=0)
        return [(number, int(sizes[number])) for number in np.flatnonzero(sizes > 1).tolist()]


def _cells(header: str, separator: str) -> list[str]:
    """The cells of a first line. The csv module refuses a long one in which the separator does not occur."""
    try:
        return next(csv.reader([header], delimiter=separator))
    except csv.Error:
        if '"' in header or "\r" in header:
            raise
        return header.split(separator)


def understood(name: str, header: str, wanted: list[str], separator: str = "") -> tuple[str, tuple[str, ...]]:
    """The separator and the columns of a first line: those that give most of what is wanted."""
    ways, reason = [], None
    for mark in separator or SEPARATORS:
        try:
            ways.append((mark, tuple(each.strip() for each in _cells(header, mark))))
        except csv.Error as error:
            reason = error
    if not ways:
        raise ValueError(f"the first line of {name} must name the columns, but it is not CSV: {reason}")
    mark, columns = max(ways, key=lambda way: (sum(each in way[1] for each in wanted), len(way[1])))
    check_columns(name, columns, wanted, "the first line must name them")
    return mark, columns
