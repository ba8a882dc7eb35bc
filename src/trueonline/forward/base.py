"""The common part of the definitions: a history, from which the weights are computed from scratch at every step."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial, wraps
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from trueonline import inputs
from trueonline.catalog import Parameter
from trueonline.core.thread_guard import ThreadGuarded
from trueonline.inputs import FeaturesLike, FeatureStream, Schedule, explains_arguments
from trueonline.learners.interface import Learner

VECTORS = ("x", "reached", "weights_then")  # of the history
SCALARS = ("rewards", "discounts", "trace_decays", "alphas", "ratios", "next_values", "deltas")


def of_the_past(method: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    """A method of a definition and a time j that needs nothing later than j: its value is computed once in a history."""

    @wraps(method)
    def known(self: Any, j: int) -> Any:
        if (method, j) not in self._past:
            self._past[method, j] = method(self, j)
        return self._past[method, j]

    return known


def of_now(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A method of a definition that needs its history only: its value is computed once for each length of the history."""

    @wraps(method)
    def known(self: Any) -> Any:
        length = len(self.x)
        if (found := self._past.get(method)) is None or found[0] != length:
            found = self._past[method] = length, method(self)
        return found[1]

    return known


def products_after(factors: np.ndarray, k: int) -> np.ndarray:
    """∏_{i=k+1}^{j} f_i for j = k, k + 1, …: 1, f_{k+1}, f_{k+1}f_{k+2}, …

    >>> products_after(np.array([9.0, 9.0, 2.0, 3.0]), 1)
    array([1., 2., 6.])
    """
    return np.concatenate(([1.0], factors[k + 1 :])).cumprod()


def with_options(init: Callable[..., None], cls: Any) -> inspect.Signature:
    """The signature of a class whose constructor takes the options of definitions, or its own one."""
    usual = list(inspect.signature(cls.__init__).parameters.values())[1:]
    if cls.__init__ is not init:
        return inspect.Signature(usual)
    if definition := getattr(cls, "definition", None):
        common = inspect.signature(Definition).parameters
        own = [each for name, each in inspect.signature(definition).parameters.items() if name not in common]
    else:
        kind, none = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        own = [inspect.Parameter(name, kind, default=getattr(cls, name, none)) for name in cls.options]
    return inspect.Signature([*usual[:-1], *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own)])


def with_parameters(base: Any, parameters: Mapping[str, Parameter]) -> Any:
    """A base of definitions with the parameters of a rule as options."""
    options = {**base.options, **{name: each.checked for name, each in parameters.items()}}
    return type(base.__name__, (base,), {"options": options, **{name: each.default for name, each in parameters.items()}})


def number_or_schedule(name: str, value: Any) -> Any:
    """A number ≥ 0, or a schedule of such numbers."""
    return value if callable(value) else inputs.ratio(name, value)


class Definition(Learner):
    """A learner that keeps all transitions since the last beginning, and its weights at the beginning.

    A beginning is `start`, or a transition with γ = 0. No target reaches beyond a beginning, so older transitions are not needed.
    """

    takes: ClassVar[Collection[str]] = ()
    n_actions = 1  # the number of blocks of the features
    options: ClassVar[
        Mapping[str, Callable[[str, Any], Any]]
    ] = {}  # arguments beside the common ones, each with its check

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._more_settings = tuple(cls.options)
        init: Any = cls.__init__
        usual = init is Definition.__init__  # a class with a constructor of its own has its arguments
        signature = with_options(init, cls) if usual else inspect.signature(partial(init, None))
        cls.__signature__ = signature  # type: ignore[attr-defined]

    @explains_arguments
    def __init__(
        self,
        n_features: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        initial_weights: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        self._take(options)
        super().__init__(n_features, step_size, trace_decay, discount, initial_weights)

    def _take(self, options: Mapping[str, Any]) -> None:
        """Check the options, and keep them as attributes. The attributes of the class are their defaults."""
        for name, check in self.options.items():
            if name not in options and not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} needs {name}")
            setattr(self, name, check(name, options[name] if name in options else getattr(type(self), name)))

    def reset(self) -> None:
        given = self._parameters.initial_weights
        with inputs.room_for(f"n_features={self.n_features:,}", 16.0 * self.n_features):
            self._weights = np.zeros(self.n_features) if given is None else np.array(given)
        self._steps = 0
        self._here: np.ndarray | None = None
        self._forget()

    def _forget(self) -> None:
        """Begin a history: the weights now are its w_0."""
        self._past: dict[Any, Any] = {}  # (`of_the_past`, `of_now`)
        self._first_weights = self._weights.copy()
        self.x: list[np.ndarray] = []  # φ_0, φ_1, …
        self.reached: list[np.ndarray] = []  # φ_1, φ_2, …: the features entered, zero at the end of an episode
        self.weights_then: list[np.ndarray] = []  # w_0, w_1, …
        self.rewards: list[float] = []  # R_1, R_2, …
        self.discounts: list[float] = []  # γ_1, γ_2, …
        self.trace_decays: list[float] = []  # λ_1, λ_2, …
        self.alphas: list[float] = []  # α_0, α_1, …
        self.ratios: list[float] = []  # ρ_0, ρ_1, …
        self.next_values: list[float] = []  # V(S_1 | w_0), V(S_2 | w_1), …
        self.deltas: list[float] = []  # δ_0, δ_1, …
        self.goes_on: list[bool] = []  # whether A_1, A_2, … are greedy, for agents

    @abstractmethod
    def _weights_now(self) -> np.ndarray:
        """The weights after the last transition of the history."""

    def _weights_at_end(self) -> np.ndarray:
        """The weights after the last transition of the episode."""
        return self._weights

    @of_now
    def _decays(self) -> np.ndarray:
        """γ_jλ_j for j = 0, 1, …. The entry j = 0 has no meaning. ∏_{j=i+1}^{t} γ_jλ_j carries φ_i to time t."""
        return np.concatenate(([1.0], np.multiply(self.discounts, self.trace_decays)))[: len(self.x)]

    @property
    def weights(self) -> np.ndarray:
        return inputs.read_only(self._weights.copy())

    @property
    def trace(self) -> np.ndarray:
        return inputs.read_only(np.array(self._trace()))

    def _trace(self) -> np.ndarray:
        raise AttributeError(f"{type(self).__name__} has no trace: it is a definition without a known backward view")

    @property
    def steps(self) -> int:
        return self._steps

    def start(self, x: FeaturesLike) -> None:
        here = self._checked(x, "x")
        self._end()
        self._here = here

    def _end(self) -> None:
        if self.x:
            self._weights = self._weights_at_end()
        self._forget()

    def _checked(self, x: Any, name: str) -> np.ndarray:
        return inputs.dense(inputs.features(x, self.n_features, binary=self.binary, name=name), self.n_features)

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
        self._refuse(ratio=ratio, interest=interest, x_expected=x_expected, probability=probability)
        if self._here is None:
            raise RuntimeError("no episode has begun: call start(x) with its first features before update")
        reward = inputs.number("reward", reward)
        gamma = inputs.unit("discount", self.discount if discount is None else discount)
        lam = inputs.unit("trace_decay", self.trace_decay if trace_decay is None else trace_decay)
        rho = 1.0 if ratio is None else inputs.ratio("ratio", ratio)
        pi = min(rho, 1.0) if probability is None else inputs.probability("probability", probability, rho)
        interest = 1.0 if interest is None else inputs.ratio("interest", interest)
        alpha = self._parameters.alpha(self._steps)
        there = None if x_next is None else self._checked(x_next, "x_next")
        reached = there if there is None or x_expected is None else self._checked(x_expected, "x_expected")
        self._prepare()
        self._probability, self._interest = pi, interest
        gamma, phi = (0.0, np.zeros(self.n_features)) if reached is None else (gamma, reached)

        v, v_next = float(self._weights @ self._here), float(self._weights @ phi)
        self.x.append(self._here)
        self.reached.append(phi)
        self.weights_then.append(self._weights)
        self.rewards.append(reward)
        self.discounts.append(gamma)
        self.trace_decays.append(lam)
        self.alphas.append(alpha)
        self.ratios.append(rho)
        self.next_values.append(v_next)
        self.deltas.append(reward + gamma * v_next - v)
        self.goes_on.append(True)
        delta = self.deltas[-1]
        self._weights = self._weights_now()
        self._steps += 1
        self._here = there
        if gamma == 0.0:
            self._end()
        return self._learned(delta, rho)

    def _learned(self, delta: float, rho: float) -> float:
        """Learn what is learned beside the weights, and return the TD error."""
        return delta

    def _prepare(self) -> None:
        """Check and keep what a method has beside the inputs, after these and before anything else changes."""

    def predict(self, x: FeaturesLike) -> float:
        return float(self._weights @ self._checked(x, "x"))

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
        self._refuse(ratios=ratios, interests=interests, expected=expected, probabilities=probabilities)
        X, rows = inputs.stream(X, self.n_features)
        R = inputs.rewards(rewards, rows)
        series = {
            "discount": inputs.units("discounts", discounts, len(R), self.discount),
            "trace_decay": inputs.units("trace_decays", trace_decays, len(R), self.trace_decay),
            "ratio": (rhos := inputs.ratios("ratios", ratios, len(R))),
            "probability": inputs.probabilities("probabilities", probabilities, len(R), rhos),
            "interest": inputs.ratios("interests", interests, len(R)),
        }
        series = {name: each for name, each in series.items() if name in ("discount", "trace_decay", *self.takes)}
        fresh = inputs.marks("starts", starts, rows)
        self._parameters.check_alphas(self._steps, ~fresh[1:])  # a bad schedule raises its error before anything changes
        phi = [self._checked(inputs.row(X, t), f"X[{t}]") for t in range(rows)]
        means = None if expected is None else self._expected(expected, rows)
        if inputs.begins(resume, fresh[0], self._here, phi[0]):
            self.start(phi[0])
        values = np.empty(len(R))
        for t in range(len(R)):
            values[t] = self._weights @ phi[t]
            if fresh[t + 1]:
                self.start(phi[t + 1])
            else:
                numbers: dict[str, Any] = {name: each[min(t, len(each) - 1)] for name, each in series.items()}
                more = {} if means is None else {"x_expected": means[t + 1]}
                self.update(R[t], phi[t + 1], **{**numbers, **more})
        return values

    def _expected(self, expected: Any, rows: int) -> list[np.ndarray]:
        means, length = inputs.stream(expected, self.n_features)
        if length != rows:
            raise ValueError(f"expected must have as many rows as X, {rows}, got {length}")
        return [self._checked(inputs.row(means, t), f"expected[{t}]") for t in range(rows)]

    def __getstate__(self) -> dict[str, Any]:
        return {**ThreadGuarded.__getstate__(self), "_past": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def _dump(self) -> dict[str, np.ndarray]:
        parts = {name: np.array(getattr(self, name), float) for name in SCALARS}
        parts |= {"weights": self._weights, "first_weights": self._first_weights, "steps": np.array(self._steps)}
        for name in (*VECTORS, "alphas") if self.per_feature else VECTORS:
            parts[name] = np.array(getattr(self, name), float).reshape(len(self.x), self.n_features)
        return parts if self._here is None else {**parts, "here": self._here}

    def _restore(self, parts: dict[str, np.ndarray]) -> None:
        n, length = self.n_features, len(np.atleast_1d(parts["x"]))
        shapes: dict[str, tuple[int, ...]] = {"weights": (n,), "first_weights": (n,), **dict.fromkeys(SCALARS, (length,))}
        shapes |= dict.fromkeys(VECTORS, (length, n))
        shapes |= {"alphas": (length, n)} if self.per_feature else {}
        for name, shape in shapes.items():
            inputs.saved_array(parts, name, shape, np.float64)
        units = {name: (parts[name] >= 0.0) & (parts[name] <= 1.0) for name in ("discounts", "trace_decays")}
        inputs.check_saved({**units, **{name: np.isfinite(parts[name]) for name in ("alphas", "rewards", "ratios")}})
        self._past = {}
        self._weights, self._first_weights = parts["weights"].copy(), parts["first_weights"].copy()
        self._steps = inputs.saved_count("steps", inputs.saved_array(parts, "steps", (), np.int64))
        for name in VECTORS:
            setattr(self, name, list(parts[name]))
        for name in SCALARS:
            setattr(self, name, parts[name].tolist())
        self.goes_on = [True] * length
        self._here = self._checked(parts["here"], "the saved features") if "here" in parts else None


class OffPolicyDefinition(Definition):
    """A definition about a target policy while another policy acts. Transitions carry importance ratios."""

    takes: ClassVar[Collection[str]] = ("ratio",)
