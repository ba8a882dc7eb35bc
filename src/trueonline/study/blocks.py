"""The sweep kernel: one trajectory, every step-size and trace decay, the error measured after every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types

from trueonline.core.forms import Active, Dense, pointer
from trueonline.core.kernels import kernel, operation, specialise
from trueonline.core.memory import (
    BETA,
    CARRIED,
    CARRIED_TOO,
    DISCOUNT,
    LAM_NEXT,
    RATIO,
    RATIO_OLD,
    TRACE_DECAY,
    attach,
    attach_three,
    attach_two,
    enlist,
    offset,
)
from trueonline.inputs import ratio
from trueonline.methods import (
    accumulate_td,
    emphatic_td,
    gtd,
    replace_td,
    true_online_emphatic_td,
    true_online_gtd,
    true_online_td,
)

method = true_online_td  # a placeholder, for which `specialise` puts each method


def sweep(numbers, places, features, trajectory, discount, measure, second, alphas, lams, errors):
    """Write to errors[i, j] the mean of ‖B(w − w*)‖² over the steps but the first `after`, over its value at the weights
    that learning begins with, for α_i and λ_j, and β = ηα with η = `second` for methods with second weights.

    Infinite where it is no longer a finite number.
    """
    states, rewards, discounts, ratios = trajectory
    root, target, first, after = measure
    memory = attach(numbers, places)
    head = memory.head
    head[DISCOUNT] = discount
    nothing = np.zeros(memory.n)
    off = first - target
    initial = squared(root, off)
    for i in range(alphas.size):
        head[BETA] = second * alphas[i]
        for j in range(lams.size):
            enlist_all(memory, first, nothing)
            head[LAM_NEXT] = head[TRACE_DECAY] = lams[j]
            head[CARRIED] = head[CARRIED_TOO] = 0.0  # it may be infinite: what came before diverged
            total = v_old = gamma = 0.0
            for t in range(rewards.size):
                x = seen(features, states[t], states[max(t - 1, 0)])
                x_next = seen(features, states[t + 1], states[t])
                head[RATIO] = ratios[min(t, ratios.size - 1)]
                _, _, v_old = method(memory, v_old, x, rewards[t], x_next, alphas[i], gamma, discounts[t], lams[j])
                gamma, head[RATIO_OLD] = discounts[t], head[RATIO]
                if t >= after:
                    offset(memory, x, target, off)
                    total += squared(root, off)
                    if not total < np.inf:
                        break
            errors[i, j] = total / (rewards.size - after) / initial if total < np.inf else np.inf


@kernel
def enlist_all(memory, first, nothing):
    """A placeholder: begin with these weights in the first memory, and with zeros in all others there are."""
    enlist(memory, first)


@kernel
def enlist_two(memory, first, nothing):
    enlist(memory, first)
    enlist(memory.second, nothing)


@kernel
def enlist_three(memory, first, nothing):
    enlist(memory, first)
    enlist(memory.second, nothing)
    enlist(memory.third, nothing)


def seen(features, state, before):
    """The features of a state: from a matrix of all of them, or of the indices of the active ones."""
    raise NotImplementedError("for kernels only")


@operation(seen)
def _seen(features, state, before):
    def active(features, state, before):
        size = features.shape[1]
        return Active(pointer(features, state * size), size)

    def dense(features, state, before):
        size = features.shape[1]
        return Dense(pointer(features, state * size), pointer(features, before * size), size)

    return active if isinstance(features.dtype, types.Integer) else dense


def squared(root, off):
    """‖Br‖², with B a matrix or the diagonal of one. A sum of squares: rounding cannot turn it negative."""
    raise NotImplementedError("for kernels only")


@operation(squared, reassociate=True)
def _squared(root, off):
    def diagonal(root, off):
        total = 0.0
        for i in range(off.size):
            part = root[i] * off[i]
            total += part * part
        return total

    def full(root, off):
        total = 0.0
        for i in range(off.size):
            part = 0.0
            for j in range(off.size):
                part += root[i, j] * off[j]
            total += part * part
        return total

    return diagonal if root.ndim == 1 else full


MEMORIES = {  # how to attach to several, and to begin with them
    1: {},
    2: {"attach": attach_two, "enlist_all": enlist_two},
    3: {"attach": attach_three, "enlist_all": enlist_three},
}


def compiled(method: Any, memories: int = 1, *, cached: bool = False) -> Any:
    """The sweep kernel of a method over one or several memories."""
    return specialise(sweep, method.py_func.__name__, cached=cached, method=method, **MEMORIES[memories])


@dataclass(frozen=True)
class Method:
    """A method to sweep, as data: a kernel of your own and how many memories it asks for, or the name of one of this package's.

    `second` is η: methods with second weights have the step-size β = ηα for them, so that α can be swept alone.

    >>> Method("gtd", second=0.1)
    Method(rule='gtd', memories=2, second=0.1)
    """

    rule: Any
    memories: int | None = None  # for a name it is known, for a kernel 1 by default
    second: float = 1.0

    def __post_init__(self) -> None:
        names = {rule: name for name, (rule, _) in RULES.items()}
        rule = names.get(self.rule, self.rule) if hasattr(self.rule, "py_func") else self.rule
        if isinstance(rule, str) and rule not in RULES:
            raise ValueError(f"unknown rule {rule!r}; known are {', '.join(RULES)}, or give a kernel")
        known = RULES[rule][1] if isinstance(rule, str) else None
        memories = self.memories if self.memories is not None else known or 1
        if isinstance(memories, bool) or memories not in MEMORIES or known not in (None, memories):
            wanted = f"{known} for {rule}" if known else "1, 2 or 3"
            raise ValueError(f"memories must be {wanted}, got {self.memories!r}")
        for name, value in (("rule", rule), ("memories", memories), ("second", ratio("second", self.second))):
            object.__setattr__(self, name, value)


RULES = {  # with how many memories each has
    "accumulate": (accumulate_td, 1),
    "replace": (replace_td, 1),
    "true_online": (true_online_td, 1),
    "emphatic": (emphatic_td, 1),
    "true_online_emphatic": (true_online_emphatic_td, 1),
    "gtd": (gtd, 2),
    "true_online_gtd": (true_online_gtd, 3),
}
KERNELS = {name: compiled(*rule, cached=True) for name, rule in RULES.items()}
METHODS = {name: Method(name) for name in RULES}
# Without second weights GTD(λ) is off-policy TD(λ), and true online GTD(λ) its true online form.
METHODS |= {"off_policy": Method("gtd", second=0.0), "true_online_off_policy": Method("true_online_gtd", second=0.0)}
