"""Values as Python reads them: JSON objects, and the cells that compiled loops leave over.

An object has a key for each signal and one for the time. A key that is not there and null are missing values. A number may
be written as a number, or as a string that a CSV file could hold. An object is *malformed* when a value is anything else,
when it has no time, or when it has none of the signals.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from trueonline.nexting.sources.sample import Clock

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)

Row = tuple[float, list[float]]


class MalformedError(Exception):
    """Something that was sent is not what it should be. It is counted, and never leaves a source."""


def cell(text: str) -> float:
    """The number that a text stands for; NaN where it says that there is none."""
    text = text.strip()
    if NUMBER.fullmatch(text):
        return float(text)
    if text.lower() in MISSING:
        return math.nan
    raise MalformedError(text)


def moment(text: str, per_second: float) -> float:
    """The time that a text stands for: a number in some unit, or ISO 8601, which is UTC where it does not say otherwise."""
    text = text.strip()
    if NUMBER.fullmatch(text):
        return float(text) / per_second
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise MalformedError(text) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def number(value: Any) -> float:
    """A JSON value as a number."""
    kind = type(value)
    if kind is float:
        return value
    if kind is int:
        try:
            return float(value)
        except OverflowError:
            raise MalformedError(value) from None
    if value is None:
        return math.nan
    if kind is str:
        return cell(value)
    raise MalformedError(value)


def row(found: Any, signals: tuple[str, ...], clock: Clock) -> Row:
    """The time and the values of an object. The time is 0 where it is to be made from the rate."""
    if type(found) is not dict or found.keys().isdisjoint(signals):
        raise MalformedError(found)
    values = [value if type(value := found.get(name)) is float else number(value) for name in signals]
    if clock.time is None:
        return 0.0, values
    given = found.get(clock.time)
    time = moment(given, clock.per_second) if type(given) is str else number(given) / clock.per_second
    if not math.isfinite(time):
        raise MalformedError(given)
    return time, values


def parsed(text: bytes | bytearray) -> Any:
    """What a JSON text stands for. Deep nesting and bad UTF-8 are malformed too."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError(error) from None
