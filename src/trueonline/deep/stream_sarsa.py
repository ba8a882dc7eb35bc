"""Stream Sarsa(λ) (Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606): Sarsa with a network, one transition at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.control.policies import Policy
from trueonline.core.thread_guard import guarded
from trueonline.deep.acting import ACTING, PARTS, StreamAgent
from trueonline.deep.network import MLP
from trueonline.deep.streaming import PARAMETERS
from trueonline.inputs import FeaturesLike, Schedule, explains_arguments


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

    _shared_parameters = PARAMETERS + ACTING + PARTS

    @explains_arguments
    def __init__(
        self,
        net: MLP,
        discount: float,
        trace_decay: float,
        step_size: float | Schedule = 1.0,
        kappa: float = 2.0,
        *,
        policy: Policy | None = None,
        seed: Any = None,
        normalise: bool = False,
        scale_rewards: bool = False,
        time_limit: int | None = None,
    ) -> None:
        parts = {"normalise": normalise, "scale_rewards": scale_rewards, "time_limit": time_limit}
        super().__init__(net, discount, trace_decay, step_size, kappa, policy, seed, parts)

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

    @guarded
    def values(self, x: FeaturesLike) -> np.ndarray:
        return self.net(x)

    def run(self, X: Any, actions: Any, rewards: Any, terminated: Any = None, *, resume: bool = False) -> np.ndarray:
        """Learn from a stream of T transitions in one call, as `learn` does.

        Parameters
        ----------
        X : array_like, shape (T + 1, n_inputs)
            The states. Transition t leads from row t to row t + 1.
        actions : array_like of int
            T + 1 actions: those taken in each state.
        rewards : array_like
            T rewards.
        terminated : array_like of bool, optional
            Whether each transition ended an episode. The row that it leads to then begins the next episode.
        resume : bool, optional
            Whether the stream continues the one before, with its trace. By default it begins without a trace.

        Returns
        -------
        numpy.ndarray
            The TD error of each transition.
        """
        actions = self._checked_actions(actions, np.size(rewards) + 1)
        return self._run(X, actions[:-1], rewards, (actions[1:].copy(),), terminated, None, resume)

    def _step(self, reward: float, x_next: np.ndarray, gamma: float, lam: float) -> None:
        action, greedy = self._choose(x_next, self._steps + 1)
        self._transition(self._here, self._action, reward, x_next, (action,), gamma, lam)
        self._action, self._greedy = action, greedy

    def _last(self, reward: float, x_next: np.ndarray | None, gamma: float) -> None:
        following = 0 if x_next is None else self._choose(x_next, self._steps + 1)[0]
        self._transition(self._here, self._action, reward, x_next, (following,), gamma, 0.0)
