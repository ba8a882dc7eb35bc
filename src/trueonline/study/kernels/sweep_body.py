"""One learner of a sweep: one run, one step-size and one trace decay, the error measured after every step.

Processors and GPUs compile the same `learner`. They differ in where its numbers lie (`sweep_kernel.py`, `cuda`). Sums are in order,
so that both find the same bits (`core.pointers`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from trueonline.core.compiling.kernels import kernel, operation
from trueonline.core.forms import Active, Dense, is_a
from trueonline.core.loops import rule
from trueonline.core.memory.short_runs import enlist_all, kept, offset, owed, paid, scaled
from trueonline.core.pointers import since
from trueonline.core.transition import Transition

TRUST = 1e-4  # an error below this share of P and c²R, at their largest, has lost digits, and is summed directly


class Given(NamedTuple):
    """The problem of the learners, and the measure of their error: ‖B(w − w*)‖² after each step but the first `after`."""

    features: Any  # of each state: all of them (floats), or the index of the active one (integers)
    root: Any  # B, `Diagonal` or `Triangular`
    target: Any  # w*
    first: Any  # the weights that learning begins with
    discount: Any  # γ
    second: Any  # η: β = ηα
    after: Any
    parameters: Any  # the rule's own, in the order of their names
    which: Any  # the number of the rule, in kernels that several rules share (`core.family`)


class Diagonal(NamedTuple):
    """A diagonal matrix."""

    entries: Any


class Triangular(NamedTuple):
    """An upper triangular matrix. Entry (i, j) stands at i·row + j, and is zero from j = i + width on."""

    entries: Any
    row: Any
    width: Any


class Trajectory(NamedTuple):
    """A trajectory."""

    states: Any  # steps + 1 of them
    rewards: Any
    discounts: Any
    chances: Any  # ρ and π of each step, one pair behind the other, or one pair for all
    last: Any  # the number of the last pair
    steps: Any


class Sums(NamedTuple):
    """With p = u + y − w* and a diagonal B, ‖B(w − w*)‖² = P + 2cQ + c²R. Also the largest P and R since these were summed."""

    P: Any
    Q: Any
    R: Any
    largest_p: Any
    largest_r: Any


def learner(memory, carried, off, given, run, alpha, lam):
    """The mean error over that of the first weights, infinite where it is no longer a finite number."""
    enlist_all(memory, given.first, is_dense(given.features))
    carried[0] = carried[1] = carried[2] = carried[3] = 0.0
    total = v_old = gamma = 0.0
    rho_old = 1.0
    sums = first_sums(memory, given, off)
    initial = sums.P
    before = state = run.states[0]
    for t in range(run.steps):
        after = run.states[t + 1]
        x = seen(given.features, memory.n, state, before)
        x_next = seen(given.features, memory.n, after, state)
        chance, gamma_next = 2 * min(t, run.last), run.discounts[t]
        rho = run.chances[chance]
        transition = Transition(
            x=x,
            reward=run.rewards[t],
            x_next=x_next,
            x_expected=x_next,
            v_old=v_old,
            alpha=alpha,
            beta=given.second * alpha,
            gamma=gamma,
            lam=lam,
            gamma_next=gamma_next,
            lam_next=lam,
            rho=rho,
            rho_old=rho_old,
            pi=run.chances[chance + 1],
            interest=1.0,
            carried=carried,
            greedy=0.0,
            discount=given.discount,
            trace_decay=lam,
            parameters=given.parameters,
            which=given.which,
        )
        touched = about(memory, x, x_next)
        _, _, v_old = rule(memory, transition)
        error, sums = measured(memory, given, off, x, touched, sums)
        gamma, rho_old = gamma_next, rho
        before, state = state, after
        if t >= given.after:
            total += error
            if not total < np.inf:
                break
    return total / (run.steps - given.after) / initial if total < np.inf else np.inf


# --- Features -------------------------------------------------------------------------------------


@operation
def is_dense(features):
    """Whether features are given by value."""

    return (lambda features: False) if isinstance(features.dtype, types.Integer) else (lambda features: True)


@operation
def seen(features, n, state, before):
    """The features of a state. `before` is the state before it."""

    def active(features, n, state, before):
        return Active(since(features, np.int64(state)), 1)

    def dense(features, n, state, before):
        return Dense(since(features, np.int64(state) * n), since(features, np.int64(before) * n), n)

    return active if isinstance(features.dtype, types.Integer) else dense


# --- The error ------------------------------------------------------------------------------------


def _is_quick(given):
    """Whether a Numba type of `Given` has one active feature in each state, and a diagonal B."""
    there = dict(zip(given.fields, given.types, strict=True))
    return isinstance(there["features"].dtype, types.Integer) and is_a(Diagonal, there["root"])


@operation
def first_sums(memory, given, off):
    """The sums of the weights that learning begins with. P is their error."""

    def quick(memory, given, off):
        return summed(memory, given)

    def direct(memory, given, off):
        for i in range(memory.n):
            off[i] = given.first[i] - given.target[i]
        return Sums(squared(given.root, off, memory.n), 0.0, 0.0, 0.0, 0.0)

    return quick if _is_quick(given) else direct


@operation
def about(memory, x, x_next):
    """The entries that a step may change, with what the memory keeps of them before it: those of x and of x_next."""

    def quick(memory, x, x_next):
        i, j = np.int64(x.indices[0]), np.int64(x_next.indices[0])
        p, z = kept(memory, i)
        p_next, z_next = kept(memory, j)
        return i, p, z, j, p_next, z_next

    return quick if is_a(Active, x) else (lambda memory, x, x_next: None)


@operation
def measured(memory, given, off, x, touched, sums):
    """The error after a step, and the sums. In O(1) for one active feature and a diagonal B."""

    def direct(memory, given, off, x, touched, sums):
        offset(memory, x, given.target, off)
        return squared(given.root, off, memory.n), sums

    def quick(memory, given, off, x, touched, sums):
        i, p, z, j, p_next, z_next = touched
        s, c = paid(memory)
        if s != 1.0 or c != 0.0:  # p ← p + c·z and z ← s·z, in the sums too
            p, z, p_next, z_next = p + c * z, s * z, p_next + c * z_next, s * z_next
            P, largest_p = sums.P + c * (2.0 * sums.Q + c * sums.R), sums.largest_p + c * c * sums.largest_r
            sums = Sums(P, s * (sums.Q + c * sums.R), s * s * sums.R, max(P, largest_p), s * s * sums.largest_r)
        sums = moved(memory, given, i, p, z, sums)
        if j != i:
            sums = moved(memory, given, j, p_next, z_next, sums)
        c = owed(memory)
        error = sums.P + c * (2.0 * sums.Q + c * sums.R)
        g = scaled(memory)
        if g != 1.0 or not error > TRUST * (sums.largest_p + c * c * sums.largest_r):  # or if it is not a number
            sums = summed(memory, given)
            if g != 1.0:  # until G is 1 again, sums tell nothing
                sums = Sums(sums.P, sums.Q, sums.R, np.inf, sums.largest_r)
            error = 0.0
            for k in range(memory.n):
                p, z = kept(memory, k)
                part = given.root.entries[k] * (g * (p + c * z) - given.target[k])
                error += part * part
        return error, sums

    return quick if _is_quick(given) else direct


@kernel
def summed(memory, given):
    """The sums, from scratch."""
    P = Q = R = 0.0
    for i in range(memory.n):
        d = given.root.entries[i] * given.root.entries[i]
        p, z = kept(memory, i)
        p -= given.target[i]
        P += d * p * p
        Q += d * p * z
        R += d * z * z
    return Sums(P, Q, R, P, R)


@kernel
def moved(memory, given, i, p, z, sums):
    """The sums after entry i has changed from u + y = p and z."""
    d = given.root.entries[i] * given.root.entries[i]
    p_new, z_new = kept(memory, i)
    b, a = p_new - p, z_new - z
    p -= given.target[i]
    P = sums.P + d * (b * (2.0 * p + b))
    Q = sums.Q + d * (p * a + b * z_new)
    R = sums.R + d * (a * (z + z_new))
    return Sums(P, Q, R, max(P, sums.largest_p), max(R, sums.largest_r))


@operation
def squared(root, off, n):
    """‖Br‖². A sum of squares: rounding cannot turn it negative."""

    def diagonal(root, off, n):
        total = 0.0
        for i in range(n):
            part = root.entries[i] * off[i]
            total += part * part
        return total

    def triangular(root, off, n):
        total = 0.0
        for i in range(n):
            part = 0.0
            for j in range(i, min(i + root.width, n)):
                part += root.entries[i * root.row + j] * off[j]
            total += part * part
        return total

    return diagonal if is_a(Diagonal, root) else triangular
