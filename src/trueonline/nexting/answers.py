"""Many answers over one stream of features: weights for all questions, one trace for all that can share it.

A trace depends on the features, γ, λ, α and the kind of trace, and not on what is predicted. So questions that have these in
common form a *group*, which has one trace e = s·z; and each of its questions q has weights

    w_iq = u_iq + c_q·z_i

as in `trueonline.memory`, with u_i• of all questions of all groups beside each other. What a step costs:

| read all answers           | u over the active features × questions, and z over the active features once for a group  |
| e ← g·e                    | s ← g·s, for each group                                                                  |
| e ← e + a·x, w_q ← w_q + b_q·x | z_i ← z_i + (a/s)·x_i and u_iq ← u_iq + (b_q − c_q·a/s)·x_i over the active features |
| w_q ← w_q + k_q·e          | c_q ← c_q + k_q·s                                                                        |

When s falls below EDGE, what is owed is paid for the whole list of traced features: u_iq ← u_iq + c_q·z_i, z ← s·z, c ← 0, s ← 1.
That is the dearest part of a step on average, and so the edge is lower here than for one learner, at the price of two more
digits; still the answers are those of separate learners to about 1e-12.

Features are numbered in the order in which they are first seen (their *row*), so that memory is that of the features met.
"""

from __future__ import annotations

import numpy as np

from trueonline.kernels import kernel, specialise

EDGE = 1e-4
DROP = 1e-18
ACCUMULATE, REPLACE, TRUE_ONLINE = range(3)
METHODS = {"accumulate": ACCUMULATE, "replace": REPLACE, "true_online": TRUE_ONLINE}


@kernel
def total(u, c, z, first, last, rows, x, out):
    """out_q ← wᵀx for the questions of a group; return zᵀx."""
    z_x = 0.0
    for j in range(rows.size):
        z_x += z[rows[j]] * x[j]
    for q in range(first, last):
        out[q] = c[q] * z_x
    for j in range(rows.size):
        u_i, x_i = u[rows[j]], x[j]
        for q in range(first, last):
            out[q] += u_i[q] * x_i
    return z_x


@kernel
def pay(u, c, z, on, listed, count, first, last, s):
    """Fold what is owed into u over the list; take faded features off it; return how many are left on it."""
    norm = 0.0
    for k in range(count):
        i = listed[k]
        u_i, z_i = u[i], z[i]
        for q in range(first, last):
            u_i[q] += c[q] * z_i
        z[i] = s * z_i
        norm += abs(z[i])
    for q in range(first, last):
        c[q] = 0.0
    kept = 0
    for k in range(count):
        i = listed[k]
        if abs(z[i]) <= DROP * norm:
            z[i] = 0.0
            on[i] = False
        else:  # a NaN stays on the list, where it can be seen
            listed[kept] = i
            kept += 1
    return kept


@kernel
def learn(
    u, c, z, on, listed, counts, scales, group, first, last, method, v_old, rows, x, rows_next, x_next, cumulants, alpha, gamma,
    gamma_next, lam, v, v_next, deltas,
):  # fmt: skip
    """One transition for the questions `first` to `last` of a group, in the order of the methods' pseudo-code."""
    z_x = total(u, c, z, first, last, rows, x, v)
    total(u, c, z, first, last, rows_next, x_next, v_next)
    trace_x = scales[group] * z_x
    s, count = scales[group] * gamma * lam, counts[group]
    if s < EDGE:
        count = pay(u, c, z, on, listed, count, first, last, s)
        s = 1.0
    for q in range(first, last):
        deltas[q] = cumulants[q] + gamma_next * v_next[q] - v[q]
    a = 1.0 - alpha * gamma * lam * trace_x if method == TRUE_ONLINE else 1.0
    correct = alpha if method == TRUE_ONLINE else 0.0
    for j in range(rows.size):
        i, x_i = rows[j], x[j]
        dz = 1.0 / s - z[i] if method == REPLACE else a / s * x_i
        if method == REPLACE and x_i != 1.0:
            continue
        if not on[i]:
            on[i] = True
            listed[count] = i
            count += 1
        z[i] += dz
        u_i = u[i]
        for q in range(first, last):
            u_i[q] -= correct * (v[q] - v_old[q]) * x_i + c[q] * dz
    for q in range(first, last):
        c[q] += alpha * (deltas[q] + (v[q] - v_old[q] if method == TRUE_ONLINE else 0.0)) * s
        v_old[q] = v_next[q]
    scales[group], counts[group] = s, count


def run(
    u, c, v_old, z, on, listed, counts, scales, starts_at, methods, alphas, gammas, lams, indptr, rows, x, cumulants, discounts,
    begins, values, deltas,
):  # fmt: skip
    """Learn from a stream of T transitions (T + 1 rows of features) for all questions; write V_t(S_t) of each to `values`.

    `discounts[t, g]` is γ of the state entered for group g; `gammas[g]` that of the state stood in. A row that `begins`
    anew is not led into by a transition.
    """
    v, v_next, delta = np.empty(c.size), np.empty(c.size), np.empty(c.size)
    for t in range(cumulants.shape[0]):
        here, there = slice(indptr[t], indptr[t + 1]), slice(indptr[t + 1], indptr[t + 2])
        for g in range(alphas.size):
            first, last = starts_at[g], starts_at[g + 1]
            if begins[t + 1]:
                total(u, c, z[g], first, last, rows[here], x[here], v)
                scales[g] = gammas[g] = 0.0
                for q in range(first, last):
                    v_old[q] = delta[q] = 0.0
            else:
                learn(
                    u, c, z[g], on[g], listed[g], counts, scales, g, first, last, methods[g], v_old, rows[here], x[here],
                    rows[there], x[there], cumulants[t], alphas[g], gammas[g], discounts[t, g], lams[g], v, v_next, delta,
                )  # fmt: skip
                gammas[g] = discounts[t, g]
        for q in range(c.size):
            values[t, q] = v[q]
            deltas[q] = delta[q]


def predict(u, c, z, starts_at, rows, x, values):
    """values_q ← wᵀx for all questions."""
    for g in range(starts_at.size - 1):
        total(u, c, z[g], starts_at[g], starts_at[g + 1], rows, x, values)


RUN = specialise(run, "answers")
PREDICT = specialise(predict, "answers")
