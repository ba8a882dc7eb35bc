"""How long it takes until the package, or its command, is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.report import Section, Settings, Table, Target
from benchmarks.timing import race

HEAVY = ("numpy", "numba")


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
    loaded = _heavy_modules()
    name = "`trueonline.cli` imports neither NumPy nor Numba"
    section.targets.append(Target(name, "none", ", ".join(loaded) or "none", not loaded))
    return section


def _call(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _heavy_modules() -> list[str]:
    code = f"import sys, trueonline.cli; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return found.stdout.split()
