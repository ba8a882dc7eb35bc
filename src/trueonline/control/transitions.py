"""The kernels of an agent: the values of all actions, and learning from one transition.

Every rule of control here is a method of prediction (`methods/`) over the block features ψ(s, a). This file chooses the action that
gives the next state's value, and cuts the trace.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from trueonline.core.checking import acceptable
from trueonline.core.compiling.kernels import inlined, kept_with, kernel, operation, specialise
from trueonline.core.family import merged, number_of
from trueonline.core.forms import Averaged, Chosen, pointer, view
from trueonline.core.loops import attach, follow, names_of, prepare, rule
from trueonline.core.memory import action_values
from trueonline.core.memory.layout import (
    BEST,
    BINARY,
    CARRIED,
    CUTS,
    GAMMA,
    GREEDY,
    LAM,
    PARAMETERS,
    RHO_OLD,
    RULE,
    STEPS,
    V_OLD,
    at,
)
from trueonline.core.transition import arriving

TIE = 1e-10  # values this close, relative to the largest or absolutely where that is small, count as equal


@kernel
def greedy(q, action):
    """The best action, and whether another action ties for the best."""
    best = 0
    for a in range(1, q.size):
        if q[a] > q[best]:
            best = a
    tied = q[action] >= q[best] - TIE * max(1.0, abs(q[best]))
    return best, tied


def values(numbers, places, x, x_values, q):
    """q[a] ← wᵀψ(s, a) for every action; ValueError, without a reason, for bad features."""
    memory = at(numbers, places, 0)
    features = view(x, x_values)
    fine = acceptable(memory.n // q.size, features, numbers[BINARY] != 0.0)
    if not fine:
        raise ValueError
    action_values(memory, features, q)


def moved(numbers, places, here, here_values, action, reward, x, x_values, q, chances, action_next, settings):
    """Learn from one transition, from `action` in the state of features `here` to `action_next` in that of x; return δ.

    q holds the values of x, and `chances` the target policy's probabilities, or None; all of the input has been checked.
    """
    memory, place = attach(numbers, places), pointer(numbers, 0)
    now, then, which = view(here, here_values), view(x, x_values), int(place[RULE])
    best, tied = greedy(q, action_next)
    psi = Chosen(now, q.size, action, now.size)
    psi_next = Chosen(then, q.size, best if place[BEST] != 0.0 else action_next, then.size)
    psi_mean = averaged_or(then, q.size, chances, psi_next)
    v_old, gamma, lam, rho_old, noted = place[V_OLD], place[GAMMA], place[LAM], place[RHO_OLD], place[GREEDY]
    carried, numbers_now, own = pointer(numbers, CARRIED), pointer(settings, 0), pointer(numbers, PARAMETERS)
    step = arriving(psi, reward, psi_next, psi_mean, v_old, gamma, lam, rho_old, noted, carried, own, numbers_now, which)
    _, delta, v_next = rule(memory, prepare(memory, step))
    follow(memory, psi)
    place[V_OLD] = v_next
    place[GAMMA] = step.gamma_next
    place[LAM] = step.lam_next if tied or place[CUTS] == 0.0 else 0.0
    place[GREEDY] = tied
    place[STEPS] += 1.0
    return delta


def transition(numbers, places, here, here_values, action, reward, x, x_values, q, action_next, settings):
    """`moved` to the features of one action."""
    return moved(numbers, places, here, here_values, action, reward, x, x_values, q, None, action_next, settings)


def transition_expected(
    numbers, places, here, here_values, action, reward, x, x_values, q, chances, action_next, settings
):
    """`moved` with the mean of the features over the actions."""
    return moved(numbers, places, here, here_values, action, reward, x, x_values, q, chances, action_next, settings)


@operation
def averaged_or(features, actions, chances, psi):
    """The mean of the features over the actions, or ψ where `chances` is None."""

    if isinstance(chances, types.NoneType):
        return lambda features, actions, chances, psi: psi
    return lambda features, actions, chances, psi: Averaged(
        features, actions, pointer(chances, 0), features.size * actions
    )


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


class AgentEntries(NamedTuple):
    """The compiled entry points of one rule."""

    values: Any
    transition: Any
    transition_expected: Any


def compiled(rule: Any, memory: str, adapted: bool) -> AgentEntries:
    """The entry points of a rule, kept with the rule."""
    rule = rule if number_of(rule, memory) is None else merged(memory)
    made = kept_with(rule)
    if ("agent", memory, adapted) not in made:
        name = f"{rule.py_func.__name__}{'_adapted' * adapted}"
        names = names_of(rule, memory, adapted=adapted)
        names["moved"] = inlined(moved, **names)
        both = (specialise(each, name, **names) for each in (transition, transition_expected))
        made["agent", memory, adapted] = AgentEntries(VALUES, *both)
    return made["agent", memory, adapted]


# No rule takes part in reading the values of actions, so all agents share it. Weights lie in the same place in all kinds of memory.
VALUES = specialise(values, "any")
CHOICE = specialise(choice, "choice")
