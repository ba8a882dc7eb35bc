"""Run experiments of the paper and leave what they found: pictures, data, verdicts and a report."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from trueonline.files import write_whole
from trueonline.lab import report
from trueonline.lab.experiment import Chart, Experiment, Outcome, Settings
from trueonline.lab.registry import experiment
from trueonline.lab.style import COLOURS, DASHES, NAMES, look
from trueonline.study import results as tables

PACKAGES = ("trueonline", "numpy", "numba", "scipy", "pyarrow", "matplotlib", "altair")


@dataclass(frozen=True)
class Finished:
    experiment: Experiment
    outcome: Outcome
    seconds: float
    sweeping: float = 0.0  # seconds of them until the last result of a sweep was stored


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
    finished = []
    for name in names:
        began = time.perf_counter()
        chosen, watch = experiment(name), _Watch(settings.progress)
        with look():
            outcome = chosen.run(replace(settings, progress=watch))
            _write(out / name, outcome)
        finished.append(Finished(chosen, outcome, time.perf_counter() - began, watch.seconds))
        announce(finished[-1])
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
    write_whole(
        out / "verdicts.json", lambda file: file.write(json.dumps(verdicts, indent=2, ensure_ascii=False).encode())
    )
    report.build(out / "report.html", [_section(done, out) for done in finished], _about(settings, finished))
    return finished


def _write(folder: Path, outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tables.write(outcome.data, folder / "data")
    for name, picture in outcome.figures.items():
        _draw(picture, folder / name)
    for name, content in outcome.files.items():
        write_whole(folder / name, partial(_put, content))


def _draw(picture: Any, path: Path) -> None:
    picture.get_layout_engine().execute(picture)  # once for both files
    picture.set_layout_engine("none")
    for ending in ("png", "pdf"):
        write_whole(path.with_name(f"{path.name}.{ending}"), partial(picture.savefig, format=ending))


def _put(content: bytes, file: IO[bytes]) -> None:
    file.write(content)


def _section(done: Finished, out: Path) -> report.Section:
    name = done.experiment.name
    files = [f"{name}/{picture}.{ending}" for picture in done.outcome.figures for ending in ("png", "pdf")]
    files += [f"{name}/{file}" for file in done.outcome.files]
    shown = done.outcome.shown or (None if done.outcome.charts else "figure")
    return report.Section(
        name=name,
        title=done.experiment.title,
        text="\n\n".join(filter(None, (done.experiment.text, done.outcome.note))),
        charts=[_chart(chart) for chart in done.outcome.charts],
        verdicts=[
            {"claim": claim.claim, "verdict": claim.verdict, "numbers": _rounded(_plain(claim.numbers))}
            for claim in done.outcome.claims
        ],
        seconds=done.seconds,
        picture=None if shown is None else (out / name / f"{shown}.png").read_bytes(),
        files=[*files, f"{name}/data.csv", f"{name}/data.parquet"],
    )


def _chart(chart: Chart) -> report.Chart:
    """The chart with the names, colours and dashes of the methods."""
    import pyarrow as pa

    column = chart.data.column_names.index(chart.series)
    values = [NAMES.get(value, value) for value in chart.data[chart.series].to_pylist()]
    data = chart.data.set_column(column, chart.series, pa.array(values))
    others = {"dense": "#56B4E9", "sparse, 9 active": "#E69F00"}
    colours = {NAMES.get(name, name): colour for name, colour in {**COLOURS, **others}.items()}
    dashes = {NAMES[name]: dash for name, dash in DASHES.items() if dash}
    return replace(chart, data=data, colours=colours, dashes=dashes)


def _plain(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: it becomes a word."""
    return json.loads(json.dumps(dict(numbers)), parse_constant=str)


def _rounded(value: Any) -> Any:
    """Numbers as people read them: four digits."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def _about(settings: Settings, finished: Sequence[Finished]) -> dict[str, str]:
    runs = "each experiment's own number" if settings.runs is None else str(settings.runs)
    if any(done.experiment.name == "asterix" for done in finished):
        runs += f"; asterix at the scale {settings.scale}"
    return {
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "time it took": f"{sum(done.seconds for done in finished):.0f} s",
        "runs of a setting": runs,
        **({} if settings.mrps is None else {"MRPs of each class": str(settings.mrps)}),
        "seed": str(settings.seed),
        "engine": settings.engine,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
    }
