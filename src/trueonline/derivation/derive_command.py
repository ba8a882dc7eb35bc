"""The command `trueonline derive`: load a forward view from a file, derive its backward view, print it and write it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from trueonline.core.compiling.user_file import load
from trueonline.derivation import Derivation, ForwardViewError, derive
from trueonline.files import write_whole


def check_new(path: str | None) -> None:
    """ValueError where a method cannot be written to this path, before anything is derived."""
    if path is not None and (Path(path).exists() or not Path(path).parent.is_dir()):
        raise ValueError(f"--out must be a new file in an existing folder, got {path}")


def write(derivation: Derivation, path: str) -> None:
    """Write the method, as Python."""
    write_whole(path, lambda file: file.write(derivation.source().encode()))


def forward_view_of(module: ModuleType, name: str | None) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """The target U(k, h, …) of a module, and its step-size `step(k, …)` if it has one. `name` tells several targets apart."""
    functions = {
        key: value
        for key, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__ and not key.startswith("_")
    }
    targets = {
        key: value
        for key, value in functions.items()
        if not inspect.isclass(value) and [*inspect.signature(value).parameters][:2] == ["k", "h"]
    }
    if name is not None and name not in targets:
        raise ForwardViewError(f"there is no function {name}(k, h, …); there are {', '.join(targets) or 'none'}")
    if name is None and len(targets) != 1:
        if not targets:
            others = ", ".join(
                f"{key}({', '.join(inspect.signature(value).parameters)})" for key, value in functions.items()
            )
            raise ForwardViewError(
                f"there is no function whose first arguments are k and h; there are {others or 'none at all'}"
            )
        raise ForwardViewError(f"name one of the functions (k, h, …) with --function; there are {', '.join(targets)}")
    return targets[name or next(iter(targets))], functions.get("step")


def of_file(path: str, name: str | None) -> Derivation:
    """Derive the backward view of the forward view in a file, which may have a mapping `parameters`."""
    module = load(Path(path))
    return derive(*forward_view_of(module, name), getattr(module, "parameters", None))


def as_text(derivation: Derivation) -> str:
    """Both views, an equation a line."""
    parts = (("Forward view", derivation.forward()), ("Backward view", derivation.equations()))
    return "\n\n".join("\n".join([title, *(f"  {left} = {right}" for left, right in pairs)]) for title, pairs in parts)
