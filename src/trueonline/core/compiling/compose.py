"""One flat text for each kernel: its pieces are inlined as syntax trees, before Numba sees them.

Numba compiles a function at a time, and every function pays for the whole pipeline. A step of a learner has thirty pieces. So the
pieces are put into one function first, with renamed variables, and Numba compiles that one. The text is also what a kernel *is*: it
names no file, and has no comments. So its hash is the key of the compiled kernel on disk (`kernel_cache.py`).

| in the text of a kernel                       | becomes                                                                    |
|-----------------------------------------------|----------------------------------------------------------------------------|
| a call of a `kernel`                          | its body                                                                   |
| a call of an `operation`                      | the body of the implementation that the types of its arguments choose      |
| a call of an `outlined` or reassociating piece| a call of a function beside it, with options of its own, in the same text  |
| a global number, True, False or None          | the value, and no `if` where the value decides                             |
| one of two names or numbers, `a if t else b`  | a choice without a branch                                                  |
| anything else                                 | what it was: Numba finds out                                               |

The types that choose an implementation are followed from the arguments of the kernel through named tuples. Where a piece cannot be
inlined (it returns from a loop, it calls itself, or its text is not known), it stays a call, and Numba compiles it apart.
"""

from __future__ import annotations

import ast
import builtins
import copy
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from types import ModuleType
from typing import Any, NamedTuple, cast

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher

from trueonline.core.compiling.syntax import (
    PURE,
    NotInlinableError,
    Renamed,
    definition,
    is_idle,
    is_pure,
    is_read_once,
    is_stored,
    names_in,
    piece,
    reduced,
    steady,
    stored,
    stores_of,
    without_idle,
)

UNKNOWN = types.undefined
Options = tuple[tuple[str, Any], ...]


class Apart(NamedTuple):
    """A function that stays a function: its Python function and the options of Numba for it."""

    function: Any
    options: Options


class Composed(NamedTuple):
    """The text of a kernel: functions that call each other, of which the last is the kernel itself."""

    name: str  # of the kernel
    text: str
    names: dict[str, Any]  # the globals of the text
    options: dict[str, Options]  # of each function
    read: list[tuple[Any, str, Any]]  # the globals that were read: the namespace, the name and the value


def compose(function: Any, kinds: tuple[Any, ...], knowledge: Any) -> Composed:
    """The text of a kernel for arguments of these types."""
    text = _Text(knowledge)
    name = text.add(Apart(function, ()), kinds)
    module = _Signed().visit(ast.Module(text.functions, []))
    return Composed(name, ast.unparse(module), text.names, text.options, text.read)


class _Signed(ast.NodeTransformer):
    """Negative numbers as Python writes them: `ast.unparse` would write the square of −3 as −3 ** 2."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) in (int, float) and math.copysign(1.0, cast(Any, node.value)) < 0.0:
            return ast.UnaryOp(ast.USub(), ast.Constant(-cast(Any, node.value)))
        return node


def _any_number(node: ast.expr) -> ast.expr:
    """An argument of a function. For a whole number that it knows, Numba would compile a function for this number alone."""
    known = isinstance(node, ast.Constant) and type(node.value) is int
    return ast.Call(ast.Name("int", ast.Load()), [node], []) if known else node


class _Scope:
    """A function whose body is being written: what its local names stand for, and the functions that it is inlined into."""

    def __init__(self, function: Any, outer: tuple[Any, ...]) -> None:
        self.function, self.outer = function, (*outer, function.__code__)
        self.local: dict[str, ast.expr] = {}
        code = function.__code__
        self.closure = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))

    def look_up(self, name: str) -> tuple[Any, Any]:
        """The namespace and the value of a name that is not local."""
        if name in self.closure:
            return self.closure, self.closure[name].cell_contents
        where = self.function.__globals__
        return (where, where[name]) if name in where else (vars(builtins), getattr(builtins, name))


class _Text:
    """The functions of a kernel, as they are written."""

    def __init__(self, knowledge: Any) -> None:
        self.knowledge = knowledge
        self.functions: list[ast.stmt] = []
        self.names: dict[str, Any] = {}
        self.options: dict[str, Options] = {}
        self.read: list[tuple[Any, str, Any]] = []
        self._made: dict[Any, str] = {}

    def name_of(self, value: Any, wanted: str, local: Collection[str] = ()) -> str:
        """A global name of the text for a value, other than the local names of a function."""
        if wanted in PURE and isinstance(value, Dispatcher):
            wanted += "_"  # a function of a user that may do more
        name, n = wanted, 1
        while name in local or (name in self.names and self.names[name] is not value):
            n += 1
            name = f"{wanted}__{n}"
        self.names[name] = value
        return name

    def add(self, apart: Apart, kinds: tuple[Any, ...]) -> str:
        """Write a function, for arguments of these types as far as they are known; return its name."""
        kinds = tuple(map(types.unliteral, kinds))  # one function for all numbers that it is called with
        key = (apart.function.__code__, id(apart.function.__globals__), apart.options, kinds)
        if key not in self._made:
            node = definition(apart.function)
            name = self.name_of(apart, re.sub(r"\W", "_", apart.function.__name__))
            self._made[key] = name
            self.options[name] = apart.options
            try:
                body = _Body(self, apart.function, node, kinds).statements
            except NotInlinableError:
                del self._made[key], self.options[name]
                raise
            arguments = ast.arguments([], [ast.arg(each.arg) for each in node.args.args], None, [], [], None, [])
            self.functions.append(
                ast.FunctionDef(name=name, args=arguments, body=body or [ast.Pass()], decorator_list=[], lineno=0)
            )
        return self._made[key]


class _Parts(NamedTuple):
    """A named tuple that is taken apart: the global name of its class, and an expression for each field."""

    made: str
    values: Mapping[str, ast.expr]


class _Made(ast.NodeTransformer):
    """Puts named tuples together again where one is needed whole, such as for a function that stays apart."""

    def __init__(self, tuples: dict[str, _Parts]) -> None:
        self._tuples = tuples

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._tuples or not isinstance(node.ctx, ast.Load):
            return node
        made, values = self._tuples[node.id]
        return ast.Call(ast.Name(made, ast.Load()), [self.visit(each) for each in values.values()], [])


class _Body:
    """The body of one function of the text, into which pieces are inlined."""

    def __init__(self, text: _Text, function: Any, node: Any, kinds: tuple[Any, ...]) -> None:
        self.text = text
        self.kinds: dict[str, Any] = {}  # the types of local names, as far as they are known
        self.taken: set[str] = set()
        self.stores: Counter[str] = Counter()  # how often a local name is assigned to
        self.another: dict[str, ast.expr] = {}  # names that stand for other names
        self.finished: set[str] = set()  # the local names of pieces that have been inlined
        self.whole: set[str] = set()  # names that hold a value as it is
        self.tuples: dict[str, _Parts] = {}  # named tuples that are never made: a local name stands for several
        scope = _Scope(function, ())
        given = [each.arg for each in node.args.args]
        for name in given:
            self.taken.add(name)
            self.stores[name] = 1
            scope.local[name] = ast.Name(name, ast.Load())
        self.kinds.update(zip(given, kinds, strict=False))
        self._declare(stores_of(node.body), scope)
        made = _Made(self.tuples)
        self.statements = without_idle([made.visit(each) for each in self.block(node.body, scope)])

    # --- Statements ---

    def block(self, nodes: Iterable[ast.stmt], scope: _Scope) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for node in nodes:
            self.statement(node, scope, done)
        return done

    def statement(self, node: ast.stmt, scope: _Scope, done: list[ast.stmt]) -> None:  # noqa: PLR0912  (one for each kind)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Assign):
            value = self.expression(node.value, scope, done)
            if len(node.targets) > 1 and not steady(value):
                value = self._kept(value, done)
            for each in node.targets:
                more: list[ast.stmt] = []
                target = self.target(each, scope, more)
                if more and not steady(value):  # it comes before what is inlined into the target
                    value = self._kept(value, done)
                done += more
                self.assign(target, value, done)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(self.target(node.target, scope, done), self.expression(node.value, scope, done), done)
        elif isinstance(node, ast.AugAssign):
            before: list[ast.stmt] = []
            value = self.expression(node.value, scope, before)
            if not isinstance(node.target, ast.Name) and not all(map(is_idle, before)):
                # A call could change what the target held before.
                value, before = self.expression(node.value, scope, [], inline=False), []
            done += before
            done.append(ast.AugAssign(cast(Any, self.target(node.target, scope, done)), node.op, value))
        elif isinstance(node, ast.If):
            test = self.expression(node.test, scope, done)
            if isinstance(test, ast.Constant):
                done += self.block(node.body if test.value else node.orelse, scope)
            else:
                body, otherwise = self.block(node.body, scope), self.block(node.orelse, scope)
                done.append(ast.If(test, body or [ast.Pass()], otherwise))
        elif isinstance(node, ast.For):
            steps = self.expression(node.iter, scope, done)
            target = self.target(node.target, scope, done)
            body, otherwise = self.block(node.body, scope), self.block(node.orelse, scope)
            done.append(ast.For(target, steps, body or [ast.Pass()], otherwise, lineno=0))
        elif isinstance(node, ast.While):
            test = self.expression(node.test, scope, done, inline=False)
            done.append(ast.While(test, self.block(node.body, scope) or [ast.Pass()], self.block(node.orelse, scope)))
        elif isinstance(node, ast.Expr):
            value = self.expression(node.value, scope, done)
            if not steady(value):
                done.append(ast.Expr(value))
        elif isinstance(node, ast.Return):
            value = ast.Constant(None) if node.value is None else self.expression(node.value, scope, done)
            done.append(ast.Return(value))
        elif isinstance(node, ast.Raise | ast.Assert):
            done.append(self._renamed(node, scope))
        elif isinstance(node, ast.Pass):
            return
        elif isinstance(node, ast.Break | ast.Continue):
            done.append(node)
        else:
            raise NotInlinableError(type(node).__name__)

    def assign(self, target: ast.expr, value: ast.expr, done: list[ast.stmt]) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            names = [names_in([one]) for one in target.elts]
            plain = all(isinstance(one, ast.Name) for one in target.elts)
            later = [self._with_parts(names_in(value.elts[k + 1 :])) for k in range(len(value.elts))]
            apart = any(self._parts(one) for one in (*target.elts, *value.elts))
            clash = any(self._with_parts(mine) & rest for mine, rest in zip(names, later, strict=True))
            if plain and (apart or not clash):
                values = [self._kept(each, done) if clash else each for each in value.elts]
                for one, part in zip(target.elts, values, strict=True):
                    self.assign(one, part, done)
                return
        if isinstance(target, ast.Name) and isinstance(value, ast.Name) and target.id == value.id:
            return
        if isinstance(target, ast.Name) and self._is_another_name(target.id, value):
            self.another[target.id] = value
            return
        parts = self._parts(value)
        if parts is not None and isinstance(target, ast.Name) and target.id not in self.whole:
            self._take_apart(target.id, parts, self.kind(value), done)
            return
        self._note(target, self.kind(value))
        stand_ins = {
            name: self.fresh(name) for name in sorted(names_in([target]) & self.tuples.keys()) if is_stored(target, name)
        }
        self.whole |= names_in([target]) - self.tuples.keys()
        done.append(ast.Assign([Renamed(stand_ins).visit(stored(target))], value, lineno=0))
        for name, stand_in in stand_ins.items():  # it came whole, and is taken apart elsewhere
            made = self.tuples[name]
            fields = {field: ast.Attribute(ast.Name(stand_in, ast.Load()), field, ast.Load()) for field in made.values}
            self._take_apart(name, _Parts(made.made, fields), UNKNOWN, done)

    def _with_parts(self, names: set[str]) -> set[str]:
        """These names, and those of the parts of named tuples that are taken apart."""
        parts = [names_in(list(self.tuples[name].values.values())) for name in names if name in self.tuples]
        return names.union(*(self._with_parts(each) for each in parts))

    def _parts(self, value: ast.expr) -> _Parts | None:
        """The parts of a named tuple that is made here, or that was taken apart."""
        if isinstance(value, ast.Name):
            return self.tuples.get(value.id)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            made = self.text.names.get(value.func.id)
            if isinstance(made, type) and hasattr(made, "_fields") and len(made._fields) == len(value.args):
                return _Parts(value.func.id, dict(zip(made._fields, value.args, strict=True)))
        return None

    def _take_apart(self, name: str, parts: _Parts, kind: Any, done: list[ast.stmt]) -> None:
        """Assign the parts of a named tuple to names of their own. A part that never changes needs none."""
        self._note(ast.Name(name), kind)
        values = parts.values
        if self.stores[name] <= 1:
            kept = {
                field: value if self._lasts(value) else self._kept(value, done, f"{name}_{field}")
                for field, value in values.items()
            }
            self.tuples[name] = _Parts(parts.made, kept)
            return
        if name not in self.tuples:
            own = {field: self.fresh(f"{name}_{field}") for field in values}
            self.stores.update(dict.fromkeys(own.values(), 2))
            self.tuples[name] = _Parts(parts.made, {field: ast.Name(each, ast.Load()) for field, each in own.items()})
        targets = list(self.tuples[name].values.values())
        self.assign(ast.Tuple(targets, ast.Store()), ast.Tuple(list(values.values()), ast.Load()), done)

    def _is_another_name(self, name: str, value: ast.expr) -> bool:
        """Whether a name that is assigned to once gets the value of a name that nothing assigns to from here on."""
        return (
            isinstance(value, ast.Name)
            and self.stores[name] == 1
            and (self.stores[value.id] <= 1 or value.id in self.finished)
            and value.id not in self.text.names
        )

    def _lasts(self, value: ast.expr) -> bool:
        """Whether an expression keeps its value, because nothing in it is ever assigned to again."""
        return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and self.stores[value.id] <= 1)

    def target(self, node: ast.expr, scope: _Scope, done: list[ast.stmt]) -> ast.expr:
        if isinstance(node, ast.Tuple | ast.List):
            return ast.Tuple([self.target(each, scope, done) for each in node.elts], ast.Store())
        return stored(self.expression(node, scope, done, inline=not isinstance(node, ast.Name)))

    def _renamed(self, node: Any, scope: _Scope) -> Any:
        """A statement whose expressions are written as they are, without inlining."""
        node = copy.copy(node)
        for field, part in ast.iter_fields(node):
            if isinstance(part, ast.expr):
                setattr(node, field, self.expression(part, scope, [], inline=False))
        return node

    def _declare(self, stores: Counter[str], scope: _Scope) -> None:
        """Give every local name of a function a name that nothing else in the text has."""
        for name, times in sorted(stores.items()):
            if name not in scope.local:
                scope.local[name] = ast.Name(self.fresh(name), ast.Load())
            self.stores[cast(ast.Name, scope.local[name]).id] += times

    def fresh(self, wanted: str) -> str:
        name, n = wanted, 1
        while name in self.taken or name in self.text.names:
            n += 1
            name = f"{wanted}_{n}"
        self.taken.add(name)
        return name

    # --- Expressions ---

    def expression(  # noqa: PLR0912  (one for each kind)
        self, node: ast.expr, scope: _Scope, done: list[ast.stmt], *, inline: bool = True
    ) -> ast.expr:
        """The expression with local and global names of the text. Statements of what is inlined go to `done`."""
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Name):
            return self._name(node.id, scope)
        if isinstance(node, ast.Attribute):
            found = self._static(node, scope)
            if found is not None:
                return self._global(*found)
            whole = self.expression(node.value, scope, done, inline=inline)
            parts = self._parts(whole) if isinstance(whole, ast.Name) else None
            return parts.values[node.attr] if parts else ast.Attribute(whole, node.attr, node.ctx)
        if isinstance(node, ast.Call):
            return self._call(node, scope, done, inline)
        if isinstance(node, ast.BoolOp):
            return self._bool_op(node, scope, done, inline)
        if isinstance(node, ast.IfExp):
            test = self.expression(node.test, scope, done, inline=inline)
            if isinstance(test, ast.Constant):
                return self.expression(node.body if test.value else node.orelse, scope, done, inline=inline)
            body, otherwise = (self.expression(each, scope, [], inline=False) for each in (node.body, node.orelse))
            if steady(body) and steady(otherwise):
                either = self.text.knowledge.either
                return ast.Call(
                    ast.Name(self.text.name_of(either, "either", self.taken), ast.Load()), [test, body, otherwise], []
                )
            return ast.IfExp(test, body, otherwise)
        if isinstance(node, ast.UnaryOp):
            operand = self.expression(node.operand, scope, done, inline=inline)
            if isinstance(node.op, ast.Not) and isinstance(operand, ast.Constant):
                return ast.Constant(not operand.value)
            return ast.UnaryOp(node.op, operand)
        if isinstance(node, ast.Compare):
            sides = self._in_order([node.left, *node.comparators], scope, done, inline and len(node.ops) == 1)
            if len(node.ops) == 1 and all(isinstance(each, ast.Constant) for each in sides):
                return ast.Constant(eval(ast.unparse(ast.Compare(sides[0], node.ops, sides[1:]))))
            return ast.Compare(sides[0], node.ops, sides[1:])
        if isinstance(node, ast.BinOp):
            left, right = self._in_order([node.left, node.right], scope, done, inline)
            made = ast.BinOp(left, node.op, right)
            literal = isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant)
            return made if literal else reduced(made)  # x * 1 is a copy of an array
        if isinstance(node, ast.Subscript):
            value, index = self._in_order([node.value, node.slice], scope, done, inline)
            return ast.Subscript(value, index, node.ctx)
        if isinstance(node, ast.Tuple):
            return ast.Tuple(self._in_order(node.elts, scope, done, inline), node.ctx)
        if isinstance(node, ast.Slice):
            ends = (
                each and self.expression(each, scope, done, inline=False) for each in (node.lower, node.upper, node.step)
            )
            return ast.Slice(*ends)
        raise NotInlinableError(type(node).__name__)

    def _in_order(self, nodes: list[ast.expr], scope: _Scope, done: list[ast.stmt], inline: bool) -> list[ast.expr]:
        """Expressions that are evaluated one after the other, although what is inlined comes before all of them."""
        results: list[ast.expr] = []
        for node in nodes:
            more: list[ast.stmt] = []
            result = self.expression(node, scope, more, inline=inline)
            if more:
                results = [each if steady(each) else self._kept(each, done) for each in results]
                done += more
            results.append(result)
        return results

    def _kept(self, value: ast.expr, done: list[ast.stmt], wanted: str = "kept", changes: bool = False) -> ast.expr:
        """A name for a value, which may get other values later if it `changes`."""
        name = ast.Name(self.fresh(wanted), ast.Load())
        self.stores[name.id] = 1 + changes
        self.assign(name, value, done)
        return self.another.get(name.id, name)

    def _bool_op(self, node: ast.BoolOp, scope: _Scope, done: list[ast.stmt], inline: bool) -> ast.expr:
        """`and` and `or`. Only the first part is always evaluated, so of the others only expressions are inlined."""
        decides = isinstance(node.op, ast.Or)
        parts: list[ast.expr] = []
        for each in node.values:
            more: list[ast.stmt] = []
            part = self.expression(each, scope, more, inline=inline)
            if more and parts:
                part, more = self.expression(each, scope, [], inline=False), []
            done += more
            if isinstance(part, ast.Constant) and isinstance(part.value, bool):
                if part.value == decides:
                    return ast.BoolOp(node.op, [*parts, part]) if any(not steady(one) for one in parts) else part
                continue
            parts.append(part)
        return ast.BoolOp(node.op, parts) if len(parts) > 1 else parts[0] if parts else ast.Constant(not decides)

    def _name(self, name: str, scope: _Scope) -> ast.expr:
        if name not in scope.local:
            return self._global(name, *scope.look_up(name))
        known = scope.local[name]
        return self.another.get(known.id, known) if isinstance(known, ast.Name) else known

    def _static(self, node: ast.expr, scope: _Scope) -> tuple[str, Any, Any] | None:
        """The name, namespace and value of a global, or of an attribute of a module. None for everything else."""
        if isinstance(node, ast.Name) and node.id not in scope.local:
            return (node.id, *scope.look_up(node.id))
        if isinstance(node, ast.Attribute):
            found = self._static(node.value, scope)
            if found is not None and isinstance(found[2], ModuleType) and hasattr(found[2], node.attr):
                return node.attr, vars(found[2]), getattr(found[2], node.attr)
        return None

    def _global(self, name: str, where: Any, value: Any) -> ast.expr:
        self.text.read.append((where, name, value))
        if value is None or type(value) in (bool, int) or (type(value) is float and np.isfinite(value)):
            return ast.Constant(value)
        return ast.Name(self.text.name_of(value, name, self.taken), ast.Load())

    # --- Calls ---

    def _call(self, node: ast.Call, scope: _Scope, done: list[ast.stmt], inline: bool) -> ast.expr:
        found = self._static(node.func, scope)
        arguments = self._in_order([*node.args, *(each.value for each in node.keywords)], scope, done, inline)
        kinds = tuple(self.kind(each) for each in arguments)
        callee = None if found is None or node.keywords else self.text.knowledge.callee(found[2], kinds)
        if found is not None:
            self.text.read.append((found[1], found[0], found[2]))
        try:
            if isinstance(callee, Apart):
                return ast.Call(ast.Name(self.text.add(callee, kinds), ast.Load()), list(map(_any_number, arguments)), [])
            if callee is not None:
                new: list[ast.stmt] = []
                value = self._inlined(callee, arguments, scope, new)
                if inline or not new:
                    done += new
                    return value
        except NotInlinableError:
            pass
        function = self.expression(node.func, scope, done, inline=False)
        if node.keywords and found is not None and hasattr(found[2], "_fields"):
            names = [*found[2]._fields[: len(node.args)], *(each.arg for each in node.keywords)]
            values = dict(zip(names, arguments, strict=True))
            if values.keys() == set(found[2]._fields):  # a named tuple by name: its parts in their order
                return ast.Call(function, [values[name] for name in found[2]._fields], [])
        given, named = arguments[: len(node.args)], arguments[len(node.args) :]
        keywords = [ast.keyword(each.arg, value) for each, value in zip(node.keywords, named, strict=True)]
        return ast.Call(function, given, keywords)

    def _inlined(self, function: Any, arguments: list[ast.expr], outer: _Scope, done: list[ast.stmt]) -> ast.expr:
        """The value of a call; the statements of its body go to `done`."""
        node = definition(function)
        names, body, changed, stores = piece(node)
        if len(names) != len(arguments):
            raise NotInlinableError("defaults")
        if function.__code__ in outer.outer:
            raise NotInlinableError("it calls itself")
        new: list[ast.stmt] = []
        scope, taken = _Scope(function, outer.outer), set(self.taken)
        for name, argument in zip(names, arguments, strict=True):
            plain = (steady(argument) and name not in changed) or (
                len(names) == 1 and is_read_once(node, name) and is_pure(argument)
            )
            scope.local[name] = argument if plain else self._kept(argument, new, name, name in changed)
        self._declare(stores, scope)
        value = self._exit(body, scope, new, None)
        done += new
        self.finished |= self.taken - taken
        return value

    def _exit(self, body: list[ast.stmt], scope: _Scope, done: list[ast.stmt], result: ast.expr | None) -> ast.expr:
        """Write a body that returns at its ends only, and assign what it returns to `result`, or return it."""
        *before, last = body
        for each in before:
            self.statement(each, scope, done)
        if isinstance(last, ast.If):
            test = self.expression(last.test, scope, done)
            if isinstance(test, ast.Constant):
                return self._exit(last.body if test.value else last.orelse, scope, done, result)
            nothing = all(each.value is None for each in ast.walk(last) if isinstance(each, ast.Return))
            target = result or (ast.Constant(None) if nothing else self._result())
            branches: list[list[ast.stmt]] = [[], []]
            self._exit(last.body, scope, branches[0], target)
            self._exit(last.orelse, scope, branches[1], target)
            done.append(ast.If(test, branches[0] or [ast.Pass()], branches[1]))
            return target
        value: ast.expr = ast.Constant(None)
        if isinstance(last, ast.Return) and last.value is not None:
            value = self.expression(last.value, scope, done)
        if isinstance(result, ast.Name):
            self.assign(result, value, done)
        return value

    def _result(self) -> ast.expr:
        """A name that the branches of an inlined function assign to."""
        name = ast.Name(self.fresh("result"), ast.Load())
        self.stores[name.id] = 2
        return name

    # --- Types ---

    def kind(self, node: ast.expr) -> Any:
        """The Numba type of an expression, if it is one that chooses implementations."""
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id, UNKNOWN)
        if isinstance(node, ast.Constant):
            return types.none if node.value is None else types.literal(node.value) if type(node.value) is int else UNKNOWN
        if isinstance(node, ast.Attribute):
            base = self.kind(node.value)
            fields = getattr(base, "fields", ())
            return base.types[fields.index(node.attr)] if node.attr in fields else UNKNOWN
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            base = self.kind(node.value)
            return cast(Any, base).types[node.slice.value] if isinstance(base, types.BaseTuple) else UNKNOWN
        if isinstance(node, ast.Tuple):
            return types.Tuple([self.kind(each) for each in node.elts])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            made = self.text.names.get(node.func.id)
            kinds = [self.kind(each) for each in node.args]
            if isinstance(made, type) and hasattr(made, "_fields") and len(made._fields) == len(kinds):
                return types.NamedTuple(kinds, made)
            return self.text.knowledge.kind(made, kinds)
        return UNKNOWN

    def _note(self, target: ast.expr, kind: Any) -> None:
        if isinstance(target, ast.Name):
            self.kinds[target.id] = kind if self.kinds.get(target.id, kind) == kind else UNKNOWN
        elif isinstance(target, ast.Tuple) and len(getattr(kind, "types", ())) == len(target.elts):
            for one, part in zip(target.elts, kind.types, strict=True):
                self._note(one, part)
