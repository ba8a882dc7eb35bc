"""One kernel for the rules over a kind of memory that have most of their statements in common.

`merged` lines up the statements of these rules, as one compares texts. What all of them have stands once in the kernel, and the
number of the rule chooses the rest. An operation is one statement also where its numbers differ: only these are chosen then. Each
rule keeps the order of its statements, so it finds the same bits as in a kernel of its own.
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from trueonline import catalog
from trueonline.core.compiling.kernels import kernel
from trueonline.core.compiling.syntax import assigned, definition, made_of
from trueonline.core.memory import decay, imprint, learn, scale, shift
from trueonline.core.transition import parameters_of

SHARED = ("one", "two")  # the kinds of memory whose rules share kernels
# Learners of the rule that people meet first have kernels of their own, which compile in two thirds of the time.
ALONE = "true_online_td"
NUMBERS = {decay: 1, imprint: 2, learn: 1, scale: 1, shift: 1}  # how many numbers come last in a call
CHOSEN = ("this_number", "other_number")  # the names of these in the kernel, if they differ


@cache
def members(memory: str) -> dict[Any, int]:
    """The rules over a kind of memory that share a kernel, and their numbers."""
    rows = [row for row in catalog.METHODS.values() if row.memory == memory and row.group != "control" and row.rule]
    rules = dict.fromkeys(row.resolve(part) for row in rows for part in ("rule", "varying") if memory in SHARED)
    return {rule: number for number, rule in enumerate(rules)}


def number_of(rule: Any, memory: str) -> int | None:
    """The number of a rule in the kernel that its learners share with others. None if they have a kernel of their own."""
    return members(memory).get(rule) if rule.py_func.__name__ != ALONE else None


@cache
def merged(memory: str) -> Any:
    """A kernel (memory, transition) for all members. `transition.which` says which rule it is."""
    lines: list[_Line] = []
    names: dict[str, Any] = {}
    for rule, number in members(memory).items():
        lines = _lined_up(lines, list(_lines(rule, number)))
        named = {name: rule.py_func.__globals__.get(name) for name in rule.py_func.__code__.co_names}
        assert all(names.get(name, value) is value for name, value in named.items()), "two meanings of a name"
        names |= named
    everyone = frozenset(members(memory).values())
    parts = [each for line in lines for each in line.parts(everyone)]
    chosen = sorted({name for who, text in parts if who != everyone for name in assigned(ast.parse(text).body)})
    text = [f"def any_of_{memory}(memory, transition):", "    mine = 1 << transition.which"]
    text += [f"    {name} = 0.0" for name in chosen]
    before = everyone
    for who, part in parts:
        if who not in (everyone, before):
            text.append(f"    if mine & {sum(1 << number for number in who)}:")
        text += [f"    {'    ' * (who != everyone)}{line}" for line in part.splitlines()]
        before = who
    shared = kernel(made_of("\n".join([*text, "    return first, error, last", ""]), f"any_of_{memory}", names))
    shared.ask = shared
    return shared


@dataclass
class _Line:
    """A statement of some rules: without the numbers of an operation, and with the numbers of each rule."""

    statement: str
    names: list[str]  # of the parts of a result, `_` where nobody reads it
    numbers: dict[int, tuple[str, ...]]

    def joined(self, other: _Line) -> _Line:
        """The statement for more rules."""
        pairs = list(zip(self.names, other.names, strict=True))
        assert all(a == b or "_" in (a, b) for a, b in pairs), f"two names for a part of {self.statement}"
        return _Line(self.statement, [b if a == "_" else a for a, b in pairs], self.numbers | other.numbers)

    def parts(self, everyone: frozenset[int]) -> Iterator[tuple[frozenset[int], str]]:
        """Which rules run which text."""
        text = f"{', '.join(self.names)} = {self.statement}" if self.names else self.statement
        different: dict[tuple[str, ...], set[int]] = defaultdict(set)
        for number, given in self.numbers.items():
            different[given].add(number)
        if len(different) > 1:
            for given, who in different.items():
                for name, value in zip(CHOSEN, given, strict=False):
                    yield frozenset(who), f"{name} = {value}"
        given = CHOSEN[: len(given)] if len(different) > 1 else given
        yield frozenset(self.numbers), text.replace("NUMBERS", ", ".join(given))


def _lines(rule: Any, number: int) -> Iterator[_Line]:
    """The statements of a rule. Its arguments become parts of the transition."""
    node, where = copy.deepcopy(definition(rule.py_func)), rule.py_func.__globals__
    arguments = _Arguments({each.arg for each in node.args.args[1:]}, parameters_of(rule))
    for each in node.body:
        one: Any = arguments.visit(each)
        value: Any = getattr(one, "value", None)
        names: list[str] = []
        given: tuple[str, ...] = ()
        if isinstance(one, ast.Return):
            for name, part in zip(("first", "error", "last"), value.elts, strict=True):
                yield _Line(f"{name} = {ast.unparse(part)}", [], {number: ()})
            return
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Tuple) and isinstance(value, ast.Call):
            names, one = [ast.unparse(each) for each in one.targets[0].elts], value
        elif isinstance(value, ast.Constant):
            continue
        elif isinstance(one, ast.Expr) and (count := NUMBERS.get(where.get(value.func.id))):
            given = tuple(map(ast.unparse, value.args[-count:]))
            value.args[-count:] = [ast.Name("NUMBERS")]
        yield _Line(ast.unparse(one), names, {number: given})


def _lined_up(lines: list[_Line], more: list[_Line]) -> list[_Line]:
    """Two rows of statements as one, in which what is the same stands once."""
    found: list[_Line] = []
    texts = [each.statement for each in lines], [each.statement for each in more]
    for tag, i, end, j, last in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        found += map(_Line.joined, lines[i:end], more[j:last]) if tag == "equal" else lines[i:end] + more[j:last]
    return found


class _Arguments(ast.NodeTransformer):
    """Puts parts of the transition in place of a rule's arguments."""

    def __init__(self, arguments: set[str], own: tuple[str, ...]) -> None:
        self._arguments, self._own = arguments, own

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._own:
            return ast.parse(f"transition.parameters[{self._own.index(node.id)}]", mode="eval").body
        return ast.Attribute(ast.Name("transition"), node.id, node.ctx) if node.id in self._arguments else node
