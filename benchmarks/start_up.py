"""How long it takes until the package, or its command, is there, and until a first call is compiled."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.report import Section, Settings, Table, Target
from benchmarks.timing import race

HEAVY = ("numpy", "numba")

# A first call in a new process with an empty cache: processor time beyond the imports, and compilations of Numba.
FIRST = """
import time
import numpy as np
from numba.core import event
import trueonline as to
from trueonline import TrueOnlineTD

class Count(event.Listener):
    ends = 0
    def on_start(self, event): pass
    def on_end(self, event): self.ends += 1

count = Count()
event.register("numba:compile", count)
learner = TrueOnlineTD(n_features=100, step_size=0.01, trace_decay=0.9, discount=0.99)
before = time.process_time()
{call}
print(time.process_time() - before, count.ends)
"""
CALLS = {
    "a first sparse `update`": ("learner.start(np.array([1, 2])); learner.update(1.0, np.array([3, 4]))", 1.2),
    "a first dense `update`": ("learner.start(np.ones(100)); learner.update(1.0, np.ones(100))", 1.5),
    "a first dense `run`": ("learner.run(np.ones((3, 100)), np.ones(2))", 1.5),
}


def measure(settings: Settings) -> Section:
    script = Path(sys.executable).with_name("trueonline")
    command = [str(script)] if script.exists() else [sys.executable, "-c", "from trueonline.cli import main; main()"]
    commands = {
        "`python -c pass`": [sys.executable, "-c", "pass"],
        '`python -c "import trueonline"`': [sys.executable, "-c", "import trueonline"],
        "`trueonline --help`": [*command, "--help"],
        '`python -c "from trueonline import TrueOnlineTD"`': [
            sys.executable,
            "-c",
            "from trueonline import TrueOnlineTD",
        ],
    }
    rounds = 3 if settings.quick else 10
    times = race({name: lambda c=c: _call(c) for name, c in commands.items()}, rounds=rounds, tries=1, least=0.0)
    bare, package, help_ = list(commands)[:3]
    rows = [(name, times.per_step(name, 1), times.ratio(name, bare)) for name in commands]
    section = Section(
        "Start-up",
        f"Wall time of a fresh process with warm file caches, median of {rounds}, beside the bare interpreter. The last "
        "row is what everybody pays who then learns something: NumPy and Numba.",
        [Table(("command", "wall time", "against bare Python"), rows)],
    )
    for name, limit in ((package, 0.5), (help_, 0.3)):
        took = times.per_step(name, 1)
        met = median(times.rounds[name]) <= limit
        section.targets.append(Target(name, f"≤ {limit:g} s", took, met))
    _first_calls(section, settings, command)
    loaded = _heavy_modules()
    name = "`trueonline.cli` imports neither NumPy nor Numba"
    section.targets.append(Target(name, "none", ", ".join(loaded) or "none", not loaded))
    return section


def _first_calls(section: Section, settings: Settings, command: list[str]) -> None:
    """First calls with an empty cache. Other work on the machine makes them slower, so the shortest of a few counts."""
    rows = []
    for name, (call, most) in CALLS.items():
        found = [_first(FIRST.format(call=call)) for _ in range(1 if settings.quick else 3)]
        seconds, compilations = min(found)
        rows.append((name, f"{seconds:.2f} s", f"{compilations:.0f}"))
        section.targets.append(Target(name, f"≤ {most:g} s of processor time", f"{seconds:.2f} s", seconds <= most))
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        log.write_text("time,value\n" + "".join(f"{60 * t},{t % 24}\n" for t in range(500)))
        asked = [
            "predict",
            str(log),
            "--time",
            "time",
            "--target",
            "value",
            "--discount",
            "0.9",
            "--out",
            f"{folder}/out.csv",
        ]
        commands = {"`trueonline predict`, 500 samples": (asked, 5.0)}
        if not settings.quick:
            commands["`trueonline verify`, all methods"] = (["verify"], 60.0)
        for name, (arguments, most) in commands.items():
            seconds = _processor_time([*command, *arguments])
            rows.append((name, f"{seconds:.1f} s", ""))
            section.targets.append(Target(name, f"≤ {most:g} s of processor time", f"{seconds:.1f} s", seconds <= most))
    section.tables.append(Table(("with an empty cache", "processor time", "compilations"), rows))


def _first(code: str) -> tuple[float, float]:
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        found = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    seconds, compilations = map(float, found.stdout.split())
    return seconds, compilations


def _processor_time(command: list[str]) -> float:
    """The processor time of a command with an empty cache, the imports included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with TemporaryDirectory() as folder:
        subprocess.run(command, env={**os.environ, "NUMBA_CACHE_DIR": folder}, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _call(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _heavy_modules() -> list[str]:
    code = f"import sys, trueonline.cli; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return found.stdout.split()
