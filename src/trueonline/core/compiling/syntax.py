"""Syntax trees of functions: finding them, and what the composer wants to know about them (`compose.py`)."""

from __future__ import annotations
import __future__

import ast
import hashlib
import inspect
import linecache
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple, cast

from trueonline.core.compiling.sources import PACKAGE, parsed

FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
PURE = {"pointer", "int64", "either"}  # functions that do nothing but return a value


class NotInlinableError(Exception):
    """A piece whose text is not known, or that cannot be put into its caller."""


def without_idle(body: list[ast.stmt]) -> list[ast.stmt]:
    """The same statements without those that give a value to a name that nothing reads."""
    while True:
        nodes = [each for node in body for each in ast.walk(node)]
        read = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        given = [
            (each.targets[0].id, each.value)
            for each in nodes
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        ]
        numbers = {name for name, _ in given} - {name for name, value in given if not isinstance(value, ast.Constant)}
        read |= {  # an array would change in place
            each.target.id
            for each in nodes
            if isinstance(each, ast.AugAssign)
            and isinstance(each.target, ast.Name)
            and (not is_pure(each.value) or each.target.id not in numbers)
        }
        idle = _Idle(read)
        body = [kept for node in body if (kept := idle.visit(node)) is not None]
        if not idle.found:
            return body


def is_pure(node: ast.expr) -> bool:
    """Whether an expression has no effect but its value."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return all(getattr(each, "id", "") in PURE for each in calls)


def is_idle(node: ast.stmt) -> bool:
    """Whether a statement does nothing but give a value to a name."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and is_pure(node.value)


class _Idle(ast.NodeTransformer):
    """Takes out assignments to names that nothing reads."""

    def __init__(self, read: set[str]) -> None:
        self._read, self.found = read, False

    def visit_Assign(self, node: Any) -> ast.stmt | None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not is_pure(node.value) or any(not isinstance(each, ast.Name) or each.id in self._read for each in targets):
            return node
        self.found = True
        return None

    visit_AugAssign = visit_Assign  # noqa: N815

    def visit_If(self, node: ast.If) -> ast.stmt:
        node.body = [kept for each in node.body if (kept := self.visit(each)) is not None] or [ast.Pass()]
        node.orelse = [kept for each in node.orelse if (kept := self.visit(each)) is not None]
        return node

    visit_For = visit_While = cast(Any, visit_If)  # noqa: N815


def steady(node: ast.expr) -> bool:
    """Whether an expression has the same value wherever it stands in a function: a name, a number, a part of a named tuple."""
    if isinstance(node, ast.Attribute):
        return steady(node.value)
    return isinstance(node, ast.Name | ast.Constant)


def assigned(nodes: list[ast.stmt]) -> list[str]:
    """The names that statements assign to, each as often as they do."""
    found = (each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name))
    return [each.id for each in found if isinstance(each.ctx, ast.Store)]


def read_early(nodes: list[ast.stmt], known: frozenset[str] = frozenset()) -> set[str]:
    """The names that are read where no assignment stands before, in the same block or around it: a loop may have left a value."""
    found: set[str] = set()
    for node in nodes:
        parts = dict(ast.iter_fields(node))
        blocks = [(name, parts.pop(name)) for name in ("body", "orelse") if name in parts]
        expressions = (one for part in parts.values() for one in (part if isinstance(part, list) else [part]))
        own = [
            each
            for one in expressions
            if isinstance(one, ast.AST)
            for each in ast.walk(one)
            if isinstance(each, ast.Name)
        ]
        found |= {each.id for each in own if isinstance(each.ctx, ast.Load)} - known
        stored = known | {each.id for each in own if isinstance(each.ctx, ast.Store)}
        for name, part in blocks:
            found |= read_early(part, stored if name == "body" else known)
        known = known if blocks else stored
    return found


class Piece(NamedTuple):
    """What the composer wants to know about a function that it inlines."""

    arguments: list[str]
    body: list[ast.stmt]  # with one exit
    changed: set[str]  # the names that it assigns to
    stores: Counter[str]  # how often the body does, and once more for a name that is read early


@lru_cache(maxsize=1024)
def piece(node: Any) -> Piece:
    """A function's syntax tree as a piece. NotInlinableError if it returns from a loop."""
    body = with_one_exit(node.body)
    return Piece([each.arg for each in node.args.args], body, set(assigned(node.body)), stores_of(body))


def stores_of(nodes: list[ast.stmt]) -> Counter[str]:
    """How often statements assign to each name. A name that is read early counts once more."""
    stores = Counter(assigned(nodes))
    stores.update(read_early(nodes) & stores.keys())
    return stores


def is_expression(function: Any, kinds: tuple[type, ...] = (ast.expr,)) -> bool:
    """Whether a function is a single expression, of one of these kinds."""
    body = _without_docstring(definition(function).body)
    return len(body) == 1 and isinstance(body[0], ast.Return) and isinstance(body[0].value, kinds)


def is_read_once(node: Any, name: str) -> bool:
    """Whether a function is a single expression that reads a name once."""
    body = _without_docstring(node.body)
    reads = sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))
    return len(body) == 1 and isinstance(body[0], ast.Return) and reads == 1


def with_one_exit(body: list[ast.stmt]) -> list[ast.stmt]:
    """The same statements, in which a return is the last statement of its branch."""
    for k, node in enumerate(body):
        if isinstance(node, ast.Return):
            return body[: k + 1]
        if any(isinstance(each, ast.Return) for each in ast.walk(node)):
            if not isinstance(node, ast.If):
                raise NotInlinableError("it returns from a loop")
            rest = body[k + 1 :]
            branches = with_one_exit([*node.body, *rest]), with_one_exit([*node.orelse, *rest])
            return [*body[:k], ast.If(node.test, *branches)]
    return [*body, ast.Return(None)]


def reduced(node: ast.BinOp) -> ast.expr:
    """The same number, where a whole number 0 or 1 makes a product or a sum simpler."""
    whole = [
        each.value if isinstance(each, ast.Constant) and type(each.value) is int else None
        for each in (node.left, node.right)
    ]
    if isinstance(node.op, ast.Mult) and 1 in whole:
        return node.right if whole[0] == 1 else node.left
    if isinstance(node.op, ast.Mult) and 0 in whole and not any(isinstance(each, ast.Call) for each in ast.walk(node)):
        return ast.Constant(0)
    if isinstance(node.op, ast.Add) and 0 in whole:
        return node.right if whole[0] == 0 else node.left
    return node


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    return [each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]


def names_in(nodes: Sequence[ast.AST]) -> set[str]:
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}


def is_stored(target: ast.expr, name: str) -> bool:
    """Whether a target stores to a name, rather than to an entry of it."""
    if isinstance(target, ast.Tuple):
        return any(is_stored(each, name) for each in target.elts)
    return isinstance(target, ast.Name) and target.id == name


class Renamed(ast.NodeTransformer):
    """Puts other names in place of those that are stored to."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(self._names.get(node.id, node.id), node.ctx) if isinstance(node.ctx, ast.Store) else node


def stored(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Store())
    if isinstance(node, ast.Tuple):
        return ast.Tuple([stored(each) for each in node.elts], ast.Store())
    if isinstance(node, ast.Subscript):
        return ast.Subscript(node.value, node.slice, ast.Store())
    raise NotInlinableError("an unusual target")


# --- Finding the text of a function ---------------------------------------------------------------


def made_of(text: str, name: str, names: dict[str, Any]) -> Any:
    """What is called `name` after this text has run. The text can be found again, by the composer and for tracebacks."""
    path = f"<{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec", dont_inherit=True), names)
    return names[name]


def definition(function: Any) -> Any:
    """The syntax tree of a function. NotInlinableError if it is not known, or if its file was edited after it was imported."""
    code = function.__code__
    if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or function.__defaults__:
        raise NotInlinableError("defaults")
    lines = tuple(linecache.getlines(code.co_filename))
    node = _lambda_of(code, _functions(lines)) if code.co_name == "<lambda>" else _functions(lines).get(_place(code))
    ours = code.co_filename.startswith(str(PACKAGE))  # its files do not change while they run
    if node is None or not (ours or code in _codes(code.co_filename, lines, code.co_flags & FUTURE)):
        raise NotInlinableError("its text is not known")
    return _as_function(node) if isinstance(node, ast.Lambda) else node


@lru_cache(maxsize=1024)
def _as_function(node: ast.Lambda) -> ast.FunctionDef:
    return ast.FunctionDef("lambda_", node.args, [ast.Return(node.body)], [])


@lru_cache(maxsize=256)
def _functions(lines: tuple[str, ...]) -> dict[Any, Any]:
    """The syntax trees of all functions of a file, by first line and name, and of its lambdas, by a number."""
    try:
        tree = parsed("".join(lines))
    except SyntaxError:
        return {}
    found: dict[Any, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found[min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.name] = node
        elif isinstance(node, ast.Lambda):
            found[len(found)] = node
    return found


@lru_cache(maxsize=256)
def _codes(path: str, lines: tuple[str, ...], flags: int) -> set[CodeType]:
    """The code of all functions of a file as it is now."""
    codes = [compile("".join(lines), path, "exec", flags=flags, dont_inherit=True)]
    for code in codes:  # the list grows
        codes += (each for each in code.co_consts if isinstance(each, CodeType))
    return set(codes)


def _place(code: CodeType) -> tuple[int, str]:
    return code.co_firstlineno, code.co_name


def _lambda_of(code: CodeType, functions: dict[Any, Any]) -> ast.Lambda | None:
    """The innermost lambda in which the first instruction of this code stands."""
    line, _, column, _ = list(code.co_positions())[1]  # the first has none
    around = [
        each
        for each in functions.values()
        if isinstance(each, ast.Lambda)
        and (each.body.lineno, each.body.col_offset) <= (line, column) < (each.body.end_lineno, each.body.end_col_offset)
    ]
    return around[-1] if around else None
