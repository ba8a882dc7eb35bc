"""How samples get their times, and how these were written."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from trueonline.inputs import positive

if TYPE_CHECKING:
    from trueonline.streams.sources.labels import Labels

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
PRECISIONS = ("D", "m", "s", "ms", "us")  # as NumPy calls them
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.IGNORECASE)
CLOCK = re.compile(r"[T ](?P<clock>[0-9:]+)(?:[.,](?P<fraction>[0-9]+))?(?:Z|[+-][0-9:.]+)?$", re.IGNORECASE)
ZONE = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{6})?)?")


@dataclass(frozen=True)
class TimeStyle:
    """How times are written: as numbers in a unit, or as ISO 8601.

    A `precision` other than "" says that they are ISO 8601. A time that is not a whole number of the precision is written with
    microseconds. Times are kept as doubles of seconds, which hold microseconds until the year 2100 and no more.

    Parameters
    ----------
    unit : {"s", "ms", "us", "ns"}
        The unit of numbers.
    precision : {"", "D", "m", "s", "ms", "us"}
        The last part that ISO 8601 has: days, minutes, seconds, or three or six digits after them. "" for numbers.
    zone : str
        The zone of ISO 8601: "Z", or an offset from UTC such as "+02:00", or "" for none.
    separator : {"T", " "}
        The character between date and time in ISO 8601.
    """

    unit: str = "s"
    precision: str = ""
    zone: str = ""
    separator: str = "T"

    @classmethod
    def of(cls, moment: datetime, text: str) -> TimeStyle:
        """Find the style of a time in ISO 8601.

        Parameters
        ----------
        moment : datetime
            The time that the text stands for.
        text : str
            The text.

        Returns
        -------
        TimeStyle
            Its zone and separator, and how far it goes into detail.
        """
        zone = moment.isoformat()[len(moment.replace(tzinfo=None).isoformat()) :]
        precision, found = "D", CLOCK.search(text)
        if found:
            precision = "s" if len(found["clock"].replace(":", "")) > 4 else "m"
            if found["fraction"]:
                precision = "ms" if len(found["fraction"]) <= 3 else "us"
        return cls("s", precision, "Z" if text.upper().endswith("Z") else zone, " " if " " in text else "T")

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> TimeStyle:
        """Read a style from a checkpoint.

        Parameters
        ----------
        kept : dict
            The return value of `as_json`.

        Returns
        -------
        TimeStyle
            The same style.

        Raises
        ------
        ValueError
            If it is not such a style.
        """
        unit, precision, zone, separator = (kept.get(name) for name in ("unit", "precision", "zone", "separator"))
        fits = unit in UNITS and precision in ("", *PRECISIONS) and separator in ("T", " ")
        if not fits or not isinstance(zone, str) or (zone and not ZONE.fullmatch(zone)):
            raise ValueError(f"the style of the times is damaged: {str(kept)[:80]}")
        return cls(str(unit), str(precision), zone, str(separator))

    def as_json(self) -> dict[str, str]:
        """Describe the style in types that JSON has.

        Returns
        -------
        dict from str to str
            Every field by its name.
        """
        return asdict(self)

    @property
    def is_iso(self) -> bool:
        """Whether times are ISO 8601."""
        return self.precision != ""

    @property
    def offset(self) -> float:
        """The seconds by which the wall clock is ahead of UTC. 0 without a zone."""
        if self.zone in ("", "Z"):
            return 0.0
        parts = [float(part) for part in self.zone[1:].split(":")]
        return math.copysign(
            sum(part * 60.0 ** (2 - i) for i, part in enumerate(parts)), -1.0 if self.zone[0] == "-" else 1.0
        )

    def microseconds(self, times: np.ndarray) -> np.ndarray:
        """Round times to microseconds.

        Parameters
        ----------
        times : array of shape (k,)
            Seconds since the epoch.

        Returns
        -------
        array of int64 of shape (k,)
            Microseconds since the epoch.
        """
        return np.rint(times * 1e6).astype(np.int64)

    def texts(self, times: np.ndarray) -> list[str]:
        """Write times.

        Parameters
        ----------
        times : array of shape (k,)
            Seconds since the epoch, or since anything else if they are numbers.

        Returns
        -------
        list of str
            Each as it would have come in.
        """
        if not self.is_iso:
            written = repr if self.unit == "s" else _shortest
            return [written(x) for x in (times * UNITS[self.unit]).tolist()]
        stamps = (self.microseconds(times) + round(self.offset * 1e6)).astype("datetime64[us]")
        short = stamps.astype(f"datetime64[{self.precision}]")
        texts = np.datetime_as_string(short)
        if (short != stamps).any():
            texts = np.where(short == stamps, texts, np.datetime_as_string(stamps))
        return [text.replace("T", self.separator) + self.zone for text in texts.tolist()]

    def values(self, times: np.ndarray) -> list[Any]:
        """Write times for JSON.

        Parameters
        ----------
        times : array of shape (k,)
            As for `texts`.

        Returns
        -------
        list of str, float or int
            Text for ISO 8601, otherwise numbers.
        """
        texts = self.texts(times)
        return texts if self.is_iso else [json.loads(text) for text in texts]


def _shortest(x: float) -> str:
    """A number with the digits that seconds can hold: 1.1 becomes 1.1, for any factor that it was multiplied by."""
    return f"{x:.16g}" if abs(x) < 1e16 else str(int(x))


@dataclass
class Clock:
    """How samples get their times: from the column `time`, in `unit` since the epoch, or from `rate` without a column.

    With both, the column is used. The column may hold ISO 8601 such as 2024-05-01T12:00:00.25+02:00, for any unit.
    Without a time zone that is UTC. With a `form`, it holds times in that form, as `datetime.strptime` knows it. With a rate,
    the sample of row i has the time i / rate. Rows that cannot be read count in i, because time went on. `first` is the number
    of the first row, if other files come before it.

    `labels` make numbers of the column that names the signal of a sample, where there is one.

    The `style` is that of the first time that was read. It stays: where a file changes to another zone, as for daylight saving,
    all times are written in the first.
    """

    time: str | None = None
    rate: float | None = None
    unit: str = "s"
    form: str | None = None
    first: int = 0
    labels: Labels | None = None
    style: TimeStyle | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.time is not None and not (isinstance(self.time, str) and self.time):
            raise ValueError(f"time must be the name of a column, got {self.time!r}")
        if self.rate is not None:
            self.rate = positive("rate", self.rate)
        if self.unit not in UNITS:
            raise ValueError(f"time_unit must be one of {', '.join(UNITS)}, got {self.unit!r}")
        if self.time is None and self.rate is None:
            raise ValueError("the samples need times: give the rate, in samples per second, or the column with the times")
        if self.form is not None:
            self._check_form(self.form)
        if self.time is None:
            self.style = TimeStyle()

    def _check_form(self, form: str) -> None:
        if self.time is None:
            raise ValueError(
                f"the time format {form!r} needs a column with times: give time (on the command line: --time)"
            )
        try:
            datetime.strptime(datetime(2024, 5, 31, 12, 30, 59, tzinfo=UTC).strftime(form), form)
        except ValueError as error:
            raise ValueError(
                f"the time format must be like %d.%m.%Y %H:%M, with the letters of Python's strptime, got {form!r} ({error})"
            ) from None

    def made(self, rows: Any) -> Any:
        """The times of rows, by their numbers, from the rate."""
        assert self.rate is not None
        return (rows + self.first) / self.rate

    def note(self, text: str) -> None:
        """Keep the style of the first time that was read, which is written so."""
        text = text.strip()
        if self.style is not None:
            return
        if self.form is None and NUMBER.fullmatch(text):
            self.style = TimeStyle(self.unit)
            return
        try:
            moment = datetime.strptime(text, self.form) if self.form else datetime.fromisoformat(text.upper())
        except ValueError:  # pyarrow may read what Python does not
            self.style = TimeStyle(precision="s")
        else:
            self.style = TimeStyle.of(moment, moment.isoformat() if self.form else text)

    @property
    def per_second(self) -> float:
        return UNITS[self.unit]

    @property
    def offset(self) -> float:
        """The seconds by which the wall clock of the samples is ahead of UTC."""
        return 0.0 if self.style is None else self.style.offset
