"""Compiled kernels on disk: one file for each kernel and types of arguments, in a folder that belongs to this user alone.

Loading machine code is running it. So a folder is used only if this user owns it and nobody else may write to it, and a file only
if its digest fits. A cache that cannot be written is done without.

Numba's own cache does not notice an edit in a file other than the entry point's, so the folder is named by the hash of every source
that can end up inside a kernel.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.funcdesc import _dynamic_modname, _dynamic_module
from numba.core.serialize import dumps

from trueonline.core.pieces import calls_by_address
from trueonline.platforms import is_guarded, is_own, rename_over, user_number

DIGEST = 32  # bytes before the content of a file

# Numba keeps functions without a module in one of its own, which it cannot import when it loads their code.
sys.modules.setdefault(_dynamic_modname, _dynamic_module)


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
def cache_name() -> str:
    """The hash of all sources of kernels: each version has another one."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in kernel_sources())).hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """The folder for compiled kernels: under `NUMBA_CACHE_DIR`, the user's cache folder, or the temporary one, or none."""
    for parent in _parents():
        with suppress(OSError):
            folder = parent / cache_name()
            if is_guarded(parent.parent) and is_own(parent, close=True) and is_own(folder) and os.access(folder, os.W_OK):
                return folder
    with suppress(OSError):
        folder = Path(tempfile.mkdtemp(prefix="trueonline-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    _warn_once("any folder", "none can be written")
    return None


def _parents() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / "trueonline"
    usual = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if usual.is_absolute():  # the XDG specification says to ignore a relative path
        yield usual / "trueonline"
    with suppress(RuntimeError):  # there is no home
        yield Path.home() / ".cache" / "trueonline"
    with suppress(OSError):  # there is no folder for temporary files
        yield Path(tempfile.gettempdir()) / f"trueonline-{user_number()}"


class KernelCache(NullCache):
    """The cache of `name`: Numba looks for compiled code here before it compiles, and stores compiled code here afterwards.

    `variant` tells apart kernels of one name. So does `key` for code outside this package. It is called before code is compiled. If
    it returns None, nothing is kept.
    """

    def __init__(self, name: str, variant: str, key: Callable[[], str | None]) -> None:
        self._name, self._variant, self._make_key = name, variant, key
        self._key: str | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for these types of arguments, or None."""
        target_context.refresh()
        self._key = self._make_key()
        path = self._path(sig, target_context.codegen())
        content = None if path is None else read(path)
        try:
            return None if content is None else CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # such as that a rule came by value from another process, whose modules are not here
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write compiled code."""
        path = self._path(sig, data.codegen)
        if path is None or data.lifted or data.library.has_dynamic_globals or calls_by_address(data.library):
            return  # addresses are those of this process
        write(path, dumps(data._reduce()))

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        """The file for these types. None if nothing is kept."""
        folder = cache_folder()
        if self._key is None or folder is None:
            return None
        versions = (numba.__version__, sys.implementation.cache_tag)
        about = (self._name, self._variant, self._key, str(sig), codegen.magic_tuple(), versions)
        return folder / f"{self._name}-{hashlib.sha256(repr(about).encode()).hexdigest()[:24]}"


def write(path: Path, content: bytes) -> None:
    """Write a file beside its place and rename it. If that fails, one warning says so."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(hashlib.sha256(content).digest() + content)
        rename_over(beside, path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        _warn_once(str(path.parent), error.strerror or str(error))


def read(path: Path) -> bytes | None:
    """The content of a file. None if there is none, or if it is damaged, and then the file is removed."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content[DIGEST:]).digest() == content[:DIGEST]:
        return content[DIGEST:]
    with suppress(OSError):
        path.unlink()
    return None


@cache
def _warn_once(folder: str, why: str) -> None:
    warnings.warn(
        f"compiled code cannot be kept in {folder} ({why}), so every start compiles it again; make room there, or name another "
        "folder in the environment variable NUMBA_CACHE_DIR",
        RuntimeWarning,
        stacklevel=2,
    )
