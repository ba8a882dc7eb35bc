"""Run experiments and leave what they found: pictures, data, verdicts and a report."""

from __future__ import annotations

import io
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trueonline.files import write_whole
from trueonline.lab import opening, report
from trueonline.lab.experiment import Experiment, Outcome, Settings
from trueonline.lab.registry import experiment
from trueonline.look import look
from trueonline.study import results as tables

PACKAGES = ("trueonline", "numpy", "numba", "scipy", "pyarrow", "matplotlib")


@dataclass(frozen=True)
class Finished:
    """An experiment that has run, its outcome, and its pictures as SVG."""

    experiment: Experiment
    outcome: Outcome
    seconds: float
    sweeping: float = 0.0  # seconds of them until the last result of a sweep was stored
    pictures: Mapping[str, str] = field(default_factory=dict)  # name → SVG
    failures: Mapping[str, str] = field(default_factory=dict)  # name of a picture → why it could not be drawn


class _Watch:
    """Progress that adds up the time in which it was made."""

    def __init__(self, progress: Callable[[Any, int, int], None]) -> None:
        self._progress, self._then, self.seconds = progress, 0.0, 0.0

    def __call__(self, task: Any, done: int, of: int) -> None:
        now = time.perf_counter()
        if task is not None:  # otherwise a sweep or a task begins here
            self.seconds += now - self._then
        self._then = now
        self._progress(task, done, of)


def reproduce(
    names: Sequence[str], out: str | Path, settings: Settings, announce: Callable[[Finished], None] = lambda done: None
) -> list[Finished]:
    """Run experiments by name; write each one's files as soon as it is done, and the report at the end."""
    out = Path(out)
    chosen = [experiment(name) for name in names]
    for each in chosen:
        each.check(settings)
    finished = []
    for each in chosen:
        began = time.perf_counter()
        watch = _Watch(settings.progress)
        outcome = each.run(replace(settings, progress=watch))
        pictures, failures = _write(out / each.name, outcome)
        done = Finished(each, outcome, time.perf_counter() - began, watch.seconds, pictures, failures)
        finished.append(done)
        announce(done)
    verdicts = [
        {
            "experiment": done.experiment.name,
            "claim": claim.claim,
            "verdict": claim.verdict,
            "numbers": _plain(claim.numbers),
        }
        for done in finished
        for claim in done.outcome.claims
    ]
    _put(out / "verdicts.json", json.dumps(verdicts, indent=2, ensure_ascii=False).encode())
    first = opening.opening([claim for done in finished for claim in done.outcome.claims], _opening_pictures())
    report.build(out / "report.html", [_section(done) for done in finished], _about(settings, finished), first)
    return finished


def _write(folder: Path, outcome: Outcome) -> tuple[dict[str, str], dict[str, str]]:
    """Write the files of an experiment. Return its pictures, and why some could not be drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    tables.write(outcome.data, folder / "data")
    for name, content in outcome.files.items():
        _put(folder / name, content)
    pictures, failures = {}, {}
    for name, draw in outcome.figures.items():
        try:
            pictures[name] = _draw(draw, folder / name)
        except Exception as error:  # whatever a picture does, hours of results need their report
            failures[name] = f"{type(error).__name__}: {error}"
    return pictures, failures


def _opening_pictures() -> list[str]:
    try:
        with look():
            return [_saved(picture) for picture in opening.draw()]
    except Exception:  # as above
        return []


def _draw(draw: Callable[[], Any], path: Path) -> str:
    """Draw a picture, write it as PNG and PDF, and return it as SVG."""
    with look():
        return _saved(draw(), path)


def _saved(picture: Any, path: Path | None = None) -> str:
    picture.get_layout_engine().execute(picture)  # once for all files
    picture.set_layout_engine("none")
    if path is not None:
        for ending in ("png", "pdf"):
            write_whole(path.with_name(f"{path.name}.{ending}"), partial(picture.savefig, format=ending))
    drawn = io.BytesIO()
    picture.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue().decode()


def _put(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


def _section(done: Finished) -> report.Section:
    name = done.experiment.name
    pictures = [f"{picture}.{ending}" for picture in done.pictures for ending in ("png", "pdf")]
    return report.Section(
        name=name,
        title=done.experiment.title,
        text="\n\n".join(filter(None, (done.experiment.text, done.outcome.note))),
        reading=done.experiment.reading,
        claims=[replace(claim, numbers=_plain(claim.numbers)) for claim in done.outcome.claims],
        seconds=done.seconds,
        pictures=done.pictures,
        failures=done.failures,
        table=done.experiment.best.of(done.outcome.data),
        files=[f"{name}/{file}" for file in (*pictures, *done.outcome.files, "data.csv", "data.parquet")],
    )


def _plain(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: it becomes a word."""
    return json.loads(json.dumps(dict(numbers)), parse_constant=str)


def _about(settings: Settings, finished: Sequence[Finished]) -> dict[str, str]:
    return {
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "time it took": f"{sum(done.seconds for done in finished):.0f} s",
        "runs of a setting": "each experiment's own number" if settings.runs is None else str(settings.runs),
        **{f"--{name}": str(value) for name, value in settings.options.items() if value is not None},
        "seed": str(settings.seed),
        "engine": settings.engine,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
    }
