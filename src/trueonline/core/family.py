"""One kernel for all rules over one memory that differ in numbers only.

Such a rule recalls, computes numbers, and then decays, imprints or replaces, and learns. Only the numbers differ from rule to rule.
So rules of this package that have this form share their kernels. `merged` takes their syntax trees apart, and makes one function in
which the number of the rule chooses what is computed between the operations.
"""

from __future__ import annotations

import ast
import builtins
import copy
from functools import cache
from typing import Any

from trueonline import catalog
from trueonline.core.compiling.kernels import kernel
from trueonline.core.compiling.syntax import NotInlinableError, assigned, definition, made_of
from trueonline.core.memory import decay, imprint, learn, recall, replace
from trueonline.core.transition import parameters_of

# Learners of the rule that people meet first have kernels of their own, which compile in two thirds of the time.
ALONE = "true_online_td"
OPERATIONS = {decay: ("g",), imprint: ("a", "b"), replace: (), learn: ("c",)}


@cache
def members() -> dict[Any, int]:
    """The rules that share a kernel, and their numbers."""
    rows = [row for row in catalog.METHODS.values() if row.memory == "one" and row.group != "control" and row.rule]
    rules = dict.fromkeys(rule for row in rows for rule in (row.resolve("rule"), row.resolve("varying")))
    fit = (rule for rule in rules if _taken_apart(rule, "") is not None)
    return {rule: number for number, rule in enumerate(fit)}


def number_of(rule: Any, memory: str) -> int | None:
    """The number of a rule in the kernel that its learners share with others. None if they have a kernel of their own."""
    return members().get(rule) if memory == "one" and rule.py_func.__name__ != ALONE else None


@cache
def merged() -> Any:
    """A kernel (memory, transition) for all members. `transition.which` says which rule it is."""
    branches: list[str] = []
    names: dict[str, Any] = {"decay": decay, "imprint": imprint, "learn": learn, "recall": recall, "replace": replace}
    replacing = []
    for rule, number in members().items():
        parts = _taken_apart(rule, f"_{number}")
        assert parts is not None
        statements, replaces = parts
        replacing += [str(number)] * replaces
        branches.append(f"    {'el' * bool(branches)}if which == {number}:")
        branches += (f"        {line}" for each in statements for line in ast.unparse(each).splitlines())
        names |= {f"{name}_{number}": value for name, value in rule.py_func.__globals__.items()}
    text = f"""\
def any_of_one_memory(memory, transition):
    which = transition.which
    v, e_x, v_next = recall(memory, transition.x, transition.x_next)
    g = a = b = c = delta = 0.0
{chr(10).join(branches)}
    decay(memory, g)
    if {" or ".join(f"which == {number}" for number in replacing)}:
        replace(memory, transition.x)
    else:
        imprint(memory, transition.x, a, b)
    learn(memory, c)
    return v, delta, v_next
"""
    return kernel(made_of(text, "any_of_one_memory", names))


def _taken_apart(rule: Any, suffix: str) -> tuple[list[ast.stmt], bool] | None:
    """The statements of a rule without its operations, which leave their numbers in g, a, b and c, and whether it replaces traces.

    None for a rule of another form.
    """
    try:
        node = definition(rule.py_func)
    except NotInlinableError:
        return None
    if parameters_of(rule):
        return None
    where = rule.py_func.__globals__
    rename = _Renaming(
        suffix, {each.arg for each in node.args.args}, vars(builtins).keys() - where.keys() - assigned(node.body)
    )
    statements: list[ast.stmt] = []
    order: list[Any] = []
    for each in node.body:
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            continue
        value: Any = getattr(each, "value", None)
        called = where.get(value.func.id) if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else None
        if called is recall and isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Tuple):
            rename.recalled = [name.id for name in each.targets[0].elts if isinstance(name, ast.Name)]
            order.append(recall)
        elif called in OPERATIONS if isinstance(value, ast.Call) else False:
            order.append(called)
            numbers = value.args[len(value.args) - len(OPERATIONS[called]) :] if OPERATIONS[called] else []
            for name, number in zip(OPERATIONS[called], numbers, strict=True):
                statements.append(
                    ast.Assign([ast.Name(name, ast.Store())], rename.visit(copy.deepcopy(number)), lineno=0)
                )
        elif isinstance(each, ast.Return) and isinstance(value, ast.Tuple):
            delta = rename.visit(copy.deepcopy(value.elts[1]))
            statements.append(ast.Assign([ast.Name("delta", ast.Store())], delta, lineno=0))
        else:
            statements.append(rename.visit(copy.deepcopy(each)))
    fits = order in ([recall, decay, imprint, learn], [recall, decay, replace, learn]) and not rename.uses_memory
    return ([ast.fix_missing_locations(each) for each in statements], order[2] is replace) if fits else None


class _Renaming(ast.NodeTransformer):
    """Arguments become parts of the transition. Other names get a suffix, but for Python's own and those that `recall` assigns."""

    def __init__(self, suffix: str, arguments: set[str], of_python: set[str]) -> None:
        self._suffix, self._arguments, self._of_python = suffix, arguments, of_python
        self.recalled: list[str] = []
        self.uses_memory = False

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.recalled:
            return ast.Name(("v", "e_x", "v_next")[self.recalled.index(node.id)], node.ctx)
        self.uses_memory |= node.id == "memory"
        if node.id in self._arguments:
            return ast.Attribute(ast.Name("transition", ast.Load()), node.id, node.ctx)
        return node if node.id in self._of_python else ast.Name(node.id + self._suffix, node.ctx)
