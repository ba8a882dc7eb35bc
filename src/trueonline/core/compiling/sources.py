"""The meaning of source files: their syntax trees, without what cannot change a result.

Results of this package's own code are named by the meaning of the files behind them. These are the files that define the code,
with all files of this package that they import, also inside functions.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

PACKAGE = Path(__file__).parents[2]
_PARSING = Lock()
_IGNORED = (
    "ctx",
    "kind",
    "type_comment",
    "type_params",
)  # fields that change nothing, or that some versions of Python lack
# Rows of the catalogue count one by one, where a method has one. So a new method changes no name.
_LEFT_OUT = ("trueonline.catalog",)


def parsed(text: str | bytes, mode: str = "exec") -> Any:
    """The syntax tree of a text.

    One thread at a time: Python counts the depth of trees for all threads together, and a finalizer may let another thread in.
    """
    with _PARSING:
        return ast.parse(text, mode=mode)


@cache
def meaning(text: str | bytes) -> str:
    """A hash of a Python file that no comment changes. A text that Python cannot parse counts by its characters.

    The hash is the same with every version of Python.

    >>> meaning("x = 1  # one") == meaning("x = 1") != meaning("x = 2")
    True
    """
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError):
        return hashlib.sha256(repr(text).encode()).hexdigest()
    return _Tree(tree, ours=False).digest


class _Tree:
    """What a syntax tree says. In files of this package (`ours`) docstrings and annotations say nothing.

    They count in other files, where a decorator may read them.
    """

    def __init__(self, tree: ast.Module, ours: bool) -> None:
        self._ours, self._ignored = ours, (*_IGNORED, "annotation", "returns") if ours else _IGNORED
        self._said: list[str] = []
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self._say(tree)
        self.digest = hashlib.sha256(" ".join(self._said).encode("utf-8", "backslashreplace")).hexdigest()

    def _say(self, node: Any) -> None:  # called for each node of many files, so it is written to be fast
        say, kind = self._said.append, node.__class__
        say(kind.__name__)
        if kind is ast.Import or kind is ast.ImportFrom:
            self.imports.append(node)
        for name in kind._fields:
            if name in self._ignored:
                continue
            part = getattr(node, name, None)
            if part.__class__ is list:
                say("[")
                for each in part:
                    if not isinstance(each, ast.AST):
                        say(repr(each))
                    elif not (self._ours and each.__class__ is ast.Expr and each.value.__class__ is ast.Constant):
                        self._say(each)
                say("]")
            elif isinstance(part, ast.AST):
                self._say(part)
            else:
                say(repr(part))


def package_code(*modules: str) -> str:
    """A hash of the meaning of these modules of this package, and of all that they import of it.

    >>> package_code("trueonline.problems.finite_mrp") != package_code("trueonline.problems.chain")
    True
    """
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and name not in _LEFT_OUT:
            found[name], imports = _module(name)
            waiting += imports
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


@cache
def _module(name: str) -> tuple[str, tuple[str, ...]]:
    """The meaning of a module of this package, and the modules of this package that it imports.

    A stub beside the module has the names that it imports late.
    """
    tree, stub = _Tree(parsed(_file(name).read_bytes()), ours=True), _file(name).with_suffix(".pyi")
    late = _Tree(parsed(stub.read_bytes()), ours=True).imports if stub.exists() else []
    imports: set[str] = set()
    for node in (*tree.imports, *late):
        if isinstance(node, ast.Import):
            imports.update(each.name for each in node.names)
        elif (node.module or "").partition(".")[0] == "trueonline":
            inner = [f"{node.module}.{each.name}" for each in node.names]
            imports.update(each if _file(each).exists() else str(node.module) for each in inner)
    return tree.digest, tuple(each for each in imports if each.partition(".")[0] == "trueonline")


@cache
def _file(module: str) -> Path:
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
