"""The operations of rules on a memory. Their loops are in `dense.py` and `sparse.py`, chosen by the type of the features."""

from __future__ import annotations

import numpy as np

from trueonline.core.compiling.kernels import kernel, operation
from trueonline.core.forms import Dense, is_a
from trueonline.core.memory.layout import (
    ALPHA,
    COUNT,
    DENSE,
    NOTED_B,
    NOTED_C,
    OF_FEATURE,
    RATE,
    SCALE,
    UNSCALE,
    C,
    MetaGradient,
    Rated,
    S,
    Used,
    beside,
    holds_two_traces,
)

SMALLEST = 1e-250  # of G: weights up to 1e58 stay finite, divided by it


def recall(memory, x, x_next):
    """Return wᵀx, eᵀx and wᵀx_next."""
    raise NotImplementedError("for kernels only")


@operation
def value(memory, x):
    """Return wᵀx, touching nothing."""
    if holds_two_traces(memory):
        return lambda memory, x: value_in(memory, x) + value_in(memory.second, x)
    return lambda memory, x: value_in(memory, x)  # noqa: PLW0108  (a stub has no loops of its own)


def value_in(memory, x):
    """Return wᵀx with the weights of this one memory, touching nothing."""
    raise NotImplementedError("for kernels only")


def trace_along(memory, x):
    """Return eᵀx, when nothing is noted: after `recall` or `settle`."""
    raise NotImplementedError("for kernels only")


def imprint(memory, x, a, b):
    """e ← e + a·x and w ← w + b·x."""
    raise NotImplementedError("for kernels only")


def shift(memory, x, b):
    """w ← w + b·x, beside the imprint of the step."""
    raise NotImplementedError("for kernels only")


def length_squared(x):
    """xᵀx."""
    raise NotImplementedError("for kernels only")


def replace(memory, x):
    """e_i ← 1 where x_i = 1."""
    raise NotImplementedError("for kernels only")


@operation
def of(memory, x, i, which):
    """The index of what is kept of feature i, in the layout for x."""
    if is_a(Dense, x):
        return lambda memory, x, i, which: which * memory.n + i
    return lambda memory, x, i, which: np.int64(i) * OF_FEATURE + which


@kernel
def rate(memory, x, i):
    """r_i of this step; 0 stands for 1, so that nothing has to be written to begin with."""
    r = memory.kept[of(memory, x, i, RATE)]
    return r if r != 0.0 else 1.0


@operation
def share(memory, x, i, x_i):
    """The value that is written for a feature: its own, times the step-size of the feature if it has one."""
    if is_a(Rated, memory):
        return lambda memory, x, i, x_i: memory.tuning[ALPHA] * rate(memory, x, i) * x_i
    if is_a(Used, memory):
        return lambda memory, x, i, x_i: used_step_size(memory.usage, i) * x_i
    return lambda memory, x, i, x_i: x_i


@kernel
def used_step_size(usage, i):
    """1 over the usage of feature i, or 0 for a feature without usage."""
    used = weight_in(usage, i) + usage.head[S] * usage.z[place(usage, i)]
    return 1.0 / used if used != 0.0 else 0.0


@kernel
def place(memory, i):
    """The index of the trace of feature i: its slot, or i + 1 in the dense layout."""
    return memory.slot[i] if memory.head[DENSE] == 0.0 else i + 1


@kernel
def weight_in(memory, i):
    """w_i of this one memory."""
    k = place(memory, i)
    listed = memory.y[k] if memory.head[DENSE] == 0.0 else 0.0
    return memory.u[i] + (listed + memory.head[C] * memory.z[k])


def erase(memory, x):
    """e_i ← 0 where x_i = 1."""
    raise NotImplementedError("for kernels only")


@kernel
def decay(memory, g):
    """e ← g·e."""
    memory.head[S] *= g


@kernel
def learn(memory, b):
    """w ← w + b·e."""
    memory.head[C] += b * (memory.head[S] * memory.head[UNSCALE])


@operation
def scale(memory, g):
    """w ← g·w, in O(1)."""
    if any(is_a(kind, memory) for kind in (Rated, Used, MetaGradient)):
        raise TypeError("weights with a step-size for each feature cannot be scaled")

    def scale_one(memory, g):  # the weights are kept divided by G: G ← g·G
        head = memory.head
        G = g * head[SCALE]
        if abs(G) < SMALLEST or abs(G) > 1.0 / SMALLEST:  # beyond the range of doubles: all are multiplied, in one pass
            for i in range(memory.n):
                if memory.u[i] != 0.0:  # pages of memory that were never written to stay so
                    memory.u[i] = G * memory.u[i]
            if head[DENSE] == 0.0:
                for k in range(1, int(head[COUNT]) + 1):
                    memory.y[k] *= G
            head[C] *= G
            head[NOTED_B] *= G
            head[NOTED_C] *= G
            G = 1.0
        head[SCALE] = G
        head[UNSCALE] = 1.0 / G

    return scale_one


def settle(memory, x):
    """Make a noted imprint of x now."""
    raise NotImplementedError("for kernels only")


@operation
def settle_all(memory, x):
    """The same in all memories."""

    def settle_one(memory, x):
        settle(memory, x)

    def settle_two(memory, x):
        settle(memory, x)
        settle(memory.second, x)

    def settle_three(memory, x):
        settle(memory, x)
        settle(memory.second, x)
        settle(memory.third, x)

    return (settle_one, settle_two, settle_three)[beside(memory)]
