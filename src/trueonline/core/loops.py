"""The loops around a rule: one transition (`step`) and a whole stream (`run`), each a single compiled call.

A learner carries its *place* from step to step, in front of its memory: V_old, γ and λ of the current state, and so on
(`memory.layout`). Bad input is refused before anything changes, as a ValueError without a reason. Python finds the reason.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numba import types

from trueonline.core import adaptation
from trueonline.core.checking import acceptable
from trueonline.core.forms import certain, copy, earlier, pointer, row, shortened, view
from trueonline.core.identity import UnknownIdentityError, identity, is_installed
from trueonline.core.kernels import inlined, kernel, operation, specialise
from trueonline.core.memory import KINDS, decay, settle_all, value
from trueonline.core.memory.layout import (
    CARRIED,
    COMING,
    GAMMA,
    GREEDY,
    LAM,
    LENGTH,
    NOT_BINARY,
    RHO_OLD,
    STEPS,
    V_OLD,
    attach_one,
)
from trueonline.core.transition import (
    ALPHA,
    BETA,
    DISCOUNT,
    GAMMA_NEXT,
    INTEREST,
    LAM_NEXT,
    RHO,
    TRACE_DECAY,
    Transition,
    asking,
)

# --- Placeholders in the templates below, for which `entries` puts what each method needs -----------


@kernel
def rule(memory, transition):
    return 0.0, 0.0, 0.0


@kernel
def follow(memory, x):
    """Nothing. (`adaptation` has another.)"""


attach = attach_one
BINARY = False


# --- Templates ------------------------------------------------------------------------------------


def transit(numbers, places, here, x, expected, reward):
    """Learn from one transition out of the features in the buffer `here` into x, which the buffer then holds; return δ.

    ValueError for bad input or a buffer that is too small.
    """
    memory, place, settings = attach(numbers, places), pointer(numbers, 0), pointer(numbers, COMING)
    held, x_next = view(here), view(x)
    if not (np.isfinite(reward) and x_next.size <= held.size and acceptable(memory.n, x_next, BINARY)):
        raise ValueError
    now = shortened(held, int(place[LENGTH]))
    transition = Transition(
        now,
        reward,
        x_next,
        view(expected),
        place[V_OLD],
        settings[ALPHA],
        settings[BETA],
        place[GAMMA],
        place[LAM],
        settings[GAMMA_NEXT],
        settings[LAM_NEXT],
        settings[RHO],
        place[RHO_OLD],
        settings[INTEREST],
        pointer(numbers, CARRIED),
        place[GREEDY],
        settings[DISCOUNT],
        settings[TRACE_DECAY],
    )
    _, delta, v_next = rule(memory, transition)
    follow(memory, now)
    settle_all(memory, now)
    place[V_OLD], place[GAMMA], place[LAM] = v_next, settings[GAMMA_NEXT], settings[LAM_NEXT]
    place[RHO_OLD] = settings[RHO]
    place[STEPS] += 1.0
    place[LENGTH] = x_next.size
    copy(held, x_next)
    return delta


def step(numbers, places, here, x, reward):
    """`transit` with φ' as φ̄'."""
    return transit(numbers, places, here, x, x, reward)


def step_expected(numbers, places, here, x, expected, reward):
    """`transit` with a φ̄' of its own."""
    if not acceptable(attach(numbers, places).n, view(expected), BINARY):
        raise ValueError
    return transit(numbers, places, here, x, expected, reward)


def run(numbers, places, X, expected, rewards, series, constants, starts, values):
    """Learn from a stream; write V_t(S_t) to `values`; return whether all was well.

    `series` are α, β, γ, λ, ρ and I of each transition; an array of one entry stands for a constant. No transition leads into
    row t + 1 where `starts` is set. Rows must have been checked, unless they are dense, `expected` is None and the rule is of this
    package. Such rows are checked during learning, at no cost: the value of a row that is not finite is not finite, and `replace`
    counts features that are not binary. So for such rows the caller must be able to undo.
    """
    alphas, betas, gammas, lams, rhos, interests = series
    discount, trace_decay = constants
    memory, place = attach(numbers, places), pointer(numbers, 0)
    head = memory.head
    v_old, gamma, lam, steps, rho_old = place[V_OLD], place[GAMMA], place[LAM], place[STEPS], place[RHO_OLD]
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
            gamma_next, lam_next = gammas[min(t, gammas.size - 1)], lams[min(t, lams.size - 1)]
            rho = rhos[min(t, rhos.size - 1)]
            transition = Transition(
                x,
                rewards[t],
                x_next,
                row_or(expected, X, t + 1),
                v_old,
                alphas[min(t, alphas.size - 1)],
                betas[min(t, betas.size - 1)],
                gamma,
                lam,
                gamma_next,
                lam_next,
                rho,
                rho_old,
                interests[min(t, interests.size - 1)],
                pointer(numbers, CARRIED),
                place[GREEDY],
                discount,
                trace_decay,
            )
            v, _, v_next = rule(memory, transition)
            follow(memory, x)
            v_old, gamma, lam, rho_old = v_next, gamma_next, lam_next, rho
            steps += 1.0
        sound = np.isfinite(v_next) and not (BINARY and head[NOT_BINARY] != 0.0)
        if not (certain(x) or sound or acceptable(memory.n, x_next, BINARY)):
            return False
        values[t] = v
        x = x_next
    settle_all(memory, earlier(x))
    place[V_OLD], place[GAMMA], place[LAM], place[STEPS], place[RHO_OLD] = v_old, gamma, lam, steps, rho_old
    return head[NOT_BINARY] == 0.0


def predict(numbers, places, x):
    """wᵀx; ValueError for bad input."""
    memory = attach(numbers, places)
    features = view(x)
    if not acceptable(memory.n, features, BINARY):
        raise ValueError
    return value(memory, features)


def predict_many(numbers, places, X, values):
    """values[t] ← wᵀx_t for every row; return the number of the first unacceptable row, or −1."""
    memory = attach(numbers, places)
    for t in range(values.size):
        x = row(X, t)
        if not acceptable(memory.n, x, BINARY):
            return t
        values[t] = value(memory, x)
    return -1


def check(numbers, places, X, rows):
    """The number of the first unacceptable row, or −1."""
    memory = attach(numbers, places)
    for t in range(rows):
        if not acceptable(memory.n, row(X, t), BINARY):
            return t
    return -1


def row_or(expected, X, t):
    """Row t of `expected`, or of X where `expected` is None."""
    raise NotImplementedError("for kernels only")


@operation(row_or)
def _row_or(expected, X, t):
    if isinstance(expected, types.NoneType):
        return lambda expected, X, t: row(X, t)
    return lambda expected, X, t: row(expected, t)


# --- Compiling ------------------------------------------------------------------------------------


class Entries(NamedTuple):
    """The compiled entry points of a rule."""

    step: Any
    step_expected: Any
    run: Any
    predict: Any
    predict_many: Any
    check: Any


def names_of(rule: Any, memory: str, *, binary: bool, adapted: bool) -> dict[str, Any]:
    """The global names of the templates: the rule, the attachment to its kind of memory, and step-size adaptation or nothing."""
    kind = KINDS[memory]
    attach = kind.attach_rated if adapted else kind.attach
    ask = asking(rule, adaptation.prepare) if adapted else asking(rule)
    return {"rule": ask, "BINARY": binary, "attach": attach, "follow": adaptation.follow if adapted else follow}


def name_of(rule: Any, adapted: bool) -> str:
    """The name of a rule's entry points. Adapted entry points have another name, so that both have a place in the cache."""
    return f"{rule.py_func.__name__}{'_adapted' * adapted}"


def is_ours(rule: Any) -> bool:
    """Whether a rule is part of this package."""
    return (rule.py_func.__module__ or "").startswith("trueonline.methods.") and is_installed(rule)


def key_of(rule: Any) -> str | None:
    """The key that distinguishes rules of one name on disk: the identity of a rule of the user. None if it is unknown."""
    try:
        return "" if is_ours(rule) else identity(rule)
    except UnknownIdentityError:
        return None


@cache
def readers(memory: str, binary: bool) -> tuple[Any, ...]:
    """The entry points that read weights and features. No rule takes part in them, so all rules share them."""
    names = {"attach": KINDS[memory].attach, "BINARY": binary}
    return tuple(specialise(template, memory.replace(" ", "_"), **names) for template in (predict, predict_many, check))


@cache
def compiled(rule: Any, memory: str = "one", binary: bool = False, adapted: bool = False) -> Entries:
    """The entry points of a rule over a kind of memory."""
    names = names_of(rule, memory, binary=binary, adapted=adapted)
    names["transit"] = inlined(transit, **names)
    learners = (
        specialise(each, name_of(rule, adapted), partial(key_of, rule), **names) for each in (step, step_expected, run)
    )
    return Entries(*learners, *readers(memory, binary))
