"""The parts of an experiment: its settings, its outcome, and what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import study
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import Claim

PART = re.compile(r"(?i:(question|paper|look|exceptions)): (.*)", re.DOTALL)  # a paragraph for `Reading`
# The columns of a task's result that say which setting of a method a row is about.
SETTING: dict[str, pa.DataType] = {"method": pa.string(), "step_size": pa.float64(), "trace_decay": pa.float64()}


@dataclass(frozen=True)
class Settings:
    """How to run experiments. `runs` scales them down or up; the default is each experiment's own number."""

    tasks: Path  # folder for the results of sweeps
    seed: int = 0
    runs: int | None = None
    engine: str = "local"  # or cuda, cuda:NUMBER, dask, dask:ADDRESS; the results are the same
    threads: int | None = None
    progress: Callable[[Any, int, int], None] = lambda task, done, of: None
    say: Callable[[str], None] = lambda text: None  # called with a message before a long wait
    options: Mapping[str, Any] = field(default_factory=dict)  # those that experiments have of their own, by name
    _shared: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def number(self, of_runs: int) -> int:
        """The number of runs: `--runs`, or the experiment's own."""
        return of_runs if self.runs is None else self.runs

    def shared(self, compute: Callable[[Settings], Any]) -> Any:
        """What `compute` returns for these settings. It is computed once for all experiments of a call."""
        if compute not in self._shared:
            self._shared[compute] = compute(self)
        return self._shared[compute]

    @property
    def how(self) -> dict[str, Any]:
        """The options of `study.execute` and `study.execute_tasks`."""
        return {"engine": self.engine, "threads": self.threads, "progress": self.progress}

    def sweep(self, cases: Sequence[study.Case], **options: Any) -> None:
        """Run the sweeps of these cases that have no results yet."""
        study.execute(cases, self.tasks, **self.how | options)

    def finish(self, tasks: Sequence[Any]) -> pa.Table:
        """Run the tasks that have no results yet, and return the results of all."""
        study.execute_tasks(tasks, self.tasks, **self.how)
        return self.gathered(tasks)

    def gathered(self, tasks: Sequence[Any]) -> pa.Table:
        """The results of tasks that have just been run."""
        results = study.gather_tasks(tasks, self.tasks)
        if results is None:
            raise RuntimeError("results were deleted while they were being read; run the same command again")
        return results


class Unfinished(Exception):  # noqa: N818 - not an error
    """This share of an experiment is done. There is an outcome when the other shares are done too."""


@dataclass(frozen=True)
class Outcome:
    """The results of an experiment: data, pictures (the first is *the* figure) and claims."""

    data: pa.Table
    figures: Mapping[str, Callable[[], Any]]  # file name without ending → a function that draws a matplotlib figure
    claims: Sequence[Claim]
    files: Mapping[str, bytes] = field(default_factory=dict)  # more files, by name
    note: str = ""  # how the experiment was run, for the report


@dataclass(frozen=True)
class Reading:
    """An experiment for readers who do not know the subject: what the report says above its figures.

    Parameters
    ----------
    question : str
        What is asked, in plain words.
    paper : str
        What the paper, or the book, says.
    look : str
        What to look at in the figures.
    exceptions : str
        Why some claims may not hold.
    main : int, optional
        How many of the claims, from the first, stand beside the figure. The others are details. All by default.
    """

    question: str
    paper: str
    look: str
    exceptions: str = ""
    main: int | None = None


@dataclass(frozen=True)
class Experiment:
    """An experiment: its name in the command, a text about it, and the function that runs it.

    The text is the docstring of the experiment's module. Its first line is the title in the report. Paragraphs that begin with
    "Question:", "Paper:", "Look:" and "Exceptions:" are for readers who do not know the subject (`Reading`).
    """

    name: str
    about: str
    run: Callable[[Settings], Outcome]
    best: BestRows  # of its table, for readers
    check: Callable[[Settings], None] = lambda settings: None  # ValueError if it cannot use these settings
    main: int | None = None  # how many of the claims stand beside the figure (`Reading`)

    @property
    def title(self) -> str:
        """The title in lists and in the report."""
        return self.about.partition("\n")[0]

    @property
    def text(self) -> str:
        """The paragraphs below the title, without those for `Reading`."""
        return "\n\n".join(text for text in self._paragraphs if not PART.match(text))

    @property
    def reading(self) -> Reading | None:
        """What the text says to readers who do not know the subject. None if it has no question."""
        parts = {found[1].lower(): " ".join(found[2].split()) for text in self._paragraphs if (found := PART.match(text))}
        return Reading(**parts, main=self.main) if parts else None

    @property
    def _paragraphs(self) -> list[str]:
        return self.about.partition("\n")[2].strip().split("\n\n")


def largest_difference(learners: Sequence[Any], states: Any, rewards: Any, discounts: Any = None) -> float:
    """The largest difference of any weight of two learners, and of their reward rates, after any step of a trajectory."""
    apart = 0.0
    for each in learners:
        each.start(int(states[0]))
    for t, reward in enumerate(rewards):
        for each in learners:
            each.update(float(reward), int(states[t + 1]), *(() if discounts is None else (float(discounts[t]),)))
        one, other = (np.append(each.weights, getattr(each, "reward_rate", 0.0)) for each in learners)
        apart = max(apart, float(np.abs(one - other).max()))
    return apart


def stacked(by_method: Mapping[str, Mapping[str, Any]], **labels: str) -> pa.Table:
    """A table with the columns of each method below those of the one before, after labels that are the same in all rows."""
    tables = []
    for method, columns in by_method.items():
        same = {name: [word] * len(next(iter(columns.values()))) for name, word in {**labels, "method": method}.items()}
        tables.append(pa.table({**same, **columns}))
    return pa.concat_tables(tables)


def table(names: Sequence[str], rows: Sequence[tuple]) -> pa.Table:
    """Rows as a table with these columns."""
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
