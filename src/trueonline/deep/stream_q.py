"""Stream Q(λ) (Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606): control with a network, one transition at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.deep.acting import StreamAgent
from trueonline.deep.kernels import BEST
from trueonline.inputs import FeaturesLike


class StreamQ(StreamAgent):
    """Stream Q(λ): a network learns the values of all actions, towards the best action of the next state.

        δ = R + γ·max_a Q(S′, a) − Q(S, A)

    The trace is that of ∇Q(S, A), and the step is that of ObGD (see `StreamTD`). As in Watkins's Q(λ), the trace is cleared
    after an action that was not one of the best. Actions are tied whose values are equal up to rounding (a relative 1e-10), as in
    `Greedy`: the trace is kept after each of them. The authors' program keeps it after the first of them only.

    Examples
    --------
    >>> from trueonline import deep
    >>> agent = deep.StreamQ(deep.MLP(1, (16,), 2, seed=0), discount=0.9, trace_decay=0.8, seed=0)
    >>> for step in range(300):
    ...     action = agent.start([1.0])
    ...     agent.end(float(action == 1))
    >>> agent.values([1.0]).argmax()
    np.int64(1)
    """

    _more = (BEST,)

    def learn(
        self,
        x: FeaturesLike,
        action: int,
        reward: float,
        x_next: FeaturesLike | None,
        terminated: bool = False,
        greedy: bool = True,
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
        terminated : bool, optional
            Whether the transition ended the episode. The trace is zero afterwards.
        greedy : bool, optional
            Whether the action was one of the best. If not, the trace is zero afterwards.

        Returns
        -------
        float
            The TD error δ.

        Raises
        ------
        ValueError
            For bad input, and if the network has diverged. Nothing has changed then.
        """
        return self._learn(x, action, reward, x_next, self._more, terminated, greedy)

    def run(
        self, X: Any, actions: Any, rewards: Any, terminated: Any = None, greedy: Any = None, *, resume: bool = False
    ) -> np.ndarray:
        """Learn from a stream of T transitions in one call, as `learn` does.

        Parameters
        ----------
        X : stream of features, T + 1 rows
            The states: a float array of shape (T + 1, n_inputs), or sparse features in any of the package's forms. Transition t
            leads from row t to row t + 1.
        actions : array_like of int
            T actions.
        rewards : array_like
            T rewards.
        terminated : array_like of bool, optional
            Whether each transition ended an episode. The row that it leads to then begins the next episode.
        greedy : array_like of bool, optional
            Whether each action was one of the best. All by default.
        resume : bool, optional
            Whether the stream continues the one before, with its trace. By default it begins without a trace.

        Returns
        -------
        numpy.ndarray
            The TD error of each transition.
        """
        return self._run(X, *self._streamed(actions, np.size(rewards)), rewards, terminated, greedy, resume)[1]
