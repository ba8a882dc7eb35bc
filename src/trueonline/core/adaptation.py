"""Help with the step-size, for streams whose features and errors nobody knows beforehand: departures from the paper.

What a method writes of φ is then α_t D_t φ, with D = diag(r) (`memory.share`), and it is told that its step-size is 1; what it
reads is φ. So every trace carries the step-sizes of the time of each visit, as that of Algorithm 4 does: w ← w + δe. True online
methods remain equal to their forward views, with the matrix α_t D_t in the place of α.

**A bound.** Before a transition is learned from, α is lowered to where the update closes no more than a given share of the error:

    αρMΣ_i r_i φ_i² ≤ bound                  always (M = 1 but for emphatic methods)
    ργλeᵀφ + αρMΣ_i r_i φ_i² ≤ bound         where traces accumulate: eᵀφ of the new trace

At 1 no update carries V(S_t) beyond what it is updated towards. Where even ργλeᵀφ is more than the bound, the trace is shortened to
it. The second step-size of gradient methods is kept to βφᵀφ ≤ bound.

**TIDBD** (Kearney, Veeriah, Travnik, Sutton and Pilarski 2018) with the normalisation of Autostep (Mahmood, Sutton, Degris and
Pilarski 2012), so that θ has no unit: a step-size for each feature, α_i = α·r_i, which grows where a feature's errors keep their
sign from one visit to the next, and shrinks where they change it. With meta step-size θ, over the features that are not 0,

    g_i = ρδφ_i H_i        n_i ← max(|g_i|, n_i + α_i φ_i² (|g_i| − n_i) / τ)        r_i ← r_i·e^{θ g_i / n_i}
    r_i ← r_i·bound / Σ_j α_j φ_j² where that sum exceeds the bound
    H_i ← H_i·[1 − φ_i e_i]⁺ + Δw_i

All that a learner changes of w_i is in proportion to r_i, so Δw_i is the derivative of itself by ln r_i, and H is the sum of
these. It follows w, but for features that are active, where it forgets. So H − w changes there alone: that is what is kept, as
`past`, and all of this costs the active features alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueonline.core.forms import entry, is_a
from trueonline.core.kernels import kernel, operation
from trueonline.core.memory import (
    ACCUMULATES,
    ALPHA,
    BETA,
    BOUND,
    BOUNDED,
    BY_EMPHASIS,
    BY_RATIO,
    DENSE,
    META,
    RATIO,
    WEIGHED,
    C,
    Rated,
    S,
    beside,
    decay,
    rate,
    rated,
    settle_all,
)
from trueonline.methods.emphatic_td import emphases


class Form(NamedTuple):
    """What has to be known of a method."""

    accumulates: float = 0.0  # whether its trace does: ADDS, or SHORTENS where that can be shortened by itself
    weighed: float = BY_RATIO  # what its updates are weighed by, or 0


ADDS, SHORTENS = 1.0, 2.0
MEMORY = 1e4  # τ: over how many visits the usual size of g is remembered, at a step-size of 1
LEAST, MOST = 1e-30, 1e30  # how far from where it began a step-size may go


@kernel
def attach_rated(numbers, places):
    n = places.size // 2
    return rated(numbers, n, beside(numbers, places, n, 0), None, None)


@kernel
def attach_two_rated(numbers, places):
    n = places.size // 4
    return rated(numbers, n, beside(numbers, places, n, 0), beside(numbers, places, n, 1), None)


@kernel
def attach_three_rated(numbers, places):
    n = places.size // 6
    second, third = beside(numbers, places, n, 1), beside(numbers, places, n, 2)
    return rated(numbers, n, beside(numbers, places, n, 0), second, third)


@kernel
def attach_both_rated(numbers, places):
    """For weights that lie in two memories."""
    n = places.size // 4
    second = rated(numbers, n, beside(numbers, places, n, 1), None, None)
    return rated(numbers, n, beside(numbers, places, n, 0), second, None)


@kernel
def prepare(memory, x, reward, x_next, alpha, gamma, gamma_next, lam):
    """Adapt the step-sizes of the active features, and bound α; return 1, as the trace carries them."""
    head = memory.head
    bound, theta = head[BOUND], head[META]
    rho = head[RATIO] if head[WEIGHED] != 0.0 else 1.0
    if theta > 0.0:
        adapt(memory, x, rho * error_of(memory, x, reward, x_next, gamma_next), alpha, theta)
    squares = fresh = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        squares += x_i * x_i
        fresh += rate(memory, i) * x_i * x_i
    lower = theta > 0.0 and alpha * fresh > bound
    if lower:
        fresh = lowered(memory, x, bound / (alpha * fresh))
    fresh *= rho * (emphases(head, gamma, lam)[1] if head[WEIGHED] == BY_EMPHASIS else 1.0)
    left = bound - carried(memory, x, head[RATIO] * gamma * lam, bound) if head[ACCUMULATES] != 0.0 else bound
    head[BETA] = bounded(head[BETA], squares, bound)
    within = bounded(alpha, fresh, left)
    write_with(memory, within)
    head[BOUNDED] += lower or within < alpha
    return 1.0


@kernel
def carried(memory, x, decayed, bound):
    """ργλeᵀφ, which takes of the bound what is left of it; no more than all, where the trace can be shortened."""
    along = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        along += x_i * trace_at(memory, i)
    along *= decayed
    if along > bound and memory.head[ACCUMULATES] == SHORTENS:
        decay(memory, bound / along)
    return min(max(along, 0.0), bound)


@kernel
def error_of(memory, x, reward, x_next, gamma_next):
    """δ, and on the way `kept` ← H."""
    v = v_next = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        w = weight(memory, i)
        memory.kept[i] = w + memory.past[i]
        v += w * x_i
    for j in range(x_next.size):
        i, x_i = entry(x_next, j)
        v_next += weight(memory, i) * x_i
    return reward + gamma_next * v_next - v


@kernel
def adapt(memory, x, error, alpha, theta):
    """r ← r·e^{θg/n} over the active features."""
    for j in range(x.size):
        i, x_i = entry(x, j)
        g, n, r = error * x_i * memory.kept[i], memory.usual[i], rate(memory, i)
        n = max(abs(g), n + alpha * r * x_i * x_i * (abs(g) - n) / MEMORY)
        if x_i != 0.0 and 0.0 < n < np.inf:  # a learner that diverges shows it in its weights
            memory.usual[i] = n
            memory.rates[i] = min(max(r * np.exp(theta * g / n), LEAST), MOST)


@kernel
def lowered(memory, x, factor):
    """r ← r·factor over the active features; return Σ r_i φ_i²."""
    pull = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        if x_i != 0.0:
            memory.rates[i] = max(factor * rate(memory, i), LEAST)
            pull += x_i * x_i * memory.rates[i]
    return pull


@kernel
def bounded(alpha, pull, bound):
    return bound / pull if alpha * pull > bound else alpha


@kernel
def follow(memory, x):
    """After learning: H forgets where features are active. Imprints are made now, with the step-sizes of now."""
    settle_all(memory, x)
    if memory.head[META] > 0.0:
        for j in range(x.size):
            i, x_i = entry(x, j)
            memory.past[i] -= memory.kept[i] * min(1.0, x_i * trace_at(memory, i))  # H ← H·[1 − φe]⁺ + Δw


# --- Weights that lie in one memory or in two -----------------------------------------------------


def write_with(memory, alpha):
    """All that is written of features from now on is multiplied by α."""
    raise NotImplementedError("for kernels only")


@operation(write_with)
def _write_with(memory, alpha):
    def write_one(memory, alpha):
        memory.head[ALPHA] = alpha

    def write_both(memory, alpha):
        memory.head[ALPHA] = memory.second.head[ALPHA] = alpha

    return write_both if in_two(memory) else write_one


def in_two(memory):
    """Whether a type of memory has weights in two."""
    return is_a(Rated, memory.types[memory.fields.index("second")])


# --- One entry of a memory ------------------------------------------------------------------------


@kernel
def place(memory, i):
    """Where its trace is."""
    return np.uint64(memory.slot[i]) if memory.head[DENSE] == 0.0 else i + np.uint64(1)


@kernel
def trace_at(memory, i):
    """e_i."""
    return memory.head[S] * memory.z[place(memory, i)]


@kernel
def weight_in(memory, i):
    """w_i."""
    k = place(memory, i)
    listed = memory.y[k] if memory.head[DENSE] == 0.0 else 0.0
    return memory.u[i] + (listed + memory.head[C] * memory.z[k])


def weight(memory, i):
    """w_i, wherever it lies."""
    raise NotImplementedError("for kernels only")


@operation(weight)
def _weight(memory, i):
    if in_two(memory):
        return lambda memory, i: weight_in(memory, i) + weight_in(memory.second, i)
    return weight_in.py_func
