"""Step-size adaptation, for streams whose features and errors are not known beforehand. It departs from the paper.

A method still reads φ. It writes α_t D_t φ in place of φ, with D = diag(r) (`memory.share`), and its own step-size is 1. So every
trace carries the step-sizes of the time of each visit, as the trace of Algorithm 4 does: w ← w + δe. True online methods remain
equal to their forward views, with the matrix α_t D_t in place of α.

**A bound.** Before a transition is learned from, α is lowered to where the update closes no more than a given share of the error:

    αρMΣ_i r_i φ_i² ≤ bound                  always (M = 1 but for emphatic methods)
    ργλeᵀφ + αρMΣ_i r_i φ_i² ≤ bound         where traces accumulate: eᵀφ of the new trace

With a bound of 1 no update carries V(S_t) beyond its target. If ργλeᵀφ alone exceeds the bound, the trace is shortened to it.
The second step-size of gradient methods is kept to βφᵀφ ≤ bound.

**A step-size for each feature**, α_i = α·r_i. It grows where a feature's errors keep their sign, and shrinks where they change
it. H_i is the derivative of w_i by ln r_i. The derivative of the squared error of the λ-return by ln r_i is then a sum over
later TD errors, so it has a trace p, as the gradient of w has the trace e. With meta step-size θ:

    r_i ← min(r_i, bound·min(300 / Σ_j φ_j², 1 / φ_i²) / α)         of active features
    D ← max(|δ|, D + (|δ| − D) / τ)                                 the largest error of late
    n_i ← max(g_i, n_i + α_i φ_i² (g_i − n_i) / τ)                  with g_i = D·|ρφ_i H_i|
    p_i ← γλ·min(1, ρ)·p_i + ρφ_i H_i / n_i
    ln r_i ← ln r_i + θδ⁻p_i                                        δ⁻ is δ within ±D of the step before
    ln r_i ← ln r_i − 0.1θ·ln(Σ_j α_j φ_j² / bound)                 of active features, where that sum exceeds the bound
    H_i ← H_i·[1 − φ_i e_i]⁺ + Δw_i

The update of w uses the r_i of before θ(δ⁻/D)p_i. D and n are the normalisation of Autostep (Mahmood, Sutton, Degris and Pilarski
2012), in two factors, because errors come later than φH. So θ has no unit. And no error, however large, changes ln r_i by much:
|ρφH/n| ≤ 1, so |p| ≤ 1/(1 − γλ), and |δ⁻/D| ≤ 1. So θ(δ⁻/D)p is at most θ/(1 − γλ). D is in neither n nor p: otherwise p would keep
terms that were divided by an older, smaller D.

Every change of w_i is in proportion to r_i. So Δw_i is its own derivative by ln r_i, and H is the sum of these derivatives. H
follows w, except that it forgets at active features. So H − w changes at active features only, and this difference is kept. And
ln r and p are a memory (`meta`), as w and e are: p decays everywhere, and ln r changes everywhere by a multiple of p. So a step
costs the active features only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueonline.core.compiling.kernels import kernel, operation
from trueonline.core.emphasis import emphasis
from trueonline.core.exponential import exp
from trueonline.core.forms import Dense, entry, is_a, loops
from trueonline.core.memory import decay, learn, length_squared, settle_all
from trueonline.core.memory.layout import (
    ACCUMULATES,
    ALPHA,
    BOUND,
    BOUNDED,
    COUNT,
    KEPT,
    LARGEST,
    META,
    PAST,
    RATE,
    USUAL,
    WEIGHED,
    C,
    Memory,
    S,
    holds_two_traces,
)
from trueonline.core.memory.operations import of
from trueonline.core.memory.upkeep import MIDDLE, REACH, rebase
from trueonline.core.transition import with_step_sizes

BY_RATIO, BY_EMPHASIS = 1.0, 2.0  # what updates may be weighed by


ADDS, SHORTENS = 1.0, 2.0
FORMS = {"accumulating": SHORTENS, "provisional": ADDS}  # the trace adds up; and can be shortened by itself, or not
MEMORY = 1e4  # τ: over how many errors, or visits at a step-size of 1, the largest is remembered
FAIR = 300.0  # how many times its fair share of the bound the step-size of a feature may be
LOWER = 0.1  # how fast step-sizes fall that exceed the bound, as a part of θ
LOWEST, HIGHEST = 1e-30, 1e30
LEAST, MOST = np.log(LOWEST), np.log(HIGHEST)  # how far from where it began a step-size may go


def form_of(trace: str, asked: tuple[str, ...]) -> tuple[float, float]:
    """The form of a method for step-size adaptation: whether its traces add up, and the weight of its updates.

    `trace` is the catalogue's word for the kind of trace, and `asked` is what the rule asks for. The action that an
    expected update is about is given, so no ratio weighs it.
    """
    weighed = BY_EMPHASIS if "interest" in asked else 0.0 if "x_expected" in asked else BY_RATIO
    return FORMS.get(trace, 0.0), weighed


def over_features(function: Callable) -> Callable:
    """Loops over features as an operation. Where x is dense, they may sum in any order."""
    for dense in (True, False):
        loops(function, dense=dense, reassociate=dense)(function)
    return function


@kernel
def prepare(memory, t):
    """Bound α for this transition, and adapt the step-sizes; the transition then has step-size 1, as the trace carries α."""
    x, tuning = t.x, memory.tuning
    bound, theta = tuning[BOUND], tuning[META]
    rho = t.rho if tuning[WEIGHED] != 0.0 else 1.0
    squares = length_squared(x)
    fresh = squares
    if theta > 0.0:
        decay(memory.meta, t.gamma * t.lam * min(1.0, t.rho))
        tidy(memory.meta, x)
        fresh, outside = look_up(memory, x, bound / t.alpha, squares)
        if outside > 0.0:
            bring_back(memory, x)
        look_ahead(memory, t.x_next)
        v, v_next = look_at_values(memory, x, t.x_expected)
        excess = np.log(t.alpha * fresh / bound) if t.alpha * fresh > bound else 0.0
        adapt(memory, x, t.reward + t.gamma_next * v_next - v, rho, t.alpha, theta, excess)
    emphasised = tuning[WEIGHED] == BY_EMPHASIS
    if emphasised:
        fresh *= rho * emphasis(t.carried[0], t.gamma, t.lam, t.rho_old, t.interest)[1]
    else:
        fresh *= rho
    left = bound
    if tuning[ACCUMULATES] != 0.0:
        left = bound - carried(memory, x, t.rho * t.gamma * t.lam, bound)
    within = bounded(t.alpha, fresh, left)
    tuning[ALPHA] = within
    tuning[BOUNDED] += within < t.alpha
    return with_step_sizes(t, 1.0, bounded(t.beta, squares, bound))


@kernel
def carried(memory, x, decayed, bound):
    """ργλeᵀφ, the part of the bound that the trace uses up, at most all of it. An accumulating trace is shortened to fit."""
    along = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        along += x_i * memory.z[place_of(memory, x, i)]
    along *= decayed * memory.head[S]
    if along > bound and memory.tuning[ACCUMULATES] == SHORTENS:
        decay(memory, bound / along)
    return min(max(along, 0.0), bound)


@over_features
def look_up(memory, x, bound, squares):
    """Write the r of active features; return Σ r_i φ_i², and how many r are not e^(ln r) but at a limit.

    No feature has many times its fair share of the bound.
    """
    c, kept, fair = memory.meta.head[C], memory.kept, FAIR * bound / squares
    fresh = outside = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        square, r = x_i * x_i, exp(weight_of(memory.meta, x, i, c))
        most = min(fair, bound / square)
        limited = max(min(min(r, most), HIGHEST), LOWEST)  # noqa: PLW3301  (of two each, which are free of branches)
        kept[of(memory, x, i, RATE)] = limited
        fresh += limited * square
        outside += (limited != r) & (x_i != 0.0)
    return fresh, outside


@kernel
def bring_back(memory, x):
    """Write ln r where r is at a limit."""
    for j in range(x.size):
        i, x_i = entry(x, j)
        log_r, r = weight_of(memory.meta, x, i, memory.meta.head[C]), memory.kept[of(memory, x, i, RATE)]
        if exp(log_r) != r and x_i != 0.0:
            stamp(memory.meta, x, i, 0.0, np.log(r) - log_r)


@operation
def look_ahead(memory, x_next):
    """r of the features of S', which the correction of gradient methods changes."""

    def look_at_all(memory, x_next):
        c, kept = memory.meta.head[C], memory.kept
        for j in range(x_next.size):
            i = entry(x_next, j)[0]
            kept[of(memory, x_next, i, RATE)] = exp(max(min(weight_of(memory.meta, x_next, i, c), MOST), LEAST))

    corrects = is_a(Memory, memory.types[memory.fields.index("second")])
    return look_at_all if corrects else lambda memory, x_next: None


@over_features
def look_at_values(memory, x, x_next):
    """Write the H of active features; return wᵀx and wᵀx_next."""
    c, kept, v, v_next = memory.head[C], memory.kept, 0.0, 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        w = weight(memory, x, i, c)
        kept[of(memory, x, i, KEPT)] = w + kept[of(memory, x, i, PAST)]
        v += w * x_i
    for j in range(x_next.size):
        i, x_i = entry(x_next, j)
        v_next += weight(memory, x_next, i, c) * x_i
    return v, v_next


@kernel
def adapt(memory, x, delta, rho, alpha, theta, excess):
    """p ← p + ρφH/n over the active features, and ln r ← ln r + θ(δ⁻/D)p everywhere."""
    before = memory.tuning[LARGEST]
    largest = max(abs(delta), before + (abs(delta) - before) / MEMORY)
    if not largest < np.inf:  # a learner that diverges shows it in its weights
        return
    memory.tuning[LARGEST] = largest
    gather(memory, x, rho, alpha / MEMORY, LOWER * theta * excess)
    within = min(max(delta, -before), before) if before > 0.0 else delta
    if largest > 0.0:
        learn(memory.meta, theta * (within / largest))


@over_features
def gather(memory, x, rho, part, lower):
    """p ← p + ρφH/n and ln r ← ln r − lower, of active features."""
    meta, kept, unit, owed = memory.meta, memory.kept, 1.0 / memory.meta.head[S], memory.meta.head[C]
    for j in range(x.size):
        i, x_i = entry(x, j)
        gain, usual = rho * x_i * kept[of(memory, x, i, KEPT)], kept[of(memory, x, i, USUAL)]
        g = abs(gain)
        n = max(g, usual + part * kept[of(memory, x, i, RATE)] * x_i * x_i * (g - usual))
        usable, a_z, down = (n > 0.0) & (n < np.inf), unit * gain / n, lower * (x_i != 0.0)
        kept[of(memory, x, i, USUAL)] = n if usable else usual
        a_z = a_z if usable else 0.0
        stamp(meta, x, i, a_z, -down - owed * a_z)


@kernel
def bounded(alpha, pull, bound):
    return bound / pull if alpha * pull > bound else alpha


@kernel
def follow(memory, x):
    """After learning: H forgets where features are active. Imprints are made now, with the step-sizes of now."""
    settle_all(memory, x)
    if memory.tuning[META] > 0.0:
        forget(memory, x)


@over_features
def forget(memory, x):
    """H ← H·[1 − φe]⁺ + Δw, with H − w."""
    kept, z, s = memory.kept, memory.z, memory.head[S]
    for j in range(x.size):
        i, x_i = entry(x, j)
        kept[of(memory, x, i, PAST)] -= kept[of(memory, x, i, KEPT)] * min(1.0, x_i * (s * z[place_of(memory, x, i)]))


# --- One entry of a memory ------------------------------------------------------------------------


@operation
def place_of(memory, x, i):
    """The index of the trace of feature i, in the layout for x."""
    return (lambda memory, x, i: i + 1) if is_a(Dense, x) else (lambda memory, x, i: memory.slot[i])


@operation
def weight_of(memory, x, i, c):
    """w_i of this one memory, in the layout for x, where c is owed."""

    def weight_listed(memory, x, i, c):
        k = memory.slot[i]
        return memory.u[i] + (memory.y[k] + c * memory.z[k])

    return (lambda memory, x, i, c: memory.u[i] + c * memory.z[i + 1]) if is_a(Dense, x) else weight_listed


@operation
def weight(memory, x, i, c):
    """w_i, summed over the memories that hold a part of it."""

    def weight_of_two(memory, x, i, c):
        second = memory.second
        return weight_of(memory, x, i, c) + weight_of(second, x, i, second.head[C])

    return weight_of_two if holds_two_traces(memory) else (lambda memory, x, i, c: weight_of(memory, x, i, c))  # noqa: PLW0108


@operation
def stamp(memory, x, i, a_z, b_y):
    """e_i ← e_i + s·a_z and w_i ← w_i + b_y + c·a_z. So the caller divides by s, once for many."""

    def stamp_dense(memory, x, i, a_z, b_y):
        memory.z[i + 1] += a_z
        memory.u[i] += b_y

    def stamp_listed(memory, x, i, a_z, b_y):
        k = memory.slot[i]
        if k != 0:
            memory.z[k] += a_z
            memory.y[k] += b_y
        elif a_z == 0.0:
            memory.u[i] += b_y
        else:
            memory.head[COUNT] += 1.0
            count = int(memory.head[COUNT])
            memory.slot[i] = count
            memory.owner[count] = i
            memory.z[count] = a_z
            memory.y[count] = b_y

    return stamp_dense if is_a(Dense, x) else stamp_listed


@operation
def tidy(memory, x):
    """Bring s into a range where entries can be stamped. x tells the layout."""

    def tidy_dense(memory, x):
        head = memory.head
        if abs(head[S] - MIDDLE) > REACH:
            for i in range(memory.n):
                memory.u[i] += head[C] * memory.z[i + 1]
                memory.z[i + 1] *= head[S]
            head[S], head[C] = 1.0, 0.0

    def tidy_sparse(memory, x):
        if abs(memory.head[S] - MIDDLE) > REACH:
            rebase(memory)

    return tidy_dense if is_a(Dense, x) else tidy_sparse
