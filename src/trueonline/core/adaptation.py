"""Step-size adaptation, for streams whose features and errors are not known beforehand. It departs from the paper.

A method still reads φ. It writes α_t D_t φ in place of φ, with D = diag(r) (`memory.share`), and its own step-size is 1. So every
trace carries the step-sizes of the time of each visit, as the trace of Algorithm 4 does: w ← w + δe. True online methods remain
equal to their forward views, with the matrix α_t D_t in place of α.

**A bound.** Before a transition is learned from, α is lowered to where the update closes no more than a given share of the error:

    αρMΣ_i r_i φ_i² ≤ bound                  always (M = 1 but for emphatic methods)
    ργλeᵀφ + αρMΣ_i r_i φ_i² ≤ bound         where traces accumulate: eᵀφ of the new trace

With a bound of 1 no update carries V(S_t) beyond its target. If ργλeᵀφ alone exceeds the bound, the trace is shortened to it.
The second step-size of gradient methods is kept to βφᵀφ ≤ bound.

**TIDBD** (Kearney, Veeriah, Travnik, Sutton and Pilarski 2018) with the normalisation of Autostep (Mahmood, Sutton, Degris and
Pilarski 2012), so that θ has no unit: a step-size for each feature, α_i = α·r_i, which grows where a feature's errors keep their
sign from one visit to the next, and shrinks where they change it. With meta step-size θ, over the features that are not 0,

    g_i = ρδφ_i H_i        n_i ← max(|g_i|, n_i + α_i φ_i² (|g_i| − n_i) / τ)        r_i ← r_i·e^{θ g_i / n_i}
    r_i ← r_i·bound / Σ_j α_j φ_j² where that sum exceeds the bound
    H_i ← H_i·[1 − φ_i e_i]⁺ + Δw_i

Every change of w_i is in proportion to r_i, so Δw_i is its own derivative by ln r_i, and H is the sum of these derivatives. H
follows w, except that it forgets at active features. So H − w changes at active features only. This difference is kept, as `past`,
and step-size adaptation costs the active features only.
"""

from __future__ import annotations

import numpy as np

from trueonline.core.emphasis import emphasis
from trueonline.core.forms import entry
from trueonline.core.kernels import kernel, operation
from trueonline.core.memory import decay, rate, settle_all
from trueonline.core.memory.layout import (
    ACCUMULATES,
    ALPHA,
    BOUND,
    BOUNDED,
    META,
    WEIGHED,
    S,
    holds_two_traces,
)
from trueonline.core.memory.operations import place, weight_in
from trueonline.core.transition import with_step_sizes

BY_RATIO, BY_EMPHASIS = 1.0, 2.0  # what updates may be weighed by


ADDS, SHORTENS = 1.0, 2.0
FORMS = {"accumulating": SHORTENS, "provisional": ADDS}  # the trace adds up; and can be shortened by itself, or not
MEMORY = 1e4  # τ: over how many visits the usual size of g is remembered, at a step-size of 1
LEAST, MOST = 1e-30, 1e30  # how far from where it began a step-size may go


def form_of(trace: str, asked: tuple[str, ...]) -> tuple[float, float]:
    """The form of a method for step-size adaptation: whether its traces add up, and the weight of its updates.

    `trace` is the catalogue's word for the kind of trace, and `asked` is what the rule asks for. The action that an
    expected update is about is given, so no ratio weighs it.
    """
    weighed = BY_EMPHASIS if "interest" in asked else 0.0 if "x_expected" in asked else BY_RATIO
    return FORMS.get(trace, 0.0), weighed


@kernel
def prepare(memory, t):
    """Adapt the step-sizes of the active features, and bound α; the transition then has step-size 1, as the trace carries α."""
    x, tuning = t.x, memory.tuning
    bound, theta = tuning[BOUND], tuning[META]
    rho = t.rho if tuning[WEIGHED] != 0.0 else 1.0
    if theta > 0.0:
        adapt(memory, x, rho * error_of(memory, x, t.reward, t.x_expected, t.gamma_next), t.alpha, theta)
    squares = fresh = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        squares += x_i * x_i
        fresh += rate(memory, i) * x_i * x_i
    lower = theta > 0.0 and t.alpha * fresh > bound
    if lower:
        fresh = lowered(memory, x, bound / (t.alpha * fresh))
    emphasised = tuning[WEIGHED] == BY_EMPHASIS
    fresh *= rho * (emphasis(t.carried[0], t.gamma, t.lam, t.rho_old, t.interest)[1] if emphasised else 1.0)
    left = bound - carried(memory, x, t.rho * t.gamma * t.lam, bound) if tuning[ACCUMULATES] != 0.0 else bound
    within = bounded(t.alpha, fresh, left)
    tuning[ALPHA] = within
    tuning[BOUNDED] += lower or within < t.alpha
    return with_step_sizes(t, 1.0, bounded(t.beta, squares, bound))


@kernel
def carried(memory, x, decayed, bound):
    """ργλeᵀφ, the part of the bound that the trace uses up, at most all of it. An accumulating trace is shortened to fit."""
    along = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        along += x_i * trace_at(memory, i)
    along *= decayed
    if along > bound and memory.tuning[ACCUMULATES] == SHORTENS:
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
    if memory.tuning[META] > 0.0:
        for j in range(x.size):
            i, x_i = entry(x, j)
            memory.past[i] -= memory.kept[i] * min(1.0, x_i * trace_at(memory, i))  # H ← H·[1 − φe]⁺ + Δw


# --- One entry of a memory ------------------------------------------------------------------------


@kernel
def trace_at(memory, i):
    """e_i."""
    return memory.head[S] * memory.z[place(memory, i)]


def weight(memory, i):
    """w_i, summed over the memories that hold a part of it."""
    raise NotImplementedError("for kernels only")


@operation(weight)
def _weight(memory, i):
    if holds_two_traces(memory):
        return lambda memory, i: weight_in(memory, i) + weight_in(memory.second, i)
    return weight_in.py_func
