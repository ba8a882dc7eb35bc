"""Full disks, folders that cannot be written, and two writers of one output."""

from __future__ import annotations

import os
import random
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

import trueonline as to
from tests.hostile import FINE, REFUSED, PromiseError
from tests.hostile.killed_commands import PATIENCE, WRITERS, expected, finish, prepare, running, said_by

__all__ = ["PROMISE", "TRIALS", "prepare", "trial"]

PROMISE = (
    "On a full or read-only disk a command says so in a line, and resumes with more room. A second writer is refused."
)
TRIALS = 60
NAMES = ["predict to CSV", "predict to CSV", "predict to Parquet", "predict to Parquet", "sweep", "train", "derive"]
ROOM = [4, 8, 16, 32, 64, 128, 256]  # kB on the disk


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    return rng.choice([full_disk, full_disk, read_only_disk, two_writers, full_disk_under_a_learner])(rng, folder, shared)


@contextmanager
def disk(folder: Path) -> Iterator[Callable[[str], None]]:
    """A small disk of its own at a folder, and what mounts it again with other options. PermissionError without the right."""

    def mount(*arguments: str) -> None:
        done = subprocess.run(["mount", *arguments, str(folder)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise PermissionError(done.stderr.strip())

    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=64k", "tmpfs")
    try:
        yield lambda options: mount("-o", f"remount,{options}")
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def said_so(name: str, code: int, text: str, *reasons: str) -> None:
    """PromiseError unless a command that failed has said why in a line."""
    if "Traceback" in text or not any(reason in text for reason in reasons):
        raise PromiseError(f"{name} ended with status {code} and said {text[-600:]!r}")


def attempt(name: str, folder: Path, shared: Path, limit: int | None = None) -> tuple[int, str]:
    with running(name, folder, shared, limit=limit) as process:
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise PromiseError(f"{name} hung") from None
    return code, said_by(folder).read_text()


def full_disk(rng: random.Random, folder: Path, shared: Path) -> str:
    name = rng.choice(NAMES)
    _, wanted = expected(name, shared)
    place, outcome = folder / "disk", FINE
    with ExitStack() as stack:
        try:
            remount: Callable[[str], None] | None = stack.enter_context(disk(place))
        except PermissionError:
            remount = None
        if remount is not None:
            remount(f"size={rng.choice(ROOM)}k")
            code, text = attempt(name, place, shared)
            remount("size=100m")
        else:
            code, text = attempt(name, place, shared, limit=1024 * rng.choice(ROOM))
        if code:
            said_so(name, code, text, "No space left", "File too large", "there is no room")
            outcome = REFUSED
            finish(name, place, shared)
        if WRITERS[name].result(place) != wanted:
            raise PromiseError(f"{name} came to another result after the disk was full")
    return outcome


def read_only_disk(rng: random.Random, folder: Path, shared: Path) -> str:
    name, place = rng.choice(NAMES), folder / "disk"
    _, wanted = expected(name, shared)
    with ExitStack() as stack:
        try:
            remount = stack.enter_context(disk(place))
        except PermissionError as error:
            return f"a read-only disk needs the right to mount ({error})"
        remount("size=100m,ro")
        code, text = attempt(name, place, shared)
        if not code:
            raise PromiseError(f"{name} wrote to a read-only disk")
        said_so(name, code, text, "Read-only file system", "cannot be written")
        remount("rw")
        finish(name, place, shared)
        if WRITERS[name].result(place) != wanted:
            raise PromiseError(f"{name} came to another result")
    return REFUSED


def two_writers(rng: random.Random, folder: Path, shared: Path) -> str:
    """Two commands with one output. Sweeps and trainings may share a folder; predictions may not share a file."""
    name, folder = rng.choice(["predict to CSV", "predict to Parquet", "sweep", "train"]), folder / "both"
    folder.mkdir()
    _, wanted = expected(name, shared)
    with running(name, folder, shared) as first:
        wait_a_moment(first, rng)
        with running(name, folder, shared) as second:
            codes = [process.wait(PATIENCE) for process in (second, first)]
    text = said_by(folder).read_text()
    if codes[0] and codes[1]:
        raise PromiseError(f"both writers of {name} failed: {text[-500:]}")
    if WRITERS[name].result(folder) != wanted:
        raise PromiseError(f"two writers of {name} came to another result")
    if any(codes):
        said_so(name, max(codes), text, "another run is writing")
    return REFUSED if any(codes) else FINE


def wait_a_moment(process: subprocess.Popen, rng: random.Random) -> None:
    try:
        process.wait(2.5 * rng.random() ** 2)
    except subprocess.TimeoutExpired:
        return


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
