"""Features inside a kernel: named tuples of pointers, because arrays would be counted in and out of every operation.

`Dense`, `Active` and `Pairs` are the three forms of features. `Chosen` turns each of them into the block features ψ(s, a) of a
state and an action. These types choose the operations on the memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from trueonline.core.kernels import operation


@intrinsic
def pointer(context: Any, array: Any, offset: Any) -> Any:
    """The address of an entry of a contiguous array, as a typed pointer: indexed without reference counting."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.gep(first, [arguments[1]])

    return types.CPointer(array.dtype)(array, types.int64), generate


class Dense(NamedTuple):
    """All n features by value, and those of the step before, whose imprint may still be noted."""

    values: Any
    before: Any
    size: Any


class Active(NamedTuple):
    """The indices of the active binary features."""

    indices: Any
    size: Any


class Pairs(NamedTuple):
    """The indices and values of the active features."""

    indices: Any
    values: Any
    size: Any


class Chosen(NamedTuple):
    """ψ(s, a): the state's features in the block of one action, zeros in the blocks of the others (end of section 4.3).

    Entry i of the state's features and action a share index i·actions + a, so that the weights of all actions of an
    active feature lie together.
    """

    features: Any
    actions: Any
    action: Any
    size: Any


def is_a(kind: type, x: Any) -> bool:
    """Whether a Numba type is one of the kinds above."""
    return isinstance(x, types.NamedTuple | types.NamedUniTuple) and x.instance_class is kind


def entry(x, j):
    """The j-th given feature: its index, unsigned so that no loop looks for negative ones, and its value."""
    raise NotImplementedError("for kernels only")


@operation(entry)
def _entry(x, j):
    if is_a(Chosen, x):

        def entry_chosen(x, j):
            i, x_i = entry(x.features, j)
            return i * np.uint64(x.actions) + np.uint64(x.action), x_i

        return entry_chosen
    if is_a(Dense, x):
        return lambda x, j: (np.uint64(j), x.values[j])
    if is_a(Pairs, x):
        return lambda x, j: (np.uint64(x.indices[j]), x.values[j])
    return lambda x, j: (np.uint64(x.indices[j]), 1.0)


# --- From arrays to features ----------------------------------------------------------------------


def view(x):
    """A float array, an integer array, or a pair of both, as features."""
    raise NotImplementedError("for kernels only")


@operation(view)
def _view(x):
    if isinstance(x, types.BaseTuple):
        return lambda x: Pairs(pointer(x[0], 0), pointer(x[1], 0), x[0].size if x[0].size == x[1].size else -1)
    if isinstance(x.dtype, types.Integer):
        return lambda x: Active(pointer(x, 0), x.size)
    return lambda x: Dense(pointer(x, 0), pointer(x, 0), x.size)


def row(X, t):
    """Row t of a 2-D float array, of a 2-D integer array, or of a CSR triple (indptr, indices, values), as features."""
    raise NotImplementedError("for kernels only")


@operation(row)
def _row(X, t):
    if isinstance(X, types.BaseTuple):
        return lambda X, t: Pairs(pointer(X[1], X[0][t]), pointer(X[2], X[0][t]), X[0][t + 1] - X[0][t])
    if isinstance(X.dtype, types.Integer):
        return lambda X, t: Active(pointer(X, t * X.shape[1]), X.shape[1])
    return lambda X, t: Dense(pointer(X, t * X.shape[1]), pointer(X, max(t - 1, 0) * X.shape[1]), X.shape[1])


def shortened(x, size):
    """The features in the first `size` entries of a buffer."""
    raise NotImplementedError("for kernels only")


@operation(shortened)
def _shortened(x, size):
    if is_a(Pairs, x):
        return lambda x, size: Pairs(x.indices, x.values, size)
    if is_a(Active, x):
        return lambda x, size: Active(x.indices, size)
    return lambda x, size: Dense(x.values, x.before, size)


def earlier(x):
    """The dense features of the step before; sparse ones as they are, since nothing is noted for them."""
    raise NotImplementedError("for kernels only")


@operation(earlier)
def _earlier(x):
    return (lambda x: Dense(x.before, x.before, x.size)) if is_a(Dense, x) else (lambda x: x)


def certain(x):
    """Whether features of this kind have been checked beforehand."""
    raise NotImplementedError("for kernels only")


@operation(certain)
def _certain(x):
    return (lambda x: False) if is_a(Dense, x) else (lambda x: True)


def copy(buffer, x):
    """Write the features x into a buffer."""
    raise NotImplementedError("for kernels only")


@operation(copy)
def _copy(buffer, x):
    def copy_dense(buffer, x):
        for j in range(x.size):
            buffer.values[j] = x.values[j]

    def copy_active(buffer, x):
        for j in range(x.size):
            buffer.indices[j] = x.indices[j]

    def copy_pairs(buffer, x):
        for j in range(x.size):
            buffer.indices[j] = x.indices[j]
            buffer.values[j] = x.values[j]

    return copy_pairs if is_a(Pairs, x) else copy_active if is_a(Active, x) else copy_dense
