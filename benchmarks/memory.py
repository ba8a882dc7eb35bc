"""The memory of a learner with many features, few of them ever touched."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.report import Bytes, Section, Settings, Table
from trueonline.core.memory import allocate

DISTINCT = 2_000
CHILD = """
import sys
from benchmarks import streams
from trueonline import TrueOnlineTD

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))

n, steps, distinct = map(int, sys.argv[1:])
parameters = {"step_size": 0.01, "trace_decay": 0.9, "discount": 0.99}
X, rewards = streams.few(n, steps, distinct)
TrueOnlineTD(n, **parameters).run(X[:100], rewards[:99])  # compiles, and leaves nothing behind but code
before = resident()
learner = TrueOnlineTD(n, **parameters)
learner.run(X, rewards)
print(resident() - before)
"""


def measure(settings: Settings) -> Section:
    n, steps = (2_000_000, 10_000) if settings.quick else (20_000_000, 50_000)
    title = "Memory"
    about = (
        f"A learner with n = {n:,} features after {steps:,} steps of a stream that touches {DISTINCT:,} of them, spread "
        "evenly: what its arrays are long, and by how much the resident memory of a fresh process grew."
    )
    if not os.path.exists("/proc/self/status"):
        return Section(title, about, notes=["There is no /proc here, so resident memory was not measured."])
    vectors = 2 * 8 * n
    allocated = sum(array.nbytes for array in allocate(n))
    rows = [("two float64 vectors of n, written (the eager method)", Bytes(vectors), "1")]
    for name, size in (
        ("the learner's arrays, allocated", allocated),
        ("the learner, resident, as it comes", _resident(n, steps, {})),
        ("the learner, resident, NumPy without huge pages", _resident(n, steps, {"NUMPY_MADVISE_HUGEPAGE": "0"})),
    ):
        rows.append((name, Bytes(size), f"{size / vectors:.3g}×"))
    note = (
        "NumPy asks the kernel for pages of 2 MB where an array is larger than 4 MB; one touched feature then commits "
        "2 MB of it. `NUMPY_MADVISE_HUGEPAGE=0` in the environment makes pages 4 kB, and misses dearer."
    )
    return Section(title, about, [Table(("what", "bytes", "of two vectors"), rows)], notes=[note])


def _resident(n: int, steps: int, extra: dict[str, str]) -> int:
    command = [sys.executable, "-c", CHILD, str(n), str(steps), str(DISTINCT)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | extra)
    return int(found.stdout)
