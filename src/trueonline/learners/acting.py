"""The interface of every agent. Agents (`control`) and their definitions (`forward`) share it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from trueonline import notebook
from trueonline.core.thread_guard import ThreadGuarded
from trueonline.inputs import FeaturesLike
from trueonline.learners.docstrings import AGENT, Documented


class Acting(ThreadGuarded, Documented, ABC):
    """An agent that learns action values while it acts."""

    _shared_parameters = AGENT

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """A read-only copy of w: a row for each feature, a column for each action."""

    @abstractmethod
    def values(self, x: FeaturesLike) -> np.ndarray:
        """Compute Q(s, a) for every action.

        Parameters
        ----------
        x : features
            The features of the state.

        Returns
        -------
        numpy.ndarray
            The value of each action.
        """

    @abstractmethod
    def start(self, x: FeaturesLike) -> int:
        """Begin an episode, without a trace.

        Parameters
        ----------
        x : features
            The features of the first state.

        Returns
        -------
        int
            The action to execute.
        """

    @abstractmethod
    def step(
        self, reward: float, x_next: FeaturesLike, discount: float | None = None, trace_decay: float | None = None
    ) -> int:
        """Learn from a transition, and choose the next action.

        Parameters
        ----------
        reward : float
            R of the transition.
        x_next : features
            The features of the state entered.
        discount : float, optional
            γ of the state entered; the agent's own by default.
        trace_decay : float, optional
            λ of the state entered; the agent's own by default.

        Returns
        -------
        int
            The action to execute in the state entered.
        """

    @abstractmethod
    def truncate(self, reward: float, x_next: FeaturesLike, discount: float | None = None) -> None:
        """Learn from the last transition of a truncated episode, with a bootstrap. `start` must follow.

        Parameters
        ----------
        reward : float
            R of the transition.
        x_next : features
            The features of the state entered.
        discount : float, optional
            γ of the state entered; the agent's own by default.
        """

    @abstractmethod
    def end(self, reward: float) -> None:
        """Learn from the transition that ends the episode. `start` must follow.

        Parameters
        ----------
        reward : float
            R of the transition.
        """

    def _repr_html_(self) -> str | None:
        """The HTML that a notebook shows."""
        return notebook.described(self, ("n_features", "n_actions", "step_size", "trace_decay", "discount", "policy"))
