"""Commands that write, killed with kill -9 at random moments and started again."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import trueonline as to
from tests.hostile import FINE, REFUSED, PromiseError
from tests.hostile.saved_files import frozen
from tests.processes import start
from trueonline import files

PROMISE = "What a killed command leaves is absent, whole, or resumes to the result of a run that was never stopped."
TRIALS = 130
PATIENCE = 150.0  # seconds after which a command has hung
ROWS = 3000  # of the log; it is read at a pace that takes about two seconds

COMMAND = "from trueonline.cli import main; main()"
EAGER = "from trueonline.control.gym.train import runs; runs.CHECKPOINT_EVERY = 0.0; " + COMMAND
SAVING = """
import itertools, sys, trueonline as to
learners = [to.TrueOnlineTD(n, step_size=0.1, trace_decay=0.9, discount=0.9) for n in (1000, 2000)]
for n in itertools.count() if len(sys.argv) > 2 else [0]:
    learners[n % 2].save(sys.argv[1])
"""
PLAYING = """
import sys, numpy as np
from trueonline.control import atari
settings = atari.AtariSettings(protocol="published", step_size=1.5, trace_decay=0.95, seed=8, frames=6000)
run = atari.play(settings, np.zeros((210, 160), np.uint8), sys.argv[1], every=0.0)
run.save(sys.argv[1])
"""
SPEC = """
methods = ["accumulate", "true_online", "replace"]
step_sizes = [0.01, 0.03, 0.1, 0.3]
trace_decays = [0.0, 0.5, 0.9, 1.0]
runs = 40
steps = 1500
[[problems]]
kind = "random_mrp"
k = 20
b = 3
sigma = 0.1
"""
VIEW = """
def monte_carlo(k, h, R, gamma):
    return sum(gamma ** (i - k - 1) * R[i] for i in range(k + 1, h + 1))
"""


@dataclass(frozen=True)
class Writer:
    """A command that writes: its code, its arguments for a folder, and the result that it leaves there."""

    code: str
    arguments: Callable[[Path, Path], list[str]]
    result: Callable[[Path], Any]
    follows: bool = False


def _predict(out: str, *more: str) -> Callable[[Path, Path], list[str]]:
    def arguments(folder: Path, shared: Path) -> list[str]:
        log = folder / "log.csv" if "--follow" in more else shared / "log.csv"
        given = [
            "predict",
            str(log),
            "--time",
            "time",
            "--target",
            "a,b",
            "--signals",
            "a,velocity(b)",
            "--discount",
            "0.9",
        ]
        return [*given, "--every", "0.05", "--out", str(folder / out), *more]

    return arguments


def _table(path: Path) -> Any:
    return repr(pq.read_table(path).to_pydict())


def _trained(folder: Path) -> Any:
    agent = to.load(folder / "out" / "agent.npz")
    tables = [(folder / "out" / f"{name}.csv").read_bytes() for name in ("episodes", "evaluation")]
    return [*tables, frozen([agent._settings(), agent._dump()])]


def _saved(path: Path) -> Any:
    return frozen([*files.read_learner(path)])


def _swept(folder: Path) -> Any:
    return (folder / "out" / "results.csv").read_bytes(), _table(folder / "out" / "results.parquet")


def _reproduced(folder: Path) -> Any:
    out = folder / "out"
    figures = [path.read_bytes() for path in sorted(out.glob("*/data.csv"))]
    return figures, json.loads((out / "verdicts.json").read_text()), (out / "report.html").exists()


WRITERS = {
    "predict to CSV": Writer(COMMAND, _predict("p.csv", "--pace", "150"), lambda f: (f / "p.csv").read_bytes()),
    "predict to Parquet": Writer(COMMAND, _predict("p.parquet", "--pace", "150"), lambda f: _table(f / "p.parquet")),
    "predict a followed file": Writer(
        COMMAND,
        _predict("p.csv", "--follow", "--samples", str(ROWS)),
        lambda f: (f / "p.csv").read_bytes(),
        follows=True,
    ),
    "predict a fleet": Writer(
        COMMAND,
        lambda folder, shared: ["predict", str(shared / "fleet.csv"), "--time", "time", "--by", "name", "--target", "a",
                                "--discount", "0.9", "--every", "0.05", "--pace", "150", "--out", str(folder / "p.csv"),
                                "--alerts", str(folder / "alerts.jsonl"), "--alert", "0.5"],
        lambda folder: [(folder / name).read_bytes() for name in ("p.csv", "alerts.jsonl")],
    ),
    "train": Writer(
        EAGER,
        lambda folder, shared: ["train", "FrozenLake-v1", "--episodes", "150", "--evaluate", "3", "--no-film", "--runs", "2",
                                "--out", str(folder / "out")],
        _trained,
    ),
    "sweep": Writer(
        COMMAND, lambda folder, shared: ["sweep", str(shared / "spec.toml"), "--out", str(folder / "out")], _swept
    ),
    "reproduce": Writer(
        COMMAND,
        lambda folder, shared: ["reproduce", "fig1", "--runs", "2", "--out", str(folder / "out")],
        _reproduced,
    ),
    "derive": Writer(
        COMMAND,
        lambda folder, shared: ["derive", str(shared / "view.py"), "--trials", "0", "--out", str(folder / "method.py")],
        lambda folder: (folder / "method.py").read_bytes(),
    ),
    "save": Writer(SAVING, lambda folder, shared: [str(folder / "learner.npz")], lambda f: _saved(f / "learner.npz")),
}  # fmt: skip
if find_spec("ale_py"):
    WRITERS["atari"] = Writer(PLAYING, lambda folder, shared: [str(folder / "run.npz")], lambda f: _saved(f / "run.npz"))
OFTEN = [*WRITERS, *(3 * ["predict to CSV", "predict to Parquet", "predict a followed file", "predict a fleet", "save"])]


def prepare(shared: Path) -> None:
    """The inputs, and how long each command takes when nothing happens, and what it leaves then."""
    write_inputs(shared)
    for name in dict.fromkeys(OFTEN):
        expected(name, shared)


def write_inputs(shared: Path) -> None:
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.standard_normal((ROWS, 2)), axis=0).round(6).tolist()
    (shared / "log.csv").write_text("time,a,b\n" + "".join(f"{i / 10},{a},{b}\n" for i, (a, b) in enumerate(values)))
    rows = "".join(f"{i / 10},n{i * i % 7},{a}\n" for i, (a, _) in enumerate(values))
    (shared / "fleet.csv").write_text(f"time,name,a\n{rows}")
    (shared / "spec.toml").write_text(SPEC)
    (shared / "view.py").write_text(VIEW)


def expected(name: str, shared: Path) -> tuple[float, Any]:
    """The seconds and the result of a run that nobody stops, measured once for all workers. A slow run has compiled: again."""
    kept = shared.parents[1] / f"{name}.pickle"
    seconds, attempts = math.inf, 0
    while not kept.exists():
        folder = kept.with_name(f"{name} {os.getpid()} {attempts}")
        folder.mkdir()
        begun, attempts = time.monotonic(), attempts + 1
        finish(name, folder, shared)
        seconds = min(seconds, time.monotonic() - begun)
        if seconds < 15.0 or attempts == 2:
            part = folder / "expected.pickle"
            part.write_bytes(pickle.dumps((seconds, WRITERS[name].result(folder))))
            part.rename(kept)
    return pickle.loads(kept.read_bytes())


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    name, folder = rng.choice(OFTEN), folder / "it"
    folder.mkdir()
    seconds, wanted = expected(name, shared)
    if name == "save":
        return kill_while_saving(rng, folder, seconds, wanted)
    for _ in range(rng.choice([1, 1, 2, 3])):
        present = len(list(folder.rglob("*")))
        with running(name, folder, shared) as process:
            if rng.random() < 0.6:  # not before it has written something
                while process.poll() is None and len(list(folder.rglob("*"))) <= present:
                    time.sleep(0.005)
                wait(process, rng.random() * 0.4 * seconds)
            else:
                wait(process, rng.random() * seconds)
            if process.poll() is None:
                (os.killpg if rng.random() < 0.5 else os.kill)(process.pid, signal.SIGKILL)
    if name != "derive" or not (folder / "method.py").exists():
        finish(name, folder, shared)
    found = WRITERS[name].result(folder)
    if found != wanted:
        raise PromiseError(f"{name} came to another result")
    left = [path for path in folder.rglob("*") if path.name.endswith((".part", ".lock", ".parts", ".old"))]
    if left and "predict" in name:
        raise PromiseError(f"{name} left {left}")
    return FINE


def kill_while_saving(rng: random.Random, folder: Path, seconds: float, wanted: Any) -> str:
    path = folder / "learner.npz"
    with running("save", folder, folder, "again and again") as process:
        wait(process, 0.5 * seconds + rng.random())
    if not path.exists():
        return REFUSED
    if len(to.load(path).weights) not in (1000, 2000):
        raise PromiseError("the saved learner is not whole")
    return FINE


def wait(process: subprocess.Popen, seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


@contextmanager
def running(name: str, folder: Path, shared: Path, *more: str, limit: int | None = None) -> Iterator[subprocess.Popen]:
    """A command at work, and a file that grows for it if it follows one. It is ended in any case.

    `limit` is the largest file that it may write. What it says goes beside the folder, which may be a full disk.
    """
    writer = WRITERS[name]
    bound = "" if limit is None else f"from resource import *; setrlimit(RLIMIT_FSIZE, ({limit}, {limit})); "
    arguments = [sys.executable, "-c", bound + writer.code, *writer.arguments(folder, shared), *more]
    with open(said_by(folder), "ab") as said:
        process = start(arguments, stdout=said, stderr=said, start_new_session=True)
    growing = threading.Thread(target=grow, args=(process, folder / "log.csv", shared / "log.csv"))
    try:
        if writer.follows:
            growing.start()
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if writer.follows:
            growing.join()


def grow(process: subprocess.Popen, path: Path, whole: Path) -> None:
    """Append to a log in odd pieces while a command follows it. The next command finds what was there in the end."""
    with open(path, "ab") as file:
        rest = whole.read_bytes()[file.tell() :]
        while rest and process.poll() is None:
            file.write(rest[:997])
            file.flush()
            rest = rest[997:]
            time.sleep(0.03)


def said_by(folder: Path) -> Path:
    """The file beside a folder that holds what commands there have printed."""
    return folder.with_name(f"{folder.name}.txt")


def finish(name: str, folder: Path, shared: Path) -> None:
    """Run a command to its end, with all that it needs."""
    if WRITERS[name].follows:
        with open(folder / "log.csv", "ab") as file:
            file.write((shared / "log.csv").read_bytes()[file.tell() :])
    with running(name, folder, shared) as process:
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise PromiseError(f"{name} hung after it was started again") from None
    if code:
        raise PromiseError(f"{name} ended with status {code}: {said_by(folder).read_text()[-500:]}")
