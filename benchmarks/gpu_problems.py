"""The sweeps that `gpu` compares: Figure 4 of the paper, and the same on many MRPs, as stacked arrays."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from trueonline import study
from trueonline.lab.experiment import Settings as PaperSettings
from trueonline.lab.experiments import random_mrps

ALPHAS, LAMS = random_mrps.ALPHAS, random_mrps.LAMS
FIGURE_4 = (0,)  # the number of its MRPs

# From (MRP class, representation, method) to errors[mrp, run, α, λ].
Errors: TypeAlias = Mapping[tuple[str, str, str], np.ndarray]


@dataclass(frozen=True, eq=False)
class Group:
    """One class of MRPs with one representation: the cases of a study, and their arrays stacked over the MRPs.

    Groups of one class share states, rewards and discounts: the trajectories do not depend on the features.
    """

    cases: Sequence[study.Case]
    features: np.ndarray  # mrp, state, feature
    states: np.ndarray  # mrp, run, step; one more than rewards
    rewards: np.ndarray  # mrp, run, step
    discounts: np.ndarray  # mrp, run, step
    root: np.ndarray  # mrp, row, feature: B, upper triangular, or mrp, feature: its diagonal
    target: np.ndarray  # mrp, feature: w*

    @property
    def name(self) -> tuple[str, str]:
        """The class of MRPs and the representation."""
        return self.cases[0].labels["mrp"], self.cases[0].labels["representation"]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that fit the representation."""
        return tuple(self.cases[0].methods)

    @property
    def tabular(self) -> bool:
        """Whether each state has one feature of its own, so that B is a diagonal."""
        return self.root.ndim == 2

    @property
    def steps(self) -> int:
        """The learning steps of one method, each with its error."""
        return self.rewards.size * len(ALPHAS) * len(LAMS)


@dataclass(frozen=True)
class Measured:
    """A sweep over groups, timed several times on arrays in the host's memory."""

    errors: Errors
    preparing: float  # seconds to compile
    kernels: list[float]  # seconds from inputs on the device to errors on the device, one for each round
    transfers: list[float]  # seconds from inputs on the host to errors on the host, one for each round


def groups(numbers: Sequence[int] = FIGURE_4, runs: int = random_mrps.RUNS) -> list[Group]:
    """The MRPs with these numbers: a group for each class and each representation of the paper.

    Parameters
    ----------
    numbers : sequence of int
        The numbers of the MRPs. Number 0 is the MRP of Figure 4.
    runs : int
        The number of runs on each MRP.

    Returns
    -------
    list of Group
        Nine groups.
    """
    settings = PaperSettings(Path(tempfile.gettempdir()))  # nothing is written
    cases = [random_mrps.cases(number, settings, runs, random_mrps.PAPERS) for number in numbers]
    stacked = []
    for first in range(0, len(cases[0]), len(random_mrps.PAPERS)):
        states, rewards, discounts = _trajectories([of_number[first] for of_number in cases])
        for representation in range(first, first + len(random_mrps.PAPERS)):
            alike = [of_number[representation] for of_number in cases]
            problems = [case.problem for case in alike]
            features = np.array([problem.features for problem in problems])
            root = np.array([_root(problem.features, problem.stationary) for problem in problems])
            target = np.array([problem.lms_weights for problem in problems])
            stacked.append(Group(alike, features, states, rewards, discounts, root, target))
    return stacked


def _trajectories(cases: Sequence[study.Case]) -> list[np.ndarray]:
    parts = zip(*(case.trajectory(run)[:3] for case in cases for run in range(case.runs)), strict=True)
    return [np.array(part).reshape(len(cases), cases[0].runs, -1) for part in parts]


def _root(features: np.ndarray, stationary: np.ndarray) -> np.ndarray:
    """B with BᵀB = ΦᵀDΦ: the triangle of D^½Φ = QB, or its diagonal if Φ is the identity."""
    shares = np.sqrt(stationary)
    if np.array_equal(features, np.eye(len(features))):
        return shares
    return np.linalg.qr(shares[:, None] * features).R


def on_cpu(some: Sequence[Group]) -> Errors:
    """The errors by the sweep kernel of the package, one task after another."""
    errors = {}
    for group in some:
        for method in group.methods:
            values = [
                task.compute()["error"].to_numpy()
                for case in group.cases
                for task in case.tasks()
                if task.method == method
            ]
            shape = (*group.rewards.shape[:2], len(ALPHAS), len(LAMS))
            errors[(*group.name, method)] = np.concatenate(values).reshape(shape)
    return errors


def largest_difference(errors: Errors, expected: Errors, below: float = 1000.0) -> tuple[float, int]:
    """How far two sweeps are apart.

    Parameters
    ----------
    errors, expected : Errors
        The two sweeps.
    below : float
        Larger expected errors, of learners that diverge, are not compared.

    Returns
    -------
    difference : float
        The largest relative difference of an error. Infinite if there is none in its place.
    cells : int
        In how many places one is infinite and the other is not.
    """
    apart, cells = 0.0, 0
    for name, values in expected.items():
        cells += int((np.isinf(values) != np.isinf(errors[name])).sum())
        small = values < below
        relative = np.abs(errors[name][small] / values[small] - 1.0)
        apart = max(apart, float(np.nan_to_num(relative, nan=np.inf).max(initial=0.0)))
    return apart, cells
