"""The work of `trueonline predict` and `trueonline live`: prepare a run or resume one, and learn until it ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from trueonline.files import Lock, looks_saved, sweep_up
from trueonline.inputs import positive
from trueonline.nexting.live_run import Page
from trueonline.nexting.output import check_out, open_output
from trueonline.nexting.predictor import Predictor, Setup
from trueonline.nexting.reporting import Say, Warner, as_text, report_pace, report_resumption
from trueonline.nexting.signals import FUNCTIONS
from trueonline.nexting.sources import Cleaner, Source, has_own_times, is_live, open_source, without_credentials
from trueonline.nexting.stream_checkpoint import KIND, Checkpoint, check_different_files
from trueonline.nexting.stream_run import Run

__all__ = ["Options", "Page", "Warner", "as_text", "predict", "prepare", "report_pace", "until_stopped"]

GAP = 10.0  # samples that may be missing before a trace is cut, by default


@dataclass(frozen=True)
class Options:
    """The options of the command that do not determine the predictions."""

    source: str
    time: str | None = None
    time_unit: str = "s"
    follow: bool = False
    pace: float | Literal["fit"] | None = None
    missing: str = "hold"
    max_gap: float | None = None
    out: str | None = None
    checkpoint: str | None = None
    every: float = 10.0
    fresh: bool = False
    mqtt_password_file: str | None = None
    mqtt_ca: str | None = None


def prepare(
    options: Options,
    setup: Setup,
    stream: TextIO,
    say: Say,
    serve: Callable[[Predictor], AbstractContextManager] | None = None,
) -> Run:
    """The run, from scratch or resumed from a checkpoint. Nothing is written before everything has been checked.

    `serve` makes a server for the predictor, also before anything is written. The server ends with the run.
    """
    if options.follow and options.pace is not None:
        raise ValueError("--follow and --pace cannot be combined: drop one")
    out = None if options.out in (None, "-") else options.out
    if out is not None:
        check_out(out)
    place = options.checkpoint if options.checkpoint is not None else out and f"{out}.checkpoint"
    file = options.source if os.path.isfile(options.source) else None
    check_different_files({"the source": file, "--out": out, "--checkpoint": place})
    predictor = Predictor(setup)
    gap = options.max_gap if options.max_gap is not None else setup.rate and GAP / setup.rate
    cleaner = Cleaner(predictor.columns, max_gap=gap, missing=options.missing)
    every = positive("every", options.every)
    clock: dict[str, Any] = {"time": options.time, "rate": setup.rate, "time_unit": options.time_unit}
    source_options = {name: getattr(options, name) for name in ("source", "time", "time_unit", "missing", "max_gap")}
    source_options["source"] = without_credentials(options.source)
    path = None if place is None else Path(place)
    with ExitStack() as resources:
        for each in (path, out):
            if each is not None:
                lock = Lock(each)
                resources.callback(lock.release)
                sweep_up(each)
        checkpoint = None
        if path is not None and path.exists():
            if not options.fresh:
                checkpoint = Checkpoint.read(path)
                checkpoint.check_same_run(path, setup.as_json(), source_options)
            elif not looks_saved(path, KIND):
                raise ValueError(f"{path} is there already and is not a checkpoint; name another --checkpoint")
        # A run that will resume later leaves the last line of a file if the line is not complete yet.
        whole = options.checkpoint is not None and not is_live(options.source)
        more: dict[str, Any] = {"follow": options.follow, "whole_lines": whole, "pace": options.pace}
        more |= {"mqtt_password_file": options.mqtt_password_file, "mqtt_ca": options.mqtt_ca}
        source = resources.enter_context(_open(options.source, predictor, clock, more))
        if serve is not None:
            resources.enter_context(serve(predictor))
        output = open_output(options.out, predictor.names, stream, checkpoint is not None, options.fresh)
        resources.callback(output.abandon)
        counted = options.time is None and not has_own_times(options.source)
        run = Run(source, source_options, cleaner, predictor, output, path, every, counted)
        if checkpoint is not None:
            run.resume(checkpoint)
            report_resumption(run, checkpoint, say)
        run.resources = resources.pop_all()
    return run


def _open(spec: str, predictor: Predictor, clock: dict[str, Any], more: dict[str, Any]) -> Source:
    try:
        return open_source(spec, predictor.columns, **clock, **more)
    except ValueError as error:
        calls = [name for name in predictor.columns if "(" in name]
        if "no column" in str(error) and calls:
            known = ", ".join(FUNCTIONS.values())
            raise ValueError(f"{error}. If {calls[0]} should be a derived signal, use one of {known}") from None
        raise


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """An event that SIGINT (Ctrl-C) and SIGTERM set, so that the run ends in good order. A second signal ends it at once."""
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
    """Learn until the end. Return the summary. `forget`: a stream that has ended leaves no checkpoint."""

    def idle() -> None:
        for watch in watchers:
            watch(run)

    begun = time.monotonic()
    with run.resources:
        run.learn(stop, idle=idle, limit=limit)
        run.finish(forget=forget and run.ended)
    return {**run.summary(), "seconds": round(time.monotonic() - begun, 3)}
