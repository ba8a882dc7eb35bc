"""Progress on long work: what is done, the rate and the time left. Silent where there is no terminal, and nothing to do."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class TasksBar:
    """A bar over the tasks of a study, and of the next: call it with (task, done, of)."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.bar: Progress | None = None

    def __call__(self, task: Any, done: int, of: int) -> None:
        if task is None and done < of:
            self._begin(done, of)
        if self.bar is None:
            return
        if task is not None:
            self.learned += task.steps
            elapsed = self.bar.tasks[0].elapsed
            rate = f"{self.learned / elapsed / 1e6:.0f} M steps/s" if elapsed else ""
            self.bar.update(self.bar.task_ids[0], completed=done, rate=rate)
        if done == of:
            self._end()

    def _begin(self, done: int, of: int) -> None:
        self._end()
        self.learned = 0
        left = TimeRemainingColumn(compact=True)
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("tasks"))
        rate = TextColumn("{task.fields[rate]:>14}  left")
        self.bar = Progress(*columns, rate, left, console=console, disable=not console.is_terminal)
        self.bar.add_task(self.label, completed=done, total=of, rate="")
        self.bar.start()

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
