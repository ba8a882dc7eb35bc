"""The kernels of an agent: the values of all actions, and learning from one transition.

Every rule of control here is a method of prediction (`methods/`) over the block features ψ(s, a). What is left to say is
from which action the next state's value is taken, and when the trace is cut.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from trueonline.core.adaptation import attach_rated
from trueonline.core.forms import Chosen, view
from trueonline.core.kernels import kernel, specialise
from trueonline.core.loops import HELP, NO_HELP, acceptable, follow, prepare
from trueonline.core.memory import GAMMA, GREEDY, LAM, LAM_NEXT, STEPS, V_OLD, action_values, attach
from trueonline.methods import true_online_td

TIE = 1e-10  # values this close, relative to the largest or absolutely where that is small, count as equal


@kernel
def sarsa(q, action):
    """Bootstrap from the action that will be taken."""
    return action, True


@kernel
def greedy(q, action):
    """Bootstrap from the best action; the trace goes on if the one that will be taken ties for the best."""
    best = 0
    for a in range(1, q.size):
        if q[a] > q[best]:
            best = a
    tied = q[action] >= q[best] - TIE * max(1.0, abs(q[best]))
    return best, tied


# Placeholders in the templates below, for which `specialise` puts each rule.
method = true_online_td
target = sarsa
BINARY = False
CUTS = True  # whether λ is 0 in a state in which the trace does not go on; a method may see to that itself


def values(numbers, places, x, q):
    """q[a] ← wᵀψ(s, a) for every action; ValueError, without a reason, for bad features."""
    memory = attach(numbers, places)
    features = view(x)
    if not acceptable(memory.n // q.size, features, BINARY):
        raise ValueError
    action_values(memory, features, q)


def transition(numbers, places, here, action, reward, x, q, action_next, alpha, gamma_next, lam_next):
    """Learn from one transition, from `action` in the state of features `here` to `action_next` in that of x; return δ.

    q holds the values of x; all of the input has been checked.
    """
    memory = attach(numbers, places)
    head = memory.head
    now, then = view(here), view(x)
    best, goes_on = target(q, action_next)
    psi = Chosen(now, q.size, action, now.size)
    psi_next = Chosen(then, q.size, best, then.size)
    v_old, gamma, lam = head[V_OLD], head[GAMMA], head[LAM]
    head[LAM_NEXT] = lam_next
    alpha = prepare(memory, psi, reward, psi_next, alpha, gamma, gamma_next, lam)
    _, delta, v_next = method(memory, v_old, psi, reward, psi_next, alpha, gamma, gamma_next, lam)
    follow(memory, psi)
    head[V_OLD], head[GAMMA], head[LAM] = v_next, gamma_next, lam_next if goes_on or not CUTS else 0.0
    head[GREEDY] = goes_on
    head[STEPS] += 1.0
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


def entries(method: Any, target: Any, *, cached: bool = False, name: str = "", **names: Any) -> Entries:
    """The entry points of a rule, with these names in the templates.

    `cached` is for this package's own rules: an edit elsewhere would go unnoticed.
    """
    name = name or f"{method.py_func.__name__}_{target.py_func.__name__}"
    names |= {"method": method, "target": target}
    return Entries(*(specialise(template, name, cached=cached, **names) for template in (values, transition)))


@cache
def compiled(method: Any, target: Any, binary: bool, helped: bool) -> Entries:
    """The entry points of a rule, of this package or made elsewhere; `helped` with its step-size."""
    ours = method.py_func.__module__.startswith("trueonline.")
    if helped and not ours:
        raise ValueError(NO_HELP)
    name = f"{method.py_func.__name__}_{target.py_func.__name__}{'_helped' * helped}"
    help_: dict[str, Any] = {"attach": attach_rated, **HELP} if helped else {}
    return entries(method, target, cached=ours, name=name, BINARY=binary, **help_)


CHOICE = specialise(choice, "choice")
