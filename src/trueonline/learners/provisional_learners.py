"""Provisional TD(λ) and provisional Q(λ) as learners (after Sutton, Mahmood, Precup and van Hasselt 2014).

The equations were derived here, from the interim forward views in `forward.provisional`; the text of the paper was not at hand.
The two loops here are those of `streams`, for transitions with two vectors of features: φ' of the action that is taken next, and
φ̄', the mean over the actions of the target policy. All rows of a stream are checked before it begins.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from trueonline import inputs
from trueonline.core import memory, two_traces
from trueonline.core.adaptation import ADDS, Form, attach_both_rated
from trueonline.core.forms import copy, row, shortened, view
from trueonline.core.kernels import call, specialise
from trueonline.core.loops import HELP, acceptable, entries, follow, prepare
from trueonline.core.memory import GAMMA, LAM, LENGTH, RATIO, STEPS, V_OLD, attach_two, decay
from trueonline.core.two_traces import value_of_both
from trueonline.inputs import Features, Stream
from trueonline.learners.off_policy import OffPolicyLearner
from trueonline.methods.provisional_q import provisional_q
from trueonline.methods.provisional_td import provisional_td

method, attach = provisional_q, attach_two  # placeholders in the templates below


def step(
    numbers: Any,
    places: Any,
    here: Any,
    alpha: Any,
    gamma_next: Any,
    lam_next: Any,
    ratio: Any,
    x: Any,
    expected: Any,
    reward: Any,
) -> Any:
    """Learn from one transition out of the features in the buffer `here` into x, which it then holds; return δ.

    ValueError, without a reason, for bad input or a buffer that is too small.
    """
    memory = attach(numbers, places)
    head = memory.head
    held, x_next, mean = view(here), view(x), view(expected)
    sound = np.isfinite(reward) and x_next.size <= held.size
    if not (sound and acceptable(memory.n, x_next, False) and acceptable(memory.n, mean, False)):
        raise ValueError
    now = shortened(held, int(head[LENGTH]))
    head[RATIO] = ratio
    gamma, lam = head[GAMMA], head[LAM]
    alpha = prepare(memory, now, reward, mean, alpha, gamma, gamma_next, lam)
    _, delta, mean_value = method(memory, head[V_OLD], now, reward, mean, alpha, gamma, gamma_next, lam)
    follow(memory, now)
    head[V_OLD], head[GAMMA], head[LAM] = mean_value, gamma_next, lam_next
    head[STEPS] += 1.0
    head[LENGTH] = x_next.size
    copy(held, x_next)
    return delta


def run(
    numbers: Any,
    places: Any,
    X: Any,
    expected: Any,
    rewards: Any,
    alphas: Any,
    gammas: Any,
    lams: Any,
    ratios: Any,
    starts: Any,
    values: Any,
) -> None:
    """Learn from a stream whose rows have been checked; write V_t(S_t, A_t) to `values`."""
    memory = attach(numbers, places)
    head = memory.head
    v_old, gamma, lam, steps = head[V_OLD], head[GAMMA], head[LAM], head[STEPS]
    for t in range(rewards.size):
        x = row(X, t)
        if starts[t + 1]:
            values[t] = value_of_both(memory, x)
            v_old = gamma = 0.0
            decay(memory, 0.0)
            continue
        mean, gamma_next = row(expected, t + 1), gammas[min(t, gammas.size - 1)]
        head[RATIO] = ratios[min(t, ratios.size - 1)]
        alpha = alphas[min(t, alphas.size - 1)]
        alpha = prepare(memory, x, rewards[t], mean, alpha, gamma, gamma_next, lam)
        values[t], _, v_old = method(memory, v_old, x, rewards[t], mean, alpha, gamma, gamma_next, lam)
        follow(memory, x)
        gamma, lam = gamma_next, lams[min(t, lams.size - 1)]
        steps += 1.0
    head[V_OLD], head[GAMMA], head[LAM], head[STEPS] = v_old, gamma, lam, steps


class WithExpected(NamedTuple):
    """The entry points of a method, and those for transitions with φ̄'."""

    step: Any
    run: Any
    predict: Any
    check: Any
    step_expected: Any
    run_expected: Any


@cache
def compiled(method: Any, helped: bool) -> WithExpected:
    name = f"{method.py_func.__name__}{'_helped' * helped}"
    names = {"attach": attach_both_rated if helped else attach_two, **(HELP if helped else {})}
    usual = entries(method, cached=True, name=name, value=value_of_both, **names)
    return WithExpected(*usual, *(specialise(t, f"{name}_expected", method=method, **names) for t in (step, run)))


class ProvisionalLearner(OffPolicyLearner):
    """A method over two traces."""

    _memories = 2
    _form = Form(accumulates=ADDS)
    _entries: WithExpected

    def _compiled(self, method: Any, helped: bool) -> WithExpected:
        return compiled(method, helped)

    @property
    def weights(self) -> np.ndarray:
        return two_traces.weights(*self._each())

    @property
    def provisional_weights(self) -> np.ndarray:
        """A fresh dense copy of u: with the next action's ratio ρ, w changes by (ρ − 1)u, and so by −u where ρ = 0."""
        return two_traces.owed(*self._each())


class ProvisionalTD(ProvisionalLearner):
    """Provisional TD(λ): equals its interim forward view at every step. It takes back what the target policy would not have done.

    The trace carries the step-size within it.

    >>> learner = ProvisionalTD(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0, initial_weights=[0.0, 8.0])
    >>> learner.start(0)
    >>> learner.update(0.0, 1)
    8.0
    >>> learner.weights, learner.provisional_weights
    (array([4., 8.]), array([4., 0.]))
    >>> _ = learner.update(0.0, None, ratio=0.0)   # what the target policy would not have done
    >>> learner.weights
    array([0., 8.])
    """

    _methods = (provisional_td, provisional_td)


class ProvisionalQ(ProvisionalLearner):
    """Provisional Q(λ): the same for action values.

    Features are those of a state and the action taken there. A transition also has φ̄', the mean of the features of the state
    entered over the actions of the target policy: with a greedy one, those of the best action. Where it is not given, x_next is
    used for it.

    >>> learner = ProvisionalQ(n_features=4, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> learner.start(0)
    >>> learner.update(1.0, 3, x_expected=([2, 3], [0.5, 0.5]), ratio=1.0)
    1.0
    >>> learner.weights
    array([0.5, 0. , 0. , 0. ])
    """

    takes_expected = True
    _methods = (provisional_q, provisional_q)
    _form = Form(accumulates=ADDS, weighed=0.0)  # the action is given

    def update(
        self,
        reward: float,
        x_next: Any,
        discount: float | None = None,
        trace_decay: float | None = None,
        ratio: float = 1.0,
        x_expected: Any = None,
    ) -> float:
        """As always; `ratio` is ρ of the action that is left now, and `x_expected` is φ̄' (of no use where x_next is None)."""
        if x_next is None or x_expected is None:
            return super().update(reward, x_next, discount, trace_decay, ratio)
        here = self._standing()
        reward = inputs.number("reward", reward)
        gamma = inputs.unit("discount", self.discount if discount is None else discount)
        lam = inputs.unit("trace_decay", self.trace_decay if trace_decay is None else trace_decay)
        numbers = self._parameters.alpha(self.steps), gamma, lam, inputs.ratio("ratio", ratio)
        if inputs.native(x_next) and inputs.native(x_expected):
            try:
                return self._entries.step_expected(*self._memory, self._here, *numbers, x_next, x_expected, reward)
            except (TypeError, ValueError):
                pass  # other forms of features, or bad input; nothing has changed, and the long way finds out
        expected = self._checked(x_expected, "x_expected")
        here, x = inputs.alike(here, self._checked(x_next, "x_next"), self.n_features)
        if _is_dense(x):
            expected = inputs.dense(expected, self.n_features)
        elif _is_dense(expected):
            expected = inputs.as_pair(expected)
        self._stand(here, room=inputs.length(x))
        return call(self._entries.step_expected, *self._memory, self._here, *numbers, x, expected, reward)

    def run(
        self,
        X: Any,
        rewards: Any,
        discounts: Any = None,
        *,
        trace_decays: Any = None,
        starts: Any = None,
        ratios: Any = None,
        expected: Any = None,
    ) -> np.ndarray:
        """As always; row t of `expected` is φ̄ of the state of row t, in any of the forms of X. (Of row 0 nothing is made.)"""
        if expected is None:
            return super().run(X, rewards, discounts, trace_decays=trace_decays, starts=starts, ratios=ratios)
        X, rows = inputs.stream(X, self.n_features)
        means, found = inputs.stream(expected, self.n_features)
        if found != rows:
            raise ValueError(f"expected must have as many rows as X, {rows}, got {found}")
        R = inputs.rewards(rewards, rows)
        gammas = inputs.units("discounts", discounts, len(R), self.discount)
        lams = inputs.units("trace_decays", trace_decays, len(R), self.trace_decay)
        anew = inputs.marks("starts", starts, rows)
        rho = inputs.ratios("ratios", ratios, len(R))
        alphas = self._parameters.alphas(self.steps, ~anew[1:])
        self._check(X, rows)
        bad = call(self._entries.check, *self._memory, means, rows)
        if bad >= 0:
            self._checked(inputs.row(means, bad), f"expected[{bad}]")
        means = _like(means, X, self.n_features)
        if anew[0] or self._here is None or not inputs.same(self._standing(), inputs.row(X, 0)):
            memory.begin(self._memory)
        values = np.empty(len(R))
        call(self._entries.run_expected, *self._memory, X, means, R, alphas, gammas, lams, rho, anew, values)
        self._stand(inputs.row(X, rows - 1))
        return values


def _is_dense(x: Features | Stream) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _like(means: Stream, X: Stream, n: int) -> Stream:
    """These rows, dense where those of X are and sparse where they are."""
    if _is_dense(means) == _is_dense(X):
        return means
    rows = len(means[0]) - 1 if isinstance(means, tuple) else len(means)
    if _is_dense(X):
        return np.array([inputs.dense(inputs.row(means, t), n) for t in range(rows)])
    pairs = [inputs.as_pair(inputs.row(means, t)) for t in range(rows)]
    starts = np.cumsum([0, *(len(indices) for indices, _ in pairs)])
    return starts, np.concatenate([i for i, _ in pairs]), np.concatenate([v for _, v in pairs])
