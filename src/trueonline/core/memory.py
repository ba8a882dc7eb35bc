"""Weights and eligibility trace as one object, exact at a cost of the active features alone.

A method changes two vectors, the trace e and the weights w, and written naively touches all n entries of both at every
step. This memory keeps them *owed*: two scalars s and c stand for what every traced entry still has to undergo.

    e_i = s·z_k        w_i = u_i + y_k + c·z_k        with k = slot_i, the entry's place on the list of traced entries

Entries without trace have slot 0, where y and z are zero for ever; so reading needs no branch. What it costs:

| what a method wants         | what is done                                                                          |
|-----------------------------|---------------------------------------------------------------------------------------|
| read wᵀx and eᵀx            | the sums above over the active features                                               |
| e ← g·e                     | s ← g·s                                                                               |
| e ← e + a·x and w ← w + b·x | z_k ← z_k + (a/s)·x_i and y_k ← y_k + (b − c·a/s)·x_i over the active features        |
| w ← w + b·e                 | c ← c + b·s                                                                           |
| e_i ← 1 where x_i = 1       | z_k ← 1/s and y_k ← y_k − c·(1/s − old z_k) over the active features                  |
| e ← 0                       | s ← 0                                                                                 |

As s shrinks, digits are lost. So before an imprint, when s has left [EDGE, 1/EDGE], the list is *rebased*: y ← y + c·z,
z ← s·z, c ← 0, s ← 1, one vectorised pass over consecutive numbers. When the list has doubled since the last look,
entries whose trace is below DROP of the whole trace are taken off it (u_i ← u_i + y_k, slot_i ← 0). Since s ← 0 is an
ordinary value here, λ = 0, γ = 0 and the end of an episode need no case of their own.

Dense features make every entry traced. The same arrays are then used without the list (`spread`): z_k belongs to entry
k − 1 and y is not needed, because every step passes over all entries anyway and pays what is owed on its way. One pass
is enough: an imprint is only noted, and made by the next recall (or `settle`) while it reads.

This is the only file that knows how weights and trace are stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from trueonline.core.forms import Dense, entry, is_a, pointer
from trueonline.core.kernels import kernel, operation, outlined

EDGE = 1e-2  # rebase below this s: an imprint at s loses log10(1/s) digits, a rebase costs a pass over the list
MIDDLE, REACH = (
    (1.0 / EDGE + EDGE) / 2.0,
    (1.0 / EDGE - EDGE) / 2.0,
)  # of [EDGE, 1/EDGE]; s grows by importance ratios alone
DROP = 1e-20  # a trace entry below this share of the whole trace can no longer change a weight in double precision
SPARE = 64  # how many entries the list may always hold before they are looked through

# The header of `numbers`. What the memory owes, its list, and in the dense layout an imprint that is noted:
S, C, COUNT, ROOM, DENSE, NOTED, NOTED_S, NOTED_C, NOTED_A, NOTED_B, NOT_BINARY = range(11)
# What a learner carries from one step to the next:
V_OLD, GAMMA, LAM, STEPS, LENGTH = range(11, 16)
# What else there is to know of a step, for methods that ask for it: the importance ratio of the action taken, that of the
# step before, λ of the state entered, whether the action taken is greedy; and γ and λ where they are constants.
RATIO, RATIO_OLD, LAM_NEXT, GREEDY, DISCOUNT, TRACE_DECAY = range(16, 22)
# More of that, for off-policy methods: the interest in the state left, the second step-size, and numbers that they carry along.
INTEREST, BETA, CARRIED, CARRIED_TOO = range(22, 26)
# For `step_sizes`: what it was told, α of this step, what it has to know of the method, and how often it had to bound.
BOUND, META, ALPHA, ACCUMULATES, WEIGHED, BOUNDED = range(26, 32)
HEADER = 32
BY_RATIO, BY_EMPHASIS = 1.0, 2.0  # what updates may be weighed by
IMPRINT, REPLACE = 1.0, 2.0  # what may be noted
LINE = 8  # numbers in a cache line


class Memory(NamedTuple):
    """The memory inside a kernel: pointers, because arrays would be counted in and out of every operation."""

    n: Any
    head: Any
    u: Any
    z: Any
    y: Any
    slot: Any
    owner: Any


class Several(NamedTuple):
    """A memory with one or two others beside it, for methods with more vectors of weights; `third` may be None."""

    n: Any
    head: Any
    u: Any
    z: Any
    y: Any
    slot: Any
    owner: Any
    second: Any
    third: Any


class Rated(NamedTuple):
    """A memory in which every feature has a step-size of its own, with none, one or two others beside it."""

    n: Any
    head: Any
    u: Any
    z: Any
    y: Any
    slot: Any
    owner: Any
    second: Any
    third: Any
    rates: Any
    past: Any
    usual: Any
    kept: Any


class Buffers(NamedTuple):
    """The memory outside of kernels: all its numbers in one array and all its places in another.

    `numbers` is the header, u, z and y, with u_0, z_1 and y_1 at the beginning of a cache line; `places` is slot (n) and
    owner (n + 1). Both come zeroed from the operating system, which commits a page only when it is written: regions of
    features that are never touched cost nothing. (NumPy asks for pages of 2 MB where it may.)
    """

    numbers: np.ndarray
    places: np.ndarray


def allocate(n: int, weights: np.ndarray | None = None, memories: int = 1, rated: bool = False) -> Buffers:
    """A memory of n features, with these weights or zeros, and no trace; or several, one after the other.

    Where features have step-sizes of their own, the four vectors of `Rated` follow.
    """
    length = _length(n)
    total = memories * length + 4 * n * rated
    numbers = np.zeros(total + LINE)
    skip = -(numbers.ctypes.data // numbers.itemsize) % LINE
    numbers = numbers[skip : skip + total]
    for head in numbers[: memories * length].reshape(memories, length):
        head[[S, RATIO, RATIO_OLD, INTEREST]] = 1.0
        head[ROOM] = SPARE
    if weights is not None:
        numbers[HEADER : HEADER + n] = weights
    return Buffers(numbers, np.zeros(memories * (2 * n + 1), np.int32))


def each(buffers: Buffers, memories: int) -> list[Buffers]:
    """The memories that lie in these buffers, each by itself."""
    width = len(buffers.places) // memories
    length = _length(width // 2)
    numbers, places = buffers
    return [Buffers(numbers[i * length : (i + 1) * length], places[i * width : (i + 1) * width]) for i in range(memories)]


def of_features(buffers: Buffers, memories: int) -> np.ndarray:
    """What lies behind them: `rates`, `past`, `usual` and `kept` of each feature, or nothing."""
    n = len(buffers.places) // memories // 2
    return buffers.numbers[memories * _length(n) :].reshape(-1, n)


def _length(n: int) -> int:
    """How many numbers a memory of n features takes."""
    return HEADER + 3 * _stride.py_func(n)


def size(buffers: Buffers) -> int:
    return len(buffers.places) // 2


@kernel
def _stride(n):
    """How far u_0, z_1 and y_1 lie apart: n rounded up to whole cache lines, and one more for z_0 or y_0."""
    return (n // LINE + 2) * LINE


@kernel
def attach(numbers, places):
    """The memory that lies in these buffers, for the time of one entry point (whose caller keeps the arrays alive)."""
    n = places.size // 2
    stride = _stride(n)
    return Memory(
        n,
        pointer(numbers, 0),
        pointer(numbers, HEADER),
        pointer(numbers, HEADER + stride - 1),
        pointer(numbers, HEADER + 2 * stride - 1),
        pointer(places, 0),
        pointer(places, n),
    )


@kernel
def beside(numbers, places, n, which):
    """One of several memories of n features that lie in these buffers."""
    stride = _stride(n)
    first, place = which * (HEADER + 3 * stride), which * (2 * n + 1)
    return Memory(
        n,
        pointer(numbers, first),
        pointer(numbers, first + HEADER),
        pointer(numbers, first + HEADER + stride - 1),
        pointer(numbers, first + HEADER + 2 * stride - 1),
        pointer(places, place),
        pointer(places, place + n),
    )


@kernel
def attach_two(numbers, places):
    m = beside(numbers, places, places.size // 4, 0)
    return Several(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, beside(numbers, places, m.n, 1), None)


@kernel
def attach_three(numbers, places):
    m = beside(numbers, places, places.size // 6, 0)
    second, third = beside(numbers, places, m.n, 1), beside(numbers, places, m.n, 2)
    return Several(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, second, third)


@kernel
def rated(numbers, n, memory, second, third):
    """A memory with the step-sizes of its features, which follow the memories in the buffer."""
    m, tail = memory, numbers.size - 4 * n
    rates, past = pointer(numbers, tail), pointer(numbers, tail + n)
    usual, kept = pointer(numbers, tail + 2 * n), pointer(numbers, tail + 3 * n)
    return Rated(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, second, third, rates, past, usual, kept)


# --- What methods say -----------------------------------------------------------------------------


def recall(memory, x, x_next):
    """Return wᵀx, eᵀx and wᵀx_next."""
    raise NotImplementedError("for kernels only")


def value(memory, x):
    """Return wᵀx, touching nothing."""
    raise NotImplementedError("for kernels only")


def imprint(memory, x, a, b):
    """e ← e + a·x and w ← w + b·x."""
    raise NotImplementedError("for kernels only")


def shift(memory, x, b):
    """w ← w + b·x, beside the imprint of the step."""
    raise NotImplementedError("for kernels only")


def length_squared(x):
    """xᵀx."""
    raise NotImplementedError("for kernels only")


def replace(memory, x):
    """e_i ← 1 where x_i = 1."""
    raise NotImplementedError("for kernels only")


@kernel
def rate(memory, i):
    """r_i; 0 stands for 1, so that nothing has to be written to begin with."""
    return memory.rates[i] if memory.rates[i] != 0.0 else 1.0


def share(memory, i, x_i):
    """What is written of a feature's value: the value; where each has a step-size of its own, that times the value."""
    raise NotImplementedError("for kernels only")


@operation(share)
def _share(memory, i, x_i):
    if is_a(Rated, memory):
        return lambda memory, i, x_i: memory.head[ALPHA] * rate(memory, i) * x_i
    return lambda memory, i, x_i: x_i


def erase(memory, x):
    """e_i ← 0 where x_i = 1."""
    raise NotImplementedError("for kernels only")


def action_values(memory, x, values):
    """values[a] ← wᵀψ(s, a) for every action a, from the state's features x."""
    raise NotImplementedError("for kernels only")


@kernel
def decay(memory, g):
    """e ← g·e."""
    memory.head[S] *= g


@kernel
def learn(memory, b):
    """w ← w + b·e."""
    memory.head[C] += b * memory.head[S]


# --- Dense features -------------------------------------------------------------------------------


@operation(recall, reassociate=True)
def _recall_dense(memory, x, x_next):
    if not is_a(Dense, x):
        return None

    def recall_dense(memory, x, x_next):
        head = memory.head
        if head[DENSE] == 0.0:
            spread(memory)
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
        return v, head[S] * trace_x, v_next

    return recall_dense


@kernel
def noted(memory):
    """The noted imprint's s, c, a and b (which change nothing where none is noted), and what is owed after it."""
    head = memory.head
    if head[NOTED] == 0.0:
        return 1.0, 0.0, 0.0, 0.0, head[C]
    return head[NOTED_S], head[NOTED_C], head[NOTED_A], head[NOTED_B], head[C]


@kernel
def note(memory, kind, a, b):
    """Leave an imprint to be made by the next recall. From here on s and c count from after it."""
    head = memory.head
    head[NOTED], head[NOTED_S], head[NOTED_C], head[NOTED_A], head[NOTED_B] = kind, head[S], head[C], a, b
    head[S], head[C] = 1.0, 0.0


def settle(memory, x):
    """Make a noted imprint of x now."""
    raise NotImplementedError("for kernels only")


@operation(settle, reassociate=True)
def _settle_dense(memory, x):
    if not is_a(Dense, x):
        return lambda memory, x: None

    def settle_dense(memory, x):
        head = memory.head
        s, c, a, b, _ = noted(memory)
        if head[NOTED] == REPLACE:
            not_binary = 0.0
            for i in range(x.size):
                memory.u[i] += c * memory.z[i + 1]
                memory.z[i + 1] = share(memory, i, 1.0) if x.values[i] == 1.0 else s * memory.z[i + 1]
                not_binary += x.values[i] != 0.0 and x.values[i] != 1.0
            head[NOT_BINARY] += not_binary
        elif head[NOTED] == IMPRINT:
            for i in range(x.size):
                memory.u[i] += c * memory.z[i + 1] + b * share(memory, i, x.values[i])
                memory.z[i + 1] = s * memory.z[i + 1] + a * share(memory, i, x.values[i])
        head[NOTED] = 0.0

    return settle_dense


def settle_all(memory, x):
    """The same in all memories there are."""
    raise NotImplementedError("for kernels only")


@operation(settle_all)
def _settle_all(memory, x):
    def settle_one(memory, x):
        settle(memory, x)

    def settle_three(memory, x):
        settle(memory, x)
        settle(memory.second, x)
        settle(memory.third, x)

    def settle_two(memory, x):
        settle(memory, x)
        settle(memory.second, x)

    there = dict(zip(memory.fields, memory.types, strict=True))
    others = sum(there.get(name, types.none) is not types.none for name in ("second", "third"))
    return (settle_one, settle_two, settle_three)[others]


@operation(value, reassociate=True)
def _value_dense(memory, x):
    if not is_a(Dense, x):
        return None

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
        return v

    return value_dense


@operation(imprint)
def _imprint_dense(memory, x, a, b):
    return (lambda memory, x, a, b: note(memory, IMPRINT, a, b)) if is_a(Dense, x) else None


@operation(shift)
def _shift_dense(memory, x, b):
    if not is_a(Dense, x):
        return None

    def shift_dense(memory, x, b):
        for i in range(x.size):
            memory.u[i] += b * share(
                memory, i, x.values[i]
            )  # whatever is noted is added to that: it makes no difference when

    return shift_dense


@operation(length_squared, reassociate=True)
def _length_dense(x):
    if not is_a(Dense, x):
        return None

    def length_dense(x):
        total = 0.0
        for i in range(x.size):
            total += x.values[i] * x.values[i]
        return total

    return length_dense


@operation(replace)
def _replace_dense(memory, x):
    return (lambda memory, x: note(memory, REPLACE, 0.0, 0.0)) if is_a(Dense, x) else None


# --- Sparse features: one loop for indices and for pairs ------------------------------------------


@operation(shift)
def _shift_sparse(memory, x, b):
    if is_a(Dense, x):
        return None

    def shift_sparse(memory, x, b):
        for j in range(x.size):
            i, x_i = entry(x, j)
            memory.u[i] += b * share(memory, i, x_i)

    return shift_sparse


@operation(length_squared)
def _length_sparse(x):
    if is_a(Dense, x):
        return None

    def length_sparse(x):
        total = 0.0
        for j in range(x.size):
            x_i = entry(x, j)[1]
            total += x_i * x_i
        return total

    return length_sparse


@operation(recall)
def _recall_sparse(memory, x, x_next):
    if is_a(Dense, x):
        return None

    def recall_sparse(memory, x, x_next):
        if memory.head[DENSE] != 0.0:
            gather(memory)
        c = memory.head[C]
        v = trace_x = v_next = 0.0
        for j in range(x.size):
            i, x_i = entry(x, j)
            k = np.uint64(memory.slot[i])
            v += (memory.u[i] + (memory.y[k] + c * memory.z[k])) * x_i
            trace_x += memory.z[k] * x_i
        for j in range(x_next.size):
            i, x_i = entry(x_next, j)
            k = np.uint64(memory.slot[i])
            v_next += (memory.u[i] + (memory.y[k] + c * memory.z[k])) * x_i
        return v, memory.head[S] * trace_x, v_next

    return recall_sparse


@operation(value)
def _value_sparse(memory, x):
    if is_a(Dense, x):
        return None

    def value_sparse(memory, x):
        c = memory.head[C]
        v = 0.0
        if memory.head[DENSE] != 0.0:
            for j in range(x.size):
                i, x_i = entry(x, j)
                v += (memory.u[i] + c * memory.z[i + np.uint64(1)]) * x_i
        else:
            for j in range(x.size):
                i, x_i = entry(x, j)
                k = np.uint64(memory.slot[i])
                v += (memory.u[i] + (memory.y[k] + c * memory.z[k])) * x_i
        return v

    return value_sparse


@operation(imprint)
def _imprint_sparse(memory, x, a, b):
    if is_a(Dense, x):
        return None

    def imprint_sparse(memory, x, a, b):
        if abs(memory.head[S] - MIDDLE) > REACH:
            rebase(memory)
        a_z = a / memory.head[S]
        b_y = b - memory.head[C] * a_z
        count = int(memory.head[COUNT])
        for j in range(x.size):
            i, x_i = entry(x, j)
            x_i = share(memory, i, x_i)
            k = np.uint64(memory.slot[i])
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

    return imprint_sparse


@operation(replace)
def _replace_sparse(memory, x):
    if is_a(Dense, x):
        return None

    def replace_sparse(memory, x):
        if memory.head[S] < EDGE:
            rebase(memory)
        unit, c = 1.0 / memory.head[S], memory.head[C]
        count = int(memory.head[COUNT])
        for j in range(x.size):
            i, x_i = entry(x, j)
            if x_i == 1.0:
                one = unit * share(memory, i, 1.0)
                k = np.uint64(memory.slot[i])
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

    return replace_sparse


@operation(erase)
def _erase_sparse(memory, x):
    if is_a(Dense, x):
        return None

    def erase_sparse(memory, x):
        c = memory.head[C]
        for j in range(x.size):
            i, x_i = entry(x, j)
            k = np.uint64(memory.slot[i])
            if k != 0 and x_i == 1.0:
                memory.y[k] += c * memory.z[k]
                memory.z[k] = 0.0

    return erase_sparse


@operation(action_values)
def _action_values(memory, x, values):
    def action_values_of_blocks(memory, x, values):
        c, actions = memory.head[C], np.uint64(values.size)
        for a in range(values.size):
            values[a] = 0.0
        for j in range(x.size):
            i, x_i = entry(x, j)
            for a in range(actions):
                k = np.uint64(memory.slot[i * actions + a])
                values[a] += (memory.u[i * actions + a] + (memory.y[k] + c * memory.z[k])) * x_i

    return action_values_of_blocks


# --- Housekeeping: changes how e and w are kept, and neither of them ------------------------------


def _rescale(y, z, count, s, c):
    """y ← y + c·z and z ← s·z over the list; return the trace's 1-norm."""
    norm = 0.0
    for k in range(1, count + 1):
        y[k] += c * z[k]
        z[k] *= s
        norm += abs(z[k])
    return norm


_rescale = outlined(_rescale, reassociate=True)


@outlined
def rebase(memory):
    """Pay what is owed (c ← 0, s ← 1), and take faded entries off the list when it has doubled since the last look."""
    count = int(memory.head[COUNT])
    norm = _rescale(memory.y, memory.z, count, memory.head[S], memory.head[C])
    memory.head[S], memory.head[C] = 1.0, 0.0
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


@outlined
def spread(memory):
    """From the list to the dense layout: z_k belongs to entry k − 1; slot, owner and y go unused."""
    count = int(memory.head[COUNT])
    for k in range(1, count + 1):
        memory.u[memory.owner[k]] += memory.y[k]
    if count > 0:  # otherwise y stays untouched, so that a learner of dense features alone has two vectors in use
        for k in range(1, memory.n + 1):
            memory.y[k] = 0.0
        for k in range(1, count + 1):
            memory.y[memory.owner[k] + 1] = memory.z[k]
    for k in range(1, memory.n + 1):  # all of them: beyond the list z holds what entries left behind
        memory.z[k] = memory.y[k] if count > 0 else 0.0
    memory.head[DENSE] = 1.0


@outlined
def gather(memory):
    """From the dense layout back to the list of the entries that carry trace."""
    count = 0
    for i in range(memory.n):
        z = memory.z[i + 1]
        memory.slot[i] = 0
        if z != 0.0:
            count += 1
            memory.slot[i] = count
            memory.owner[count] = i
            memory.z[count] = z
            memory.y[count] = 0.0
    memory.head[COUNT] = count
    memory.head[ROOM] = 2 * count + SPARE
    memory.head[DENSE] = 0.0


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
    return along_w * other.head[S], along_e * memory.head[S] * other.head[S]


# --- Many short runs over few features ------------------------------------------------------------


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


def offset(memory, x, target, off):
    """off ← w − target, where every entry has kept its place since `enlist`. x has just been learned from."""
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


# --- Seen from Python -----------------------------------------------------------------------------


def _parts(buffers: Buffers) -> tuple[np.ndarray, ...]:
    n, stride = size(buffers), _stride.py_func(size(buffers))
    u = buffers.numbers[HEADER:]
    return u[:n], u[stride - 1 :][: n + 1], u[2 * stride - 1 :][: n + 1], buffers.places[:n], buffers.places[n:]


def trace(buffers: Buffers) -> np.ndarray:
    """A dense copy of e."""
    head = buffers.numbers
    _, z, _, _, owner = _parts(buffers)
    if head[DENSE]:
        return head[S] * z[1:]
    listed = slice(1, int(head[COUNT]) + 1)
    e = np.zeros(size(buffers))
    e[owner[listed]] = head[S] * z[listed]
    return e


def weights(buffers: Buffers) -> np.ndarray:
    """A dense copy of w."""
    head = buffers.numbers
    u, z, y, _, owner = _parts(buffers)
    if head[DENSE]:
        return u + head[C] * z[1:]
    listed = slice(1, int(head[COUNT]) + 1)
    w = u.copy()
    w[owner[listed]] += y[listed] + head[C] * z[listed]
    return w


def begin(buffers: Buffers) -> None:
    """e ← 0 and V_old ← 0: the beginning of an episode."""
    buffers.numbers[[S, V_OLD, GAMMA]] = 0.0


def snapshot(buffers: Buffers) -> tuple[np.ndarray, np.ndarray]:
    """A copy for `undo`; in the dense layout, of the parts in use."""
    if buffers.numbers[DENSE]:
        return buffers.numbers[: HEADER + 2 * _stride.py_func(size(buffers))].copy(), buffers.places[:0]
    return buffers.numbers.copy(), buffers.places.copy()


def undo(buffers: Buffers, before: tuple[np.ndarray, ...]) -> None:
    for now, then in zip(buffers, before, strict=True):
        now[: len(then)] = then


def dump(buffers: Buffers) -> dict[str, np.ndarray]:
    """Everything that determines how learning goes on, as a few arrays: the memory can be rebuilt bit for bit."""
    head = buffers.numbers[:HEADER].copy()
    u, z, y, _, owner = _parts(buffers)
    if head[DENSE]:
        return {"head": head, "u": u.copy(), "z": z[1:].copy()}
    listed = slice(1, int(head[COUNT]) + 1)
    return {"head": head, "u": u.copy(), "z": z[listed].copy(), "y": y[listed].copy(), "owner": owner[listed].copy()}


def rebuild(buffers: Buffers, parts: dict[str, np.ndarray]) -> None:
    """Make of an empty memory the one that `dump` described; ValueError when the parts do not fit together."""
    n = size(buffers)
    head, listed = parts["head"], parts["z"]
    dense = bool(head[DENSE]) if head.shape == (HEADER,) else False
    sound = head.shape == (HEADER,) and head.dtype == np.float64 and parts["u"].shape == (n,)
    sound = sound and listed.ndim == 1 and len(listed) == (n if dense else head[COUNT])
    if sound and not dense:
        owner = parts["owner"]
        sound = owner.shape == parts["y"].shape == listed.shape and len(np.unique(owner)) == len(owner)
        sound = sound and np.issubdtype(owner.dtype, np.integer) and bool(np.all((owner >= 0) & (owner < n)))
    if not sound:
        raise ValueError("the parts of the memory do not fit together")
    buffers.numbers[:HEADER] = head
    u, z, y, slot, owner_ = _parts(buffers)
    u[:] = parts["u"]
    z[1 : len(listed) + 1] = listed
    if not dense:
        y[1 : len(listed) + 1] = parts["y"]
        owner_[1 : len(listed) + 1] = parts["owner"]
        slot[parts["owner"]] = np.arange(1, len(listed) + 1)
