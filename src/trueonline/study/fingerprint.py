"""The fingerprint of a method, which changes when the method does."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np

from trueonline.core.kernels import cache_name, is_installed, reached


def fingerprint(method: Any) -> Any:
    """A value that changes when a method does: the sources of all kernels, and for a user's method everything visible."""
    return cache_name(), None if method is None else _seen(method)


def _seen(thing: Any, within: tuple[Any, ...] = ()) -> Any:
    """A function by its text, its code and what it refers to, a class by its text and attributes, a plain value by itself.

    Anything else is represented by its type, because its repr would contain an address that differs between processes.
    """
    thing = getattr(thing, "py_func", thing)
    if any(thing is outer for outer in within):  # a class whose methods close over it
        return "itself"
    within = (*within, thing)
    if inspect.isfunction(thing):
        refers = {} if is_installed(thing) else reached(thing)
        closed = [(name, _named(part) if is_installed(part) else _seen(part, within)) for name, part in refers.items()]
        return thing.__qualname__, _text(thing), thing.__code__.co_code, _seen(thing.__defaults__, within), closed
    if inspect.isclass(thing):
        own = [
            (name, _seen(vars(thing)[name], within))
            for name in sorted(vars(thing))
            if name[:2] != "__" or name == "__init__"
        ]
        return (
            thing.__qualname__,
            _text(thing),
            own,
            [_seen(base, within) for base in thing.__bases__ if base is not object],
        )
    if isinstance(thing, property):
        return [_seen(part, within) for part in (thing.fget, thing.fset)]
    if isinstance(thing, staticmethod | classmethod):
        return _seen(thing.__func__, within)
    if isinstance(thing, tuple | list):
        return [_seen(part, within) for part in thing]
    if isinstance(thing, dict):
        return [(repr(key), _seen(part, within)) for key, part in thing.items()]
    if dataclasses.is_dataclass(thing):
        fields = [(field.name, _seen(getattr(thing, field.name), within)) for field in dataclasses.fields(thing)]
        return type(thing).__qualname__, fields
    if isinstance(thing, np.ndarray):
        return str(thing.dtype), thing.shape, thing.tobytes()
    return (
        thing
        if thing is None or isinstance(thing, bool | int | float | complex | str | bytes)
        else type(thing).__qualname__
    )


def _named(thing: Any) -> str:
    return getattr(thing, "__qualname__", type(thing).__qualname__)


def _text(thing: Any) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):  # made by exec, or typed at a prompt
        return ""
