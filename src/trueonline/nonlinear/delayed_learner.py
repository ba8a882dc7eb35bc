"""What the method and its definition share: a value function that is checked, the interface, and files."""

from __future__ import annotations

import copy
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np

from trueonline import files, inputs
from trueonline.inputs import Parameters, Parametrised, Schedule

ValueAndGrad = Callable[[np.ndarray, Any], tuple[float, Any]]
NUMBERS = ("alpha", "reward", "discount", "trace_decay", "next_value")  # of a transition, as they are saved


def horizon_within(tolerance: float, discount: float, trace_decay: float) -> int:
    """K = ⌈log η / log γλ⌉, and at least 1: the smallest K with (γλ)^K ≤ η, the tolerance.

    (γλ)^K is the weight in the λ-return of the first TD error that is left out.

    >>> horizon_within(0.01, discount=0.99, trace_decay=0.9), horizon_within(0.01, discount=1.0, trace_decay=0.0)
    (40, 1)
    """
    tolerance = inputs.number("tolerance", tolerance, "a number in (0, 1)", lambda v: 0.0 < v < 1.0)
    decay = inputs.unit("discount", discount) * inputs.unit("trace_decay", trace_decay)
    if decay == 1.0:
        raise ValueError(
            "discount · trace_decay = 1 leaves no horizon within a tolerance; give the horizon, math.inf to wait for the "
            "end of every episode"
        )
    if decay == 0.0:
        return 1
    return max(1, math.ceil(math.log(tolerance) / math.log(decay) - 1e-9))  # 2, not 3, for 0.1² = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """From x to the next state: R, γ and λ of the state entered, V of the state entered, and α of the update of x."""

    x: Any
    alpha: float
    reward: float
    discount: float
    trace_decay: float
    next_value: float  # V(S_{t+1} | w_t); 0 where γ = 0


class DelayedLearner(Parametrised, ABC):
    """A differentiable predictor V(x | w) that updates a state once the K transitions after it have been seen.

    `value_and_grad(weights, x)` gives V(x | w), a number, and ∇V(x | w), an array of the weights' shape. It may not change
    the weights that it is handed. x is whatever it takes; the learner keeps copies. `weights` are those to begin with.

    `horizon` is K, a whole number, or math.inf: updates then wait for the end of the episode. By default it is
    `horizon_within(tolerance, discount, trace_decay)`, by the learner's own γ and λ whatever those of transitions are.

    A value or a gradient that is not finite or has another shape is a ValueError, as are weights that an update would make
    so. As with every bad input, the learner is then as it was.
    """

    _kept: Any  # the transitions that are still needed, oldest first

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
        if not callable(value_and_grad):
            raise ValueError(f"value_and_grad must be a function of weights and x, got {type(value_and_grad).__name__}")
        self._function = value_and_grad
        self._initial_weights = _weights(weights)
        self._parameters = Parameters(self._initial_weights.size, step_size, trace_decay, discount)
        if horizon is None:
            horizon = horizon_within(tolerance, self.discount, self.trace_decay)
        whole = isinstance(horizon, Integral) and not isinstance(horizon, bool)
        if not (whole and horizon >= 1) and not (isinstance(horizon, float) and horizon == math.inf):
            raise ValueError(f"horizon must be a whole number ≥ 1, or math.inf, got {horizon!r}")
        self._horizon = int(horizon) if whole else math.inf
        self.reset()

    # --- What the method says ---------------------------------------------------------------------

    @abstractmethod
    def _after(self, step: Transition) -> np.ndarray:
        """The weights after this transition, which follows those kept. Changes nothing."""

    @abstractmethod
    def _after_all(self) -> np.ndarray:
        """The weights after the updates that still wait, when no transition will follow. Changes nothing."""

    @abstractmethod
    def _keep(self, step: Transition) -> None:
        """Keep this transition, and drop what is no longer needed."""

    @abstractmethod
    def _remember(self, steps: list[Transition], older: int) -> None:
        """Keep these transitions only; `older` as it was saved."""

    def _older(self) -> int:
        """What has to be saved beside the transitions, so that rounding goes on as it was."""
        return 0

    def _towards(self, weights: np.ndarray, step: Transition, target: float) -> np.ndarray:
        """w + α (G − V(x | w)) ∇V(x | w)."""
        value, gradient = self._evaluate(weights, step.x)
        with np.errstate(all="ignore"):
            updated = weights + step.alpha * (target - value) * gradient
        if not np.isfinite(updated).all():
            raise ValueError(
                f"an update towards {target} from {value} with step_size {step.alpha} would make weights that are not "
                "finite; the values diverge: use a smaller step_size. The updates that wait are the same for ever: `reset`"
            )
        return updated

    def _evaluate(self, weights: np.ndarray, x: Any) -> tuple[float, np.ndarray]:
        shown = weights.view()
        shown.flags.writeable = False
        answer = self._function(shown, x)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ValueError(f"value_and_grad must return (value, gradient), got {type(answer).__name__}")
        given: Any = answer[0]
        given = given.item() if getattr(given, "ndim", None) == 0 else given  # an array of one number
        value, gradient = inputs.number("the value from value_and_grad", given), np.asarray(answer[1])
        if gradient.dtype.kind not in "fiu" or gradient.shape != weights.shape:
            raise ValueError(
                f"the gradient from value_and_grad must be numbers of the weights' shape {weights.shape}, "
                f"got {gradient.dtype} of shape {gradient.shape}"
            )
        if not np.isfinite(gradient).all():
            raise ValueError(
                f"the gradient from value_and_grad must be finite, got one that is not, at a value of {value}"
            )
        return value, gradient

    # --- What a user calls ------------------------------------------------------------------------

    @property
    def horizon(self) -> float:
        """K."""
        return self._horizon

    @property
    def weights(self) -> np.ndarray:
        """A fresh copy of w."""
        return self._weights.copy()

    @property
    def steps(self) -> int:
        """How many transitions have been seen: the t of a step-size schedule. The t-th update, too, is with α_t."""
        return self._steps

    def reset(self) -> None:
        """Forget everything: back to the initial weights."""
        self._weights = self._initial_weights.copy()
        self._steps = 0
        self._here: Any = None
        self._standing = False
        self._value = 0.0  # of where it stands, with the weights of the arrival there
        self._remember([], 0)

    def start(self, x: Any) -> None:
        """Stand at x, the first of a stream or an episode.

        Updates that still wait are made: the episode was cut short, and its last state is bootstrapped from.
        """
        weights = self._after_all()
        self._arrive(weights, x, self._evaluate(weights, x)[0])
        self._remember([], 0)

    def update(
        self, reward: float, x_next: Any, discount: float | None = None, trace_decay: float | None = None
    ) -> float:
        """Take in one transition, make the update that it completes; return δ = R + γV(S′ | w) − V(S | w⁻).

        w are the weights before the update, and w⁻ those of when S was entered (van Seijen's δ′). `discount` and
        `trace_decay` are γ and λ of the state entered, by default the learner's own. γ = 0 ends the episode, makes all
        updates that wait, and x_next begins the next one; x_next = None ends it and `start` must follow. An episode that
        is cut short is not ended: give its last x_next as always, then `start` anew.
        """
        if not self._standing:
            raise RuntimeError("no episode has begun: call start(x) with its first state before update")
        reward = inputs.number("reward", reward)
        gamma = inputs.unit("discount", self.discount if discount is None else discount)
        lam = inputs.unit("trace_decay", self.trace_decay if trace_decay is None else trace_decay)
        alpha = self._parameters.alpha(self._steps)
        gamma = 0.0 if x_next is None else gamma

        v_next = 0.0 if gamma == 0.0 else self._evaluate(self._weights, x_next)[0]
        step = Transition(self._here, alpha, reward, gamma, lam, v_next)
        delta = reward + gamma * v_next - self._value
        weights = self._after(step)
        if (
            x_next is not None and gamma == 0.0
        ):  # the first state of an episode is valued with the weights of its beginning
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
        """V(x | w)."""
        return self._evaluate(self._weights, x)[0]

    def run(
        self, X: Any, rewards: Any, discounts: Any = None, *, trace_decays: Any = None, starts: Any = None
    ) -> np.ndarray:
        """Learn from a stream of T transitions; return V(S_t | w_t), t = 0 … T − 1, each from before its transition.

        X is an array of numbers with T + 1 rows, each an x. The rest is as for every learner: `rewards[t]`, `discounts[t]`
        and `trace_decays[t]` are R, γ and λ of the transition into row t + 1, and `starts[t]` says that row t begins anew.
        Where the learner stands at X[0] already, learning goes on from there. Otherwise it starts at X[0].
        """
        X = np.asarray(X)
        if X.dtype.kind not in "fiub" or X.ndim == 0:
            raise ValueError(f"X must be an array of numbers with one row per step, got {X.dtype} of shape {X.shape}")
        R = inputs.rewards(rewards, len(X))
        gammas = inputs.units("discounts", discounts, len(R), self.discount)
        lams = inputs.units("trace_decays", trace_decays, len(R), self.trace_decay)
        anew = inputs.marks("starts", starts, len(X))
        before = self._weights, self._steps, self._here, self._standing, self._value, self._kept.copy()
        values = np.empty(len(R))
        try:
            if anew[0] or not (self._standing and np.array_equal(self._here, X[0])):
                self.start(X[0])
            for t in range(len(R)):
                values[t] = self.predict(X[t])
                if anew[t + 1]:
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
        """Write everything to one file, from which `load` of the same class goes on bit for bit.

        The file appears whole or not at all. The value function and a step-size schedule are code and are not saved. The
        states that wait are: each x must be a number or a NumPy array of numbers.
        """
        steps = list(self._kept)
        arrays = {name: np.array([getattr(step, name) for step in steps], float) for name in NUMBERS}
        arrays |= {"weights": self._weights, "initial_weights": self._initial_weights}
        arrays |= {"steps": np.array(self._steps), "value": np.array(self._value), "older": np.array(self._older())}
        waiting = [step.x for step in steps] + ([self._here] if self._standing else [])
        arrays |= dict(_packed(x, i) for i, x in enumerate(waiting))
        settings = {
            "step_size": None if callable(self.step_size) else self.step_size,
            "trace_decay": self.trace_decay,
            "discount": self.discount,
            "horizon": None if self.horizon == math.inf else self.horizon,
        }
        files.write_learner(path, type(self).__name__, settings, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike, value_and_grad: ValueAndGrad, *, step_size: Schedule | None = None) -> Self:
        """The learner that `save` wrote. `value_and_grad`, and `step_size` where it was a schedule, are handed in again."""
        name, settings, arrays = files.read_learner(path)
        if name != cls.__name__:
            raise ValueError(f"{path} holds a {name}, not a {cls.__name__}")
        saved = settings.get("step_size")
        if saved is None and step_size is None:
            raise ValueError(
                f"{path} was saved with a step-size schedule, which is code: load it with step_size=schedule"
            )
        if saved is not None and step_size is not None:
            raise ValueError(f"{path} was saved with the constant step_size {saved}: load it without step_size")
        try:
            given = {**settings, "step_size": saved if step_size is None else step_size}
            given["horizon"] = math.inf if given["horizon"] is None else given["horizon"]
            learner = cls(value_and_grad, arrays["initial_weights"], **given)
            learner._restore(arrays)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        return learner

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        numbers = [arrays[name] for name in NUMBERS]
        length = len(numbers[0])
        if any(each.shape != (length,) for each in numbers) or arrays["weights"].shape != self._initial_weights.shape:
            raise ValueError("its parts do not fit together")
        self._weights = _weights(arrays["weights"])
        self._steps, self._value = int(arrays["steps"]), float(arrays["value"])
        waiting = list(_unpacked(arrays))
        if len(waiting) not in (length, length + 1) or (length and len(waiting) == length):
            raise ValueError(f"it has {len(waiting)} states for {length} transitions")
        self._standing = len(waiting) > length
        self._here = waiting.pop() if self._standing else None
        rows = zip(waiting, *(each.tolist() for each in numbers), strict=True)
        self._remember([Transition(*row) for row in rows], int(arrays["older"]))


def _weights(given: Any) -> np.ndarray:
    array = np.asarray(given)
    if array.dtype.kind not in "fiu" or array.ndim == 0 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(
            f"weights must be a non-empty array of finite numbers, got {array.dtype} of shape {array.shape}"
            + (", not all finite" if array.dtype.kind == "f" and not np.isfinite(array).all() else "")
        )
    return np.array(array, np.float64)


def _packed(x: Any, i: int) -> tuple[str, np.ndarray]:
    """x under a name that tells a number from an array."""
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fiubc":
        return f"x{i}", np.asarray(x)
    if isinstance(x, bool | int | float) and np.asarray(x).dtype.kind in "fiub":
        return f"number{i}", np.asarray(x)
    raise ValueError(
        f"states of type {type(x).__name__} cannot be saved, only numbers and NumPy arrays of numbers; hand in such x, or "
        "save between episodes, after x_next=None"
    )


def _unpacked(arrays: dict[str, np.ndarray]) -> Iterable[Any]:
    i = 0
    while True:
        if f"x{i}" in arrays:
            yield arrays[f"x{i}"][()]  # a NumPy scalar where it was one
        elif f"number{i}" in arrays:
            yield arrays[f"number{i}"].item()
        else:
            return
        i += 1
