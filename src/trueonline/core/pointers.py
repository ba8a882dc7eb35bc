"""Pointers of other kinds, over which the operations of a memory compile as they are.

Sweeps run millions of learners over few features, on processors and on GPUs. Their memories have no lists to look through, because
every entry keeps its place. So places are known (`Counted`), u is part of y (`Folded`), and vectors lie wherever the device wants
them: one number after another (`Near`), or those of all learners side by side (`Strided`).

All of them ask for sums in order (`kernels.InOrder`): the same bits on every processor and GPU.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.errors import RequireLiteralValue
from numba.extending import register_model

from trueonline.core.compiling.kernels import InOrder, overloads, primitive


class Near(InOrder):
    """A pointer to numbers that lie one after another."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(f"Near({dtype})")


class Strided(InOrder):
    """A pointer to every `stride`-th number."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(f"Strided({dtype})")


class Counted(InOrder):
    """The list of a memory whose entries keep their places: entry i holds i + by, and what is written to it is just that."""

    def __init__(self, by: int) -> None:
        self.by = by
        super().__init__(f"Counted({by})")


class Folded(InOrder):
    """The u of a memory whose entries are all on the list: it is zero, and what is written to it goes to y."""

    def __init__(self, y: Any) -> None:
        self.y = y
        super().__init__(f"Folded({y})")


@register_model(Near)
class _NearModel(models.StructModel):
    def __init__(self, manager: Any, kind: Near) -> None:
        super().__init__(manager, kind, [("base", types.CPointer(kind.dtype))])


@register_model(Strided)
class _StridedModel(models.StructModel):
    def __init__(self, manager: Any, kind: Strided) -> None:
        super().__init__(manager, kind, [("base", types.CPointer(kind.dtype)), ("stride", types.int64)])


@register_model(Folded)
class _FoldedModel(models.StructModel):
    def __init__(self, manager: Any, kind: Folded) -> None:
        super().__init__(manager, kind, [("y", kind.y)])


register_model(Counted)(models.OpaqueModel)


# --- Making them ----------------------------------------------------------------------------------


@primitive
def since(context: Any, base: Any, offset: Any) -> Any:
    """The numbers from `offset` on, of an array, of a plain pointer, or of a pointer of these kinds."""
    kind = base if isinstance(base, Strided) else Near(base.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = cgutils.create_struct_proxy(kind)(context, builder)
        if isinstance(kind, Strided):
            made.base = _address(context, builder, kind, *arguments)
            made.stride = cgutils.create_struct_proxy(kind)(context, builder, value=arguments[0]).stride
        else:
            made.base = builder.gep(_first(context, builder, signature.args[0], arguments[0]), [arguments[1]])
        return made._getvalue()

    return kind(base, types.int64), generate


@primitive
def on_stack(context: Any, size: Any) -> Any:
    """So many floats on the stack, where they end up in registers if their number is small. The number must be a constant."""
    if not isinstance(size, types.IntegerLiteral):
        raise RequireLiteralValue("the size of a vector on the stack must be known")
    kind, count = Near(types.float64), size.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = cgutils.create_struct_proxy(kind)(context, builder)
        made.base = cgutils.alloca_once(builder, ir.DoubleType(), count)
        return made._getvalue()

    return kind(size), generate


@primitive
def strided(context: Any, base: Any, offset: Any, stride: Any) -> Any:
    """Every `stride`-th number from `offset` on."""
    kind = Strided(base.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = cgutils.create_struct_proxy(kind)(context, builder)
        made.base = builder.gep(_first(context, builder, signature.args[0], arguments[0]), [arguments[1]])
        made.stride = arguments[2]
        return made._getvalue()

    return kind(base, types.int64, types.int64), generate


@primitive
def folded(context: Any, y: Any) -> Any:
    """The u that is part of y."""
    kind = Folded(y)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = cgutils.create_struct_proxy(kind)(context, builder)
        made.y = arguments[0]
        return made._getvalue()

    return kind(y), generate


@primitive
def slots(context: Any) -> Any:
    """The place of entry i on its list is i + 1."""
    return Counted(1)(), lambda context, builder, signature, arguments: context.get_dummy_value()


@primitive
def owners(context: Any) -> Any:
    """The entry at place k of its list is k − 1."""
    return Counted(-1)(), lambda context, builder, signature, arguments: context.get_dummy_value()


def _first(context: Any, builder: Any, kind: Any, value: Any) -> ir.Value:
    """The address of the first number."""
    if isinstance(kind, types.CPointer):
        return value
    if isinstance(kind, Near):
        return cgutils.create_struct_proxy(kind)(context, builder, value=value).base
    return context.make_array(kind)(context, builder, value).data


# --- Reading and writing --------------------------------------------------------------------------


def _address(context: Any, builder: Any, kind: Any, value: Any, index: Any) -> ir.Value:
    made = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    return builder.gep(made.base, [builder.mul(index, made.stride) if isinstance(kind, Strided) else index])


@primitive
def _load(context: Any, vector: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_address(context, builder, signature.args[0], *arguments))

    return vector.dtype(vector, types.int64), generate


@primitive
def _store(context: Any, vector: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _address(context, builder, signature.args[0], *arguments[:2]))
        return context.get_dummy_value()

    return types.void(vector, types.int64, vector.dtype), generate


@primitive
def _behind(context: Any, u: Any) -> Any:
    """The y of which u is part."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).y

    return u.y(u), generate


@overloads(operator.getitem)
def _get(vector, index):
    if isinstance(vector, Near | Strided):
        return lambda vector, index: _load(vector, np.int64(index))
    if isinstance(vector, Counted):
        by = vector.by
        return lambda vector, index: np.int64(index) + by
    if isinstance(vector, Folded):
        return lambda vector, index: -0.0  # x + −0 is x, also where x is −0, so nothing has to be added
    return None


@overloads(operator.setitem)
def _set(vector, index, value):
    if isinstance(vector, Near | Strided):
        dtype = vector.dtype
        return lambda vector, index, value: _store(vector, np.int64(index), dtype(value))
    if isinstance(vector, Counted):
        return lambda vector, index, value: None
    if isinstance(vector, Folded):

        def add(vector, index, value):
            y = _behind(vector)
            y[np.int64(index) + 1] += value

        return add
    return None
