"""Which columns of a file hold numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from typing import Any

from trueonline.streams.sources.arrow_columns import pyarrow
from trueonline.streams.sources.cells import MalformedError
from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.gzip_file import open_bytes
from trueonline.streams.sources.json_rows import json_number, parsed
from trueonline.streams.sources.records import CHUNK_BYTES
from trueonline.streams.sources.sample import opening
from trueonline.streams.sources.text import Text


def text_columns(path: str, time: str | None) -> list[str]:
    """The columns of CSV, or the keys of JSON lines, whose first cells are numbers or missing, and not all missing."""
    text = Text(path, (), Clock(time, None if time else 1.0))
    with opening(path):
        file = open_bytes(path)
    try:
        while not (text.started and text.has_records) and (data := file.read(CHUNK_BYTES)):
            text.feed(data)
            text.look()
    finally:
        file.close()
    if not text.has_records:
        text.finish()
        text.look()
    records = text.next_records()
    rows = _objects(records) if text.columns is None else _cells(records, text.columns, text.separator)
    numeric: dict[str, bool] = {}  # whether a number was seen, until something else is
    other: set[str] = set()
    for name, value in rows:
        try:
            numeric[name] = not math.isnan(json_number(value)) or numeric.get(name, False)
        except MalformedError:
            other.add(name)
    return [name for name, seen in numeric.items() if seen and name and name not in other]


def parquet_columns(path: str) -> list[str]:
    """The columns of a Parquet file whose type is a number."""
    pa: Any = pyarrow("Parquet files", "parquet")
    with opening(path), open(path, "rb"):
        pass
    try:
        schema = pa.parquet.read_schema(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path} is not a Parquet file, or is truncated ({error})") from None
    types = pa.types
    return [
        each.name
        for each in schema
        if types.is_integer(each.type) or types.is_floating(each.type) or types.is_decimal(each.type)
    ]


def _cells(records: list[str], columns: list[str], separator: str) -> Iterator[tuple[str, str]]:
    """The cells of rows that have all of them, each with its column."""
    for record in records:
        try:
            row = next(csv.reader([record], delimiter=separator), [])
        except csv.Error:
            continue
        if len(row) == len(columns) and not record.startswith("#"):
            for name, shown in zip(columns, row, strict=True):
                yield name, shown.replace(",", ".") if separator == ";" else shown


def _objects(records: list[str]) -> Iterator[tuple[str, Any]]:
    """The values of objects, each with its key."""
    for record in records:
        try:
            row = parsed(record.encode())
        except MalformedError:
            continue
        items: Iterable[tuple[str, Any]] = row.items() if isinstance(row, dict) else ()
        yield from items
