"""Numba as this package uses it: small kernels that read like algebra and compile into single loops.

- `kernel` marks a piece that is always inlined into its caller: a memory operation or a method.
- `operation` gives a stub its loops, chosen by the type of the features.
- `specialise` turns a template plus a method into a compiled entry point, kept on disk (`kernel_cache.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from types import FunctionType
from typing import Any, cast

import numba
from numba import types
from numba.core.registry import CPUDispatcher
from numba.extending import overload

from trueonline.core.identity import note_compilation
from trueonline.core.kernel_cache import KernelCache
from trueonline.core.pieces import PieceCompiler

# Dense loops may sum in any order and fuse multiply with add. Never `nnan` or `ninf`: divergence must stay visible.
REASSOCIATE = {"reassoc", "contract", "nsz"}

# `forceinline` spares reference counting between pieces; the NumPy error model spares a branch per division. Nothing is ever called
# through a C wrapper.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INLINED = {**_OPTIONS, "forceinline": True}
_PIECE: dict[str, Any] = {"no_cpython_wrapper": True, "pipeline_class": PieceCompiler}

_COMPILING = RLock()
_COMPILERS: dict[Any, Any] = {}


def kernel(function: Callable) -> Any:
    """Compile a function as a piece of a kernel, which is always inlined into its caller. Used as a decorator.

    An update rule for `trueonline.method` is such a function.

    Parameters
    ----------
    function : callable
        A function in the part of Python that Numba compiles. The first argument of an update rule is `memory`. The other arguments
        name what the rule needs of a transition (`trueonline.core.transition.Transition`).

    Returns
    -------
    numba.core.dispatcher.Dispatcher
        The compiled function. Numba compiles it at its first call, or together with its caller.

    Examples
    --------
    >>> @kernel
    ... def td_error(v, reward, gamma_next, v_next):
    ...     return reward + gamma_next * v_next - v
    >>> td_error(1.0, 2.0, 0.5, 4.0)
    3.0
    """
    return Kernel(function, targetoptions={"nopython": True, **_INLINED})


class Twin(CPUDispatcher):
    """A compiled function that other kernels inline."""

    def compile(self, sig: Any) -> Any:
        """Compile for these types of arguments, unless what the function refers to has changed since the first time."""
        note_compilation(self.py_func)
        return super().compile(sig)


class Kernel(Twin):
    """A compiled function that Python can call too. Other kernels inline its twin, which takes less time to compile."""

    def __init__(self, py_func: Callable, locals: Any = None, targetoptions: Any = None, **options: Any) -> None:
        super().__init__(py_func, locals, targetoptions, **options)
        twin = {**(targetoptions or {}), "no_cpython_wrapper": True}
        self._twin: Any = Twin(py_func, locals, twin, **{**options, "pipeline_class": PieceCompiler})

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self._twin)


class InOrder(types.Type):
    """A type that asks for sums in order and for no fused operations: the same bits on every processor and GPU.

    An argument of such a type, or a named tuple with such a member, makes an `operation` do without reassociation.
    """


def _asks_for_order(kind: Any) -> bool:
    return isinstance(kind, InOrder) or (
        isinstance(kind, types.BaseTuple) and any(_asks_for_order(part) for part in cast(Any, kind).types)
    )


def operation(stub: Callable, *, reassociate: bool = False) -> Callable:
    """Register loops for `stub`: the decorated function gets the argument types and returns an implementation."""
    if not reassociate:
        return overload(stub, jit_options=cast(Any, {**_INLINED, **_PIECE}))

    def register(choose: Callable) -> Callable:
        for in_order, options in ((True, {}), (False, {"fastmath": REASSOCIATE})):
            overload(stub, jit_options=cast(Any, {**_INLINED, **_PIECE, **options}))(_where(in_order, choose))
        return choose

    return register


def _where(in_order: bool, choose: Callable) -> Callable:
    """`choose`, for arguments that ask for sums in order, or for all others."""

    @wraps(choose)
    def chosen(*kinds: Any, **named: Any) -> Any:
        asked = any(_asks_for_order(kind) for kind in (*kinds, *named.values()))
        return choose(*kinds, **named) if asked == in_order else None

    return chosen


def contracted(function: Callable) -> Any:
    """Compile a function as `kernel` does, with leave to fuse multiply with add, and no other leave."""
    return Kernel(function, targetoptions={"nopython": True, **_INLINED, "fastmath": {"contract"}})


def outlined(function: Callable, *, reassociate: bool = False) -> Callable:
    """Compile a rare piece on its own, so that the hot loop around its call stays small."""
    return numba.njit(function, fastmath=REASSOCIATE if reassociate else False, **_OPTIONS, **_PIECE)


def specialise(template: Callable, name: str, key: Callable[[], str | None] = str, **names: Any) -> Any:
    """Compile `template` with `names` (such as `method=true_online_td`) as its global names.

    A global, unlike an argument or a closure cell, lets Numba inline the method *and* keep the result on disk. `key` tells apart
    methods that are not of this package.
    """
    code = template.__code__
    function = FunctionType(code, {**template.__globals__, **names}, name)
    function.__qualname__ = f"{template.__name__}_{name}"
    entry: Any = numba.njit(function, **_OPTIONS)
    entry._can_compile = False  # `disable_compile` would insist on a first signature
    _COMPILERS[entry] = numba.njit(function, **_OPTIONS)
    module = template.__module__.rpartition(".")[2]
    variant = {what: getattr(getattr(value, "py_func", value), "__qualname__", value) for what, value in names.items()}
    _COMPILERS[entry]._cache = KernelCache(f"{module}.{function.__qualname__}", repr(sorted(variant.items())), key)
    return entry


def inlined(template: Callable, **names: Any) -> Any:
    """Compile `template` with these global names as a piece that is inlined into its caller."""
    function = FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__)
    return kernel(function)


def call(entry: Any, *arguments: Any) -> Any:
    """Call `entry`, compiled for the types of these arguments or loaded from disk if that has not been done before."""
    try:
        return entry(*arguments)
    except TypeError:
        ensure(entry, *arguments)
    return entry(*arguments)


def ensure(entry: Any, *arguments: Any) -> None:
    """Compile `entry` for the types of these arguments, or load it from disk, unless that was done before.

    An entry point itself never compiles. A call with other types is a quick TypeError, in every thread at every time. The
    twin of the entry point compiles, and passes the result to it.
    """
    signature = tuple(numba.typeof(argument) for argument in arguments)
    with _COMPILING:
        if signature not in entry.overloads:
            compiler = _COMPILERS[entry]
            compiler.compile(signature)
            entry.add_overload(compiler.overloads[signature])
