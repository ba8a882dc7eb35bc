"""Values as Python reads them: JSON objects, and the cells that compiled loops leave over.

An object has a key for each signal and one for the time. A key that is not there and null are missing values. A number may
be written as a number, or as a string that a CSV file could hold. An object is *malformed* when a value is anything else,
when it has no time, or when it has none of the signals.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from trueonline.nexting.sources.sample import SHOWN, Clock, shown

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)

Row = tuple[float, list[float]]


class MalformedError(Exception):
    """Something that was sent is not what it should be, and why. It is counted, and never leaves a source."""


def cell(text: str) -> float:
    """The number that a text stands for; NaN where it says that there is none."""
    text = text.strip()
    if NUMBER.fullmatch(text):
        return float(text)
    if text.lower() in MISSING:
        return math.nan
    raise MalformedError(f"{text[:SHOWN]!r} is not a number")


def moment(text: str, per_second: float) -> float:
    """The time that a text stands for: a number in some unit, or ISO 8601, which is UTC where it does not say otherwise."""
    text = text.strip()
    if NUMBER.fullmatch(text):
        return float(text) / per_second
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise MalformedError(f"{text[:SHOWN]!r} is not a time") from None
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
            raise MalformedError("a whole number of more than 300 digits is too large") from None
    if value is None:
        return math.nan
    if kind is str:
        return cell(value)
    raise MalformedError(f"{NAMES.get(kind, kind.__name__)} is not a number")


NAMES = {dict: "an object", list: "an array", bool: "true or false", str: "a text", type(None): "null"}


def parsed(text: bytes | bytearray) -> Any:
    """What a JSON text stands for. Deep nesting and bad UTF-8 are malformed too."""
    try:
        return json.loads(text)
    except RecursionError:
        raise MalformedError("the JSON is nested too deep") from None
    except ValueError as error:
        raise MalformedError(f"it is not JSON ({str(error)[:SHOWN]})") from None


class Objects:
    """From objects to rows; and what there is to complain about, which is at most one thing of each kind.

    A signal that no object has had so far is complained about, although objects may have some of the signals only.
    """

    def __init__(self, signals: tuple[str, ...], clock: Clock) -> None:
        self.signals, self.clock = signals, clock
        self._unseen = set(signals)
        self._keys = ""  # of the first object that lacked some
        self._first: str | None = None

    def row(self, found: Any) -> Row:
        """The time and the values of an object. The time is 0 where it is to be made from the rate."""
        if type(found) is not dict:
            raise MalformedError(f"it must be an object, and is {NAMES.get(type(found), 'a number')}")
        if self._unseen:
            self._unseen -= found.keys()
            if self._unseen and not self._keys:
                self._keys = keys_of(found)
        if found.keys().isdisjoint(self.signals):
            raise MalformedError(f"no key {', '.join(self.signals)}; it has {keys_of(found)}")
        values = [
            value if type(value := found.get(name)) is float else self._number(found, name) for name in self.signals
        ]
        if self.clock.time is None:
            return 0.0, values
        given = found.get(self.clock.time)
        if given is None:
            raise MalformedError(f"no time under the key {self.clock.time}; it has {keys_of(found)}")
        if type(given) is str:
            time = moment(given, self.clock.per_second)
        else:
            time = self._number(found, self.clock.time) / self.clock.per_second
        if not math.isfinite(time):
            raise MalformedError(f"the time under the key {self.clock.time} is not finite")
        return time, values

    def _number(self, found: dict[str, Any], name: str) -> float:
        try:
            return number(found.get(name))
        except MalformedError as error:
            raise MalformedError(f"{name}: {error}") from None

    def complain(self, why: object, sent: Any) -> None:
        """Something was malformed. Only the first is kept."""
        if self._first is None:
            self._first = f"{why}: {shown(sent)}"

    def complaint(self) -> str | None:
        if self._first is None and self._unseen and self._keys:
            return (
                f"no key {', '.join(name for name in self.signals if name in self._unseen)} so far; it has {self._keys}"
            )
        return self._first


def keys_of(found: Iterable[str]) -> str:
    return shown(", ".join(islice(found, 50))) or "none"
