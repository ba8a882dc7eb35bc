"""From clean samples to predictions: signals, bounds, tiles, a horde and the score, in one object that can be saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from trueonline.features import TileCoder
from trueonline.inputs import MAX_FEATURES, count, positive, unit
from trueonline.nexting.shared_traces.layout import METHODS
from trueonline.nexting.horde import Horde
from trueonline.nexting.questions import Question, discount_of, horizon_of
from trueonline.nexting.realised_returns import Returns, Score
from trueonline.nexting.signals import Bounds, Signals, spelling
from trueonline.nexting.sources import Clean

DIVERGED = 1e140  # no return is as large: signals lie within ±1e100
TILES = ("joint", "pairs", "single")


class DivergedError(ValueError):
    """The weights grew beyond all bounds."""


@dataclass(frozen=True)
class Setup:
    """What is predicted, from what, and how: all that determines the predictions for given samples.

    There is a question for each target and each time scale. Time scales are `horizons`, in seconds, and `discounts`: γ, or the
    name of a signal whose value is γ at each sample. `step_size` is divided by the number of active features.

    Features are tilings over the signals: one grid over all of them (`tiles="joint"`), one for every two (`"pairs"`), or one
    for each (`"single"`); and a bias unit. With more tiles than `features` they are hashed to that number.
    """

    signals: Sequence[str]
    targets: Sequence[str]
    discounts: Sequence[float | str] = ()
    horizons: Sequence[float] = ()
    rate: float | None = None  # samples a second
    method: str = "true_online"
    step_size: float = 0.1
    trace_decay: float = 0.9
    bins: int = 10
    tilings: int = 8
    features: int = 200_000
    tiles: str = "joint"
    bounds: Mapping[str, Sequence[float]] = field(default_factory=dict)  # of a signal: lowest and highest

    def __post_init__(self) -> None:
        for name in ("signals", "targets", "discounts", "horizons"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, values in (("signal", self.signals), ("target", self.targets)):
            if not values:
                raise ValueError(f"there must be at least one {name}")
        if not self.discounts and not self.horizons:
            raise ValueError("there must be at least one time scale: give a horizon in seconds, or a discount")
        if self.rate is not None:
            positive("rate", self.rate)
        elif self.horizons:
            raise ValueError("a horizon in seconds needs the rate, in samples per second")
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method!r}; known are {', '.join(METHODS)}")
        if self.tiles not in TILES:
            raise ValueError(f"tiles must be one of {', '.join(TILES)}, got {self.tiles!r}")
        for discount in self.discounts:
            if not isinstance(discount, str):
                unit("discount", discount)
        positive("step_size", self.step_size)
        unit("trace_decay", self.trace_decay)
        if not 2 <= count("features", self.features) <= MAX_FEATURES:
            raise ValueError(f"features must be from 2 to {MAX_FEATURES:,}, got {self.features}")

    def scales(self) -> dict[str, float | str]:
        """The time scales: how they are written in the names of questions, and γ."""
        found: dict[str, float | str] = {}
        for horizon in self.horizons:
            assert self.rate is not None
            found[f"{_short(horizon)}s"] = discount_of(horizon, self.rate)
        for discount in self.discounts:
            told = discount if isinstance(discount, float | int) else spelling(discount)
            found[told if isinstance(told, str) else _short(told)] = told
        if len(set(found.values())) < len(self.horizons) + len(self.discounts):
            raise ValueError("two of the time scales are the same; give each once")
        return found

    def coder(self) -> TileCoder:
        """The features, of signals between 0 and 1."""
        d = len(self.signals)
        size = {"joint": d, "pairs": 2, "single": 1}[self.tiles]
        groups = [*combinations(range(d), min(size, d))]
        tiles = len(groups) * self.tilings * self.bins ** min(size, d)
        hashed = self.features if tiles + 1 > self.features else None
        grids: dict[str, Any] = {"bins": self.bins, "tilings": self.tilings, "size": hashed, "groups": groups}
        return TileCoder(low=np.zeros(d), high=np.ones(d), bias=True, **grids)

    def as_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()} | {
            "bounds": {name: [float(v) for v in pair] for name, pair in self.bounds.items()}
        }


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """Samples, and what is predicted at each, from what was learned up to it."""

    times: np.ndarray
    starts: np.ndarray
    signals: np.ndarray  # T × `Predictor.observed`
    predictions: np.ndarray  # T × questions


class Predictor:
    """Learns from samples as they come.

    >>> setup = Setup(signals=["a"], targets=["a"], discounts=[0.5], rate=10.0)
    >>> predictor = Predictor(setup)
    >>> for t in range(200):
    ...     answers = predictor.learn(Clean(np.array([t / 10]), np.array([[3.0]]), np.array([t == 0])))
    >>> predictor.names, answers.predictions.round(3)  # 3 + 0.5·3 + 0.25·3 + …
    (('a@0.5',), array([[6.]]))
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        scales = setup.scales()
        asked = [(target, label, gamma) for target in setup.targets for label, gamma in scales.items()]
        moving = [gamma for gamma in scales.values() if isinstance(gamma, str)]
        self.coder = setup.coder()
        inputs, moving = ([spelling(name) for name in names] for names in (setup.signals, moving))
        self.targets = tuple(spelling(target) for target, _, _ in asked)  # of each question
        self._signals = Signals(list(dict.fromkeys([*inputs, *self.targets, *moving])), setup.rate)
        self.columns = self._signals.columns  # what the source must deliver
        self.observed = self._signals.names  # what `Answers.signals` has
        self._inputs = np.array([self.observed.index(name) for name in inputs])
        self._target = np.array([self.observed.index(target) for target in self.targets])
        self._gammas = {name: self.observed.index(name) for name in moving}
        self.bounds = Bounds(inputs, {spelling(name): (low, high) for name, (low, high) in setup.bounds.items()})
        alpha = setup.step_size / self.coder.n_active
        self.questions = tuple(
            Question(f"{target}@{label}", gamma, setup.trace_decay, alpha, setup.method)
            for target, (_, label, gamma) in zip(self.targets, asked, strict=True)
        )
        self.names = tuple(question.name for question in self.questions)
        seconds = {discount: horizon for horizon, discount in zip(setup.horizons, scales.values(), strict=False)}
        self.horizons = tuple(
            seconds.get(question.discount, _seconds(question.discount, setup.rate)) for question in self.questions
        )
        self.horde = Horde(self.coder.n_features, self.questions)
        recent = 60.0 * setup.rate if setup.rate else 1000.0  # about a minute
        self.returns = Returns([question.discount for question in self.questions], recent=max(recent, 1.0))
        self.samples = 0
        self.strange = 0  # values of γ outside [0, 1]
        self._last: np.ndarray | None = None  # features of the last sample

    def learn(self, clean: Clean) -> Answers:
        """Learn from samples; return the prediction at each. DivergedError when a prediction is beyond all bounds."""
        if not len(clean):
            return Answers(clean.times, clean.starts, np.empty((0, len(self.observed))), np.empty((0, len(self.names))))
        observed = self._signals.derive(clean.times, clean.values, clean.starts)
        X = self.coder.many(self.bounds.scale(observed.take(self._inputs, axis=1)))
        C = observed.take(self._target, axis=1)
        moving = {name: self._gamma(observed[:, place]) for name, place in self._gammas.items()}
        predictions = self._answers(X, C, moving, clean.starts)
        if not (np.abs(predictions) < DIVERGED).all():
            raise DivergedError(
                f"the weights diverged at about sample {self.samples + len(C):,}: give a smaller step-size than "
                f"{self.setup.step_size:g}, or a smaller trace decay than {self.setup.trace_decay:g}"
            )
        gammas = None
        if moving:
            gammas = np.column_stack(
                [moving[d] if isinstance(d, str) else np.full(len(C), d) for d in self.returns.discounts]
            )
        self.returns.follow(predictions, C, clean.starts, gammas)
        self.samples += len(C)
        return Answers(clean.times, clean.starts, observed, predictions)

    def _answers(self, X: Any, C: np.ndarray, moving: dict[str, np.ndarray], starts: np.ndarray) -> np.ndarray:
        """V_t(S_t) at each sample. The transition that leads into the first one begins at the last sample of before."""
        first = 0
        if self._last is not None:
            X = (
                np.vstack([self._last, X])
                if isinstance(X, np.ndarray) and len(self._last) == X.shape[1]
                else [self._last, *X]
            )
            starts, first = np.concatenate([[False], starts]), 1
        else:
            C, moving = C[1:], {name: values[1:] for name, values in moving.items()}
        answers = self.horde.run(X, C, moving, starts=starts, last=True)
        self._last = X[-1]
        return answers[first:]

    def _gamma(self, values: np.ndarray) -> np.ndarray:
        inside = np.clip(values, 0.0, 1.0)
        self.strange += int((inside != values).sum())
        return inside

    def scores(self) -> list[Score]:
        """How well each question was answered, as if the stream ended here."""
        return self.returns.scores()

    def counters(self) -> dict[str, int]:
        return {
            "clipped": int(self.bounds.clipped.sum()) + self.strange,
            "widened": int(self.bounds.widened.sum()),
            "collisions": self.coder.collisions,
        }

    # --- Saving -----------------------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """What `restore` needs to go on bit for bit."""
        parts = {
            "horde": self.horde.state(),
            "signals": self._signals.state(),
            "bounds": self.bounds.state(),
            "returns": self.returns.state(),
            "coder": {"places": self.coder.__getstate__()["places"]},
            "own": {"counts": np.array([self.samples, self.strange], np.int64)},
        }
        if self._last is not None:
            parts["own"]["last"] = self._last
        return {f"{part}/{name}": array for part, arrays in parts.items() for name, array in arrays.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state of the same setup. ValueError, and this is of no use any more, where it is damaged."""
        parts: dict[str, dict[str, np.ndarray]] = {}
        for name, array in state.items():
            part, _, inner = name.partition("/")
            parts.setdefault(part, {})[inner] = array
        try:
            self.horde.restore(parts["horde"])
            self._signals.restore(parts.get("signals", {}))
            self.bounds.restore(parts["bounds"])
            self.returns.restore(parts["returns"])
            self.coder.__setstate__({"settings": self.coder.settings(), "places": parts["coder"]["places"]})
            self.samples, self.strange = (int(number) for number in parts["own"]["counts"])
            self._last = parts["own"].get("last")
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ValueError(f"what was saved does not fit: {error}") from None
        if not all(np.isfinite(array).all() for array in parts["horde"].values() if array.dtype.kind == "f"):
            raise ValueError("what was saved holds numbers that are not finite")


def _short(value: float) -> str:
    """A number as short as it can be written without becoming another."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


def _seconds(discount: float | str, rate: float | None) -> float | None:
    """The time scale of a discount; None where there is none."""
    return None if rate is None or isinstance(discount, str) or discount == 1.0 else horizon_of(discount, rate)
