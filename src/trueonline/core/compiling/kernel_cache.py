"""Compiled kernels on disk: one file for each kernel and types of arguments, in a folder that belongs to this user alone.

Loading machine code is running it. So a folder and its files are used only if nobody else can change them (`platforms.make_own`),
and a file only if its digest fits. If the cache is not writable, every process compiles again.

Numba's own cache does not notice an edit in a file other than the entry point's. Here a file is named by a hash of the text that
was compiled, with all its pieces (`compose.py`).
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.funcdesc import _dynamic_modname, _dynamic_module
from numba.core.serialize import dumps

from trueonline.platforms import make_own, read_own, user_number, write_own

DIGEST = 32  # bytes before the content of a file

# Numba keeps functions without a module in one of its own, which it cannot import when it loads their code.
sys.modules.setdefault(_dynamic_modname, _dynamic_module)


@cache
def cache_folder() -> Path | None:
    """The folder for compiled kernels: under `NUMBA_CACHE_DIR`, the user's cache folder, or the temporary one, or none."""
    for folder in _folders():
        with suppress(OSError, RuntimeError):  # on Windows there may be no home
            make_own(folder)
            return folder
    _warn_once("any folder", "there is none that can be written and that nobody else can change")
    return None


def _folders() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen).absolute() / "trueonline"
    usual = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if usual.is_absolute():  # the XDG specification says to ignore a relative path
        yield usual / "trueonline"
    with suppress(RuntimeError):  # there is no home
        yield Path.home() / ".cache" / "trueonline"
    with suppress(OSError):  # there is no folder for temporary files
        yield Path(tempfile.gettempdir()) / f"trueonline-{user_number()}"


class KernelCache(NullCache):
    """The cache of `name`: Numba looks for compiled code here before it compiles, and stores compiled code here afterwards.

    `meaning` is everything that determines the code. If it is None, nothing is kept.
    """

    def __init__(self, name: str, meaning: str | None) -> None:
        self._name, self._meaning = name, meaning

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for these types of arguments, or None."""
        target_context.refresh()
        content = None if self._meaning is None else read(self._file(sig, target_context.codegen()))
        try:
            return None if content is None else CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # such as that a rule came by value from another process, whose modules are not here
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write compiled code."""
        if self._meaning is None or data.lifted or data.library.has_dynamic_globals:
            return  # addresses are those of this process
        write(self._file(sig, data.codegen), dumps(data._reduce()))

    def _file(self, sig: Any, codegen: Any) -> str:
        """The file for these types."""
        versions = (numba.__version__, sys.implementation.cache_tag)
        about = (self._meaning, str(sig), codegen.magic_tuple(), versions)
        return f"{self._name}-{hashlib.sha256(repr(about).encode()).hexdigest()[:24]}"


def write(name: str, content: bytes) -> None:
    """Keep a file in the cache. If that fails, one warning says so."""
    if (folder := cache_folder()) is not None:
        try:
            write_own(folder, name, hashlib.sha256(content).digest() + content)
        except OSError as error:
            _warn_once(str(folder), error.strerror or str(error))


def read(name: str) -> bytes | None:
    """The content of a file in the cache. None if there is none, or if it is damaged."""
    if (folder := cache_folder()) is not None:
        with suppress(OSError):
            content = read_own(folder, name)
            if hashlib.sha256(content[DIGEST:]).digest() == content[:DIGEST]:
                return content[DIGEST:]
    return None


@cache
def _warn_once(folder: str, why: str) -> None:
    warnings.warn(
        f"compiled code cannot be kept in {folder} ({why}), so every start compiles it again; make room there, or name another "
        "folder in the environment variable NUMBA_CACHE_DIR",
        RuntimeWarning,
        stacklevel=2,
    )
