"""A Markov reward process as an average-reward problem: differential values, measured up to a constant."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueonline.inputs import as_array
from trueonline.problems.finite_mrp import FiniteMRP
from trueonline.problems.linear_problem import LinearProblem
from trueonline.problems.trajectories import Trajectory


class AverageReward(LinearProblem):
    """The average-reward problem of a process: its reward rate and its differential values, without discount.

    A sweep takes it as any other problem. Differential values are determined up to a constant, so the error leaves constants out:
    it is the variance of v(s) − wᵀφ(s) over the stationary distribution (Tsitsiklis and Van Roy 1999).

    Parameters
    ----------
    process : FiniteMRP
        The process. Its own discount is not used. Episodes follow each other without end.

    Raises
    ------
    ValueError
        If `process` is not a `FiniteMRP`, or has more than one stationary distribution.

    Examples
    --------
    >>> problem = AverageReward(FiniteMRP([[0.0, 1.0], [1.0, 0.0]], rewards=[[0.0, 0.0], [2.0, 0.0]]))
    >>> round(problem.reward_rate, 9), problem.values.round(9)
    (1.0, array([-0.5,  0.5]))
    >>> problem.error([1.0, 2.0]) < 1e-15   # right, up to a constant
    True
    """

    average_reward = True
    discount = 1.0

    def __init__(self, process: FiniteMRP) -> None:
        if not isinstance(process, FiniteMRP):
            raise ValueError(f"process must be a FiniteMRP, got {process!r:.80}")
        self.process, self.transitions, self.features = process, process.transitions, process.features
        self.reward_rate, self.values = process.reward_rate, process.differential_values

    @cached_property
    def _centred(self) -> np.ndarray:
        """√d(s) (φ(s) − Σ_s' d(s')φ(s')), a row for each state."""
        d = self.process.stationary
        return np.sqrt(d)[:, None] * (self.features - d @ self.features)

    @cached_property
    def lms_weights(self) -> np.ndarray:
        """The weights at which the error is least. If there are several, the shortest."""
        return np.linalg.lstsq(self._centred, np.sqrt(self.process.stationary) * self.values)[0]

    @cached_property
    def metric(self) -> np.ndarray:
        """A, with (w − w*)ᵀA(w − w*) the variance of (w − w*)ᵀφ(s) over the stationary distribution."""
        return self._centred.T @ self._centred

    def error(self, weights: ArrayLike) -> float:
        """Measure how far weights are from the differential values, up to a constant.

        Parameters
        ----------
        weights : array_like
            The weights w.

        Returns
        -------
        float
            The standard deviation of v(s) − wᵀφ(s) over the stationary distribution.
        """
        off = np.sqrt(self.process.stationary) * self.values - self._centred @ as_array("weights", weights, float)
        return float(np.sqrt(off @ off))

    @property
    def fingerprint(self) -> str:
        """A hash of everything that defines this problem, apart from its features."""
        return hashlib.sha256(f"average reward {self.process.fingerprint}".encode()).hexdigest()

    def with_features(self, features: ArrayLike) -> AverageReward:
        """The same problem with other features.

        Parameters
        ----------
        features : array_like
            ``features[s]`` are the features of state s.

        Returns
        -------
        AverageReward
            A new problem.
        """
        return AverageReward(self.process.with_features(features))

    def trajectory(self, steps: int, seed: Any = 0) -> Trajectory:
        """Sample a run of the process from its start.

        Parameters
        ----------
        steps : int
            The number of transitions.
        seed : int or any seed that NumPy takes
            The same seed gives the same run.

        Returns
        -------
        Trajectory
            States, rewards, and discounts, which are all 1.
        """
        states, rewards, _ = self.process.trajectory(steps, seed)
        return Trajectory(states, rewards, np.ones(steps))

    def __repr__(self) -> str:
        return f"AverageReward({self.process!r})"
