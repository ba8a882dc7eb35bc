"""A run that is shown on the live page while it learns."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

import numpy as np

from trueonline.streams.fleet import Fleet, divided, part
from trueonline.streams.outputs.alerts import BEGUN, DEFAULT_THRESHOLD, Incidents
from trueonline.streams.outputs.fleet_alerts import FleetAlerts
from trueonline.streams.predictor import Answers, Predictor
from trueonline.streams.running.stream_run import Run
from trueonline.streams.sources import TimeStyle

REPORT_SECONDS = 0.5  # seconds between reports of scores and counters to the page
# Seconds between reports of all signals, which take at most a fiftieth of the time.
BOARD_SECONDS, BOARD_SHARE = 2.0, 50.0
ALERTS_KEPT = 100  # the newest of them are known to a page that is opened later
RATE_REPORTS = 11  # reports over which the rate is measured
LISTED, MEASURED = 200, 1000  # signals of a fleet in the list, and those that have figures of their own
SCORED = 50  # questions whose waiting samples are scored too, as the summary does, as far as they are known
FADING = 0.99  # of the largest surprise, from sample to sample


class Page:
    """The page of a run. `open` serves it for a predictor. `show` learns and stays after the stream has ended, until `stop`."""

    def __init__(self, title: str, host: str, port: int, token: str | None) -> None:
        self._title, self._place = title, (host, port, token)

    def open(self, predictor: Predictor | Fleet) -> AbstractContextManager:
        """The server of the page, bound to its address."""
        from trueonline.streams.live import Board, Hub, Hubs, PageQuestion, Server

        shown = [
            PageQuestion(name, target, scale.discount, horizon, "mean" if scale.mean else "return")
            for name, target, scale, horizon in zip(
                predictor.names, predictor.targets, predictor.scales, predictor.horizons, strict=True
            )
        ]
        self._hubs = Hubs(lambda name: Hub(shown, predictor.observed, name or self._title))
        self._board = Board()
        hubs = self._hubs if isinstance(predictor, Fleet) else self._hubs.note("") or self._hubs
        self._server = Server(hubs, *self._place, board=self._board)
        return self._server

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._server.url

    def show(self, run: Run, stop: threading.Event, limit: int | None = None) -> dict[str, Any]:
        """Learn and show it. Return the summary."""
        reporter = _Reporter(run, self._hubs, self._board)
        reporter("waiting")
        with run.resources:
            run.learn(stop, seen=reporter.seen, idle=reporter, limit=limit)
            run.finish(forget=False)
            reporter("stopped" if stop.is_set() else "ended")
            while not stop.wait(REPORT_SECONDS):  # without a time, Windows would not hear of Ctrl-C
                self._board.alive()
            reporter("stopped")
        return run.summary()


class _Signal:
    """What is known of a signal beside its charts."""

    def __init__(self, name: str, predictor: Predictor, threshold: float) -> None:
        self.name, self.predictor, self._incidents = name, predictor, Incidents(predictor, threshold)
        self.alerts: deque[dict[str, Any]] = deque(maxlen=ALERTS_KEPT)
        self.alarmed = self.samples = 0
        self.worst = self.time = self.arrived = 0.0  # the largest surprise, fading; the newest time; and when it came
        self.newest: list[float] = []  # values, and predictions

    def see(self, answers: Answers) -> None:
        """Note samples."""
        if answers.surprise is not None:
            ages = np.arange(len(answers.times))[::-1]
            faded = np.nan_to_num(answers.surprise) * FADING**ages
            self.worst = max(self.worst * FADING ** len(ages), float(faded.max()))
        found = [alert for alert in self._incidents.follow(answers, TimeStyle()) if alert.state == BEGUN]
        self.alarmed += len(found)
        self.alerts.extend(asdict(alert) for alert in found[-ALERTS_KEPT:])
        self.samples += len(answers.times)
        self.time, self.arrived = float(answers.times[-1]), time.time()
        target = self.predictor.observed.index(self.predictor.targets[0])
        self.newest = [float(answers.signals[-1, target]), float(answers.predictions[-1, 0])]

    def listed(self, skill: float, scored: int) -> dict[str, Any]:
        """The signal in the list of a fleet."""
        value, prediction = (None if not math.isfinite(each) else each for each in self.newest)
        return {
            "name": self.name,
            "time": self.time,
            "value": value,
            "prediction": prediction,
            "worst": self.worst,
            "alerts": self.alarmed,
            "last": self.alerts[-1] if self.alerts else None,
            "better": None if math.isnan(skill) else skill,
            "scored": scored,
            "step": self.predictor.usual_interval,
            "horizon": self.predictor.horizons[0],
            "discount": self.predictor.scales[0].discount,
            "samples": self.samples,
        }


class _Reporter:
    """Shows the samples of a run to hubs, twice a second its state, and figures to the board."""

    def __init__(self, run: Run, hubs: Any, board: Any) -> None:
        self._run, self._hubs, self._board = run, hubs, board
        self._begun = self._at = time.monotonic()
        self._due = 0.0  # when all signals are reported next
        self._before = run.samples
        self._looks: deque[tuple[float, int]] = deque(maxlen=RATE_REPORTS)  # when there were how many samples
        self._signals: dict[str, _Signal] = {}
        if isinstance(run.predictor, Predictor):
            self._signals[""] = self._signal("", run.predictor)

    def _signal(self, name: str, predictor: Predictor) -> _Signal:
        """What is known of a signal, with the threshold of its alerts."""
        alerts = self._run.alerts
        threshold = alerts.threshold_of(name) if isinstance(alerts, FleetAlerts) else alerts and alerts.threshold
        return _Signal(name, predictor, threshold or DEFAULT_THRESHOLD)

    def seen(self, answers: Answers) -> None:
        """Show samples."""
        for name, own in self._parts(answers):
            signal = self._signals.get(name)
            if signal is None:
                assert isinstance(self._run.predictor, Fleet)
                signal = self._signals[name] = self._signal(name, self._run.predictor.members[name])
            signal.see(own)
            hub = self._hubs.note(name)
            if hub is not None:
                hub.publish(own)

    def _parts(self, answers: Answers) -> list[tuple[str, Answers]]:
        """The answers of each signal, with its name."""
        if isinstance(self._run.predictor, Predictor):
            return [("", answers)] if len(answers.times) else []
        assert answers.codes is not None
        names = self._run.predictor.labels.names
        return [(names[code], part(answers, rows)) for code, rows in divided(answers.codes)]

    def __call__(self, state: str | None = None) -> None:
        now, samples, style = time.monotonic(), self._run.samples, self._run.source.style
        if state is None and now < self._at + REPORT_SECONDS:
            return
        if samples:
            self._looks.append((now, samples))
        shared = {
            "state": state or ("learning" if samples > self._before else "waiting"),
            "rate": self._rate(),
            "pace": self._run.source.pace,
            "dropped": self._run.dropped(),
            "clipped": self._run.predictor.counters()["clipped"],
            "uptime": now - self._begun,
            "note": "; ".join(self._run.warnings().values()),
            "offset": style.offset if style is not None and style.is_iso else None,
            "zone": style.zone if style is not None and style.is_iso else None,
        }
        for name, hub in self._hubs.of.items():
            signal = self._signals.get(name)
            if signal is not None and (hub.pages or state is not None or not name):
                predictor = signal.predictor
                hub.report(
                    {
                        **shared,
                        "samples": samples if not name else signal.samples,
                        "questions": scores(predictor, state == "ended"),
                        "experts": [predictor.experts(q) for q in range(len(predictor.names))],
                        "alerts": list(signal.alerts),
                    }
                )
        self._board.alive()
        if now >= self._due or state is not None:
            self._board.report(*self._figures(shared, samples))
            self._due = time.monotonic() + max(BOARD_SECONDS, BOARD_SHARE * (time.monotonic() - now))
        self._at, self._before = now, samples

    def _figures(self, shared: dict[str, Any], samples: int) -> tuple[dict[str, Any], list[Any], list[dict[str, Any]]]:
        """What the board tells: health, figures, and the list of signals, the worst first."""
        worst = sorted(self._signals.values(), key=lambda each: -each.worst)
        alerts = sum(each.alarmed for each in worst)
        health = {name: shared[name] for name in ("state", "note", "offset", "zone")}
        health |= {"samples": samples, "signals": len(worst), "alerts": alerts}
        skills = {each.name: _skill(each.predictor) for each in worst[:MEASURED]}
        dropped = [({"reason": reason}, number) for reason, number in shared["dropped"].items()]
        figures: list[tuple[str, str, str, list[Any]]] = [
            ("samples", "counter", "Samples learned from.", [({}, samples)]),
            ("alerts", "counter", "Alerts.", [({}, alerts)]),
            ("dropped", "counter", "Samples that were dropped.", dropped),
            ("signals", "gauge", "Signals.", [({}, len(worst))]),
            ("uptime_seconds", "gauge", "Seconds since the start.", [({}, shared["uptime"])]),
        ]
        of_each: dict[tuple[str, str], Callable[[_Signal], float]] = {
            ("last_sample_seconds", "When the newest sample came."): lambda each: each.arrived,
            ("surprise", "The largest surprise of late, fading."): lambda each: each.worst,
            ("value", "The newest value."): lambda each: each.newest[0],
            ("prediction", "The newest prediction."): lambda each: each.newest[1],
            ("skill", "1 - error / that of the better naive forecast."): lambda each: skills[each.name][0],
        }
        measured = [({"signal": each.name} if each.name else {}, each) for each in worst[:MEASURED] if each.samples]
        for (name, about), value in of_each.items():
            figures.append((name, "gauge", about, [(labels, value(each)) for labels, each in measured]))
        return health, figures, [each.listed(*skills[each.name]) for each in worst[:LISTED] if each.samples]

    def _rate(self) -> float:
        """The samples a second, over the last seconds. NaN while there are too few."""
        if len(self._looks) < 2:
            return math.nan
        (begin, first), (end, last) = self._looks[0], self._looks[-1]
        return (last - first) / (end - begin) if end > begin else math.nan


def _skill(predictor: Predictor) -> tuple[float, int]:
    """How much better than the better naive forecast the first question is answered so far, and over how many samples."""
    so_far = predictor.scores_so_far()
    error, naive = so_far["error"][0], min(so_far["hold"][0], so_far["mean"][0])
    return float(1.0 - error / naive) if naive > 0.0 else math.nan, int(so_far["scored"][0])


def scores(predictor: Predictor, ended: bool) -> dict[str, np.ndarray]:
    """The scores of all questions, with NaN for what is not known: those of the summary, unless there are too many questions."""
    if not ended and len(predictor.names) > SCORED:
        return predictor.scores_so_far()
    last = predictor.scores()
    found: dict[str, np.ndarray] = {"scored": np.array([each.scored for each in last])}
    for prefix, errors in (("", last), ("recent_", [each.recent for each in last])):
        found[f"{prefix}error"] = np.array([each.error for each in errors], float)
        found[f"{prefix}hold"] = np.array([each.naive.hold for each in errors], float)
        found[f"{prefix}mean"] = np.array([each.naive.mean for each in errors], float)
    return found
