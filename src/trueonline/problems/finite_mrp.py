"""Any finite Markov reward process, continuing or episodic, with linear features."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueonline.inputs import read_only
from trueonline.problems.array_checks import array, check_features, check_probabilities, fingerprint_of
from trueonline.problems.chain import MarkovChain
from trueonline.problems.linear_problem import LinearProblem
from trueonline.problems.trajectories import Trajectory


def _of_process(answer: Callable[[FiniteMRP], Any]) -> property:
    """An answer that does not depend on the features: it is computed once for all problems that `with_features` makes."""

    name = answer.__name__  # a problem with its answers can be pickled

    def get(problem: FiniteMRP) -> Any:
        if name not in problem._answers:
            problem._answers[name] = answer(problem)
        return problem._answers[name]

    return property(get, doc=answer.__doc__)


class FiniteMRP(LinearProblem):
    """A Markov reward process over k states, continuing or episodic, with linear features.

    Parameters
    ----------
    transitions : array_like
        ``transitions[s, s']`` is a probability. The matrix is k × k, or k × (k + 1). The additional column is the end of an
        episode, after which the process begins again at `start`.
    rewards : array_like
        ``rewards[s, s']`` is the expected reward of a transition. It has the shape of `transitions`.
    reward_std : float
        The standard deviation of the normal noise on the rewards.
    features : array_like, optional
        ``features[s]`` are the features of state s. By default there is one feature for each state.
    discount : float
        The discount γ.
    start : int or array_like
        The state in which every episode begins, or for each state the probability that an episode begins there.

    Raises
    ------
    ValueError
        If a shape does not fit, or if a number is out of range.

    Examples
    --------
    >>> chain = FiniteMRP(transitions=[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], rewards=[[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]],
    ...                   features=[[1.0], [1.0]], discount=1.0)
    >>> chain.values, chain.stationary, chain.lms_weights
    (array([2., 0.]), array([0.5, 0.5]), array([1.]))
    """

    def __init__(
        self,
        transitions: ArrayLike,
        rewards: ArrayLike,
        reward_std: float = 0.0,
        features: ArrayLike | None = None,
        discount: float = 0.99,
        start: int | ArrayLike = 0,
    ) -> None:
        P = array("transitions", transitions, 2)
        k = len(P)
        if P.shape not in ((k, k), (k, k + 1)) or k == 0:
            raise ValueError(f"transitions must be k × k, or k × (k + 1) with the end last, got shape {P.shape}")
        check_probabilities("transitions", P)
        self._start_shares = self._take(P, rewards, reward_std, features, discount, start)
        self._answers: dict[Any, Any] = {}

    @property
    def _onwards(self) -> np.ndarray:
        """Transitions that do not end the episode."""
        return self.transitions[:, : self.n_states]

    @property
    def _restarted(self) -> np.ndarray:
        """Transitions with episodes following each other."""
        P = self._onwards
        return P + np.outer(1.0 - P.sum(axis=1), self._start_shares)

    @property
    def _balance(self) -> np.ndarray:
        """The system d(P − I) = 0, Σd = 1, with episodes following each other."""
        P = self._restarted
        return np.vstack((P.T - np.eye(len(P)), np.ones(len(P))))

    @property
    def _expected_rewards(self) -> np.ndarray:
        return (self.transitions * self.rewards).sum(axis=1)

    @_of_process
    def _chain(self) -> MarkovChain:
        """The next states. The last column takes what the probabilities lack to 1."""
        width = self.transitions.shape[1]
        return MarkovChain(self.transitions, width, width - 1)

    @_of_process
    def values(self) -> np.ndarray:
        """The values v_π of the states: the solution of v = r + γPv."""
        system = np.eye(self.n_states) - self.discount * self._onwards
        if np.linalg.cond(system) > 1e13:
            raise ValueError("the values are not finite: with discount 1 every state must reach the end of an episode")
        return np.linalg.solve(system, self._expected_rewards)

    @_of_process
    def is_ergodic(self) -> bool:
        """Whether there is exactly one stationary distribution."""
        return int(np.linalg.matrix_rank(self._balance)) == self.n_states

    @_of_process
    def stationary(self) -> np.ndarray:
        """The share of time that the process spends in each state in the long run, over all episodes."""
        if not self.is_ergodic:
            raise ValueError("there is more than one stationary distribution: the process falls into several parts")
        shares = np.linalg.lstsq(self._balance, np.append(np.zeros(self.n_states), 1.0))[0]
        shares = np.where(shares > 1e-14, shares, 0.0)  # transient states
        return shares / shares.sum()

    @property
    def reward_rate(self) -> float:
        """The mean reward of a step in the long run, over all episodes. The discount does not matter."""
        return float(self.stationary @ self._expected_rewards)

    @_of_process
    def differential_values(self) -> np.ndarray:
        """The differential values: v = r − r̄ + Pv, with the mean 0 over the stationary distribution (Poisson's equation).

        A state's value is by how much the rewards from there on exceed the reward rate r̄, in total. The discount does not
        matter, and episodes follow each other.
        """
        above = self._expected_rewards - self.reward_rate
        return np.linalg.solve(np.eye(self.n_states) - self._restarted + self.stationary, above)

    @cached_property
    def metric(self) -> np.ndarray:
        """A = Σ_s d(s) φ(s)φ(s)ᵀ. The mean squared distance of wᵀφ from the LMS solution is (w − w*)ᵀA(w − w*)."""
        return self.features.T @ (self.stationary[:, None] * self.features)

    @_of_process
    def fingerprint(self) -> str:
        """A hash of everything that defines this process, apart from its features."""
        start = self.start if isinstance(self.start, int) else self.start.tolist()
        about = (self.reward_std, self.discount, start, self.transitions.shape)
        return fingerprint_of(about, self.transitions, self.rewards)

    def with_features(self, features: ArrayLike) -> FiniteMRP:
        """The same process with other features.

        Parameters
        ----------
        features : array_like
            ``features[s]`` are the features of state s.

        Returns
        -------
        FiniteMRP
            A new problem. Both know the same process, so its values and its distribution are computed once.

        Raises
        ------
        ValueError
            If there is not one row for each state.
        """
        phi = array("features", features, 2)
        check_features(phi, self.n_states)
        other = copy(self)
        for answer in ("lms_weights", "metric"):
            vars(other).pop(answer, None)
        other.features = read_only(phi)
        return other

    def trajectory(self, steps: int, seed: Any = 0) -> Trajectory:
        """Sample a run of the process from `start`.

        Parameters
        ----------
        steps : int
            The number of transitions.
        seed : int or any seed that NumPy takes
            The same seed gives the same run, also with other features.

        Returns
        -------
        Trajectory
            States, rewards and discounts.
        """
        states, to, noise = self._chain.sample(steps, self.start, np.random.default_rng(seed))
        rewards = self.rewards[states[:-1], to] + noise * self.reward_std
        return Trajectory(states, rewards, np.where(to < self.n_states, self.discount, 0.0))

    def sample(self, steps: int, seed: Any = 0) -> tuple[np.ndarray, np.ndarray]:
        """Sample the states and rewards of a run.

        Parameters
        ----------
        steps : int
            The number of transitions.
        seed : int or any seed that NumPy takes
            The same seed gives the same run.

        Returns
        -------
        states, rewards : numpy.ndarray
            ``steps + 1`` states and ``steps`` rewards.
        """
        states, rewards, _ = self.trajectory(steps, seed)
        return states, rewards

    def __repr__(self) -> str:
        return f"FiniteMRP({self.n_states} states, {self.n_features} features, discount={self.discount})"
