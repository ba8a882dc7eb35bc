"""Checks of an update rule where the user gives it, so that no mistake is first met by the compiler."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from typing import Any

from trueonline.core.compiling.syntax import NotInlinableError, definition
from trueonline.core.transition import check_parameters

RESULT = "V(S), δ and V(S'), as in `return v, delta, v_next`"
MEMORIES = {"second": 2, "third": 3}  # the memories that a rule has, if it uses this one


def check_rule(rule: Any, parameters: Iterable[str] = ()) -> int:
    """Check a rule. Return how many memories it uses: 2 if it reads `memory.second`, 3 if it reads `memory.third`, otherwise 1.

    A TypeError names the fix if this is not a kernel, has other parameters than these, does not return three values, or uses a name
    that nothing defines.
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
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = [node.attr for node in parts if isinstance(node.value, ast.Name) and node.value.id == "memory"]
    return max((MEMORIES.get(name, 1) for name in used), default=1)
