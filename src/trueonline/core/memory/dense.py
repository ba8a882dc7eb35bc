"""The operations of a memory on dense features, which make every entry traced.

Python has brought the memory into the layout for them (`arrays.lay_out`): z_k belongs to entry k − 1, and y is not needed. Every
step passes over all entries and pays what is owed on its way. One pass is enough, because an imprint is only noted, and made by
the next recall (or `settle`) while it reads.
"""

from __future__ import annotations

from trueonline.core.compiling.kernels import kernel
from trueonline.core.forms import loops
from trueonline.core.memory.layout import (
    COUNT,
    DENSE,
    NOT_BINARY,
    NOTED,
    NOTED_A,
    NOTED_B,
    NOTED_C,
    NOTED_S,
    SCALE,
    UNSCALE,
    C,
    S,
)
from trueonline.core.memory.operations import (
    imprint,
    length_squared,
    recall,
    replace,
    settle,
    share,
    shift,
    trace_along,
    value_in,
)

IMPRINT, REPLACE = 1.0, 2.0  # what may be noted


@loops(recall, dense=True, reassociate=True)
def recall_dense(memory, x, x_next):
    head = memory.head
    s, c, a, b, owed = noted(memory)
    v = trace_x = v_next = 0.0
    if head[NOTED] == REPLACE:
        not_binary = 0.0
        for i in range(x.size):
            x_before = x.before[i]
            z = memory.z[i + 1]
            u = memory.u[i] + c * z
            z = 1.0 if x_before == 1.0 else s * z
            not_binary += x_before != 0.0 and x_before != 1.0
            memory.u[i], memory.z[i + 1] = u, z
            w = u + owed * z
            v += w * x.values[i]
            v_next += w * x_next.values[i]
            trace_x += z * x.values[i]
        head[NOT_BINARY] += not_binary
    else:
        for i in range(x.size):
            z = memory.z[i + 1]
            u = memory.u[i] + c * z + b * x.before[i]
            z = s * z + a * x.before[i]
            memory.u[i], memory.z[i + 1] = u, z
            w = u + owed * z
            v += w * x.values[i]
            v_next += w * x_next.values[i]
            trace_x += z * x.values[i]
    head[NOTED] = 0.0
    return head[SCALE] * v, head[S] * trace_x, head[SCALE] * v_next


@kernel
def noted(memory):
    """s, c, a and b of the noted imprint (which change nothing if none is noted), and what is owed after it."""
    head = memory.head
    if head[NOTED] == 0.0:
        return 1.0, 0.0, 0.0, 0.0, head[C]
    return head[NOTED_S], head[NOTED_C], head[NOTED_A], head[NOTED_B], head[C]


@kernel
def note(memory, kind, a, b):
    """Leave an imprint to the next recall. From here on s and c count from after the imprint."""
    head = memory.head
    head[NOTED] = kind
    head[NOTED_S] = head[S]
    head[NOTED_C] = head[C]
    head[NOTED_A] = a
    head[NOTED_B] = b
    head[S] = 1.0
    head[C] = 0.0


@loops(settle, dense=True, reassociate=True)
def settle_dense(memory, x):
    head = memory.head
    s, c, a, b, _ = noted(memory)
    if head[NOTED] == REPLACE:
        not_binary = 0.0
        for i in range(x.size):
            memory.u[i] += c * memory.z[i + 1]
            memory.z[i + 1] = share(memory, x, i, 1.0) if x.values[i] == 1.0 else s * memory.z[i + 1]
            not_binary += x.values[i] != 0.0 and x.values[i] != 1.0
        head[NOT_BINARY] += not_binary
    elif head[NOTED] == IMPRINT:
        for i in range(x.size):
            x_i = share(memory, x, i, x.values[i])
            memory.u[i] += c * memory.z[i + 1] + b * x_i
            memory.z[i + 1] = s * memory.z[i + 1] + a * x_i
    head[NOTED] = 0.0


@loops(value_in, dense=True, reassociate=True)
def value_dense(memory, x):
    c = memory.head[C]
    v = 0.0
    if memory.head[DENSE] != 0.0:
        for i in range(x.size):
            v += (memory.u[i] + c * memory.z[i + 1]) * x.values[i]
    else:
        for i in range(x.size):
            v += memory.u[i] * x.values[i]
        for k in range(1, int(memory.head[COUNT]) + 1):
            v += (memory.y[k] + c * memory.z[k]) * x.values[memory.owner[k]]
    return memory.head[SCALE] * v


@loops(trace_along, dense=True, reassociate=True)
def trace_along_dense(memory, x):
    total = 0.0
    for i in range(x.size):
        total += memory.z[i + 1] * x.values[i]
    return memory.head[S] * total


@loops(imprint, dense=True)
def imprint_dense(memory, x, a, b):
    note(memory, IMPRINT, a, b * memory.head[UNSCALE])


@loops(shift, dense=True)
def shift_dense(memory, x, b):
    b_u = b * memory.head[UNSCALE]
    for i in range(x.size):
        x_i = share(memory, x, i, x.values[i])
        memory.u[i] += b_u * x_i  # noted changes are added to this later: the order makes no difference


@loops(length_squared, dense=True, reassociate=True)
def length_dense(x):
    total = 0.0
    for i in range(x.size):
        total += x.values[i] * x.values[i]
    return total


@loops(replace, dense=True)
def replace_dense(memory, x):
    note(memory, REPLACE, 0.0, 0.0)
