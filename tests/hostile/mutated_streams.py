"""Mutated stream files of every format, against readers that use the standard library, or pyarrow directly."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import random
import re
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

from tests.hostile import FINE, REFUSED, PromiseError
from tests.hostile.changed_bytes import change
from trueonline.cli import main
from trueonline.streams.sources import open_source

PROMISE = "A mutated CSV, JSON lines, Parquet or gzip file is refused, or gives the numbers that another reader gives."
TRIALS = 8_000
SIGNALS = ("a", "b")
SNIPPETS = [
    b'"', b'""', b",", b";", b"\r", b"\n", b"\r\n", b"\n\n", b"\0", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"nan", b"-nan(ind)",
    b"NA", b"none", b"inf", b"-Infinity", b"1e999", b"1e-999", b"e5", b"1_0", b"0x1F", b" ", b"\t", b"'", b".", b"-", b"+",
    b"9" * 400, "٣".encode(), b"1,5", b"true", b"null", b"[", b"]", b"{", b"}", b":", b'\\u0031', b"time", b"a",
    b"T", b"Z", b"+02:00", b"00", b"#", b"\n#", b"sep=;\n", b"\xe9", b"\xa0",
]  # fmt: skip

BOM, NO_HEADER = b"\xef\xbb\xbf", re.compile(r'#.*|"?sep=[,;:|~^&!\t]"?', re.IGNORECASE)

DAYS = ("0000-00-00", "00000000")
ZONES = ("", "Z", *(f"{sign}{zone}" for sign in "+-" for zone in ("00", "0000", "00:00", "000000", "00:00:00")))
TO_SECONDS = {clock + zone for clock in ("000000", "00:00:00") for zone in ZONES}
CLOCKS = (TO_SECONDS | {clock + zone for clock in ("00", "0000", "00:00") for zone in ZONES} | {""}, TO_SECONDS)

Rows = list[tuple[float, float, float]]


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    form = rng.choice(["csv", "csv", "json", "parquet", "gzip"])
    path = folder / {"csv": "log.csv", "json": "log.jsonl", "parquet": "log.parquet", "gzip": "log.csv.gz"}[form]
    if form == "parquet":
        write_parquet(rng, path)
        reference: Callable[[Path], tuple[Rows, int]] = read_parquet
    else:
        text = mutated(rng, json_text(rng) if form == "json" else csv_text(rng))
        if form == "gzip":
            text = (
                gzip.compress(text, 1) if rng.random() < 0.7 else gzip.compress(text[:99], 1) + gzip.compress(text[99:])
            )
            text = change(rng, text) if rng.random() < 0.8 else text
        path.write_bytes(text)
        reference = read_text
    try:
        expected: tuple[Rows, int] | None = reference(path)
    except (ValueError, OSError, EOFError, KeyError, csv.Error, zlib.error, pa.ArrowException):
        expected = None
    if rng.random() < 0.1 and (result := command(path, "--json")).exit_code == 0:
        json.loads(result.stdout)
    try:
        with open_source(path, SIGNALS, time="time") as source:
            blocks = list(source)
            counted = source.counters()
    except ValueError as error:
        if not str(error).strip():
            raise PromiseError("the refusal has no message") from error
        if expected is not None and form in ("csv", "json"):
            raise PromiseError(f"refused although its first line is sound: {error}") from None
        return REFUSED
    if expected is None:
        if counted.get("truncated"):
            return REFUSED
        raise PromiseError("read although another reader refuses it")
    found = np.array([[t, *row] for block in blocks for t, row in zip(block.times, block.values, strict=True)])
    wanted = np.array(expected[0])
    if found.size != wanted.size or not np.array_equal(found.ravel(), wanted.ravel(), equal_nan=True):
        raise PromiseError(_difference(found, wanted))
    if counted["malformed"] != expected[1]:
        raise PromiseError(f"{counted['malformed']} rows counted as malformed, and there are {expected[1]}")
    return FINE


def _difference(found: np.ndarray, wanted: np.ndarray) -> str:
    for i, (a, b) in enumerate(zip(found, wanted, strict=False)):
        if not np.array_equal(a, b, equal_nan=True):
            return f"row {i} is {a.tolist()}, and another reader says {b.tolist()}"
    return f"{len(found)} rows, and another reader says {len(wanted)}"


def command(path: Path, *more: str) -> Result:
    """Predict from a file. The command ends well, or with one line that says why."""
    result = CliRunner().invoke(
        main, ["predict", str(path), "--time", "time", "--target", "a", "--discount", "0.5", *more]
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise PromiseError("the command ended with a traceback") from result.exception
    return result


# --- Files ----------------------------------------------------------------------------------------


def numbers(rng: random.Random) -> list[list[float]]:
    rows = rng.choice([3, 20, 40, 200])
    return [[1e9 + i / 4, *(round(rng.gauss(0, 1), rng.randrange(1, 16)) for _ in SIGNALS)] for i in range(rows)]


def csv_text(rng: random.Random) -> bytes:
    separator, dates, quoted = rng.choice(",;\t"), rng.random() < 0.3, rng.random() < 0.3
    lines = [separator.join(["time", "note", "b", "a"])]
    for time, a, b in numbers(rng):
        stamp = datetime.fromtimestamp(time, UTC).isoformat() if dates else repr(time)
        note = f'"a {separator} ""b"""' if quoted else "x"
        lines.append(
            separator.join([stamp, note, repr(b), rng.choice([repr(a), repr(a), "", f'"{a}"' if quoted else "NA"])])
        )
    return "".join(line + "\n" for line in lines).encode()


def json_text(rng: random.Random) -> bytes:
    rows = [{"time": t, "a": a, "b": rng.choice([b, None, str(b), int(b)])} for t, a, b in numbers(rng)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def mutated(rng: random.Random, text: bytes) -> bytes:
    """A text with some snippets put in or over it, and perhaps other changes."""
    data = bytearray(text)
    for _ in range(rng.choice([0, 1, 2, 5, 20])):
        at = rng.randrange(len(data))
        data[at : at + rng.choice([0, 0, 1, 3])] = rng.choice(SNIPPETS)
    return change(rng, bytes(data)) if rng.random() < 0.3 else bytes(data)


def write_parquet(rng: random.Random, path: Path) -> None:
    times, a, b = zip(*numbers(rng), strict=True)
    kinds = [pa.float64(), pa.float32(), pa.float16(), pa.int32(), pa.uint8(), pa.decimal128(20, 3)]
    columns = [pa.array(times)]
    for values in (a, b):
        held = pa.array([None if rng.random() < 0.1 else round(abs(x)) for x in values], pa.int64())
        columns.append(pa.array(values) if rng.random() < 0.4 else held.cast(pa.int8()).cast(rng.choice(kinds)))
    if rng.random() < 0.3:
        columns[0] = pa.array([int(1e6 * t) for t in times], pa.timestamp("us"))
    compression, size = rng.choice(["none", "snappy", "zstd"]), rng.choice([10, 1000])
    options = {
        "compression": compression,
        "row_group_size": size,
        "write_page_checksum": True,
    }  # others hide their damage
    pq.write_table(pa.table(columns, ["time", *SIGNALS]), path, **options)
    path.write_bytes(change(rng, path.read_bytes()))


# --- Other readers --------------------------------------------------------------------------------


def read_parquet(path: Path) -> tuple[Rows, int]:
    table = pq.ParquetFile(path, page_checksum_verification=True).read(["time", *SIGNALS], use_threads=False)
    table.validate(full=True)
    time = table["time"]
    if pa.types.is_timestamp(time.type):
        parts = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[time.type.unit]
        times = [math.nan if t is None else t / parts for t in time.cast(pa.int64()).to_pylist()]
    else:
        times = [math.nan if t is None else float(t) for t in time.to_pylist()]
    columns = [[math.nan if x is None else float(x) for x in table[name].to_pylist()] for name in SIGNALS]
    rows = [row for row in zip(times, *columns, strict=True) if math.isfinite(row[0])]
    return rows, len(times) - len(rows)


def read_text(path: Path) -> tuple[Rows, int]:
    """The rows of CSV or JSON lines, plain or gzipped, and how many cannot be read."""
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("UTF-16")
    lines = data.split(b"\n")
    marks, first = ",;\t", ""
    while lines and (not (first := decoded(lines[0].removeprefix(BOM)).strip(" \r")) or NO_HEADER.fullmatch(first)):
        marks = first.strip('"')[-1] if first and first[0] != "#" else marks
        del lines[0]
    if not lines:
        raise ValueError("empty")
    if first.startswith("{"):
        found = [json_row(line) for line in lines if line.strip()]
    else:
        separator, names = header(first, marks)
        if lines[-1].rstrip(b" \r").endswith(separator.encode()):
            del lines[-1]  # it breaks off
        texts = [decoded(each).replace("\ufeff", " ") for each in records(b"\n".join(lines[1:]), separator.encode())]
        found = [csv_row(text.removesuffix("\r").replace("\r", " "), separator, names) for text in texts]
    rows = [row for row in found if row is not None]
    return rows, len(found) - len(rows)


def records(data: bytes, separator: bytes) -> list[bytes]:
    """The records of CSV (RFC 4180), byte by byte. One at the end whose quote is not closed is left out."""
    found, begin, state = [], 0, "begin"  # of a cell; "quoted", "closed" after a quote that may be doubled, and "rest"
    for at in range(len(data)):
        byte = data[at : at + 1]
        comment = data[begin : begin + 1] == b"#"
        if byte == b"\n" and (state != "quoted" or comment):
            found.append(data[begin:at])
            begin, state = at + 1, "begin"
        elif state in ("begin", "closed") and byte == b'"':
            state = "quoted"
        elif state == "quoted":
            state = "closed" if byte == b'"' else state
        else:
            state = "begin" if byte == separator else "rest"
    if state != "quoted":
        found.append(data[begin:])
    return [each for each in found if each.strip(b" \r") and each[:1] != b"#"]


def decoded(line: bytes) -> str:
    """UTF-8, or else Latin-1 as Windows has it."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        whole = all(byte not in b"\x81\x8d\x8f\x90\x9d" for byte in line)
        return line.decode("cp1252" if whole else "latin-1")


def header(first: str, marks: str) -> tuple[str, list[str]]:
    ways = {mark: [name.strip() for name in next(csv.reader([first], delimiter=mark))] for mark in marks}
    mark = max(ways, key=lambda mark: (sum(each in ways[mark] for each in ("time", *SIGNALS)), len(ways[mark])))
    if any(ways[mark].count(name) != 1 for name in ("time", *SIGNALS)):
        raise ValueError("a column is missing, or there twice")
    return mark, ways[mark]


def csv_row(line: str, separator: str, names: list[str]) -> tuple[float, float, float] | None:
    lines = list(csv.reader([*io.StringIO(line), "next"], delimiter=separator))
    if len(lines) != 2 or len(lines[0]) != len(names):  # a quote is not closed, or a cell is missing
        return None
    if "\n" in line and re.search(
        rf'"[^"{separator}\n][^{separator}"\n]*', re.sub(rf'(?:(?<=^)|(?<={separator}))"(?:[^"]|"")*"', '"', line)
    ):
        return None  # text follows a closed quote
    cells = dict(zip(names, lines[0], strict=True))
    point = str.maketrans(",", ".") if separator == ";" else {}
    return row(*(cells[name].translate(point) for name in ("time", *SIGNALS)))


def json_row(line: bytes) -> tuple[float, float, float] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("time") is None or not value.keys() & set(SIGNALS):
        return None
    parts = [value.get(name) for name in ("time", *SIGNALS)]
    if any(isinstance(part, bool | list | dict) for part in parts):
        return None
    try:
        return row(*(part if isinstance(part, str) else "" if part is None else repr(float(part)) for part in parts))
    except OverflowError:
        return None


def row(*cells: str) -> tuple[float, float, float] | None:
    try:
        stamp, *values = (number(cell.strip(), place == 0) for place, cell in enumerate(cells))
    except ValueError:
        return None
    return (stamp, *values) if math.isfinite(stamp) else None  # type: ignore[return-value]


def number(text: str, is_time: bool) -> float:
    if text.lower() in ("", "na", "n/a", "null", "none") or re.fullmatch(r"(?i)[+-]?nan(\([0-9a-z_]*\))?", text):
        return math.nan
    try:
        if text.isascii() and "_" not in text:
            return float(text)
    except ValueError:
        pass
    if not is_time:
        raise ValueError("no number")
    parts = re.fullmatch(r"([^.,]{14,18}[0-9])[.,]([0-9]+)(|Z|[+-].*)", text, re.IGNORECASE)
    if parts is None and re.search(r"[.,]", text):
        raise ValueError("no time")
    plain, digits = (parts[1] + parts[3], parts[2]) if parts else (text, "0")
    shape = re.sub("[0-9]", "0", plain.upper())  # datetime drops what follows a clock and stands before a zone
    ways = [shape[len(day) :] for day in DAYS if shape.startswith(day)]
    if not any(way[:1] != "0" and way[1:] in CLOCKS[parts is not None] for way in ways):
        raise ValueError("no time")
    time = datetime.fromisoformat(plain.upper())  # without the digits, of which it would drop those after the sixth
    whole = ((time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
    return (whole * 10 ** len(digits) + int(digits) * 10**6) / 10 ** (6 + len(digits))
