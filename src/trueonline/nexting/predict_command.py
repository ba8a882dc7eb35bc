"""What `trueonline predict` and `trueonline live` do: put a run together, go on where one was stopped, and tell about it."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from trueonline.files import Lock, sweep_up
from trueonline.inputs import positive
from trueonline.nexting.output import open_output
from trueonline.nexting.predictor import Answers, Predictor, Setup
from trueonline.nexting.running import Checkpoint, Run, refuse_same
from trueonline.nexting.signals import FUNCTIONS
from trueonline.nexting.sources import Cleaner, Source, has_own_times, is_live, open_source

GAP = 10.0  # samples that may be missing before a trace is cut, unless told otherwise
WARN = 2.0  # seconds between looks for something to warn of
REPORTS = 0.5  # seconds between what a page is told of scores and counters

Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What the command was told, beside what determines the predictions."""

    source: str
    time: str | None = None
    time_unit: str = "s"
    follow: bool = False
    pace: float | None = None
    missing: str = "hold"
    max_gap: float | None = None
    out: str | None = None
    checkpoint: str | None = None
    every: float = 10.0
    fresh: bool = False


def prepare(
    options: Options,
    setup: Setup,
    stream: TextIO,
    say: Say,
    serve: Callable[[Predictor], AbstractContextManager] | None = None,
) -> Run:
    """The run, at its beginning or where a checkpoint says. Nothing is written before everything has been checked.

    `serve` is what must be possible, too, before anything is written; it is ended with the run.
    """
    if options.follow and options.pace is not None:
        raise ValueError("a file that is followed has a pace of its own: give --follow or --pace")
    named = None if options.out in (None, "-") else options.out
    place = options.checkpoint if options.checkpoint is not None else named and f"{named}.checkpoint"
    file = options.source if Path(options.source).is_file() else None
    refuse_same({"the source": file, "--out": named, "--checkpoint": place})
    predictor = Predictor(setup)
    gap = options.max_gap if options.max_gap is not None else setup.rate and GAP / setup.rate
    cleaner = Cleaner(predictor.columns, max_gap=gap, missing=options.missing)
    every = positive("every", options.every)
    clock: dict[str, Any] = {"time": options.time, "rate": setup.rate, "time_unit": options.time_unit}
    told = {name: getattr(options, name) for name in ("source", "time", "time_unit", "missing", "max_gap")}
    path = None if place is None else Path(place)
    with ExitStack() as held:
        for each in (path, named):
            if each is not None:
                lock = Lock(each)
                held.callback(lock.release)
                sweep_up(each)
        found = None
        if path is not None and path.exists():
            if not options.fresh:
                found = Checkpoint.read(path)
                found.refuse_others(path, setup.as_json(), told)
            elif not _is_archive(path):
                raise ValueError(f"{path} is there already, and is no checkpoint; name another file")
        # A file that will be gone on with may end in a line that is not whole yet.
        whole = options.checkpoint is not None and not is_live(options.source)
        more: dict[str, Any] = {"follow": options.follow, "whole_lines": whole, "pace": options.pace}
        source = held.enter_context(_opened(options.source, predictor, clock, more))
        if serve is not None:
            held.enter_context(serve(predictor))
        output = open_output(options.out, predictor.names, stream, found is not None, options.fresh)
        held.callback(output.abandon)
        counted = options.time is None and not has_own_times(options.source)
        run = Run(source, told, cleaner, predictor, output, path, every, counted)
        if found is not None:
            run.go_on(found)
            _tell(run, found, say)
        run.held = held.pop_all()
    return run


def _is_archive(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


def _opened(spec: str, predictor: Predictor, clock: dict[str, Any], more: dict[str, Any]) -> Source:
    try:
        return open_source(spec, predictor.columns, **clock, **more)
    except ValueError as error:
        strange = [name for name in predictor.columns if "(" in name]
        if "no column" in str(error) and strange:
            known = ", ".join(FUNCTIONS.values())
            raise ValueError(f"{error}. If {strange[0]} is meant to be derived: known are {known}") from None
        raise


def _tell(run: Run, found: Checkpoint, say: Say) -> None:
    """What going on means: what was kept and what was lost."""
    age = max(0.0, time.time() - float(found.about["written"]))
    say(f"Going on from sample {run.resumed_at:,}, the checkpoint of {_duration(age)} ago.")
    if run.source.replayable:
        say("Nothing is lost: the source is read again from there.")
    else:
        lost = f"what was learned from {run.lost:,} samples after it, and " if run.lost else ""
        say(f"Lost: {lost}whatever was sent since the run stopped; this source does not send again.")


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """An event that Ctrl-C and a request to terminate set: the run then ends in good order. A second one ends it at once."""
    stop = threading.Event()
    before: dict[signal.Signals, Any] = {}

    def ask(number: int, frame: Any) -> None:
        stop.set()
        for each, handler in before.items():
            signal.signal(each, handler)

    for each in (signal.SIGINT, signal.SIGTERM):
        before[each] = signal.signal(each, ask)
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def predict(
    run: Run, stop: threading.Event, watchers: Sequence[Callable[[Run], None]], limit: int | None, forget: bool
) -> dict[str, Any]:
    """Learn until the end; return the summary. `forget`: a stream that has ended leaves no checkpoint."""

    def idle() -> None:
        for watch in watchers:
            watch(run)

    begun = time.monotonic()
    with run.held:
        run(stop, idle=idle, limit=limit)
        run.finish(forget=forget and run.ended)
    return {**run.summary(), "seconds": round(time.monotonic() - begun, 3)}


class Warner:
    """Says what a user should know of as soon as it shows, and once."""

    def __init__(self, say: Say) -> None:
        self._say, self._due = say, time.monotonic() + WARN
        self._said: set[str] = set()

    def __call__(self, run: Run) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + WARN
            self.tell(run.warnings())

    def tell(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            kind = warning.partition(":")[0]  # numbers in it may change
            if kind not in self._said:
                self._said.add(kind)
                self._say(f"Warning: {warning}.")


# --- The page ------------------------------------------------------------------------------------


class Page:
    """The page of a run. `open` it for the predictor; then it shows a `run`, and stays after the stream has ended, until `stop`."""

    def __init__(self, title: str, host: str, port: int, token: str | None) -> None:
        self._title, self._place = title, (host, port, token)

    def open(self, predictor: Predictor) -> AbstractContextManager:
        from trueonline.nexting.live import Hub, Server, Shown

        told = [*predictor.setup.scales()][: len(predictor.setup.horizons)]  # in seconds, in their names already
        shown = [
            Shown(question.name, target, question.discount, None if question.name.rpartition("@")[2] in told else horizon)
            for question, target, horizon in zip(predictor.questions, predictor.targets, predictor.horizons, strict=True)
        ]
        self._hub = Hub(shown, predictor.observed, predictor.setup.rate or 1.0, self._title)
        self._server = Server(self._hub, *self._place)
        return self._server

    @property
    def url(self) -> str:
        return self._server.url

    def show(self, run: Run, stop: threading.Event, limit: int | None = None) -> dict[str, Any]:
        """Learn, and show it; return the summary."""
        reporter = _Reporter(run, self._hub)
        reporter("waiting")
        with run.held:
            run(stop, seen=self._seen, idle=reporter, limit=limit)
            run.finish(forget=False)
            reporter("ended")
            stop.wait()
        return run.summary()

    def _seen(self, answers: Answers) -> None:
        self._hub.publish(answers.times, answers.starts, answers.signals, answers.predictions)


class _Reporter:
    """Tells a hub twice a second how the run is getting on."""

    def __init__(self, run: Run, hub: Any) -> None:
        self._run, self._hub = run, hub
        self._begun = self._at = time.monotonic()
        self._before, self._rate = run.predictor.samples, 0.0

    def __call__(self, state: str | None = None) -> None:
        now, samples = time.monotonic(), self._run.predictor.samples
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


# --- For people ----------------------------------------------------------------------------------


def as_text(summary: dict[str, Any], out: str | None) -> str:
    """The summary as a table."""
    took = f" in {_duration(summary['seconds'])}" if "seconds" in summary else ""
    lines = [f"{summary['samples']:,} samples{took}, {summary['dropped']:,} dropped."]
    noted = {
        name: number
        for name, number in summary["counters"].items()
        if number and name not in ("read", "received", "connections", "widened")
    }
    if noted:
        lines.append(
            "Counted: " + ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in noted.items()) + "."
        )
    rows = [["question", "horizon", "mean return", "mean error", "rms error", "of deviation", "scored", "truncated"]]
    for each in summary["questions"]:
        deviation, rms = each["return_deviation"], each["root_mean_square_return_error"]
        rows.append(
            [
                each["name"],
                "–" if each["horizon"] is None else f"{each['horizon']:.3g} s",
                _figure(each["mean_return"]),
                _figure(each["mean_absolute_return_error"]),
                _figure(rms),
                "–" if not deviation or rms is None else f"{rms / deviation:.0%}",
                f"{each['scored']:,}",
                f"{each['truncated']:,}",
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines += ["", *("  ".join(_placed(row, widths)).rstrip() for row in rows), ""]
    lines.append(
        "Errors are those of predicted returns, over the samples whose return became known to within 1 % (scored). 100 % of the "
        "deviation\nis what a constant, the mean return, would have."
    )
    if out not in (None, "-"):
        lines.append(f"Predictions are in {out}.")
    return "\n".join(lines)


def _placed(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]


def _figure(value: float | None) -> str:
    return (
        "–" if value is None or not math.isfinite(value) else np.format_float_positional(float(f"{value:.4g}"), trim="-")
    )


def _duration(seconds: float) -> str:
    for size, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {name}s"
    return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"
