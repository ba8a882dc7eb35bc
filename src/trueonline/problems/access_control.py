"""The access-control queue of Sutton and Barto (2018, Example 10.2): a continuing task of control, with its exact solution."""

from __future__ import annotations

from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueonline.inputs import as_array, count, number, unit
from trueonline.problems.array_checks import check_probabilities
from trueonline.problems.finite_mrp import FiniteMRP

REJECT, ACCEPT = 0, 1


class AccessControl:
    """Customers of different priorities wait for some servers. Each is accepted, which pays its priority, or rejected.

    At every step the customer at the head of the queue is accepted (action 1) or rejected (action 0). Then each busy server becomes
    free with the same probability, also a server that has just accepted a customer, and the next customer has a random priority.
    If no server is free, the customer is rejected with either action. State s stands for s // m free servers and the
    priority s % m, with m priorities. The task never ends. The question is which customers to turn away so that the mean reward of
    a step is largest.

    Parameters
    ----------
    servers : int
        The number of servers.
    priorities : array_like
        The payment of a customer of each priority. All priorities are equally likely.
    free_probability : float
        The probability with which a busy server becomes free at a step.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> queue = AccessControl()
    >>> queue.n_states, queue.n_actions
    (44, 2)
    >>> round(queue.optimal_reward_rate, 3), round(queue.reward_rate(np.ones(44, int)), 3)   # the best policy, and to accept all
    (2.748, 2.181)
    """

    n_actions = 2
    start = 0  # no server is free

    def __init__(
        self, servers: int = 10, priorities: ArrayLike = (1.0, 2.0, 4.0, 8.0), free_probability: float = 0.06
    ) -> None:
        self.servers = count("servers", servers, 1000)
        if np.ndim(priorities) != 1 or np.size(priorities) == 0:
            raise ValueError(f"priorities must be at least one number, got {priorities!r:.80}")
        self.priorities = np.array(
            [number(f"priorities[{i}]", pay) for i, pay in enumerate(as_array("priorities", priorities))]
        )
        self.free_probability = unit("free_probability", free_probability)
        if self.free_probability == 0.0:
            raise ValueError("free_probability must be above 0: otherwise no server ever becomes free again")

    @property
    def n_states(self) -> int:
        """The number of states."""
        return (self.servers + 1) * len(self.priorities)

    @cached_property
    def transitions(self) -> np.ndarray:
        """``transitions[s, a, s']`` is the probability of s' after action a in s."""
        m, p = len(self.priorities), self.free_probability
        P = np.zeros((self.n_states, 2, self.n_states))
        for s in range(self.n_states):
            for a in (REJECT, ACCEPT):
                left = s // m - self._takes(s, a)
                busy = self.servers - left
                for freed in range(busy + 1):
                    chance = comb(busy, freed) * p**freed * (1.0 - p) ** (busy - freed)
                    P[s, a, (left + freed) * m : (left + freed + 1) * m] = chance / m
        return P

    @cached_property
    def rewards(self) -> np.ndarray:
        """``rewards[s, a]`` is the reward of action a in s."""
        m = len(self.priorities)
        return np.array(
            [[self.priorities[s % m] * self._takes(s, a) for a in (REJECT, ACCEPT)] for s in range(self.n_states)]
        )

    def _takes(self, state: int, action: int) -> int:
        """1 if the action gives a server to the customer, otherwise 0."""
        return int(action == ACCEPT and state >= len(self.priorities))

    def step(self, state: int, action: int, rng: np.random.Generator) -> tuple[float, int]:
        """Take an action.

        Parameters
        ----------
        state : int
            The state.
        action : int
            1 accepts the customer, 0 rejects it.
        rng : numpy.random.Generator
            The randomness of the task.

        Returns
        -------
        reward : float
            The payment of the customer, or 0 if it is not served.
        state : int
            The next state.

        Raises
        ------
        ValueError
            If there is no such state or action.
        """
        if not 0 <= state < self.n_states or action not in (REJECT, ACCEPT):
            raise ValueError(
                f"state must be from 0 to {self.n_states - 1} and action 0 or 1, got state {state!r} and action {action!r}"
            )
        m = len(self.priorities)
        taken = self._takes(state, action)
        left = state // m - taken
        free = left + int(rng.binomial(self.servers - left, self.free_probability))
        return float(self.priorities[state % m]) * taken, free * m + int(rng.integers(m))

    def under(self, policy: ArrayLike) -> FiniteMRP:
        """The process that a policy makes of the task.

        Parameters
        ----------
        policy : array_like
            The action of each state, or a row of the probabilities of both actions for each state.

        Returns
        -------
        FiniteMRP
            The process, with its exact `reward_rate` and `differential_values`.

        Raises
        ------
        ValueError
            If there is not one action, or one row of probabilities, for each state.
        """
        pi = self._probabilities(policy)
        P = np.einsum("sa,sat->st", pi, self.transitions)
        total = np.einsum("sa,sa,sat->st", pi, self.rewards, self.transitions)
        return FiniteMRP(P, np.divide(total, P, out=np.zeros_like(P), where=P > 0.0), discount=1.0, start=self.start)

    def _probabilities(self, policy: Any) -> np.ndarray:
        given = as_array("policy", policy)
        if given.shape == (self.n_states,) and given.dtype.kind in "iu" and np.isin(given, (REJECT, ACCEPT)).all():
            return np.eye(2)[given]
        if given.shape != (self.n_states, 2) or given.dtype.kind not in "fiu":
            raise ValueError(
                f"policy must be {self.n_states} actions, 0 or 1, or {self.n_states} rows of two probabilities, "
                f"got {given.dtype} of shape {given.shape}"
            )
        check_probabilities("policy", given)
        return given.astype(float)

    def reward_rate(self, policy: ArrayLike) -> float:
        """Compute the mean reward of a step under a policy, in the long run.

        Parameters
        ----------
        policy : array_like
            As for `under`.

        Returns
        -------
        float
            The exact reward rate.
        """
        return self.under(policy).reward_rate

    @cached_property
    def optimal_policy(self) -> np.ndarray:
        """The action of each state under a policy with the largest reward rate, by policy iteration."""
        policy = np.full(self.n_states, ACCEPT)
        while True:
            values = self.under(policy).differential_values
            q = self.rewards + self.transitions @ values
            now = q[np.arange(self.n_states), policy]
            better = np.where(q.max(axis=1) > now + 1e-9 * (1.0 + np.abs(now)), q.argmax(axis=1), policy)  # ties stay
            if np.array_equal(better, policy):
                return policy
            policy = better

    @cached_property
    def optimal_reward_rate(self) -> float:
        """The largest reward rate of any policy."""
        return self.reward_rate(self.optimal_policy)

    def __repr__(self) -> str:
        pays = ", ".join(f"{pay:g}" for pay in self.priorities)
        return f"AccessControl({self.servers} servers, priorities {pays}, free_probability={self.free_probability:g})"
