"""A task is about a second of work: one method on one problem, all step-sizes and trace decays, some of the runs.

The name of a task is a hash of everything that determines its result. So no result is computed twice, and no result is taken for
another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from trueonline.inputs import check_methods, protocol_of, weights_of
from trueonline.study.kernels.swept_methods import SweptMethod, check_parts, second_step_size
from trueonline.study.storage.work import Beat, StoredWork

if TYPE_CHECKING:
    from trueonline.study.cases import Case

SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("step_size", pa.float64()),
        ("trace_decay", pa.float64()),
        ("run", pa.int64()),
        ("error", pa.float64()),
    ]
)


def schema_of(parameters: Iterable[str]) -> pa.Schema:
    """The columns of results, with those of parameters behind the trace decay. A method without a parameter has null there."""
    own = [pa.field(name, pa.float64()) for name in parameters]
    return pa.schema([*list(SCHEMA)[:3], *own, *list(SCHEMA)[3:]])


@dataclass(frozen=True, eq=False)
class Task(StoredWork):
    """Some runs of one method of a case. Its kernels release the interpreter, so tasks run in threads.

    Parameters
    ----------
    case : Case
        The case.
    method : str
        The name of the method.
    runs : tuple of int
        The numbers of the runs.
    fingerprint : str
        The identity of the method. Of parts that nobody can tell, it says nothing.
    content : str
        A hash of the problem and the grid.
    point : mapping, optional
        The value of each parameter that is swept; None for one that the method does not have.
    """

    case: Case
    method: str
    runs: tuple[int, ...]
    fingerprint: str
    content: str
    point: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return schema_of(self.point)

    @property
    def title(self) -> str:
        """The method, as a part of a file name."""
        return re.sub(r"[^a-zA-Z0-9_]+", "-", self.method)

    def about(self) -> Iterator[Any]:
        """Everything that determines the result. What a problem of the user samples is known by the trajectories alone.

        Yields
        ------
        str or numpy.ndarray
            The parts.
        """
        point = (tuple(self.point.items()),) if self.point else ()
        yield repr((self.method, self.fingerprint, self.runs, self.content, *point))
        if known_by(self.case.problem) is None:
            for run in self.runs:
                yield from self.case.trajectory(run)

    @property
    def resolved(self) -> Any:
        """The method: a `SweptMethod`, or a class of learners."""
        method = self.case.methods[self.method]
        return method.at(self._own) if isinstance(method, SweptMethod) and self._own else method

    @property
    def _own(self) -> dict[str, float]:
        return {name: value for name, value in self.point.items() if value is not None}

    @property
    def rows(self) -> int:
        """The number of rows of the result."""
        return len(self.runs) * len(self.case.step_sizes) * len(self.case.trace_decays)

    @property
    def steps(self) -> int:
        """The number of learning steps, at most."""
        return self.rows * self.case.steps

    def compute(self, scratch: Path | None = None, beat: Beat = lambda steps: None) -> pa.Table:
        """Compute the errors of the runs.

        Parameters
        ----------
        scratch : Path, optional
            Not used: a task of runs is short and leaves no checkpoint.
        beat : callable, optional
            Not used: a task of runs does not report its progress.

        Returns
        -------
        pyarrow.Table
            A table with the columns of `schema`.
        """
        case, method = self.case, self.resolved
        alphas, lams = np.array(case.step_sizes), np.array(case.trace_decays)
        errors = np.empty((len(self.runs), len(alphas), len(lams)))
        trajectories = [case.trajectory(run) for run in self.runs]
        self.check(trajectories)
        if isinstance(method, SweptMethod):
            method.sweep(case.arrays, float(case.problem.discount), case.after, trajectories, alphas, lams, errors)
        else:
            own = self._own
            eta = own.pop("eta", second_step_size(method))
            made = partial(method, **own) if own else method
            _step_by_step(case, made, eta, trajectories, alphas, lams, errors)
        return self.table(errors)

    def check(self, trajectories: Iterable[tuple]) -> None:
        """Check that the method is for these trajectories.

        Parameters
        ----------
        trajectories : iterable of tuple
            States, rewards, discounts, and ρ and π of each run (`Case.trajectory`).

        Raises
        ------
        ValueError
            If the method has γ as a constant, and the trajectories have other discounts, or if it cannot take importance ratios,
            and they have some.
        """
        trajectories = list(trajectories)
        if any((trajectory[3][:, 0] != 1.0).any() for trajectory in trajectories):
            check_parts(self.method, self.resolved, ("discount", "ratio"))
        row = self.resolved.row if isinstance(self.resolved, SweptMethod) else getattr(self.resolved, "method", None)
        if "gamma" in getattr(row, "constants", ()):
            for trajectory in trajectories:
                _check_constant(trajectory, self.case.problem.discount)

    def table(self, errors: np.ndarray) -> pa.Table:
        """The result of the task as a table.

        Parameters
        ----------
        errors : numpy.ndarray
            The error of each run, step-size and trace decay: an array with these three dimensions.

        Returns
        -------
        pyarrow.Table
            A table with the columns of `schema`.
        """
        alphas, lams, runs = self.case.step_sizes, self.case.trace_decays, self.runs
        columns = [
            pa.repeat(self.method, errors.size),
            np.tile(np.repeat(alphas, len(lams)), len(runs)),
            np.tile(lams, len(runs) * len(alphas)),
            *(pa.array([value] * errors.size, pa.float64()) for value in self.point.values()),
            np.repeat(runs, len(alphas) * len(lams)),
            errors.flatten(),  # a copy: who has computed the errors may use their place again
        ]
        return pa.table(columns, schema=self.schema)


def known_by(problem: Any) -> str | None:
    """The fingerprint of a problem of this package. None for a problem of the user, who may sample trajectories in another way."""
    sampling = getattr(problem, "process", problem)  # that of an `AverageReward` samples for it
    ours = _is_ours(problem) and _is_ours(sampling)
    return getattr(problem, "fingerprint", None) if ours else None


def _is_ours(problem: Any) -> bool:
    kind = type(problem)
    return (
        kind.__module__.startswith("trueonline.")
        and kind.trajectory.__module__.startswith("trueonline.")
        and "trajectory" not in vars(problem)
    )


def _check_constant(trajectory: tuple, discount: float) -> None:
    """For methods that have γ as a constant."""
    others = np.setdiff1d(trajectory[2], (0.0, discount))
    if others.size:
        raise ValueError(
            f"this method is for a constant discount, here {discount:g}, but the problem has {others[0]:g} too"
        )


def _step_by_step(
    case: Case,
    learner_class: Any,
    eta: float | None,
    trajectories: Iterable,
    alphas: np.ndarray,
    lams: np.ndarray,
    errors: np.ndarray,
) -> None:
    """Write the errors of a learner of any class, a step at a time. Its second step-size is η times the first, if it has one."""
    problem, (_, root, _, first) = case.problem, case.arrays
    w, B, phi = problem.lms_weights, np.diag(root) if root.ndim == 1 else root, np.asarray(problem.features, float)
    initial = np.sum((B @ (first - w)) ** 2)
    wanted = protocol_of(learner_class)
    for (states, rewards, discounts, chances), error in zip(trajectories, errors, strict=True):
        provided = ("discount", "ratio") if len(chances) > 1 else ("discount",)
        parts = [part for part in wanted.takes(provided) if part in (*provided, "ratio", "probability", *wanted.required)]
        for i, j in np.ndindex(error.shape):
            begin: dict[str, Any] = (
                {"initial_weights": first.copy()} if first.any() else {}
            )  # a class may learn in this array
            if eta is not None and not np.isnan(eta):
                begin["second_step_size"] = eta * float(alphas[i])
            learner = learner_class(len(w), float(alphas[i]), float(lams[j]), problem.discount, **begin)
            check_methods(learner)
            learner.start(phi[states[0]])
            total = 0.0
            with np.errstate(over="ignore", invalid="ignore"):
                for t, reward in enumerate(rewards):
                    x_next, (rho, pi) = phi[states[t + 1]], chances[min(t, len(chances) - 1)].tolist()
                    given = {"discount": float(discounts[t]), "trace_decay": float(lams[j])}
                    given |= {"ratio": rho, "probability": pi, "interest": 1.0, "x_expected": x_next}
                    learner.update(float(reward), x_next, **{part: given[part] for part in parts})
                    if t >= case.after:
                        total += np.sum((B @ (weights_of(learner, len(w)) - w)) ** 2)
                    if not total < np.inf:
                        break
            error[i, j] = total / (len(rewards) - case.after) / initial if total < np.inf else np.inf
