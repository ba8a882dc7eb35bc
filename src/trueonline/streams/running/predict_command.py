"""The work of `trueonline predict` and `trueonline live`: prepare a run or resume one, and learn until it ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TextIO

from trueonline.files import Lock, looks_saved, sweep_up
from trueonline.inputs import positive
from trueonline.streams.fleet import Fleet, FleetCleaner
from trueonline.streams.outputs.alerts import DEFAULT_THRESHOLD, Alerts
from trueonline.streams.outputs.fleet_alerts import FleetAlerts
from trueonline.streams.outputs.notifying import to_command, to_webhook
from trueonline.streams.outputs.output import check_out, open_output
from trueonline.streams.outputs.publishing import Publisher, check_no_circle
from trueonline.streams.predictor import Predictor, Setup
from trueonline.streams.questions.time_scales import GAP_HORIZONS, GAP_SAMPLES
from trueonline.streams.running.live_run import Page
from trueonline.streams.running.reporting import Say, Warner, as_text, report_new_source, report_pace, report_resumption
from trueonline.streams.running.stream_checkpoint import KIND, Checkpoint, check_different_files
from trueonline.streams.running.stream_run import Run
from trueonline.streams.signals import FUNCTIONS
from trueonline.streams.sources import (
    Cleaner,
    Labels,
    Source,
    SourceAddress,
    open_source,
)
from trueonline.streams.sources.addresses import divided_access
from trueonline.streams.sources.file_chain import is_pattern
from trueonline.streams.sources.sample import MissingColumnsError

REPEATED_SECONDS = 1.0  # seconds in which further signals mean the same as the first

__all__ = ["Options", "Page", "Warner", "as_text", "predict", "prepare", "report_pace", "until_stopped"]


@dataclass(frozen=True)
class Options:
    """The options of the command that do not determine the predictions."""

    source: str | Sequence[str] | SourceAddress
    time: str | None = None
    time_unit: str = "s"
    time_format: str | None = None
    follow: bool = False
    pace: float | Literal["fit"] | None = None
    missing: str = "hold"
    out: str | None = None
    checkpoint: str | None = None
    every: float | None = None
    fresh: bool = False
    mqtt_password_file: str | None = None
    mqtt_ca: str | None = None
    publish: str | None = None
    alert: float | None = None
    alerts: str | None = None
    alert_command: str | None = None
    alert_webhook: str | None = None
    quiet: bool = False
    by: str | None = None
    # Settings of signals, by patterns of their names:
    of_signals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shard: tuple[int, int] = (1, 1)  # part 0 stands for all parts

    def of(self, name: str, setting: str, default: Any) -> Any:
        """A setting of one signal of a fleet: that of the first pattern that fits its name."""
        fitting = (
            each[setting] for pattern, each in self.of_signals.items() if fnmatchcase(name, pattern) and setting in each
        )
        return next(fitting, default)


def prepare(
    options: Options,
    setup: Setup,
    stream: TextIO | None,
    say: Say,
    serve: Callable[[Predictor | Fleet], AbstractContextManager] | None = None,
) -> Run:
    """The run, from scratch or resumed from a checkpoint. Nothing is written before everything has been checked.

    `serve` makes a server for the predictor, also before anything is written. The server ends with the run.
    """
    report = (lambda line: None) if options.quiet else say
    if options.shard[0] == 0:
        raise ValueError(f"--shard {options.shard[1]} is for --engine dask; give I/N, part I of N")
    if options.follow and options.pace is not None:
        raise ValueError("--follow and --pace cannot be combined: drop one")
    address = SourceAddress.of(options.source)
    out = None if options.out in (None, "-") else options.out
    for each in filter(None, (out, options.alerts)):
        check_out(each)
    place = options.checkpoint if options.checkpoint is not None else out and f"{out}.checkpoint"
    _check_files(address, [("--out", out), ("--checkpoint", place), ("--alerts", options.alerts)])
    access = _access(options, address)
    predictor, cleaner, labels = _learners(options, setup)
    every = None if options.every is None else positive("--checkpoint-every", options.every)
    clock = ("time", "time_unit", "time_format")
    source_options = {name: getattr(options, name) for name in ("source", *clock, "missing", "by")}
    source_options["shard"] = list(options.shard)
    source_options["source"] = address.stored
    path = None if place is None else Path(place)
    with ExitStack() as resources:
        for each in filter(None, (place, out, options.alerts)):
            lock = Lock(each)
            resources.callback(lock.release)
            sweep_up(each)
        checkpoint = None if path is None else _found(path, options.fresh)
        resuming = (
            path is not None and checkpoint is not None and checkpoint.resumes(path, setup.as_json(), source_options)
        )
        if checkpoint is not None and not resuming:
            _check_new(out)
        source = resources.enter_context(_open(options, address, predictor, labels, access["source"]))
        if serve is not None:
            resources.enter_context(serve(predictor))
        output = open_output(options.out, predictor.output_columns, stream, options.fresh, predictor.meanings(), labels)
        resources.callback(output.abandon)
        counted = options.time is None and not address.has_own_times and labels is None
        run = Run(source, source_options, cleaner, predictor, output, path, every, counted)
        _add_listeners(run, options, access["publish"], say, resources)
        if checkpoint is None:
            run.begin()
        elif resuming:
            run.resume(checkpoint)
            report_resumption(run, checkpoint, report)
        else:
            run.learn_on(checkpoint)
            run.save()  # from here on, the checkpoint is of the new source
            report_new_source(run, checkpoint, report)
        run.resources = resources.pop_all()
    return run


def _learners(options: Options, setup: Setup) -> tuple[Predictor | Fleet, Cleaner | FleetCleaner, Labels | None]:
    """What learns, what cleans, and the names of signals: of one stream, or of a fleet."""
    predictor, gap = Predictor(setup), _longest_gap(setup)

    def cleaner(name: str) -> Cleaner:
        return Cleaner(predictor.columns, options.of(name, "max_gap", gap), options.of(name, "missing", options.missing))

    if options.by is None:
        return predictor, cleaner(""), None
    labels = Labels(options.by)
    cleaners = FleetCleaner(labels, cleaner, options.shard)
    return Fleet(setup, labels, cleaners, lambda name: options.of(name, "coverage", None)), cleaners, labels


def _longest_gap(setup: Setup) -> float | None:
    """The setting, or ten samples, or three times the longest horizon. Without a rate the predictor measures it."""
    if setup.max_gap is not None:
        return setup.max_gap
    longest = max((scale.seconds or 0.0 for scale in setup.scales()), default=0.0)
    return max(GAP_SAMPLES / setup.rate, GAP_HORIZONS * longest) if setup.rate else None


def _found(path: Path, fresh: bool) -> Checkpoint | None:
    """The checkpoint that is there, unless the run begins from scratch. ValueError if it is something else."""
    if not path.exists():
        return None
    if not fresh:
        return Checkpoint.read(path)
    if not looks_saved(path, KIND):
        raise ValueError(f"{path} exists and is not a checkpoint; choose another --checkpoint")
    return None


def _check_new(out: str | None) -> None:
    """ValueError if the output of another source is where that of the new one should be."""
    if out is not None and os.path.exists(out) and os.path.getsize(out):
        raise ValueError(f"{out} exists, and predictions for another source do not replace it; choose another --out")


def _add_listeners(run: Run, options: Options, access: dict[str, Any], say: Say, resources: ExitStack) -> None:
    """Let a run tell of alerts, and publish, where the options say so."""
    sends = (to_command, options.alert_command), (to_webhook, options.alert_webhook)
    run.notifiers = [make(place) for make, place in sends if place is not None]
    for notifier in run.notifiers:
        resources.callback(notifier.close)
    of_signals = [each["alert"] for each in options.of_signals.values() if "alert" in each]
    if options.alert is not None or options.alerts is not None or run.notifiers or of_signals:
        threshold = DEFAULT_THRESHOLD if options.alert is None else options.alert
        if isinstance(run.predictor, Fleet):

            def of(name: str) -> float:
                return options.of(name, "alert", threshold)

            run.alerts = FleetAlerts(run.predictor, of, say, options.alerts, options.fresh)
        else:
            run.alerts = Alerts(run.predictor, threshold, say, options.alerts, options.fresh)
        resources.callback(run.alerts.close)
    if options.publish is not None:
        run.publisher = Publisher(
            options.publish, run.predictor.names, run.source.replayable, labels=run.output.labels, **access
        )
        resources.callback(run.publisher.close)


def _check_files(address: SourceAddress, written: Sequence[tuple[str, str | None]]) -> None:
    """ValueError if something would be written over the source, or over something else that is written, now or later."""
    check_different_files([*(("the source", path) for path in address.files), *written])
    for files in address.names:
        pattern = os.path.join(files, "*") if os.path.isdir(files) else files
        for name, path in written:
            if path is not None and is_pattern(pattern) and Path(os.path.abspath(path)).match(os.path.abspath(pattern)):
                raise ValueError(f"{name} {path} would be one of the files {pattern}; put it into another folder")


def _access(options: Options, address: SourceAddress) -> dict[str, dict[str, Any]]:
    """The password file and the certificates for the source, and for the broker to publish to."""
    shared = {"password_file": options.mqtt_password_file, "ca": options.mqtt_ca}
    if options.publish is None:
        return {"source": shared, "publish": {}}
    if not address.is_mqtt:
        return {"source": {}, "publish": divided_access([options.publish], **shared)[0]}
    check_no_circle(address.names[0], options.publish)
    of_source, of_publish = divided_access([address.names[0], options.publish], **shared)
    return {"source": of_source, "publish": of_publish}


def _open(
    options: Options, address: SourceAddress, predictor: Predictor | Fleet, labels: Labels | None, access: dict[str, Any]
) -> Source:
    # A run that will resume later leaves the last line of a file if the line is not complete yet.
    whole = options.checkpoint is not None and not address.is_live
    try:
        return open_source(
            address,
            predictor.columns,
            time=options.time,
            rate=predictor.setup.rate,
            time_unit=options.time_unit,
            time_format=options.time_format,
            labels=labels,
            follow=options.follow,
            whole_lines=whole,
            pace=options.pace,
            mqtt_password_file=access.get("password_file"),
            mqtt_ca=access.get("ca"),
        )
    except MissingColumnsError as error:
        calls = [name for name in error.columns if "(" in name]
        if not calls:
            raise
        known = ", ".join(FUNCTIONS.values())
        raise ValueError(f"{error}. If {calls[0]} should be a derived signal, use one of {known}") from None


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """An event that SIGINT (Ctrl-C) and SIGTERM set, so that the run ends in good order.

    A signal more than a second later is a KeyboardInterrupt, which ends the run without a last checkpoint, but releases its locks.
    One that comes sooner means the same as the first: service managers send several.
    """
    stop = threading.Event()
    asked = 0.0

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        if stop.is_set() and time.monotonic() > asked + REPEATED_SECONDS:
            raise KeyboardInterrupt
        if not stop.is_set():
            asked = time.monotonic()
            stop.set()

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
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
