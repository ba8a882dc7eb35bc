"""Upkeep: changes how e and w are kept, and neither of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import operation, outlined
from trueonline.core.memory.layout import COUNT, DENSE, ROOM, SCALE, SPARE, C, S
from trueonline.core.pointers import Counted

EDGE = 1e-2  # rebase below this s: an imprint at s loses log10(1/s) digits, a rebase costs a pass over the list
# The middle and half the width of [EDGE, 1/EDGE]. Only importance ratios make s grow.
MIDDLE, REACH = (1.0 / EDGE + EDGE) / 2.0, (1.0 / EDGE - EDGE) / 2.0
DROP = 1e-20  # a trace entry below this share of the whole trace can no longer change a weight in double precision


def in_place(memory: Any) -> bool:
    """Whether the entries of a Numba type of memory keep their places. `short_runs.py` has the upkeep of such memories."""
    return isinstance(memory.types[memory.fields.index("slot")], Counted)


@operation
def rebase(memory):
    """Pay what is owed (c ← 0, s ← 1), and take faded entries off the list when it has doubled since the last look."""

    return None if in_place(memory) else (lambda memory: _rebase_list(memory))  # noqa: PLW0108  (an overload needs a function)


def _rebase_list(memory):
    count, s, c = int(memory.head[COUNT]), memory.head[S], memory.head[C]
    y, z = memory.y, memory.z
    norm = 0.0
    for k in range(1, count + 1):
        y[k] += c * z[k]
        z[k] *= s
        norm += abs(z[k])
    memory.head[S] = 1.0
    memory.head[C] = 0.0
    if count >= memory.head[ROOM] or (norm == 0.0 and memory.head[ROOM] < np.inf):
        kept = 0
        for k in range(1, count + 1):
            i = memory.owner[k]
            if abs(memory.z[k]) <= DROP * norm:
                memory.u[i] += memory.y[k]
                memory.slot[i] = 0
            else:  # a NaN stays on the list, where it can be seen
                kept += 1
                memory.slot[i] = kept
                memory.owner[kept] = i
                memory.z[kept] = memory.z[k]
                memory.y[kept] = memory.y[k]
        memory.head[COUNT] = kept
        memory.head[ROOM] = 2 * kept + SPARE


_rebase_list = outlined(_rebase_list, reassociate=True)


@outlined
def products(memory, other):
    """wᵀe' and eᵀe', with e' the trace of the other memory: a pass over its list. Called when nothing is noted."""
    along_w = along_e = 0.0
    for k in range(1, (other.n if other.head[DENSE] != 0.0 else int(other.head[COUNT])) + 1):
        i = k - 1 if other.head[DENSE] != 0.0 else other.owner[k]
        mine = i + 1 if memory.head[DENSE] != 0.0 else memory.slot[i]
        listed = 0.0 if memory.head[DENSE] != 0.0 else memory.y[mine]
        along_w += (memory.u[i] + (listed + memory.head[C] * memory.z[mine])) * other.z[k]
        along_e += memory.z[mine] * other.z[k]
    return memory.head[SCALE] * along_w * other.head[S], along_e * memory.head[S] * other.head[S]
