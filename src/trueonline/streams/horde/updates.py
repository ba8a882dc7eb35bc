"""Kernels that learn from one transition, for all questions. Features are given by their rows and values."""

from __future__ import annotations

import numpy as np

from trueonline.core.compiling.kernels import kernel, outlined
from trueonline.core.forms import Pairs
from trueonline.streams.horde.ages import end_age, settle_active
from trueonline.streams.horde.horde_layout import REPLACE, TRUE_ONLINE

MIN_SCALE = 1e-2  # an age ends below this s: an imprint at s loses log10(1/s) digits
BLOCK_COLUMNS = 1024  # columns that are passed over at a time, so that the numbers of all questions stay in the cache


@outlined
def learn(m, x, x_next, cumulants, discounts):
    """One transition for all questions, in the order of the methods' pseudo-code. V comes from the previous step."""
    for g in range(m.groups):
        m.s[g] *= m.gamma[g] * m.lam[g]  # e ← γλe …
        if m.s[g] < MIN_SCALE:
            end_age(m, g)
    settle_active(m, x)
    settle_active(m, x_next)
    for g in range(m.groups):
        if m.method[g] == REPLACE:
            replace(m, g, x)
        else:
            imprint(m, g, x)
    common = pass_over(m, x, x_next)
    for q in range(m.questions):
        m.delta[q] = cumulants[m.order[q]]
    for g in range(m.groups):
        alpha, gamma_next, s, columns = m.alpha[g], discounts[g], m.s[g], range(m.first[g], m.last[g])
        z_x = trace_at(m, g, x_next)
        for q in columns:
            m.v_old[q] = m.sum[q] + m.c[q] * z_x + m.b[q] * common  # V_old ← V', as it was before w ← w − bφ
        for q in columns:
            m.delta[q] += gamma_next * m.v_old[q] - m.v[q]  # δ ← R + γV' − V
        for q in columns:
            m.c[q] += (alpha * m.delta[q] + m.b[q]) * s  # w ← w + α(δ + V − V_old)e
        for q in columns:
            m.v[q] = m.sum[q] + m.c[q] * z_x  # V of the next step
        m.gamma[g] = gamma_next


@outlined
def begin(m, x):
    """Begin a stream at features x, with no trace."""
    settle_active(m, x)
    pass_over(m, Pairs(x.indices, x.values, np.int64(0)), x)
    for g in range(m.groups):
        m.s[g] = m.gamma[g] = 0.0
        z_x = trace_at(m, g, x)
        for q in range(m.first[g], m.last[g]):
            m.v_old[q] = 0.0
            m.v[q] = m.sum[q] + m.c[q] * z_x


@kernel
def trace_at(m, g, x):
    """zᵀx."""
    total = 0.0
    for j in range(x.size):
        total += m.z[x.indices[j] * m.groups + g] * x.values[j]
    return total


@kernel
def imprint(m, g, x):
    """e ← e + φ. True online: e ← e + φ − α(γλeᵀφ)φ and w ← w − bφ with b = α(V − V_old). `pass_over` changes the weights."""
    true_online = m.method[g] == TRUE_ONLINE
    a = (1.0 - m.alpha[g] * m.s[g] * trace_at(m, g, x) if true_online else 1.0) / m.s[g]
    step = m.alpha[g] if true_online else 0.0
    for q in range(m.first[g], m.last[g]):
        m.b[q] = step * (m.v[q] - m.v_old[q])
    for q in range(m.first[g], m.last[g]):
        m.d[q] = m.b[q] + m.c[q] * a
    for j in range(x.size):
        m.z[x.indices[j] * m.groups + g] += a * x.values[j]


@kernel
def replace(m, g, x):
    """e_i ← 1 where φ_i = 1. The change of a trace differs between features, so the weights are changed here too."""
    for q in range(m.first[g], m.last[g]):
        m.b[q] = m.d[q] = 0.0
    for j in range(x.size):
        k, i = x.indices[j] * m.groups + g, x.indices[j] * m.questions
        dz = 1.0 / m.s[g] - m.z[k]
        m.z[k] += dz
        for q in range(m.first[g], m.last[g]):
            m.u[i + q] -= m.c[q] * dz


@outlined
def pass_over(m, x, x_next):
    """u_i ← u_i − d·x_i over the features x, and sum ← Σ u_i·x'_i over the features x'. Return xᵀx'."""
    common = mark(m, x, x_next)
    for first in range(0, m.questions, BLOCK_COLUMNS):
        last = min(first + BLOCK_COLUMNS, m.questions)
        for q in range(first, last):
            m.sum[q] = 0.0
        for j in range(x_next.size):
            i, x_i, y = x_next.indices[j] * m.questions, m.mark[2 * x_next.indices[j]], x_next.values[j]
            if x_i != 0.0:  # active before and after
                for q in range(first, last):
                    m.u[i + q] -= m.d[q] * x_i
                    m.sum[q] += m.u[i + q] * y
            else:
                for q in range(first, last):
                    m.sum[q] += m.u[i + q] * y
        for j in range(x.size):
            i, x_i, y = x.indices[j] * m.questions, x.values[j], m.mark[2 * x.indices[j] + 1]
            if y == 0.0:
                for q in range(first, last):
                    m.u[i + q] -= m.d[q] * x_i
    for j in range(x.size):
        m.mark[2 * x.indices[j]] = 0.0
    for j in range(x_next.size):
        m.mark[2 * x_next.indices[j] + 1] = 0.0
    return common


@kernel
def mark(m, x, x_next):
    """Note which features are active before and after. Return xᵀx'."""
    common = 0.0
    for j in range(x.size):
        m.mark[2 * x.indices[j]] = x.values[j]
    for j in range(x_next.size):
        m.mark[2 * x_next.indices[j] + 1] = x_next.values[j]
        common += m.mark[2 * x_next.indices[j]] * x_next.values[j]
    return common
