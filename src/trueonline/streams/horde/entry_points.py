"""The compiled functions of a horde that Python calls, and how they find the rows of features."""

from __future__ import annotations

import numpy as np

from trueonline.core.checking import acceptable
from trueonline.core.compiling.kernels import kernel, specialise
from trueonline.core.forms import Pairs, Sparse, entry, pointer, row, view
from trueonline.streams.horde.ages import settle
from trueonline.streams.horde.horde_layout import BAD, DONE, FULL, LENGTH, TAKEN, attach
from trueonline.streams.horde.updates import begin, learn


@kernel
def own(m, x):
    """A copy of sparse features. What is checked stays as it is when another thread writes to the original."""
    for j in range(x.size):
        m.given[j], m.given_x[j] = x.indices[j], x.values[j * x.each]
    return Sparse(m.given, m.given_x, x.each, x.size)


@kernel
def locate(m, x):
    """Find the rows of the features that are not zero. Return their number, or −1 if no row is free for a new feature."""
    size = 0
    for j in range(x.size):
        i, x_i = entry(x, j)
        if x_i == 0.0:
            continue
        if m.row[i] < 0:
            if m.counts[TAKEN] == m.room:
                return -1
            m.row[i] = m.counts[TAKEN]
            m.counts[TAKEN] += 1
        m.there[size], m.there_x[size] = m.row[i], x_i
        size += 1
    return size


@kernel
def keep_features(m, x):
    """Keep a copy of the features x, because the next step begins there."""
    size = 0
    for j in range(x.size):
        i, x_i = entry(x, j)
        if x_i != 0.0:
            m.at[size], m.at_x[size] = i, x_i
            size += 1
    m.counts[LENGTH] = size


@kernel
def kept_features(m):
    """The features of the previous step."""
    for j in range(m.counts[LENGTH]):
        m.here[j] = m.row[m.at[j]]
    return Pairs(m.here, m.at_x, m.counts[LENGTH])


@kernel
def write(m, columns, out):
    """Write the numbers of all columns, in the order of the questions."""
    for q in range(m.questions):
        out[m.order[q]] = columns[q]


@kernel
def finite(numbers):
    """Whether all numbers are finite."""
    wrong = 0
    for k in range(numbers.size):
        wrong += not np.isfinite(numbers[k])
    return wrong == 0


def step(buffers, binary, discounts, cumulants, x, x_values, deltas):
    """Learn from one transition into x, and write the TD errors to `deltas`. If it returns BAD or FULL, nothing has changed."""
    m = attach(buffers)
    given = view(x, x_values)
    if given.size > m.most or cumulants.size != m.questions:
        return BAD
    features = own(m, given)
    fine, known = acceptable(m.n, features, binary), finite(cumulants)
    if not (fine and known):
        return BAD
    size = locate(m, features)
    if size < 0:
        return FULL
    learn(m, kept_features(m), Pairs(m.there, m.there_x, size), pointer(cumulants, 0), pointer(discounts, 0))
    keep_features(m, features)
    write(m, m.delta, pointer(deltas, 0))
    return DONE


def run(buffers, X, cumulants, discounts, begins, answers, t):
    """Learn from the rows of X from row t on. Return the number of rows done, fewer than all if a new feature has no room.

    Transition t − 1 leads into row t. Nothing is learned from it if row t `begins` a stream. V_t(S_t) is written to
    `answers[t]`, and V of the last row too if `answers` has a place for it. The rows must have been checked.
    """
    m = attach(buffers)
    while t < begins.size:
        features = row(X, t)
        size = locate(m, features)
        if size < 0:
            return t
        if t > 0:
            write(m, m.v, pointer(answers, (t - 1) * m.questions))
        x_next = Pairs(m.there, m.there_x, size)
        if begins[t]:
            begin(m, x_next)
        else:
            R, gammas = pointer(cumulants, (t - 1) * m.questions), pointer(discounts, (t - 1) * m.groups)
            learn(m, kept_features(m), x_next, R, gammas)
        keep_features(m, features)
        t += 1
    if answers.shape[0] == t:
        write(m, m.v, pointer(answers, (t - 1) * m.questions))
    return t


def all_finite(numbers):
    """Whether all numbers are finite."""
    return finite(numbers)


def check(n, X, binary):
    """The number of the first row with bad features, or −1."""
    for t in range(X[0].size - 1):
        fine = acceptable(n, row(X, t), binary)
        if not fine:
            return t
    return -1


def predict(buffers, binary, x, x_values, answers):
    """answers_q ← wᵀx for all questions. The memory does not change. Return DONE or BAD."""
    m = attach(buffers)
    given = view(x, x_values)
    if given.size > m.most:
        return BAD
    features = own(m, given)
    fine = acceptable(m.n, features, binary)
    if not fine:
        return BAD
    for q in range(m.questions):
        m.sum[q] = 0.0
    for j in range(features.size):
        feature, x_i = entry(features, j)
        i = m.row[feature]
        if i < 0:
            continue  # a feature that was never seen has no weights
        for q in range(m.questions):
            m.sum[q] += m.u[i * m.questions + q] * x_i
        for g in range(m.groups):
            page, z_x = m.since[i * m.groups + g] % m.pages, m.z[i * m.groups + g] * x_i
            faded = m.faded[page * m.groups + g]
            for q in range(m.first[g], m.last[g]):
                m.sum[q] += (m.owing[page * m.questions + q] + faded * m.c[q]) * z_x
    write(m, m.sum, pointer(answers, 0))
    return DONE


def settle_all(buffers):
    """Pay all debts of earlier ages."""
    m = attach(buffers)
    for i in range(m.counts[TAKEN]):
        for g in range(m.groups):
            if m.since[i * m.groups + g] != m.age[g]:
                settle(m, i, g)


STEP, RUN, CHECK, FINITE, PREDICT, SETTLE = (
    specialise(template, "horde") for template in (step, run, check, all_finite, predict, settle_all)
)
