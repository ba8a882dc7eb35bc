"""Policies choose an action from the values of all actions.

A policy is any callable `policy(values, rng, t) → action`. `values` are the values of the actions. `rng` is a NumPy `Generator`,
the source of all randomness. `t` is the number of transitions so far.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol

import numpy as np

from trueonline.control.transitions import CHOICE, TIE
from trueonline.core.compiling.kernels import call
from trueonline.inputs import Schedule, count, floats, number, positive, unit

DOUBLE = np.dtype(np.float64)


class Policy(Protocol):
    """A function that chooses an action.

    Every callable policy(values, rng, t) is one. It takes the values of all actions, a random generator, and the number t of
    transitions learned from. It returns an action from 0 to the number of actions − 1. The policies of this package also have
    `probabilities(values, t)`, the probability of each action, which agents with ratios need.
    """

    def __call__(self, values: np.ndarray, rng: np.random.Generator, t: int, /) -> int: ...


@dataclass(frozen=True)
class Linear:
    """A schedule that goes from one number to another in so many steps, and stays there. It is saved with its policy.

    Parameters
    ----------
    first : float
        The number at t = 0.
    last : float
        The number from t = `steps` on.
    steps : int
        How many steps it takes.

    Examples
    --------
    >>> schedule = Linear(1.0, 0.0, steps=10)
    >>> [schedule(t) for t in (0, 5, 100)]
    [1.0, 0.5, 0.0]
    """

    first: float
    last: float
    steps: int

    def __post_init__(self) -> None:
        for name in ("first", "last"):
            object.__setattr__(self, name, number(name, getattr(self, name)))
        object.__setattr__(self, "steps", count("steps", self.steps, 2**53))

    def __call__(self, t: int) -> float:
        return self.first + (self.last - self.first) * min(t / self.steps, 1.0)


def one_each(values: Any) -> np.ndarray:
    """The values of the actions as an array. ValueError unless they are numbers, one for each action."""
    if type(values) is np.ndarray and values.dtype is DOUBLE and values.ndim == 1 and len(values):
        return values
    values = floats("values", values)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"values must be a row with a number for each action, got shape {values.shape}")
    return values


@dataclass(frozen=True)
class Greedy:
    """Choose one of the best actions.

    Parameters
    ----------
    tolerance : float, optional
        Actions whose values are this close to the best are tied, and chosen equally often. The tolerance is relative to the best
        value, or absolute if that is below 1.

    Examples
    --------
    >>> Greedy()(np.array([0.0, 2.0, 1.0]), np.random.default_rng(0), 0)
    1
    """

    tolerance: float = TIE

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", _tolerance(self.tolerance))

    def __call__(self, values: np.ndarray, rng: np.random.Generator, t: int) -> int:
        return call(CHOICE, one_each(values), rng.random(), self.tolerance)

    def probabilities(self, values: np.ndarray, t: int) -> np.ndarray:
        """The probability of each action.

        Parameters
        ----------
        values : numpy.ndarray
            The values of all actions.
        t : int
            The number of transitions learned from.

        Returns
        -------
        numpy.ndarray
            The probabilities.

        Examples
        --------
        >>> EpsilonGreedy(0.2).probabilities(np.array([0.0, 1.0]), 0), Uniform().probabilities(np.zeros(4), 0)
        (array([0.1, 0.9]), array([0.25, 0.25, 0.25, 0.25]))
        """
        values = one_each(values)
        best = values.max()
        tied = (values >= best - self.tolerance * max(1.0, abs(best))) | (values == best)
        return tied / tied.sum() if tied.any() else np.full(len(values), 1.0 / len(values))


@dataclass(frozen=True)
class EpsilonGreedy:
    """Choose a random action with probability ε, and otherwise a greedy one.

    Parameters
    ----------
    epsilon : float or callable
        ε in [0, 1], or a schedule t → ε.
    tolerance : float, optional
        The tolerance of ties, as for `Greedy`.

    Examples
    --------
    >>> policy = EpsilonGreedy(lambda t: 1.0 / (t + 1))
    >>> [policy(np.array([0.0, 1.0]), np.random.default_rng(4), t) for t in (0, 1000)]
    [1, 1]
    """

    epsilon: float | Schedule
    tolerance: float = TIE

    def __post_init__(self) -> None:
        if not callable(self.epsilon):
            object.__setattr__(self, "epsilon", unit("epsilon", self.epsilon))
        object.__setattr__(self, "tolerance", _tolerance(self.tolerance))

    def __call__(self, values: np.ndarray, rng: np.random.Generator, t: int) -> int:
        values = one_each(values)
        epsilon = unit(f"epsilon({t})", self.epsilon(t)) if callable(self.epsilon) else self.epsilon
        if rng.random() < epsilon:
            return int(rng.integers(len(values)))
        return call(CHOICE, values, rng.random(), self.tolerance)

    def probabilities(self, values: np.ndarray, t: int) -> np.ndarray:
        values = one_each(values)
        epsilon = unit(f"epsilon({t})", self.epsilon(t)) if callable(self.epsilon) else self.epsilon
        greedy = Greedy(self.tolerance).probabilities(values, t)
        return (1.0 - epsilon) * greedy + epsilon / len(values)


@dataclass(frozen=True)
class Softmax:
    """Choose action a with a probability in proportion to exp(q_a / temperature).

    Parameters
    ----------
    temperature : float or callable
        A number > 0, or a schedule t → temperature.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> [Softmax(0.1)(np.array([0.0, 1.0]), rng, 0) for _ in range(5)]
    [1, 1, 1, 1, 1]
    """

    temperature: float | Schedule

    def __post_init__(self) -> None:
        if not callable(self.temperature):
            object.__setattr__(self, "temperature", positive("temperature", self.temperature))

    def __call__(self, values: np.ndarray, rng: np.random.Generator, t: int) -> int:
        values = one_each(values)
        shares = np.cumsum(self._weights(values, t))
        if not np.isfinite(shares[-1]):  # values that have diverged say nothing
            return int(rng.integers(len(values)))
        return min(int(np.searchsorted(shares, rng.random() * shares[-1], side="right")), len(values) - 1)

    def _weights(self, values: np.ndarray, t: int) -> np.ndarray:
        setting = self.temperature
        temperature = positive(f"temperature({t})", setting(t)) if callable(setting) else setting
        with np.errstate(invalid="ignore", over="ignore"):
            return np.exp((values - values.max()) / temperature)

    def probabilities(self, values: np.ndarray, t: int) -> np.ndarray:
        values = one_each(values)
        weights = self._weights(values, t)
        total = weights.sum()
        return weights / total if np.isfinite(total) else np.full(len(values), 1.0 / len(values))


@dataclass(frozen=True)
class Uniform:
    """Choose every action equally often, for all values."""

    def __call__(self, values: np.ndarray, rng: np.random.Generator, t: int) -> int:
        return int(rng.integers(len(one_each(values))))

    def probabilities(self, values: np.ndarray, t: int) -> np.ndarray:
        values = one_each(values)
        return np.full(len(values), 1.0 / len(values))


for _kind in (EpsilonGreedy, Softmax, Uniform):
    _kind.probabilities.__doc__ = Greedy.probabilities.__doc__


def check_policy(policy: Any) -> None:
    """ValueError unless this can be called as policy(values, rng, t)."""
    got = "" if callable(policy) else repr(policy)
    if isinstance(policy, type):
        got = f"the class {policy.__name__}; make an object of it"
    elif callable(policy):
        with suppress(ValueError):  # some callables have no signature
            signature = inspect.signature(policy)
            try:
                signature.bind(None, None, 0)
            except TypeError:
                got = f"one that takes {signature}"
    if got:
        raise ValueError(f"policy must be callable as policy(values, rng, t), got {got}")


KINDS: dict[str, type] = {kind.__name__: kind for kind in (Greedy, EpsilonGreedy, Softmax, Uniform)}


def _tolerance(value: Any) -> float:
    return number("tolerance", value, "a finite number ≥ 0", lambda v: 0.0 <= v < np.inf)


def describe(policy: Callable) -> dict[str, Any] | None:
    """A policy of this package as plain data; None for a policy that is code: a user's, or one with a schedule of the user.

    >>> describe(EpsilonGreedy(0.1))
    {'kind': 'EpsilonGreedy', 'epsilon': 0.1, 'tolerance': 1e-10}
    """
    if type(policy) not in KINDS.values():
        return None
    settings: dict[str, Any] = {"kind": type(policy).__name__}
    for part in fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, part.name)
        settings[part.name] = {"kind": "Linear", **asdict(value)} if type(value) is Linear else value
    return None if any(map(callable, settings.values())) else settings


def restore(settings: dict[str, Any]) -> Policy:
    """The policy that `describe` described."""
    kind = settings.get("kind")
    if kind not in KINDS:
        raise ValueError(f"unknown policy {kind!r}; known are {', '.join(KINDS)}")
    return KINDS[kind](**{name: _value(value) for name, value in settings.items() if name != "kind"})


def _value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value.get("kind") != "Linear":
        raise ValueError(f"unknown schedule {value.get('kind')!r}; known is Linear")
    return Linear(**{name: each for name, each in value.items() if name != "kind"})
