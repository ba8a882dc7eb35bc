"""`verify`: compare a method with its definition, at every step of random streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from trueonline import catalog, inputs, notebook
from trueonline.checks.trials import KINDS, Replay, StreamKind, Trial, Wavering, draw, follow
from trueonline.core.transition import asked
from trueonline.forward import OnlineLambdaReturn, OnlineSarsaReturn

TOLERANCE = 1e-10
ACTIONS = 3  # the number of actions of agents


@dataclass(frozen=True)
class Difference:
    """The first number in which a learner differs from its definition by more than the tolerance.

    Attributes
    ----------
    trial : int
        The number of the trial, from 0.
    step : int
        The number of the transition, from 0.
    entry : str
        The number, such as "weights[3]".
    value : float
        The learner's, after the transition.
    expected : float
        That of its definition.
    """

    trial: int
    step: int
    entry: str
    value: float
    expected: float

    def __str__(self) -> str:
        where = f"trial {self.trial}, after transition {self.step}"
        return f"{where}: {self.entry} is {self.value:.10g}, and {self.expected:.10g} by the definition"


@dataclass(frozen=True)
class Row:
    """The largest difference on one kind of stream, relative to the largest weight so far.

    Attributes
    ----------
    stream : str
        The name of the kind of stream.
    error : float
        The largest difference from the definition.
    forward_error : float or None
        The largest difference from the online forward view that the method aims at. None if it has none.
    trials : int
        The number of streams.
    first : Difference or None
        Where the learner first differs from its definition. None if it does not.
    """

    stream: str
    error: float
    forward_error: float | None
    trials: int
    first: Difference | None = None


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
    seed : int
        The seed of the streams.
    note : str
        What of a transition the learner takes and its definition does not. Empty if they take the same.
    """

    method: str
    definition: str
    steps: int
    tolerance: float
    rows: tuple[Row, ...] = field(repr=False)
    seed: int = 0
    note: str = ""

    @property
    def max_error(self) -> float:
        """The largest difference from the definition at any step of any stream."""
        return max(row.error for row in self.rows)

    @property
    def forward_error(self) -> float | None:
        """The largest difference from the online forward view that the method aims at (for TD: the online λ-return algorithm).

        None for a method that has no forward view.
        """
        return max((row.forward_error for row in self.rows if row.forward_error is not None), default=None)

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
        for row in self.rows:
            lines.append(f"  {row.stream:<20} {row.error:.1e}")
            lines += [] if row.first is None else [f"    seed {self.seed}, {row.first}"]
        return "\n".join([*lines, *([self.note] if self.note else [])])


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
    kinds: Sequence[StreamKind | str] | None = None,
    trials: int = 5,
    steps: int = 50,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    progress: Callable[[], Any] = lambda: None,
) -> Report:
    """Compare a learner with its definition after every transition of random streams.

    `learner_class(n_features, step_size, trace_decay=…, discount=…)` must return an object with `start(x)`, `update(reward, x_next,
    …)` and `weights`. A class of your own will do. `update` gets those of `discount`, `trace_decay`, `ratio`, `interest` and
    `x_expected` that its signature names. With `**kwargs` it gets those that the definition takes. If the definition takes one
    that the class does not, `verify` refuses the class, unless the class has an attribute such as `ignores = ("ratio",)`.

    Learners get features in all forms: float arrays, integer arrays of active indices, pairs (indices, values), and one integer for
    a state. They get `x_next = None` at the end of an episode, and step-sizes that are functions of t. A class with `binary =
    True` gets binary features only.

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
        The differences. `report.exact` says whether all are within the tolerance. `print(report)` shows where the first are.

    Raises
    ------
    TypeError
        If `learner_class` is not a class, lacks a method, needs a second step-size, cannot take what its definition takes, or
        cannot learn from a kind of stream.
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
    name, named = _name(learner_class), _name(truth)
    aim, rows, note = _aim(learner_class, truth), [], ""
    for kind in _chosen(kinds):
        number = KINDS.index(kind) if kind in KINDS else len(KINDS)
        if getattr(_class(learner_class), "binary", False) and not kind.binary:
            continue
        if kind.schedule and "alpha" in getattr(getattr(_class(learner_class), "method", None), "constants", ()):
            continue
        errors: list[float] = []
        forward: list[float] = []
        first = None
        for trial in range(trials):
            pair = _Pair(draw(kind, [seed, number, trial], steps), learner_class, truth)
            note = pair.note
            errors.append(pair.error)
            first = first or pair.first(trial, tolerance)
            forward += [] if aim is None else [pair.error if aim is truth else pair.distance(aim)]
            progress()
        rows.append(Row(kind.name, max(errors), max(forward, default=None), trials, first))
    return Report(name, named, steps, tolerance, tuple(rows), seed, note)


class _Pair:
    """What a learner and its definition learned on one stream."""

    def __init__(self, trial: Trial, learner_class: Any, truth: Any) -> None:
        self.trial, self.wavering, self.acts = trial, Wavering(), _acts(_class(learner_class))
        learner, definition = self._made(learner_class, self.wavering), self._made(truth)
        ours, theirs = inputs.protocol_of(learner), inputs.protocol_of(definition)
        self.provided = theirs.takes(ours.named | {"discount", "trace_decay"})
        ours.check(self.provided, f"the definition {_name(truth)}")
        parts = ours.takes(self.provided)
        extra = ", ".join(part for part in inputs.PARTS if part in parts - self.provided)
        self.note = (
            f"{_name(learner_class)} takes {extra}, and its definition does not: give another one" if extra else ""
        )
        try:
            found = self._followed(learner, parts)
        except Exception as error:
            raise TypeError(
                f"{_name(learner_class)} cannot learn from a stream of the kind {trial.name!r}, with features such as "
                f"{trial.x[0]!r}: {type(error).__name__}: {error}. At the end of an episode x_next is None. A class that takes "
                "float arrays only is verified with kinds=['dense']"
            ) from error
        self.found, self.expected = _alike(found, self._followed(definition, self.provided))

    def _made(self, make: Any, policy: Any = None) -> Any:
        """A learner, or an agent that repeats the actions of the first one."""
        trial, acting = self.trial, {}
        shape: tuple[int, ...] = (trial.n_features,)
        if self.acts:
            shape = (trial.n_features, ACTIONS)
            acting = {"policy": policy or Replay(self.wavering.chosen), "seed": trial.seed}
        # Each transition has its own γ and λ. These are the constants of methods that need constants (γ is 0 at ends).
        constants = {"trace_decay": float(trial.trace_decays.max()), "discount": float(trial.discounts.max())}
        try:
            learner = make(*shape, trial.step_size, **constants, **acting)
        except TypeError as error:
            call = "(n_features, n_actions, step_size, " if self.acts else "(n_features, step_size, "
            raise TypeError(f"{_name(make)} must be made by {call}trace_decay=…, discount=…), but: {error}") from error
        inputs.check_methods(learner)
        return learner

    def _followed(self, learner: Any, parts: Collection[str]) -> list[dict[str, np.ndarray]]:
        with np.errstate(over="ignore", invalid="ignore"):
            return list(follow(learner, self.trial, parts))

    @property
    def error(self) -> float:
        """The largest difference from the definition."""
        return float(_relative(self.found, self.expected)[1].max())

    def distance(self, aim: Any) -> float:
        """The largest difference from the forward view that the method aims at."""
        view = self._made(aim)
        learned = self._followed(view, inputs.protocol_of(view).takes(self.provided))
        return float(_relative(*_alike(self.found, learned))[1].max())

    def first(self, trial: int, tolerance: float) -> Difference | None:
        """The first number that differs by more than the tolerance."""
        apart, errors = _relative(self.found, self.expected)
        wrong = np.flatnonzero(errors > tolerance)
        if not wrong.size:
            return None
        step, column = int(wrong[0]), int(apart[wrong[0]].argmax())
        entries = [
            f"{name}[{', '.join(map(str, at))}]" if at else name
            for name, value in self.found[0].items()
            for at in np.ndindex(value.shape)
        ]
        ours, right = (_stacked(each)[step, column] for each in (self.found, self.expected))
        return Difference(trial, step, entries[column], float(ours), float(right))


History = list[dict[str, np.ndarray]]


def _alike(a: History, b: History) -> tuple[History, History]:
    """Two histories of the same numbers: a definition may lack what is learned beside the weights."""
    shared = [name for name in a[0] if name in b[0]]
    return tuple([{name: each[name] for name in shared} for each in history] for history in (a, b))  # type: ignore[return-value]


def _stacked(history: History) -> np.ndarray:
    return np.array([np.hstack([value.reshape(-1) for value in each.values()]) for each in history])


def _relative(a: History, b: History) -> tuple[np.ndarray, np.ndarray]:
    """|a_t − b_t|, and ‖a_t − b_t‖∞ / max(‖b_0‖∞, …, ‖b_t‖∞). They are infinite where they are not numbers."""
    ours, right = _stacked(a), _stacked(b)
    if ours.shape != right.shape:
        raise TypeError(
            f"the weights of the learner are {a[0]['weights'].shape}, and {b[0]['weights'].shape} by the definition"
        )
    scale = np.maximum.accumulate(np.abs(right).max(axis=1))
    with np.errstate(invalid="ignore"):
        apart = np.abs(ours - right)
        errors = apart.max(axis=1) / np.where(scale > 0.0, scale, 1.0)
    return tuple(np.where(np.isfinite(each), each, np.inf) for each in (apart, errors))  # type: ignore[return-value]


def _name(made: Any) -> str:
    return getattr(_class(made), "__name__", str(made))


def _class(learner_class: Any) -> Any:
    """The class itself, also if it comes with arguments (`functools.partial`)."""
    return learner_class.func if isinstance(learner_class, partial) else learner_class


def _acts(made: Any) -> bool:
    """Whether it is a class of agents, or a function that makes agents."""
    return hasattr(made, "step") or "n_actions" in inspect.signature(made).parameters


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
    usual = own.parameters if isinstance(own, catalog.Method) else {}
    arguments = {**{name: each.default for name, each in usual.items()}, **arguments}
    learned = isinstance(own, catalog.Method) and own.memory == "meta-gradient"
    if not learned and (arguments.get("bound") is not None or arguments.get("meta_step_size") is not None):
        raise ValueError(
            "a learner with bound or meta_step_size has no definition here, because its step-sizes depend on the stream "
            "(docs/guides/step_sizes.md); verify it without them"
        )
    rule = own.resolve("rule") if isinstance(own, catalog.Method) else None
    needed = rule is not None and "beta" in asked(rule) and not getattr(own, "second_is_first", False)
    if needed and "second_step_size" not in arguments:
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


def _chosen(kinds: Sequence[StreamKind | str] | None) -> Sequence[StreamKind]:
    names = {kind.name: kind for kind in KINDS}
    kinds = [kinds] if isinstance(kinds, str) else kinds
    unknown = [kind for kind in kinds or () if isinstance(kind, str) and kind not in names]
    if unknown:
        raise ValueError(f"unknown kind of stream {unknown[0]!r}; known are {', '.join(map(repr, names))}")
    return KINDS if kinds is None else [names[kind] if isinstance(kind, str) else kind for kind in kinds]


def _aim(learner_class: Any, truth: Any) -> Any:
    """The online forward view that a method aims at, as the catalogue says. None for a method that has none."""
    made, first = _class(truth), row_of(learner_class)
    if getattr(made, "per_feature", False):  # the others know one step-size for all features
        return truth
    rows = [row for row in (first, *catalog.METHODS.values()) if row is not None and row.resolve("definition") is made]
    if not rows or rows[0].memory == "meta-gradient":  # its step-sizes are learned, and no forward view is known
        return None
    view = rows[0].resolve("forward_view")
    return truth if view is made else _with_arguments(view, getattr(truth, "keywords", {}))
