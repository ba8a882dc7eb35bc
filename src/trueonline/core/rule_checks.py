"""Checks of an update rule where the user gives it, so that no mistake is first met by the compiler."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import Any

from trueonline.core.compiling.syntax import NotInlinableError, definition
from trueonline.core.memory import layout
from trueonline.core.transition import check_parameters

RESULT = "V(S), δ and V(S'), as in `return v, delta, v_next`"
MEMORIES = {"second": 2, "third": 3}  # the memories that a rule has, if it uses this one
PARTS = {
    name
    for kind in (layout.Memory, layout.Several, layout.Used, layout.TwoTraces, layout.Rated, layout.MetaGradient)
    for name in kind._fields
}


def check_rule(rule: Any, parameters: Iterable[str] = ()) -> int:
    """Check a rule. Return how many memories it uses: 2 if it reads `memory.second`, 3 if it reads `memory.third`, otherwise 1.

    Kernels that it calls count too. A TypeError names the fix if this is not a kernel, has other parameters than these, does not
    return three values, uses a name that nothing defines, or reads a part that no memory has.
    """
    check_parameters(rule, parameters)
    function = rule.py_func
    try:
        tree = definition(function)
    except NotInlinableError:  # its text is not known: the compiler finds out
        return 1
    returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    wrong = [value for value in returned if value is None or (isinstance(value, ast.Tuple) and len(value.elts) != 3)]
    if wrong or not returned:
        got = f"returns {ast.unparse(wrong[0])}" if wrong and wrong[0] is not None else "returns nothing"
        raise TypeError(f"the rule {function.__name__} must return {RESULT}; it {got}")
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    known = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | {each.arg for each in tree.args.args}
    known |= {*function.__globals__, *function.__code__.co_freevars, *vars(builtins)}
    unknown = [node.id for node in names if node.id not in known]
    if unknown:
        raise TypeError(f"the rule {function.__name__} uses {unknown[0]!r}, which nothing defines; import or define it")
    read = list(_read(function, {"memory": ()}, []))
    for *before, part in read:
        if part not in PARTS and all(each in MEMORIES for each in before):
            raise TypeError(
                f"the rule {function.__name__} reads {'.'.join(['memory', *before, part])}, but memories have no {part}: use the "
                'operations of trueonline.core.memory, such as value(memory, x), and memory="two" or "three" in trueonline.method '
                "for memory.second or memory.third"
            )
    return max((MEMORIES.get(first, 1) for first, *_ in read), default=1)


def _read(function: Any, paths: dict[str, tuple[str, ...]], seen: list[Any]) -> Iterator[tuple[str, ...]]:
    """The parts of the memory that a function and the kernels of users that it calls read, such as ("second", "n").

    `paths` are the parts that its arguments stand for.
    """
    try:
        tree = definition(function)
    except NotInlinableError:
        return
    nodes = list(ast.walk(tree))
    stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    paths = {name: path for name, path in paths.items() if name not in stored}

    def path_of(node: Any) -> tuple[str, ...] | None:
        if isinstance(node, ast.Name):
            return paths.get(node.id)
        base = path_of(node.value) if isinstance(node, ast.Attribute) else None
        return None if base is None else (*base, node.attr)

    for node in nodes:
        path = path_of(node)
        if path:
            yield path
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):  # another name for a part
            name, path = node.targets[0].id, path_of(node.value)
            if path is not None and stored.count(name) == 1:
                paths[name] = path
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = getattr(function.__globals__.get(node.func.id), "py_func", None)
            given = [path_of(each) for each in node.args]
            if called is None or called in seen or str(called.__module__).startswith("trueonline."):
                continue
            named = zip(called.__code__.co_varnames, given, strict=False)
            yield from _read(called, {name: path for name, path in named if path is not None}, [*seen, called])
