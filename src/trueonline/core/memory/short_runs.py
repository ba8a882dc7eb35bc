"""Many short runs over few features, for sweeps: every entry keeps its place on the list."""

from __future__ import annotations

import numpy as np
from numba import types

from trueonline.core.forms import Dense, is_a
from trueonline.core.kernels import kernel, operation
from trueonline.core.memory.dense import REPLACE, noted
from trueonline.core.memory.layout import COUNT, DENSE, NOTED, ROOM, C, S


@kernel
def enlist(memory, w_0):
    """Begin with weights w_0, no trace, and every entry on the list for good: for few features and many short runs.

    An entry's place then never changes, so that `offset` finds it without looking.
    """
    for i in range(memory.n):
        memory.u[i] = w_0[i]
        memory.slot[i] = i + 1
        memory.owner[i + 1] = i
        memory.z[i + 1] = memory.y[i + 1] = 0.0
    memory.head[S], memory.head[C], memory.head[DENSE] = 1.0, 0.0, 0.0
    memory.head[COUNT], memory.head[ROOM], memory.head[NOTED] = memory.n, np.inf, 0.0


def enlist_all(memory, first, nothing):
    """Begin with the weights `first` in the first memory, and with the zeros `nothing` in all others."""
    raise NotImplementedError("for kernels only")


@operation(enlist_all)
def _enlist_all(memory, first, nothing):
    def enlist_one(memory, first, nothing):
        enlist(memory, first)

    def enlist_two(memory, first, nothing):
        enlist(memory, first)
        enlist(memory.second, nothing)

    def enlist_three(memory, first, nothing):
        enlist(memory, first)
        enlist(memory.second, nothing)
        enlist(memory.third, nothing)

    there = dict(zip(memory.fields, memory.types, strict=True))
    others = sum(there.get(name, types.none) is not types.none for name in ("second", "third"))
    return (enlist_one, enlist_two, enlist_three)[others]


def offset(memory, x, target, off):
    """off ← w − target. Every entry has kept its place since `enlist`. x has just been learned from."""
    raise NotImplementedError("for kernels only")


@operation(offset, reassociate=True)
def _offset_sparse(memory, x, target, off):
    if is_a(Dense, x):
        return None

    def offset_sparse(memory, x, target, off):
        c = memory.head[C]
        for i in range(memory.n):
            off[i] = memory.u[i] + (memory.y[i + 1] + c * memory.z[i + 1]) - target[i]

    return offset_sparse


@operation(offset, reassociate=True)
def _offset_dense(memory, x, target, off):
    if not is_a(Dense, x):
        return None

    def offset_dense(memory, x, target, off):
        s, c, a, b, owed = noted(memory)
        replacing = memory.head[NOTED] == REPLACE
        for i in range(memory.n):
            z = memory.z[i + 1]
            u = memory.u[i] + c * z + b * x.values[i]
            e = 1.0 if replacing and x.values[i] == 1.0 else s * z + a * x.values[i]
            off[i] = u + owed * e - target[i]

    return offset_dense
