"""What people read in a terminal: progress bars, tables and durations. Bars are silent if there is no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from time import monotonic
from types import TracebackType
from typing import Any

try:
    from rich import box
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Table
    from rich.text import Text
except ImportError:
    raise ImportError("tables and progress bars need rich: pip install 'trueonline[study]'") from None

UNLIMITED = 1000  # columns if there is no terminal: no cell is wrapped or truncated


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Print a table to standard output, as plain text if that is not a terminal.

    >>> print_table(("question", "error"), [("force@1s", "0.25"), ("angle@1s", "12")])
    question   error
    ────────────────
    force@1s    0.25
    angle@1s      12
    """
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = UNLIMITED
    table = Table(title=title, box=box.HORIZONTALS, show_edge=False, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def duration(seconds: float) -> str:
    """A time span in the largest unit that it holds twice.

    >>> duration(3.21), duration(75.0), duration(8000.0)
    ('3.2 s', '75 s', '2 hours')
    """
    for size, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {name}s"
    return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"


class TasksBar:
    """A bar over the tasks of a study, and of the next: call it with (task, done, of).

    Of spawned tasks it counts the steps. What comes without a task was there before: it says nothing about the rate.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.bar: Progress | None = None
        self.done = self.learned = self.moved = 0

    def __call__(self, task: Any, done: int, of: int) -> None:
        if task is None and self.bar is None and done < of:
            self._begin(done, of)
        if self.bar is None:
            return
        if task is not None:
            self.learned += done - self.done if task.spawned else task.steps
            self.moved += done - self.done
            self._describe(task, done, of)
        self.done = done
        self.bar.update(self.bar.task_ids[0], completed=done, total=of)
        if done == of:
            self._end()

    def _begin(self, done: int, of: int) -> None:
        self.done, self.learned, self.moved = done, 0, 0
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
        pace = TextColumn("{task.fields[rate]:>14}  left {task.fields[left]}")
        self.bar = Progress(*columns, pace, console=console, disable=not console.is_terminal)
        self.bar.add_task(self.label, completed=done, total=of, count=f"{done / of:.0%}", rate="", left="-:--:--")
        self.bar.start()

    def _describe(self, task: Any, done: int, of: int) -> None:
        assert self.bar is not None
        elapsed = self.bar.tasks[0].elapsed
        if not elapsed or self.moved <= 0:
            return
        unit = getattr(task, "unit", "steps")
        count = f"{_short(done)}of {_short(of)}{unit}" if task.spawned else f"{done}/{of} tasks"
        rate = f"{_short(self.learned / elapsed)}{unit}/s"
        left = timedelta(seconds=round(elapsed * (of - done) / self.moved))
        self.bar.update(self.bar.task_ids[0], count=count, rate=rate, left=left)

    def _end(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def __enter__(self) -> TasksBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


class StreamBar:
    """A line about a run over a stream, some times a second: call it with the run."""

    EVERY = 0.2  # seconds

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        self.begun = self.due = monotonic()
        self.first: int | None = None
        self.run: Any = None

    def __call__(self, run: Any) -> None:
        self.run = run
        now, samples = monotonic(), run.predictor.samples
        if self.first is None:
            self.first = samples
        if now < self.due or not self.console.is_terminal:
            return
        self.due = now + self.EVERY
        share = run.source.progress()
        if self.bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"))
            self.bar = Progress(*columns, console=self.console)
            self.bar.add_task("Learning" if share is not None else "Listening", total=None, told="")
            self.bar.start()
        elapsed = now - self.begun
        told = f"{samples:,} samples  {_short((samples - self.first) / max(elapsed, 1e-9))}samples/s"
        dropped = sum(run.dropped().values())
        told += f"  {dropped:,} dropped" if dropped else ""
        if share is not None and share > 0.0:
            told += f"  left {timedelta(seconds=round(elapsed * (1.0 - share) / share))}"
            self.bar.update(self.bar.task_ids[0], completed=share, total=1.0, told=told)
        else:
            self.bar.update(self.bar.task_ids[0], told=told)

    def __enter__(self) -> StreamBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            if self.run.ended and self.bar.tasks[0].total is not None:
                self.bar.update(self.bar.task_ids[0], completed=self.bar.tasks[0].total)
            self.bar.stop()


def _short(number: float) -> str:
    """12.3 million as "12 M ", to stand before a unit."""
    prefix, factor = next((pair for pair in (("M ", 1e6), ("k ", 1e3)) if number >= pair[1]), ("", 1.0))
    scaled = number / factor
    return f"{scaled:.{0 if scaled >= 10.0 or scaled.is_integer() else 1}f} {prefix}"
