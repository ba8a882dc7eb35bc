"""Learners over a memory: one `update` and one `run` for every method of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueonline import inputs
from trueonline.core import memory
from trueonline.core.kernels import call
from trueonline.core.loops import Entries, compiled, is_ours
from trueonline.core.memory import KINDS
from trueonline.core.memory.layout import COMING, LENGTH, PLACE, RATE
from trueonline.core.transition import ARGUMENTS, GAMMA_NEXT, asked
from trueonline.inputs import Features, FeaturesLike, FeatureStream, Schedule, Stream, explains_arguments
from trueonline.learners.docstrings import ADAPTATION, INITIAL, LEARNER, SECOND
from trueonline.learners.interface import Learner
from trueonline.learners.over_memory import OverMemory, idle


class MemoryLearner(OverMemory, Learner):
    """A learner at the cost of the active features. A subclass says which method of the catalogue it is."""

    _shared_parameters = LEARNER + SECOND + ADAPTATION + INITIAL
    _entries: Entries
    # The features of the current state: a buffer in the form of the features last seen, or None between episodes.
    _here: Features | None = None
    # The entry point with everything but features and reward bound to it, if an ordinary transition needs nothing else.
    _quick: Callable | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "method" in vars(cls):
            cls.binary, cls.per_feature = cls.method.binary, cls.method.per_feature
            names = asked(cls.method.resolve("rule"))
            cls.idle_arguments = idle(cls.method)
            cls.takes = tuple(ARGUMENTS[name] for name in ("rho", "interest", "x_expected") if name in names)

    @explains_arguments
    def __init__(
        self,
        n_features: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        initial_weights: ArrayLike | None = None,
        *,
        second_step_size: float | Schedule | None = None,
        bound: float | None = None,
        meta_step_size: float | None = None,
        initial_step_size: float | None = None,
    ) -> None:
        self._set_step_sizes(second_step_size, bound, meta_step_size, initial_step_size)
        if callable(step_size) and "alpha" in self.method.constants:
            raise ValueError(
                "step_size is a constant of this forward view, got a schedule; write alpha[j] in it to let it vary"
            )
        Learner.__init__(self, n_features, step_size, trace_decay, discount, initial_weights)

    def reset(self) -> None:
        self._entries = compiled(self._rule(), self.method.memory, self.binary, self._is_adapted)
        self._allocate()
        self._note_ordinary_numbers()
        self._here = self._quick = None

    def _note_ordinary_numbers(self) -> None:
        """Leave the numbers of an ordinary transition where `step` finds them."""
        if not callable(self.step_size) and not callable(self._second_step_size):
            self._memory.numbers[COMING:PLACE] = self._numbers()

    @property
    def weights(self) -> np.ndarray:
        first, *others = self._each()[: KINDS[self.method.memory].holding]
        return sum((memory.weights(each) for each in others), memory.weights(first))

    @property
    def trace(self) -> np.ndarray:
        return memory.trace(self._each()[0])

    def start(self, x: FeaturesLike) -> None:
        self._stand(self._checked(x, "x"))
        memory.begin(self._memory)

    def _checked(self, x: Any, name: str) -> Features:
        return inputs.features(x, self.n_features, binary=self.binary, name=name)

    def _stand(self, x: Features, room: int = 0) -> None:
        """Hold a copy of x, in a buffer with room for at least that many active features."""
        room = 2 * max(room, inputs.length(x))
        if isinstance(x, tuple):
            self._here = np.resize(x[0], room), np.resize(x[1], room)
        else:
            self._here = x.copy() if x.dtype.kind == "f" else np.resize(x, room)
        self._memory.numbers[LENGTH] = inputs.length(x)
        if not callable(self.step_size) and not callable(self._second_step_size):
            self._quick = partial(self._entries.step, *self._memory, self._here)

    def _standing(self) -> Features:
        """The features of the current state."""
        if self._here is None:
            raise RuntimeError("no episode has begun: call start(x) with its first features before update")
        length = int(self._memory.numbers[LENGTH])
        if isinstance(self._here, tuple):
            return self._here[0][:length], self._here[1][:length]
        return self._here[:length]

    def _numbers(
        self,
        discount: float | None = None,
        trace_decay: float | None = None,
        ratio: float | None = None,
        interest: float | None = None,
    ) -> np.ndarray:
        """The numbers of a transition, in the order of `core.transition`."""
        t = self.steps
        gamma = self.discount if discount is None else inputs.unit("discount", discount)
        lam = self.trace_decay if trace_decay is None else inputs.unit("trace_decay", trace_decay)
        rho = 1.0 if ratio is None else inputs.ratio("ratio", ratio)
        stake = 1.0 if interest is None else inputs.ratio("interest", interest)
        beta = inputs.at("second_step_size", self._second_step_size, t, inputs.ratio)
        alpha = self._parameters.alpha(t)
        if self.per_feature:
            memory.of_features(self._memory, self._memories)[:, RATE] = alpha  # only this transition uses them
            alpha = 1.0
        return np.array([alpha, beta, gamma, lam, rho, stake, self.discount, self.trace_decay])

    def update(
        self,
        reward: float,
        x_next: FeaturesLike | None,
        discount: float | None = None,
        trace_decay: float | None = None,
        ratio: float | None = None,
        interest: float | None = None,
        x_expected: FeaturesLike | None = None,
    ) -> float:
        quick, ready = self._quick, inputs.native(x_next)
        ordinary = discount is None and trace_decay is None and ratio is None and interest is None and x_expected is None
        if ready and quick is not None and ordinary and isinstance(reward, float):
            try:
                return quick(x_next, reward)
            except (TypeError, ValueError):
                pass  # another form of features, or bad input; nothing has changed, and the code below finds out
        self._refuse(ratio=ratio, interest=interest, x_expected=x_expected)
        if self.method.constants:
            self._refuse_others(discount, trace_decay)
        here = self._standing()
        reward = inputs.number("reward", reward)
        numbers = self._numbers(discount, trace_decay, ratio, interest)
        coming = self._memory.numbers[COMING:PLACE]
        ordinary_numbers = coming.copy()
        try:
            if x_next is None:
                numbers[GAMMA_NEXT] = 0.0
                coming[:] = numbers
                delta = call(self._entries.step, *self._memory, self._here, here, reward)
                self._here = self._quick = None
                return delta
            coming[:] = numbers
            return self._transition(reward, here, x_next, x_expected)
        finally:
            coming[:] = ordinary_numbers

    def _transition(self, reward: float, here: Features, x_next: Any, x_expected: Any) -> float:
        """Learn from a transition whose numbers are in their place: at once, or after a look at the features."""
        expecting = x_expected is not None
        entry = self._entries.step_expected if expecting else self._entries.step
        if inputs.native(x_next) and (not expecting or inputs.native(x_expected)):
            try:
                features = (x_next, x_expected) if expecting else (x_next,)
                return entry(*self._memory, self._here, *features, reward)
            except (TypeError, ValueError):
                pass  # another form of features, or bad input
        expected = self._checked(x_expected, "x_expected") if expecting else None
        here, x = inputs.alike(here, self._checked(x_next, "x_next"), self.n_features)
        features = (x,) if expected is None else (x, inputs.like(expected, x, self.n_features))
        self._stand(here, room=inputs.length(x))
        return call(entry, *self._memory, self._here, *features, reward)

    def predict(self, x: FeaturesLike) -> float:
        if inputs.native(x):
            try:
                return self._entries.predict(*self._memory, x)
            except (TypeError, ValueError):
                pass  # another form of features, or bad input
        return call(self._entries.predict, *self._memory, self._checked(x, "x"))

    def predict_many(self, X: FeatureStream) -> np.ndarray:
        rows, length = inputs.stream(X, self.n_features)
        values = np.empty(length)
        bad = call(self._entries.predict_many, *self._memory, rows, values)
        if bad >= 0:
            self._checked(inputs.row(rows, bad), f"X[{bad}]")
        return values

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
    ) -> np.ndarray:
        self._refuse(ratios=ratios, interests=interests, expected=expected)
        self._refuse_others(discounts, trace_decays)
        X, rows = inputs.stream(X, self.n_features)
        R = inputs.rewards(rewards, rows)
        T = len(R)
        fresh = inputs.marks("starts", starts, rows)
        learned = ~fresh[1:]
        series = (
            inputs.along("step_size", 1.0 if self.per_feature else self.step_size, self.steps, learned, inputs.positive),
            inputs.along("second_step_size", self._second_step_size, self.steps, learned, inputs.ratio),
            inputs.units("discounts", discounts, T, self.discount),
            inputs.units("trace_decays", trace_decays, T, self.trace_decay),
            inputs.ratios("ratios", ratios, T),
            inputs.ratios("interests", interests, T),
        )
        means = self._expected(expected, X, rows)
        in_steps = self.per_feature and callable(self.step_size)
        shown = inputs.is_dense(X) and means is None and is_ours(self._rule())  # other rules may not show a bad row
        on_the_way = shown and not in_steps
        if not on_the_way:
            self._check(X, rows)
        if in_steps:
            return self._run_in_steps(X, R, series[2:], fresh, means)
        before = self._snapshot() if on_the_way else None
        if fresh[0] or self._here is None or not inputs.same(self._standing(), inputs.row(X, 0)):
            memory.begin(self._memory)
        values, constants = np.empty(T), (self.discount, self.trace_decay)
        if not call(self._entries.run, *self._memory, X, means, R, series, constants, fresh, values):
            assert before is not None, "the rows were checked"
            self._undo(before)
            self._check(X, rows)
        self._stand(inputs.row(X, rows - 1))
        return values

    def _run_in_steps(
        self, X: Stream, R: np.ndarray, series: tuple, fresh: np.ndarray, means: Stream | None
    ) -> np.ndarray:
        """The same for checked rows, one transition at a time: the kernel of `run` knows one step-size for each feature."""
        self._parameters.check_alphas(self.steps, ~fresh[1:])
        if fresh[0] or self._here is None or not inputs.same(self._standing(), inputs.row(X, 0)):
            self.start(inputs.row(X, 0))
        values = np.empty(len(R))
        names = ("discount", "trace_decay", "ratio", "interest")
        for t, reward in enumerate(R):
            values[t] = self.predict(inputs.row(X, t))
            x_next = inputs.row(X, t + 1)
            if fresh[t + 1]:
                self.start(x_next)
                continue
            numbers = {name: each[min(t, len(each) - 1)] for name, each in zip(names, series, strict=True)}
            more: Any = {name: value for name, value in numbers.items() if name in (*names[:2], *self.takes)}
            more |= {} if means is None else {"x_expected": inputs.row(means, t + 1)}
            self.update(float(reward), x_next, **more)
        return values

    def _expected(self, expected: Any, X: Stream, rows: int) -> Stream | None:
        """The rows of φ̄, checked, and dense if those of X are."""
        if expected is None:
            return None
        means, length = inputs.stream(expected, self.n_features)
        if length != rows:
            raise ValueError(f"expected must have as many rows as X, {rows}, got {length}")
        self._check(means, rows, "expected")
        return inputs.stream_like(means, X, self.n_features)

    def _check(self, X: Stream, rows: int, name: str = "X") -> None:
        """Raise the error of the first unacceptable row, if there is one."""
        bad = call(self._entries.check, *self._memory, X, rows)
        if bad >= 0:
            self._checked(inputs.row(X, bad), f"{name}[{bad}]")

    def _snapshot(self) -> tuple:
        """The state that `_undo` restores: dense rows are checked while they are learned from."""
        place, beyond = self._memory.numbers[:PLACE].copy(), memory.beyond(self._memory, self._memories).copy()
        return place, [memory.snapshot(one) for one in self._each()], beyond

    def _undo(self, before: tuple) -> None:
        place, memories, beyond = before
        self._memory.numbers[:PLACE] = place
        for one, then in zip(self._each(), memories, strict=True):
            memory.undo(one, then)
        memory.beyond(self._memory, self._memories)[:] = beyond

    # --- Saving ---

    def _dump(self) -> dict[str, np.ndarray]:
        parts = self._dump_memory()
        if self._here is not None:
            here = self._standing()
            parts |= {"here_indices": here[0], "here": here[1]} if isinstance(here, tuple) else {"here": here}
        return parts

    def _restore(self, parts: dict[str, np.ndarray]) -> None:
        self._restore_memory(parts)
        self._note_ordinary_numbers()
        if "here" in parts:
            x = (parts["here_indices"], parts["here"]) if "here_indices" in parts else parts["here"]
            self._stand(self._checked(x, "the saved features"))

    def _settings(self) -> dict[str, Any]:
        return {**Learner._settings(self), **self._step_size_settings()}

    def __getstate__(self) -> dict[str, Any]:
        return {**Learner.__getstate__(self), "step_sizes": self._step_size_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state["step_sizes"])
        Learner.__setstate__(self, state)
