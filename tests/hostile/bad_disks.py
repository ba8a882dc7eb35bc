"""Full disks, folders that cannot be written, and two writers of one output."""

from __future__ import annotations

import os
import random
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import trueonline as to
from tests.hostile import FINE, REFUSED, PromiseError
from tests.hostile.killed_commands import PATIENCE, WRITERS, expected, finish, running, said_by, wait
from tests.hostile.killed_commands import write_inputs as prepare

__all__ = ["PROMISE", "TRIALS", "prepare", "trial"]

PROMISE = (
    "On a full or read-only disk a command says so in a line, and resumes with more room. A second writer is refused."
)
TRIALS = 60
NAMES = ["predict to CSV", "predict to CSV", "predict to Parquet", "predict to Parquet", "sweep", "train", "derive"]
ROOM = [4, 8, 16, 32, 64, 128, 256]  # kB on the disk


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    ways = [full_disk, full_disk, read_only_disk, two_writers, full_disk_under_a_learner]
    return rng.choice(ways)(rng, folder, shared)


@contextmanager
def disk(folder: Path, options: str) -> Iterator[bool]:
    """A small disk at a folder. False where this user may not mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)


def full_disk(rng: random.Random, folder: Path, shared: Path) -> str:
    name, room, place = rng.choice(NAMES), rng.choice(ROOM), folder / "disk"
    _, wanted = expected(name, shared)
    with disk(place, f"size={room}k") as mounted:
        code, text = attempt(name, place, shared, limit=None if mounted else 1024 * room)
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=100m", place], check=True)
        if code:
            said_so(name, code, text, "No space left", "File too large")
            finish(name, place, shared)
        if WRITERS[name].result(place) != wanted:
            raise PromiseError(f"{name} came to another result after the disk was full")
    return REFUSED if code else FINE


def read_only_disk(rng: random.Random, folder: Path, shared: Path) -> str:
    name, place = rng.choice(NAMES), folder / "disk"
    with disk(place, "ro") as mounted:
        if not mounted:
            return "a read-only disk needs the right to mount one"
        code, text = attempt(name, place, shared)
    if not code:
        raise PromiseError(f"{name} did not notice that the disk is read-only")
    said_so(name, code, text, "Read-only file system")
    return REFUSED


def attempt(name: str, folder: Path, shared: Path, limit: int | None = None) -> tuple[int, str]:
    """The status of a command, and what it said."""
    with running(name, folder, shared, limit=limit) as process:
        code = process.wait(PATIENCE)
    return code, said_by(folder).read_text()


def said_so(name: str, code: int, text: str, *reasons: str) -> None:
    """PromiseError unless a command that failed has said why in a line."""
    if "Traceback" in text or not any(reason in text for reason in reasons):
        raise PromiseError(f"{name} ended with status {code} and said {text[-600:]!r}")


def two_writers(rng: random.Random, folder: Path, shared: Path) -> str:
    """Two commands with one output. Sweeps may share a folder. One of two trainings may fail, but says so."""
    name, folder = rng.choice(["predict to CSV", "predict to Parquet", "sweep", "train"]), folder / "both"
    folder.mkdir()
    _, wanted = expected(name, shared)
    with running(name, folder, shared) as first:
        wait(first, 2.5 * rng.random() ** 2)
        with running(name, folder, shared) as second:
            codes = [process.wait(PATIENCE) for process in (second, first)]
    text = said_by(folder).read_text()
    if codes[0] and codes[1]:
        raise PromiseError(f"both writers of {name} failed: {text[-500:]}")
    if WRITERS[name].result(folder) != wanted:
        raise PromiseError(f"two writers of {name} came to another result")
    if any(codes):
        said_so(name, max(codes), text, "another run is writing", *(["Error: "] if name == "train" else []))
    return REFUSED if any(codes) else FINE


def full_disk_under_a_learner(rng: random.Random, folder: Path, shared: Path) -> str:
    """A learner that cannot be saved leaves the file that was there."""
    path = folder / "learner.npz"
    old = to.TrueOnlineTD(10, step_size=0.1, trace_decay=0.9, discount=0.9)
    old.save(path)
    before = path.read_bytes()
    new = to.TrueOnlineTD(5000, step_size=0.1, trace_decay=0.9, discount=0.9, initial_weights=np.ones(5000))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (rng.randrange(1, 40_000), limits[1]))
    try:
        new.save(path)
    except OSError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        if path.read_bytes() != before or os.listdir(folder) != [path.name] or "learner.npz" not in str(error):
            raise PromiseError(f"a failed save left {os.listdir(folder)}") from error
        return REFUSED
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    return FINE
