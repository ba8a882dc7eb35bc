"""The kernels of an agent: the values of all actions, and learning from one transition.

Every rule of control here is a method of prediction (`methods/`) over the block features ψ(s, a). This file chooses the action that
gives the next state's value, and cuts the trace.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from trueonline.core.checking import acceptable
from trueonline.core.forms import Chosen, pointer, view
from trueonline.core.kernels import kernel, specialise
from trueonline.core.loops import attach, follow, key_of, name_of, names_of, rule
from trueonline.core.memory import action_values
from trueonline.core.memory.layout import CARRIED, GAMMA, GREEDY, LAM, RHO_OLD, STEPS, V_OLD
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
    asked,
)

TIE = 1e-10  # values this close, relative to the largest or absolutely where that is small, count as equal


@kernel
def sarsa(q, action):
    """Bootstrap from the action that will be taken."""
    return action, True


@kernel
def greedy(q, action):
    """Bootstrap from the best action; the trace is kept if the action that will be taken ties for the best."""
    best = 0
    for a in range(1, q.size):
        if q[a] > q[best]:
            best = a
    tied = q[action] >= q[best] - TIE * max(1.0, abs(q[best]))
    return best, tied


@kernel
def sarsa_noting(q, action):
    """Bootstrap from the action that will be taken; say whether it ties for the best."""
    return action, greedy(q, action)[1]


# Placeholders in the templates below, beside those of `core.loops`, for which `specialise` puts what each rule needs.
target = sarsa
BINARY = False
CUTS = True  # whether λ is 0 in a state in which the trace is not kept; a rule may see to that itself


def values(numbers, places, x, q):
    """q[a] ← wᵀψ(s, a) for every action; ValueError, without a reason, for bad features."""
    memory = attach(numbers, places)
    features = view(x)
    if not acceptable(memory.n // q.size, features, BINARY):
        raise ValueError
    action_values(memory, features, q)


def transition(numbers, places, here, action, reward, x, q, action_next, settings):
    """Learn from one transition, from `action` in the state of features `here` to `action_next` in that of x; return δ.

    q holds the values of x; all of the input has been checked.
    """
    memory, place = attach(numbers, places), pointer(numbers, 0)
    now, then = view(here), view(x)
    best, kept = target(q, action_next)
    psi = Chosen(now, q.size, action, now.size)
    psi_next = Chosen(then, q.size, best, then.size)
    step = Transition(
        psi,
        reward,
        psi_next,
        psi_next,
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
    _, delta, v_next = rule(memory, step)
    follow(memory, psi)
    place[V_OLD], place[GAMMA] = v_next, settings[GAMMA_NEXT]
    place[LAM] = settings[LAM_NEXT] if kept or not CUTS else 0.0
    place[GREEDY] = kept
    place[STEPS] += 1.0
    return delta


def choice(values, u, tolerance):
    """One of the best actions, the same for every u of an n-th of [0, 1) where n are tied."""
    best = -np.inf
    for value in values:
        best = max(best, value)
    edge = best - tolerance * max(1.0, abs(best))  # no number where best is infinite
    ties = 0
    for value in values:
        ties += value >= edge or value == best
    if ties == 0:  # none is a number: all are equally good
        return int(u * values.size)
    left = int(u * ties)
    for a in range(values.size):
        if values[a] >= edge or values[a] == best:
            if left == 0:
                return a
            left -= 1
    return values.size - 1


class Entries(NamedTuple):
    """The compiled entry points of one rule."""

    values: Any
    transition: Any


@cache
def compiled(
    rule: Any, bootstraps_greedily: bool, cuts: bool, binary: bool, adapted: bool, memory: str = "one"
) -> Entries:
    """The entry points of a rule, which bootstraps from the best action or not, and whose trace is then cut or not."""
    asks = "greedy" in asked(rule)
    aim = greedy if bootstraps_greedily else sarsa_noting if asks else sarsa
    names = names_of(rule, memory, binary=binary, adapted=adapted) | {"target": aim, "CUTS": cuts}
    name = f"{name_of(rule, adapted)}_{aim.py_func.__name__}"
    return Entries(reader(binary), specialise(transition, name, partial(key_of, rule), **names))


@cache
def reader(binary: bool) -> Any:
    """The entry point that reads the values of actions. No rule takes part in it, so all rules share it.

    Weights and trace lie in the same places in all kinds of memory that agents have.
    """
    return specialise(values, "one", attach=attach, BINARY=binary)


CHOICE = specialise(choice, "choice")
