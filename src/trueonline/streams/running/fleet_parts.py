"""A fleet of recordings on a Dask cluster: its parts are runs of their own, each with its own output and checkpoint.

Signals are independent, so a part needs to know nothing of the others. Every worker reads the whole source, which is quick, and
learns from the signals of its part. The files of all parts lie in a folder that the workers share. If a worker is lost, its part
resumes from its checkpoint on another worker.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from trueonline.streams.predictor import Setup
from trueonline.streams.running.predict_command import Options, predict, prepare
from trueonline.streams.running.reporting import Say
from trueonline.streams.sources import SourceAddress

OF_SOURCE = ("malformed", "unterminated", "source_truncated", "replaced")  # every part counts these of the whole source


def of_part(path: str, part: int | str, parts: int) -> str:
    """The name of a file of one part, beside that of the whole.

    >>> of_part("predictions.csv", 2, 4)
    'predictions.2-of-4.csv'
    """
    place = Path(path)
    return str(place.with_name(f"{place.stem}.{part}-of-{parts}{place.suffix}"))


@dataclass(frozen=True)
class FleetPart:
    """A part of a fleet, as work of an engine."""

    options: Options
    setup: Setup
    spawned: ClassVar[bool] = False

    def compute(self) -> tuple[dict[str, Any], list[str]]:
        """The summary of the part, and what it said."""
        said: list[str] = []
        run = prepare(self.options, self.setup, None, said.append)
        return predict(run, threading.Event(), [], None, forget=False), said

    def check(self) -> None:
        """ValueError if it cannot run."""
        prepare(self.options, self.setup, None, lambda line: None).resources.close()

    def forget(self) -> None:
        """Remove the checkpoint, unless the user named it."""
        if self.options.checkpoint is None and self.options.out is not None:
            Path(f"{self.options.out}.checkpoint").unlink(missing_ok=True)


def parts_of(options: Options, setup: Setup) -> list[FleetPart]:
    """The parts of a fleet. ValueError if an option does not suit them."""
    address, parts = SourceAddress.of(options.source), options.shard[1]
    wrong = {
        "--engine dask is for fleets: give --by, the column that names the signals": options.by is None,
        f"--engine dask is for recordings, got {address.shown}": address.is_live or options.follow,
        "--engine dask computes all parts: give --shard N, the number of parts": options.shard[0] > 0,
        "--engine dask cannot be combined with --pace or --publish": options.pace is not None
        or options.publish is not None,
        "--engine dask writes a file for each part: give --out FILE": options.out == "-",
    }
    for message, is_so in wrong.items():
        if is_so:
            raise ValueError(message)
    source = tuple(map(os.path.abspath, address.names))

    def files(part: int) -> dict[str, Any]:
        places = {name: getattr(options, name) for name in ("out", "checkpoint", "alerts")}
        return {name: place and of_part(os.path.abspath(place), part, parts) for name, place in places.items()}

    shards = range(1, parts + 1)
    return [FleetPart(replace(options, source=source, shard=(part, parts), **files(part)), setup) for part in shards]


def predict_parts(options: Options, setup: Setup, engine: str, say: Say) -> dict[str, Any]:
    """Learn all parts of a fleet on an engine. Return the summary of the whole."""
    from trueonline.study import engines

    begun, parts = time.monotonic(), parts_of(options, setup)
    engines.check(engine)
    for part in parts:
        part.check()
    summaries = []

    def done(part: FleetPart, result: Any) -> None:
        summary, said = result
        summaries.append(summary)
        for line in said:
            say(line)
        if not options.quiet:
            say(f"Part {part.options.shard[0]} of {len(parts)}: {summary['samples']:,} samples.")

    engines.run(parts, engine, done, threads=min(len(parts), os.cpu_count() or 1))  # type: ignore[arg-type]
    for part in parts:
        part.forget()
    return {**together(summaries), "seconds": round(time.monotonic() - begun, 3)}


def together(summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The summary of a fleet from those of its parts."""
    counters = {
        name: (max if name in OF_SOURCE else sum)(each["counters"][name] for each in summaries)
        for name in summaries[0]["counters"]
    }
    dropped = sum(each["dropped"] - each["counters"]["malformed"] for each in summaries) + counters["malformed"]
    questions = [question for each in summaries for question in each["questions"]]
    worst: dict[str, float] = {}
    for question in questions:
        skill = math.inf if question["skill"] is None else question["skill"]
        worst[question["signal"]] = min(skill, worst.get(question["signal"], math.inf))
    resumed = [each["resumed_at"] for each in summaries if each["resumed_at"] is not None]
    return {
        **summaries[0],
        "samples": sum(each["samples"] for each in summaries),
        "dropped": dropped,
        "questions": sorted(questions, key=lambda question: worst[question["signal"]]),
        "counters": counters,
        "resumed_at": sum(resumed) if resumed else None,
        "warnings": list(dict.fromkeys(warning for each in summaries for warning in each["warnings"])),
    }
