"""A run that is shown on the live page while it learns."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager
from typing import Any

from trueonline.nexting.predictor import Answers, Predictor
from trueonline.nexting.stream_run import Run

REPORTS = 0.5  # seconds between reports of scores and counters to the page


class Page:
    """The page of a run. `open` serves it for a predictor. `show` learns and stays after the stream has ended, until `stop`."""

    def __init__(self, title: str, host: str, port: int, token: str | None) -> None:
        self._title, self._place = title, (host, port, token)

    def open(self, predictor: Predictor) -> AbstractContextManager:
        """The server of the page, bound to its address."""
        from trueonline.nexting.live import Hub, Server, Shown

        in_name = [*predictor.setup.scales()][: len(predictor.setup.horizons)]  # labels that already say the seconds
        shown = [
            Shown(
                question.name, target, question.discount, None if question.name.rpartition("@")[2] in in_name else horizon
            )
            for question, target, horizon in zip(predictor.questions, predictor.targets, predictor.horizons, strict=True)
        ]
        self._hub = Hub(shown, predictor.observed, predictor.setup.rate or 1.0, self._title)
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
            run.learn(stop, seen=self._seen, idle=reporter, limit=limit)
            run.finish(forget=False)
            reporter("ended")
            stop.wait()
        return run.summary()

    def _seen(self, answers: Answers) -> None:
        self._hub.publish(answers.times, answers.starts, answers.signals, answers.predictions)


class _Reporter:
    """Reports the state of a run to a hub, twice a second."""

    def __init__(self, run: Run, hub: Any) -> None:
        self._run, self._hub = run, hub
        self._begun = self._at = time.monotonic()
        self._before, self._rate = run.samples, 0.0

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
                "dropped": self._run.dropped(),
                "clipped": self._run.predictor.counters()["clipped"],
                "uptime": now - self._begun,
                "note": "; ".join(self._run.warnings()),
                "questions": self._run.predictor.returns.recent(),
            }
        )
        self._at, self._before = now, samples
