"""The identity of code: a hash that changes when a function, a class or a value would give other results.

It is over-cautious. Everything of the user's that is loaded counts, whether the code needs it or not. Recomputing a result once too
often costs time, but an old result that is taken for a new one is wrong. Counted are:

- the files of the user's modules, and the code of every function that is alive in them. The code is what runs, even if a file was
  edited after it was imported;
- the values that the code refers to: closures, defaults, attributes, and variables of the user's modules by their names;
- the files of this package behind the parts that the code refers to (`core/compiling/sources.py`);
- the versions of installed packages.
"""

from __future__ import annotations

import copyreg
import dis
import gc
import hashlib
import inspect
import os
import pickle
import re
import sys
import sysconfig
import textwrap
import types
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, cached_property, lru_cache, partial
from importlib.machinery import EXTENSION_SUFFIXES
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from trueonline import catalog
from trueonline.core.compiling.sources import PACKAGE, meaning, package_code

PLAIN = bool | int | float | complex | str | bytes | type(None) | type(Ellipsis) | type(NotImplemented)
# What a row of the catalogue says of results. The rest is about pages and pictures.
ROW = ("memory", "trace", "binary", "greedy", "cuts", "options", "settings", "constants", "per_feature", "adapts")
WRAPPERS = (property, staticmethod, classmethod, cached_property, type(lru_cache(repr)))
WRAPPED = ("fget", "fset", "fdel", "__func__", "func", "__wrapped__")
SITES = {"site-packages", "dist-packages"}
UNTOLD = ("globals", "eval", "exec", "locals", "__import__")  # functions by which code may refer to anything
APART: list[types.ModuleType] = []  # modules of the user that were imported, and are not in `sys.modules`


class UnknownIdentityError(ValueError):
    """A thing of which nobody can tell whether it would give the same results again."""


def identity(thing: Any) -> str:
    """A hash of everything that may determine the results of a function, class or value.

    A part whose content nobody can tell is an UnknownIdentityError.
    """
    ((found, unknown),) = identities(thing)
    if unknown:
        raise UnknownIdentityError(unknown[0])
    return found


def identities(*things: Any) -> list[tuple[str, tuple[str, ...]]]:
    """The identity of each thing, and descriptions of its parts whose content nobody can tell, which are left out.

    All are of one moment. So the code of the user is looked through once, which takes most of the time in large programs.
    """
    walks = [_Walk([], by_text=False) for _ in things]
    seen = [walk.see_all(thing) for walk, thing in zip(walks, things, strict=True)]
    # The modules come after that, because it imports those that functions import.
    modules = {id(vars(each)): vars(each) for each in _users_modules()} if any(walk.users for walk in walks) else {}
    codes = _codes({*modules}.union(*(walk.spaces for walk in walks)))
    world = _Walk([], by_text=False)
    shared, found = world.look_through(modules, codes), list[tuple[str, tuple[str, ...]]]()
    for walk, own in zip(walks, seen, strict=True):
        users: Any = None
        if walk.users:  # besides its modules, the namespaces that only this thing leads to
            users = shared, walk.look_through({key: walk.spaces[key] for key in {*walk.spaces} - {*modules}}, codes)
            walk.versions |= world.versions
            walk.package |= world.package
            walk.unknown = [*(walk.unknown or ()), *(world.unknown or ())]
        about = own, users, sorted(walk.versions), package_code(*walk.package)
        found.append((_hash(about), tuple(walk.unknown or ())))
    return found


def text_identity(thing: Any, *, unknown: list[str] | None = None) -> str:
    """A hash of the text of a function, and of the values and functions that it refers to by name.

    It is for files that users keep: it is the same in another program, and with other versions of Python and of this package.
    """
    return _hash(_Walk(unknown, by_text=True).see_all(thing))


def _hash(seen: Any) -> str:
    return hashlib.sha256(repr(seen).encode("utf-8", "backslashreplace")).hexdigest()


# --- What is the user's ---------------------------------------------------------------------------


def is_installed(thing: Any) -> bool:
    """Whether a module, function or class is of this package, of Python or of an installed package, and not code of the user.

    A function or class that no module has under its name was made when code ran. It may hold anything, and is never installed.
    Nor is a module that is not imported under its name: a file of the user may have the name of a module of Python.
    """
    thing = thing.py_func if isinstance(thing, Dispatcher) else thing
    if isinstance(thing, types.ModuleType):
        return sys.modules.get(thing.__name__) is thing and _owner(thing.__name__) is not None
    if not isinstance(thing, type | types.FunctionType | types.BuiltinFunctionType):
        return False
    name = thing.__module__ or "builtins"
    found = _look_up(name, thing.__qualname__)
    return (found.py_func if isinstance(found, Dispatcher) else found) is thing and _owner(name) is not None


def _look_up(module: str, name: str) -> Any:
    """The object that a module has under a dotted name, or None."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _owner(name: str) -> str | None:
    """Who owns a module: "trueonline", "Python", the name and version of an installed distribution, or None if the user does."""
    file = getattr(sys.modules.get(name), "__file__", None)
    top = name.partition(".")[0]
    if file is None:
        return "Python" if top in sys.stdlib_module_names and top != "__main__" else None if top == name else _owner(top)
    return _file_owner(file)


def _home(thing: Any) -> str:
    """The name of the module that a thing or its class is from. Of a module of this package, only the parts count that are used."""
    if isinstance(thing, types.ModuleType):
        return thing.__name__ if thing.__name__.partition(".")[0] != "trueonline" else "builtins"
    thing = thing.py_func if isinstance(thing, Dispatcher) else thing
    return str((thing if isinstance(thing, type | types.FunctionType) else type(thing)).__module__)


@cache
def _file_owner(file: str) -> str | None:
    folder, name = os.path.split(file)
    inside = _real(folder) + os.sep
    if inside.startswith(_real(PACKAGE) + os.sep):
        return "trueonline"
    for place in (inside + name, *map(str, (Path(inside), *Path(inside).parents))):
        if (found := _installed_files().get(os.path.normcase(place))) is not None:
            return found
    known = tuple(_real(sysconfig.get_path(each)) + os.sep for each in ("stdlib", "scripts"))
    return "Python" if inside.startswith(known) and not SITES & set(Path(inside).parts) else None


_real = cache(os.path.realpath)


@cache
def _installed_files() -> dict[str, str]:
    """The files of installed distributions, with names and versions. One that was installed from a folder here is the user's.

    The lists of files are read as text, which takes a tenth of the time of `Distribution.files`. Distributions of a system may
    have no list. Then whole packages are theirs. (Distributions of Conda name a folder of the machine that made them.)
    """
    from importlib.metadata import distributions  # late, because few programs come here
    from urllib.request import url2pathname

    found: dict[str, str] = {}
    for each in distributions():
        root, record = os.path.realpath(str(each.locate_file(""))), each.read_text("RECORD")
        known = re.search(r"^([^/\n]+)\.dist-info/", record or "", re.MULTILINE)  # faster than to parse the metadata
        folder = re.search(r'"url": *"file://([^"]*)"', each.read_text("direct_url.json") or "")
        names = re.findall(r"^[^,\n]+\.(?:py|so|pyd)(?=,)", record or "", re.MULTILINE)
        if record is None and Path(root).name in SITES:
            names = [f"{top}{end}" for top in (each.read_text("top_level.txt") or "").split() for end in ("", ".py")]
        if folder is None or not Path(url2pathname(folder[1])).is_dir():
            label = known[1] if known else f"{each.name}-{each.version}"
            found.update(dict.fromkeys((os.path.normcase(f"{root}/{name}") for name in names), label))
    return found


# --- All code of the user -------------------------------------------------------------------------


def _users_modules() -> list[types.ModuleType]:
    loaded = [(name, each) for name, each in list(sys.modules.items()) if isinstance(each, types.ModuleType)]
    return [*APART, *(each for name, each in loaded if _owner(name) is None)]


def _codes(spaces: set[int]) -> dict[int, set[str]]:
    """Hashes of the code of all functions that are alive in some namespaces, which are given by their ids."""
    found: dict[int, set[str]] = {space: set() for space in spaces}
    for each in _functions() if spaces else ():
        if id(each.__globals__) in found:
            found[id(each.__globals__)].update(map(_code_hash, _nested(each.__code__)))
    return found


def _functions() -> list[types.FunctionType]:
    """All functions that are alive. (`gc.get_referrers` would compare all that is referred to with each of the namespaces.)"""
    frozen = gc.get_freeze_count() > 0
    if frozen:  # the program has called `gc.freeze`, which hides objects
        gc.unfreeze()
    try:
        return [each for each in gc.get_objects() if type(each) is types.FunctionType]
    finally:
        if frozen:
            gc.freeze()


@lru_cache(maxsize=100_000)  # a program asks again and again, and most of its code stays
def _code_hash(code: types.CodeType) -> str:
    return _hash(_code(code))


def _file_meaning(file: str) -> str:
    if file.endswith(tuple(EXTENSION_SUFFIXES)):
        raise UnknownIdentityError(f"the module {Path(file).name}, which is not Python code that can be read")
    try:
        return meaning(Path(file).read_bytes())
    except OSError as error:
        raise UnknownIdentityError(f"the module {file}, which cannot be read ({error.strerror})") from None


# --- The walk -------------------------------------------------------------------------------------


class _Walk:
    """Walks through a thing and what it refers to. Things that were seen before, or are being seen, get a number."""

    def __init__(self, unknown: list[str] | None, by_text: bool) -> None:
        self.unknown, self._by_text = unknown, by_text
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no other thing gets the same id
        self._names: set[str] = set()  # in all code that was seen
        self._modules: dict[str, types.ModuleType] = {}  # that were seen, of the user and of this package
        self.users = False  # whether code of the user was seen
        self.spaces: dict[int, dict[str, Any]] = {}  # the globals of its functions
        self.package: set[str] = set()  # modules of this package whose parts were seen
        self.versions: set[str] = set()  # of installed packages whose parts were seen

    def see_all(self, thing: Any) -> Any:
        """A thing, and of all modules that it leads to the variables whose names are in its code."""
        done: set[tuple[str, str]] = set()
        seen = [self.see(thing)]
        while todo := sorted({(at, name) for at in self._modules for name in self._names} - done):
            done.update(todo)
            for at, name in todo:
                value = None
                with suppress(Exception):  # what `__getattr__` of a module raises
                    value = getattr(self._modules[at], name)
                seen.append((at, name, self.see(value)))
        return seen

    def see(self, thing: Any) -> Any:
        """A plain value that changes when the thing does."""
        if isinstance(thing, PLAIN) and type(thing).__module__ == "builtins":
            return type(thing).__name__, repr(thing)
        if id(thing) in self._numbers:
            return "seen before", self._numbers[id(thing)]
        self._numbers[id(thing)] = len(self._numbers)
        self._alive.append(thing)
        return self.guarded(partial(self._see, thing))

    def guarded(self, look: Any) -> Any:
        """What `look` returns. If nobody can tell, that is noted, or an error."""
        try:
            return look()
        except UnknownIdentityError as error:
            if self.unknown is None:
                raise
            self.unknown.append(str(error))
            return "unknown"

    def look_through(self, spaces: dict[int, dict[str, Any]], codes: dict[int, set[str]]) -> Any:
        """The files behind namespaces of the user, and the code that is alive in them. Notes who owns what they name."""
        for name in {_home(value) for space in spaces.values() for value in list(space.values())}:
            self.note_owner(name)
        files = {str(space["__file__"]) for space in spaces.values() if space.get("__file__")}
        texts = {self.guarded(partial(_file_meaning, file)) for file in files if _file_owner(file) is None}
        return sorted(texts), sorted(set[str]().union(*(codes[key] for key in spaces)))

    def note_owner(self, name: str) -> None:
        """Note the version of the installed package, or the module of this package, that has this name."""
        owner = _owner(name)
        if owner == "trueonline":
            self.package.add(name)
        elif owner not in (None, "Python"):
            self.versions.add(owner)

    def _see(self, thing: Any) -> Any:
        if isinstance(thing, types.ModuleType):
            if not is_installed(thing) or thing.__name__.partition(".")[0] == "trueonline":
                self._modules[thing.__name__] = thing
            self.note_owner(_home(thing))
            return "module", thing.__name__
        if is_installed(thing):
            self.note_owner(_home(thing))
            return "installed", thing.__module__, thing.__qualname__, self._row(thing)
        if isinstance(thing, types.FunctionType):
            return self._function(thing)
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, Dispatcher):
            options = (sorted(thing.targetoptions.items(), key=repr), thing.locals)
            fixed = () if getattr(thing, "_can_compile", True) else tuple(thing.overloads)  # types that the user named
            return "compiled", repr((options, fixed)), self.see(thing.py_func)
        if isinstance(thing, WRAPPERS):
            return type(thing).__name__, [self.see(getattr(thing, name, None)) for name in WRAPPED]
        return self._value(thing)

    def _row(self, thing: Any) -> Any:
        """What the catalogue says of a class of learners, whose rule is imported when it is needed."""
        row: Any = getattr(thing, "method", None)
        if self._by_text or not isinstance(row, catalog.Method) or row.rule is None:
            return None
        parts = (row.resolve("rule"), row.resolve("varying"), *(getattr(row, name) for name in ROW))
        return [self.see(part) for part in parts]

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
        return self._object(thing)

    def _function(self, function: Any) -> Any:
        self.users, self.spaces[id(function.__globals__)] = True, function.__globals__
        used: set[str] = set()
        for code in _nested(function.__code__):
            words = (each for each in code.co_consts if isinstance(each, str) and each.isidentifier())
            self._names.update(code.co_names, words)  # words may be arguments of `getattr`
            used.update(each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
            if "import_module" in code.co_names:
                used.add("__import__")
        untold = [name for name in UNTOLD if name in used and name not in function.__globals__]
        if untold:
            raise UnknownIdentityError(f"{untold[0]}() in {function.__name__}, which may refer to anything")
        refers = {name: function.__globals__[name] for name in used if name in function.__globals__}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if cell != types.CellType():  # it is assigned
                refers[name] = cell.cell_contents
        text = _text(function) if self._by_text else None
        seen = (
            [_code(code) for code in _nested(function.__code__)] if text is None else text,
            *(self.see(part) for part in (function.__defaults__, function.__kwdefaults__, vars(function))),
            [(name, self.see(refers[name])) for name in sorted(refers)],
            [self.see(module) for module in _imports(function)],
        )
        return "function", function.__name__, seen

    def _class(self, kind: type) -> Any:
        self.users = True
        # Other names with underscores, such as `__doc__`, say nothing of results, or are made from what does.
        own = [(name, self.see(value)) for name, value in sorted(vars(kind).items(), key=itemgetter(0))
               if name != "_abc_impl" and (name[:2] != "__" or callable(value))]  # fmt: skip
        above = [self.see(base) for base in (*kind.__bases__, type(kind))]
        return "class", kind.__qualname__, own, above, self._row(kind)

    def _object(self, thing: Any) -> Any:
        """An object by what a pickle of it would hold, and by its attributes. Nothing is pickled."""
        reduce = copyreg.dispatch_table.get(type(thing))
        try:
            parts: Any = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
        except Exception as error:
            raise UnknownIdentityError(f"{_named(thing)} ({error})") from None
        if isinstance(parts, str):  # the name of the only one of its kind, such as a function of NumPy
            module = pickle.whichmodule(thing, parts)  # type: ignore[attr-defined]
            if _owner(module) is None or _look_up(module, parts) is not thing:
                raise UnknownIdentityError(_named(thing))
            return module, parts
        make, arguments, state, items, pairs = (*parts, None, None, None)[:5]
        # What a class of the user leaves out of a pickle may matter.
        own = None if is_installed(type(thing)) else getattr(thing, "__dict__", None)
        return [self.see(part) for part in (make, arguments, state, list(items or ()), list(pairs or ()), own)]


# --- Code -----------------------------------------------------------------------------------------


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of functions within it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _nested(part)


def _code(code: types.CodeType) -> Any:
    """The code of a function, without places in files."""
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return code.co_code, code.co_exceptiontable, _constant(code.co_consts), names, counts


def _constant(value: Any) -> Any:
    """A constant in code. The order of a set differs from process to process."""
    if isinstance(value, frozenset):
        return "set", sorted(map(repr, map(_constant, value)))
    if isinstance(value, types.CodeType):
        return "code", value.co_qualname
    return [_constant(part) for part in value] if isinstance(value, tuple) else repr(value)


def _imports(function: Any) -> Iterator[types.ModuleType]:
    """Import the modules that a function imports when it runs."""
    for code in _nested(function.__code__):
        constants: list[Any] = []
        for each in dis.get_instructions(code):
            if each.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
                constants.append(each.argval)
            elif each.opname == "IMPORT_NAME":
                level, names = constants[-2:]
                try:
                    yield __import__(each.argval, function.__globals__, None, names or (), level)
                except ImportError:
                    name = "." * level + each.argval
                    raise UnknownIdentityError(f"the module {name}, which cannot be imported") from None


def _text(function: Any) -> str | None:
    try:
        return meaning(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):  # made by exec, or typed at a prompt
        return None


def _named(thing: Any) -> str:
    return f"{type(thing).__qualname__} {getattr(thing, '__name__', None) or repr(thing):.80}"
