"""The identity of code: a hash that changes when a function, a class or a value would give other results.

Code of the user is followed to everything that it refers to: constants, helper functions, classes, and what it uses of the user's
modules. Installed packages, Python's library and this package are known by their names alone.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import hashlib
import importlib
import inspect
import os
import pickle
import sys
import sysconfig
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

PLAIN = bool | int | float | complex | str | bytes | type(None) | type(Ellipsis) | type(NotImplemented)
DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
# Attributes of a class that say nothing of its results, or are made from attributes that do.
LEFT_OUT = {
    *(
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__qualname__",
        "__annotations__",
        "__abstractmethods__",
        "_abc_impl",
    ),
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__firstlineno__", "__static_attributes__"),
    *("__parameters__", "__orig_bases__", "__annotate_func__", "__annotations_cache__", "__conditional_annotations__"),
}


class UnknownIdentityError(ValueError):
    """A thing of which nobody can tell whether it would give the same results again."""


def identity(thing: Any, *, portable: bool = False) -> str:
    """A hash of everything that determines the results of a function, class or value.

    `portable` takes functions by their text, so that the hash is the same with another version of Python. Otherwise they are taken
    by their code, which is what runs even if a file was edited since.
    """
    return hashlib.sha256(repr(_Walk(portable).see(thing)).encode()).hexdigest()


def reached(function: Any) -> dict[str, Any]:
    """What a function refers to by name: what it closes over, and global names."""
    found = {name: function.__globals__[name] for name in _globals(function.__code__) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it is not assigned yet
            continue
    return {name: found[name] for name in sorted(found)}


def is_installed(thing: Any) -> bool:
    """Whether a module, function or class is of this package, of Python or of an installed package, and not code of the user.

    A function or class that no module has under its name was made when code ran. It may hold anything, and is never installed.
    """
    thing = getattr(thing, "py_func", thing)
    if isinstance(thing, types.ModuleType):
        return _is_installed(thing.__name__)
    if not isinstance(thing, type | types.FunctionType | types.BuiltinFunctionType):
        return False
    name = thing.__module__ or "builtins"
    found = _look_up(name, thing.__qualname__)
    return getattr(found, "py_func", found) is thing and _is_installed(name)


def _look_up(module: str, name: str) -> Any:
    """What a module has under a name with dots, or None."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_installed(name: str) -> bool:
    top, file = name.partition(".")[0], getattr(sys.modules.get(name), "__file__", None)
    if top == "trueonline" or file is None:
        return top == "trueonline" or top in sys.stdlib_module_names
    library = sysconfig.get_path("stdlib") + os.sep
    return file.startswith(library) or bool({"site-packages", "dist-packages"} & set(Path(file).parts))


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    """All instructions of a function, and of functions within it."""
    yield from dis.get_instructions(code)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _instructions(part)


def _globals(code: types.CodeType) -> set[str]:
    return {each.argval for each in _instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


class _Walk:
    """Walks through a thing and what it refers to. Things that were seen before, or are being seen, get a number."""

    def __init__(self, portable: bool) -> None:
        self._portable = portable
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no other thing gets the same id

    def see(self, thing: Any) -> Any:
        """A plain value that changes when the thing does."""
        if isinstance(thing, PLAIN) and type(thing).__module__ == "builtins":
            return type(thing).__name__, repr(thing)
        if isinstance(thing, np.generic):
            return thing.dtype.str, thing.tobytes()
        if id(thing) in self._numbers:
            return "seen before", self._numbers[id(thing)]
        self._numbers[id(thing)] = len(self._numbers)
        self._alive.append(thing)
        return self._see(thing)

    def _see(self, thing: Any) -> Any:
        if is_installed(thing):
            return "installed", _module_of(thing), getattr(thing, "__qualname__", "")
        if isinstance(thing, types.FunctionType):
            return self._function(thing)
        if isinstance(thing, type):
            return self._class(thing)
        if hasattr(thing, "py_func"):  # compiled by Numba
            return "compiled", repr(sorted(thing.targetoptions.items(), key=repr)), self.see(thing.py_func)
        for kinds, parts in WRAPPERS:
            if isinstance(thing, kinds):
                return type(thing).__name__, [self.see(getattr(thing, part)) for part in parts]
        if isinstance(thing, DESCRIPTORS):
            return type(thing).__name__, thing.__name__
        if isinstance(thing, types.BuiltinFunctionType) and not isinstance(thing.__self__, types.ModuleType | None):
            return thing.__name__, self.see(thing.__self__)
        if isinstance(thing, types.BuiltinFunctionType | types.ModuleType):
            raise UnknownIdentityError(f"{_named(thing)}, which is not Python code that can be read")
        return self._value(thing)

    def _value(self, thing: Any) -> Any:
        kind = type(thing)
        if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            return "array", thing.dtype.str, thing.shape, hashlib.sha256(np.ascontiguousarray(thing).data).hexdigest()
        if kind in (tuple, list):
            return kind.__name__, [self.see(part) for part in thing]
        if kind in (set, frozenset):
            return kind.__name__, [self.see(part) for part in sorted(thing, key=repr)]
        if kind in (dict, types.MappingProxyType):
            return kind.__name__, [(self.see(key), self.see(part)) for key, part in thing.items()]
        if isinstance(thing, enum.Enum):
            return self.see(kind), thing.name
        if is_dataclass(thing):
            return self.see(kind), [(field.name, self.see(getattr(thing, field.name))) for field in fields(thing)]
        return self._object(thing)

    def _function(self, function: Any) -> Any:
        text = _text(function) if self._portable else None
        refers = reached(function)
        seen = [
            self._code(function.__code__) if text is None else text,
            self.see(function.__defaults__),
            self.see(function.__kwdefaults__),
            [(name, self._used(part, function.__code__)) for name, part in refers.items()],
            [self._used(module, function.__code__) for module in _imports(function)],
        ]
        return "function", function.__name__, seen

    def _used(self, thing: Any, code: types.CodeType) -> Any:
        """A thing that code refers to. Of a module of the user, the names that the code uses."""
        if not isinstance(thing, types.ModuleType) or is_installed(thing):
            return self.see(thing)
        if not (getattr(thing, "__file__", None) or ".py").endswith((".py", ".pyc")):
            raise UnknownIdentityError(f"the module {thing.__name__}, which is not Python code that can be read")
        names = {name for each in _instructions(code) for name in [each.argval] if isinstance(name, str)}
        return thing.__name__, [
            (name, self._used(vars(thing)[name], code)) for name in sorted(names & vars(thing).keys())
        ]

    def _code(self, code: types.CodeType) -> Any:
        constants = [self._code(part) if isinstance(part, types.CodeType) else _constant(part) for part in code.co_consts]
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return code.co_code, constants, names, code.co_argcount, code.co_kwonlyargcount, code.co_flags

    def _class(self, kind: type) -> Any:
        own = [(name, self.see(vars(kind)[name])) for name in sorted(vars(kind)) if name not in LEFT_OUT]
        return "class", kind.__qualname__, own, [self.see(base) for base in (*kind.__bases__, type(kind))]

    def _object(self, thing: Any) -> Any:
        """An object by what a pickle of it would hold. Nothing is pickled."""
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
        return (
            self.see(make),
            self.see(arguments),
            self.see(state),
            self.see(list(items or ())),
            self.see(list(pairs or ())),
        )


WRAPPERS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (property, ("fget", "fset", "fdel")),
    ((staticmethod, classmethod), ("__func__",)),
    (types.MethodType, ("__func__", "__self__")),
    (cached_property, ("func",)),
    (partial, ("func", "args", "keywords")),
    (type(lru_cache(repr)), ("__wrapped__",)),
)


def _constant(value: Any) -> Any:
    """A constant in code. The order of a set differs from process to process."""
    if isinstance(value, frozenset):
        return "set", sorted(map(repr, map(_constant, value)))
    return [_constant(part) for part in value] if isinstance(value, tuple) else repr(value)


def _imports(function: Any) -> Iterator[types.ModuleType]:
    """The modules that a function imports when it runs."""
    for each in _instructions(function.__code__):
        if each.opname == "IMPORT_NAME" and each.argval:
            try:
                yield importlib.import_module(each.argval)
            except ImportError:
                raise UnknownIdentityError(f"the module {each.argval}, which cannot be imported") from None


def _text(function: Any) -> str | None:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # made by exec, or typed at a prompt
        return None


def _module_of(thing: Any) -> str:
    return (
        thing.__name__
        if isinstance(thing, types.ModuleType)
        else str(getattr(thing, "__module__", type(thing).__module__))
    )


def _named(thing: Any) -> str:
    return f"{type(thing).__qualname__} {getattr(thing, '__name__', None) or repr(thing):.80}"
