"""Features inside a kernel: named tuples of pointers, because arrays would be counted in and out of every operation.

Users give `Dense` or `Sparse` features. `Active` and `Pairs` are sparse features that this package makes itself. `Chosen` turns any
of them into the block features ψ(s, a) of a state and an action. These types choose the operations on the memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
from numba import types

from trueonline.core.compiling.compose import UNKNOWN
from trueonline.core.compiling.kernels import kernel, operation, overloads, primitive
from trueonline.core.compiling.syntax import NotInlinableError


@primitive
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


class Sparse(NamedTuple):
    """The indices of the active features, and every `each`-th value: all are the first value where `each` is 0."""

    indices: Any
    values: Any
    each: Any
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


class Averaged(NamedTuple):
    """Σ_a π(a)ψ(s, a): the state's features in the blocks of all actions, in each times the probability of its action."""

    features: Any
    actions: Any
    chances: Any
    size: Any


def loops(stub: Callable, *, dense: bool, reassociate: bool = False) -> Callable:
    """Register the decorated loops as those of an operation on features x, if these are dense, or if they are sparse."""

    def register(function: Callable) -> Callable:
        place = [*inspect.signature(function).parameters].index("x")

        @overloads(stub, reassociate=reassociate)
        @wraps(function)
        def choose(*kinds: Any) -> Any:
            return function if is_a(Dense, kinds[place]) == dense else None

        return function

    return register


def is_a(kind: type, x: Any) -> bool:
    """Whether a Numba type is one of the kinds above."""
    if x is UNKNOWN:
        raise NotInlinableError("a type that is not known")
    return isinstance(x, types.NamedTuple | types.NamedUniTuple) and x.instance_class is kind


@operation
def entry(x, j):
    """The j-th given feature: its index and its value."""
    if is_a(Chosen, x):

        def entry_chosen(x, j):
            i, x_i = entry(x.features, j)
            return i * x.actions + x.action, x_i

        return entry_chosen
    if is_a(Averaged, x):

        def entry_averaged(x, j):
            a = j % x.actions
            i, x_i = entry(x.features, j // x.actions)
            return i * x.actions + a, x_i * x.chances[a]

        return entry_averaged
    if is_a(Dense, x):
        return lambda x, j: (j, x.values[j])
    if is_a(Sparse, x):
        return lambda x, j: (np.int64(x.indices[j]), x.values[j * x.each])
    if is_a(Pairs, x):
        return lambda x, j: (np.int64(x.indices[j]), x.values[j])
    return lambda x, j: (np.int64(x.indices[j]), 1.0)


# --- From arrays to features ----------------------------------------------------------------------


@operation
def view(x, values):
    """The features of a state: a float array and None, or an array of indices with one value for each, or with one for all."""
    if isinstance(values, types.NoneType):
        return lambda x, values: Dense(pointer(x, 0), pointer(x, 0), x.size)
    return lambda x, values: Sparse(pointer(x, 0), pointer(values, 0), np.int64(values.size == x.size), x.size)


@operation
def row(X, t):
    """Row t of a 2-D float array, or of a CSR triple (indptr, indices, values) with a value for each index, or one for all."""
    if isinstance(X, types.BaseTuple):
        return lambda X, t: piece(X[1], X[2], X[0][t], X[0][t + 1], np.int64(X[1].size == X[2].size))
    return lambda X, t: Dense(pointer(X, t * X.shape[1]), pointer(X, (t - (t > 0)) * X.shape[1]), X.shape[1])


@kernel
def piece(indices, values, first, last, each):
    """Some of the indices, and their values."""
    return Sparse(pointer(indices, first), pointer(values, first * each), each, last - first)


@operation
def held(numbers, places, first, n, length, values):
    """The features that a learner holds, of which the buffers have a copy; `values` is None if they are dense."""

    def sparse(numbers, places, first, n, length, values):
        return Sparse(pointer(places, places.size - 2 * n), pointer(numbers, first), 1, np.int64(length))

    def dense(numbers, places, first, n, length, values):
        return Dense(pointer(numbers, first), pointer(numbers, first), n)

    return dense if isinstance(values, types.NoneType) else sparse


@operation
def earlier(x):
    """The dense features of the step before; sparse ones as they are, since nothing is noted for them."""
    return (lambda x: Dense(x.before, x.before, x.size)) if is_a(Dense, x) else (lambda x: x)


@operation
def copy(buffer, x):
    """Write the features x into a buffer."""

    def copy_dense(buffer, x):
        for j in range(x.size):
            buffer.values[j] = x.values[j]

    def copy_sparse(buffer, x):
        for j in range(x.size):
            buffer.indices[j] = x.indices[j]
            buffer.values[j] = x.values[j * x.each]

    return copy_dense if is_a(Dense, x) else copy_sparse
