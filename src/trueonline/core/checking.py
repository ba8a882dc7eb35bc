"""Checks of features inside kernels, at the lowest cost and before anything changes.

Kernels run without Python's lock, so another thread may write into an array of indices after its check. A kernel would then write
beyond its memory. So indices are copied first (`taken`, `take`). The copy is checked, and the copy is used. Values that change
spoil numbers only, so they are not copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from trueonline.core.compiling.kernels import operation, outlined, primitive
from trueonline.core.forms import Dense, Sparse, entry, is_a, loops, pointer, row

SEEN = 2048  # numbers that `take` needs


@operation
def taken(n, x, room):
    """The features x, with their indices copied to `room`, where n have room. An index that is not from 0 to n − 1 becomes −1."""

    def copied(n, x, room):
        for j in range(x.size):
            room[j] = x.indices[j] if np.uint64(x.indices[j]) < np.uint64(n) else -1
        return Sparse(room, x.values, x.each, x.size)

    return (lambda n, x, room: x) if is_a(Dense, x) else copied


def acceptable(n, x, binary):
    """Whether x has the right length or distinct indices in range, and finite values (or, if `binary`, only 0 and 1).

    As many indices as there are features are refused: they are most likely a vector of zeros and ones (`inputs`).
    """
    raise NotImplementedError("for kernels only")


@loops(acceptable, dense=True, reassociate=True)
def acceptable_dense(n, x, binary):
    if x.size != n:
        return False
    wrong = 0
    for i in range(x.size):
        x_i = x.values[i]
        wrong += not np.isfinite(x_i) or (binary and x_i != 0.0 and x_i != 1.0)
    return wrong == 0


@loops(acceptable, dense=False)
def acceptable_sparse(n, x, binary):
    # Few indices seldom share their last six binary digits, or the six before: then none need be compared with
    # another. All of this is reductions, which are vectorised.
    one, wrong, last, before = np.int64(1), 0, np.int64(0), np.int64(0)
    for j in range(x.size):
        i, x_i = entry(x, j)
        # Without `and` and `or`, which would branch. x − x is 0 for finite numbers only.
        wrong += (i < 0) | (i >= n) | (x_i - x_i != 0.0) | (binary & (x_i != 0.0) & (x_i != 1.0))
        last |= one << (i & 63)
        before |= one << ((i >> 6) & 63)
    fine = (wrong == 0) & ((x.each != 0) | (x.size != n) | (n == 1))
    if fine and ones(last) != x.size and ones(before) != x.size:
        fine = distinct_for_sure(x.indices, x.size)
    return fine


@operation
def take(n, X, t, binary, own, seen):
    """Copy the indices of row t of a stream to their place in `own`, and return whether the row is acceptable.

    `seen` holds, for the last digits of indices, the last row that had such an index. Dense rows are not copied.
    """

    def take_sparse(n, X, t, binary, own, seen):
        given, first, wrong, shared = row(X, t), X[0][t], 0, 0
        for j in range(given.size):
            i = np.uint64(given.indices[j])  # a negative index is a large number
            wrong += i >= np.uint64(n)
            own[first + j] = i
            end = i & np.uint64(SEEN - 1)
            shared += seen[end] == t
            seen[end] = t
        fine = (wrong == 0) & ((given.each != 0) | (given.size != n) | (n == 1))
        if fine and (shared > 0 or given.each != 0):
            fine = acceptable(n, Sparse(pointer(own, first), given.values, given.each, given.size), binary)
        return fine

    def take_dense(n, X, t, binary, own, seen):
        return acceptable(n, row(X, t), binary)

    return take_sparse if isinstance(X, types.BaseTuple) else take_dense


@primitive
def ones(context: Any, word: Any) -> Any:
    """How many binary digits of a word are 1."""
    return types.int64(types.int64), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


@outlined
def distinct_for_sure(indices, size):
    """Whether all indices differ. Rising indices do. Otherwise all pairs are compared, four or more at a time."""
    falls = same = 0
    for j in range(1, size):
        falls += indices[j] <= indices[j - 1]
    if falls == 0:
        return True
    for j in range(1, size):
        for k in range(j):
            same += indices[j] == indices[k]
    return same == 0
