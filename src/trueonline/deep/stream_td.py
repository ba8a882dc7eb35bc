"""Stream TD(λ) (Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606): prediction with a network, one transition at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.core.thread_guard import guarded
from trueonline.deep.network import MLP
from trueonline.deep.streaming import PARAMETERS, Streaming, checked_net
from trueonline.inputs import FeaturesLike, Schedule, explains_arguments
from trueonline.learners.docstrings import Documented


class StreamTD(Documented, Streaming):
    """Stream TD(λ): a network v(S) learns the value of states, one transition at a time, without replay.

    ObGD (overshooting-bounded gradient descent) bounds each step, so that an update does not overshoot its target:

        δ = R + γv(S′) − v(S)
        e ← γλe + ∇v(S)
        M = ακ·max(|δ|, 1)·Σ|e|
        w ← w + α/max(M, 1)·δe

    Σ goes over all parameters. γ and λ may differ from state to state: the trace decays by those of the state that is left, and δ
    has γ of the state that is entered. The paper has constants.

    Examples
    --------
    >>> from trueonline import deep
    >>> critic = deep.StreamTD(deep.MLP(2, (16,), 1, seed=0), discount=0.9, trace_decay=0.8)
    >>> for step in range(200):
    ...     _ = critic.learn([1.0, 0.0], reward=1.0, x_next=[0.0, 1.0], terminated=True)
    >>> round(critic.predict([1.0, 0.0]), 2)
    1.0
    """

    _shared_parameters = PARAMETERS

    @explains_arguments
    def __init__(
        self, net: MLP, discount: float, trace_decay: float, step_size: float | Schedule = 1.0, kappa: float = 2.0
    ) -> None:
        super().__init__(checked_net("net", net, outputs=1), discount, trace_decay, step_size, kappa)

    def learn(self, x: FeaturesLike, reward: float, x_next: FeaturesLike | None, terminated: bool = False) -> float:
        """Learn from one transition. The trace is zero after the end of an episode.

        Parameters
        ----------
        x : features
            The state left: a float array, or sparse features in any of the package's forms.
        reward : float
            R.
        x_next : features or None
            The state entered. It may be None if the episode has terminated.
        terminated : bool, optional
            Whether the transition ended the episode.

        Returns
        -------
        float
            The TD error δ.

        Raises
        ------
        ValueError
            For bad input, and if the network has diverged. Nothing has changed then.
        """
        return self._learn(x, 0, reward, x_next, (0,), terminated)

    @guarded
    def predict(self, x: FeaturesLike) -> float:
        """Predict v(S).

        Parameters
        ----------
        x : features
            The state.

        Returns
        -------
        float
            The prediction.
        """
        return float(self.net(x)[0])

    def run(
        self, X: Any, rewards: Any, discounts: Any = None, terminated: Any = None, *, resume: bool = False
    ) -> np.ndarray:
        """Learn from a stream of T transitions in one call, as `learn` does.

        Parameters
        ----------
        X : stream of features, T + 1 rows
            The states: a float array of shape (T + 1, n_inputs), or sparse features in any of the package's forms. Transition t
            leads from row t to row t + 1.
        rewards : array_like
            T rewards.
        discounts : array_like, optional
            γ of the states entered; the learner's own by default. γ = 0 ends an episode. The row that the transition leads to then
            begins the next episode.
        terminated : array_like of bool, optional
            Whether each transition ended an episode, as γ = 0 does.
        resume : bool, optional
            Whether the stream continues the one before, with its trace. By default it begins without a trace.

        Returns
        -------
        numpy.ndarray
            v(S_t) for t = 0 … T − 1, each from before its transition.
        """
        zeros = np.zeros(np.size(rewards), np.int64)
        return self._run(X, zeros, (zeros,), rewards, terminated, None, resume, discounts)[0]

    @guarded
    def start(self, x: FeaturesLike) -> None:
        """Begin a stream or an episode, without a trace.

        Parameters
        ----------
        x : features
            The first state.
        """
        self._here = self.net._checked(x, "x").copy()
        self._forget()

    @guarded
    def update(
        self,
        reward: float,
        x_next: FeaturesLike | None,
        discount: float | None = None,
        trace_decay: float | None = None,
    ) -> float:
        """Learn from the transition out of the present state.

        Parameters
        ----------
        reward : float
            R.
        x_next : features or None
            The state entered. None ends the episode, and `start` must follow.
        discount : float, optional
            γ of the state entered; the learner's own by default. γ = 0 ends the episode, and `x_next` begins the next one.
        trace_decay : float, optional
            λ of the state entered; the learner's own by default.

        Returns
        -------
        float
            The TD error δ.
        """
        if self._here is None:
            raise RuntimeError("no episode has begun: call start(x) with its first features before update")
        gamma, lam = self._own("discount", discount), self._own("trace_decay", trace_decay)
        there = None if x_next is None else self.net._checked(x_next, "x_next").copy()
        delta = self._transition(self._here, 0, reward, there, (0,), 0.0 if there is None else gamma, lam)
        self._here = there
        return delta
