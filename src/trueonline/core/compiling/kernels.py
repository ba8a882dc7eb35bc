"""Numba as this package uses it: small kernels that read like algebra, and are compiled as one flat function (`compose.py`).

- `kernel` marks a piece that is inlined into its caller: a memory operation or a method.
- `operation` gives a stub its loops, chosen by the types of its arguments.
- `outlined` marks a rare piece that stays a function.
- `primitive` makes a single instruction.
- `specialise` turns a template and a method into a compiled entry point, kept on disk (`kernel_cache.py`).
"""

from __future__ import annotations

import ast
import gc
import hashlib
import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import RLock
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numba
import numpy as np
from numba import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonRewrites
from numba.core.untyped_passes import DeadBranchPrune, InlineClosureLikes, RewriteSemanticConstants
from numba.extending import intrinsic, overload

from trueonline.core.compiling.compose import UNKNOWN, Apart, Composed, compose
from trueonline.core.compiling.identity import UnknownIdentityError, identity
from trueonline.core.compiling.kernel_cache import KernelCache
from trueonline.core.compiling.syntax import NotInlinableError, definition, is_expression

# Dense loops may sum in any order and fuse multiply with add. Never `nnan` or `ninf`: divergence must stay visible.
REASSOCIATE = {"reassoc", "contract", "nsz"}

# The NumPy error model spares a branch per division. Nothing is ever called through a C wrapper.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_PIECE: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}
_INLINED: dict[str, Any] = {**_PIECE, "forceinline": True}

# Passes of Numba that find nothing in a flat text, and take a tenth of its time: there are no functions within functions and no
# operations on whole arrays, and the composer has decided what constants decide.
_IDLE = {InlineClosureLikes, RewriteSemanticConstants, DeadBranchPrune, NopythonRewrites}

_COMPILING = RLock()
_ROLES: WeakKeyDictionary[Any, dict[str, Any] | None] = WeakKeyDictionary()  # the options of pieces that stay apart
_CHOICES: dict[Any, list[tuple[Callable, bool]]] = {}
_KINDS: dict[Any, Callable] = {}  # the typing of primitives


def kernel(function: Callable) -> Any:
    """Compile a function as a piece of a kernel, which is inlined into its caller. Used as a decorator.

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
    _ROLES[function] = None
    return numba.njit(function, **_OPTIONS, forceinline=True)


def outlined(function: Callable, *, reassociate: bool = False) -> Any:
    """A rare piece that stays a function, so that the hot loop around its call stays small."""
    options = {**_PIECE, "fastmath": REASSOCIATE} if reassociate else _PIECE
    _ROLES[function] = options
    return numba.njit(function, **options)


def contracted(function: Callable) -> Any:
    """A piece as `kernel` makes it, with leave to fuse multiply with add, and no other leave."""
    _ROLES[function] = {**_INLINED, "fastmath": {"contract"}}
    return numba.njit(function, **_OPTIONS, forceinline=True, fastmath={"contract"})


class InOrder(types.Type):
    """A type that asks for sums in order and for no fused operations: the same bits on every processor and GPU.

    An argument of such a type, or a named tuple with such a member, makes an `operation` do without reassociation.
    """


def _asks_for_order(kind: Any) -> bool:
    return isinstance(kind, InOrder) or (
        isinstance(kind, types.BaseTuple) and any(_asks_for_order(part) for part in cast(Any, kind).types)
    )


def operation(choose: Callable) -> Callable:
    """An operation of kernels: the decorated function gets the types of a call's arguments, and returns the function to inline."""

    @wraps(choose)
    def stub(*arguments: Any) -> Any:
        raise NotImplementedError("for kernels only")

    overloads(stub)(choose)
    return stub


def overloads(stub: Callable, *, reassociate: bool = False) -> Callable:
    """Register one more choice for an operation, which returns None for types that it is not for.

    The composer chooses by the same types as Numba does, where Numba compiles a call of `stub` that the composer left.
    """

    def register(choose: Callable) -> Callable:
        _CHOICES.setdefault(stub, []).append((choose, reassociate))
        for in_order in (True, False) if reassociate else (None,):
            options = {**_INLINED, "fastmath": REASSOCIATE} if in_order is False else _INLINED
            overload(stub, jit_options=cast(Any, options))(_where(in_order, choose))
        return choose

    return register


def _where(in_order: bool | None, choose: Callable) -> Callable:
    """`choose`, for arguments that ask for sums in order, or for all others, or for both."""

    @wraps(choose)
    def chosen(*kinds: Any, **named: Any) -> Any:
        asked = any(_asks_for_order(kind) for kind in (*kinds, *named.values()))
        return choose(*kinds, **named) if in_order is None or asked == in_order else None

    return chosen


def primitive(definition: Callable) -> Any:
    """An intrinsic of Numba: the decorated function gets the types of its arguments, and returns a signature and its code."""
    made = intrinsic(definition)
    _KINDS[made] = definition
    return made


@primitive
def either(context: Any, test: Any, a: Any, b: Any) -> Any:
    """a if the test holds, else b. Both are there, so there is no branch, for which Numba would take several times as long."""
    kind = context and context.unify_types(a, b)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one, other = (context.cast(builder, *each, kind) for each in zip(arguments[1:], signature.args[1:], strict=True))
        return builder.select(context.is_true(builder, test, arguments[0]), one, other)

    return kind and kind(test, a, b), generate


# --- What the composer asks -----------------------------------------------------------------------


def _least(a, b):
    return b if b < a else a


def _most(a, b):
    return b if b > a else a


def _whole(a):
    return np.int64(a)


# Numba compiles a function for each of these, in the same way and at a price.
_BUILTINS = {(min, 2): _least, (max, 2): _most, (int, 1): _whole}


class _Knowledge:
    """What is inlined, what stays apart, and which types primitives have."""

    either = either

    @staticmethod
    def callee(called: Any, kinds: tuple[Any, ...]) -> Any:
        """The Python function to inline, or an `Apart`, or None for what Numba should find out."""
        if isinstance(called, Dispatcher):
            function = called.py_func
            options = _ROLES.get(function)
            return Apart(function, _sorted(options)) if options is not None else function if function in _ROLES else None
        try:
            if (called, len(kinds)) in _BUILTINS:
                return _BUILTINS[called, len(kinds)]
            choices = _CHOICES.get(called, ())
        except TypeError:  # it cannot be a key
            return None
        for choose, reassociate in choices:
            try:
                chosen = choose(*kinds)
            except (AttributeError, KeyError, ValueError) as error:  # a type that is not known
                raise NotInlinableError(str(error)) from None
            if chosen is not None:
                chosen = chosen.py_func if isinstance(chosen, Dispatcher) else chosen
                if reassociate and not any(_points(kind) for kind in kinds):
                    raise NotInlinableError("types that are not known")
                loose = reassociate and not any(_asks_for_order(kind) for kind in kinds)
                loose = loose and not is_expression(chosen, (ast.Constant,))
                return Apart(chosen, _sorted({**_PIECE, "fastmath": REASSOCIATE})) if loose else chosen
        return None

    @staticmethod
    def kind(called: Any, kinds: list[Any]) -> Any:
        """The type of what a primitive returns, if `called` is one."""
        if called in (_KINDS if getattr(called, "__hash__", None) else ()):
            try:
                return _KINDS[called](None, *kinds)[0].return_type
            except Exception:  # it depends on a type that is not known
                return UNKNOWN
        return UNKNOWN


def _points(kind: Any) -> bool:
    """Whether a type is a pointer, or a tuple with one."""
    parts = cast(Any, kind).types if isinstance(kind, types.BaseTuple) else ()
    return isinstance(kind, types.CPointer | InOrder) or any(_points(part) for part in parts)


def _sorted(options: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, frozenset(value) if isinstance(value, set) else value) for name, value in options.items()))


# --- Entry points ---------------------------------------------------------------------------------


def specialise(template: Callable, name: str, *, undivided: bool = False, **names: Any) -> Any:
    """An entry point: `template` with `names` (such as `rule=true_online_td`) in place of its placeholders.

    Placeholders are globals of the template's module. A name that is no such global is a TypeError. A call of an `undivided` entry
    point keeps Python's lock, so no other thread runs between its beginning and its end.
    """
    unknown = names.keys() - template.__globals__.keys()
    if unknown:
        raise TypeError(f"{template.__name__} has no placeholder {sorted(unknown)[0]!r}")
    function = FunctionType(template.__code__, {**template.__globals__, **names}, f"{template.__name__}_{name}")
    function.__qualname__ = function.__name__
    entry: Any = numba.njit(function, **{**_OPTIONS, "nogil": not undivided})
    entry._can_compile = False  # `disable_compile` would insist on a first signature
    entry.template, entry.read = function, []  # kept here, so that both are collected with the entry point
    return entry


def inlined(template: Callable, **names: Any) -> Any:
    """A template with these names as a piece that is inlined into its caller."""
    return kernel(FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__))


class _Read(NamedTuple):
    """A global that was compiled into a kernel: where it stood, its name and value, and a copy if the value can change.

    `by` is the function that read it, if Numba compiled that function on its own: it keeps the value for good.
    """

    where: Any
    name: str
    value: Any
    copy: Any
    by: str

    def is_stale(self) -> bool:
        """Whether the global has another value now."""
        now = self.where.get(self.name)
        now = now.cell_contents if isinstance(now, CellType) else now
        return now is not self.value or (self.copy is not None and not np.array_equal(now, self.copy))


def kept_with(rule: Any) -> dict[Any, Any]:
    """The entry points of a rule. They are collected with it, and are made again if a value that its code reads has changed."""
    made = vars(rule).setdefault("entry_points", {})
    entries = [one for each in made.values() for one in (each if isinstance(each, tuple) else (each,))]
    stale = [each for entry in entries for each in entry.read if each.is_stale()]
    if stale:
        made.clear()
    for each in stale:
        if each.by:
            raise ValueError(
                f"{each.by} was compiled when {each.name} had another value, and compiled code keeps that value; define {each.by} "
                "again, or start Python again"
            )
    return made


def call(entry: Any, *arguments: Any) -> Any:
    """Call `entry`, compiled for the types of these arguments or loaded from disk if that has not been done before."""
    try:
        return entry(*arguments)
    except TypeError:
        arguments = tuple(map(_writable, arguments))
        ensure(entry, *arguments)
    return entry(*arguments)


def _writable(argument: Any) -> Any:
    """An array that is read-only or not aligned as a copy, so that kernels are compiled for one type of arrays."""
    if isinstance(argument, tuple):
        return tuple(map(_writable, argument))
    return argument if not isinstance(argument, np.ndarray) or argument.flags.behaved else argument.copy()


def ensure(entry: Any, *arguments: Any) -> None:
    """Compile `entry` for the types of these arguments, or load it from disk, unless that was done before.

    An entry point itself never compiles. A call with other types is a quick TypeError, in every thread at every time.
    """
    signature = tuple(numba.typeof(argument) for argument in arguments)
    with _COMPILING, _hastened():
        if signature not in entry.overloads:
            try:
                composed = compose(entry.template, signature, _Knowledge)
                options = entry.targetoptions
                compiler = _functions(composed, options["nogil"])[composed.name]
                compiler._cache = KernelCache(composed.name, _meaning(composed, options["nogil"]))
                compiler.compile(signature)
            except (NumbaError, UnsupportedBytecodeError, AttributeError, KeyError) as error:
                raise ValueError(
                    f"{entry.template.__name__} cannot be compiled: {_reason(error)}. A rule of your own, and the kernels that it "
                    "calls, must be in the part of Python that Numba compiles, and use the operations of trueonline.core.memory"
                ) from error
            entry.add_overload(compiler.overloads[signature])
            entry.read.extend(_reads(composed))


def _reason(error: Exception) -> str:
    """The first line of an error that says what is wrong. Numba's first line says where it was in its work."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("Failed in")]
    if isinstance(error, KeyError):
        return f"it uses {error}, which is not there"
    return f"{type(error).__name__}: {lines[0]}"[:300] if lines else type(error).__name__


@contextmanager
def _hastened() -> Iterator[None]:
    """Save Numba a sixth of its time: it would look through its many objects for garbage, and look up the same types again."""
    context, found, collects = cpu_target.typing_context, dict[Any, Any](), gc.isenabled()
    resolve = context.resolve_function_type

    def remembered(function: Any, arguments: Any, named: Any) -> Any:
        if named or not isinstance(function, types.Function) or not all(each.is_precise() for each in arguments):
            return resolve(function, arguments, named)
        known = found.get((function, arguments))
        if known is None:
            known = found[function, arguments] = resolve(function, arguments, named)
        return known

    gc.disable()
    context.resolve_function_type = remembered
    try:
        yield
    finally:
        context.resolve_function_type = resolve
        if collects:
            gc.enable()


def _reads(composed: Composed) -> Iterator[_Read]:
    """The globals of users that a text was made from, or that functions read which Numba compiles on their own."""
    read = [(*each, "") for each in composed.read]
    waiting = [each for each in composed.names.values() if isinstance(each, Dispatcher)]
    for function in waiting:  # the list grows
        where = function.py_func.__globals__
        for name in function.py_func.__code__.co_names:
            if name in where:
                read.append((where, name, where[name], function.py_func.__name__))
                if isinstance(where[name], Dispatcher) and where[name] not in waiting:
                    waiting.append(where[name])
    for where, name, value, by in read:
        if not str(where.get("__name__", "")).startswith("trueonline."):
            yield _Read(where, name, value, value.copy() if isinstance(value, np.ndarray) else None, by)


def _functions(composed: Composed, nogil: bool) -> dict[str, Any]:
    """The functions of a text, for Numba to compile. `nogil` says whether calls from Python release its lock."""
    path = f"<kernel {hashlib.sha256(composed.text.encode()).hexdigest()[:16]}>"
    linecache.cache[path] = (len(composed.text), None, composed.text.splitlines(keepends=True), path)  # for errors
    names = {name: value for name, value in composed.names.items() if not isinstance(value, Apart)}
    names["__name__"] = __name__  # Numba imports this module when it loads machine code from disk
    exec(compile(composed.text, path, "exec"), names)
    for name, options in composed.options.items():
        given = {each: set(value) if isinstance(value, frozenset) else value for each, value in options}
        pipeline = _Closed if name == composed.name else _Flat
        names[name] = numba.njit(names[name], **{**(given or _OPTIONS), "nogil": nogil}, pipeline_class=pipeline)
    return names


class _Flat(CompilerBase):
    """Numba's pipeline without the passes that a flat text does not need."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes."""
        flat = PassManager("flat")
        for each, about in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if each not in _IDLE:
                flat.add_pass(each, about)
        flat.finalize()
        return [flat]


class _Closed(_Flat):
    """The pipeline of an entry point, whose machine code has the pieces as functions of its own.

    Otherwise a process that compiles it would call the pieces that were compiled apart, and one that loads it those inside. They
    may differ in how they reorder sums.
    """

    def define_pipelines(self) -> list[PassManager]:
        """The passes, which write to a library that is closed before it is optimised."""
        state = self.state
        state.library = library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        library.enable_object_caching()
        optimise = library._optimize_final_module

        def closed() -> None:
            for function in library._final_module.functions:
                if not function.is_declaration and function.linkage.name == "linkonce_odr":
                    function.linkage = "internal"
            optimise()

        library._optimize_final_module = closed
        return super().define_pipelines()


def _meaning(composed: Composed, nogil: bool) -> str | None:
    """Everything that determines the machine code of a text. None if that cannot be known."""
    try:
        named = [
            (name, _described(value)) for name, value in sorted(composed.names.items()) if not isinstance(value, Apart)
        ]
    except UnknownIdentityError:
        return None
    options = [
        (name, repr([(each, sorted(value) if isinstance(value, frozenset) else value) for each, value in options]))
        for name, options in composed.options.items()
    ]
    return repr((composed.text, options, named, nogil))


def _described(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return "module", value.__name__
    if value in (_KINDS if getattr(value, "__hash__", None) else ()):
        return "primitive", _texts(_KINDS[value], set())
    if isinstance(value, type) and hasattr(value, "_fields"):
        return "named tuple", value.__qualname__, value._fields
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, np.ufunc) or (getattr(value, "__module__", None) in ("builtins", "numpy", "math")):
        return "library", getattr(value, "__module__", ""), getattr(value, "__qualname__", getattr(value, "__name__", ""))
    if isinstance(value, Dispatcher) and _calls_itself(value, ()):  # by addresses, which mean nothing in another process
        raise UnknownIdentityError(f"{value.py_func.__name__}, which calls itself")
    return identity(value)


def _calls_itself(function: Dispatcher, before: tuple[Any, ...]) -> bool:
    where = function.py_func.__globals__
    called = (where.get(name) for name in function.py_func.__code__.co_names)
    return function in before or any(
        _calls_itself(each, (*before, function)) for each in called if isinstance(each, Dispatcher)
    )


def _texts(function: Any, seen: set[Any]) -> list[str]:
    """The text of a function of this package, and of those that it names."""
    if function.__code__ in seen:
        return []
    seen.add(function.__code__)
    found = ["\n".join(ast.unparse(each) for each in definition(function).body[1:])]
    for name in function.__code__.co_names:
        named = function.__globals__.get(name)
        if isinstance(named, FunctionType) and named.__module__ == function.__module__:
            found += _texts(named, seen)
    return found
