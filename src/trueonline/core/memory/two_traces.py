"""Weights with two traces, e and v, which decay alike; v takes multiples of e. They are two memories and one number.

Provisional methods change w by multiples of two traces. Both decay by the same c, and v ← v + m·e at every step. So v is kept as

    v = f + b·e        w = w_1 + w_2

with e the trace of the first memory, whose weights are w_1, f that of the second, whose weights are w_2, and b a number:

| what a method wants          | what is done                                                                       |
|------------------------------|------------------------------------------------------------------------------------|
| read wᵀx                     | the sum of both                                                                    |
| e ← c·e and v ← c·v          | decay both; where c = 0, b ← 0                                                     |
| v ← v + m·e                  | b ← b + m                                                                          |
| w ← w + k·e                  | w_1 ← w_1 + k·e                                                                    |
| w ← w + k·v                  | w_2 ← w_2 + k·f and w_1 ← w_1 + k·b·e                                              |
| e ← e + a·x, v ← v + a'·x    | e ← e + a·x and f ← f + (a' − b·a)·x                                               |

Each of these is an operation of `memory`, at the cost it has there, for sparse and for dense features.

If b is large when an entry is imprinted, f_i and b·e_i are large with opposite signs, and w_1 and w_2 grow apart. Then digits are
lost. So when the traces have decayed by EDGE, `fold` passes over the list: f ← f + b·e, w_1 ← w_1 + w_2, b ← 0 and w_2 ← 0. It
also rebases both memories. So no memory rebases by itself, and both keep the same list, entry for entry (`list_alike` begins it).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueonline.core import memory as memories
from trueonline.core.compiling.kernels import kernel, outlined
from trueonline.core.memory import Buffers, decay, imprint, learn, recall
from trueonline.core.memory.layout import COUNT, DECAYED, DENSE, GAMMA, LAM, ROOM, SPARE, B, C, S
from trueonline.core.memory.upkeep import DROP, MIDDLE, REACH

# --- What methods say -----------------------------------------------------------------------------


@kernel
def recall_both(memory, x, x_next):
    """Return wᵀx and wᵀx_next."""
    v, _, _, v_next = recall_with_traces(memory, x, x_next)
    return v, v_next


@kernel
def recall_with_traces(memory, x, x_next):
    """Return wᵀx, eᵀx, vᵀx and wᵀx_next."""
    v, e_x, v_next = recall(memory, x, x_next)
    v_too, f_x, v_next_too = recall(memory.second, x, x_next)
    return v + v_too, e_x, f_x + memory.head[B] * e_x, v_next + v_next_too


@kernel
def learn_from_second(memory, k):
    """w ← w + k·v."""
    learn(memory, k * memory.head[B])
    learn(memory.second, k)


@kernel
def second_learns(memory, m):
    """v ← v + m·e."""
    memory.head[B] += m


@kernel
def decay_both(memory, c):
    """e ← c·e and v ← c·v. With c = 0 nothing is left of either."""
    head = memory.head
    decay(memory, c)
    decay(memory.second, c)
    head[DECAYED] *= c
    if c == 0.0:
        head[B] = 0.0
    if max(abs(head[DECAYED] - MIDDLE), abs(head[S] - MIDDLE)) > REACH:  # s: so that no memory rebases itself
        fold(memory)


@kernel
def imprint_both(memory, x, a, b, a_second):
    """e ← e + a·x, w ← w + b·x and v ← v + a_second·x."""
    imprint(memory, x, a, b)
    imprint(memory.second, x, a_second - memory.head[B] * a, 0.0)


# --- Housekeeping: changes how e, v and w are kept, and none of them ------------------------------


@outlined
def fold(memory):
    """f ← f + b·e, w_1 ← w_1 + w_2, b ← 0 and w_2 ← 0. Entries that have faded from both traces leave the lists.

    Call it between a recall and an imprint, when no imprint is noted.
    """
    head, second = memory.head, memory.second
    owing = head[B], head[S], head[C], second.head[S], second.head[C]
    if head[DENSE] != 0.0:
        _pay_dense(memory.u, memory.z, second.u, second.z, memory.n, owing)
    else:
        count = int(head[COUNT])
        norm, norm_too = _pay(memory.y, memory.z, second.y, second.z, count, owing)
        if count >= head[ROOM] or (norm == 0.0 and norm_too == 0.0):
            drop(memory, norm, norm_too)
    head[S] = second.head[S] = head[DECAYED] = 1.0
    head[B] = head[C] = second.head[C] = 0.0


def _pay(y, z, y_too, z_too, count, owing):
    """y ← y + c·z + y' + c'·z', y' ← 0, z ← s·z and z' ← s'·z' + b·z over the lists; return the 1-norms of z and z'."""
    b, s, c, s_too, c_too = owing
    norm = norm_too = 0.0
    for k in range(1, count + 1):
        y[k] += c * z[k] + y_too[k] + c_too * z_too[k]
        y_too[k] = 0.0
        z[k] *= s
        z_too[k] = s_too * z_too[k] + b * z[k]
        norm += abs(z[k])
        norm_too += abs(z_too[k])
    return norm, norm_too


def _pay_dense(u, z, u_too, z_too, n, owing):
    """The same where z_k belongs to entry k − 1 and y is not used."""
    b, s, c, s_too, c_too = owing
    for i in range(n):
        u[i] += c * z[i + 1] + u_too[i] + c_too * z_too[i + 1]
        u_too[i] = 0.0
        z[i + 1] *= s
        z_too[i + 1] = s_too * z_too[i + 1] + b * z[i + 1]


_pay, _pay_dense = (outlined(each, reassociate=True) for each in (_pay, _pay_dense))


@kernel
def drop(memory, norm, norm_too):
    """Take entries off both lists that are below DROP of the whole in both traces."""
    head, second = memory.head, memory.second
    kept = 0
    for k in range(1, int(head[COUNT]) + 1):
        i = memory.owner[k]
        if abs(memory.z[k]) <= DROP * norm and abs(second.z[k]) <= DROP * norm_too:
            memory.u[i] += memory.y[k]
            memory.slot[i] = second.slot[i] = 0
        else:  # a NaN stays, where it can be seen
            kept += 1
            memory.slot[i] = second.slot[i] = kept
            memory.owner[kept] = second.owner[kept] = i
            memory.z[kept], memory.y[kept] = memory.z[k], memory.y[k]
            second.z[kept], second.y[kept] = second.z[k], 0.0
    head[COUNT] = second.head[COUNT] = kept
    head[ROOM] = 2 * kept + SPARE


# --- Seen from Python -----------------------------------------------------------------------------


def list_alike(holding: Sequence[Buffers]) -> None:
    """Let the memories that hold the weights have the same list, if there are two of them."""
    if len(holding) < 2:
        return
    first, second = (memories.traced(one) for one in holding)
    if holding[0].numbers[DENSE] or not np.array_equal(first, second):
        owners = np.union1d(first, second)
        for one in holding:
            memories.lay_out(one, True)
            memories.lay_out(one, False, owners)


def owed(place: np.ndarray, first: Buffers, second: Buffers) -> np.ndarray:
    """A dense copy of γλv, with γ and λ of the current state."""
    if place[GAMMA] == 0.0:  # a beginning: the second trace may not have been cleared yet
        return np.zeros(memories.size(first))
    return place[GAMMA] * place[LAM] * (memories.trace(second) + first.numbers[B] * memories.trace(first))
