"""One cell of text to a number: a decimal, a missing value, or a time.

Columns are converted by pyarrow (see `arrow_columns`). These functions read the few cells that pyarrow refuses, lines that arrive
one at a time, and the strings in JSON objects. They give the same doubles as pyarrow.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from trueonline.streams.sources.clock import NUMBER, Clock
from trueonline.streams.sources.sample import QUOTED_CHARACTERS

MISSING = ("", "na", "n/a", "nan", "null", "none")
NAN_FORM = re.compile(r"[+-]?nan(?:\([0-9a-z_]*\))?", re.IGNORECASE)  # C programs print such as -nan(ind)
THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}([.,' \xa0\u2009\u202f])[0-9]{3}(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
MAX_DECIMALS = 40  # of a second that are looked at; a double cannot tell more
DATE = r"[0-9]{4}-?(?:[0-9]{2}-?[0-9]{2}|W[0-9]{2}(?:-?[0-9])?)"
CLOCK = r"[0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2}(?:[.,]([0-9]+))?)?)?"
ISO_8601 = re.compile(rf"{DATE}(?:[^0-9.,]{CLOCK}(?:Z|[+-]{CLOCK})?)?", re.IGNORECASE)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MalformedError(Exception):
    """Why a row or a message cannot be used. A source counts it and never lets it out."""


def is_missing(text: str) -> bool:
    """Whether a text says that there is no value."""
    return text.lower() in MISSING or NAN_FORM.fullmatch(text) is not None


def cell(text: str, comma: bool = False) -> float:
    """The number that a text stands for, NaN for a missing value. With `comma`, a comma may be the decimal point."""
    text = text.strip()
    plain = text.replace(",", ".") if comma else text
    if NUMBER.fullmatch(plain):
        return float(plain)
    if is_missing(text):
        return math.nan
    if THOUSANDS.fullmatch(text):
        raise MalformedError(f"{text!r} has a thousands separator; write the number without it")
    raise MalformedError(f"{text[:QUOTED_CHARACTERS]!r} is not a number")


def moment(text: str, clock: Clock, comma: bool = False) -> float:
    """The time that a text stands for, in seconds: in the form of the clock, a number in its unit, or ISO 8601.

    Without a time zone it is UTC. With `comma`, a comma may be the decimal point of a number.
    """
    text = text.strip()
    if is_missing(text):
        return math.nan
    plain = text.replace(",", ".") if comma else text
    if clock.form is None and NUMBER.fullmatch(plain):
        return float(plain) / clock.per_second
    try:
        time = datetime.strptime(text, clock.form) if clock.form else datetime.fromisoformat(text.upper())
        since = (time if time.tzinfo else time.replace(tzinfo=UTC)).replace(microsecond=0) - EPOCH
    except (ValueError, OverflowError):
        form = f" in the form {clock.form}" if clock.form else "; give the form of times by --time-format"
        raise MalformedError(f"{text[:QUOTED_CHARACTERS]!r} is not a time{form}") from None
    written = None if clock.form else ISO_8601.fullmatch(text)
    if clock.form is None and written is None:  # datetime takes more, such as any text after the sixth digit
        raise MalformedError(f"{text[:QUOTED_CHARACTERS]!r} is not a time")
    digits = (written and written[1]) or f"{time.microsecond:06}"
    parts = 10 ** len(digits := digits[:MAX_DECIMALS])
    return (since // timedelta(microseconds=1) * parts + int(digits) * 10**6) / (parts * 10**6)  # it rounds once
