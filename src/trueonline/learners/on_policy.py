"""The paper's prediction methods as learners: thin final classes over `methods` and `memory`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from trueonline import inputs
from trueonline.core import memory
from trueonline.core.adaptation import SHORTENS, Form
from trueonline.core.kernels import call
from trueonline.core.loops import compiled
from trueonline.core.memory import LENGTH, STEPS, Buffers
from trueonline.inputs import Features, Schedule
from trueonline.learners.adaptive import Helped
from trueonline.learners.interface import Learner
from trueonline.methods import accumulate_td, replace_td, true_online_td, true_online_td_varying


class MemoryLearner(Helped, Learner):
    """A method over a memory. Where it stands is `_here`, a buffer in the form of the features last seen, or None."""

    _methods: ClassVar[tuple[Any, Any]]  # for a constant step-size, and for a schedule
    _entries: Any

    def __init__(
        self,
        n_features: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        initial_weights: Any = None,
        *,
        bound: float | None = None,
        meta_step_size: float | None = None,
    ) -> None:
        self._set_help(bound, meta_step_size)
        super().__init__(n_features, step_size, trace_decay, discount, initial_weights)

    def reset(self) -> None:
        varying = self._is_helped or callable(self.step_size)
        self._entries = self._compiled(self._methods[varying], self._is_helped)
        self._allocate()
        self._here: Features | None = None
        self._quick: Callable | None = None

    def _compiled(self, method: Any, helped: bool) -> Any:
        return compiled(method, helped)

    def _each(self) -> list[Buffers]:
        return memory.each(self._memory, self._memories)

    @property
    def weights(self) -> np.ndarray:
        return memory.weights(self._each()[0])

    @property
    def trace(self) -> np.ndarray:
        return memory.trace(self._each()[0])

    @property
    def steps(self) -> int:
        return int(self._memory.numbers[STEPS])

    def start(self, x: Any) -> None:
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
        if not callable(self.step_size):
            ordinary = (self.step_size, self.discount, self.trace_decay)
            self._quick = partial(self._entries.step, *self._memory, self._here, *ordinary)

    def _standing(self) -> Features:
        """The features it stands at."""
        if self._here is None:
            raise RuntimeError("no episode has begun: call start(x) with its first features before update")
        length = int(self._memory.numbers[LENGTH])
        if isinstance(self._here, tuple):
            return self._here[0][:length], self._here[1][:length]
        return self._here[:length]

    def update(
        self, reward: float, x_next: Any, discount: float | None = None, trace_decay: float | None = None
    ) -> float:
        quick, ready = self._quick, inputs.native(x_next)
        if ready and quick is not None and discount is None and trace_decay is None and isinstance(reward, float):
            try:
                return quick(x_next, reward)
            except (TypeError, ValueError):
                pass  # another form of features, or bad input; nothing has changed, and the long way finds out
        here = self._standing()
        reward = inputs.number("reward", reward)
        gamma = inputs.unit("discount", self.discount if discount is None else discount)
        lam = inputs.unit("trace_decay", self.trace_decay if trace_decay is None else trace_decay)
        alpha = self._parameters.alpha(self.steps)
        if x_next is None:
            delta = self._step(alpha, 0.0, lam, here, reward)
            self._here = self._quick = None
            return delta
        if ready:
            try:
                return self._entries.step(*self._memory, self._here, alpha, gamma, lam, x_next, reward)
            except (TypeError, ValueError):
                pass  # as above
        here, x = inputs.alike(here, self._checked(x_next, "x_next"), self.n_features)
        self._stand(here, room=inputs.length(x))
        return self._step(alpha, gamma, lam, x, reward)

    def _step(self, *transition: Any) -> float:
        return call(self._entries.step, *self._memory, self._here, *transition)

    def predict(self, x: Any) -> float:
        if inputs.native(x):
            try:
                return self._entries.predict(*self._memory, x)
            except (TypeError, ValueError):
                pass  # another form of features, or bad input
        return call(self._entries.predict, *self._memory, self._checked(x, "x"))

    def run(
        self, X: Any, rewards: Any, discounts: Any = None, *, trace_decays: Any = None, starts: Any = None
    ) -> np.ndarray:
        return self._run(X, rewards, discounts, trace_decays, starts)

    def _run(
        self,
        X: Any,
        rewards: Any,
        discounts: Any,
        trace_decays: Any,
        starts: Any,
        ratios: Any = None,
        interests: Any = None,
    ) -> np.ndarray:
        X, rows = inputs.stream(X, self.n_features)
        R = inputs.rewards(rewards, rows)
        gammas = inputs.units("discounts", discounts, len(R), self.discount)
        lams = inputs.units("trace_decays", trace_decays, len(R), self.trace_decay)
        rhos = inputs.ratios("ratios", ratios, len(R))
        stakes = inputs.ratios("interests", interests, len(R))
        anew = inputs.marks("starts", starts, rows)
        alphas, betas = self._parameters.alphas(self.steps, ~anew[1:]), self._betas(~anew[1:])
        dense = isinstance(X, np.ndarray) and X.dtype.kind == "f"
        if not dense:
            self._check(X, rows)
        values = np.empty(len(R))
        before = [memory.snapshot(one) for one in self._each()] if dense else []
        rates = self._of_features() if self._is_helped and dense else None
        rates_before = None if rates is None else rates.copy()
        if anew[0] or self._here is None or not inputs.same(self._standing(), inputs.row(X, 0)):
            memory.begin(self._memory)
        stream = (X, R, alphas, gammas, lams, rhos, stakes, betas, anew, values)
        if not call(self._entries.run, *self._memory, *stream):
            for one, then in zip(self._each(), before, strict=True):
                memory.undo(one, then)
            if rates is not None:
                rates[:] = rates_before
            self._check(X, rows)
        self._stand(inputs.row(X, rows - 1))
        return values

    def _betas(self, learned: np.ndarray) -> np.ndarray:
        """The second step-size of each transition, for methods that have one."""
        return np.ones(1)

    def _check(self, X: inputs.Stream, rows: int) -> None:
        """Raise what is wrong with the first unacceptable row, if there is one."""
        bad = call(self._entries.check, *self._memory, X, rows)
        if bad >= 0:
            self._checked(inputs.row(X, bad), f"X[{bad}]")

    def _dump(self) -> dict[str, np.ndarray]:
        parts = self._dump_memory()
        if self._here is not None:
            here = self._standing()
            parts |= {"here_indices": here[0], "here": here[1]} if isinstance(here, tuple) else {"here": here}
        return parts

    def _restore(self, parts: dict[str, np.ndarray]) -> None:
        self._restore_memory(parts)
        if "here" in parts:
            x = (parts["here_indices"], parts["here"]) if "here_indices" in parts else parts["here"]
            self._stand(self._checked(x, "the saved features"))

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), **self._help_settings()}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "help": self._help}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._help = state["help"]
        super().__setstate__(state)


class AccumulateTD(MemoryLearner):
    """TD(λ) with accumulating traces (Algorithm 1).

    Approximates the online λ-return algorithm as α → 0 (Theorem 1). Can diverge for large α and λ; `diverged` tells.

    >>> learner = AccumulateTD(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> learner.update(0.0, 1), learner.update(1.0, None)
    (0.0, 1.0)
    >>> learner.weights
    array([0.5, 0.5])
    """

    _methods = (accumulate_td, accumulate_td)
    _form = Form(accumulates=SHORTENS)


class ReplaceTD(MemoryLearner):
    """TD(λ) with replacing traces, for binary features (section 2.3).

    >>> learner = ReplaceTD(n_features=1, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.run([0, 0, 0], rewards=[0.0, 1.0], discounts=[1.0, 0.0])
    array([0., 0.])
    >>> learner.weights, learner.trace
    (array([0.5]), array([1.]))
    """

    binary = True
    _methods = (replace_td, replace_td)


class TrueOnlineTD(MemoryLearner):
    """True online TD(λ): the online λ-return algorithm, exactly, at every step (Algorithm 2).

    With a schedule as step-size it is Algorithm 4, exact under any sequence, and `trace` is e⁺. With one integer as
    features, the state, it is the tabular method (Algorithm 6).

    >>> learner = TrueOnlineTD(n_features=3, step_size=lambda t: 1.0 / (t + 1), trace_decay=0.9, discount=1.0)
    >>> values = learner.run([0, 1, 2, 2], rewards=[1.0, 1.0, 1.0], discounts=[1.0, 1.0, 0.0])
    >>> learner.weights.round(3)
    array([2.71 , 0.95 , 0.333])
    """

    _methods = (true_online_td, true_online_td_varying)
