"""`verify`: compare a method with its definition, at every step of random streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from trueonline import catalog, notebook
from trueonline.checks.trials import KINDS, Kind, Replay, Trial, Wavering, draw, follow
from trueonline.core.transition import asked
from trueonline.forward import OnlineLambdaReturn, OnlineSarsaReturn, OnlineWatkinsReturn

TOLERANCE = 1e-10
ACTIONS = 3  # the number of actions of agents


@dataclass(frozen=True)
class Row:
    """The largest difference on one kind of stream, relative to the largest weight so far.

    Attributes
    ----------
    stream : str
        The name of the kind of stream.
    error : float
        The largest difference from the definition.
    forward_error : float
        The largest difference from the online forward view that the method aims at.
    trials : int
        The number of streams.
    """

    stream: str
    error: float
    forward_error: float
    trials: int


@dataclass(frozen=True)
class Report:
    """The result of `verify`.

    Attributes
    ----------
    method : str
        The name of the class.
    definition : str
        The name of its definition.
    steps : int
        The number of transitions of each stream.
    tolerance : float
        The largest difference of an exact method.
    rows : tuple of Row
        The differences on each kind of stream.
    """

    method: str
    definition: str
    steps: int
    tolerance: float
    rows: tuple[Row, ...] = field(repr=False)

    @property
    def max_error(self) -> float:
        """The largest difference from the definition at any step of any stream."""
        return max(row.error for row in self.rows)

    @property
    def forward_error(self) -> float:
        """The largest difference from the online forward view that the method aims at (for TD: the online λ-return algorithm)."""
        return max(row.forward_error for row in self.rows)

    @property
    def exact(self) -> bool:
        """Whether `max_error` is within the tolerance."""
        return self.max_error <= self.tolerance

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        verdict = "exact" if self.exact else "not exact"
        title = (
            f"{self.method} against {self.definition}: {verdict} (differences up to {self.tolerance:.0e} are rounding)"
        )
        rows = [(row.stream, row.trials, f"{row.error:.1e}") for row in self.rows]
        return notebook.table(("stream", "trials", "largest difference"), rows, title)

    def __str__(self) -> str:
        lines = [f"{self.method} against {self.definition}: {'exact' if self.exact else 'NOT EXACT'}"]
        lines += [f"  {row.stream:<20} {row.error:.1e}" for row in self.rows]
        return "\n".join(lines)


def check_class(learner_class: Any) -> None:
    """Refuse a name or an instance in place of a class. TypeError says what to give."""
    if isinstance(learner_class, str):
        raise TypeError(
            f"learner_class must be a class, got {learner_class!r}; give the class, such as trueonline.TrueOnlineTD"
        )
    if not callable(learner_class):
        raise TypeError(f"learner_class must be a class, got an instance: {learner_class!r}; give type(learner)")


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

    `learner_class(n_features, step_size, trace_decay=…, discount=…)` must return an object with `start(x)`, `update(reward, x_next,
    discount, trace_decay)` and `weights`. A class of your own will do. Its learners get features in all forms: float arrays,
    integer arrays of active indices, pairs (indices, values), and one integer for a state. They get `x_next = None` at the end of
    an episode, and step-sizes that are functions of t. A class with `binary = True` gets binary features only.

    An agent will do as well: a class with `step` (see `trueonline.control.Agent`), made with `n_actions` and a `policy`.

    Parameters
    ----------
    learner_class : class or callable
        The class to compare. Give its options with it: `functools.partial(to.control.ReplaceSarsa, clear_others=True)`.
    definition : class or callable, optional
        The definition. By default it is the attribute `definition` of the class, then that of the catalogue, then
        `OnlineLambdaReturn` (for agents `OnlineSarsaReturn`).
    kinds : sequence of str, optional
        The kinds of stream, by the names in the report, such as `["dense"]` for a learner that takes float arrays only. All by
        default.
    trials : int, optional
        The number of streams of each kind.
    steps : int, optional
        The number of transitions of each stream.
    seed : int, optional
        The seed of the streams.
    tolerance : float, optional
        The largest difference of an exact method, relative to the largest weight so far.
    progress : callable, optional
        It is called after every stream.

    Returns
    -------
    Report
        The differences. `report.exact` says whether all are within the tolerance.

    Raises
    ------
    TypeError
        If `learner_class` is not a class, or needs a second step-size.
    ValueError
        For an unknown kind of stream, or a learner with step-size adaptation, which has no definition here.

    Examples
    --------
    >>> import trueonline as to
    >>> report = to.verify(to.TrueOnlineTD, trials=1, steps=20)
    >>> report.exact, report.max_error < 1e-12
    (True, True)
    >>> to.verify(to.AccumulateTD, definition=to.OnlineLambdaReturn, trials=1, steps=20).exact
    False
    """
    check_class(learner_class)
    truth: Any = definition or _definition(learner_class)
    rows = []
    for kind in _chosen(kinds):
        number = KINDS.index(kind) if kind in KINDS else len(KINDS)
        if getattr(_class(learner_class), "binary", False) and not kind.binary:
            continue
        if kind.schedule and "alpha" in getattr(getattr(_class(learner_class), "method", None), "constants", ()):
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
    """The class itself, also if it comes with arguments (`functools.partial`)."""
    return learner_class.func if isinstance(learner_class, partial) else learner_class


def row_of(learner_class: Any) -> catalog.Method | None:
    """The row of the catalogue to which a class, with its arguments, belongs."""
    made, arguments = _class(learner_class), getattr(learner_class, "keywords", {})
    rows = [row for row in catalog.METHODS.values() if _is_of(made, row.resolve("learner"))]
    matching = [row for row in rows if row.options and row.options.items() <= arguments.items()]
    return next(iter(matching or [row for row in rows if not row.options]), None)


def _is_of(made: Any, kind: Any) -> bool:
    return made is kind or (isinstance(made, type) and isinstance(kind, type) and issubclass(made, kind))


def _definition(learner_class: Any) -> Any:
    made = _class(learner_class)
    arguments = learner_class.keywords if isinstance(learner_class, partial) else {}
    own = getattr(made, "method", None)
    learned = isinstance(own, catalog.Method) and own.memory == "meta-gradient"
    if not learned and (arguments.get("bound") is not None or arguments.get("meta_step_size") is not None):
        raise ValueError(
            "a learner with bound or meta_step_size has no definition here, because its step-sizes depend on the stream "
            "(docs/guides/step_sizes.md); verify it without them"
        )
    rule = own.resolve("rule") if isinstance(own, catalog.Method) else None
    if rule is not None and "beta" in asked(rule) and "second_step_size" not in arguments:
        raise TypeError(
            f"{made.__name__} needs second_step_size: give functools.partial({made.__name__}, second_step_size=0.1)"
        )
    row = row_of(learner_class)
    default = OnlineSarsaReturn if hasattr(made, "step") else OnlineLambdaReturn
    definition: Any = getattr(made, "definition", None) or (default if row is None else row.resolve("definition"))
    return _with_arguments(definition, arguments)


def _with_arguments(definition: Any, arguments: dict[str, Any]) -> Any:
    """A definition with the arguments that it shares with a learner."""
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
        if hasattr(_class(learner_class), "step"):  # an agent: the others repeat its actions
            shape = (trial.n_features, ACTIONS)
            acting = {"policy": Replay(wavering.chosen) if number else wavering, "seed": trial.seed}
        # Each transition has its own γ and λ. These are the constants of methods that need constants (γ is 0 at ends).
        constants = {"trace_decay": float(trial.trace_decays.max()), "discount": float(trial.discounts.max())}
        learner = make(*shape, trial.step_size, **constants, **acting)
        with np.errstate(over="ignore", invalid="ignore"):
            weights.append(np.array([w.reshape(-1) for w in follow(learner, trial)]))
    shared = min(each.shape[1] for each in weights)  # a definition may lack what is learned beside the weights
    ours, right, aimed = (each[:, :shared] for each in (weights[0], weights[1], weights[-1]))
    return _relative(ours, right), _relative(ours, aimed)


def _aim(learner_class: Any, truth: Any) -> Any:
    """The online forward view that a method aims at: the catalogue's, or that of TD(λ), of Sarsa(λ), of Watkins's Q(λ)."""
    made, first = _class(truth), row_of(learner_class)
    if getattr(made, "per_feature", False):  # the others know one step-size for all features
        return truth
    rows = [row for row in (first, *catalog.METHODS.values()) if row is not None and row.resolve("definition") is made]
    if rows:
        return _with_arguments(rows[0].resolve("forward_view"), getattr(truth, "keywords", {}))
    if getattr(made, "greedy", False):
        return OnlineWatkinsReturn
    return OnlineSarsaReturn if hasattr(made, "step") else OnlineLambdaReturn


def _relative(a: np.ndarray, b: np.ndarray) -> float:
    """max_t ‖a_t − b_t‖∞ / max(‖b_0‖∞, …, ‖b_t‖∞); infinite if that is not a number."""
    scale = np.maximum.accumulate(np.abs(b).max(axis=1))
    error = np.abs(a - b).max(axis=1) / np.where(scale > 0.0, scale, 1.0)
    return float(error.max()) if np.isfinite(error).all() else np.inf
