"""Numbers, counts, durations, sizes and lists, as text for people. Every message, table and report writes them this way."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
TIME_UNITS = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3}
BYTE_UNITS = {"GB": 1e9, "MB": 1e6, "kB": 1e3}
MISSING = "–"


def printable(text: str) -> str:
    """A text without the characters that steer a terminal, such as escapes and changes of direction. Line breaks stay.

    >>> printable("grip\x1b[2J (N)")
    'grip\ufffd[2J (N)'
    """
    return UNPRINTABLE.sub("\ufffd", text)


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many digits. No digit before the point is dropped, and no zero ends it. A missing number is a dash.

    >>> number(17135.2), number(83.4), number(0.00012345), number(3.2e-7), number(2.0, 2), number(None)
    ('17135', '83.4', '0.0001234', '3.2e-07', '2', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    size = abs(value)
    if size == 0.0 or not 1e-4 <= size < 1e15:
        return f"{value:.{digits}g}"
    places = max(digits - 1 - math.floor(math.log10(size)), 0)
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def shortest(value: float) -> str:
    """The shortest text that reads back as the same number.

    >>> shortest(4.0), shortest(0.1234567)
    ('4', '0.1234567')
    """
    return repr(float(value)).removesuffix(".0")


def cell(value: Any) -> str:
    """A value as the cell of a table.

    >>> [cell(value) for value in (0.123456, 12000, None, "gtd")]
    ['0.1235', '12,000', '–', 'gtd']
    """
    if value is None:
        return MISSING
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def amount(value: float, unit: str) -> str:
    """A large number of things, short.

    >>> amount(12_300_000, "steps"), amount(2_500, "frames"), amount(45, "tasks")
    ('12 M steps', '2.5 k frames', '45 tasks')
    """
    prefix, factor = next((pair for pair in (("M ", 1e6), ("k ", 1e3)) if value >= pair[1]), ("", 1.0))
    scaled = value / factor
    return f"{scaled:.{0 if scaled >= 10.0 or float(scaled).is_integer() else 1}f} {prefix}{unit}"


def count(things: int, noun: str) -> str:
    """How many things there are. `noun` is the name of one of them.

    >>> count(1, "run"), count(0, "run"), count(12_000, "row")
    ('1 run', '0 runs', '12,000 rows')
    """
    return f"{things:,} {noun}{'' if things == 1 else 's'}"


def listed(items: Iterable[Any], last: str = "and", most: int | None = None) -> str:
    """A list in a sentence.

    Parameters
    ----------
    items : iterable
        The items.
    last : str
        The word before the last item.
    most : int, optional
        Name only so many of them, and count the others.

    Returns
    -------
    str
        "none" if there are no items.

    Examples
    --------
    >>> listed(["α"]), listed(["α", "λ"]), listed(["α", "λ", "γ"], "or"), listed("abcde", most=2), listed([])
    ('α', 'α and λ', 'α, λ or γ', 'a, b and 3 more', 'none')
    """
    texts = [str(item) for item in items]
    if most is not None and len(texts) > most:
        texts = [*texts[:most], f"{len(texts) - most:,} more"]
    head, tail = texts[:-1], texts[-1:] or ["none"]
    return f" {last} ".join([", ".join(head), *tail]) if head else tail[0]


def duration(seconds: float) -> str:
    """A time span in the largest unit that it contains twice.

    >>> duration(3.21), duration(75.0), duration(400.0), duration(8000.0), duration(200_000.0)
    ('3.2 s', '75 s', '7 minutes', '2 hours', '2 days')
    """
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"


def exact_duration(seconds: float) -> str:
    """A duration in the largest unit in which it is a whole number: text that reads back as the same duration.

    >>> [exact_duration(s) for s in (5400.0, 86400.0, 0.5)]
    ['90min', '1d', '0.5s']
    """
    unit = next((unit for unit in ("d", "h", "min") if seconds % TIME_UNITS[unit] == 0.0), "s")
    return f"{shortest(seconds / TIME_UNITS[unit])}{unit}"


def size(n_bytes: float) -> str:
    """A number of bytes.

    >>> size(1.53e9), size(20_000), size(17)
    ('1.5 GB', '20.0 kB', '17 bytes')
    """
    for name, factor in BYTE_UNITS.items():
        if n_bytes >= factor:
            return f"{n_bytes / factor:,.1f} {name}"
    return f"{n_bytes:,.0f} bytes"
