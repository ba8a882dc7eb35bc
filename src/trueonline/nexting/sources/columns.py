"""Columns of pyarrow to arrays of doubles: numbers and times, from CSV text and from Parquet."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.nexting.sources.cells import MISSING, MalformedError, cell, moment

PLAIN = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
NULLS = sorted({form(word) for word in MISSING for form in (str.lower, str.upper, str.title)} | {"NaN"})
PARTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
YEAR_1 = -62135596800.0  # pyarrow knows a year 0, ISO 8601 as Python reads it does not

Wrong = dict[int, str]  # row → why its cell cannot be used


def pyarrow(what: str) -> Any:
    """Import pyarrow with what sources use of it, or raise a ValueError that names the extra."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"{what} need pyarrow: pip install 'trueonline[streams]'") from None
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


def texts_to_floats(column: Any) -> tuple[np.ndarray, Wrong]:
    """A column of text as doubles, NaN for missing values, and what is wrong with other cells."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _trimmed(column)
    try:
        return floats(column), {}
    except pa.ArrowInvalid:  # some cells are not numbers
        plain = pc.match_substring_regex(column, PLAIN)
        values = floats(pc.if_else(plain, column, None)).copy()
        odd = np.flatnonzero(~plain.fill_null(True).to_numpy(zero_copy_only=False))
        return values, _one_by_one(values, column, odd, cell)


def texts_to_seconds(column: Any, per_second: float) -> tuple[np.ndarray, Wrong]:
    """A column of text as times: all numbers in some unit, all ISO 8601 of one form, or a mixture of all that there is."""
    import pyarrow as pa

    column = _trimmed(column)
    try:
        return floats(column) / per_second, {}
    except pa.ArrowInvalid:
        pass
    for unit in ("us", "ns"):
        for zone in (None, "UTC"):
            try:
                times = seconds(column.cast(pa.timestamp(unit, zone)))
            except pa.ArrowInvalid:
                continue
            if not (times < YEAR_1).any():
                return times, {}
    times = np.full(len(column), np.nan)
    known = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return times, _one_by_one(times, column, known, lambda text: moment(text, per_second))


def _trimmed(column: Any) -> Any:
    """The cells without spaces around them, null where they say that a value is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.utf8_trim_whitespace(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    return pc.if_else(pc.is_in(column, value_set=pa.array(NULLS, column.type)), None, column)


def _one_by_one(values: np.ndarray, column: Any, rows: np.ndarray, number: Any) -> Wrong:
    wrong = {}
    for row, text in zip(rows.tolist(), column.take(rows).to_pylist(), strict=True):
        try:
            values[row] = number(text)
        except MalformedError as error:
            wrong[row] = str(error)
    return wrong
