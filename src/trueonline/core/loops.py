"""The loops around a method: one transition (`step`) and a whole stream (`run`), each a single compiled call.

A learner's state between two calls lies in the header of its memory: V_old, and γ and λ of the state it stands in.
Input is checked here, where it costs least, and before anything changes; what is wrong is then worked out in Python.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from trueonline.core import adaptation as step_sizes
from trueonline.core.adaptation import attach_rated, attach_three_rated, attach_two_rated
from trueonline.core.forms import (
    Dense,
    certain,
    copy,
    earlier,
    entry,
    is_a,
    row,
    shortened,
    view,
)
from trueonline.core.kernels import kernel, operation, outlined, specialise
from trueonline.core.memory import (
    BETA,
    GAMMA,
    INTEREST,
    LAM,
    LAM_NEXT,
    LENGTH,
    NOT_BINARY,
    RATIO,
    RATIO_OLD,
    STEPS,
    V_OLD,
    attach,
    attach_three,
    attach_two,
    decay,
    settle_all,
    value,
)
from trueonline.methods import (
    accumulate_td,
    dutch_monte_carlo,
    emphatic_td,
    gtd,
    replace_td,
    true_online_emphatic_td,
    true_online_gtd,
    true_online_td,
    true_online_td_varying,
)

# Placeholders in the templates below, for which `specialise` puts each method.
method = true_online_td
BINARY = False
MORE = False  # whether it asks for interests and second step-sizes


def step(numbers, places, here, alpha, gamma_next, lam_next, x, reward):
    """Learn from one transition out of the features in the buffer `here` into x, which it then holds; return δ.

    ValueError, without a reason, for bad input or a buffer that is too small.
    """
    memory = attach(numbers, places)
    head = memory.head
    held, x_next = view(here), view(x)
    if not (np.isfinite(reward) and x_next.size <= held.size and acceptable(memory.n, x_next, BINARY)):
        raise ValueError
    now = shortened(held, int(head[LENGTH]))
    v_old, gamma, lam = head[V_OLD], head[GAMMA], head[LAM]
    head[LAM_NEXT] = lam_next
    alpha = prepare(memory, now, reward, x_next, alpha, gamma, gamma_next, lam)
    _, delta, v_next = method(memory, v_old, now, reward, x_next, alpha, gamma, gamma_next, lam)
    follow(memory, now)
    settle_all(memory, now)
    head[RATIO_OLD] = head[RATIO]
    head[V_OLD], head[GAMMA], head[LAM] = v_next, gamma_next, lam_next
    head[STEPS] += 1.0
    head[LENGTH] = x_next.size
    copy(held, x_next)
    return delta


def run(numbers, places, X, rewards, alphas, gammas, lams, ratios, interests, betas, starts, values):
    """Learn from a stream; write V_t(S_t) to `values`; return whether all was well.

    A row t + 1 with `starts` set begins anew: no transition leads into it. An array of one entry stands for a constant.
    Sparse rows must have been checked. Dense rows are checked on the way, at no cost: one that is not finite shows itself
    by its value, and `replace` counts what is not binary. So for dense rows the caller must be able to undo.
    """
    memory = attach(numbers, places)
    head = memory.head
    v_old, gamma, lam, steps = head[V_OLD], head[GAMMA], head[LAM], head[STEPS]
    x, last = row(X, 0), row(X, rewards.size)
    if not (certain(x) or (acceptable(memory.n, x, BINARY) and acceptable(memory.n, last, BINARY))):
        return False
    for t in range(rewards.size):
        x_next = row(X, t + 1)
        if starts[min(t + 1, starts.size - 1)]:
            settle_all(memory, earlier(x))
            v, v_next = value(memory, x), value(memory, x_next)
            v_old = gamma = 0.0
            decay(memory, 0.0)  # those beside it decay by γ = 0 at the next step
            if BINARY and not (certain(x) or acceptable(memory.n, x, BINARY)):  # it is not imprinted, so not looked at
                return False
        else:
            alpha = alphas[min(t, alphas.size - 1)]
            gamma_next, lam_next = gammas[min(t, gammas.size - 1)], lams[min(t, lams.size - 1)]
            head[RATIO], head[LAM_NEXT] = ratios[min(t, ratios.size - 1)], lam_next
            if MORE:
                head[INTEREST], head[BETA] = interests[min(t, interests.size - 1)], betas[min(t, betas.size - 1)]
            alpha = prepare(memory, x, rewards[t], x_next, alpha, gamma, gamma_next, lam)
            v, _, v_next = method(memory, v_old, x, rewards[t], x_next, alpha, gamma, gamma_next, lam)
            follow(memory, x)
            v_old, gamma, lam = v_next, gamma_next, lam_next
            head[RATIO_OLD] = head[RATIO]
            steps += 1.0
        sound = np.isfinite(v_next) and not (BINARY and head[NOT_BINARY] != 0.0)
        if not (certain(x) or sound or acceptable(memory.n, x_next, BINARY)):
            return False
        values[t] = v
        x = x_next
    settle_all(memory, earlier(x))
    head[V_OLD], head[GAMMA], head[LAM], head[STEPS] = v_old, gamma, lam, steps
    return head[NOT_BINARY] == 0.0


@kernel
def prepare(memory, x, reward, x_next, alpha, gamma, gamma_next, lam):
    """A placeholder: α as it is. (`step_sizes` has another.)"""
    return alpha


@kernel
def follow(memory, x):
    """A placeholder: nothing."""


def predict(numbers, places, x):
    """wᵀx; ValueError, without a reason, for bad input."""
    memory = attach(numbers, places)
    features = view(x)
    if not acceptable(memory.n, features, BINARY):
        raise ValueError
    return value(memory, features)


def check(numbers, places, X, rows):
    """The number of the first unacceptable row, or −1."""
    memory = attach(numbers, places)
    for t in range(rows):
        if not acceptable(memory.n, row(X, t), BINARY):
            return t
    return -1


# --- Checks ---------------------------------------------------------------------------------------


def acceptable(n, x, binary):
    """Whether x has the right length or distinct indices in range, and finite (or, if so wanted, only 0/1) values."""
    raise NotImplementedError("for kernels only")


@operation(acceptable, reassociate=True)
def _acceptable_dense(n, x, binary):
    if not is_a(Dense, x):
        return None

    def acceptable_dense(n, x, binary):
        if x.size != n:
            return False
        wrong = 0
        for i in range(x.size):
            x_i = x.values[i]
            wrong += not np.isfinite(x_i) or (binary and x_i != 0.0 and x_i != 1.0)
        return wrong == 0

    return acceptable_dense


@operation(acceptable)
def _acceptable_sparse(n, x, binary):
    if is_a(Dense, x):
        return None

    def acceptable_sparse(n, x, binary):
        # Few indices seldom share their last six binary digits, or the six before: then none need be compared with
        # another. All of this is reductions, which are vectorised.
        wrong, last, before, most = 0, np.uint64(0), np.uint64(0), np.uint64(n)
        for j in range(x.size):
            i, x_i = entry(x, j)
            wrong += i >= most or not np.isfinite(x_i) or (binary and x_i != 0.0 and x_i != 1.0)
            last |= np.uint64(1) << (i & np.uint64(63))
            before |= np.uint64(1) << ((i >> np.uint64(6)) & np.uint64(63))
        distinct = ones(last) == x.size or ones(before) == x.size
        return x.size >= 0 and wrong == 0 and (distinct or distinct_for_sure(x.indices, x.size))

    return acceptable_sparse


@intrinsic
def ones(context: Any, word: Any) -> Any:
    """How many binary digits of a word are 1."""
    return types.int64(types.uint64), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


@outlined
def distinct_for_sure(indices, size):
    """Whether no index stands twice: whether they rise, or else by comparing all pairs, or, when many, by sorting."""
    falls = same = 0
    for j in range(1, size):
        falls += indices[j] <= indices[j - 1]
    if falls == 0:
        return True
    if size <= 32:
        for j in range(1, size):
            for k in range(j):
                same += indices[j] == indices[k]
        return same == 0
    ordered = np.empty(size, np.int64)
    for j in range(size):
        ordered[j] = indices[j]
    ordered.sort()
    for j in range(1, size):
        same += ordered[j] == ordered[j - 1]
    return same == 0


# --- The methods, compiled ------------------------------------------------------------------------


class Entries(NamedTuple):
    """The compiled entry points of one method."""

    step: Any
    run: Any
    predict: Any
    check: Any


class Shape(NamedTuple):
    """What its entry points have to know of a method."""

    binary: bool = False
    memories: int = 1
    more: bool = False  # whether it asks for interests and second step-sizes


SHAPES = MappingProxyType(
    {
        **dict.fromkeys((accumulate_td, true_online_td, true_online_td_varying, dutch_monte_carlo), Shape()),
        replace_td: Shape(binary=True),
        **dict.fromkeys((emphatic_td, true_online_emphatic_td), Shape(more=True)),
        gtd: Shape(memories=2, more=True),
        true_online_gtd: Shape(memories=3, more=True),
    }
)
ATTACH = ((attach, attach_rated), (attach_two, attach_two_rated), (attach_three, attach_three_rated))
NO_HELP = "only methods of this package take bound and meta_step_size: leave them out for one of your own"
HELP = MappingProxyType({"prepare": step_sizes.prepare, "follow": step_sizes.follow})


def entries(method: Any, *, cached: bool = False, name: str = "", **names: Any) -> Entries:
    """The entry points of a method, with these names in the templates.

    `cached` is for this package's own methods: an edit elsewhere would go unnoticed.
    """
    name = name or method.py_func.__name__
    return Entries(*(specialise(t, name, cached=cached, method=method, **names) for t in (step, run, predict, check)))


@cache
def compiled(method: Any, helped: bool = False) -> Entries:
    """The entry points of a method of this package, or of one that was made elsewhere; `helped` with its step-size."""
    if method not in SHAPES:
        if helped:
            raise ValueError(NO_HELP)
        return entries(method)
    binary, memories, more = SHAPES[method]
    names = {"BINARY": binary, "MORE": more, "attach": ATTACH[memories - 1][helped], **(HELP if helped else {})}
    name = f"{method.py_func.__name__}{'_helped' * helped}"
    return entries(method, cached=True, name=name, **names)
