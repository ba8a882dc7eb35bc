"""Numba as this package uses it: small kernels that read like algebra and compile into single loops.

- `kernel` marks a piece that is always inlined into its caller: a memory operation or a method.
- `operation` gives a stub its loops, chosen by the type of the features.
- `specialise` turns a template plus a method into a compiled entry point, cached on disk.

Numba's own cache does not notice an edit in a file other than the entry point's, so the cache lives in a folder named by
the hash of every source that can end up inside a kernel.
"""

from __future__ import annotations

import dis
import hashlib
import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, cast

import numba
from numba.extending import overload

# Dense loops may sum in any order and fuse multiply with add. Never `nnan` or `ninf`: divergence must stay visible.
REASSOCIATE = {"reassoc", "contract", "nsz"}

# `forceinline` spares reference counting between pieces; the NumPy error model spares a branch per division.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_PIECE = {**_OPTIONS, "forceinline": True}

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
    return numba.njit(function, **_PIECE)


def operation(stub: Callable, *, reassociate: bool = False) -> Callable:
    """Register loops for `stub`: the decorated function gets the argument types and returns an implementation."""
    options = {**_PIECE, "fastmath": REASSOCIATE} if reassociate else _PIECE
    return overload(stub, jit_options=cast(Any, options))


def outlined(function: Callable, *, reassociate: bool = False) -> Callable:
    """Compile a rare piece on its own, so that the hot loop around its call stays small."""
    return numba.njit(function, fastmath=REASSOCIATE if reassociate else False, **_OPTIONS)


def specialise(template: Callable, name: str, *, cached: bool = True, **names: Any) -> Any:
    """Compile `template` with `names` (such as `method=true_online_td`) as its global names.

    A global, unlike an argument or a closure cell, lets Numba inline the method *and* keep the result on disk.
    """
    code = template.__code__
    function = FunctionType(code, {**template.__globals__, **names}, name)
    function.__qualname__ = f"{template.__name__}_{name}"
    entry: Any = numba.njit(function, **_OPTIONS)
    entry._can_compile = False  # `disable_compile` would insist on a first signature
    _COMPILERS[entry] = numba.njit(function, **_OPTIONS)
    if cached:
        with _cache_in(cache_folder()):
            _COMPILERS[entry].enable_caching()
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


def reached(function: Any) -> dict[str, Any]:
    """What a function refers to by name, but for modules: what it closes over, and global names.

    Numba takes all of it for constants, so it belongs to a rule as much as its text does.
    """
    names = set(_names(function.__code__))
    found = {name: value for name, value in function.__globals__.items() if name in names}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        found[name] = cell.cell_contents
    return {name: found[name] for name in sorted(found) if not isinstance(found[name], ModuleType)}


def _names(code: CodeType) -> Iterator[str]:
    """The global names in a function's code, without attributes."""
    yield from (each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL")
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


def is_installed(thing: Any) -> bool:
    """Whether a function or class is of this package, of Python or of an installed package, and not code of the user."""
    thing = getattr(thing, "py_func", thing)
    if not isinstance(thing, type | FunctionType | BuiltinFunctionType):
        return False
    module = thing.__module__ or "builtins"
    if module.partition(".")[0] in ("trueonline", *sys.builtin_module_names):
        return True
    paths = sysconfig.get_paths()
    installed = tuple(paths[kind] + os.sep for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
    return (getattr(sys.modules.get(module), "__file__", None) or "").startswith(installed)


def cache_name() -> str:
    """The hash of all sources of kernels: each version has another one."""
    return os.path.basename(cache_folder())


def kernel_sources() -> list[Path]:
    """Every source that can end up inside a kernel: `core`, `methods`, and all files that import `core` or Numba.

    >>> {path.name for path in kernel_sources()} >= {"upkeep.py", "true_online_td.py"}
    True
    """
    package = Path(__file__).parents[1]
    own = (package / "core", package / "methods")
    means = re.compile(r"^\s*(from|import) (numba|trueonline\.core)\b", re.MULTILINE)
    return sorted(
        path
        for path in package.rglob("*.py")
        if any(folder in path.parents for folder in own) or means.search(path.read_text("utf-8"))
    )


@cache
def cache_folder() -> str:
    """The folder for compiled kernels: under `NUMBA_CACHE_DIR`, the user's cache folder, or the temporary one."""
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in kernel_sources())).hexdigest()[:16]
    bases = (os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME"), str(Path.home() / ".cache"))
    for base in filter(None, bases):
        folder = Path(base) / "trueonline" / digest
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return str(Path(tempfile.gettempdir()) / f"trueonline-{os.getuid()}" / digest)


@contextmanager
def _cache_in(folder: str) -> Iterator[None]:
    """Make Numba choose `folder` for what is decorated meanwhile, and leave its setting as it was."""
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, folder
    try:
        yield
    finally:
        config.CACHE_DIR = before
