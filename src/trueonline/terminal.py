"""The display in a terminal: tables and progress bars, drawn by rich."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trueonline import words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PLAIN_WIDTH = 1000  # columns where there is no terminal: no cell is truncated or wrapped
RECENT_EPISODES = 100  # episodes in a running mean


def _rich(part: str) -> Any:
    """A module of rich, imported when it is needed: `--help` needs none."""
    return import_module(f"rich.{part}")


def console(*, stderr: bool = False) -> Console:
    """rich's console. Output that does not go to a terminal is plain text, as wide as it needs to be."""
    drawn: Console = _rich("console").Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not drawn.is_terminal:
        drawn.width = PLAIN_WIDTH
    return drawn


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, width: int | None = None
) -> None:
    """Print a table to standard output.

    Parameters
    ----------
    columns : sequence of str
        The head of each column. A column that holds numbers below its head is aligned to the right.
    rows : iterable of sequences
        The cells. Floats are shown with four digits, None as a dash. An empty row draws a line across the table.
    title : str, optional
        A line above the table.
    width : int, optional
        Fold cells so that the table has at most so many characters in a line.

    Examples
    --------
    >>> print_table(("method", "error"), [("true_online", 0.12345), ("replace", 2.0)])
    method         error
    ────────────────────
    true_online   0.1235
    replace            2
    """
    screen, Text = console(), _rich("text").Text
    body = [list(row) for row in rows]
    right = [all(_is_figure(row[i]) for row in body if row) for i in range(len(columns))]
    lines = _rich("box").HORIZONTALS
    table = _rich("table").Table(box=lines, show_edge=False, pad_edge=False, header_style="bold")
    for name, numbers in zip(columns, right, strict=True):
        table.add_column(Text(name), justify="right" if numbers else "left", overflow="fold")
    for row in body:
        if row:
            table.add_row(*(Text(words.cell(cell)) for cell in row))
        else:
            table.add_section()
    if title is not None:
        screen.print(Text(title, style="bold"))
    screen.print(table, width=width)


def _is_figure(cell: Any) -> bool:
    """Whether a cell shows a number."""
    text = words.cell(cell)
    return text in ("–", "inf", "nan") or text.lstrip("-")[:1].isdigit()


def _left(seconds: float) -> timedelta:
    return timedelta(seconds=round(seconds))


# --- Progress -------------------------------------------------------------------------------------


def progress_bar(*columns: str, transient: bool = False) -> Progress:
    """rich's progress on standard error. It shows nothing where there is no terminal.

    A column is a text in which rich sets the fields of a task, or the name of one of rich's columns, such as "Bar".
    """
    screen, part = console(stderr=True), _rich("progress")
    drawn = [part.TextColumn(each) if "{" in each else getattr(part, f"{each}Column")() for each in columns]
    bar: Progress = part.Progress(*drawn, console=screen, disable=not screen.is_terminal, transient=transient)
    return bar


@contextmanager
def rounds_bar(label: str, rounds: int) -> Iterator[Callable[[], None]]:
    """A bar over equal rounds of work.

    Parameters
    ----------
    label : str
        The name of the work.
    rounds : int
        How often the function that is yielded will be called.

    Yields
    ------
    callable
        Call it, without arguments, after each round.
    """
    with progress_bar("{task.description}", "Bar", "MofNComplete", "TimeRemaining", transient=True) as bar:
        task = bar.add_task(label, total=rounds)
        yield lambda: bar.advance(task)


class TasksBar:
    """A bar over the tasks of a study, and of the next: call it with (task, done, of).

    It counts the steps of spawned tasks. A call without a task counts results that were there before, which do not change the rate.
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
        rate = "{task.fields[rate]:>14}  left {task.fields[left]}"
        self.bar = progress_bar("{task.description}", "Bar", "{task.fields[count]}", rate)
        self.bar.add_task(self.label, completed=done, total=of, count=f"{done / of:.0%}", rate="", left="-:--:--")
        self.bar.start()

    def _describe(self, task: Any, done: int, of: int) -> None:
        assert self.bar is not None
        elapsed = self.bar.tasks[0].elapsed
        if not elapsed or self.moved <= 0:
            return
        unit = getattr(task, "unit", "steps")
        count = f"{words.amount(done, '')}of {words.amount(of, unit)}" if task.spawned else f"{done}/{of} tasks"
        left = _left(elapsed * (of - done) / self.moved)
        self.bar.update(
            self.bar.task_ids[0], count=count, rate=f"{words.amount(self.learned / elapsed, unit)}/s", left=left
        )

    def _end(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def __enter__(self) -> TasksBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()


class StreamBar:
    """A line about a run over a stream, some times a second: call it with the run."""

    EVERY = 0.2  # seconds

    def __init__(self) -> None:
        self.console = console(stderr=True)
        self.bar: Progress | None = None
        self.begun = self.due = time.monotonic()
        self.run: Any = None

    def __call__(self, run: Any) -> None:
        self.run = run
        now, samples = time.monotonic(), run.samples
        if now < self.due or not self.console.is_terminal:
            return
        self.due = now + self.EVERY
        share = run.source.progress()
        if self.bar is None:
            self._begin("Learning" if share is not None else "Listening")
        assert self.bar is not None
        elapsed = now - self.begun
        news = f"{samples:,} samples  {words.amount((samples - (run.resumed_at or 0)) / max(elapsed, 1e-9), 'samples')}/s"
        dropped = sum(run.dropped().values())
        news += f"  {dropped:,} dropped" if dropped else ""
        if share is not None and share > 0.0:
            news += f"  left {_left(elapsed * (1.0 - share) / share)}"
            self.bar.update(self.bar.task_ids[0], completed=share, total=1.0, news=news)
        else:
            self.bar.update(self.bar.task_ids[0], news=news)

    def _begin(self, label: str) -> None:
        self.bar = progress_bar("{task.description}", "Bar", "{task.fields[news]}")
        self.bar.add_task(label, total=None, news="")
        self.bar.start()

    def __enter__(self) -> StreamBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            if self.run.ended and self.bar.tasks[0].total is not None:
                self.bar.update(self.bar.task_ids[0], completed=self.bar.tasks[0].total)
            self.bar.stop()


class EpisodesBar:
    """Progress of one training: episodes, the return of the last, the mean of the last hundred, the time left.

    Call it with (episodes so far, the return of the last, its length).
    """

    def __init__(self, episodes: int) -> None:
        self.bar = progress_bar("Bar", "MofNComplete", "episodes  {task.fields[news]}  left", "TimeRemaining")
        self.task = self.bar.add_task("", total=episodes, news="")
        self.recent: deque[float] = deque(maxlen=RECENT_EPISODES)

    def __call__(self, episode: int, total: float, length: int) -> None:
        self.recent.append(total)
        mean = sum(self.recent) / len(self.recent)
        self.bar.update(self.task, completed=episode, news=f"return {total:g}, mean {mean:.4g}")

    def __enter__(self) -> EpisodesBar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
