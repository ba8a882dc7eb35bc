"""Other packages that learn by temporal differences, where they are installed.

MushroomRL pins a NumPy older than this package's, so both cannot share an environment: the peers run in an interpreter of
their own (`--peers-python`), which needs nothing of `trueonline`. They take turns with `trueonline` all the same, because
each waits in its process for the order to learn from the stream once more. `make peers` makes the environment. SwiftTD
is built then, and its build file asks for an old scikit-build-core: SKBUILD_MINIMUM_VERSION=0.7 makes a newer one take it.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType

import numpy as np

from benchmarks import streams
from benchmarks.eager import EagerSparse, follow
from benchmarks.report import Section, Settings, Table
from benchmarks.timing import race
from trueonline import TrueOnlineTD

N = 200_000
STEPS = 10_000
FEW = 50  # steps for those that pass over all features
PARAMETERS = {"step_size": 0.01, "trace_decay": 0.9, "discount": 0.99}
# For each child: its title, the number of steps, and a remark that a reader of its row needs.
PEERS = {
    "mushroom": (
        "MushroomRL, TrueOnlineSARSALambda",
        FEW,
        "the same updates; dense vectors in NumPy, of 2n: it wants two actions",
    ),
    "swift": (
        "SwiftTD, SwiftTDBinaryFeatures",
        STEPS,
        "another algorithm: adapts step-sizes; C++, float32, cuts traces at ε = 1e-8",
    ),
    "swift_fixed": (
        "SwiftTD, adaptation off, ε = 1e-12",
        STEPS,
        "then it is true online TD(λ), in float32 and with the cut",
    ),
}


class Missing(Exception):  # noqa: N818 - the table says so, and the benchmark continues
    """A peer cannot be run, for this reason."""


class Peer:
    """A peer in a process of its own, which learns from the stream on request."""

    def __init__(self, python: str, name: str, steps: int, stream: Path) -> None:
        child = Path(__file__).with_name("peer_child.py")
        command = [python, str(child), name, str(steps), str(stream)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise Missing(f"no interpreter ({error.strerror})") from None
        self.version, values = self._answer()
        self.values = np.array(values)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate()  # the end of its input is the end of the child

    def learn(self) -> None:
        """Learn from the whole stream. The pipe takes some 50 µs, which is little beside that."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> list:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            _, complaint = self._process.communicate()
            reason = (complaint.strip().splitlines() or ["no reason given"])[-1]
            raise Missing("not installed" if "ModuleNotFoundError" in reason else reason)
        return json.loads(line)


def measure(settings: Settings) -> Section:
    X, rewards = streams.tile_coded(N, STEPS)
    learner = TrueOnlineTD(N, **PARAMETERS)
    values = learner.run(X, rewards)
    rows, numbers = list(X), rewards.tolist()
    numpy = EagerSparse(N, **PARAMETERS)
    competitors = {
        "run": partial(learner.run, X, rewards),
        "update": partial(follow, learner, rows, numbers),
        "numpy": partial(follow, numpy, rows[: FEW + 1], numbers[:FEW]),
    }
    names = {
        "run": ("trueonline, `run`", STEPS, "one call for the whole stream"),
        "update": ("trueonline, `update`", STEPS, "one call per transition, as all below"),
        "numpy": ("Algorithm 2 in NumPy", FEW, "the same updates; sparse products, but all of w and e at every step"),
    }
    apart, missing = {"run": "–", "update": "–", "numpy": "–"}, []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as processes:
        stream = Path(folder) / "stream.npz"
        np.savez(stream, X=X, rewards=rewards, n=N, **PARAMETERS)
        for peer, (name, steps, what) in PEERS.items():
            try:
                child = processes.enter_context(Peer(settings.peers_python, peer, steps, stream))
            except Missing as reason:
                missing.append((name, str(reason), "–", "–", what))
                continue
            competitors[peer] = child.learn
            names[peer] = (f"{name} ({child.version})", steps, what)
            same = values[: len(child.values)]
            apart[peer] = f"{np.abs(child.values - same).max() / np.abs(same).max():.1e}"
        times = race(competitors, rounds=settings.rounds)
    table = [
        (
            name,
            times.per_step(key, steps),
            "1" if key == "update" else times.ratio(key, "update", steps, STEPS),
            apart[key],
            what,
        )
        for key, (name, steps, what) in names.items()
    ]
    return Section(
        "Peers",
        f"The tile-coded stream, {streams.ACTIVE} active of {N:,} features, α = 0.01, λ = 0.9, γ = 0.99, by each "
        "package's public call for one transition. The peers wait in processes of their own, and take turns with `update`. "
        "`apart` is the largest difference of a prediction from that of `run`, relative to the largest prediction.",
        [Table(("what", "per step", "takes, against `update`", "apart", "remark"), [*table, *missing])],
    )
