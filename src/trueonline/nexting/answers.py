"""Many answers over one stream of features: weights for all questions, one trace for all that can share it.

A trace depends on the features, γ, λ, α and the kind of trace, and not on what is predicted. So questions that have these in
common form a *group*, which has one trace; and w_i• of all questions of all groups lie beside each other. As in
`core.memory`, a scalar s for each group and a scalar c_q for each question stand for what every traced feature still has to
undergo: e ← g·e is s ← g·s, and w_q ← w_q + k_q·e is c_q ← c_q + k_q·s.

As s shrinks, digits are lost; but to pay what is owed whenever s falls below EDGE, over all traced features and all questions,
would be the dearest part by far. So the time of a group is cut into *ages* instead. When one ends, nothing is paid; what its
features owe is written on its *page*: D_kq for each unit of z, and P_k, by how much the traces of age k have faded since.

    e_i = s·P_k·z_i        w_iq = u_iq + (D_kq + P_k·c_q)·z_i        with k the age in which feature i was last settled

| read all answers               | the sums above over the active features                                                 |
| settle a feature, active again | u_iq ← u_iq + D_kq·z_i, z_i ← P_k·z_i, and k is now the present age m: P_m = 1, D_m = 0 |
| e ← e + a·x, w_q ← w_q + b_q·x | z_i ← z_i + (a/s)·x_i, u_iq ← u_iq + (b_q − c_q·a/s)·x_i over the active features       |
| an age ends                    | D_k ← D_k + P_k·c and P_k ← s·P_k for every page, then c ← 0, s ← 1 and m ← m + 1       |

A page whose P has fallen below DROP is not written on any more: such a trace can no longer change a weight. Pages are used again in
turn. So at the end of each age a few features are settled whether active or not, every one in its turn, before its page is needed.

A step passes over the weights once: those of the features that were active are changed and those of the active ones are read,
while they are at hand if they are the same.

Features are numbered in the order in which they are first seen (their *row*), so that memory is that of the features met.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trueonline.core.checking import acceptable
from trueonline.core.forms import Pairs, entry, pointer, row, view
from trueonline.core.kernels import call, kernel, outlined, specialise

EDGE = 1e-2  # an age ends below this s: an imprint at s loses log10(1/s) digits
DROP = 1e-20  # a trace that has faded to this can no longer change a weight in double precision
BLOCK = 1024  # columns that are passed over at a time, so that what belongs to all features stays near
ACCUMULATE, REPLACE, TRUE_ONLINE = range(3)
METHODS = {"accumulate": ACCUMULATE, "replace": REPLACE, "true_online": TRUE_ONLINE}

OWED, V, V_OLD, B, D, SUM, DELTA = range(7)  # for each column, that is question: `columns`
ALPHA, LAM, GAMMA, SCALE = range(4)  # for each group: `numbers`
FIRST, LAST, METHOD, AGE, TURN = range(5)  # for each group: `places`. Its columns are FIRST to LAST − 1
TAKEN, LENGTH = range(2)  # how many rows are taken, how many features are active: `counts`
DONE, BAD, FULL = range(3)  # what becomes of a step


class Memory(NamedTuple):
    """All of it inside a kernel: pointers, because arrays would be counted in and out of every piece."""

    n: Any  # features
    room: Any  # rows
    pages: Any
    questions: Any
    groups: Any
    most: Any  # active features
    u: Any  # row × column
    z: Any  # row × group
    since: Any  # row × group: the age in which it was last settled
    owing: Any  # page × column: D
    faded: Any  # page × group: P
    c: Any
    v: Any
    v_old: Any
    b: Any
    d: Any
    sum: Any
    delta: Any
    alpha: Any
    lam: Any
    gamma: Any
    s: Any
    first: Any
    last: Any
    method: Any
    age: Any
    turn: Any
    counts: Any
    row: Any  # feature → row, or −1
    order: Any  # column → question
    mark: Any  # row × 2: x and x', while a step needs them
    at: Any  # the active features …
    at_x: Any  # … and their values


@kernel
def attach(buffers):
    """What lies in these arrays, for the time of one entry point (whose caller keeps them alive)."""
    u, z, since, owing, faded, columns, numbers, places, counts, rows, order, mark, at, at_x = buffers
    m, g = u.shape[1], z.shape[1]
    return Memory(
        rows.size, u.shape[0], owing.shape[0], m, g, at.size, pointer(u, 0), pointer(z, 0), pointer(since, 0), pointer(owing, 0),
        pointer(faded, 0), pointer(columns, OWED * m), pointer(columns, V * m), pointer(columns, V_OLD * m),
        pointer(columns, B * m), pointer(columns, D * m), pointer(columns, SUM * m), pointer(columns, DELTA * m),
        pointer(numbers, ALPHA * g), pointer(numbers, LAM * g), pointer(numbers, GAMMA * g), pointer(numbers, SCALE * g),
        pointer(places, FIRST * g), pointer(places, LAST * g), pointer(places, METHOD * g), pointer(places, AGE * g),
        pointer(places, TURN * g), pointer(counts, 0), pointer(rows, 0), pointer(order, 0), pointer(mark, 0), pointer(at, 0),
        pointer(at_x, 0),
    )  # fmt: skip


# --- Ages -----------------------------------------------------------------------------------------


@outlined
def settle(m, i, g):
    """Pay what row i owes in a group, and bring its trace to the present age."""
    k, page = i * m.groups + g, m.since[i * m.groups + g] % m.pages
    z_i = m.z[k]
    if z_i != 0.0:
        for q in range(m.first[g], m.last[g]):
            m.u[i * m.questions + q] += m.owing[page * m.questions + q] * z_i
        m.z[k] = m.faded[page * m.groups + g] * z_i
    m.since[k] = m.age[g]


@outlined
def end_age(m, g):
    """Write down what is owed; begin a new page; settle the rows whose turn it is."""
    age, first, last = m.age[g], m.first[g], m.last[g]
    for back in range(m.pages):
        page = (age + m.pages - back) % m.pages
        faded = m.faded[page * m.groups + g]
        if faded == 0.0:  # and so are all older ones
            break
        for q in range(first, last):
            m.owing[page * m.questions + q] += faded * m.c[q]
        faded *= m.s[g]
        m.faded[page * m.groups + g] = faded if faded > DROP else 0.0
    m.s[g] = 1.0
    m.age[g] = age + 1
    page = (age + 1) % m.pages
    m.faded[page * m.groups + g] = 1.0
    for q in range(first, last):
        m.c[q] = m.owing[page * m.questions + q] = 0.0
    for _ in range(min(m.room, m.room // (m.pages - 2) + 1)):  # so all of them before this page is used again
        i = m.turn[g]
        if m.z[i * m.groups + g] != 0.0 and m.since[i * m.groups + g] != m.age[g]:
            settle(m, i, g)
        m.turn[g] = i + 1 if i + 1 < m.room else 0


@kernel
def settle_active(m, x):
    for j in range(x.size):
        for g in range(m.groups):
            if m.since[x.indices[j] * m.groups + g] != m.age[g]:
                settle(m, x.indices[j], g)


# --- Learning: features are given by their rows and values ----------------------------------------


@outlined
def learn(m, x, x_next, cumulants, discounts):
    """One transition for all questions, in the order of the methods' pseudo-code. V is there from the step before."""
    for g in range(m.groups):
        m.s[g] *= m.gamma[g] * m.lam[g]  # e ← γλe …
        if m.s[g] < EDGE:
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
    """Stand at features x with no trace."""
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
    """e ← e + φ; or, true online, e ← e + φ − α(γλeᵀφ)φ and w ← w − bφ with b = α(V − V_old). `pass_over` does the weights."""
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
    """e_i ← 1 where φ_i = 1. By how much a trace changes differs from feature to feature, so this does the weights too."""
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
    """u_i ← u_i − d·x_i over the features x, and sum ← Σ u_i·x'_i over the features x'; return xᵀx'."""
    common = mark(m, x, x_next)
    for first in range(0, m.questions, BLOCK):
        last = min(first + BLOCK, m.questions)
        for q in range(first, last):
            m.sum[q] = 0.0
        for j in range(x_next.size):
            i, x_i, y = x_next.indices[j] * m.questions, m.mark[2 * x_next.indices[j]], x_next.values[j]
            if x_i != 0.0:  # it is in both
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
    """Note which features are active before and after; return xᵀx'."""
    common = 0.0
    for j in range(x.size):
        m.mark[2 * x.indices[j]] = x.values[j]
    for j in range(x_next.size):
        m.mark[2 * x_next.indices[j] + 1] = x_next.values[j]
        common += m.mark[2 * x_next.indices[j]] * x_next.values[j]
    return common


# --- Where it stands ------------------------------------------------------------------------------


@kernel
def locate(m, x, rows, values):
    """Find the rows of the features that are not zero; return how many they are, or −1 when there is no row for a new one."""
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
        rows[size], values[size] = m.row[i], x_i
        size += 1
    return size


@kernel
def stand(m, x):
    """Keep a copy of the features x, for the next step begins there."""
    size = 0
    for j in range(x.size):
        i, x_i = entry(x, j)
        if x_i != 0.0:
            m.at[size], m.at_x[size] = i, x_i
            size += 1
    m.counts[LENGTH] = size


@kernel
def standing(m, rows):
    """The features it stands at."""
    for j in range(m.counts[LENGTH]):
        rows[j] = m.row[m.at[j]]
    return Pairs(rows, m.at_x, m.counts[LENGTH])


@kernel
def write(m, columns, out):
    """Numbers of all columns, in the order of the questions."""
    for q in range(m.questions):
        out[m.order[q]] = columns[q]


@kernel
def finite(numbers):
    """Whether all numbers are."""
    wrong = 0
    for k in range(numbers.size):
        wrong += not np.isfinite(numbers[k])
    return wrong == 0


# --- Entry points ---------------------------------------------------------------------------------


def step(buffers, binary, discounts, cumulants, x, deltas):
    """Learn from one transition into x; write the TD errors to `deltas`. DONE, or BAD or FULL and nothing has changed."""
    m = attach(buffers)
    features = view(x)
    if not (
        cumulants.size == m.questions
        and finite(cumulants)
        and features.size <= m.most
        and acceptable(m.n, features, binary)
    ):
        return BAD
    here, there, values = np.empty(m.most, np.int64), np.empty(m.most, np.int64), np.empty(m.most)
    size = locate(m, features, pointer(there, 0), pointer(values, 0))
    if size < 0:
        return FULL
    x_next = Pairs(pointer(there, 0), pointer(values, 0), size)
    learn(m, standing(m, pointer(here, 0)), x_next, pointer(cumulants, 0), pointer(discounts, 0))
    stand(m, features)
    write(m, m.delta, pointer(deltas, 0))
    return DONE


def run(buffers, X, cumulants, discounts, begins, answers, t):
    """Go through the rows of X from row t on: learn from the transition into each, unless it `begins` anew. Return how many rows
    have been gone through: fewer than all where there is no room for new features.

    Transition t − 1 leads into row t. V_t(S_t) is written to `answers[t]`, also of the last row if there is a place for it. The
    rows must have been checked.
    """
    m = attach(buffers)
    here, there, values = np.empty(m.most, np.int64), np.empty(m.most, np.int64), np.empty(m.most)
    while t < begins.size:
        features = row(X, t)
        size = locate(m, features, pointer(there, 0), pointer(values, 0))
        if size < 0:
            return t
        if t > 0:
            write(m, m.v, pointer(answers, (t - 1) * m.questions))
        x_next = Pairs(pointer(there, 0), pointer(values, 0), size)
        if begins[t]:
            begin(m, x_next)
        else:
            R, gammas = pointer(cumulants, (t - 1) * m.questions), pointer(discounts, (t - 1) * m.groups)
            learn(m, standing(m, pointer(here, 0)), x_next, R, gammas)
        stand(m, features)
        t += 1
    if answers.shape[0] == t:
        write(m, m.v, pointer(answers, (t - 1) * m.questions))
    return t


def all_finite(numbers):
    return finite(numbers)


def check(n, X, binary):
    """The number of the first unacceptable row, or −1."""
    for t in range(X[0].size - 1):
        if not acceptable(n, row(X, t), binary):
            return t
    return -1


def predict(buffers, binary, x, answers):
    """answers_q ← wᵀx for all questions, touching nothing. DONE or BAD."""
    m = attach(buffers)
    features = view(x)
    if not acceptable(m.n, features, binary):
        return BAD
    for q in range(m.questions):
        m.sum[q] = 0.0
    for j in range(features.size):
        feature, x_i = entry(features, j)
        i = m.row[feature]
        if i < 0:
            continue  # a feature that was never met has no weights
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
    """Pay everything of earlier ages."""
    m = attach(buffers)
    for i in range(m.counts[TAKEN]):
        for g in range(m.groups):
            if m.since[i * m.groups + g] != m.age[g]:
                settle(m, i, g)


STEP, RUN, CHECK, FINITE, PREDICT, SETTLE = (
    specialise(template, "answers") for template in (step, run, check, all_finite, predict, settle_all)
)


# --- Outside of kernels ---------------------------------------------------------------------------

RESERVE = 2**28  # bytes of weights to begin with: the operating system commits a page only when it is written
SPARE = 64  # pages, and as many rows for each further one


class Buffers(NamedTuple):
    """All of it outside of kernels: arrays, whose meaning is said at `Memory`. Entry points take them as a plain tuple."""

    u: np.ndarray
    z: np.ndarray
    since: np.ndarray
    owing: np.ndarray
    faded: np.ndarray
    columns: np.ndarray
    numbers: np.ndarray
    places: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    order: np.ndarray
    mark: np.ndarray
    at: np.ndarray
    at_x: np.ndarray


def pages(room: int) -> int:
    return SPARE + room // SPARE


def allocate(n: int) -> Buffers:
    """A memory of n features for no questions yet."""
    return Buffers(
        u=np.zeros((0, 0)),
        z=np.zeros((0, 0)),
        since=np.zeros((0, 0), np.int64),
        owing=np.zeros((pages(0), 0)),
        faded=np.zeros((pages(0), 0)),
        columns=np.zeros((DELTA + 1, 0)),
        numbers=np.zeros((SCALE + 1, 0)),
        places=np.zeros((TURN + 1, 0), np.int64),
        counts=np.zeros(2, np.int64),
        rows=np.full(n, -1, np.int32),
        order=np.zeros(0, np.int64),
        mark=np.zeros((0, 2)),
        at=np.zeros(0, np.int64),
        at_x=np.zeros(0),
    )


def grow(old: Buffers) -> Buffers:
    """Room for more features. Everything is paid, because there will be more pages."""
    call(SETTLE, tuple(old))
    least = RESERVE // max(old.u.itemsize * old.u.shape[1], 1)
    room = min(max(2 * len(old.u), least, 1), len(old.rows))
    owing, faded = (np.zeros((pages(room), array.shape[1])) for array in (old.owing, old.faded))
    faded[old.places[AGE] % len(faded), np.arange(faded.shape[1])] = 1.0
    parts = {name: _taller(getattr(old, name), room) for name in ("u", "z", "since", "mark")}
    return old._replace(**parts, owing=owing, faded=faded)


def _taller(array: np.ndarray, rows: int) -> np.ndarray:
    new = np.zeros((rows, *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new


def hold(old: Buffers, size: int) -> Buffers:
    """Room for that many active features."""
    at, at_x = np.zeros(size, np.int64), np.zeros(size)
    at[: len(old.at)], at_x[: len(old.at)] = old.at, old.at_x
    return old._replace(at=at, at_x=at_x)


def widen(old: Buffers, members: np.ndarray, groups: list[tuple[int, float, float]]) -> Buffers:
    """More questions, whose weights are zero. `members` is the group of each question, the old ones first, and `groups`
    the method, α and λ of each group.
    """
    order = np.argsort(members, kind="stable")
    column, before = np.argsort(order)[: len(old.order)], np.argsort(old.order)  # of the old questions
    fresh = len(groups) - old.z.shape[1]
    taken = slice(old.counts[TAKEN])  # to write other rows would commit them

    def wider(array: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        new = np.zeros((len(array), len(order)))
        new[rows, column] = array[rows, before]
        return new

    def more(array: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        new = np.zeros((len(array), len(groups)), array.dtype)
        new[rows, : array.shape[1]] = array[rows]
        return new

    numbers, places, faded = more(old.numbers), more(old.places), more(old.faded)
    if groups:
        places[METHOD], numbers[ALPHA], numbers[LAM] = zip(*groups, strict=True)
    places[LAST] = np.cumsum(np.bincount(members, minlength=len(groups)))
    places[FIRST, 1:] = places[LAST, :-1]
    faded[0, len(groups) - fresh :] = 1.0
    return old._replace(
        u=wider(old.u, taken),
        z=more(old.z, taken),
        since=more(old.since, taken),
        owing=wider(old.owing),
        faded=faded,
        columns=wider(old.columns),
        numbers=numbers,
        places=places,
        order=order,
    )


def weights(memory: Buffers, question: int) -> np.ndarray:
    """A dense copy of the weights of one question."""
    column, group, met, rows = _find(memory, question)
    page = memory.since[rows, group] % len(memory.owing)
    owed = memory.owing[page, column] + memory.faded[page, group] * memory.columns[OWED, column]
    w = np.zeros(len(memory.rows))
    w[met] = memory.u[rows, column] + owed * memory.z[rows, group]
    return w


def trace(memory: Buffers, question: int) -> np.ndarray:
    """A dense copy of the trace of its group."""
    _, group, met, rows = _find(memory, question)
    page = memory.since[rows, group] % len(memory.owing)
    e = np.zeros(len(memory.rows))
    e[met] = memory.numbers[SCALE, group] * memory.faded[page, group] * memory.z[rows, group]
    return e


def _find(memory: Buffers, question: int) -> tuple[int, int, np.ndarray, np.ndarray]:
    """The column and the group of a question; the features that have been met, and their rows."""
    column = int(np.flatnonzero(memory.order == question)[0])
    met = np.flatnonzero(memory.rows >= 0)
    return column, int(np.searchsorted(memory.places[LAST], column, side="right")), met, memory.rows[met]


def dump(memory: Buffers) -> dict[str, np.ndarray]:
    """All that `restore` needs: rows that are not taken hold nothing."""
    taken, length = memory.counts
    parts = memory._asdict() | {name: getattr(memory, name)[:taken] for name in ("u", "z", "since")}
    del parts["mark"]
    return parts | {"at": memory.at[:length], "at_x": memory.at_x[:length]}


def restore(fresh: Buffers, room: int, parts: dict[str, np.ndarray]) -> Buffers:
    """What `dump` gave, for the questions that `fresh` is for; ValueError or KeyError where it does not fit together."""
    n, (m, g) = len(fresh.rows), (len(fresh.order), fresh.z.shape[1])
    taken, length = (int(count) for count in parts["counts"])
    if not 0 <= length <= taken <= room <= n:
        raise ValueError("its sizes do not fit together")
    shapes = {"u": (taken, m), "z": (taken, g), "since": (taken, g), "owing": (pages(room), m), "faded": (pages(room), g)}
    for name, array in fresh._asdict().items():
        if name != "mark":
            shape = shapes.get(name, (length,) if name in ("at", "at_x") else array.shape)
            if parts[name].shape != shape or parts[name].dtype != array.dtype:
                raise ValueError(f"its {name} does not fit")
    saved = Buffers(
        **{name: np.ascontiguousarray(parts[name]) for name in fresh._fields if name != "mark"}, mark=fresh.mark
    )
    age, since, traced = saved.places[AGE], saved.since, saved.z != 0.0
    sound = {
        "order": np.array_equal(saved.order, fresh.order),
        "places": np.array_equal(saved.places[: METHOD + 1], fresh.places[: METHOD + 1])
        and (age >= 0).all() and ((saved.places[TURN] >= 0) & (saved.places[TURN] < max(room, 1))).all(),
        "numbers": np.array_equal(saved.numbers[: LAM + 1], fresh.numbers[: LAM + 1])
        and ((saved.numbers >= 0.0) & (saved.numbers <= 1.0))[GAMMA:].all(),
        "since": ((since <= age) & (since > age - len(saved.owing)) | ~traced).all(),
        "rows": np.array_equal(np.sort(saved.rows[saved.rows != -1]), np.arange(taken)),
        "at": ((saved.at >= 0) & (saved.at < n)).all() and (saved.rows[saved.at % n] >= 0).all(),
    }  # fmt: skip
    wrong = [name for name, fits in sound.items() if not fits]
    if wrong:
        raise ValueError(f"its {wrong[0]} does not fit")
    parts = {name: _taller(getattr(saved, name), room) for name in ("u", "z", "since")}
    return saved._replace(**parts, mark=np.zeros((room, 2)))
