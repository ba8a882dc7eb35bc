"""The operations of a memory on sparse features: one loop for indices and for (indices, values)."""

from __future__ import annotations

from trueonline.core.compiling.kernels import kernel
from trueonline.core.forms import entry, loops
from trueonline.core.memory.layout import COUNT, DENSE, SCALE, UNSCALE, C, S
from trueonline.core.memory.operations import (
    erase,
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
from trueonline.core.memory.upkeep import EDGE, MIDDLE, REACH, rebase


@loops(shift, dense=False)
def shift_sparse(memory, x, b):
    b_u = b * memory.head[UNSCALE]
    for j in range(x.size):
        i, x_i = entry(x, j)
        x_i = share(memory, x, i, x_i)
        memory.u[i] += b_u * x_i


@loops(length_squared, dense=False)
def length_sparse(x):
    total = 0.0
    for j in range(x.size):
        x_i = entry(x, j)[1]
        total += x_i * x_i
    return total


@loops(recall, dense=False)
def recall_sparse(memory, x, x_next):
    c = memory.head[C]
    v = trace_x = v_next = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        k = memory.slot[i]
        v += (memory.u[i] + (memory.y[k] + c * memory.z[k])) * x_i
        trace_x += memory.z[k] * x_i
    for j in range(x_next.size):
        i, x_i = entry(x_next, j)
        k = memory.slot[i]
        v_next += (memory.u[i] + (memory.y[k] + c * memory.z[k])) * x_i
    return memory.head[SCALE] * v, memory.head[S] * trace_x, memory.head[SCALE] * v_next


@loops(value_in, dense=False)
def value_sparse(memory, x):
    c = memory.head[C]
    v = 0.0
    if memory.head[DENSE] != 0.0:
        for j in range(x.size):
            i, x_i = entry(x, j)
            v += (memory.u[i] + c * memory.z[i + 1]) * x_i
    else:
        for j in range(x.size):
            i, x_i = entry(x, j)
            k = memory.slot[i]
            v += (memory.u[i] + (memory.y[k] + c * memory.z[k])) * x_i
    return memory.head[SCALE] * v


@loops(trace_along, dense=False)
def trace_along_sparse(memory, x):
    total = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        total += memory.z[memory.slot[i]] * x_i
    return memory.head[S] * total


@loops(imprint, dense=False)
def imprint_sparse(memory, x, a, b):
    if abs(memory.head[S] - MIDDLE) > REACH:
        rebase(memory)
    a_z = a / memory.head[S]
    b_y = b * memory.head[UNSCALE] - memory.head[C] * a_z
    count = int(memory.head[COUNT])
    for j in range(x.size):
        i, x_i = entry(x, j)
        x_i = share(memory, x, i, x_i)
        k = memory.slot[i]
        if k == 0:
            count += 1
            memory.slot[i] = count
            memory.owner[count] = i
            memory.z[count] = a_z * x_i
            memory.y[count] = b_y * x_i
        else:
            memory.z[k] += a_z * x_i
            memory.y[k] += b_y * x_i
    memory.head[COUNT] = count


@loops(replace, dense=False)
def replace_sparse(memory, x):
    if memory.head[S] < EDGE:
        rebase(memory)
    unit, c = 1.0 / memory.head[S], memory.head[C]
    count = int(memory.head[COUNT])
    for j in range(x.size):
        i, x_i = entry(x, j)
        if x_i == 1.0:
            one = unit * share(memory, x, i, 1.0)
            k = memory.slot[i]
            if k == 0:
                count += 1
                memory.slot[i] = count
                memory.owner[count] = i
                memory.z[count] = one
                memory.y[count] = -c * one
            else:
                memory.y[k] -= c * (one - memory.z[k])
                memory.z[k] = one
    memory.head[COUNT] = count


@loops(erase, dense=False)
def erase_sparse(memory, x):
    c = memory.head[C]
    for j in range(x.size):
        i, x_i = entry(x, j)
        k = memory.slot[i]
        if k != 0 and x_i == 1.0:
            memory.y[k] += c * memory.z[k]
            memory.z[k] = 0.0


@loops(settle, dense=False)
def settle_sparse(memory, x):
    """Nothing is noted."""


@kernel
def action_values(memory, x, values):
    """values[a] ← wᵀψ(s, a) for every action a, from the state's features x."""
    c, actions = memory.head[C], values.size
    for a in range(values.size):
        values[a] = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        for a in range(actions):
            k = memory.slot[i * actions + a]
            values[a] += (memory.u[i * actions + a] + (memory.y[k] + c * memory.z[k])) * x_i
    for a in range(actions):
        values[a] *= memory.head[SCALE]
