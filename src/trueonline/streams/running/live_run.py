"""A run that is shown on the live page while it learns."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

import numpy as np

from trueonline.streams.outputs.alerts import BEGUN, DEFAULT_THRESHOLD, Incidents
from trueonline.streams.predictor import Answers, Predictor
from trueonline.streams.running.stream_run import Run
from trueonline.streams.sources import TimeStyle

REPORT_SECONDS = 0.5  # seconds between reports of scores and counters to the page
ALERTS_KEPT = 100  # the newest of them are known to a page that is opened later
RATE_REPORTS = 11  # reports over which the rate is measured


class Page:
    """The page of a run. `open` serves it for a predictor. `show` learns and stays after the stream has ended, until `stop`."""

    def __init__(self, title: str, host: str, port: int, token: str | None) -> None:
        self._title, self._place = title, (host, port, token)

    def open(self, predictor: Predictor) -> AbstractContextManager:
        """The server of the page, bound to its address."""
        from trueonline.streams.live import Hub, PageQuestion, Server

        shown = [
            PageQuestion(name, target, scale.discount, horizon, "mean" if scale.mean else "return")
            for name, target, scale, horizon in zip(
                predictor.names, predictor.targets, predictor.scales, predictor.horizons, strict=True
            )
        ]
        self._hub = Hub(shown, predictor.observed, self._title)
        self._server = Server(self._hub, *self._place)
        return self._server

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._server.url

    def show(self, run: Run, stop: threading.Event, limit: int | None = None) -> dict[str, Any]:
        """Learn and show it. Return the summary."""
        reporter = _Reporter(run, self._hub)
        reporter("waiting")
        with run.resources:
            run.learn(stop, seen=reporter.seen, idle=reporter, limit=limit)
            run.finish(forget=False)
            reporter("ended")
            while not stop.wait(REPORT_SECONDS):  # without a time, Windows would not hear of Ctrl-C
                pass
        return run.summary()


class _Reporter:
    """Shows the samples of a run to a hub, and twice a second its state."""

    def __init__(self, run: Run, hub: Any) -> None:
        self._run, self._hub = run, hub
        self._begun = self._at = time.monotonic()
        self._before = run.samples
        self._looks: deque[tuple[float, int]] = deque(maxlen=RATE_REPORTS)  # when there were how many samples
        self._alerts: deque[dict[str, Any]] = deque(maxlen=ALERTS_KEPT)
        self._incidents = Incidents(run.predictor, DEFAULT_THRESHOLD if run.alerts is None else run.alerts.threshold)

    def seen(self, answers: Answers) -> None:
        """Show samples."""
        self._hub.publish(answers)
        told = self._incidents.follow(answers, TimeStyle())
        self._alerts.extend(asdict(alert) for alert in told if alert.state == BEGUN)

    def __call__(self, state: str | None = None) -> None:
        now, samples, style = time.monotonic(), self._run.samples, self._run.source.style
        if state is None and now < self._at + REPORT_SECONDS:
            return
        if samples:
            self._looks.append((now, samples))
        self._hub.report(
            {
                "state": state or ("learning" if samples > self._before else "waiting"),
                "samples": samples,
                "rate": self._rate(),
                "pace": self._run.source.pace,
                "dropped": self._run.dropped(),
                "clipped": self._run.predictor.counters()["clipped"],
                "uptime": now - self._begun,
                "note": "; ".join(self._run.warnings().values()),
                "offset": style.offset if style is not None and style.is_iso else None,
                "questions": scores(self._run.predictor, state == "ended"),
                "experts": [self._run.predictor.experts(q) for q in range(len(self._run.predictor.names))],
                "alerts": list(self._alerts),
            }
        )
        self._at, self._before = now, samples

    def _rate(self) -> float:
        """The samples a second, over the last seconds. NaN while there are too few."""
        if len(self._looks) < 2:
            return math.nan
        (begin, first), (end, last) = self._looks[0], self._looks[-1]
        return (last - first) / (end - begin) if end > begin else math.nan


def scores(predictor: Predictor, ended: bool) -> dict[str, np.ndarray]:
    """The scores of all questions, with NaN for what is not known. In the end they are those of the summary."""
    if not ended:
        return predictor.scores_so_far()
    last = predictor.scores()
    found: dict[str, np.ndarray] = {"scored": np.array([each.scored for each in last])}
    for prefix, errors in (("", last), ("recent_", [each.recent for each in last])):
        found[f"{prefix}error"] = np.array([each.error for each in errors], float)
        found[f"{prefix}hold"] = np.array([each.naive.hold for each in errors], float)
        found[f"{prefix}mean"] = np.array([each.naive.mean for each in errors], float)
    return found
