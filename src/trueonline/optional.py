"""Packages that only parts of this package need. A missing one gets an error that names the extra to install."""

from __future__ import annotations

from importlib import import_module
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
