"""Many tasks in few launches: tasks of one shape become batches, and the errors of a batch become results of its tasks again.

A batch has the trajectories of many runs of many problems. Each method that learns from them is one launch. Nothing here knows
CUDA.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from trueonline.study.cases import Case
from trueonline.study.kernels.swept_methods import SweptMethod
from trueonline.study.storage.work import Work
from trueonline.study.tasks import Task


class Launch(NamedTuple):
    """One method on some runs of a batch."""

    method: SweptMethod
    rows: np.ndarray  # the rows of the batch that hold these runs
    tasks: tuple[Task, ...]  # their runs one after another are the rows


class Batch(NamedTuple):
    """Trajectories, the problems that they are about, and the methods that learn from them."""

    features: np.ndarray  # problem × state × feature, or problem × state for the index of the active feature
    roots: np.ndarray  # problem × B
    targets: np.ndarray  # problem × w*
    firsts: np.ndarray  # problem × the first weights
    cases: np.ndarray  # the problem of each row
    states: np.ndarray  # row × (steps + 1)
    rewards: np.ndarray
    discounts: np.ndarray
    chances: np.ndarray  # row × steps × (ρ and π), or row × 1 × (ρ and π)
    alphas: np.ndarray
    lams: np.ndarray
    discount: float
    after: int
    launches: tuple[Launch, ...]

    @property
    def inputs(self) -> tuple[np.ndarray, ...]:
        """The arrays that kernels read, in the order of their arguments."""
        return (
            self.features, self.states, self.rewards, self.discounts, self.chances, self.roots, self.targets, self.firsts,
            self.cases, *(launch.rows for launch in self.launches), *(launch.method.numbers for launch in self.launches),
            self.alphas, self.lams,
        )  # fmt: skip

    @property
    def cells(self) -> int:
        """The number of learners of a run and method."""
        return len(self.alphas) * len(self.lams)

    @property
    def n(self) -> int:
        """The number of features."""
        return self.targets.shape[1]

    @property
    def tabular(self) -> bool:
        """Whether each state has one active feature."""
        return self.features.dtype == np.int32

    @property
    def diagonal(self) -> bool:
        """Whether B is diagonal."""
        return self.roots.ndim == 2


def sweeps(tasks: Sequence[Work]) -> tuple[list[Task], list[Work]]:
    """The tasks that are sweeps by kernels, and the others: learners that take single steps, and tasks that are not sweeps."""
    some: list[Task] = []
    others: list[Work] = []
    for task in tasks:
        if isinstance(task, Task) and isinstance(task.resolved, SweptMethod):
            some.append(task)
        else:
            others.append(task)
    return some, others


def plan(tasks: Sequence[Task], most_bytes: float, most_steps: float) -> Iterator[list[Task]]:
    """Tasks that go together: of one shape, those of one problem side by side, none larger than allowed unless it is one task."""
    groups: dict[Any, list[Task]] = {}
    for task in tasks:
        groups.setdefault(_shape(task), []).append(task)
    for group in groups.values():
        some: list[Task] = []
        steps, size, runs = 0.0, 0.0, set[tuple]()
        for task in sorted(group, key=_place(group)):
            trajectories = (task.case, task.runs)
            more = 8.0 * task.rows + (0.0 if trajectories in runs else 48.0 * len(task.runs) * task.case.steps)
            if some and (steps + task.steps > most_steps or size + more > most_bytes):
                yield some
                some, steps, size, runs = [], 0.0, 0.0, set()
                more = 8.0 * task.rows + 48.0 * len(task.runs) * task.case.steps
            some.append(task)
            runs.add(trajectories)
            steps, size = steps + task.steps, size + more
        yield some


def _shape(task: Task) -> tuple:
    """The sizes and parameters that all tasks of a batch share."""
    case = task.case
    features, root, _, _ = case.arrays
    sizes = (features.shape, features.dtype.str, root.shape, case.steps, case.after, float(case.problem.discount))
    return (*sizes, case.step_sizes, case.trace_decays)


def _place(group: Sequence[Task]) -> Any:
    """Sort tasks by case and runs, so that the methods of a case share its trajectories."""
    order = {id(case): number for number, case in enumerate({id(task.case): task.case for task in group}.values())}
    return lambda task: (order[id(task.case)], task.runs)


def gather(tasks: Sequence[Task]) -> Batch:
    """The batch of tasks of one shape."""
    cases: dict[int, Case] = {id(task.case): task.case for task in tasks}
    numbers = {key: number for number, key in enumerate(cases)}
    rows: dict[tuple[int, int], int] = {}
    for task in tasks:
        for run in task.runs:
            rows.setdefault((id(task.case), run), len(rows))
    trajectories = [cases[key].trajectory(run) for key, run in rows]
    launches: dict[tuple, tuple[SweptMethod, list[Task]]] = {}
    for task in tasks:
        method = task.resolved
        task.check(trajectories[rows[id(task.case), run]] for run in task.runs)
        about = (method.update, method.kind, method.second, method.numbers.tobytes())
        launches.setdefault(about, (method, []))[1].append(task)
    features, roots, targets, firsts = (np.stack(part) for part in zip(*(c.arrays for c in cases.values()), strict=True))
    states, rewards, discounts = (np.stack(part) for part in zip(*(each[:3] for each in trajectories), strict=True))
    most = max(len(each[3]) for each in trajectories)  # one pair may stand for those of all steps
    chances = np.stack([np.broadcast_to(each[3], (most, 2)) for each in trajectories])
    first = tasks[0].case
    return Batch(
        features,
        roots,
        targets,
        firsts,
        np.array([numbers[key] for key, _ in rows], np.int32),
        states,
        rewards,
        discounts,
        chances,
        np.array(first.step_sizes),
        np.array(first.trace_decays),
        float(first.problem.discount),
        first.after,
        tuple(
            Launch(
                method, np.array([rows[id(task.case), run] for task in some for run in task.runs], np.int32), tuple(some)
            )
            for method, some in launches.values()
        ),
    )


def split(launch: Launch, errors: np.ndarray) -> Iterator[tuple[Task, np.ndarray]]:
    """The errors of each task of a launch."""
    first = 0
    for task in launch.tasks:
        yield task, errors[first : first + len(task.runs)]
        first += len(task.runs)
