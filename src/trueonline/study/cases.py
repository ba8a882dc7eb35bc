"""A study is data: cases, each a problem × methods × step-sizes × trace decays × runs. A case expands to tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import Any, Protocol

import numpy as np

from trueonline.inputs import count, positive, probabilities, ratios, unit
from trueonline.inputs.seeds import seed_of
from trueonline.study.checks import check_problem, grid, initial_weights
from trueonline.study.kernels.shared_trajectories import SHARED
from trueonline.study.kernels.swept_methods import check_points, checked_parameters, checks_of, resolved
from trueonline.study.storage.fingerprint import fingerprints
from trueonline.study.storage.work import add_to
from trueonline.study.tasks import SCHEMA, Task, known_by

STEPS_PER_TASK = 20_000_000  # about a second


class Problem(Protocol):
    """The attributes that a study needs of a problem. `trueonline.problems.FiniteMRP` has them; a class of yours can too.

    Attributes
    ----------
    features : numpy.ndarray
        The features of the states, one row for each state.
    metric : numpy.ndarray
        The matrix A of the error (w − w*)ᵀA(w − w*).
    lms_weights : numpy.ndarray
        The weights w* at which the error is zero.
    discount : float
        The discount γ.
    initial_weights : numpy.ndarray, optional
        The weights that learning begins with, at which the error is 1. The default is zeros.
    average_reward : bool, optional
        Whether values are differential, and the error leaves out a constant. False by default.
    """

    features: np.ndarray
    metric: np.ndarray
    lms_weights: np.ndarray
    discount: float

    def trajectory(self, steps: int, seed: Any) -> tuple[np.ndarray, ...]:
        """Sample a run.

        Parameters
        ----------
        steps : int
            The number of transitions.
        seed : list of int
            The seed of the run, as NumPy takes it. The same seed gives the same run.

        Returns
        -------
        tuple of numpy.ndarray
            The states (steps + 1 of them), the rewards and the discounts. Off-policy problems add the importance ratios. The
            attribute `probabilities` of the tuple may hold the probabilities of the actions under the target policy.
        """


def run_seed(seed: int, run: int) -> list[int]:
    """The seed of the trajectory of a run.

    Parameters
    ----------
    seed : int
        The seed of the study.
    run : int
        The number of the run.

    Returns
    -------
    list of int
        A seed that NumPy takes. Its constant keeps it apart from the seeds of problems.
    """
    return seed_of("trajectory of a sweep", seed, run)


@dataclass(frozen=True, eq=False)
class Case:
    """One problem, and the methods and parameters to sweep on it.

    Parameters
    ----------
    problem : Problem
        The problem, such as a `FiniteMRP` or an `OffPolicyProblem`.
    methods : mapping
        Names of methods in the results, each with a method: None for the method of this package with that name, a `SweptMethod`,
        a kernel, or a class of learners. The case holds each as a `SweptMethod` or a class of learners.
    step_sizes, trace_decays : tuple of float
        The grid of α and λ.
    runs : int
        The number of runs. All methods and parameters see the same trajectories.
    steps : int
        The number of transitions in a run.
    seed : int
        The seed of the trajectories.
    labels : mapping
        Columns to add to the results, each with its value.
    after : int
        The number of steps at the beginning of a run that the error leaves out.
    version : str
        A text that is part of the name of each result. Change it when a method changes in a way that its code does not show, such
        as a compiled library or a file that it reads.
    parameters : mapping
        Names of parameters of rules, or of arguments of classes that are numbers, each with its grid, and "eta", the ratio of the
        second step-size to the first. A method is swept over all combinations of those that it has.

    Raises
    ------
    ValueError
        If an argument is out of range, or if a method does not fit the problem.
    """

    problem: Any
    methods: Mapping[str, Any]
    step_sizes: tuple[float, ...]
    trace_decays: tuple[float, ...]
    runs: int
    steps: int
    seed: int = 0
    labels: Mapping[str, Any] = field(default_factory=dict)
    after: int = 0
    version: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int | np.integer) or isinstance(self.seed, bool) or self.seed < 0:
            raise ValueError(f"seed must be a whole number ≥ 0, got {self.seed!r}")
        checked: dict[str, Any] = {
            "step_sizes": grid("step_sizes", self.step_sizes, positive),
            "trace_decays": grid("trace_decays", self.trace_decays, unit),
            "runs": count("runs", self.runs),
            "steps": count("steps", self.steps),
            "seed": int(self.seed),
            "labels": {str(name): str(value) for name, value in self.labels.items()},
        }
        after = self.after
        if not isinstance(after, int | np.integer) or isinstance(after, bool) or not 0 <= after < checked["steps"]:
            raise ValueError(f"after must be a whole number from 0, and fewer than the {self.steps} steps, got {after!r}")
        checked["after"] = int(after)
        if not isinstance(self.version, str):
            raise ValueError(f"version must be a text, got {self.version!r}")
        reserved = set(checked["labels"]) & set(SCHEMA.names)
        if reserved:
            raise ValueError(f"a label may not be called {sorted(reserved)[0]!r}: the results have a column of that name")
        check_problem(self.problem)
        checked["methods"] = resolved(self.methods, self.problem)
        checked["parameters"] = checked_parameters(self.parameters, checked["methods"])
        twice = sorted(set(checked["labels"]) & set(checked["parameters"]))
        if twice:
            raise ValueError(f"a label may not be called {twice[0]!r}: a parameter that is swept has this name")
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for name, method in self.methods.items():
            common = (len(self.problem.lms_weights), self.step_sizes[0], self.trace_decays[0], self.problem.discount)
            check_points(name, method, self._points(method), *common)

    def trajectory(self, run: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The trajectory of a run, checked, because the kernel does not check it.

        All cases on one process of this package share its trajectories.

        Parameters
        ----------
        run : int
            The number of the run.

        Returns
        -------
        tuple of numpy.ndarray
            States, rewards and discounts, and ρ and π of the actions: an array with a row for each step, or one row for all.

        Raises
        ------
        ValueError
            If the trajectory does not fit the problem.
        """
        known = known_by(self.problem)
        if known is None:
            return self._sampled(run)
        return SHARED.get((known, self.steps, self.seed, run), partial(self._sampled, run))

    def _sampled(self, run: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        sampled = self.problem.trajectory(self.steps, run_seed(self.seed, run))
        states, rewards, discounts, *more = (np.asarray(part) for part in sampled)
        rhos = ratios("the ratios of the problem's trajectory", more[0] if more else None, self.steps)
        given = getattr(sampled, "probabilities", None)
        pis = probabilities("the probabilities of the problem's trajectory", given, self.steps, rhos)
        whole = (states.shape, rewards.shape, discounts.shape) == ((self.steps + 1,), (self.steps,), (self.steps,))
        if not whole or states.dtype.kind not in "iu" or states.min() < 0 or states.max() >= len(self.problem.features):
            raise ValueError(
                f"the problem's trajectory must be {self.steps + 1} states from 0 to {len(self.problem.features) - 1} and "
                f"{self.steps} rewards and discounts, got {states.dtype} {states.shape}, {rewards.shape} and {discounts.shape}"
            )
        if not np.isfinite(rewards).all() or not ((discounts >= 0.0) & (discounts <= 1.0)).all():
            raise ValueError("the problem's trajectory must have finite rewards, and discounts from 0 to 1")
        return (
            states.astype(np.int32),
            rewards.astype(np.float64),
            discounts.astype(np.float64),
            np.column_stack((rhos, pis)),
        )

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The arrays of the problem that kernels need: features, B, w* and the first weights.

        If each state has one active feature, its index is enough. B is a diagonal or an upper triangular matrix.
        """
        # Copies, because Numba compiles again for arrays that are read-only.
        features = np.array(self.problem.features, np.float64, order="C")
        if (features.sum(axis=1) == 1.0).all() and np.isin(features, (0.0, 1.0)).all():
            features = features.argmax(axis=1).astype(np.int32)
        target = np.array(self.problem.lms_weights, np.float64)
        return features, _root(self.problem.metric), target, initial_weights(self.problem)

    def tasks(self) -> list[Task]:
        """Expand the case.

        Returns
        -------
        list of Task
            Tasks of about a second each, in the order of methods and runs.
        """
        return expand([self])[0]

    def _determining(self) -> tuple[type, ...]:
        """The classes that determine the results of every method."""
        sampling = getattr(self.problem, "process", self.problem)
        return (type(self), *(() if known_by(self.problem) is None else (type(self.problem), type(sampling))))

    def expanded(self, prints: Mapping[str, Any] | None = None) -> list[Task]:
        """The tasks of this case.

        Parameters
        ----------
        prints : mapping, optional
            The fingerprint of each method. Results that are not kept need none. Their tasks have no names.

        Returns
        -------
        list of Task
            A task for each method, point of its parameters and block of runs.
        """
        work = len(self.step_sizes) * len(self.trace_decays) * self.steps
        block = max(1, min(self.runs, STEPS_PER_TASK // work))
        runs = [tuple(range(first, min(first + block, self.runs))) for first in range(0, self.runs, block)]
        content = "" if prints is None else self._content()
        return [
            Task(self, name, some, "" if prints is None else prints[name][0], content, point)
            for name, method in self.methods.items()
            for point in self._points(method)
            for some in runs
        ]

    def _points(self, method: Any) -> list[dict[str, float | None]]:
        """All combinations of the parameters that a method has, with None for the others."""
        has = checks_of(method)
        grids = (values if name in has else (None,) for name, values in self.parameters.items())
        return [dict(zip(self.parameters, values, strict=True)) for values in product(*grids)]

    def _content(self) -> str:
        """A hash of everything that determines the results of all tasks of this case. Labels are not part of it."""
        problem = self.problem
        about = (self.version, self.steps, self.seed, self.after, problem.discount, known_by(problem))
        digest = hashlib.sha256(repr(about).encode())
        grids = np.array(self.step_sizes), np.array(self.trace_decays)
        add_to(digest, *grids, problem.features, problem.metric, problem.lms_weights, initial_weights(problem))
        return digest.hexdigest()


def expand(cases: Sequence[Case], kept: bool = False) -> list[list[Task]]:
    """The tasks of each case.

    The methods of all cases get their fingerprints at once, which is faster, and before one of them runs, because to run a method
    may change what it refers to. If results are kept, a method that refers to something whose content nobody can tell is a
    ValueError, unless its case has a `version`.
    """
    prints = fingerprints([(case.methods, case._determining()) for case in cases])
    for case, found in zip(cases, prints, strict=True):
        for name, (_, unknown) in found.items():
            if kept and unknown and not case.version:
                raise ValueError(
                    f"results of {name} cannot be kept for another time: the method refers to {unknown[0]}, and nobody could tell "
                    "whether that is still the same. Give a version, such as version='1', and change it when the method changes, "
                    "or leave out the folder of results"
                )
    return [case.expanded(found) for case, found in zip(cases, prints, strict=True)]


def _root(metric: np.ndarray) -> np.ndarray:
    """B with BᵀB = A, for a positive semi-definite A: its diagonal, or an upper triangular matrix."""
    if np.array_equal(metric, np.diag(np.diag(metric))):
        return np.sqrt(np.diag(metric))
    values, vectors = np.linalg.eigh(metric)
    return np.asarray(np.linalg.qr((vectors * np.sqrt(np.maximum(values, 0.0))).T, mode="r"))
