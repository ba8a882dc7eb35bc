"""Mistakes to plant in the source: `tools.mutants` plants them.

A mistake is one changed place: a sign, a bound, an index, a copy, swapped arguments, a check or a statement. A seed chooses places
from the syntax trees, evenly over folders and kinds of mistakes. The name of a mutant is the hash of its file, line and change, so
an edit elsewhere changes few choices. A line with the comment "# no mutant", and a reason, is left alone.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = ("sign", "bound", "index", "copy", "swap", "check", "drop")
SYMMETRIC = ("max", "min", "maximum", "minimum", "array_equal", "isinstance", "issubclass", "cast", "range", "zip")
TEXTS = ("__repr__", "__str__", "_repr_html_")
CHECK = re.compile("_?(check|refuse|require|validate|ensure)")


@dataclass(frozen=True)
class Mutant:
    """The bytes from `start` to `end` of a file of the package become `text`."""

    file: str
    folder: str
    kind: str
    line: int
    change: str
    start: int
    end: int
    text: str

    @property
    def name(self) -> str:
        return hashlib.sha256(f"{self.file}\0{self.change}".encode()).hexdigest()[:16]

    def planted(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants_of(file: str, source: bytes) -> Iterator[Mutant]:
    """All mutants of a file."""
    lines = source.splitlines(keepends=True)
    offsets = [sum(map(len, lines[:i])) for i in range(len(lines))]

    def span(node: Any) -> tuple[int, int]:
        return offsets[node.lineno - 1] + node.col_offset, offsets[node.end_lineno - 1] + node.end_col_offset

    def text(node: Any) -> str:
        return source[slice(*span(node))].decode()

    for node in changeable(ast.parse(source)):
        for kind, first, last, old, new in (mistake for make in MAKERS for mistake in make(node, text)):
            start, end = span(first)[0], span(last)[1]
            if old:
                start = source.index(old.encode(), span(first)[1])
                end = start + len(old)
            top, bottom = source.rfind(b"\n", 0, start) + 1, source.find(b"\n", end)
            before = source[top:bottom].decode().strip()
            after = (source[top:start] + new.encode() + source[end:bottom]).decode().strip()
            if "# no mutant" not in before:
                folder, line = file.partition("/")[0].removesuffix(".py"), source.count(b"\n", 0, start) + 1
                yield Mutant(file, folder, kind, line, f"{before} → {after}", start, end, new)


def changeable(node: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    """The nodes inside functions, without texts, errors, annotations, and code that only a type checker sees."""
    if isinstance(node, ast.Raise | ast.JoinedStr) or getattr(node, "name", "") in TEXTS:
        return
    if isinstance(node, ast.Call) and name_of(node.func) in ("warn", "cast"):
        return
    if inside:
        yield node
    parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        inside, parts = inside or not isinstance(node, ast.ClassDef), node.body
    elif isinstance(node, ast.If) and name_of(node.test) == "TYPE_CHECKING":
        parts = node.orelse
    elif isinstance(node, ast.AnnAssign):
        parts = filter(None, [node.value])
    for part in parts:
        yield from changeable(part, inside)


def name_of(node: ast.AST) -> str:
    """The last part of a dotted name."""
    return getattr(node, "attr", getattr(node, "id", ""))


# A mistake is its kind, two parts of a node, what is replaced between them (if empty, the parts are replaced), and the new text.
Mistakes = Iterator[tuple[str, Any, Any, str, str]]


def signs_and_bounds(node: Any, text: Callable[[Any], str]) -> Mistakes:
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub()) if not any(map(is_text, (node.left, node.right))):
            yield "sign", node.left, node.right, *("+-" if isinstance(node.op, ast.Add) else "-+")
        case ast.AugAssign(op=ast.Add() | ast.Sub()) if not is_text(node.value):
            yield "sign", node.target, node.value, *(("+=", "-=") if isinstance(node.op, ast.Add) else ("-=", "+="))
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            yield "sign", node, node, "", text(node.operand)
        case ast.Compare():  # of counts and ranges only, because two other floats are seldom equal
            sides = [node.left, *node.comparators]
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                sign = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}.get(type(op))
                if sign and (len(sides) > 2 or any(map(is_count, sides))):
                    yield "bound", left, right, sign, sign[0] if sign[1:] else f"{sign}="
        case ast.Slice():
            ends = ((node.lower, "+ 1"), (node.upper, "- 1"))
            yield from (("bound", part, part, "", f"{text(part)} {more}") for part, more in ends if part)
        case ast.Call(func=ast.Name(id="range"), args=[stop] | [_, stop, *_]):
            yield "bound", stop, stop, "", f"{text(stop)} - 1"


def indices_and_copies(node: Any, text: Callable[[Any], str]) -> Mistakes:
    match node:
        case ast.Subscript() if is_place(node.slice) and name_of(node.value)[:1] != name_of(node.value)[:1].upper():
            yield "index", node.slice, node.slice, "", "0" if text(node.slice) == "-1" else f"{text(node.slice)} + 1"
        case ast.Call(func=ast.Attribute(value=copied, attr="copy"), args=[]):
            yield "copy", node, node, "", text(copied)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="array"), args=[ast.Name() | ast.Attribute(), *_]):
            yield "copy", node.func, node.func, "", "np.asarray"
        case ast.Call(args=[copied]) if name_of(node.func) in ("copy", "deepcopy", "list", "dict") and name_of(copied):
            yield "copy", node, node, "", text(copied)


def swaps_checks_and_statements(node: Any, text: Callable[[Any], str]) -> Mistakes:
    match node:
        case ast.Call(args=[_, _, *_]) if name_of(node.func) not in SYMMETRIC:
            for one, other in zip(node.args, node.args[1:], strict=False):
                plain = all(isinstance(each, ast.Name | ast.Attribute | ast.Subscript) for each in (one, other))
                if plain and text(one) != text(other) and name_of(one) not in ("memory", "self", "cls"):
                    yield "swap", one, other, "", f"{text(other)}, {text(one)}"
        case ast.If(body=[ast.Raise()]):
            yield "check", node.test, node.test, "", "False"
        case ast.Expr(value=ast.Call(func=called)):
            yield "check" if CHECK.match(name_of(called)) else "drop", node, node, "", "pass"
        case ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "drop", node, node, "", "pass"


MAKERS = (signs_and_bounds, indices_and_copies, swaps_checks_and_statements)


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str | bytes)


def is_count(node: ast.AST) -> bool:
    return type(getattr(node, "value", None)) is int or name_of(getattr(node, "func", node)) in ("size", "len")


def is_place(node: ast.AST) -> bool:
    """Whether an index is a number, or the name of a number, and not the key of a table."""
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    name = getattr(node, "id", "")
    return type(getattr(number, "value", None)) is int or 0 < len(name) < 3 or name.isupper()


def choose(source: Path, folders: list[str], number: int, seed: int, refused: Iterable[str] = ()) -> list[Mutant]:
    """As many mutants of each folder, and in a folder of each kind, as far as there are any. `refused` are names to leave out."""
    package, turns, left = source / "src" / "trueonline", [], number
    for place, folder in enumerate(folders):
        paths = sorted((package / folder).rglob("*.py")) or [package / f"{folder}.py"]
        found = {m.name: m for path in paths for m in mutants_of(path.relative_to(package).as_posix(), path.read_bytes())}
        names = sorted(found.keys() - set(refused), key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
        kinds = KINDS[place % len(KINDS) :] + KINDS[: place % len(KINDS)]
        queues = [[found[name] for name in names if found[name].kind == kind] for kind in kinds]
        mixed = [queue[turn] for turn in range(len(names)) for queue in queues if turn < len(queue)]
        turns += list(enumerate(mixed[: -(-left // (len(folders) - place))]))
        left = number - len(turns)
    return [mutant for _, mutant in sorted(turns, key=lambda pair: pair[0])]  # so a part of a run is even too
