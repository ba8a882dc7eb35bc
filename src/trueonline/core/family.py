"""One kernel for the rules over a kind of memory that have most of their operations in common.

`merged` lines up the operations of these rules, as one compares texts. What all of them have stands once in the kernel. The number
of the rule chooses the other operations, and the numbers that operations get. A rule reads and changes its memory in its own order,
so it finds the same bits as in a kernel of its own. Its numbers are computed together, once it has read the memory, because nothing
that changes the memory changes them. So one choice between the rules is enough.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple

from trueonline import catalog
from trueonline.core.compiling.kernels import kernel
from trueonline.core.compiling.sources import parsed
from trueonline.core.compiling.syntax import assigned, definition, made_of, names_in
from trueonline.core.memory import decay, imprint, learn, scale, shift
from trueonline.core.memory.two_traces import decay_both, imprint_both, learn_from_second, second_learns
from trueonline.core.transition import parameters_of

SHARED = ("one", "two", "three", "two traces")  # the kinds of memory whose rules share kernels
# Learners of the rule that people meet first have kernels of their own, which compile in two thirds of the time.
ALONE = "true_online_td"
APART = {"replace_clearing"}  # rules of agents that need to know the actions
MEMORIES = {"memory", "second", "third"}  # the names of memories in rules
CHOSEN = "chosen"  # how the names of numbers begin that the rule chooses
RESULT = tuple(f"{CHOSEN}_{each}" for each in ("value", "error", "next"))
# How many numbers come last in a call:
NUMBERS = dict.fromkeys((decay, learn, scale, shift, decay_both, learn_from_second, second_learns), 1)
NUMBERS |= {imprint: 2, imprint_both: 3}


@cache
def members(memory: str) -> dict[Any, int]:
    """The rules over a kind of memory that share a kernel, and their numbers."""
    rows = [row for row in catalog.METHODS.values() if row.memory == memory and row.rule and memory in SHARED]
    rules = dict.fromkeys(row.resolve(part) for row in rows for part in ("rule", "varying"))
    return {rule: number for number, rule in enumerate(rules) if rule.py_func.__name__ not in APART}


def number_of(rule: Any, memory: str) -> int | None:
    """The number of a rule in the kernel that its learners share with others. None if they have a kernel of their own."""
    return members(memory).get(rule) if rule.py_func.__name__ != ALONE else None


@cache
def merged(memory: str) -> Any:
    """A kernel (memory, transition) for all members. `transition.which` says which rule it is."""
    uses: list[_Use] = []
    names: dict[str, Any] = {}
    for rule, number in members(memory).items():
        uses = _lined_up(uses, _uses(rule, number))
        where = rule.py_func.__globals__  # without Python's own names, such as min
        named = {name: where[name] for name in rule.py_func.__code__.co_names if name in where}
        assert all(names.get(name, value) is value for name, value in named.items()), "two meanings of a name"
        names |= named
    everyone = frozenset(members(memory).values())
    uses.append(_Use(f"return {', '.join(RESULT)}", (), {number: [] for number in everyone}))
    body = [line for use in _without_choice(uses) for line in use.written(everyone)]
    chosen = sorted({*assigned([each for each in parsed("\n".join(body)).body if isinstance(each, ast.If)])})
    lines = ["which = transition.which", *(f"{name} = 0.0" for name in chosen), *body]
    name = f"any_of_{memory.replace(' ', '_')}"
    text = "\n    ".join([f"def {name}(memory, transition):", *"\n".join(lines).splitlines()])
    shared = kernel(made_of(f"{text}\n", name, names))
    shared.ask = shared
    return shared


class _Use(NamedTuple):
    """A statement that uses the memory, and the statements that follow it in each rule, which do not."""

    statement: str
    parts: tuple[str, ...]  # the names of the parts of its result, `_` for one that nobody reads
    then: dict[int, list[str]]

    def joined(self, other: _Use) -> _Use:
        """The statement of more rules."""
        pairs = list(zip(self.parts, other.parts, strict=True))
        assert all(a == b or "_" in (a, b) for a, b in pairs), f"two names for a part of {self.statement}"
        return _Use(self.statement, tuple(b if a == "_" else a for a, b in pairs), self.then | other.then)

    def written(self, everyone: frozenset[int]) -> Iterator[str]:
        """The statements in a kernel that these rules share."""
        common = [line for line, *_ in takewhile(lambda row: len(set(row)) == 1, zip(*self.then.values(), strict=False))]
        own: dict[str, list[int]] = {}
        for number, lines in self.then.items():
            own.setdefault("\n".join(lines[len(common) :]), []).append(number)
        lines = [f"{', '.join(self.parts)} = {self.statement}" if self.parts else self.statement, *common]
        word = "if"
        for text, numbers in own.items():
            if text and len(own) > 1:
                lines.append(f"{word} {_any(numbers)}:\n{_indented(text)}")
                word = "elif"
            elif text:
                lines.append(text)
        text = "\n".join(lines)
        missing = everyone - self.then.keys()
        if missing:
            test = _any(self.then) if len(self.then) <= len(missing) else f"not ({_any(sorted(missing))})"
            text = f"if {test}:\n{_indented(text)}"
        yield text


def _any(numbers: Iterable[int]) -> str:
    return " or ".join(f"which == {number}" for number in numbers)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _uses(rule: Any, number: int) -> list[_Use]:
    """What a rule does with its memory, in its order, and each other statement after the last that reads the memory before it."""
    node, where = copy.deepcopy(definition(rule.py_func)), rule.py_func.__globals__
    arguments = _Arguments({each.arg for each in node.args.args[1:]}, parameters_of(rule))
    uses: list[_Use] = []
    before: list[str] = []  # statements before the first use
    last = -1  # the last use that reads
    for each in node.body:
        one: Any = arguments.visit(each)
        value: Any = getattr(one, "value", None)
        plain = uses[last].then[number] if uses else before
        if isinstance(value, ast.Constant):  # a docstring
            continue
        if isinstance(one, ast.Return):
            plain += (f"{name} = {ast.unparse(part)}" for name, part in zip(RESULT, value.elts, strict=True))
        elif not names_in([each]) & MEMORIES:
            plain.append(ast.unparse(one))
        elif isinstance(one, ast.Assign):
            target: Any = one.targets[0]
            apart = isinstance(target, ast.Tuple)
            parts = tuple(map(ast.unparse, target.elts)) if apart else ()
            assert not names_in([each]) & {*assigned(parsed("\n".join(before)).body)}
            last = len(uses)
            uses.append(_Use(ast.unparse(value if apart else one), parts, {number: before}))
            before = []
        else:
            count = NUMBERS.get(where.get(value.func.id), 0) if value is not None else 0
            for k in range(-count, 0):
                name = "_".join([CHOSEN, value.func.id, *map(ast.unparse, value.args[:1]), "abc"[k + count]])
                name += "_2" * sum(name in each.statement for each in uses)
                plain.append(f"{name} = {ast.unparse(value.args[k])}")
                value.args[k] = ast.Name(name)
            last = len(uses) if any(isinstance(part, ast.Assign) for part in ast.walk(one)) else last
            uses.append(_Use(ast.unparse(one), (), {number: []}))
    return uses


def _without_choice(uses: list[_Use]) -> list[_Use]:
    """The same, but a number that all rules compute in the same way is computed in its place."""
    values: dict[str, set[str]] = {}
    for line in (line for use in uses for lines in use.then.values() for line in lines if line.startswith(CHOSEN)):
        name, _, value = line.partition(" = ")
        values.setdefault(name, set()).add(value)
    same = {name: value for name, (value, *others) in values.items() if not others}
    found = []
    for use in uses:
        then = {
            number: [each for each in lines if each.split(" = ")[0] not in same] for number, lines in use.then.items()
        }
        statement = re.sub(rf"\b{CHOSEN}\w+", lambda name: same.get(name[0], name[0]), use.statement)
        found.append(use._replace(statement=statement, then=then))
    return found


def _lined_up(uses: list[_Use], more: list[_Use]) -> list[_Use]:
    """What two sets of rules do with their memory as one list, in which what is the same stands once."""
    found: list[_Use] = []
    texts = [each.statement for each in uses], [each.statement for each in more]
    for tag, i, end, j, last in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        found += map(_Use.joined, uses[i:end], more[j:last]) if tag == "equal" else uses[i:end] + more[j:last]
    return found


class _Arguments(ast.NodeTransformer):
    """Puts parts of the transition in place of a rule's arguments."""

    def __init__(self, arguments: set[str], own: tuple[str, ...]) -> None:
        assert not {"x_next", "x_expected"} <= arguments, "a rule with two sets of features that follow"
        self._arguments, self._own = arguments | {"x_expected"}, own

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "x_next":  # φ̄' is φ' by default, and other rules ask for it
            node.id = "x_expected"
        if node.id in self._own:
            return parsed(f"transition.parameters[{self._own.index(node.id)}]", "eval").body
        return ast.Attribute(ast.Name("transition"), node.id, node.ctx) if node.id in self._arguments else node
