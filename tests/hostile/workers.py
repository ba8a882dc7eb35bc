"""Worker processes that run trials, and the master's view of them."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tests.hostile import FAILED, FINE, REFUSED, SKIPPED

DEADLINE = 240.0  # seconds after which a trial has hung
PREPARATION = 900.0  # the same for a preparation, which may have to compile everything
MEMORY = 500  # MB by which a trial may raise the peak of its process
ROOM = 20 * 2**30  # bytes of address space of a worker: the machine itself must survive
PREPARE = -1  # the number of the trial that is the preparation


@dataclass(frozen=True)
class Task:
    """A trial to make: its kind, its number, and the seed of the whole."""

    kind: str
    number: int
    seed: int

    @property
    def command(self) -> str:
        return f"python -m tests.hostile --seed {self.seed} --only {self.kind} --trial {self.number}"


@dataclass(frozen=True)
class Outcome:
    """What came out of a trial. `why` is of a trial that failed or was skipped."""

    task: Task
    counts: Counter[str] = field(default_factory=Counter)
    why: str = ""
    seconds: float = 0.0


def _work(pipe: Connection, place: str) -> None:
    """The life of a worker: trials until the pipe is closed."""
    os.setpgid(0, 0)  # so that what a trial started can be ended with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    said = open(os.path.join(place, f"worker-{os.getpid()}.txt"), "w", encoding="utf-8")  # noqa: SIM115
    for stream in (1, 2):
        os.dup2(said.fileno(), stream)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(_outcome(pipe.recv(), Path(place)))


def _outcome(task: Task, place: Path) -> Outcome:
    shared, folder = place / task.kind / "shared", place / task.kind / str(task.number)
    begun = time.monotonic()
    try:
        module = import_module(f"tests.hostile.{task.kind}")
        before = _peak()
        if task.number == PREPARE:
            shared.mkdir(parents=True)
            getattr(module, "prepare", lambda shared: None)(shared)
            return Outcome(task)
        folder.mkdir()
        found = module.trial(random.Random(f"{task.kind} {task.seed} {task.number}"), folder, shared)
        taken = _peak() - before
        if taken > MEMORY:
            raise MemoryError(f"the trial took {taken} MB of memory")
        if isinstance(found, str):
            known = found in (REFUSED, FINE)
            counts, why = Counter([found if known else SKIPPED]), "" if known else found
        else:
            counts, why = Counter(found), ""
    except BaseException:
        return Outcome(task, Counter([FAILED]), traceback.format_exc(), time.monotonic() - begun)
    shutil.rmtree(folder, ignore_errors=True)
    return Outcome(task, counts, why, time.monotonic() - begun)


def _peak() -> int:
    """The largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


ROOT = str(Path(__file__).parents[2])


class Worker:
    """A process and the trial that it works on."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.task: Task | None = None
        self._begin()

    def _begin(self) -> None:
        if ROOT not in sys.path:  # a new process looks for this module where this one does
            sys.path.append(ROOT)
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, str(self._place)), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        self.task, self._since = task, time.monotonic()
        self.pipe.send(task)

    @property
    def overdue(self) -> bool:
        limit = PREPARATION if self.task and self.task.number == PREPARE else DEADLINE
        return self.task is not None and time.monotonic() - self._since > limit

    def outcome(self) -> Outcome:
        """The outcome of the trial, also if it has ended the process or goes on for ever."""
        assert self.task is not None
        hung, task, self.task = self.overdue, self.task, None
        if self.pipe.poll():
            with contextlib.suppress(EOFError, OSError):
                return self.pipe.recv()
        seconds = time.monotonic() - self._since
        self._process.join(0.0 if hung else 10.0)  # it has closed the pipe, and is about to end
        self.end()
        code = self._process.exitcode
        said_by = self._place / f"worker-{self._process.pid}.txt"
        said = said_by.read_text(errors="replace")[-3000:] if said_by.exists() else ""
        why = f"{said}\n" + (f"hung for {seconds:.0f} s" if hung else f"crashed with exit code {code}")
        self._begin()
        return Outcome(task, Counter([FAILED]), why, seconds)

    def end(self) -> None:
        """End the process, and all that its trial started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()
        self._process.join()


def run(tasks: Iterable[Task], place: Path, workers: int, until: float = float("inf")) -> Iterator[Outcome]:
    """The outcomes of trials, as they come. None begins after `until`, a time of `time.monotonic`."""
    coming = iter(tasks)
    crew = [Worker(place) for _ in range(workers)]
    try:
        while True:
            for worker in crew:
                if worker.task is None and time.monotonic() < until and (task := next(coming, None)) is not None:
                    worker.give(task)
            busy = [worker for worker in crew if worker.task is not None]
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in busy:
                if worker.pipe in ready or worker.overdue:
                    yield worker.outcome()
    finally:
        for worker in crew:
            worker.end()
