"""What is imported when it is asked for: public names, and packages that only parts of this package need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any


class MissingPackageError(ImportError, ValueError):
    """A package is not installed. The message says how to install it."""


def optional(purpose: str, *modules: str, extra: str) -> Any:
    """Import modules, and return the first.

    Parameters
    ----------
    purpose : str
        What the modules are for, with a verb, such as "MQTT needs paho-mqtt". The message of the error begins with it.
    *modules : str
        The names of the modules.
    extra : str
        The extra of this package that brings them.

    Raises
    ------
    MissingPackageError
        If a module cannot be imported.
    """
    try:
        first, *_ = [import_module(name) for name in modules]
    except (ImportError, RuntimeError) as error:  # pylsl raises a RuntimeError without its C library
        reason = "" if isinstance(error, ModuleNotFoundError) else f" ({str(error)[:200]})"
        raise MissingPackageError(f"{purpose}: pip install 'trueonline[{extra}]'{reason}") from None
    return first


def version_of(package: str) -> str:
    """The version of a package that is installed; an empty text if it is not, such as where CUDA comes by other means."""
    with suppress(PackageNotFoundError):
        return version(package)
    return ""


def late_names(package: str, homes: Mapping[str, str], modules: Sequence[str] = ()) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of a package whose names are imported when they are asked for.

    Parameters
    ----------
    package : str
        The name of the package.
    homes : mapping
        The names, each with the module that defines it, without `trueonline.`.
    modules : sequence of str, optional
        Modules of the package.

    Returns
    -------
    tuple of callable
        The two functions.
    """

    def get(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"{package} has no {name!r}; it has {', '.join((*homes, *modules))}")
        value = getattr(import_module(f"trueonline.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(sys.modules[package].__all__)
