"""Any finite Markov reward process, continuing or episodic, with linear features."""

from __future__ import annotations

import hashlib
from bisect import bisect
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from trueonline.inputs import number, unit


class Trajectory(NamedTuple):
    """What happened: `discounts[t]` is 0 where an episode ended, and `states[t + 1]` then begins the next."""

    states: np.ndarray
    rewards: np.ndarray
    discounts: np.ndarray


class FiniteMRP:
    """A Markov reward process over k states.

    `transitions[s, s']` is a probability, `rewards[s, s']` the expected reward of that transition; the reward is normal
    around it with `reward_std`. Both may have one column more than rows: the last is the end of the episode, after which
    the process is in the state `start` again. `features[s]` are the features of state s, by default one for each state.

    >>> chain = FiniteMRP(transitions=[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], rewards=[[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]],
    ...                   features=[[1.0], [1.0]], discount=1.0)
    >>> chain.values, chain.stationary, chain.lms_weights
    (array([2., 0.]), array([0.5, 0.5]), array([1.]))
    """

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        reward_std: float = 0.0,
        features: Any = None,
        discount: float = 0.99,
        start: int = 0,
    ) -> None:
        P = _matrix("transitions", transitions)
        k = len(P)
        if P.shape not in ((k, k), (k, k + 1)) or k == 0:
            raise ValueError(f"transitions must be k × k, or k × (k + 1) with the end last, got shape {P.shape}")
        if (P < 0.0).any() or np.abs(P.sum(axis=1) - 1.0).max() > 1e-9:
            worst = int(np.argmax(np.maximum(np.abs(P.sum(axis=1) - 1.0), -P.min(axis=1))))
            raise ValueError(f"each row of transitions must be probabilities that sum to 1, got row {worst}: {P[worst]}")
        R = _matrix("rewards", rewards)
        if R.shape != P.shape:
            raise ValueError(f"rewards must have the shape of transitions, {P.shape}, got {R.shape}")
        phi = np.eye(k) if features is None else _matrix("features", features)
        if len(phi) != k or phi.shape[1] == 0:
            raise ValueError(f"features must have a row for each of the {k} states, got shape {phi.shape}")
        if not isinstance(start, int | np.integer) or isinstance(start, bool) or not 0 <= start < k:
            raise ValueError(f"start must be a state from 0 to {k - 1}, got {start!r}")
        self.transitions, self.rewards, self.features = P, R, phi
        self.reward_std = number("reward_std", reward_std, "a finite number ≥ 0", lambda std: 0.0 <= std < np.inf)
        self.discount, self.start = unit("discount", discount), int(start)
        for array in (P, R, phi):
            array.flags.writeable = False

    @property
    def n_states(self) -> int:
        return len(self.transitions)

    @property
    def n_features(self) -> int:
        return self.features.shape[1]

    @property
    def _onwards(self) -> np.ndarray:
        """Transitions that do not end the episode."""
        return self.transitions[:, : self.n_states]

    @cached_property
    def _cumulative(self) -> list[list[float]]:
        """Row by row the distribution function of the next state, without its last step: as lists, for `bisect`."""
        return np.cumsum(self.transitions, axis=1)[:, :-1].tolist()

    @cached_property
    def values(self) -> np.ndarray:
        """v_π: the solution of v = r + γPv."""
        expected = (self.transitions * self.rewards).sum(axis=1)
        system = np.eye(self.n_states) - self.discount * self._onwards
        if np.linalg.cond(system) > 1e13:
            raise ValueError("the values are not finite: with discount 1 every state must reach the end of an episode")
        return np.linalg.solve(system, expected)

    @cached_property
    def _balance(self) -> np.ndarray:
        """The system d(P − I) = 0, Σd = 1, with episodes following each other."""
        P = self._onwards.copy()
        P[:, self.start] += 1.0 - P.sum(axis=1)
        return np.vstack((P.T - np.eye(self.n_states), np.ones(self.n_states)))

    @cached_property
    def is_ergodic(self) -> bool:
        """Whether there is one stationary distribution only."""
        return int(np.linalg.matrix_rank(self._balance)) == self.n_states

    @cached_property
    def stationary(self) -> np.ndarray:
        """How often each state is visited in the long run, episodes following each other."""
        if not self.is_ergodic:
            raise ValueError("there is more than one stationary distribution: the process falls into several parts")
        found = np.linalg.lstsq(self._balance, np.append(np.zeros(self.n_states), 1.0))[0]
        found = np.where(found > 1e-14, found, 0.0)  # states that are left for ever are not visited in the long run
        return found / found.sum()

    @cached_property
    def lms_weights(self) -> np.ndarray:
        """The weights that minimise the mean squared error Σ_s d(s) (v(s) − wᵀφ(s))²; the shortest where many do."""
        root = np.sqrt(self.stationary)[:, None]
        return np.linalg.lstsq(root * self.features, root[:, 0] * self.values)[0]

    @cached_property
    def metric(self) -> np.ndarray:
        """A = Σ_s d(s) φ(s)φ(s)ᵀ: the mean squared distance of wᵀφ from the LMS solution is (w − w*)ᵀA(w − w*)."""
        return self.features.T @ (self.stationary[:, None] * self.features)

    @cached_property
    def fingerprint(self) -> str:
        """The hash of all that makes this process what it is."""
        digest = hashlib.sha256(repr((self.reward_std, self.discount, self.start, self.transitions.shape)).encode())
        for array in (self.transitions, self.rewards):
            digest.update(array.tobytes())
        return digest.hexdigest()

    def with_features(self, features: Any) -> FiniteMRP:
        """The same process, seen through other features. What does not depend on them is not worked out again."""
        seen = FiniteMRP(self.transitions, self.rewards, self.reward_std, features, self.discount, self.start)
        kept = ("values", "stationary", "is_ergodic", "fingerprint", "_balance", "_cumulative")
        vars(seen).update({name: part for name, part in vars(self).items() if name in kept})
        return seen

    def trajectory(self, steps: int, seed: Any = 0) -> Trajectory:
        """A run of the process from `start`. The same seed gives the same run, whatever the features."""
        rng = np.random.default_rng(seed)
        choices = rng.random(steps)
        noise = rng.normal(size=steps) * self.reward_std
        states, to = np.empty(steps + 1, np.int64), np.empty(steps, np.int64)
        states[0] = here = self.start
        for t, choice in enumerate(choices.tolist()):
            there = bisect(self._cumulative[here], choice)
            to[t] = there
            states[t + 1] = here = there if there < self.n_states else self.start
        rewards = self.rewards[states[:-1], to] + noise
        return Trajectory(states, rewards, np.where(to < self.n_states, self.discount, 0.0))

    def sample(self, steps: int, seed: Any = 0) -> tuple[np.ndarray, np.ndarray]:
        """The states (steps + 1 of them) and rewards of a run of the process."""
        states, rewards, _ = self.trajectory(steps, seed)
        return states, rewards

    def __repr__(self) -> str:
        return f"FiniteMRP({self.n_states} states, {self.n_features} features, discount={self.discount})"


def _matrix(name: str, given: Any) -> np.ndarray:
    try:
        array = np.array(given, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a matrix of numbers, got {given!r:.80}") from None
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a matrix of finite numbers, got shape {array.shape}")
    return array
