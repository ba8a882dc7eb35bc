"""Python files of the user: rules, classes of learners, forward views. Every command loads them here."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from trueonline.core.compiling.identity import APART

FORM = '"path/to/file.py:name"'
_LOADED: dict[str, ModuleType] = {}


def is_reference(text: str) -> bool:
    """Whether a text means a name in a file, and not a method of this package."""
    return ".py" in text or ":" in text


def load_name(reference: str, folder: Path) -> tuple[str, Any]:
    """Load what a Python file calls by a name.

    Parameters
    ----------
    reference : str
        "path/to/file.py:name". A relative path starts from `folder`.
    folder : Path
        The folder of the file that has the reference.

    Returns
    -------
    name : str
        The name.
    thing : object
        What the file calls by that name. The caller checks it.

    Raises
    ------
    ValueError
        If there is no such file or name.
    """
    match = re.fullmatch(r"(.+\.py):(\w+)", reference)
    if match is None:
        raise ValueError(f"a method of your own must be {FORM}, got {reference!r}")
    path, name = folder / match[1], match[2]
    module = load(path)
    if not hasattr(module, name):
        functions = {each: getattr(value, "py_func", None) for each, value in vars(module).items()}
        rules = [each for each, function in functions.items() if function and function.__module__ == module.__name__]
        known = f"; its rules are {', '.join(rules)}" if rules else ""
        raise ValueError(f"{path} has no {name!r}{known}")
    return name, getattr(module, name)


def load(path: Path) -> ModuleType:
    """The module of a file, run once for each content.

    While it runs, it may import its neighbours, the Python files of its own folder, as a script may. It and its neighbours are in
    `sys.modules` only until then. So the workers of a cluster, which cannot import them, get their classes by value, and files
    of the same name in other folders are not confused.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    ValueError
        If there is no such file, or if it cannot be run.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    path = path.resolve()
    name = f"trueonline_file_{path.stem}_{hashlib.sha256(str(path).encode() + path.read_bytes()).hexdigest()[:12]}"
    if name in _LOADED:
        return _LOADED[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        with _neighbours(path.parent):
            sys.modules[name] = module
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    _LOADED[name] = module
    return module


@contextmanager
def _neighbours(folder: Path) -> Iterator[None]:
    """Let modules of a folder be imported, and forget them afterwards."""
    before = set(sys.modules)
    importlib.invalidate_caches()  # the folder may have been written a moment ago
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        tops = {name for name in set(sys.modules) - before if "." not in name and _lies_in(folder, sys.modules[name])}
        for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
            APART.append(sys.modules.pop(name))
        with suppress(ValueError):  # the file has removed it
            sys.path.remove(str(folder))


def _lies_in(folder: Path, module: ModuleType) -> bool:
    """Whether a module or package is in this folder itself, not in a folder below it, where installed packages may be."""
    place = next(iter(getattr(module, "__path__", ())), None) or getattr(module, "__file__", None)
    return place is not None and Path(place).parent == folder
