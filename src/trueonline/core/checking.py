"""Checks of features inside kernels, at the lowest cost and before anything changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from trueonline.core.forms import Active, Dense, entry, is_a
from trueonline.core.kernels import operation, outlined


def acceptable(n, x, binary):
    """Whether x has the right length or distinct indices in range, and finite values (or, if `binary`, only 0 and 1).

    As many indices as there are features are refused: they are most likely a vector of zeros and ones (`inputs`).
    """
    raise NotImplementedError("for kernels only")


@operation(acceptable, reassociate=True)
def _acceptable_dense(n, x, binary):
    if not is_a(Dense, x):
        return None

    def acceptable_dense(n, x, binary):
        if x.size != n:
            return False
        wrong = 0
        for i in range(x.size):
            x_i = x.values[i]
            wrong += not np.isfinite(x_i) or (binary and x_i != 0.0 and x_i != 1.0)
        return wrong == 0

    return acceptable_dense


@operation(acceptable)
def _acceptable_sparse(n, x, binary):
    if is_a(Dense, x):
        return None
    plain = is_a(Active, x)

    def acceptable_sparse(n, x, binary):
        # Few indices seldom share their last six binary digits, or the six before: then none need be compared with
        # another. All of this is reductions, which are vectorised.
        wrong, last, before, most = 0, np.uint64(0), np.uint64(0), np.uint64(n)
        for j in range(x.size):
            i, x_i = entry(x, j)
            wrong += i >= most or not np.isfinite(x_i) or (binary and x_i != 0.0 and x_i != 1.0)
            last |= np.uint64(1) << (i & np.uint64(63))
            before |= np.uint64(1) << ((i >> np.uint64(6)) & np.uint64(63))
        distinct = ones(last) == x.size or ones(before) == x.size
        return (
            x.size >= 0
            and not (plain and x.size == n and n > 1)
            and wrong == 0
            and (distinct or distinct_for_sure(x.indices, x.size))
        )

    return acceptable_sparse


@intrinsic
def ones(context: Any, word: Any) -> Any:
    """How many binary digits of a word are 1."""
    return types.int64(types.uint64), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


@outlined
def distinct_for_sure(indices, size):
    """Whether all indices differ. Rising indices do; otherwise all pairs are compared, or many indices are sorted."""
    falls = same = 0
    for j in range(1, size):
        falls += indices[j] <= indices[j - 1]
    if falls == 0:
        return True
    if size <= 32:
        for j in range(1, size):
            for k in range(j):
                same += indices[j] == indices[k]
        return same == 0
    ordered = np.empty(size, np.int64)
    for j in range(size):
        ordered[j] = indices[j]
    ordered.sort()
    for j in range(1, size):
        same += ordered[j] == ordered[j - 1]
    return same == 0
