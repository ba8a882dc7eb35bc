"""Random streams for `verify`. They are drawn to find a learner that differs from its definition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueonline.inputs import FeaturesLike


@dataclass(frozen=True)
class Trial:
    """A random stream and random parameters. Episodes end by γ = 0 or by x = None, or are truncated."""

    name: str
    x: Sequence[FeaturesLike]  # φ_0, …, φ_T in the form that the learner gets
    rewards: np.ndarray
    discounts: np.ndarray
    trace_decays: np.ndarray
    endings: list[str]  # after each transition: "", "terminal" or "cut"
    n_features: int
    step_size: Any  # a number, or an array with one for each feature, or a function of t that returns one of these
    seed: Any
    ratios: np.ndarray  # ρ of each transition, for learners that take them
    probabilities: np.ndarray  # π of each action taken, for learners that take them
    interests: np.ndarray  # I of each state left, for learners that take them
    expected: Sequence[
        FeaturesLike
    ]  # φ̄ of each state entered, for learners that take them; unrelated to the features in `x`

    def parts(self, t: int) -> dict[str, Any]:
        """All that transition t carries beside its reward and features, by the names of `inputs.protocol.PARTS`."""
        numbers = {"discount": self.discounts, "trace_decay": self.trace_decays}
        numbers |= {"ratio": self.ratios, "probability": self.probabilities, "interest": self.interests}
        return {**{name: float(each[t]) for name, each in numbers.items()}, "x_expected": self.expected[t]}


@dataclass(frozen=True)
class StreamKind:
    """A family of streams: the distributions of features, step-sizes and decays."""

    name: str
    features: Callable[[np.random.Generator, int], Sequence[FeaturesLike]]  # (generator, rows) → features of each row
    n_features: int
    binary: bool = False
    step_sizes: tuple[float, float] = (0.01, 1.0)
    schedule: bool = False
    constant: tuple[str, ...] = ()  # which of gamma and lam are the same at all steps (except γ = 0 at ends)
    episodes: bool = True
    per_feature: bool = False  # whether each feature has its own step-size


def _dense(rng: np.random.Generator, rows: int) -> Sequence[FeaturesLike]:
    return list(rng.normal(size=(rows, 8)) / np.sqrt(8.0))


def _dense_binary(rng: np.random.Generator, rows: int) -> Sequence[FeaturesLike]:
    return list((rng.random((rows, 8)) < 0.4).astype(float))


def _active(rng: np.random.Generator, rows: int) -> list[np.ndarray]:
    return [rng.choice(40, size=rng.integers(0, 6), replace=False) for _ in range(rows)]


def _pairs(rng: np.random.Generator, rows: int) -> Sequence[FeaturesLike]:
    return [(x, rng.normal(size=len(x)) / 2.0) for x in _active(rng, rows)]


def _states(rng: np.random.Generator, rows: int) -> Sequence[FeaturesLike]:
    return [int(state) for state in rng.integers(5, size=rows)]


def _lingering(rng: np.random.Generator, rows: int) -> Sequence[FeaturesLike]:
    """Neighbouring rows share most of their features, as tile coding does."""
    places = np.clip(np.cumsum(rng.integers(-1, 2, size=rows)) + 6, 0, 12)
    return [np.arange(place, place + 4) for place in places]


KINDS = (
    StreamKind("dense", _dense, 8),
    StreamKind("dense, binary", _dense_binary, 8, binary=True, step_sizes=(0.01, 0.3)),
    StreamKind("active indices", _active, 40, binary=True, step_sizes=(0.01, 0.3)),
    StreamKind("(indices, values)", _pairs, 40),
    StreamKind("states of a table", _states, 5, binary=True),
    StreamKind("repeated features", _lingering, 16, binary=True, step_sizes=(0.01, 0.25)),
    StreamKind("large step-size", _states, 5, binary=True, step_sizes=(1.0, 2.0)),
    StreamKind(
        "constant γ and λ",
        _lingering,
        16,
        binary=True,
        step_sizes=(0.01, 0.25),
        constant=("gamma", "lam"),
        episodes=False,
    ),
    StreamKind("step-size schedule", _pairs, 40, schedule=True),
    StreamKind("schedule, binary", _lingering, 16, binary=True, step_sizes=(0.01, 0.25), schedule=True),
)


def draw(kind: StreamKind, seed: Any, steps: int) -> Trial:
    """Draw a stream of a kind."""
    rng = np.random.default_rng(seed)
    x = kind.features(rng, steps + 1)
    discounts, trace_decays = rng.random((2, steps))
    discounts[rng.random(steps) < 0.2] = 1.0
    trace_decays[rng.random(steps) < 0.2] = 1.0
    trace_decays[rng.random(steps) < 0.1] = 0.0
    if "gamma" in kind.constant:
        discounts[:] = rng.choice([0.5, 0.9, 0.99, 1.0])
    if "lam" in kind.constant:
        trace_decays[:] = rng.choice([0.0, 0.3, 0.9, 1.0])
    endings = [""] * steps
    if kind.episodes:
        for t in np.flatnonzero(rng.random(steps) < 0.08):
            ending = rng.choice(["γ = 0", "terminal", "cut"])
            endings[t] = "" if ending == "γ = 0" else str(ending)
            discounts[t] = 0.0 if ending == "γ = 0" else discounts[t]
    low, high = kind.step_sizes
    alphas = rng.uniform(low, high, size=steps)
    step_size: Any = (lambda t: float(alphas[t])) if kind.schedule else float(alphas[0])
    rewards = rng.normal(size=steps)
    ratios = 3.0 * rng.random(steps) ** 2  # of mean 1, as the ratios of two policies are
    ratios[rng.random(steps) < rng.choice([0.0, 0.2])] = 0.0  # in half of the trials no ratio cuts the traces
    interests = rng.choice([0.0, 0.5, 1.0, 1.5], size=steps)
    probabilities = np.minimum(ratios, 1.0) * rng.spawn(1)[0].random(steps)
    more = (ratios, probabilities, interests, kind.features(rng, steps))
    if kind.per_feature:
        each = alphas[:, None] * rng.uniform(0.5, 1.0, size=(steps, kind.n_features))
        step_size = (lambda t: each[t]) if kind.schedule else each[0]
    return Trial(kind.name, x, rewards, discounts, trace_decays, endings, kind.n_features, step_size, seed, *more)


COMPARED_NUMBERS = ("weights", "second_weights", "reward_rate")  # what is compared; some methods have the weights alone


def follow(learner: Any, trial: Trial, parts: Collection[str]) -> Iterator[dict[str, np.ndarray]]:
    """Let a learner or an agent learn from a trial, with these parts of each transition; yield what it has learned after each."""
    learner.start(trial.x[0])
    for t, ending in enumerate(trial.endings):
        given = {name: value for name, value in trial.parts(t).items() if name in parts}
        transition = _acted if hasattr(learner, "step") else _learned
        transition(learner, trial, t, given)
        yield {name: np.array(getattr(learner, name)) for name in COMPARED_NUMBERS if hasattr(learner, name)}
        if ending:
            learner.start(trial.x[t + 1])


def _learned(learner: Any, trial: Trial, t: int, given: dict[str, Any]) -> None:
    x_next = None if trial.endings[t] == "terminal" else trial.x[t + 1]
    learner.update(float(trial.rewards[t]), x_next, **given)


def _acted(agent: Any, trial: Trial, t: int, given: dict[str, Any]) -> None:
    reward, x_next = float(trial.rewards[t]), trial.x[t + 1]
    if trial.endings[t] == "terminal":
        agent.end(reward)
    elif trial.endings[t] == "cut":
        agent.truncate(reward, x_next, **{name: value for name, value in given.items() if name == "discount"})
    else:
        agent.step(reward, x_next, **given)


class Wavering:
    """A policy that is greedy half of the time, and remembers its choices. With equal values it chooses at random."""

    def __init__(self) -> None:
        self.chosen: list[int] = []

    def __call__(self, values: np.ndarray, rng: np.random.Generator, t: int) -> int:
        greedy = rng.random() < 0.5 and values.min() < values.max()
        self.chosen.append(int(values.argmax()) if greedy else int(rng.integers(len(values))))
        return self.chosen[-1]

    @staticmethod
    def probabilities(values: np.ndarray, t: int) -> np.ndarray:
        """The probability of each action."""
        greedy = 0.5 * (values.min() < values.max())
        found = np.full(len(values), (1.0 - greedy) / len(values))
        found[values.argmax()] += greedy
        return found


class Replay:
    """A policy that repeats the choices of another one."""

    def __init__(self, chosen: Sequence[int]) -> None:
        self.chosen = iter(chosen)

    def __call__(self, values: np.ndarray, rng: np.random.Generator, t: int) -> int:
        return next(self.chosen)

    probabilities = staticmethod(Wavering.probabilities)
