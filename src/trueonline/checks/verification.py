"""`verify`: is a method equal to its definition, at every step, on streams drawn to catch it out?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from trueonline import catalog
from trueonline.core.transition import asked
from trueonline.forward import OnlineLambdaReturn, OnlineSarsaReturn, OnlineWatkinsReturn

TOLERANCE = 1e-10
ACTIONS = 3  # that agents have


# --- Streams to be caught out by ------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A random stream and random parameters. Episodes end by γ = 0, by x = None, or are cut short."""

    name: str
    x: list[Any]  # φ_0, …, φ_T as given to the learner
    rewards: np.ndarray
    discounts: np.ndarray
    trace_decays: np.ndarray
    endings: list[str]  # after each transition: "", "terminal" or "cut"
    n_features: int
    step_size: float | Callable[[int], float]
    seed: Any
    ratios: np.ndarray  # ρ of each transition, for learners that take them
    interests: np.ndarray  # I of each state left, likewise
    expected: list  # φ̄ of each state entered, likewise: here features of no relation to the others


@dataclass(frozen=True)
class Kind:
    """A family of streams: how features, step-sizes and decays are drawn."""

    name: str
    features: Callable[[np.random.Generator, int], list[Any]]  # (generator, rows) → features of each row
    n_features: int
    binary: bool = False
    step_sizes: tuple[float, float] = (0.01, 1.0)
    schedule: bool = False
    constant: tuple[str, ...] = ()  # which of gamma and lam are alike at all steps (but for γ = 0 at ends)
    episodes: bool = True


def _dense(rng: np.random.Generator, rows: int) -> list[Any]:
    return list(rng.normal(size=(rows, 8)) / np.sqrt(8.0))


def _dense_binary(rng: np.random.Generator, rows: int) -> list[Any]:
    return list((rng.random((rows, 8)) < 0.4).astype(float))


def _active(rng: np.random.Generator, rows: int) -> list[Any]:
    return [rng.choice(40, size=rng.integers(0, 6), replace=False) for _ in range(rows)]


def _pairs(rng: np.random.Generator, rows: int) -> list[Any]:
    return [(x, rng.normal(size=len(x)) / 2.0) for x in _active(rng, rows)]


def _states(rng: np.random.Generator, rows: int) -> list[Any]:
    return [int(state) for state in rng.integers(5, size=rows)]


def _lingering(rng: np.random.Generator, rows: int) -> list[Any]:
    """Neighbouring rows share most of their features, as tile coding does."""
    places = np.clip(np.cumsum(rng.integers(-1, 2, size=rows)) + 6, 0, 12)
    return [np.arange(place, place + 4) for place in places]


KINDS = (
    Kind("dense", _dense, 8),
    Kind("dense, binary", _dense_binary, 8, binary=True, step_sizes=(0.01, 0.3)),
    Kind("active indices", _active, 40, binary=True, step_sizes=(0.01, 0.3)),
    Kind("(indices, values)", _pairs, 40),
    Kind("states of a table", _states, 5, binary=True),
    Kind("repeated features", _lingering, 16, binary=True, step_sizes=(0.01, 0.25)),
    Kind("large step-size", _states, 5, binary=True, step_sizes=(1.0, 2.0)),
    Kind(
        "constant γ and λ",
        _lingering,
        16,
        binary=True,
        step_sizes=(0.01, 0.25),
        constant=("gamma", "lam"),
        episodes=False,
    ),
    Kind("step-size schedule", _pairs, 40, schedule=True),
    Kind("schedule, binary", _lingering, 16, binary=True, step_sizes=(0.01, 0.25), schedule=True),
)


def draw(kind: Kind, seed: Any, steps: int) -> Trial:
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
    step_size = (lambda t: float(alphas[t])) if kind.schedule else float(alphas[0])
    rewards = rng.normal(size=steps)
    ratios = 3.0 * rng.random(steps) ** 2  # of mean 1, as those of two policies are
    ratios[rng.random(steps) < rng.choice([0.0, 0.2])] = 0.0  # in half of the trials traces live on
    interests = rng.choice([0.0, 0.5, 1.0, 1.5], size=steps)
    more = (ratios, interests, kind.features(rng, steps))
    return Trial(kind.name, x, rewards, discounts, trace_decays, endings, kind.n_features, step_size, seed, *more)


def follow(learner: Any, trial: Trial) -> Iterator[np.ndarray]:
    """Take a learner or an agent through a trial; yield its weights after every transition."""
    learner.start(trial.x[0])
    for t, ending in enumerate(trial.endings):
        transition = _acted if hasattr(learner, "step") else _learned
        transition(learner, trial, t)
        yield np.append(learner.weights, getattr(learner, "second_weights", []))
        if ending:
            learner.start(trial.x[t + 1])


def _learned(learner: Any, trial: Trial, t: int) -> None:
    x_next = None if trial.endings[t] == "terminal" else trial.x[t + 1]
    carried = {"ratio": float(trial.ratios[t]), "interest": float(trial.interests[t]), "x_expected": trial.expected[t]}
    more: dict[str, Any] = {name: value for name, value in carried.items() if name in getattr(learner, "takes", ())}
    learner.update(float(trial.rewards[t]), x_next, float(trial.discounts[t]), float(trial.trace_decays[t]), **more)


def _acted(agent: Any, trial: Trial, t: int) -> None:
    reward, x_next, gamma = float(trial.rewards[t]), trial.x[t + 1], float(trial.discounts[t])
    if trial.endings[t] == "terminal":
        agent.end(reward)
    elif trial.endings[t] == "cut":
        agent.truncate(reward, x_next, gamma)
    else:
        agent.step(reward, x_next, gamma, float(trial.trace_decays[t]))


class Wavering:
    """A policy that is greedy half of the time, and remembers what it chose. Where all values are equal, so are actions."""

    def __init__(self) -> None:
        self.chosen: list[int] = []

    def __call__(self, values: np.ndarray, rng: np.random.Generator, t: int) -> int:
        greedy = rng.random() < 0.5 and values.min() < values.max()
        self.chosen.append(int(values.argmax()) if greedy else int(rng.integers(len(values))))
        return self.chosen[-1]


class Replay:
    """A policy that chooses what another one chose before."""

    def __init__(self, chosen: Sequence[int]) -> None:
        self.chosen = iter(chosen)

    def __call__(self, values: np.ndarray, rng: np.random.Generator, t: int) -> int:
        return next(self.chosen)


# --- The comparison -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The largest difference found on one kind of stream, relative to the largest weight so far."""

    stream: str
    error: float
    forward_error: float
    trials: int


@dataclass(frozen=True)
class Report:
    """What `verify` found. `max_error` is the largest difference from the definition at any step of any stream."""

    method: str
    definition: str
    steps: int
    tolerance: float
    rows: tuple[Row, ...] = field(repr=False)

    @property
    def max_error(self) -> float:
        return max(row.error for row in self.rows)

    @property
    def forward_error(self) -> float:
        """The largest distance from the online forward view that the paper aims at (for TD: the online λ-return algorithm)."""
        return max(row.forward_error for row in self.rows)

    @property
    def exact(self) -> bool:
        return self.max_error <= self.tolerance

    def __str__(self) -> str:
        lines = [f"{self.method} against {self.definition}: {'exact' if self.exact else 'NOT EXACT'}"]
        lines += [f"  {row.stream:<20} {row.error:.1e}" for row in self.rows]
        return "\n".join(lines)


def verify(
    learner_class: Callable[..., Any],
    definition: Callable[..., Any] | None = None,
    *,
    kinds: Sequence[Kind | str] | None = None,
    trials: int = 5,
    steps: int = 50,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    progress: Callable[[], Any] = lambda: None,
) -> Report:
    """Compare a learner with its definition after every transition of random streams.

    Your own learner will do: `learner_class(n_features, step_size, trace_decay=…, discount=…)` must make something with
    `start(x)`, `update(reward, x_next, discount, trace_decay)` and `weights`. It is given features in all forms: float
    arrays, integer arrays of active indices, pairs (indices, values), and one integer for a state; `x_next = None` at the
    end of an episode; and step-sizes that are functions of t. A learner for some of that only can be held to some kinds
    of stream, by name: `kinds=["dense"]`. The names are in the report, and in the error where one does not know them. A
    class with `binary = True` gets binary features only.

    An agent will do as well: a class with `step` (see `trueonline.control.Agent`), made with `n_actions` and a `policy`. A
    class with options is given with them: `functools.partial(to.control.ReplaceSarsa, clear_others=True)`.

    `definition` is by default the one this package has for the class, then the class's attribute `definition`, then
    `OnlineLambdaReturn`.

    >>> import trueonline as to
    >>> report = to.verify(to.TrueOnlineTD, trials=1, steps=20)
    >>> report.exact, report.max_error < 1e-12
    (True, True)
    >>> to.verify(to.AccumulateTD, definition=to.OnlineLambdaReturn, trials=1, steps=20).exact
    False
    """
    if not callable(learner_class):
        raise TypeError(f"verify needs a class, which it can make learners from, got an instance: {learner_class!r}")
    truth: Any = definition or _definition(learner_class)
    rows = []
    for kind in _chosen(kinds):
        number = KINDS.index(kind) if kind in KINDS else len(KINDS)
        if getattr(_class(learner_class), "binary", False) and not kind.binary:
            continue
        errors = []
        for trial in range(trials):
            drawn = draw(kind, [seed, number, trial], steps)
            try:
                errors.append(_differences(drawn, learner_class, truth))
            except Exception as error:
                error.add_note(f"This was on a stream of the kind {kind.name!r}, with features such as {drawn.x[0]!r}.")
                raise
            progress()
        worst, forward = np.max(errors, axis=0)
        rows.append(Row(kind.name, float(worst), float(forward), trials))
    name = getattr(_class(learner_class), "__name__", str(learner_class))
    return Report(name, getattr(_class(truth), "__name__", str(truth)), steps, tolerance, tuple(rows))


def _class(learner_class: Any) -> Any:
    """The class itself, where it was given with some of its arguments (`functools.partial`)."""
    return learner_class.func if isinstance(learner_class, partial) else learner_class


def row_of(learner_class: Any) -> catalog.Method | None:
    """The row of the catalogue that a class, with the arguments it is given with, belongs to."""
    made, arguments = _class(learner_class), getattr(learner_class, "keywords", {})
    rows = [row for row in catalog.METHODS.values() if _is_of(made, row.resolve("learner"))]
    matching = [row for row in rows if row.options and row.options.items() <= arguments.items()]
    return next(iter(matching or [row for row in rows if not row.options]), None)


def _is_of(made: Any, kind: Any) -> bool:
    return made is kind or (isinstance(made, type) and isinstance(kind, type) and issubclass(made, kind))


def _definition(learner_class: Any) -> Any:
    made = _class(learner_class)
    arguments = learner_class.keywords if isinstance(learner_class, partial) else {}
    if arguments.get("bound") is not None or arguments.get("meta_step_size") is not None:
        raise ValueError(
            "a learner with bound or meta_step_size has no definition here: its forward view is that of the step-sizes it "
            "comes to use (docs/step_sizes.md); verify it without"
        )
    own = getattr(made, "method", None)
    rule = own.resolve("rule") if isinstance(own, catalog.Method) else None
    if rule is not None and "beta" in asked(rule) and "second_step_size" not in arguments:
        raise TypeError(f"give the second step-size: functools.partial({made.__name__}, second_step_size=0.1)")
    row = row_of(learner_class)
    default = OnlineSarsaReturn if hasattr(made, "step") else OnlineLambdaReturn
    found: Any = getattr(made, "definition", None) or (default if row is None else row.resolve("definition"))
    return _with_arguments(found, arguments)


def _with_arguments(definition: Any, arguments: dict[str, Any]) -> Any:
    """A definition with those of a learner's arguments that it has too."""
    known = inspect.signature(definition).parameters
    shared = {name: value for name, value in arguments.items() if name in known}
    return partial(definition, **shared) if shared else definition


def _chosen(kinds: Sequence[Kind | str] | None) -> Sequence[Kind]:
    names = {kind.name: kind for kind in KINDS}
    unknown = [kind for kind in kinds or () if isinstance(kind, str) and kind not in names]
    if unknown:
        raise ValueError(f"unknown kind of stream {unknown[0]!r}; known are {', '.join(names)}")
    return KINDS if kinds is None else [names[kind] if isinstance(kind, str) else kind for kind in kinds]


def _differences(trial: Trial, learner_class: Callable, truth: Callable) -> tuple[float, float]:
    """The largest difference from the definition, and from the online forward view that the method aims at."""
    makers = [learner_class, truth]
    aim = _aim(learner_class, truth)
    if aim is not truth:
        makers.append(aim)
    shape: tuple[int, ...] = (trial.n_features,)
    acting: Any = {}
    wavering = Wavering()
    weights = []
    for number, make in enumerate(makers):
        if hasattr(_class(learner_class), "step"):  # an agent: the others do as it did
            shape = (trial.n_features, ACTIONS)
            acting = {"policy": Replay(wavering.chosen) if number else wavering, "seed": trial.seed}
        # Each transition brings its own γ and λ; for those who want constants, they are these (γ is 0 at ends).
        constants = {"trace_decay": float(trial.trace_decays.max()), "discount": float(trial.discounts.max())}
        learner = make(*shape, trial.step_size, **constants, **acting)
        with np.errstate(over="ignore", invalid="ignore"):
            weights.append(np.array([w.reshape(-1) for w in follow(learner, trial)]))
    shared = min(each.shape[1] for each in weights)  # a definition may have no second weights
    ours, right, aimed = (each[:, :shared] for each in (weights[0], weights[1], weights[-1]))
    return _relative(ours, right), _relative(ours, aimed)


def _aim(learner_class: Any, truth: Any) -> Any:
    """The online forward view that a method aims at: the catalogue's, or that of TD(λ), of Sarsa(λ), of Watkins's Q(λ)."""
    made, first = _class(truth), row_of(learner_class)
    rows = [row for row in (first, *catalog.METHODS.values()) if row is not None and row.resolve("definition") is made]
    if rows:
        return _with_arguments(rows[0].resolve("forward_view"), getattr(truth, "keywords", {}))
    if getattr(made, "greedy", False):
        return OnlineWatkinsReturn
    return OnlineSarsaReturn if hasattr(made, "step") else OnlineLambdaReturn


def _relative(a: np.ndarray, b: np.ndarray) -> float:
    """max_t ‖a_t − b_t‖∞ / max(‖b_0‖∞, …, ‖b_t‖∞); infinite where it is not a number."""
    scale = np.maximum.accumulate(np.abs(b).max(axis=1))
    error = np.abs(a - b).max(axis=1) / np.where(scale > 0.0, scale, 1.0)
    return float(error.max()) if np.isfinite(error).all() else np.inf
