"""Learners over a memory: one `update` and one `run` for every method of the catalogue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from trueonline import inputs
from trueonline.core import memory
from trueonline.core.checking import SEEN
from trueonline.core.compiling.kernels import call
from trueonline.core.loops import Entries, compiled, is_ours
from trueonline.core.memory import KINDS
from trueonline.core.memory.layout import COMING, LENGTH, PARAMETERS, PLACE, RATE
from trueonline.core.memory.two_traces import list_alike
from trueonline.core.thread_guard import get_ident, guarded
from trueonline.core.transition import ARGUMENTS, GAMMA_NEXT, LAM_NEXT, asked
from trueonline.inputs import (
    FLOATS,
    INTEGERS,
    ONE,
    Features,
    FeaturesLike,
    FeatureStream,
    Schedule,
    Stream,
    explains_arguments,
)
from trueonline.learners.docstrings import ADAPTATION, INITIAL, LEARNER, SECOND
from trueonline.learners.interface import Learner
from trueonline.learners.over_memory import OverMemory, idle, take_parameters

DENSE, SPARSE = "dense", "sparse"
WHOLE = frozenset((int, np.int64, np.int32))
NUMBERS = frozenset((float, int, np.float64, np.float32, np.int64, np.int32))


def plain_number(reward: Any) -> float:
    """The reward as a float. TypeError for a boolean, which Numba would take for a number, and for anything else."""
    if type(reward) not in NUMBERS:
        raise TypeError
    return float(reward)


class MemoryLearner(OverMemory, Learner):
    """A learner at the cost of the active features. A subclass says which method of the catalogue it is."""

    _shared_parameters = LEARNER + SECOND + ADAPTATION + INITIAL
    takes: ClassVar[Collection[str]] = ()
    _entries: Entries
    # The form of the features of the current state, of which the buffers hold a copy. None between episodes.
    _form: str | None = None
    # The entry point with the buffers bound to it, unless step-sizes change with time.
    _quick: Callable | None = None
    _read: Callable

    def __init_subclass__(cls, **options: Any) -> None:
        take_parameters(cls)
        super().__init_subclass__(**options)
        if "method" in vars(cls):
            cls.binary, cls.per_feature = cls.method.binary, cls.method.per_feature
            names = asked(cls.method.resolve("rule"))
            cls.idle_arguments = idle(cls.method)
            cls.takes = tuple(ARGUMENTS[name] for name in ("rho", "pi", "interest", "x_expected") if name in names)

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
        if second_step_size is None and self.method.second_is_first:
            second_step_size = step_size
        self._set_step_sizes(second_step_size, bound, meta_step_size, initial_step_size)
        if callable(step_size) and "alpha" in self.method.constants:
            raise ValueError(
                "step_size is a constant of this forward view, got a schedule; write alpha[j] in it to let it vary"
            )
        Learner.__init__(self, n_features, step_size, trace_decay, discount, initial_weights)

    @guarded
    def reset(self) -> None:
        self._entries = compiled(self._rule(), self.method.memory, self._is_adapted)
        self._allocate()
        self._form = None
        self._bind()

    def _bind(self) -> None:
        """Leave the numbers of an ordinary transition where `step` finds them, and bind the buffers to it."""
        self._singles: dict[int, np.ndarray] = defaultdict(partial(np.zeros, 1, np.int64))  # of each thread
        self._usual = self._parameters.discount, self._parameters.trace_decay
        self._coming = self._memory.numbers[COMING:PARAMETERS]
        self._quick = None
        self._read = partial(self._entries.predict, *self._memory)
        if not callable(self.step_size) and not callable(self._second_step_size):
            self._coming[:] = self._numbers()
            self._quick = partial(self._entries.step, *self._memory)

    @property
    @guarded
    def weights(self) -> np.ndarray:
        first, *others = memory.each(self._memory)[: KINDS[self.method.memory].holding]
        return inputs.read_only(sum((memory.weights(each) for each in others), memory.weights(first)))

    @property
    @guarded
    def trace(self) -> np.ndarray:
        return inputs.read_only(memory.trace(memory.each(self._memory)[0]))

    @guarded
    def start(self, x: FeaturesLike) -> None:
        self._stand(self._checked(x, "x"))
        memory.begin(self._memory)

    def _checked(self, x: Any, name: str) -> Features:
        return inputs.features(x, self.n_features, binary=self.binary, name=name)

    def _stand(self, x: Features) -> None:
        """Hold a copy of x, and bring the memories into the layout for such features."""
        self._lay_out(inputs.is_dense(x))
        indices, values = memory.here(self._memory)
        length = inputs.length(x)
        if inputs.is_dense(x):
            values[:] = x
        else:
            indices[:length], values[:length] = inputs.as_pair(x)
        self._memory.numbers[LENGTH] = length
        self._form = DENSE if inputs.is_dense(x) else SPARSE

    def _lay_out(self, dense: bool) -> None:
        """Bring the memories into the layout for dense features, or for sparse ones."""
        if self.method.memory == "meta-gradient":  # it treats dense features as sparse
            return
        memories = memory.each(self._memory)
        kept = memory.of_features(self._memory) if self._is_adapted else np.empty(0)
        if KINDS[self.method.memory].usage:
            memory.pay(memories[-1])
        if not dense:
            list_alike(memories[: KINDS[self.method.memory].holding])
        for one in (*memories, *([memory.meta(self._memory)] if self._is_adapted else [])):
            memory.lay_out(one, dense)
        if self._is_adapted and (now := memory.of_features(self._memory)).strides != kept.strides:
            now[:] = kept.copy()

    def _here(self) -> Features | None:
        """The features of the current state. None between episodes."""
        if self._form is None:
            return None
        indices, values = memory.here(self._memory)
        length = int(self._memory.numbers[LENGTH])
        return values.copy() if self._form is DENSE else (indices[:length].astype(np.int64), values[:length].copy())

    def _numbers(
        self,
        discount: float | None = None,
        trace_decay: float | None = None,
        ratio: float | None = None,
        interest: float | None = None,
        probability: float | None = None,
    ) -> np.ndarray:
        """The numbers of a transition, in the order of `core.transition`."""
        t = self.steps
        gamma = self.discount if discount is None else inputs.unit("discount", discount)
        lam = self.trace_decay if trace_decay is None else inputs.unit("trace_decay", trace_decay)
        rho = 1.0 if ratio is None else inputs.ratio("ratio", ratio)
        pi = min(rho, 1.0) if probability is None else inputs.probability("probability", probability, rho)
        stake = 1.0 if interest is None else inputs.ratio("interest", interest)
        beta = inputs.at("second_step_size", self._second_step_size, t, inputs.ratio)
        alpha = self._parameters.alpha(t)
        if self.per_feature:
            memory.of_features(self._memory)[:, RATE] = alpha  # only this transition uses them
            alpha = 1.0
        return np.array([alpha, beta, gamma, lam, rho, pi, stake, self.discount, self.trace_decay])

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
        form: str | None
        quick = self._quick
        if quick is not None and ratio is None and interest is None and x_expected is None and probability is None:
            if type(x_next) is ndarray and x_next.dtype is FLOATS and x_next.flags.carray:
                x, values, form = x_next, None, DENSE
            elif type(x_next) is ndarray and x_next.dtype is INTEGERS and x_next.flags.carray:
                x, values, form = x_next, ONE, SPARSE
            else:
                x, values, form = self._parts(x_next)
            if form is not None:
                try:
                    if type(reward) is not float:
                        reward = plain_number(reward)
                    gamma, lam = self._usual
                    if discount is not None or trace_decay is not None:
                        gamma, lam = self._varied(discount, trace_decay)
                    # From here on no other thread can begin a call before this call has ended (`thread_guard`).
                    if form is self._form and not self._users:
                        return quick(x, values, reward, gamma, lam)
                except (OverflowError, TypeError, ValueError):
                    pass  # no kernel yet, or bad input; nothing has changed, and the code below finds out
        return self._update(reward, x_next, discount, trace_decay, ratio, interest, x_expected, probability)

    def _parts(self, x: Any) -> tuple[Any, Any, str | None]:
        """Features as kernels take them, and their form. The form is None if they have to be checked first."""
        kind = type(x)
        if kind is ndarray:
            kind = x.dtype
            if kind is INTEGERS:
                return (x if x.flags.carray else x.copy()), ONE, SPARSE  # kernels take contiguous and writable arrays
            if kind is FLOATS:
                return (x if x.flags.carray else x.copy()), None, DENSE
        elif kind in WHOLE:
            if -1 < x < self._parameters.n_features:
                single = self._singles[get_ident()]
                single[0] = x
                return single, ONE, SPARSE
        elif kind is tuple and inputs.native(x) and x[0].dtype is INTEGERS:
            return *x, SPARSE
        return None, None, None

    def _varied(self, discount: Any, trace_decay: Any) -> tuple[Any, Any]:
        """γ and λ of the state that is entered. ValueError if they have to be checked first."""
        gamma, lam = self._usual
        gamma, lam = gamma if discount is None else discount, lam if trace_decay is None else trace_decay
        if self.method.constants or not type(gamma) is type(lam) is float:
            raise ValueError
        return gamma, lam

    @guarded
    def _update(
        self,
        reward: Any,
        x_next: Any,
        discount: Any,
        trace_decay: Any,
        ratio: Any,
        interest: Any,
        x_expected: Any,
        probability: Any,
    ) -> float:
        """Learn from any transition, after a look at everything that is given."""
        self._refuse(ratio=ratio, interest=interest, x_expected=x_expected, probability=probability)
        if self.method.constants:
            self._refuse_others(discount, trace_decay)
        here = self._here()
        if here is None:
            raise RuntimeError("no episode has begun: call start(x) with its first features before update")
        reward = inputs.number("reward", reward)
        numbers = self._numbers(discount, trace_decay, ratio, interest, probability)
        x = here if x_next is None else self._checked(x_next, "x_next")
        expected = None if x_expected is None else self._checked(x_expected, "x_expected")
        if x_next is None:
            numbers[GAMMA_NEXT] = 0.0
        elif inputs.is_dense(x) != (self._form is DENSE):
            self._stand(inputs.like(here, x, self.n_features))
        coming, ordinary = self._coming, self._coming.copy()
        coming[:] = numbers
        entered = reward, float(numbers[GAMMA_NEXT]), float(numbers[LAM_NEXT])
        try:
            if expected is None:
                delta = call(self._entries.step, *self._memory, *inputs.given(x), *entered)
            else:
                both = *inputs.given(x), *inputs.given(inputs.like(expected, x, self.n_features))
                delta = call(self._entries.step_expected, *self._memory, *both, *entered)
        finally:
            coming[:] = ordinary
        if x_next is None:
            self._form = None
        return delta

    def predict(self, x: FeaturesLike) -> float:
        form: str | None
        if type(x) is ndarray and x.flags.carray and x.dtype is INTEGERS:
            features, values, form = x, ONE, SPARSE
        else:
            features, values, form = self._parts(x)
        if form is not None:
            try:
                if not self._users:  # as in `update`
                    return self._read(features, values)
            except (TypeError, ValueError):
                pass  # no kernel yet, or bad input
        return self._predict(x)

    @guarded
    def _predict(self, x: FeaturesLike) -> float:
        """The same, after a look at x."""
        return call(self._entries.predict, *self._memory, *inputs.given(self._checked(x, "x")))

    @guarded
    def predict_many(self, X: FeatureStream) -> np.ndarray:
        rows, length = inputs.stream(X, self.n_features)
        values = np.empty(length)
        bad = call(self._entries.predict_many, *self._memory, rows, values)
        if bad >= 0:
            self._checked(inputs.row(rows, bad), f"X[{bad}]")
        return values

    @guarded
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
        self._refuse_others(discounts, trace_decays)
        X, rows = inputs.stream(X, self.n_features)
        R = inputs.rewards(rewards, rows)
        T = len(R)
        fresh = inputs.marks("starts", starts, rows)
        learned = ~fresh[1:]
        rhos = inputs.ratios("ratios", ratios, T)
        series = (
            inputs.along("step_size", 1.0 if self.per_feature else self.step_size, self.steps, learned, inputs.positive),
            inputs.along("second_step_size", self._second_step_size, self.steps, learned, inputs.ratio),
            inputs.units("discounts", discounts, T, self.discount),
            inputs.units("trace_decays", trace_decays, T, self.trace_decay),
            rhos,
            inputs.probabilities("probabilities", probabilities, T, rhos),
            inputs.ratios("interests", interests, T),
        )
        means = self._expected(expected, X, rows)
        if self.per_feature and callable(self.step_size):
            X = self._own(X, rows)
            return self._run_in_steps(X, R, series[2:], fresh, means, resume)
        # A bad row that is dense shows in its value, unless a rule of one's own does not look at it, or it begins a stream.
        shown = inputs.is_dense(X) and means is None and is_ours(self._rule()) and not (self.binary and fresh[1:].any())
        if shown:
            for t in (0, rows - 1):
                self._checked(X[t], f"X[{t}]")
        else:
            X = self._own(X, rows)
        begins = inputs.begins(resume, fresh[0], self._here(), inputs.row(X, 0))
        before = self._snapshot() if shown else None
        table = np.empty((max(map(len, series)), PARAMETERS - COMING))
        table[:, -2:] = self.discount, self.trace_decay
        for column, each in enumerate(series):
            table[:, column] = each
        values = np.empty(T)
        try:
            for sure in (not shown, True):
                self._lay_out(inputs.is_dense(X))
                if begins:
                    memory.begin(self._memory)
                if call(self._entries.run, *self._memory, X, means, R, table, fresh, sure, values):
                    break
                assert before is not None, "the rows were checked"
                self._undo(before)
                self._own(X, rows)  # if all are good, weights have diverged
        except (
            BaseException
        ):  # such as a bad row: the features that the buffers hold keep their form, so the memories must
            if self._form is not None:
                self._lay_out(self._form is DENSE)
            raise
        self._stand(inputs.row(X, rows - 1))
        return values

    def _run_in_steps(
        self, X: Stream, R: np.ndarray, series: tuple, fresh: np.ndarray, means: Stream | None, resume: bool
    ) -> np.ndarray:
        """The same for checked rows, one transition at a time: the kernel of `run` knows one step-size for each feature."""
        self._parameters.check_alphas(self.steps, ~fresh[1:])
        if inputs.begins(resume, fresh[0], self._here(), inputs.row(X, 0)):
            self.start(inputs.row(X, 0))
        values = np.empty(len(R))
        names = ("discount", "trace_decay", "ratio", "probability", "interest")
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
        return inputs.stream_like(self._own(means, rows, "expected"), X, self.n_features)

    def _own(self, X: Stream, rows: int, name: str = "X") -> Stream:
        """The stream with indices that nothing else writes to. Raises the error of the first unacceptable row, if there is one."""
        sparse = isinstance(X, tuple)
        indices = np.empty(len(X[1]) if sparse else 0, np.int32)
        bad = call(self._entries.check, self.n_features, self.binary, X, rows, np.full(SEEN, -1), indices)
        if bad >= 0:
            self._checked(inputs.row(X, bad), f"{name}[{bad}]")
            raise ValueError(
                f"{name}[{bad}] changed while it was checked: write to the array after the call, or give a copy"
            )
        return (X[0], indices, X[2]) if sparse else X

    def _snapshot(self) -> tuple:
        """The state that `_undo` restores: dense rows are checked while they are learned from."""
        place, beyond = self._memory.numbers[:PLACE].copy(), memory.beyond(self._memory).copy()
        return place, [memory.snapshot(one) for one in memory.each(self._memory)], beyond

    def _undo(self, before: tuple) -> None:
        place, memories, beyond = before
        self._memory.numbers[:PLACE] = place
        for one, then in zip(memory.each(self._memory), memories, strict=True):
            memory.undo(one, then)
        memory.beyond(self._memory)[:] = beyond

    # --- Saving ---

    @guarded
    def _dump(self) -> dict[str, np.ndarray]:
        parts = self._dump_memory()
        if (here := self._here()) is not None:
            parts |= {"here_indices": here[0], "here": here[1]} if isinstance(here, tuple) else {"here": here}
        return parts

    def _restore(self, parts: dict[str, np.ndarray]) -> None:
        self._restore_memory(parts)
        self._bind()
        if "here" in parts:
            x = (parts["here_indices"], parts["here"]) if "here_indices" in parts else parts["here"]
            self._stand(self._checked(x, "the saved features"))

    def _settings(self) -> dict[str, Any]:
        return {**Learner._settings(self), **self._step_size_settings()}
