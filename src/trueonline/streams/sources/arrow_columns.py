"""Columns of pyarrow to arrays of doubles: numbers and times, from CSV text and from Parquet."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

from trueonline.optional import optional
from trueonline.streams.sources.cells import MISSING, MalformedError, cell, moment
from trueonline.streams.sources.clock import NUMBER, Clock

PLAIN = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
NULLS = sorted({form(word) for word in MISSING for form in (str.lower, str.upper, str.title)} | {"NaN"})
PARTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
NANOSECONDS = re.compile(r"[.,][0-9]{7,9}(?![0-9])")
ZONE = re.compile(r"[0-9:]Z$|:.*[+-][0-9:]{2,6}$")
DATE = ("%d", "%m", "%Y")
YEAR_1 = -62135596800.0  # pyarrow knows a year 0, ISO 8601 as Python reads it does not

Wrong = dict[int, str]  # row → why its cell cannot be used


def pyarrow(what: str, module: str) -> Any:
    """Import pyarrow and one of its modules."""
    pa = optional(f"{what} need pyarrow", "pyarrow", f"pyarrow.{module}", extra="streams")
    # Otherwise read_csv catches SIGINT and SIGTERM while it runs, and one that comes at its end is lost.
    pa.enable_signal_handlers(False)
    return pa


def floats(column: Any) -> np.ndarray:
    """A column of numbers as doubles, NaN for null."""
    import pyarrow as pa

    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def seconds(column: Any) -> np.ndarray:
    """A column of timestamps as seconds since the epoch, NaN for null.

    A number below 2⁵³ is a double, so that one division rounds once. A larger one is split into seconds and the rest.
    """
    import pyarrow as pa

    parts = PARTS[column.type.unit]
    whole = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    times = np.where(np.abs(whole) < 2**53, whole / parts, whole // parts + (whole % parts) / parts)
    return np.where(column.is_null().to_numpy(zero_copy_only=False), np.nan, times)


def texts_to_floats(column: Any, comma: bool = False) -> tuple[np.ndarray, Wrong, Any]:
    """A column of text as doubles, NaN for missing values, the cells that are neither, and the type that suits the column.

    With `comma`, a comma may be the decimal point.
    """
    column = _trimmed(column)
    return _numbers(column, _with_points(column, comma), 1.0, partial(cell, comma=comma))


def texts_to_seconds(column: Any, clock: Clock, comma: bool = False) -> tuple[np.ndarray, Wrong, Any]:
    """A column of text as times, the cells that are not times, and the type that suits the column.

    The first cell tells the type. A column with times of several forms, or in a form of their own, is read cell by cell, and its
    type is text. With `comma`, a comma may be the decimal point.
    """
    import pyarrow as pa

    number = partial(moment, clock=clock, comma=comma)
    column = _trimmed(column)
    if clock.form is None:
        pointed = _with_points(column, comma)
        kind = _time_type(next((each.as_py() for each in pointed if each.is_valid), "0"))
        if kind == pa.float64():
            return _numbers(column, pointed, clock.per_second, number)
        try:
            return iso_seconds(pointed.cast(kind)), {}, kind
        except pa.ArrowInvalid:
            pass
    times = np.full(len(column), np.nan) if clock.form is None else _in_form(column, clock.form)
    left = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False) & np.isnan(times))
    return times, _one_by_one(times, column, left, number), pa.string()


def _in_form(column: Any, form: str) -> np.ndarray:
    """Times in a form of their own, as pyarrow reads them. NaN for those that it would write otherwise.

    It takes more than Python does, and drops zones.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if not all(part in form for part in DATE):  # the two take different dates where there is none
            raise pa.ArrowInvalid(form)
        stamps = pc.strptime(column, format=form, unit="s", error_is_null=True)
        same = pc.equal(pc.strftime(stamps, format=form), column)
    except pa.ArrowException:
        return np.full(len(column), np.nan)
    return seconds(pc.if_else(same, stamps, None))


def _with_points(column: Any, comma: bool) -> Any:
    """A column of text with points for decimal commas."""
    import pyarrow.compute as pc

    return pc.replace_substring(column, ",", ".") if comma else column


def iso_seconds(column: Any) -> np.ndarray:
    """Timestamps that pyarrow read from text as seconds. NaN for those before the year 1, which Python does not know."""
    times = seconds(column)
    times[times < YEAR_1] = np.nan
    return times


def _time_type(text: str) -> Any:
    """The type of pyarrow for times such as this one."""
    import pyarrow as pa

    if NUMBER.fullmatch(text):
        return pa.float64()
    return pa.timestamp("ns" if NANOSECONDS.search(text) else "us", "UTC" if ZONE.search(text) else None)


def _numbers(column: Any, pointed: Any, per_second: float, number: Any) -> tuple[np.ndarray, Wrong, Any]:
    """Plain numbers by pyarrow, and other cells one by one, as they were sent. (A cast that fails would be slow.)"""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.match_substring_regex(pointed, PLAIN)
    values = floats(pc.if_else(plain, pointed, None)) / per_second
    odd = np.flatnonzero(~plain.fill_null(True).to_numpy(zero_copy_only=False))
    return values, _one_by_one(values, column, odd, number), pa.string() if len(odd) else pa.float64()


def _trimmed(column: Any) -> Any:
    """The cells without spaces around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.ascii_trim_whitespace(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)


def _one_by_one(values: np.ndarray, column: Any, rows: np.ndarray, number: Any) -> Wrong:
    wrong = {}
    for row, text in zip(rows.tolist(), column.take(rows).to_pylist(), strict=True):
        try:
            values[row] = number(text)
        except MalformedError as error:
            wrong[row] = str(error)
    return wrong
