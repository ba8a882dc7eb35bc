"""`check_learner`: the contract of every learner, also for learners of your own."""

from __future__ import annotations

import copy
import inspect
import pickle
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.checks.verification import check_class
from trueonline.learners.loading import load
from trueonline.words import listed

N, T, DISCOUNT = 6, 40, 0.95  # the stream: its features, its transitions, its discount


@dataclass(frozen=True)
class Contract:
    """The result of `check_learner`.

    Attributes
    ----------
    learner : str
        The name of the class.
    kept : tuple of str
        The names of the checks, all of which passed.
    missing : tuple of str
        The methods of `trueonline.Learner` that the class does not have. Checks that need them were left out.
    """

    learner: str
    kept: tuple[str, ...]
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        missing = listed(self.missing, "or")
        rest = f"; not all was checked, as it has no {missing}" if self.missing else ""
        return f"{self.learner} keeps the contract: {', '.join(self.kept)}{rest}"


def check_learner(learner_class: Callable[..., Any]) -> Contract:
    """Check that a class of learners keeps the contract.

    A learner has `start`, `update` and `weights`. `predict`, `run`, `reset` and `save` are checked if the class has them, as those
    of `trueonline.Learner` are. `update` gets those of `discount`, `ratio`, `probability` and `interest` that its signature names,
    and `run` gets them as `discounts`, `ratios`, `probabilities` and `interests`. The class's own `load(path)` reads its files. If
    the class has no `load`, `trueonline.load` does.

    Parameters
    ----------
    learner_class : class or callable
        The class. `learner_class(n_features=…, step_size=…, trace_decay=…, discount=…)` must return a learner. Give other
        arguments with `functools.partial`.

    Returns
    -------
    Contract
        The checks that passed.

    Raises
    ------
    AssertionError
        With every broken clause of the contract.
    TypeError
        If `learner_class` is not a class, needs other arguments, or cannot take a discount for each transition.

    Examples
    --------
    >>> import trueonline as to
    >>> print(to.check_learner(to.TrueOnlineTD))
    TrueOnlineTD keeps the contract: repeatable, inputs unmodified, weights protected, run equals updates, pieces equal the \
whole, sparse equals dense, copied equals continued, saved equals continued, reset equals new, bad input changes nothing
    """
    check_class(learner_class)
    case = _Case(learner_class)
    try:
        case.look_at(case.new())
    except TypeError as error:
        raise TypeError(
            f"{case.name} needs more than n_features, step_size, trace_decay and discount: {error}; give the rest "
            f"with functools.partial({case.name}, …)"
        ) from None
    broken, passed = [], []
    for name, (needs, check) in CHECKS.items():
        if not case.has(*needs):
            continue
        try:
            check(case)
        except Exception as error:  # every error of a learner is a finding, not a crash
            broken.append(f"{name}: {type(error).__name__}: {error}")
        else:
            passed.append(name)
    if broken:
        raise AssertionError(f"{case.name} breaks the contract:\n  " + "\n  ".join(broken))
    return Contract(case.name, tuple(passed), tuple(name for name in OPTIONAL if not case.has(name)))


class _Case:
    """A learner class and a stream of binary features, which every method can learn from."""

    def __init__(self, learner_class: Callable[..., Any]) -> None:
        self.learner_class = learner_class
        self.name = getattr(learner_class, "__name__", str(learner_class))
        rng = np.random.default_rng(20160801)
        self.X = (rng.random((T + 1, N)) < 0.4).astype(float)
        self.rewards = rng.normal(size=T)
        self.discounts = rng.uniform(0.5, 1.0, size=T)
        if "gamma" in getattr(learner_class, "constants", ()):  # derived from a forward view that has a constant γ
            self.discounts[:] = DISCOUNT
        self.discounts[T // 2] = 0.0
        self.ratios, self.interests = rng.uniform(0.5, 1.5, size=(2, T))
        self.probabilities = rng.uniform(0.0, 0.5, size=T)

    def look_at(self, learner: Any) -> None:
        """Find out what of a transition the learner takes; TypeError if it takes no discount."""
        protocol = inputs.protocol_of(learner)
        protocol.check(["discount"], "the stream of check_learner")
        parts = protocol.takes(["discount"])
        self.parts = {name: each for name, each in self._series().items() if name in parts}
        self.methods = {name for name in OPTIONAL if hasattr(learner, name)}

    def has(self, *names: str) -> bool:
        """Whether the learner has these methods."""
        return self.methods.issuperset(names)

    def _series(self) -> dict[str, np.ndarray]:
        own = {"ratio": self.ratios, "probability": self.probabilities, "interest": self.interests}
        return {"discount": self.discounts, **own}

    def given(self, t: int) -> dict[str, float]:
        """The parts of transition t that the learner takes."""
        return {name: float(each[t]) for name, each in self.parts.items()}

    def new(self, weights: np.ndarray | None = None) -> Any:
        initial = {} if weights is None else {"initial_weights": weights}
        return self.learner_class(n_features=N, step_size=0.1, trace_decay=0.8, discount=DISCOUNT, **initial)

    def learned(self, upto: int = T, form: Callable[[np.ndarray], Any] = np.array) -> Any:
        learner = self.new()
        learner.start(form(self.X[0]))
        self.resume(learner, 0, upto, form)
        return learner

    def resume(self, learner: Any, since: int = 0, upto: int = T, form: Callable[[np.ndarray], Any] = np.array) -> None:
        for t in range(since, upto):
            learner.update(float(self.rewards[t]), form(self.X[t + 1]), **self.given(t))

    def ran(self, learner: Any, since: int = 0, upto: int = T, **options: bool) -> np.ndarray:
        series = {"discount": "discounts", **{one: many for many, one in inputs.SINGULAR_NAMES.items()}}
        parts = {series[name]: each[since:upto] for name, each in self.parts.items()}
        return learner.run(self.X[since : upto + 1], self.rewards[since:upto], **parts, **options)


def _equal(a: Any, b: Any, tolerance: float = 0.0) -> None:
    """Assert that two learners have the same weights and predictions."""
    np.testing.assert_allclose(a.weights, b.weights, rtol=tolerance, atol=tolerance)
    if hasattr(a, "predict"):
        np.testing.assert_allclose(a.predict(np.ones(N)), b.predict(np.ones(N)), rtol=tolerance, atol=tolerance)


def _repeatable(case: _Case) -> None:
    _equal(case.learned(), case.learned())


def _inputs_unmodified(case: _Case) -> None:
    learner, plain = case.new(), case.learned(2)
    given = [row.copy() for row in case.X[:3]]
    learner.start(given[0])
    for t in range(2):
        learner.update(float(case.rewards[t]), given[t + 1], **case.given(t))
    if case.has("predict"):
        learner.predict(given[0])
    for now, then in zip(given, case.X, strict=False):
        np.testing.assert_array_equal(now, then)
    given[2][:] = 7.0  # the learner must have its own copy of the current features
    case.resume(learner, 2)
    case.resume(plain, 2)
    _equal(learner, plain)
    if not case.has("run"):
        return
    X, rewards, discounts = case.X.copy(), case.rewards.copy(), case.discounts.copy()
    case.new().run(X, rewards, discounts)
    for now, then in ((X, case.X), (rewards, case.rewards), (discounts, case.discounts)):
        np.testing.assert_array_equal(now, then)


def _weights_protected(case: _Case) -> None:
    learner = case.learned()
    before = learner.weights.copy()
    with suppress(ValueError):  # read-only, as it should be
        learner.weights[:] = 7.0
    np.testing.assert_array_equal(learner.weights, before)


def _run_equals_updates(case: _Case) -> None:
    ran, updated = case.new(), case.new()
    values = case.ran(ran)
    expected = []
    updated.start(case.X[0])
    for t in range(T):
        expected.append(updated.predict(case.X[t]))
        case.resume(updated, t, t + 1)
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)
    _equal(ran, updated, 1e-10)


def _pieces_equal_whole(case: _Case) -> None:
    whole, pieces = case.new(), case.new()
    case.ran(whole)
    case.ran(pieces, 0, 15)
    case.ran(pieces, 15, T, resume=True)
    _equal(whole, pieces, 1e-10)


def _sparse_equals_dense(case: _Case) -> None:
    expected = case.learned()
    _equal(case.learned(form=np.flatnonzero), expected, 1e-10)
    _equal(case.learned(form=lambda x: (np.flatnonzero(x), x[x != 0.0])), expected, 1e-10)


def _copied_equals_continued(case: _Case) -> None:
    for duplicate in (copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))):
        original = case.learned(T // 3)
        other = duplicate(original)
        case.resume(original, T // 3)
        case.resume(other, T // 3)
        _equal(original, other)


def _saved_equals_continued(case: _Case) -> None:
    original = case.learned(T // 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.npz"
        original.save(path)
        other = getattr(case.learner_class, "load", load)(path)
    case.resume(original, T // 3)
    case.resume(other, T // 3)
    _equal(original, other)


def _reset_equals_new(case: _Case) -> None:
    learner = case.learned()
    learner.reset()
    _equal(learner, case.new())
    case.ran(learner)
    fresh = case.new()
    case.ran(fresh)
    _equal(learner, fresh)


def _bad_input_changes_nothing(case: _Case) -> None:
    x, nan = case.X[5], float("nan")
    bad: list[Callable[[Any], Any]] = [
        lambda learner: learner.update(nan, x),
        lambda learner: learner.update("1", x),
        lambda learner: learner.update(1.0, x * nan),
        lambda learner: learner.update(1.0, np.where(x > 0.0, np.inf, 0.0)),
        lambda learner: learner.update(1.0, x[:-1]),
        lambda learner: learner.update(1.0, np.array([0, N])),
        lambda learner: learner.update(1.0, np.array([-1])),
        lambda learner: learner.update(1.0, np.array([1, 1])),
        lambda learner: learner.update(1.0, (np.array([1]), np.array([nan]))),
        lambda learner: learner.update(1.0, (np.array([1, 2]), np.array([1.0]))),
        lambda learner: learner.update(1.0, "x"),
        lambda learner: learner.update(1.0, x > 0.0),
        lambda learner: learner.update(1.0, x, discount=nan),
        lambda learner: learner.update(1.0, x, discount=1.5),
        lambda learner: learner.update(1.0, x, discount=True),
        lambda learner: learner.update(1.0, np.ma.masked_array(x, x > 0.0)),
        lambda learner: learner.start(x[:-1]),
        lambda learner: learner.start(x * nan),
    ]
    if case.has("predict"):
        bad += [lambda learner: learner.predict(x * nan)]
    if case.has("run"):
        bad += [
            lambda learner: learner.run(case.X, case.rewards[:-1]),
            lambda learner: learner.run(case.X * np.where(np.arange(T + 1) == T, nan, 1.0)[:, None], case.rewards),
            lambda learner: learner.run(case.X, np.where(np.arange(T) == T - 1, np.inf, case.rewards)),
            lambda learner: learner.run(case.X, case.rewards, np.full(T, 2.0)),
            lambda learner: learner.run(np.full((T + 1, 1), N), case.rewards),
            lambda learner: learner.run(case.X[:0], case.rewards[:0]),
        ]
    if "ratio" in case.parts:
        bad += [lambda learner: learner.update(1.0, x, ratio=nan), lambda learner: learner.update(1.0, x, ratio=-1.0)]
    if "probability" in case.parts:
        bad += [
            lambda learner: learner.update(1.0, x, probability=nan),
            lambda learner: learner.update(1.0, x, ratio=0.5, probability=0.6),
        ]
    learner, undisturbed = case.learned(T // 3), case.learned(T // 3)
    for attempt in bad:
        try:
            attempt(learner)
        except (ValueError, TypeError):
            _equal(learner, undisturbed)
        else:
            raise AssertionError(f"accepted what it should refuse: {_called(attempt)}")
    case.resume(learner, T // 3)
    case.resume(undisturbed, T // 3)
    _equal(learner, undisturbed)
    try:
        case.new().update(1.0, x)
    except (RuntimeError, ValueError):
        return
    raise AssertionError("update before start was accepted")


def _called(attempt: Callable[[Any], Any]) -> str:
    """The source of the call, for the message."""
    try:
        return inspect.getsource(attempt).strip().removeprefix("lambda learner: ").rstrip(",")
    except OSError:
        return repr(attempt)


OPTIONAL = ("predict", "run", "reset", "save")  # methods
CHECKS: dict[str, tuple[tuple[str, ...], Callable[[_Case], None]]] = {  # each with the optional methods that it needs
    "repeatable": ((), _repeatable),
    "inputs unmodified": ((), _inputs_unmodified),
    "weights protected": ((), _weights_protected),
    "run equals updates": (("run", "predict"), _run_equals_updates),
    "pieces equal the whole": (("run",), _pieces_equal_whole),
    "sparse equals dense": ((), _sparse_equals_dense),
    "copied equals continued": ((), _copied_equals_continued),
    "saved equals continued": (("save",), _saved_equals_continued),
    "reset equals new": (("reset", "run"), _reset_equals_new),
    "bad input changes nothing": ((), _bad_input_changes_nothing),
}
