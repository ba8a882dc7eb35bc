"""Kernels that settle features and end ages: how the debts of traced features are paid."""

from __future__ import annotations

from trueonline.core.compiling.kernels import kernel, outlined

MIN_TRACE = 1e-20  # a trace that has faded to this can no longer change a weight in double precision


@outlined
def settle(m, i, g):
    """Pay what row i owes in group g, and bring its trace to the present age."""
    k, page = i * m.groups + g, m.since[i * m.groups + g] % m.pages
    z_i = m.z[k]
    if z_i != 0.0:
        for q in range(m.first[g], m.last[g]):
            m.u[i * m.questions + q] += m.owing[page * m.questions + q] * z_i
        m.z[k] = m.faded[page * m.groups + g] * z_i
    m.since[k] = m.age[g]


@outlined
def end_age(m, g):
    """Record the debts on the pages, begin a new page, and settle the rows whose turn it is."""
    age, first, last = m.age[g], m.first[g], m.last[g]
    for back in range(m.pages):
        page = (age + m.pages - back) % m.pages
        faded = m.faded[page * m.groups + g]
        if faded == 0.0:  # and so are all older ones
            break
        for q in range(first, last):
            m.owing[page * m.questions + q] += faded * m.c[q]
        faded *= m.s[g]
        m.faded[page * m.groups + g] = faded if faded > MIN_TRACE else 0.0
    m.s[g] = 1.0
    m.age[g] = age + 1
    page = (age + 1) % m.pages
    m.faded[page * m.groups + g] = 1.0
    for q in range(first, last):
        m.c[q] = m.owing[page * m.questions + q] = 0.0
    for _ in range(min(m.room, m.room // (m.pages - 2) + 1)):  # so all rows before this page is reused
        i = m.turn[g]
        if m.z[i * m.groups + g] != 0.0 and m.since[i * m.groups + g] != m.age[g]:
            settle(m, i, g)
        m.turn[g] = i + 1 if i + 1 < m.room else 0


@kernel
def settle_active(m, x):
    """Settle the active features in every group."""
    for j in range(x.size):
        for g in range(m.groups):
            if m.since[x.indices[j] * m.groups + g] != m.age[g]:
                settle(m, x.indices[j], g)
