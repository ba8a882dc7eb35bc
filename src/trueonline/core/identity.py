"""The identity of code: a hash that changes when a function, a class or a value would give other results.

Code of the user is followed to everything that it refers to: constants, helper functions, classes, and what it uses of the user's
modules. This package and Python's library are known by the names of their parts, other installed packages by names and files.
Compiled code keeps the values of its first use. So a kernel whose identity has changed since it was compiled is refused.

This is one file because each kind of value is described by a few lines that call those of the others.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import hashlib
import importlib
import importlib.util
import inspect
import os
import pickle
import sys
import sysconfig
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba.core.dispatcher import Dispatcher

PLAIN = bool | int | float | complex | str | bytes | type(None) | type(Ellipsis) | type(NotImplemented)
DESCRIPTORS = (
    *(types.MethodDescriptorType, types.WrapperDescriptorType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType),
)
# Attributes of a class that say nothing of its results, or are made from attributes that do.
LEFT_OUT = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__abstractmethods__"),
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__firstlineno__", "__static_attributes__"),
    *("__parameters__", "__orig_bases__", "__annotate_func__", "__annotations_cache__", "__conditional_annotations__"),
    "_abc_impl",
}
UNTOLD = ("globals", "eval", "exec", "locals")  # functions by which code may refer to anything
ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")


class UnknownIdentityError(ValueError):
    """A thing of which nobody can tell whether it would give the same results again."""


def identity(thing: Any, *, portable: bool = False, unknown: list[str] | None = None) -> str:
    """A hash of everything that determines the results of a function, class or value.

    `portable` takes functions by their text, so that the hash is the same with another version of Python. Otherwise they are taken
    by their code, which is what runs even if a file was edited since. A part whose content nobody can tell is an
    UnknownIdentityError. If a list is given as `unknown`, the part is described there instead, and left out.
    """
    return hashlib.sha256(repr(_Walk(thing, portable, unknown).see(thing)).encode()).hexdigest()


# --- Compiled code --------------------------------------------------------------------------------

_COMPILED: WeakKeyDictionary[Any, str | None] = (
    WeakKeyDictionary()
)  # functions of users, with their identities when compiled
_CHECKING: set[int] = set()


def note_compilation(function: Any) -> None:
    """Remember what a function of the user is when it is compiled. ValueError if it was compiled as something else before."""
    if not is_installed(function):
        check_compiled(function)
        if function not in _COMPILED:
            try:
                _COMPILED[function] = identity(function)
            except UnknownIdentityError:
                _COMPILED[function] = None


def check_compiled(function: Any) -> None:
    """ValueError if what a compiled function refers to has changed since: compiled code keeps the old values."""
    if _COMPILED.get(function) is None or id(function) in _CHECKING:
        return
    _CHECKING.add(id(function))
    try:
        if identity(function) != _COMPILED[function]:
            raise ValueError(
                f"{function.__name__} was compiled when something that it refers to, such as a global constant, had another "
                "value, and compiled code keeps that value; define the function again, or start Python again"
            )
    finally:
        _CHECKING.discard(id(function))


# --- What is the user's ---------------------------------------------------------------------------


def is_installed(thing: Any) -> bool:
    """Whether a module, function or class is of this package, of Python or of an installed package, and not code of the user.

    A function or class that no module has under its name was made when code ran. It may hold anything, and is never installed.
    Nor is a module that is not imported under its name: a file of the user may have the name of a module of Python.
    """
    thing = thing.py_func if isinstance(thing, Dispatcher) else thing
    if isinstance(thing, types.ModuleType):
        return sys.modules.get(thing.__name__) is thing and _is_installed(thing.__name__)
    if not isinstance(thing, type | types.FunctionType | types.BuiltinFunctionType):
        return False
    name = thing.__module__ or "builtins"
    found = _look_up(name, thing.__qualname__)
    return (found.py_func if isinstance(found, Dispatcher) else found) is thing and _is_installed(name)


def _look_up(module: str, name: str) -> Any:
    """The object that a module has under a dotted name, or None."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_installed(name: str) -> bool:
    if _is_known(name):
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and bool({"site-packages", "dist-packages"} & set(Path(file).parts))


def _is_known(name: str) -> bool:
    """Whether a module is of this package or of Python."""
    top, file = name.partition(".")[0], getattr(sys.modules.get(name), "__file__", None)
    if top == "trueonline" or file is None:
        return top == "trueonline" or top in sys.stdlib_module_names
    installed = {"site-packages", "dist-packages"} & set(Path(file).parts)
    return file.startswith(sysconfig.get_path("stdlib") + os.sep) and not installed


@cache
def _file_digest(name: str) -> str:
    """A hash of the file of an installed module, which another version of its package may have changed."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if _is_known(name) or file is None or not file.endswith(".py"):
        return ""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


# --- The walk -------------------------------------------------------------------------------------


class _Walk:
    """Walks through a thing and what it refers to. Things that were seen before, or are being seen, get a number.

    The thing itself is followed even if it is of an installed package.
    """

    def __init__(self, first: Any, portable: bool, unknown: list[str] | None) -> None:
        self._first = first.py_func if isinstance(first, Dispatcher) else first
        self._portable, self._unknown = portable, unknown
        self._numbers: dict[Any, int] = {}
        self._alive: list[Any] = []  # so that no other thing gets the same id

    def see(self, thing: Any) -> Any:
        """A plain value that changes when the thing does."""
        if isinstance(thing, PLAIN) and type(thing).__module__ == "builtins":
            return type(thing).__name__, repr(thing)
        if isinstance(thing, np.generic):
            return repr(thing.dtype.descr), thing.tobytes()
        return self._once(thing, lambda: self._see(thing))

    def _once(self, thing: Any, look: Any, *about: Any) -> Any:
        key = (id(thing), *map(id, about))
        if key in self._numbers:
            return "seen before", self._numbers[key]
        self._numbers[key] = len(self._numbers)
        self._alive.append((thing, about))
        try:
            return look()
        except UnknownIdentityError as error:
            if self._unknown is None:
                raise
            self._unknown.append(str(error))
            return "unknown"

    def _see(self, thing: Any) -> Any:
        if self._is_by_name(thing):
            module = thing.__name__ if isinstance(thing, types.ModuleType) else str(thing.__module__)
            return "installed", module, getattr(thing, "__qualname__", ""), _file_digest(module)
        if isinstance(thing, types.FunctionType):
            return self._function(thing)
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, Dispatcher):
            check_compiled(thing.py_func)
            return "compiled", repr(sorted(thing.targetoptions.items(), key=repr)), self.see(thing.py_func)
        for kinds, parts in WRAPPERS:
            if isinstance(thing, kinds):
                return type(thing).__name__, [self.see(getattr(thing, part)) for part in parts]
        if isinstance(thing, DESCRIPTORS):
            return type(thing).__name__, thing.__name__
        if isinstance(thing, types.BuiltinFunctionType) and not isinstance(thing.__self__, types.ModuleType | None):
            return thing.__name__, self.see(thing.__self__)
        if isinstance(thing, types.ModuleType):
            return self._module(thing, None)
        if isinstance(thing, types.BuiltinFunctionType):
            raise UnknownIdentityError(f"{_named(thing)}, which is not Python code that can be read")
        return self._value(thing)

    def _is_by_name(self, thing: Any) -> bool:
        function = thing.py_func if isinstance(thing, Dispatcher) else thing
        if function is self._first and not _is_known(getattr(function, "__module__", None) or "builtins"):
            return False
        return is_installed(thing)

    def _value(self, thing: Any) -> Any:
        kind = type(thing)
        if kind is np.ndarray and not thing.dtype.hasobject:
            digest = hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()
            return "array", repr(thing.dtype.descr), thing.shape, digest
        if kind in (tuple, list):
            return kind.__name__, [self.see(part) for part in thing]
        if kind in (set, frozenset):
            return kind.__name__, [self.see(part) for part in sorted(thing, key=repr)]
        if kind in (dict, types.MappingProxyType):
            return kind.__name__, [(self.see(key), self.see(part)) for key, part in thing.items()]
        if isinstance(thing, enum.Enum):
            return self.see(kind), thing.name
        if is_dataclass(kind) and is_installed(kind):
            return self.see(kind), [(field.name, self.see(getattr(thing, field.name))) for field in fields(kind)]
        return self._object(thing)

    def _function(self, function: Any) -> Any:
        text = _text(function) if self._portable else None
        code, refers = function.__code__, reached(function)
        untold = [name for name in UNTOLD if name in _globals(code) and name not in function.__globals__]
        if untold:
            raise UnknownIdentityError(f"{untold[0]}() in {function.__name__}, which may refer to anything")
        seen = [
            self._code(code) if text is None else text,
            *(self.see(part) for part in (function.__defaults__, function.__kwdefaults__, vars(function))),
            [(name, self._used(name, part, code)) for name, part in refers.items()],
            [self._module(module, code) for module in _imports(function) if not is_installed(module)],
        ]
        return "function", function.__name__, seen

    def _used(self, name: str, thing: Any, code: types.CodeType) -> Any:
        """A thing that code refers to. If the code only takes attributes of a module of the user, these alone count."""
        if isinstance(thing, types.ModuleType) and not is_installed(thing):
            return self._module(thing, code if _takes_attributes_only(name, code) else None)
        return self.see(thing)

    def _module(self, module: types.ModuleType, code: types.CodeType | None) -> Any:
        """The parts of a module of the user that code uses, or all of them."""
        return self._once(module, lambda: self._contents(module, code), code)

    def _contents(self, module: types.ModuleType, code: types.CodeType | None) -> Any:
        if not (getattr(module, "__file__", None) or ".py").endswith((".py", ".pyc")):
            raise UnknownIdentityError(f"the module {module.__name__}, which is not Python code that can be read")
        names = {name for name in vars(module) if name[:2] != "__" or name == "__getattr__"}
        if code is not None:
            names &= {each.argval for each in _instructions(code) if isinstance(each.argval, str)}
        return module.__name__, [
            (
                name,
                self._module(part, code)
                if isinstance(part, types.ModuleType) and not is_installed(part)
                else self.see(part),
            )
            for name, part in ((name, vars(module)[name]) for name in sorted(names))
        ]

    def _code(self, code: types.CodeType) -> Any:
        constants = [self._code(part) if isinstance(part, types.CodeType) else _constant(part) for part in code.co_consts]
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        return code.co_code, code.co_exceptiontable, constants, names, counts

    def _class(self, kind: type) -> Any:
        own = [(name, self.see(vars(kind)[name])) for name in sorted(vars(kind)) if name not in LEFT_OUT]
        return "class", kind.__qualname__, own, [self.see(base) for base in (*kind.__bases__, type(kind))]

    def _object(self, thing: Any) -> Any:
        """An object by what a pickle of it would hold, and by its attributes. Nothing is pickled."""
        reduce = copyreg.dispatch_table.get(type(thing))
        try:
            parts: Any = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
        except Exception as error:
            raise UnknownIdentityError(f"{_named(thing)} ({error})") from None
        if isinstance(parts, str):  # the name of the only one of its kind, such as a function of NumPy
            module = pickle.whichmodule(thing, parts)  # type: ignore[attr-defined]
            if not _is_installed(module) or _look_up(module, parts) is not thing:
                raise UnknownIdentityError(_named(thing))
            return module, parts
        make, arguments, state, items, pairs = (*parts, None, None, None)[:5]
        own = (
            None if is_installed(type(thing)) else getattr(thing, "__dict__", None)
        )  # a class of the user may leave out some
        return [self.see(part) for part in (make, arguments, state, list(items or ()), list(pairs or ()), own)]


WRAPPERS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (property, ("fget", "fset", "fdel")),
    ((staticmethod, classmethod), ("__func__",)),
    (types.MethodType, ("__func__", "__self__")),
    (cached_property, ("func",)),
    (partial, ("func", "args", "keywords")),
    (type(lru_cache(repr)), ("__wrapped__",)),
)


# --- Code -----------------------------------------------------------------------------------------


def reached(function: Any) -> dict[str, Any]:
    """The names that a function uses, from its closure and from its globals, with their values."""
    found = {name: function.__globals__[name] for name in _globals(function.__code__) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it is not assigned yet
            continue
    return {name: found[name] for name in sorted(found)}


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    """All instructions of a function, and of functions within it."""
    yield from dis.get_instructions(code)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _instructions(part)


def _globals(code: types.CodeType) -> set[str]:
    return {each.argval for each in _instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


def _takes_attributes_only(name: str, code: types.CodeType) -> bool:
    """Whether each use of a name is followed by one of its attributes."""
    each = [one for one in _instructions(code) if one.opname not in ("CACHE", "PUSH_NULL", "PRECALL")]
    loads = [i for i, one in enumerate(each) if one.opname.startswith("LOAD_") and one.argval == name]
    return all(i + 1 < len(each) and each[i + 1].opname in ATTRIBUTE for i in loads if each[i].opname not in ATTRIBUTE)


def _constant(value: Any) -> Any:
    """A constant in code. The order of a set differs from process to process."""
    if isinstance(value, frozenset):
        return "set", sorted(map(repr, map(_constant, value)))
    return [_constant(part) for part in value] if isinstance(value, tuple) else repr(value)


def _imports(function: Any) -> Iterator[types.ModuleType]:
    """The modules that a function imports when it runs, with those above and below them that it names."""
    constants: list[Any] = []
    for each in _instructions(function.__code__):
        if each.opname == "LOAD_CONST":
            constants.append(each.argval)
        elif each.opname == "IMPORT_NAME":
            level, names = constants[-2:]
            yield from _imported(each.argval, level, names, function.__globals__.get("__package__") or "")


def _imported(name: str, level: int, names: tuple[str, ...] | None, package: str) -> Iterator[types.ModuleType]:
    try:
        full = importlib.util.resolve_name("." * level + name, package) if level else name
        module = importlib.import_module(full)
        yield module
        for top in ["".join(full.split(".")[:1])] if names is None else []:
            yield importlib.import_module(top)
        for each in names or ():
            if not hasattr(module, each) and each != "*":
                yield importlib.import_module(f"{full}.{each}")
    except ImportError:
        raise UnknownIdentityError(f"the module {'.' * level}{name}, which cannot be imported") from None


def _text(function: Any) -> str | None:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # made by exec, or typed at a prompt
        return None


def _named(thing: Any) -> str:
    return f"{type(thing).__qualname__} {getattr(thing, '__name__', None) or repr(thing):.80}"
