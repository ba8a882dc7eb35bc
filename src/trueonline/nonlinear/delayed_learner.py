"""The interface of forward TD(λ) and of its definition: a learner that updates each state once, some transitions later."""

from __future__ import annotations

import copy
import math
import os
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from trueonline import files, inputs
from trueonline.inputs import Parameters, Parametrised, Schedule, explains_arguments
from trueonline.learners.loading import setting_or_code
from trueonline.nonlinear.delayed_transition import DelayedTransition, from_arrays, to_arrays
from trueonline.nonlinear.horizon import checked_horizon, horizon_within
from trueonline.nonlinear.value_function import ValueAndGrad, checked_function, checked_weights, evaluate


class DelayedLearner(Parametrised, ABC):
    """A differentiable predictor V(x | w) that updates a state after the K transitions that follow it. See `ForwardTD`."""

    _kept: Any  # the transitions that are still needed, oldest first

    @explains_arguments
    def __init__(
        self,
        value_and_grad: ValueAndGrad,
        weights: Any,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        horizon: float | None = None,
        tolerance: float = 0.01,
    ) -> None:
        self._function = checked_function(value_and_grad)
        self._initial_weights = checked_weights(weights)
        self._parameters = Parameters(self._initial_weights.size, step_size, trace_decay, discount)
        if horizon is None:
            horizon = horizon_within(tolerance, self.discount, self.trace_decay)
        self._horizon = checked_horizon(horizon)
        self.reset()

    # --- The method's part ------------------------------------------------------------------------

    @abstractmethod
    def _after(self, step: DelayedTransition) -> np.ndarray:
        """The weights after this transition, which follows those kept. Changes nothing."""

    @abstractmethod
    def _after_all(self) -> np.ndarray:
        """The weights after all updates that wait, when no transition will follow. Changes nothing."""

    @abstractmethod
    def _keep(self, step: DelayedTransition) -> None:
        """Keep this transition, and drop those that are no longer needed."""

    @abstractmethod
    def _remember(self, steps: list[DelayedTransition], older: int) -> None:
        """Keep these transitions only; `older` as it was saved."""

    def _older(self) -> int:
        """The number that a file needs beside the transitions, so that a loaded learner rounds as this one does."""
        return 0

    def _towards(self, weights: np.ndarray, step: DelayedTransition, target: float) -> np.ndarray:
        """w + α (G − V(x | w)) ∇V(x | w)."""
        value, gradient = self._evaluate(weights, step.x)
        with np.errstate(all="ignore"):
            updated = weights + step.alpha * (target - value) * gradient
        if not np.isfinite(updated).all():
            raise ValueError(
                f"an update towards {target} from {value} with step_size {step.alpha} would make weights that are not "
                "finite; the values diverge: use a smaller step_size. This update would fail again, so call reset first"
            )
        return updated

    def _evaluate(self, weights: np.ndarray, x: Any) -> tuple[float, np.ndarray]:
        return evaluate(self._function, weights, x)

    # --- The user's part --------------------------------------------------------------------------

    @property
    def horizon(self) -> float:
        """K, a whole number or math.inf."""
        return self._horizon

    @property
    def weights(self) -> np.ndarray:
        """A read-only copy of w, float64, in the shape of the initial weights."""
        return inputs.read_only(self._weights.copy())

    @property
    def steps(self) -> int:
        """The number of transitions so far: the t of a step-size schedule. The state of transition t is updated with α_t."""
        return self._steps

    def reset(self) -> None:
        """Forget everything, and return to the initial weights."""
        self._weights = self._initial_weights.copy()
        self._steps = 0
        self._here: Any = None
        self._standing = False
        self._value = 0.0  # of `_here`, with the weights of the arrival there
        self._remember([], 0)

    def start(self, x: Any) -> None:
        """Begin a stream or an episode at x.

        If the last episode has not ended, it was truncated. Its updates that still wait are made first, and they
        bootstrap from its last state.

        Parameters
        ----------
        x : any
            The first state, in the form that `value_and_grad` takes. The learner keeps a copy.
        """
        weights = self._after_all()
        self._arrive(weights, x, self._evaluate(weights, x)[0])
        self._remember([], 0)

    def update(
        self, reward: float, x_next: Any, discount: float | None = None, trace_decay: float | None = None
    ) -> float:
        """Learn from one transition: make the update that it completes.

        A transition with γ = 0 ends the episode and makes all updates that wait. A truncated episode is not ended: give
        its last `x_next` as always, then call `start`.

        Parameters
        ----------
        reward : float
            R, the reward of the transition.
        x_next : any
            The state entered. None ends the episode, and `start` must follow. With `discount=0.0` the episode ends, too,
            and `x_next` is the first state of the next one.
        discount : float, optional
            γ of the state entered. The default is the learner's own.
        trace_decay : float, optional
            λ of the state entered. The default is the learner's own.

        Returns
        -------
        float
            The TD error δ = R + γV(S′ | w) − V(S | w⁻), with w the weights before the update, and w⁻ the weights when S was
            entered (van Seijen's δ′).

        Raises
        ------
        RuntimeError
            If no episode has begun.
        ValueError
            If an argument, a value or a gradient is bad, or if the weights would not be finite. The learner is then
            unchanged.
        """
        if not self._standing:
            raise RuntimeError("no episode has begun: call start(x) with its first state before update")
        reward = inputs.number("reward", reward)
        gamma = inputs.unit("discount", self.discount if discount is None else discount)
        lam = inputs.unit("trace_decay", self.trace_decay if trace_decay is None else trace_decay)
        alpha = self._parameters.alpha(self._steps)
        gamma = 0.0 if x_next is None else gamma

        v_next = 0.0 if gamma == 0.0 else self._evaluate(self._weights, x_next)[0]
        step = DelayedTransition(self._here, alpha, reward, gamma, lam, v_next)
        delta = reward + gamma * v_next - self._value
        weights = self._after(step)
        if x_next is not None and gamma == 0.0:  # the first state of an episode has the value of the weights there
            v_next = self._evaluate(weights, x_next)[0]

        self._arrive(weights, x_next, v_next)
        self._standing = x_next is not None
        self._steps += 1
        if gamma == 0.0:
            self._remember([], 0)
        else:
            self._keep(step)
        return delta

    def _arrive(self, weights: np.ndarray, x: Any, value: float) -> None:
        here = copy.deepcopy(x)
        self._weights, self._here, self._value, self._standing = weights, here, value, True

    def predict(self, x: Any) -> float:
        """Predict V(x | w).

        Parameters
        ----------
        x : any
            A state, in the form that `value_and_grad` takes.

        Returns
        -------
        float
            The value.
        """
        return self._evaluate(self._weights, x)[0]

    def run(
        self,
        X: Any,
        rewards: Any,
        discounts: Any = None,
        *,
        trace_decays: Any = None,
        starts: Any = None,
        resume: bool = False,
    ) -> np.ndarray:
        """Learn from a stream of T transitions, which starts at X[0], or resumes there.

        Parameters
        ----------
        X : array of numbers, T + 1 rows
            The states. Each row is an x for `value_and_grad`.
        rewards : array of float, shape (T,)
            `rewards[t]` is the reward of the transition into row t + 1.
        discounts : array of float, shape (T,), optional
            γ of the rows entered. The default is the learner's own. γ = 0 ends an episode.
        trace_decays : array of float, shape (T,), optional
            λ of the rows entered. The default is the learner's own.
        starts : array of bool, shape (T + 1,), optional
            `starts[t]` says that row t starts an episode, after one that was truncated.
        resume : bool, optional
            Whether to continue from the state in which the learner is. X[0] must be that state. A learner that is in no
            state starts at X[0]. False by default.

        Returns
        -------
        array of float64, shape (T,)
            V(S_t | w_t) for t = 0 … T − 1, each from before its transition.

        Raises
        ------
        ValueError
            As for `update`. The learner is then as it was before the stream.
        """
        X = inputs.as_array("X", X)
        if X.dtype.kind not in "fiub" or X.ndim == 0:
            raise ValueError(f"X must be an array of numbers with one row per step, got {X.dtype} of shape {X.shape}")
        R = inputs.rewards(rewards, len(X))
        gammas = inputs.units("discounts", discounts, len(R), self.discount)
        lams = inputs.units("trace_decays", trace_decays, len(R), self.trace_decay)
        fresh = inputs.marks("starts", starts, len(X))
        here = self._here if self._standing else None
        begins = inputs.begins(resume, fresh[0], here, X[0], np.array_equal)
        before = self._weights, self._steps, self._here, self._standing, self._value, self._kept.copy()
        values = np.empty(len(R))
        try:
            if begins:
                self.start(X[0])
            for t in range(len(R)):
                values[t] = self.predict(X[t])
                if fresh[t + 1]:
                    self.start(X[t + 1])
                else:
                    gamma, lam = (float(each[min(t, len(each) - 1)]) for each in (gammas, lams))
                    self.update(float(R[t]), X[t + 1], gamma, lam)
        except BaseException:
            self._weights, self._steps, self._here, self._standing, self._value, self._kept = before
            raise
        return values

    def __repr__(self) -> str:
        schedule = getattr(self.step_size, "__name__", repr(self.step_size))
        return (
            f"{type(self).__name__}({self._weights.size} weights, step_size={schedule}, trace_decay={self.trace_decay}, "
            f"discount={self.discount}, horizon={self.horizon})"
        )

    # --- Files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> None:
        """Write the learner to one file, from which `load` resumes bit for bit.

        The file appears whole or not at all. The value function and a step-size schedule are code and are not saved.

        Parameters
        ----------
        path : str or path
            The file.

        Raises
        ------
        ValueError
            If a state that waits for its update is neither a number nor a NumPy array of numbers.
        """
        arrays = to_arrays(list(self._kept), [self._here] if self._standing else [])
        arrays |= {"weights": self._weights, "initial_weights": self._initial_weights}
        arrays |= {"steps": np.array(self._steps), "value": np.array(self._value), "older": np.array(self._older())}
        settings = {
            "step_size": None if callable(self.step_size) else self.step_size,
            "trace_decay": self.trace_decay,
            "discount": self.discount,
            "horizon": None if self.horizon == math.inf else self.horizon,
        }
        files.write_learner(path, type(self).__name__, settings, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike, value_and_grad: ValueAndGrad, *, step_size: Schedule | None = None) -> Self:
        """Read a learner that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        value_and_grad : function (weights, x) → (value, gradient)
            The value function of the saved learner. It is not in the file.
        step_size : function t → α_t, optional
            The schedule of the saved learner, if it had one. It is not in the file.

        Returns
        -------
        learner of this class
            It resumes bit for bit.

        Raises
        ------
        ValueError
            If the file is damaged or of another class, or if `step_size` is missing or not needed.
        """
        name, settings, arrays = files.read_learner(path)
        if name != cls.__name__:
            raise ValueError(f"{path} holds a {name}, not a {cls.__name__}: load it with {name}.load")
        given = setting_or_code(path, settings, "step_size", step_size)
        try:
            settings["step_size"] = given
            settings["horizon"] = math.inf if settings["horizon"] is None else settings["horizon"]
            learner = cls(value_and_grad, arrays["initial_weights"], **settings)
            learner._restore(arrays)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        return learner

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        steps, here = from_arrays(arrays)
        weights = inputs.saved_array(arrays, "weights", self._initial_weights.shape, np.float64)
        self._weights = checked_weights(weights)
        self._steps = inputs.saved_count("steps", inputs.saved_array(arrays, "steps", (), np.int64))
        self._value = inputs.number("its value", inputs.saved_array(arrays, "value", (), np.float64).item())
        self._standing = bool(here)
        self._here = here[0] if here else None
        self._remember(steps, inputs.saved_count("older", inputs.saved_array(arrays, "older", (), np.int64)))
