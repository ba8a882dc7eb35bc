"""One cell of text to a number: a decimal, a missing value, or a time.

Columns are converted by pyarrow (see `arrow_columns`). These functions read the few cells that pyarrow refuses, lines that arrive
one at a time, and the strings in JSON objects. They give the same doubles as pyarrow.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from trueonline.streams.sources.clock import NUMBER, Clock
from trueonline.streams.sources.sample import SHOWN

MISSING = ("", "na", "n/a", "nan", "null", "none")
NAN = re.compile(r"[+-]?nan(?:\([0-9a-z_]*\))?", re.IGNORECASE)  # C programs print such as -nan(ind)
NANOSECONDS = re.compile(r"[.,][0-9]{6}([0-9]{1,3})(?![0-9])")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MalformedError(Exception):
    """Why a row or a message cannot be used. A source counts it and never lets it out."""


def is_missing(text: str) -> bool:
    """Whether a text says that there is no value."""
    return text.lower() in MISSING or NAN.fullmatch(text) is not None


def cell(text: str) -> float:
    """The number that a text stands for, NaN for a missing value."""
    text = text.strip()
    if NUMBER.fullmatch(text):
        return float(text)
    if is_missing(text):
        return math.nan
    raise MalformedError(f"{text[:SHOWN]!r} is not a number")


def moment(text: str, clock: Clock) -> float:
    """The time that a text stands for, in seconds: in the form of the clock, a number in its unit, or ISO 8601.

    Without a time zone it is UTC.
    """
    text = text.strip()
    if is_missing(text):
        return math.nan
    if clock.form is None and NUMBER.fullmatch(text):
        return float(text) / clock.per_second
    try:
        time = datetime.strptime(text, clock.form) if clock.form else datetime.fromisoformat(text.upper())
        since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH
    except (ValueError, OverflowError):
        form = f" in the form {clock.form}" if clock.form else "; give the form of times by --time-format"
        raise MalformedError(f"{text[:SHOWN]!r} is not a time{form}") from None
    digits = None if clock.form else NANOSECONDS.search(text)  # datetime drops them
    nanoseconds = int(digits[1].ljust(3, "0")) if digits else 0
    return (since // timedelta(microseconds=1) * 1000 + nanoseconds) / 10**9  # whole numbers, so that it rounds once
