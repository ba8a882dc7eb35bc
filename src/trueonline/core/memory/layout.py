"""The layout of a memory's numbers, and how kernels reach them.

A learner's numbers lie in one array: its *place* (the numbers that it carries from step to step), the values of its current
features, then one to four memories, then, with step-size adaptation, the numbers that adaptation keeps for each feature, or the
numbers of learned step-sizes. The indices of its current features lie behind the places on lists, and room for those of a call.

    place | here | header, u, z, y | header, u, z, y | … | tuning | of each feature | header, u, z, y | slot, owner
    place | here | header, u, z, y | settings, h, alpha, tiles

Each memory has a header of its own, with the numbers of that memory only. Vectors begin at cache lines.

This is one file because the kinds of memory differ only in how they share this one layout.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
from numba import types

from trueonline.core.compiling.kernels import kernel
from trueonline.core.forms import is_a, pointer

# The header of a memory: what it owes, its list, and in the dense layout an imprint that is noted.
S, C, COUNT, ROOM, DENSE, NOTED, NOTED_S, NOTED_C, NOTED_A, NOTED_B, NOT_BINARY = range(11)
# For two traces (`core.memory.two_traces`): b, and the decay since b was last paid.
B, DECAYED = 11, 12
# For short runs (`short_runs.py`): s and c of the rebases in this step.
PAID_S, PAID_C = 13, 14
# G and 1/G: all weights are kept divided by G (`operations.scale`).
SCALE, UNSCALE = 15, 16
HEADER = 24
SAVED = 16  # the numbers of a header that files hold: 1/G follows from G

# The place: what a learner carries from one step to the next. CARRIED is the first of four numbers that belong to the rule.
V_OLD, GAMMA, LAM, STEPS, LENGTH, RHO_OLD, GREEDY, CARRIED = range(8)
# … and what never changes: the number of features, whether they must be binary, how many memories hold the weights, the number of
# the rule, and for agents whether they bootstrap from the best action, and whether the trace is cut if they take another.
FEATURES, BINARY, HOLDING, RULE, BEST, CUTS = range(11, 17)
FIXED = slice(11, 17)
COMING = 17  # the first of the numbers of the coming transition, in the order of `core.transition`
PARAMETERS = 26  # the first of the rule's own parameters
MEMORIES = 34  # how many there are, which never changes either
PLACE = 40
SAVED_PLACE = 11  # files hold the numbers that change: the others are settings

# The settings of step-size adaptation, α of this step, the form of the method, how often α was bounded, and D.
BOUND, META, ALPHA, ACCUMULATES, WEIGHED, BOUNDED, LARGEST = range(7)
TUNING = 8
# The numbers that adaptation keeps for each feature, side by side: r of this step, H − w, n, and H of this step.
RATE, PAST, USUAL, KEPT = range(4)
OF_FEATURE = 4

# A memory with learned step-sizes (`core.memory.meta_gradient`): its settings, and the fields of each entry of the list in a tile.
SETTINGS = 8
PHI, P, Z_BAR, H, H_OLD, STEP_SIZE, DELTA_W = range(7)
FIELDS = 7
TILE = 64  # entries: more than a vector register holds, and the numbers of a tile fit into the first cache

SPARE = 64  # how many entries the list may always hold before they are looked through
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


def _with(name: str, *more: str) -> Any:
    """A memory with more parts. It is a type of its own, because operations go by types."""
    return namedtuple(name, (*Memory._fields, *more))


# With others beside it, for methods with more vectors of weights. `third` and `usage` may be None.
Several = _with("Several", "second", "third", "usage")
# Its features have step-sizes that come from their usage, a memory too (`core.memory.usage`). `third` may be None.
Used = _with("Used", "second", "third", "usage")
# Two memories that hold one vector of weights between them (`core.memory.two_traces`).
TwoTraces = _with("TwoTraces", "second")
# Every feature has a step-size of its own. `meta` is a memory too: its weights are ln r, and its trace is p (`core.adaptation`).
Rated = _with("Rated", "second", "third", "tuning", "kept", "meta")
# The step-sizes are learned too (`core.memory.meta_gradient`).
MetaGradient = _with("MetaGradient", "settings", "h", "alpha", "tiles")


def beside(memory: Any) -> int:
    """How many memories lie beside the first, in a Numba type of memory."""
    there = dict(zip(memory.fields, memory.types, strict=True))
    return sum(there.get(name, types.none) is not types.none for name in ("second", "third"))


def holds_two_traces(memory: Any) -> bool:
    """Whether a Numba type of memory has its weights in two: as two traces, with step-sizes for each feature or without."""
    for kind in (Rated, Used):
        if is_a(kind, memory):
            return is_a(kind, memory.types[memory.fields.index("second")])
    return is_a(TwoTraces, memory)


class Buffers(NamedTuple):
    """Memories outside of kernels: all their numbers in one array and all their places on lists in another.

    Both come zeroed from the operating system, which commits a page only when it is written: regions of features that
    are never touched cost nothing. (NumPy asks for pages of 2 MB where it may.) A part of them that holds one memory is
    described by the same class (`each`).
    """

    numbers: np.ndarray
    places: np.ndarray


def allocate(
    n: int, weights: np.ndarray | None = None, memories: int = 1, rated: bool = False, learned: bool = False
) -> Buffers:
    """Memories of n features, the first with these weights or zeros, and no trace; with adapted or learned step-sizes."""
    length, first = _length(n), first_memory(n)
    total = first + memories * length + _rated_length(n) * rated + _learned_length(n) * learned
    numbers = np.zeros(total + LINE)
    skip = -(numbers.ctypes.data // numbers.itemsize) % LINE
    numbers = numbers[skip : skip + total]
    numbers[[RHO_OLD, FEATURES, HOLDING, MEMORIES]] = 1.0, n, 1.0, memories
    for head in numbers[first : first + memories * length].reshape(memories, length):
        head[[S, SCALE, UNSCALE]] = 1.0
        head[ROOM] = SPARE
    if weights is not None:
        numbers[first + HEADER : first + HEADER + n] = weights
    buffers = Buffers(numbers, np.zeros(memories * (2 * n + 1) + 2 * n, np.int32))
    if rated:
        head = meta(buffers).numbers
        head[[S, SCALE, UNSCALE]], head[ROOM] = 1.0, SPARE
    return buffers


def each(buffers: Buffers) -> list[Buffers]:
    """The memories that lie in these buffers, each by itself."""
    n = features(buffers)
    length, width, count = _length(n), 2 * n + 1, int(buffers.numbers[MEMORIES])
    numbers, places = buffers.numbers[first_memory(n) :], buffers.places
    return [Buffers(numbers[i * length : (i + 1) * length], places[i * width : (i + 1) * width]) for i in range(count)]


def features(buffers: Buffers) -> int:
    """The number of features of the memories in these buffers."""
    return int(buffers.numbers[FEATURES])


def here(buffers: Buffers) -> tuple[np.ndarray, np.ndarray]:
    """Room for the indices and values of the current features."""
    n = features(buffers)
    return buffers.places[len(buffers.places) - 2 * n :][:n], buffers.numbers[PLACE : PLACE + n]


def tuning(buffers: Buffers) -> np.ndarray:
    """The settings and the counter of step-size adaptation."""
    return beyond(buffers)[:TUNING]


def of_features(buffers: Buffers) -> np.ndarray:
    """The numbers that step-size adaptation keeps for each feature, a row for each. (In the dense layout, columns lie together.)"""
    n, one = features(buffers), each(buffers)[0]
    kept = beyond(buffers)[TUNING : TUNING + OF_FEATURE * n]
    return kept.reshape(OF_FEATURE, n).T if one.numbers[DENSE] else kept.reshape(n, OF_FEATURE)


def meta(buffers: Buffers) -> Buffers:
    """The memory of step-size adaptation: the logarithms of step-sizes, and their trace."""
    n = features(buffers)
    numbers = beyond(buffers)[TUNING + OF_FEATURE * n :]
    return Buffers(numbers[: _length(n)], numbers[_length(n) :].view(np.int32)[: 2 * n + 1])


def first_memory(n: int) -> int:
    """Where the first memory of n features begins."""
    return PLACE + _stride.py_func(n)


def _length(n: int) -> int:
    """The number of numbers in a memory of n features."""
    return HEADER + 3 * _stride.py_func(n)


def _rated_length(n: int) -> int:
    """The number of numbers that step-size adaptation keeps. Two places of a list fit into a number."""
    return TUNING + OF_FEATURE * n + _length(n) + n + 1


def _learned_length(n: int) -> int:
    """The number of numbers that a memory with learned step-sizes has behind it."""
    return SETTINGS + 2 * _stride.py_func(n) + _in_tiles.py_func(n)


def beyond(buffers: Buffers) -> np.ndarray:
    """All numbers behind the memories: those of step-sizes that are adapted or learned."""
    n = features(buffers)
    return buffers.numbers[first_memory(n) + int(buffers.numbers[MEMORIES]) * _length(n) :]


def size(one: Buffers) -> int:
    """The number of features of one memory."""
    return len(one.places) // 2


@kernel
def _stride(n):
    """The distance between u_0, z_1 and y_1: n rounded up to whole cache lines, and one more for z_0 or y_0."""
    return (n // LINE + 2) * LINE


@kernel
def _in_tiles(n):
    """The number of numbers in the tiles of n entries."""
    return (n // TILE + 1) * TILE * FIELDS


def parts(one: Buffers) -> tuple[np.ndarray, ...]:
    """u, z, y, slot and owner of one memory, as arrays."""
    n, stride = size(one), _stride.py_func(size(one))
    u = one.numbers[HEADER:]
    return u[:n], u[stride - 1 :][: n + 1], u[2 * stride - 1 :][: n + 1], one.places[:n], one.places[n:]


# --- Attaching: from buffers to pointers, for the time of one entry point (whose caller keeps the arrays alive) ----


@kernel
def at(numbers, places, which):
    """One of the memories that lie in these buffers."""
    n = int(numbers[FEATURES])
    stride = _stride(n)
    return memory_at(numbers, PLACE + stride + which * (HEADER + 3 * stride), places, which * (2 * n + 1), n)


@kernel
def memory_at(numbers, first, places, place, n):
    """The memory of n features that begins at these places in two buffers."""
    stride = _stride(n)
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
def attach_one(numbers, places):
    return at(numbers, places, 0)


@kernel
def attach_two(numbers, places):
    m = at(numbers, places, 0)
    return Several(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, at(numbers, places, 1), None, None)


@kernel
def attach_three(numbers, places):
    m = at(numbers, places, 0)
    second, third = at(numbers, places, 1), at(numbers, places, 2)
    return Several(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, second, third, None)


@kernel
def attach_two_and_usage(numbers, places):
    m = at(numbers, places, 0)
    second, usage = at(numbers, places, 1), at(numbers, places, 2)
    return Several(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, second, None, usage)


@kernel
def attach_three_and_usage(numbers, places):
    """Only the first is written to with the step-sizes of the features: the others have a step-size of their own."""
    m = at(numbers, places, 0)
    second, third, usage = at(numbers, places, 1), at(numbers, places, 2), at(numbers, places, 3)
    return Used(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, second, third, usage)


@kernel
def attach_two_traces_and_usage(numbers, places):
    """Both memories are written to with the step-sizes of the features, because both hold a part of the weights."""
    m = at(numbers, places, 0)
    t, usage = at(numbers, places, 1), at(numbers, places, 2)
    second = Used(t.n, t.head, t.u, t.z, t.y, t.slot, t.owner, None, None, usage)
    return Used(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, second, None, usage)


@kernel
def attach_two_traces(numbers, places):
    m = at(numbers, places, 0)
    return TwoTraces(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, at(numbers, places, 1))


@kernel
def rated(numbers, memory, second, third):
    """A memory with the step-sizes of its features, which follow the memories in the buffer."""
    m, n = memory, memory.n
    first = numbers.size - (n + 1) - (HEADER + 3 * _stride(n))
    told, kept = pointer(numbers, first - OF_FEATURE * n - TUNING), pointer(numbers, first - OF_FEATURE * n)
    meta = memory_at(numbers, first, numbers.view(np.int32), 2 * (numbers.size - (n + 1)), n)
    return Rated(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, second, third, told, kept, meta)


@kernel
def attach_one_rated(numbers, places):
    return rated(numbers, at(numbers, places, 0), None, None)


@kernel
def attach_two_rated(numbers, places):
    return rated(numbers, at(numbers, places, 0), at(numbers, places, 1), None)


@kernel
def attach_three_rated(numbers, places):
    second, third = at(numbers, places, 1), at(numbers, places, 2)
    return rated(numbers, at(numbers, places, 0), second, third)


@kernel
def attach_two_traces_rated(numbers, places):
    """Both memories are rated, because both hold a part of the weights."""
    second = rated(numbers, at(numbers, places, 1), None, None)
    return rated(numbers, at(numbers, places, 0), second, None)


@kernel
def attach_meta_gradient(numbers, places):
    m = at(numbers, places, 0)
    tiles = numbers.size - _in_tiles(m.n)
    alpha, h = tiles - _stride(m.n), tiles - 2 * _stride(m.n)
    settings, at_h, at_alpha = pointer(numbers, h - SETTINGS), pointer(numbers, h), pointer(numbers, alpha)
    return MetaGradient(m.n, m.head, m.u, m.z, m.y, m.slot, m.owner, settings, at_h, at_alpha, pointer(numbers, tiles))


class Kind(NamedTuple):
    """A kind of memory: how many there are, and how kernels attach to them, without and with step-size adaptation.

    `holding` memories hold the weights between them. With `usage`, the last memory is the usage of the features, which sets their
    step-sizes, so that there is no step-size adaptation.
    """

    memories: int
    attach: Any
    attach_rated: Any = None  # None: the step-sizes of features are set or learned without it
    holding: int = 1
    usage: bool = False


KINDS = {  # by the names that the catalogue gives them
    "one": Kind(1, attach_one, attach_one_rated),
    "two": Kind(2, attach_two, attach_two_rated),
    "three": Kind(3, attach_three, attach_three_rated),
    "two traces": Kind(2, attach_two_traces, attach_two_traces_rated, holding=2),
    "two and usage": Kind(3, attach_two_and_usage, usage=True),
    "three and usage": Kind(4, attach_three_and_usage, usage=True),
    "two traces and usage": Kind(3, attach_two_traces_and_usage, holding=2, usage=True),
    "meta-gradient": Kind(1, attach_meta_gradient),
}
