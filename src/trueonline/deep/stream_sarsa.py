"""Stream Sarsa(λ) (Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606): Sarsa with a network, one transition at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.deep.acting import StreamAgent
from trueonline.inputs import FeaturesLike


class StreamSarsa(StreamAgent):
    """Stream Sarsa(λ): a network learns the values of all actions, towards the action that is taken next.

        δ = R + γQ(S′, A′) − Q(S, A)

    The trace is that of ∇Q(S, A), and the step is that of ObGD (see `StreamTD`). A′ is the action that is executed. An agent
    chooses it before the update.

    Examples
    --------
    >>> from trueonline import deep
    >>> agent = deep.StreamSarsa(deep.MLP(1, (16,), 2, seed=0), discount=0.9, trace_decay=0.8, seed=0)
    >>> for step in range(300):
    ...     action = agent.start([1.0])
    ...     agent.end(float(action == 1))
    >>> agent.values([1.0]).argmax()
    np.int64(1)
    """

    def learn(
        self,
        x: FeaturesLike,
        action: int,
        reward: float,
        x_next: FeaturesLike | None,
        next_action: int | None = None,
        terminated: bool = False,
    ) -> float:
        """Learn from one transition.

        Parameters
        ----------
        x : features
            The state left: a float array, or sparse features in any of the package's forms.
        action : int
            The action taken there.
        reward : float
            R.
        x_next : features or None
            The state entered. It may be None if the episode has terminated.
        next_action : int, optional
            The action that is taken there. It is needed unless the episode has terminated.
        terminated : bool, optional
            Whether the transition ended the episode. The trace is zero afterwards.

        Returns
        -------
        float
            The TD error δ.

        Raises
        ------
        ValueError
            For bad input, and if the network has diverged. Nothing has changed then.
        """
        missing = terminated and next_action is None
        following = 0 if missing else self._checked_action(next_action, "next_action")
        return self._learn(x, action, reward, x_next, (following,), terminated)

    def _streamed(self, actions: Any, rows: int) -> tuple[np.ndarray, tuple]:
        actions = self._checked_actions(actions, rows + 1)
        return actions[:-1], (actions[1:].copy(),)

    def _step(self, reward: float, x_next: np.ndarray, gamma: float, lam: float) -> None:
        action, greedy = self._choose(x_next, self._steps + 1)
        self._transition(self._here, self._action, reward, x_next, (action,), gamma, lam)
        self._action, self._greedy = action, greedy

    def _last(self, reward: float, x_next: np.ndarray | None, gamma: float) -> None:
        following = 0 if x_next is None else self._choose(x_next, self._steps + 1)[0]
        self._transition(self._here, self._action, reward, x_next, (following,), gamma, 0.0)
