"""Many short runs over few features, for sweeps: every entry keeps its place on the list, and sums are in order.

A memory of such a run is made of pointers of other kinds (`core.pointers`), wherever its numbers lie. The operations of rules work
on it as they are. Beside them, this file has the distance of the weights from a target, which sweeps measure after every step.
"""

from __future__ import annotations

import numpy as np

from trueonline.core.compiling.kernels import kernel, operation, overloads
from trueonline.core.forms import Dense, is_a
from trueonline.core.memory.dense import REPLACE, noted
from trueonline.core.memory.layout import (
    COUNT,
    DENSE,
    NOTED,
    NOTED_B,
    NOTED_C,
    PAID_C,
    PAID_S,
    ROOM,
    SCALE,
    UNSCALE,
    C,
    Memory,
    S,
    Several,
    beside,
)
from trueonline.core.memory.upkeep import in_place, rebase
from trueonline.core.pointers import folded, owners, slots

# --- Making one -----------------------------------------------------------------------------------


@kernel
def listed(n, head, z, y):
    """A memory for sparse features. Every entry is on the list, so that u can be part of y."""
    return Memory(n, head, folded(y), z, y, slots(), owners())


@kernel
def spread_out(n, head, u, z):
    """A memory for dense features, in the dense layout, which has no y."""
    return Memory(n, head, u, z, z, slots(), owners())


@kernel
def two(m, second):
    return Several(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, second, None, None)


@kernel
def three(m, second, third):
    return Several(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, second, third, None)


@kernel
def enlist(memory, dense):
    """Begin with zero weights, no trace, and every entry on the list for good, or in the dense layout."""
    for i in range(memory.n):
        memory.z[i + 1] = memory.y[i + 1] = 0.0
        memory.u[i] = 0.0
    head = memory.head
    head[S], head[C], head[DENSE] = 1.0, 0.0, 1.0 if dense else 0.0
    head[COUNT], head[ROOM], head[NOTED], head[PAID_S], head[PAID_C] = memory.n, np.inf, 0.0, 1.0, 0.0
    head[SCALE], head[UNSCALE], head[NOTED_B], head[NOTED_C] = 1.0, 1.0, 0.0, 0.0


@operation
def enlist_all(memory, first, dense):
    """Begin with the weights `first` in the first memory, and with zeros in all others."""

    def enlist_one(memory, first, dense):
        enlist(memory, dense)
        for i in range(memory.n):
            memory.u[i] = first[i]

    def enlist_two(memory, first, dense):
        enlist(memory.second, dense)
        enlist_one_of(memory, first, dense)

    def enlist_three(memory, first, dense):
        enlist(memory.second, dense)
        enlist(memory.third, dense)
        enlist_one_of(memory, first, dense)

    enlist_one_of = kernel(enlist_one)
    return (enlist_one, enlist_two, enlist_three)[beside(memory)]


# --- Upkeep: no entry is ever taken off the list -----


@overloads(rebase)
def _rebase_in_place(memory):
    if not in_place(memory):
        return None

    def rebase_in_place(memory):
        head = memory.head
        for k in range(1, memory.n + 1):
            memory.y[k] += head[C] * memory.z[k]
            memory.z[k] *= head[S]
        head[PAID_C] += head[C] * head[PAID_S]
        head[PAID_S] *= head[S]
        head[S], head[C] = 1.0, 0.0

    return rebase_in_place


# --- The distance from a target -------------------------------------------------------------------


@kernel
def kept(memory, i):
    """u_i + y_k and z_k: w_i is the one plus c times the other. For sparse features."""
    return memory.u[i] + memory.y[i + 1], memory.z[i + 1]


@kernel
def scaled(memory):
    """G: the weights are G times what is kept."""
    return memory.head[SCALE]


@kernel
def owed(memory):
    """c."""
    return memory.head[C]


@kernel
def paid(memory):
    """s and c of the rebases since the last question: together they have made y ← y + c·z and z ← s·z."""
    head = memory.head
    s, c = head[PAID_S], head[PAID_C]
    head[PAID_S], head[PAID_C] = 1.0, 0.0
    return s, c


@operation
def offset(memory, x, target, off):
    """off ← w − target. x has just been learned from."""

    def offset_sparse(memory, x, target, off):
        c = memory.head[C]
        for i in range(memory.n):
            off[i] = memory.head[SCALE] * (memory.u[i] + (memory.y[i + 1] + c * memory.z[i + 1])) - target[i]

    def offset_dense(memory, x, target, off):
        s, c, a, b, due = noted(memory)
        replacing = memory.head[NOTED] == REPLACE
        for i in range(memory.n):
            z = memory.z[i + 1]
            u = memory.u[i] + c * z + b * x.values[i]
            e = 1.0 if replacing and x.values[i] == 1.0 else s * z + a * x.values[i]
            off[i] = memory.head[SCALE] * (u + due * e) - target[i]

    return offset_dense if is_a(Dense, x) else offset_sparse
