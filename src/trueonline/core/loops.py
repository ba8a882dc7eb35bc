"""The loops around a rule: one transition (`step`) and a whole stream (`run`), each a single compiled call.

A learner carries its *place* from step to step, in front of its memory: V_old, γ and λ of the current state, and so on
(`memory.layout`). Bad input is refused before anything changes, as a ValueError without a reason. Python finds the reason.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from trueonline.core import adaptation
from trueonline.core.checking import acceptable, take, taken
from trueonline.core.compiling.identity import is_installed
from trueonline.core.compiling.kernels import inlined, kept_with, kernel, operation, specialise
from trueonline.core.family import merged, number_of
from trueonline.core.forms import copy, earlier, held, pointer, row, view
from trueonline.core.memory import KINDS, decay, settle_all, value
from trueonline.core.memory.layout import (
    BINARY,
    CARRIED,
    COMING,
    FEATURES,
    GAMMA,
    GREEDY,
    HOLDING,
    LAM,
    LENGTH,
    NOT_BINARY,
    PARAMETERS,
    PLACE,
    RHO_OLD,
    RULE,
    STEPS,
    V_OLD,
    at,
    attach_one,
)
from trueonline.core.memory.operations import value_in
from trueonline.core.transition import GAMMA_NEXT, LAM_NEXT, arriving, asking

# --- Placeholders in the templates below, for which `entries` puts what each method needs -----------


@kernel
def rule(memory, transition):
    return 0.0, 0.0, 0.0


@kernel
def prepare(memory, transition):
    """The transition as it is. (`adaptation` has another.)"""
    return transition


@kernel
def follow(memory, x):
    """Nothing. (`adaptation` has another.)"""


attach = attach_one


# --- Templates ------------------------------------------------------------------------------------


def transit(numbers, places, x, values, expected, expected_values, reward, gamma_next, lam_next):
    """Learn from one transition out of the features that the buffers hold into x, which they then hold; return δ.

    The other numbers of the transition are in the place. ValueError for bad input.
    """
    memory, place = attach(numbers, places), pointer(numbers, 0)
    given = view(x, values)
    if given.size > memory.n:
        raise ValueError
    x_next = taken(memory.n, given, pointer(places, places.size - memory.n))
    fine = acceptable(memory.n, x_next, place[BINARY] != 0.0)
    fine = fine and 0.0 <= gamma_next <= 1.0 and 0.0 <= lam_next <= 1.0
    if not (fine and reward - reward == 0.0):  # it is not finite
        raise ValueError
    x_expected = view_or(expected, expected_values, x_next)
    now, which = held(numbers, places, PLACE, memory.n, place[LENGTH], values), int(place[RULE])
    v_old, gamma, lam, rho_old, greedy = place[V_OLD], place[GAMMA], place[LAM], place[RHO_OLD], place[GREEDY]
    carried, settings, own = pointer(numbers, CARRIED), pointer(numbers, COMING), pointer(numbers, PARAMETERS)
    settings[GAMMA_NEXT], settings[LAM_NEXT] = gamma_next, lam_next
    transition = arriving(
        now, reward, x_next, x_expected, v_old, gamma, lam, rho_old, greedy, carried, own, settings, which
    )
    _, delta, v_next = rule(memory, prepare(memory, transition))
    follow(memory, now)
    settle_all(memory, now)
    place[V_OLD] = v_next
    place[GAMMA] = transition.gamma_next
    place[LAM] = transition.lam_next
    place[RHO_OLD] = transition.rho
    place[STEPS] += 1.0
    place[LENGTH] = x_next.size
    copy(now, x_next)
    return delta


def step(numbers, places, x, values, reward, gamma_next, lam_next):
    """`transit` with φ' as φ̄'."""
    return transit(numbers, places, x, values, None, None, reward, gamma_next, lam_next)


def step_expected(numbers, places, x, values, expected, expected_values, reward, gamma_next, lam_next):
    """`transit` with a φ̄' of its own, in arrays that nothing else writes to."""
    fine = acceptable(int(numbers[FEATURES]), view(expected, expected_values), numbers[BINARY] != 0.0)
    if not fine:
        raise ValueError
    return transit(numbers, places, x, values, expected, expected_values, reward, gamma_next, lam_next)


def run(numbers, places, X, expected, rewards, series, starts, sure, values):
    """Learn from a stream; write V_t(S_t) to `values`; return whether all was well.

    `series` has a row for each transition, or one for all: the numbers that `core.transition` lists. No transition leads into row
    t + 1 where `starts` is set. If the rows are not `sure` to be good, learning ends at a value that is not finite: that of a bad
    row is not, and the caller must be able to undo. `replace` counts features that are not binary.
    """
    memory, place, each = attach(numbers, places), pointer(numbers, 0), np.int64(series.shape[0] > 1) * series.shape[1]
    v_old, gamma, lam, steps, rho_old = place[V_OLD], place[GAMMA], place[LAM], place[STEPS], place[RHO_OLD]
    carried, own = pointer(numbers, CARRIED), pointer(numbers, PARAMETERS)
    greedy, which = place[GREEDY], int(place[RULE])
    x = row(X, 0)
    for t in range(rewards.size):
        x_next = row(X, t + 1)
        if starts[t + 1]:
            settle_all(memory, earlier(x))
            v, v_next = value(memory, x), value(memory, x_next)
            v_old = gamma = 0.0
            decay(memory, 0.0)  # those beside it decay by γ = 0 at the next step
        else:
            settings, x_expected = pointer(series, t * each), row_or(expected, x_next, t + 1)
            transition = arriving(
                x, rewards[t], x_next, x_expected, v_old, gamma, lam, rho_old, greedy, carried, own, settings, which
            )
            v, _, v_next = rule(memory, prepare(memory, transition))
            follow(memory, x)
            v_old, gamma, lam, rho_old = v_next, transition.gamma_next, transition.lam_next, transition.rho
            steps += 1.0
        if not sure and (v - v != 0.0 or v_next - v_next != 0.0):  # they are not finite
            return False
        values[t] = v
        x = x_next
    settle_all(memory, earlier(x))
    place[V_OLD] = v_old
    place[GAMMA] = gamma
    place[LAM] = lam
    place[STEPS] = steps
    place[RHO_OLD] = rho_old
    return memory.head[NOT_BINARY] == 0.0


def predict(numbers, places, x, values):
    """wᵀx; ValueError for bad input."""
    n, given = int(numbers[FEATURES]), view(x, values)
    if given.size > n:
        raise ValueError
    features = taken(n, given, pointer(places, places.size - n))
    fine = acceptable(n, features, numbers[BINARY] != 0.0)
    if not fine:
        raise ValueError
    return summed(numbers, places, features)


def predict_many(numbers, places, X, values):
    """values[t] ← wᵀx_t for every row; return the number of the first unacceptable row, or −1."""
    n = int(numbers[FEATURES])
    for t in range(values.size):
        given = row(X, t)
        if given.size > n:
            return t
        x = taken(n, given, pointer(places, places.size - n))
        fine = acceptable(n, x, numbers[BINARY] != 0.0)
        if not fine:
            return t
        values[t] = summed(numbers, places, x)
    return -1


def check(n, binary, X, rows, seen, own):
    """Copy the indices of a stream to `own`; return the number of the first unacceptable row, or −1. `seen` is −1 everywhere."""
    for t in range(rows):
        fine = take(n, X, t, binary, own, seen)
        if not fine:
            return t
    return -1


@kernel
def summed(numbers, places, x):
    """wᵀx, with the weights of all memories that hold a part of them."""
    v = value_in(at(numbers, places, 0), x)
    if numbers[HOLDING] > 1.0:
        v += value_in(at(numbers, places, 1), x)
    return v


@operation
def view_or(expected, values, x):
    """The features `expected`, or x where `expected` is None."""
    if isinstance(expected, types.NoneType):
        return lambda expected, values, x: x
    return lambda expected, values, x: view(expected, values)


@operation
def row_or(expected, x, t):
    """Row t of `expected`, or x where `expected` is None."""
    if isinstance(expected, types.NoneType):
        return lambda expected, x, t: x
    return lambda expected, x, t: row(expected, t)


# --- Compiling ------------------------------------------------------------------------------------


class Entries(NamedTuple):
    """The compiled entry points of a rule."""

    step: Any
    step_expected: Any
    run: Any
    predict: Any
    predict_many: Any
    check: Any


def names_of(rule: Any, memory: str, *, adapted: bool) -> dict[str, Any]:
    """The global names of the templates: the rule, the attachment to its kind of memory, and step-size adaptation or nothing."""
    kind = KINDS[memory]
    if adapted:
        own = {"attach": kind.attach_rated, "prepare": adaptation.prepare, "follow": adaptation.follow}
    else:
        own = {"attach": kind.attach, "prepare": prepare, "follow": follow}
    return {"rule": asking(rule), **own}


def is_ours(rule: Any) -> bool:
    """Whether a rule is part of this package."""
    return (rule.py_func.__module__ or "").startswith("trueonline.methods.") and is_installed(rule)


def compiled(rule: Any, memory: str = "one", adapted: bool = False) -> Entries:
    """The entry points of a rule over a kind of memory. They are kept with the rule, and are collected with it."""
    rule = rule if number_of(rule, memory) is None else merged(memory)
    made = kept_with(rule)
    if (memory, adapted) not in made:
        names = names_of(rule, memory, adapted=adapted)
        names["transit"] = inlined(transit, **names)
        name = f"{rule.py_func.__name__}{'_adapted' * adapted}"
        made[memory, adapted] = Entries(
            *(specialise(each, name, undivided=each is step, **names) for each in (step, step_expected, run)), *READERS
        )
    return made[memory, adapted]


# No rule takes part in reading, so all rules and kinds of memory share these entry points.
READERS = tuple(specialise(each, "any", undivided=each is predict) for each in (predict, predict_many, check))
