"""The interface of every learner. Backward views (`learners`) and definitions (`forward`) share it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from trueonline import files, inputs, notebook
from trueonline.core.thread_guard import ThreadGuarded
from trueonline.inputs import FeaturesLike, FeatureStream, Parameters, Parametrised, Schedule, explains_arguments
from trueonline.learners.docstrings import LEARNER, Documented
from trueonline.words import listed


class Learner(ThreadGuarded, Documented, Parametrised, ABC):
    """A linear predictor V = wᵀx that learns from a stream of transitions.

    Features x are a float array of length `n_features`, an integer array of active indices, one integer (the state of
    a table), or a pair (indices, values). A transition carries a reward, the features of the state that it enters, and γ and λ of
    that state. γ = 0 ends the episode there.
    """

    _shared_parameters = LEARNER
    binary: ClassVar[bool] = False  # whether the method is defined for binary features only
    per_feature: ClassVar[bool] = False  # whether `step_size` may have an entry for each feature
    _more_settings: ClassVar[tuple[str, ...]] = ()  # attributes that the constructor sets, beside the parameters
    takes: ClassVar[
        Collection[str]
    ] = ()  # which of ratio, probability, interest and x_expected its transitions may carry

    @explains_arguments
    def __init__(
        self,
        n_features: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        initial_weights: ArrayLike | None = None,
    ) -> None:
        numbers = (n_features, step_size, trace_decay, discount, initial_weights)
        self._parameters = Parameters(*numbers, per_feature=self.per_feature)  # type: ignore[arg-type]
        self.reset()

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self._parameters.n_features

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """A dense, read-only copy of w."""

    @property
    @abstractmethod
    def trace(self) -> np.ndarray:
        """A dense, read-only copy of the eligibility trace, as the last transition used it. `start` clears it."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """The number of transitions learned from: the t of a step-size schedule."""

    @abstractmethod
    def reset(self) -> None:
        """Forget everything, and return to the initial weights."""

    @abstractmethod
    def start(self, x: FeaturesLike) -> None:
        """Begin a stream or an episode in the state of features x, without a trace.

        Parameters
        ----------
        x : features
            A float array of length `n_features`, integer indices of active features, one integer, or (indices, values).
        """

    @abstractmethod
    def update(
        self,
        reward: float,
        x_next: FeaturesLike | None,
        discount: float | None = None,
        trace_decay: float | None = None,
        ratio: float | None = None,
        interest: float | None = None,
        x_expected: FeaturesLike | None = None,
        probability: float | None = None,
    ) -> float:
        """Learn from one transition.

        An episode that is truncated does not end: give its last `x_next` as always, and call `start` for the next episode.

        Parameters
        ----------
        reward : float
            R of the transition.
        x_next : features or None
            The features of the state entered. None ends the episode, and `start` must follow.
        discount : float, optional
            γ of the state entered; the learner's own by default. γ = 0 ends the episode, and `x_next` begins the next one.
        trace_decay : float, optional
            λ of the state entered; the learner's own by default.
        ratio : float, optional
            ρ = π(A|S) / b(A|S) of the action taken, with π the target policy and b the behaviour; 1 by default. For off-policy
            methods only.
        interest : float, optional
            The interest in the state left; 1 by default. For emphatic methods only.
        x_expected : features, optional
            The mean of the features of the state entered over the actions of the target policy; `x_next` by default. For
            `ProvisionalQ` only.
        probability : float, optional
            π(A|S) of the action taken, at most ρ; min(1, ρ) by default, as for a deterministic target policy. For `TreeBackup` and
            `ABTD`.

        Returns
        -------
        float
            The TD error δ = R + γV' − V.

        Raises
        ------
        ValueError
            For bad input. The learner is as it was.
        RuntimeError
            Before `start`.
        TypeError
            For a ratio, interest, x_expected or probability that the method does not ask for.
        """

    @abstractmethod
    def predict(self, x: FeaturesLike) -> float:
        """Predict V = wᵀx.

        Parameters
        ----------
        x : features
            The features of a state.

        Returns
        -------
        float
            The prediction.
        """

    def predict_many(self, X: FeatureStream) -> np.ndarray:
        """Predict V = wᵀx for many states at once.

        Parameters
        ----------
        X : feature stream
            A row of features per state, in any of the forms that `run` takes.

        Returns
        -------
        numpy.ndarray
            The prediction for each row.
        """
        rows, length = inputs.stream(X, self.n_features)
        return np.array([self.predict(inputs.row(rows, t)) for t in range(length)])

    @abstractmethod
    def run(
        self,
        X: FeatureStream,
        rewards: ArrayLike,
        discounts: ArrayLike | None = None,
        *,
        trace_decays: ArrayLike | None = None,
        starts: ArrayLike | None = None,
        ratios: ArrayLike | None = None,
        interests: ArrayLike | None = None,
        expected: FeatureStream | None = None,
        probabilities: ArrayLike | None = None,
        resume: bool = False,
    ) -> np.ndarray:
        """Learn from a stream of T transitions.

        A stream begins at X[0], without a trace, as if `start(X[0])` had been called. With `resume=True` it continues the last one
        instead, with its trace. So a stream may be given in pieces. Each begins with the row at which the last one stopped.

        Parameters
        ----------
        X : feature stream
            T + 1 rows of features: a 2-D float array, a 2-D integer array of active indices, a 1-D integer array of
            states, a SciPy sparse matrix, a pair of 2-D arrays (indices, values), or a list of features.
        rewards : array_like
            T rewards. `rewards[t]` belongs to the transition from row t to row t + 1.
        discounts : array_like, optional
            γ of the state that each transition enters; the learner's own by default.
        trace_decays : array_like, optional
            λ of the state that each transition enters; the learner's own by default.
        starts : array_like of bool, optional
            `starts[t]` says that row t begins an episode although the one before was truncated. The reward between the two rows
            is ignored.
        ratios : array_like, optional
            The importance ratio of each transition. For off-policy methods only.
        interests : array_like, optional
            The interest in the state that each transition leaves. For emphatic methods only.
        expected : feature stream, optional
            Row t holds the mean features of the state of row t over the actions of the target policy. For `ProvisionalQ` only.
        probabilities : array_like, optional
            π(A|S) of the action of each transition; min(1, ρ) by default. For `TreeBackup` and `ABTD`.
        resume : bool, optional
            Whether to continue from the state in which the learner is. X[0] must be its features. A learner that is in no state,
            because it is new or its episode has ended, starts at X[0]. False by default.

        Returns
        -------
        numpy.ndarray
            V_t(S_t) for t = 0 … T − 1, each from before its update.

        Raises
        ------
        ValueError
            For bad input, and if `resume` is true and the learner is in another state than X[0]. The learner is as it was.
        TypeError
            For ratios, interests, expected features or probabilities that the method does not ask for.
        """

    def _refuse(self, **values: Any) -> None:
        """TypeError for a part of a transition that the method does not ask for."""
        for name, value in values.items():
            if value is not None and inputs.SINGULAR_NAMES.get(name, name) not in self.takes:
                takes = f"it takes {listed(self.takes)}" if self.takes else "its transitions carry nothing of the kind"
                raise TypeError(f"{type(self).__name__} takes no {name}: {takes}")

    @abstractmethod
    def _dump(self) -> dict[str, np.ndarray]:
        """All state as arrays."""

    @abstractmethod
    def _restore(self, parts: dict[str, np.ndarray]) -> None:
        """Take over the state that `_dump` returned; ValueError or KeyError if it does not fit the parameters."""

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one file, from which `trueonline.load` resumes bit for bit.

        The file appears whole or not at all. A step-size schedule is code and is not saved: give it to `load` again.

        Parameters
        ----------
        path : path
            The file to write.
        """
        arrays = self._dump()
        if self._parameters.initial_weights is not None:
            arrays["initial_weights"] = self._parameters.initial_weights
        files.write_learner(path, self._kind(), self._settings(), arrays)

    def _settings(self) -> dict[str, Any]:
        """The arguments of the constructor, as JSON takes them; None for an argument that is code."""
        return {
            "n_features": self.n_features,
            "step_size": None if callable(self.step_size) else np.asarray(self.step_size).tolist(),
            "trace_decay": self.trace_decay,
            "discount": self.discount,
        }

    @classmethod
    def _kind(cls) -> str:
        """The name of the class in a saved file."""
        return cls.__name__

    def __getstate__(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in ("_parameters", *self._more_settings)}
        return {"settings": settings, "parts": self._dump()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state["settings"])
        self.reset()
        self._restore(state["parts"])

    def _repr_html_(self) -> str | None:
        """The HTML that a notebook shows."""
        return notebook.described(self, self._settings())

    def __repr__(self) -> str:
        arguments = {name: getattr(self, name) for name in self._settings()}
        shown = (f"{name}={getattr(value, '__name__', value)}" for name, value in arguments.items() if value is not None)
        return f"{type(self).__name__}({', '.join(shown)})"
