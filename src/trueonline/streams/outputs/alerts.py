"""Alerts: incidents, which begin when the surprise reaches a threshold, reported on the terminal and in a file of JSON lines.

**An incident** begins with an unusual sample, and is told at once. Unusual samples that follow belong to it. It is over after an
hour and `COOL_SAMPLES` samples without any, and not before it has been quiet for as long as it lasted: what comes again and again
is one incident. An incident of several samples is told once more when it is over, with its end and its peak.

The file is only ever appended to. A run that resumes makes the alerts after its checkpoint again. It knows them in the file, and
writes what is missing. So no alert is lost, and none is there twice.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np

from trueonline import words
from trueonline.files import write_whole
from trueonline.inputs import number
from trueonline.streams.accuracy.surprise import HOUR_SECONDS, REASONS
from trueonline.streams.outputs.output import check_out
from trueonline.streams.predictor import Answers, Predictor
from trueonline.streams.sources import TimeStyle
from trueonline.streams.sources.clock import UNITS

DEFAULT_THRESHOLD = 0.99  # where only a file is named: usual streams have such an hour once in 100 hours, or less often
COOL_SAMPLES = 20
MAX_SEVERITY = 16.0  # a surprise is not distinguished from 1 beyond this
BEGUN, OVER = "begun", "over"
CLEAR_ERRORS = 3.0  # usual errors: an error that is as large speaks for itself
CALENDAR_SECONDS = 1e8  # seconds: from March 1973 on, a time is shown as a date
MAX_FIRST_LINE = 2**16  # bytes of a first line that are looked at
LINE_BEGIN = b'{"time": '  # of every line


@dataclass(frozen=True)
class Alert:
    """An incident, as it is known when it begins or when it is over.

    Attributes
    ----------
    time : str, float or int
        When it begins, as in the output: ISO 8601, or a number.
    state : str
        "begun", or "over".
    peak, end : str, float or int
        The times of the most unusual sample and of the last unusual one, so far.
    severity : float
        How rare an hour with such a peak is, as a power of ten: 3 is one in a thousand.
    surprise : float
        How unusual the peak is, in [0, 1].
    question : str
        A question about the signal that is unusual.
    target : str
        This signal.
    reason : str
        Why the peak is unusual: a jump, a level never seen, a run of errors, a flat line, …
    value : float or None
        The value of the signal at the peak.
    expected : float or None
        The value that was expected there: by the forecast, by the mean so far, or at this time of the day.
    error : float or None
        By how much the value differs from this.
    usual_error : float or None
        The usual size of this error.
    """

    time: Any
    state: str
    peak: Any
    end: Any
    severity: float
    surprise: float
    question: str
    target: str
    reason: str
    value: float | None
    expected: float | None
    error: float | None
    usual_error: float | None

    def as_line(self) -> bytes:
        """The alert as a line of JSON."""
        return json.dumps(asdict(self), allow_nan=False).encode() + b"\n"

    def in_words(self, unit: str = "s") -> str:
        """The alert for people. `unit` is that of a time that is a number.

        >>> time = 1397392500.0
        >>> alert = Alert(time, BEGUN, time, time, 3.3, 0.9995, "value@1h", "value", "a jump", 71.2, 83.4, -12.2, 1.2)
        >>> print(alert.in_words())
        2014-04-13 12:35  surprise 0.9995  value 71.2, expected 83.4 (value@1h): a jump, 10.2 times the usual error
        >>> print(replace(alert, state=OVER, end=time + 600).in_words())
        2014-04-13 12:35  over since 2014-04-13 12:45, peak 2014-04-13 12:35, severity 3.3 (value@1h): a jump
        """
        begin = time_in_words(self.time, unit)
        if self.state == OVER:
            end, peak = time_in_words(self.end, unit), time_in_words(self.peak, unit)
            return (
                f"{begin}  over since {end}, peak {peak}, severity {self.severity:.1f} ({self.question}): {self.reason}"
            )
        value, expected = words.number(self.value), words.number(self.expected)
        text = f"{begin}  surprise {self.surprise:.6g}  {self.target} {value}, expected {expected}"
        why = ", ".join(filter(None, (self.reason, self._how_much())))
        return ": ".join(filter(None, (f"{text} ({self.question})", why)))

    def _how_much(self) -> str:
        """By how much the error is unusual, in words, if it speaks for itself."""
        times = abs(self.error) / self.usual_error if self.error is not None and self.usual_error else 0.0
        return f"{words.number(times, 3)} times the usual error" if times >= CLEAR_ERRORS else ""


KEYS = [*Alert.__dataclass_fields__]


def time_in_words(time: Any, unit: str = "s") -> str:
    """A time as the terminal shows it: as it is if it is text, otherwise a date in UTC, or seconds where it cannot be one.

    >>> time_in_words(12.5), time_in_words(1397392500.0), time_in_words(1397392501250, "ms")
    ('12.5 s', '2014-04-13 12:35', '2014-04-13 12:35:01.250')
    """
    if isinstance(time, str):
        return time
    seconds = time / UNITS[unit]
    if not seconds >= CALENDAR_SECONDS:
        return f"{seconds:.10g} s"
    date = datetime.fromtimestamp(round(seconds, 3), UTC)
    pattern = "%Y-%m-%d %H:%M" + (":%S" if date.second or date.microsecond else "")
    return date.strftime(pattern) + (f".{date.microsecond // 1000:03}" if date.microsecond else "")


def known(value: float) -> float | None:
    """A number for JSON, which has none for what is not known."""
    return float(value) if math.isfinite(value) else None


class Incidents:
    """Joins unusual samples to incidents.

    Parameters
    ----------
    predictor : Predictor
        Whose answers are looked at.
    threshold : float
        The least surprise of an unusual sample.
    """

    def __init__(self, predictor: Predictor, threshold: float) -> None:
        self._predictor, self._threshold = predictor, threshold
        self._now: Alert | None = None  # the incident that is not over
        self._samples = self._begin = self._end = 0  # samples so far, and before the first and the last unusual one
        self._seconds = 0.0  # of the last unusual one

    def follow(self, answers: Answers, style: TimeStyle) -> list[Alert]:
        """Look at samples.

        Parameters
        ----------
        answers : Answers
            Samples and predictions of the predictor.
        style : TimeStyle
            How times are written.

        Returns
        -------
        list of Alert
            The incidents that begin, and those that are over, in the order of the samples.
        """
        told: list[Alert] = []
        if answers.surprise is None or not len(answers.times):
            return told
        rows = np.flatnonzero(answers.surprise >= self._threshold)
        for t, time in zip(rows.tolist(), style.values(answers.times[rows]), strict=True):
            self._end_if_over(t, answers, told)
            alert = self._alert(answers, t, time)
            if self._now is None:
                self._now, self._begin = alert, self._samples + t
                told.append(alert)
            else:
                peak = alert if alert.surprise > self._now.surprise else self._now
                self._now = replace(peak, time=self._now.time, end=time)
            self._end, self._seconds = self._samples + t, float(answers.times[t])
        self._end_if_over(len(answers.times) - 1, answers, told)
        self._samples += len(answers.times)
        return told

    def _end_if_over(self, t: int, answers: Answers, told: list[Alert]) -> None:
        """End the incident if it has been quiet for long enough at sample t."""
        quiet, seconds = self._samples + t - self._end, answers.times[t] - self._seconds
        if self._now is None or quiet <= max(COOL_SAMPLES, self._end - self._begin + 1) or 0.0 <= seconds < HOUR_SECONDS:
            return
        if self._end > self._begin:
            told.append(replace(self._now, state=OVER))
        self._now = None

    def _alert(self, answers: Answers, t: int, time: Any) -> Alert:
        """A sample as an incident of its own."""
        assert answers.surprise is not None
        assert answers.suspect is not None
        question, surprise = int(answers.suspect[t]), float(answers.surprise[t])
        target = self._predictor.targets[question]
        value = answers.signals[t, self._predictor.observed.index(target)]
        others = (math.nan if each is None else each[t] for each in (answers.expected, answers.error, answers.usual))
        severity = round(min(-math.log10(max(1.0 - surprise, 1e-300)), MAX_SEVERITY), 2)
        reason = "" if answers.reason is None else REASONS[answers.reason[t]]
        about = (severity, surprise, self._predictor.names[question], target, reason)
        return Alert(time, BEGUN, time, time, *about, *map(known, (value, *others)))

    def state(self) -> dict[str, Any]:
        """The incident that is not over, in types that JSON has. Empty if there is none."""
        if self._now is None:
            return {}
        places = {"samples": self._samples, "begin": self._begin, "end": self._end}
        return {"now": asdict(self._now), **places, "seconds": self._seconds}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state that is not empty."""
        self._now = Alert(**state["now"])
        self._samples, self._begin, self._end = state["samples"], state["begin"], state["end"]
        self._seconds = state["seconds"]


class Alerts:
    """Tells of incidents.

    Parameters
    ----------
    predictor : Predictor
        Whose answers are looked at.
    threshold : float
        The least surprise of an unusual sample, in (0, 1].
    say : callable
        Prints a line.
    path : str, optional
        A file of JSON lines to append to.
    fresh : bool
        Replace an existing file of any kind at the first sample.
    """

    def __init__(
        self, predictor: Predictor, threshold: float, say: Callable[[str], None], path: str | None, fresh: bool = False
    ) -> None:
        self.threshold = number("--alert", threshold, "in (0, 1]", lambda x: 0.0 < x <= 1.0)
        self._incidents, self._say = Incidents(predictor, threshold), say
        self._file = None if path is None else AlertFile(path, fresh)

    def tell(self, answers: Answers, style: TimeStyle) -> list[Alert]:
        """Report new alerts, with times in this style, and return them. Those that a resumed run finds in its file are not new."""
        if self._file is not None:
            self._file.begin()
        told = self._incidents.follow(answers, style)
        told = [alert for alert in told if self._file is None or self._file.append(alert.as_line())]
        for alert in told:
            self._say(alert.in_words(style.unit))
        return told

    def resume(self, state: dict[str, Any], replayable: bool) -> None:
        """Resume after a checkpoint, or from scratch with an empty state. ValueError if alerts are missing in the file."""
        if "incident" in state:
            self._incidents.restore(state["incident"])
        if self._file is not None:
            self._file.resume(state, replayable)

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint, once all alerts so far survive a crash."""
        now = self._incidents.state()
        return ({"incident": now} if now else {}) | ({} if self._file is None else self._file.state())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class AlertFile:
    """A file of alerts, one to a line. ValueError if there is something else in it, unless it shall be replaced."""

    def __init__(self, path: str, replace: bool) -> None:
        self._path, self._replace = check_out(path), replace
        if not replace and not _holds_alerts(self._path):
            raise ValueError(
                f"{path} exists and does not hold alerts; choose another --alerts, or pass --fresh to overwrite it"
            )
        self._file: IO[bytes] | None = None  # open from the first sample
        self._known = 0  # bytes at the beginning whose alerts will not be made again
        self._told: set[bytes] = set()  # lines after them, which may be made again
        self._partial = b""  # the beginning of a line that a crash cut off

    def resume(self, state: dict[str, Any], replayable: bool) -> None:
        """Look for what was written after the checkpoint. Only a source that is read again makes these alerts again."""
        if self._replace or not self._path.exists():
            return
        start = state.get("bytes") if state.get("file") == str(self._path) else 0
        size = self._path.stat().st_size
        if type(start) is not int or not 0 <= start <= size:
            raise ValueError(
                f"{self._path} has {size:,} bytes, but {start} were written to it; name another file for --alerts, or start from "
                "scratch with --fresh"
            )
        self._known = start
        with open(self._path, "rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):
                    self._partial = line
                elif replayable:
                    self._told.add(line)

    def begin(self) -> None:
        """Open the file, and replace it first if it shall be."""
        if self._file is None:
            if self._replace:
                write_whole(self._path, lambda file: None)
            self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115

    def append(self, line: bytes) -> bool:
        """Write a line, unless it was written after the checkpoint already. Return whether it is new."""
        assert self._file is not None
        if line in self._told:
            self._told.discard(line)
            return False
        if line.startswith(self._partial):
            self._file.write(line[len(self._partial) :])
        else:
            self._file.write(b"\n" + line)
        self._partial = b""
        return True

    def state(self) -> dict[str, Any]:
        """The file, and how much of it is settled, once it is on the disk."""
        if self._file is None:
            return {}
        os.fsync(self._file.fileno())
        if not self._told and not self._partial:
            self._known = os.fstat(self._file.fileno()).st_size
        return {"file": str(self._path), "bytes": self._known}

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _holds_alerts(path: Path) -> bool:
    """Whether there is no file, or an empty one, or one that begins with an alert or the beginning of one."""
    if not path.exists():
        return True
    with open(path, "rb") as file:
        line = file.readline(MAX_FIRST_LINE)
    if not line.endswith(b"\n"):
        return line[: len(LINE_BEGIN)] == LINE_BEGIN[: len(line)]
    try:
        found = json.loads(line)
    except ValueError:
        return False
    return isinstance(found, dict) and [*found][: len(KEYS)] == KEYS  # those of a fleet have the signal too
