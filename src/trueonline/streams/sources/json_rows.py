"""JSON objects to samples: lines of a file or a pipe, and messages of MQTT.

An object has a key for each signal and one for the time. A missing key and null are missing values. A number may be written
as a number, or as a string that a CSV file could hold. An object is *malformed* if a value is anything else, if it has no
time, or if it has none of the signals.

The standard `json` module reads them, because pyarrow's reader of JSON gives up at the first malformed line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from trueonline.streams.sources.cells import MalformedError, cell, moment
from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.sample import QUOTED_CHARACTERS, Block, shown

Row = tuple[float, list[float]]


def json_number(value: Any) -> float:
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
    raise MalformedError(f"{KIND_NAMES.get(kind, kind.__name__)} is not a number")


KIND_NAMES = {dict: "an object", list: "an array", bool: "true or false", str: "a text", type(None): "null"}


def parsed(text: bytes | bytearray) -> Any:
    """The value of a JSON text. Deep nesting and bad UTF-8 are malformed too."""
    try:
        return json.loads(text)
    except RecursionError:
        raise MalformedError("the JSON is nested too deep") from None
    except ValueError as error:
        raise MalformedError(f"it is not JSON ({str(error)[:QUOTED_CHARACTERS]})") from None


class Objects:
    """Objects to times and values, and the first complaint about them.

    An object may lack some of the signals. If no object so far has had a signal, that is a complaint too.
    """

    def __init__(self, signals: tuple[str, ...], clock: Clock) -> None:
        self.signals, self.clock = signals, clock
        self._label = None if clock.labels is None else clock.labels.column
        self._unseen = set(signals)
        self._keys = ""  # of the first object that lacked some
        self._first: str | None = None

    def row(self, value: Any) -> Row:
        """The time and the values of an object. The time is 0 if the rate gives the times."""
        if type(value) is not dict:
            raise MalformedError(f"it must be an object with names, and is {KIND_NAMES.get(type(value), 'a number')}")
        keys = value.keys()
        if self._unseen:
            self._unseen -= keys
            if self._unseen and not self._keys:
                self._keys = keys_of(value)
        if keys.isdisjoint(self.signals):
            raise MalformedError(f"no key {', '.join(self.signals)}; it has {keys_of(value)}")
        values = [
            each if type(each := value.get(name)) is float and name != self._label else self._number(value, name)
            for name in self.signals
        ]
        if self.clock.time is None:
            return 0.0, values
        stamp = value.get(self.clock.time)
        if stamp is None:
            raise MalformedError(f"no time under the key {self.clock.time}; it has {keys_of(value)}")
        if type(stamp) is str or self.clock.form is not None:
            time = moment(str(stamp), self.clock)
        else:
            time = self._number(value, self.clock.time) / self.clock.per_second
        if not math.isfinite(time):
            raise MalformedError(f"the time under the key {self.clock.time} is not finite")
        if self.clock.style is None:
            self.clock.note(str(stamp))
        return time, values

    def _number(self, value: dict[str, Any], name: str) -> float:
        try:
            if self.clock.labels is not None and name == self._label:
                return self.clock.labels.code(value.get(name))
            return json_number(value.get(name))
        except MalformedError as error:
            raise MalformedError(f"{name}: {error}") from None

    def complain(self, why: object, sent: Any) -> None:
        """Keep the first complaint, and forget others."""
        if self._first is None:
            self._first = f"{why}: {shown(sent)}"

    def complaint(self) -> str | None:
        if self._first is None and self._unseen and self._keys:
            return (
                f"no key {', '.join(name for name in self.signals if name in self._unseen)} so far; it has {self._keys}"
            )
        return self._first


def keys_of(value: Iterable[str]) -> str:
    return shown(", ".join(islice(value, 50))) or "none"


class JsonRows:
    """The rows of JSON lines, through `Objects`."""

    separator, columns, latin, spoiled = "", None, False, ""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def read(self, text: bytes, ends: np.ndarray, first: int) -> tuple[Block, int]:
        """The samples in these lines, of which `first` is the number of the first row, and the number of rows."""
        lines = [line for line in text.split(b"\n") if line.strip()]
        clock, times, values = self._objects.clock, [], []
        for number, line in enumerate(lines, first):
            try:
                time, row = self._objects.row(parsed(line))
            except MalformedError as error:
                self._objects.complain(error, line)
                continue
            times.append(time if clock.time is not None else clock.made(number))
            values.append(row)
        rows = np.array(values).reshape(len(times), len(self._objects.signals))
        return Block(np.array(times), rows, clock.offset), len(lines)
