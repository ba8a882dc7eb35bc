"""A work for the tests of processes: it counts, keeps checkpoints, writes a diary, and comes to grief when told to.

In a module of its own, which the spawned processes import.
"""

import hashlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from trueonline import files

SCHEMA = pa.schema([("label", pa.string()), ("step", pa.int64()), ("value", pa.int64())])


class OwnValueError(ValueError):
    def __init__(self, one, another):  # cannot be unpickled from its message
        super().__init__(f"{one} and {another}")


class OwnError(Exception):
    pass


def steps_of(label):
    """x ← (ax + c) mod m: the last value depends on every step."""
    value = sum(label.encode())
    while True:
        value = (value * 6364136223846793005 + 1442695040888963407) % 2**61
        yield value


def expected(label, number):
    rows = [(label, step, value) for step, value in zip(range(1, number + 1), steps_of(label), strict=False)]
    return pa.table([list(column) for column in zip(*rows[9::10], strict=True)], schema=SCHEMA)


def fail(error):
    raise error


MISTAKES = {
    "ValueError": lambda: int("no number"),
    "FileNotFoundError": lambda: Path("/no/such/file").stat(),
    "OSError": lambda: os.close(10**6),
    "OwnValueError": lambda: fail(OwnValueError("this", "that")),
    "OwnError": lambda: fail(OwnError("a mistake")),
    "ZeroDivisionError": lambda: 1 // 0,
    "SystemExit": lambda: sys.exit(3),
    "exit": lambda: os._exit(3),
}


@dataclass(frozen=True)
class Counting:
    """A row for every tenth step. Only the label and the number determine the result."""

    label: str
    number: int
    diary: str  # a folder
    every: int = 10  # steps from one checkpoint to the next
    deaths: tuple[int, ...] = ()  # the step at which it is killed in its first life, in its second, …
    mistake: str = ""  # made at step 5
    waits_at: int = 0  # the step at which it waits until the diary has a page called "go"
    other_columns: bool = False
    rows: int | None = None

    schema = SCHEMA
    spawned = True
    unit = "ticks"

    @property
    def name(self):
        return f"counting-{hashlib.sha256(repr((self.label, self.number)).encode()).hexdigest()[:24]}"

    @property
    def steps(self):
        return self.number

    def note(self, *words):
        with open(Path(self.diary) / self.name, "a", encoding="utf-8") as page:
            print(*words, file=page)

    def lives(self):
        """For each life: the process, and the steps that it took."""
        page = Path(self.diary) / self.name
        lines = [line.split() for line in page.read_text().splitlines()] if page.exists() else []
        starts = [number for number, (word, _) in enumerate(lines) if word == "begin"] + [len(lines)]
        return [
            (int(lines[start][1]), [int(step) for word, step in lines[start:end] if word == "step"])
            for start, end in pairwise(starts)
        ]

    def compute(self, scratch=None, beat=lambda steps: None):
        life = len(self.lives())
        self.note("begin", os.getpid())
        state = {"step": 0, "value": None, "rows": []}
        if scratch is not None and (scratch / "state.json").exists():
            state = json.loads((scratch / "state.json").read_text())
        beat(state["step"])
        for step, value in enumerate(steps_of(self.label), 1):
            if step <= state["step"]:
                assert step < state["step"] or value == state["value"], "another work's checkpoint"
                continue
            if step > self.number:
                break
            self.note("step", step)
            if step == 5 and self.mistake:
                MISTAKES[self.mistake]()
            if life < len(self.deaths) and self.deaths[life] == step:
                os.kill(os.getpid(), signal.SIGKILL)
            while step == self.waits_at and not (Path(self.diary) / "go").exists():
                sum(range(500_000))  # holds the interpreter for some milliseconds, and leaves it to others for more
                time.sleep(0.05)
            rows = [*state["rows"], (self.label, step, value)] if step % 10 == 0 else state["rows"]
            state = {"step": step, "value": value, "rows": rows}
            if scratch is not None and step % self.every == 0:
                scratch.mkdir(parents=True, exist_ok=True)
                files.write_whole(
                    scratch / "state.json", lambda file, state=state: file.write(json.dumps(state).encode())
                )
            beat(step)
        table = pa.table([list(column) for column in zip(*state["rows"], strict=True)], schema=SCHEMA)
        return table.rename_columns(["name", "step", "value"]) if self.other_columns else table


class Given:
    """A short task for threads."""

    schema, rows, steps, spawned = expected("a", 40).schema, None, 1, False

    def __init__(self, name, spawned=False):
        self.name, self.spawned = name, spawned

    def compute(self):
        return expected(self.name, 40)


def execute(plan):
    """Run what a JSON text describes: `out`, and `works`, and possibly `threads`."""
    from trueonline import study  # not in the processes of works

    settings = json.loads(plan)
    works = [Counting(**work) for work in settings["works"]]
    study.execute_tasks(works, settings["out"], threads=settings.get("threads", 2))
