"""A run that is shown on the live page while it learns."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from trueonline.nexting.predictor import Answers, Predictor
from trueonline.nexting.stream_run import Run

REPORTS = 0.5  # seconds between reports of scores and counters to the page
ALERT = 0.999  # a sample that is as surprising is marked on the page
ALERTS = 100  # the newest of them are known to a page that is opened later


class Page:
    """The page of a run. `open` serves it for a predictor. `show` learns and stays after the stream has ended, until `stop`."""

    def __init__(self, title: str, host: str, port: int, token: str | None) -> None:
        self._title, self._place = title, (host, port, token)

    def open(self, predictor: Predictor) -> AbstractContextManager:
        """The server of the page, bound to its address."""
        from trueonline.nexting.live import Hub, Server, Shown

        shown = [
            Shown(question.name, target, question.discount, horizon, "return", question.unit)
            for question, target, horizon in zip(predictor.questions, predictor.targets, predictor.horizons, strict=True)
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
            stop.wait()
        return run.summary()


class _Reporter:
    """Shows the samples of a run to a hub, and twice a second its state."""

    def __init__(self, run: Run, hub: Any) -> None:
        self._run, self._hub = run, hub
        self._begun = self._at = time.monotonic()
        self._before, self._rate = run.samples, 0.0
        self._alerts: deque[dict[str, Any]] = deque(maxlen=ALERTS)

    def seen(self, answers: Answers) -> None:
        """Show samples."""
        self._hub.publish(answers)
        self._alerts.extend(alerts(answers, self._run.predictor))

    def __call__(self, state: str | None = None) -> None:
        now, samples = time.monotonic(), self._run.samples
        if state is None and now < self._at + REPORTS:
            return
        if now > self._at:
            self._rate = (samples - self._before) / (now - self._at)
        self._hub.report(
            {
                "state": state or ("learning" if samples > self._before else "waiting"),
                "samples": samples,
                "rate": self._rate,
                "pace": self._run.source.pace,
                "dropped": self._run.dropped(),
                "clipped": self._run.predictor.counters()["clipped"],
                "uptime": now - self._begun,
                "note": "; ".join(self._run.warnings()),
                "questions": scores(self._run.predictor, state == "ended"),
                "alerts": list(self._alerts),
            }
        )
        self._at, self._before = now, samples


def scores(predictor: Predictor, ended: bool) -> dict[str, np.ndarray]:
    """The scores of all questions, with NaN for what is not known. In the end they are those of the summary."""
    if not ended:
        recent = predictor.returns.recent()
        return {"recent_error": recent["error"], "scored": recent["scored"]}
    last = predictor.scores()
    return {
        "error": np.array([each.mean_absolute_return_error for each in last], float),
        "recent_error": np.array([each.recent_absolute_return_error for each in last], float),
        "scored": np.array([each.scored for each in last]),
    }


def alerts(answers: Answers, predictor: Predictor) -> list[dict[str, Any]]:
    """The samples that are surprising, in the words of the page."""
    if answers.surprise is None or answers.suspect is None or answers.expected is None or answers.usual is None:
        return []
    found = []
    for t in np.flatnonzero(answers.surprise >= ALERT)[-ALERTS:]:
        question = int(answers.suspect[t])
        target = predictor.targets[question]
        found.append(
            {
                "time": answers.times[t],
                "surprise": answers.surprise[t],
                "question": predictor.names[question],
                "target": target,
                "value": answers.signals[t, predictor.observed.index(target)],
                "expected": answers.expected[t],
                "usual_error": answers.usual[t],
            }
        )
    return found
