"""What a run tells beside its charts: figures for Prometheus, whether it is healthy, and the signals of a fleet.

The thread that learns writes. The server's thread reads. Both only replace whole objects, so neither waits.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trueonline.streams.live.hub import Hub

HEALTHY_SECONDS = 120.0  # without a sign of the thread that learns, after which the run is not healthy
MAX_HUBS = 32  # signals of a fleet whose charts are kept
TYPES = {"counter": "_total"}

Answer = tuple[int, str, bytes]  # the status, the type of the content, and the content


class Board:
    """The newest figures of a run."""

    def __init__(self) -> None:
        self._figures: list[tuple[str, str, str, list[tuple[dict[str, str], float]]]] = []
        self._health: dict[str, Any] = {"state": "waiting", "samples": 0}
        self._signals: list[dict[str, Any]] = []
        self._seen = time.monotonic()

    def report(
        self,
        health: Mapping[str, Any],
        figures: Iterable[tuple[str, str, str, list[tuple[dict[str, str], float]]]],
        signals: list[dict[str, Any]],
    ) -> None:
        """Replace all figures: each with a name, "counter" or "gauge", help, and values with their labels."""
        self._health, self._figures, self._signals = dict(health), list(figures), signals
        self.alive()

    def alive(self) -> None:
        """The thread that learns is there."""
        self._seen = time.monotonic()

    def metrics(self) -> Answer:
        """The figures in the text format of Prometheus."""
        lines = []
        for name, kind, about, values in self._figures:
            whole = f"trueonline_{name}{TYPES.get(kind, '')}"
            lines += [f"# HELP {whole} {about}", f"# TYPE {whole} {kind}"]
            for labels, value in values:
                named = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
                lines.append(f"{whole}{{{named}}} {_number(value)}" if named else f"{whole} {_number(value)}")
        return 200, "text/plain; version=0.0.4", ("\n".join(lines) + "\n").encode()

    def health(self) -> Answer:
        """Whether the thread that learns is alive: status 200 or 503."""
        silent = time.monotonic() - self._seen
        healthy = silent < HEALTHY_SECONDS
        content = {"healthy": healthy, **self._health, "seconds_since_report": round(silent, 1)}
        return (200 if healthy else 503), "application/json", json.dumps(content).encode() + b"\n"

    def signals(self) -> Answer:
        """The signals of a fleet, the worst first."""
        content = {**self._health, "of": self._health.get("signals", 0), "signals": self._signals}
        return 200, "application/json", json.dumps(content).encode()


class Hubs:
    """The charts of the signals of a fleet: made when a page asks for them, or at once while they are few.

    Parameters
    ----------
    make : callable
        Makes the hub of a signal, from its name.
    """

    def __init__(self, make: Callable[[str], Hub]) -> None:
        self._make = make
        self.of: dict[str, Hub] = {}
        self._known: set[str] = set()
        self.wake: Callable[[], None] = lambda: None

    def note(self, name: str) -> Hub | None:
        """A signal has samples. Return the hub that shows them, if there is one."""
        if name not in self._known:
            self._known = self._known | {name}
            if len(self.of) < MAX_HUBS:
                self._add(name)
        return self.of.get(name)

    def get(self, name: str) -> Hub | None:
        """The hub of a signal for a page, or an empty one for "", the list. None if there is no such signal."""
        if name and name not in self._known:
            return None
        if name not in self.of:
            idle = [each for each, hub in self.of.items() if not hub.pages]
            self.of = {each: hub for each, hub in self.of.items() if len(self.of) < MAX_HUBS or each not in idle[:1]}
            self._add(name)
        return self.of[name]

    def _add(self, name: str) -> None:
        hub = self._make(name)
        hub.wake = lambda: self.wake()  # noqa: PLW0108  (a server may come later)
        self.of = {**self.of, name: hub}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(float(value))
