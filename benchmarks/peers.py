"""Other packages that learn by temporal differences, where they are installed.

MushroomRL pins a NumPy older than this package's, so both cannot share an environment: the peers run in an interpreter of
their own (`--peers-python`), which needs nothing of `trueonline`, and are timed there. One way to make it:

    python3 -m venv peers
    peers/bin/pip install mushroom-rl
    SKBUILD_MINIMUM_VERSION=0.7 peers/bin/pip install swifttd   # newer scikit-build-core refuses its build file
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import streams
from benchmarks.eager import follow
from benchmarks.report import Seconds, Section, Settings, Table, short
from benchmarks.timing import race
from trueonline import TrueOnlineTD

N = 200_000
STEPS = 10_000
PARAMETERS = {"step_size": 0.01, "trace_decay": 0.9, "discount": 0.99}
# What each child is asked for, over how many steps, and what must be known to read its row.
PEERS = (
    (
        "mushroom",
        "MushroomRL, TrueOnlineSARSALambda",
        50,
        "the same updates; dense vectors in NumPy, of 2n: it wants two actions",
    ),
    (
        "swift",
        "SwiftTD, SwiftTDBinaryFeatures",
        STEPS,
        "another algorithm: adapts step-sizes; C++, float32, cuts traces at ε = 1e-8",
    ),
    (
        "swift_fixed",
        "SwiftTD, adaptation off, ε = 1e-12",
        STEPS,
        "then it is true online TD(λ), in float32 and with the cut",
    ),
)


def measure(settings: Settings) -> Section:
    X, rewards = streams.tile_coded(N, STEPS)
    learner = TrueOnlineTD(N, **PARAMETERS)
    values = learner.run(X, rewards)
    rows, numbers = list(X), rewards.tolist()
    times = race(
        {"run": partial(learner.run, X, rewards), "update": partial(follow, learner, rows, numbers)},
        rounds=settings.rounds,
    )
    update = times.per_step("update", STEPS)
    table: list[tuple] = [
        ("trueonline, `run`", times.per_step("run", STEPS), _ratio(times.per_step("run", STEPS), update), "–", ""),
        ("trueonline, `update`", update, "1", "–", "one call per transition, as the others"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        stream = Path(folder) / "stream.npz"
        np.savez(stream, X=X, rewards=rewards, n=N, **PARAMETERS)
        for peer, name, steps, what in PEERS:
            answer = _ask(settings, peer, steps, stream)
            if isinstance(answer, str):
                table.append((name, answer, "–", "–", what))
                continue
            took = Seconds(answer["seconds"] / steps)
            same = values[: len(answer["values"])]
            apart = np.abs(np.array(answer["values"]) - same).max() / np.abs(same).max()
            table.append((name, took, _ratio(took, update), f"{apart:.1e}", what))
    return Section(
        "Peers",
        f"The tile-coded stream, {streams.ACTIVE} active of {N:,} features, α = 0.01, λ = 0.9, γ = 0.99, by each "
        "package's public call for one transition. The peers run in a process of their own after `update`, not in turns "
        "with it, so ratios are rougher than elsewhere. `apart` is the largest difference of a prediction from that of "
        "`run`, relative to the largest prediction.",
        [Table(("what", "per step", "against `update`", "apart", "remark"), table)],
    )


def _ratio(took: Seconds, other: Seconds) -> str:
    return f"{short(took.seconds / other.seconds)}×"


def _ask(settings: Settings, peer: str, steps: int, stream: Path) -> dict | str:
    """The child's seconds and predictions, or why there are none."""
    child = Path(__file__).with_name("peer_child.py")
    command = [settings.peers_python, str(child), peer, str(steps), str(settings.rounds), str(stream)]
    try:
        found = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        return f"no interpreter ({error.strerror})"
    if found.returncode:
        reason = (found.stderr.strip().splitlines() or ["no reason given"])[-1]
        return "not installed" if "ModuleNotFoundError" in reason else reason
    return json.loads(found.stdout)
