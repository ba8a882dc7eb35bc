"""Alerts of a fleet: those of each signal, with its name, in one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trueonline.streams.fleet import Fleet, divided, part
from trueonline.streams.outputs.alerts import Alert, AlertFile, Alerts
from trueonline.streams.predictor import Answers
from trueonline.streams.sources import TimeStyle


@dataclass(frozen=True)
class FleetAlert:
    """An alert of one signal."""

    alert: Alert
    signal: str

    def as_line(self) -> bytes:
        """The line of the alert, with the signal at its end."""
        return self.alert.as_line().rstrip()[:-1] + f', "signal": {json.dumps(self.signal)}}}\n'.encode()

    def in_words(self, unit: str = "s") -> str:
        """The alert for people."""
        return f"{self.signal}  {self.alert.in_words(unit)}"


class FleetAlerts:
    """Tells of what is unusual in the signals of a fleet, as `Alerts` does for one.

    Parameters
    ----------
    fleet : Fleet
        Whose answers are looked at.
    threshold : callable
        The least surprise of an alert, by the name of a signal.
    say : callable
        Prints a line.
    path : str, optional
        A file of JSON lines to append to.
    fresh : bool
        Replace an existing file of any kind at the first sample.
    """

    def __init__(
        self, fleet: Fleet, threshold: Callable[[str], float], say: Callable[[str], None], path: str | None, fresh: bool
    ) -> None:
        self._fleet, self.threshold_of, self._say = fleet, threshold, say
        self._of: dict[str, Alerts] = {}
        self._alerts("")  # checks the threshold
        self._file = None if path is None else AlertFile(path, fresh)

    def _alerts(self, name: str) -> Alerts:
        if name not in self._of:
            self._of[name] = Alerts(self._fleet.first, self.threshold_of(name), lambda line: None, None)
        return self._of[name]

    def tell(self, answers: Answers, style: TimeStyle) -> list[FleetAlert]:
        """Report new alerts, and return them, as `Alerts.tell` does."""
        if self._file is not None:
            self._file.begin()
        assert answers.codes is not None
        told = []
        for code, rows in divided(answers.codes):
            name = self._fleet.labels.names[code]
            told += [FleetAlert(alert, name) for alert in self._alerts(name).tell(part(answers, rows), style)]
        told = [each for each in told if self._file is None or self._file.append(each.as_line())]
        for each in told:
            self._say(each.in_words(style.unit))
        return told

    def resume(self, state: dict[str, Any], replayable: bool) -> None:
        """Resume after a checkpoint, or from scratch with an empty state."""
        for name, each in state.get("of", {}).items():
            self._alerts(name).resume(each, replayable)
        if self._file is not None:
            self._file.resume(state, replayable)

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint, once all alerts so far survive a crash."""
        of = {name: state for name, each in self._of.items() if (state := each.state())}
        return {"of": of, **({} if self._file is None else self._file.state())}

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
