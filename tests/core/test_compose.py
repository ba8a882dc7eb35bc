"""Kernels as one flat text: it does what its pieces do, in the order in which Python does it."""

import gc
import math
import weakref
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from trueonline.core import kernels
from trueonline.core.kernels import call, ensure, inlined, kept_with, kernel, operation, outlined, specialise

pytestmark = pytest.mark.usefixtures("small_heap")

CONSTANT = 3


class Pair(NamedTuple):
    """Two numbers."""

    a: Any
    b: Any


@kernel
def early(x):
    if x < 0.0:
        return -1.0
    if x > 10.0:
        return 10.0
    return x


@kernel
def push(log, value):
    """Note a value, and return how many there are."""
    count = int(log[0]) + 1
    log[0] = count
    log[count] = value
    return log[0]


@kernel
def changes_its_argument(x):
    x *= 2.0
    x += 1.0
    return x


@kernel
def swapped(pair):
    return Pair(pair.b, pair.a)


@outlined
def apart(pair, x):
    return pair.a * x - pair.b


@kernel
def from_a_loop(x):
    for i in range(10):
        if i > x:
            return float(i)
    return -1.0


@kernel
def idle(log):
    unused = log[1]  # noqa: F841
    total = 0.0
    total += log[1]


def early_returns(log, x):
    return early(x) + early(x - 20.0) * early(x * 5.0)


def order_of_calls(log, x):
    first = log[0]
    return first + log[0] + push(log, 1.0) * 10.0 + log[0] * 100.0 + push(log, 2.0) * 1000.0


def order_in_a_tuple(log, x):
    a, b, c = log[0], push(log, x), log[0]
    return a + 10.0 * b + 100.0 * c


def short_circuit(log, x):
    found = 0.0
    if x > 100.0 and push(log, 1.0) > 0.0:
        found = 1.0
    if x < 100.0 or push(log, 2.0) > 0.0:
        found += 2.0
    chosen = push(log, 3.0) if x > 100.0 else 7.0
    return found + chosen + log[0]


def arguments_stay(log, x):
    y = changes_its_argument(x)
    z = changes_its_argument(y)
    return x + 10.0 * y + 100.0 * z


def names_of_others(log, x):
    push = x  # a local name that a piece uses for something else
    early = changes_its_argument(push)
    return push + early


def names_like_those_of_the_text(log, x):
    int64 = 2.0
    count = push(log, x)
    return int64 * count


def tuples(log, x):
    pair = Pair(x, 2.0)
    other = swapped(pair)
    pair = Pair(pair.b + other.b, pair.a)
    total = 0.0
    for _ in range(3):
        pair = Pair(pair.b, pair.a + 1.0)
        total = total * 10.0 + pair.a
    return total + apart(pair, x) + apart(swapped(pair), x)


def carried_over(log, x):
    old, total = 0.0, 0.0
    for i in range(4):
        pair = Pair(old, float(i))
        old = x + i
        total = total * 10.0 + pair.a
    return total


def folded(log, x):
    if CONSTANT == 3 and not False:  # noqa: SIM108
        result = x if CONSTANT > 2 else log[0]
    else:
        result = -1.0
    return result * 1 + 0


def builtins_of_numbers(log, x):
    return (
        min(x, 3.0)
        + 10.0 * max(x, 3.0)
        + 100.0 * int(x)
        + min(max(x, 0.0), 2.0)
        + (0.0 if math.isnan(min(x, math.nan)) else 5.0)
    )


def loops(log, x):
    total, i = 0.0, 0
    while i < 5:
        i += 1
        if i == 2:
            continue
        if i == 4:
            break
        total += early(i * x)
    return total + from_a_loop(x)


def assigned_at_once(log, x):
    a, b = 1.0, x
    a, b = b, a
    log[1], log[2] = log[2] + a, log[1] + b
    return log[1] * 10.0 + log[2] + a


def nothing_is_lost(log, x):
    unread = push(log, x)  # noqa: F841
    idle(log)
    return log[0]


PROGRAMS = (
    *(
        early_returns,
        order_of_calls,
        order_in_a_tuple,
        short_circuit,
        arguments_stay,
        names_of_others,
        tuples,
        carried_over,
    ),
    *(names_like_those_of_the_text, folded, builtins_of_numbers, loops, assigned_at_once, nothing_is_lost),
)


def plain(function):
    """The function as Python runs it, without a compiler."""
    pieces = {name: value for name, value in globals().items() if isinstance(value, numba.core.dispatcher.Dispatcher)}
    names = dict(globals())
    for name, piece in pieces.items():
        names[name] = type(function)(piece.py_func.__code__, names, name)
    return type(function)(function.__code__, names, function.__name__)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_text_does_what_its_pieces_do(program):
    entry = specialise(program, "test")
    for x in (-3.0, 0.0, 2.5, 30.0, 1000.0):
        logs = np.arange(20.0) * 0.0, np.arange(20.0) * 0.0
        assert call(entry, logs[0], x) == plain(program)(logs[1], x)
        np.testing.assert_array_equal(*logs)


def test_a_text_has_no_pieces_left():
    entry = specialise(order_of_calls, "flat")
    composed = kernels.compose(entry.template, tuple(map(numba.typeof, (np.zeros(2), 1.0))), kernels._Knowledge)
    assert "push" not in composed.text
    assert list(composed.options) == [composed.name]


def stub(x):
    raise NotImplementedError


@operation(stub)
def _stub(x):
    if isinstance(x, numba.types.Array):
        return lambda x: x[0]
    return lambda x: 2.0 * x.a


def chooses(log, x):
    return stub(log) + stub(Pair(x, 1.0))


def test_types_choose_implementations_also_where_numba_finds_the_call():
    @numba.njit
    def user(log):
        return stub(log)

    assert call(specialise(chooses, "types"), np.array([5.0]), 1.0) == 7.0
    assert user(np.array([5.0])) == 5.0


def test_a_piece_without_a_text_is_compiled_apart():
    scope = {"kernel": kernel}
    exec("@kernel\ndef unseen(x):\n    return x + 0.5", scope)
    assert call(specialise(uses_method, "unseen", method=scope["unseen"]), np.zeros(1), 1.0) == 1.5


method = early


def uses_method(log, x):
    return method(x)


def test_values_that_change_after_compiling_count_from_then_on():
    rule = inlined(scaled, FACTOR=2.0)
    for factor in (2.0, 5.0):
        rule.py_func.__globals__["FACTOR"] = factor
        made = kept_with(rule)
        if "test" not in made:
            made["test"] = specialise(uses_method, "scaled", method=rule)
        ensure(made["test"], np.zeros(1), 1.0)
        assert made["test"](np.zeros(1), 1.0) == factor


FACTOR = 1.0


def scaled(x):
    return FACTOR * x


def test_kernels_of_a_rule_are_collected_with_it():
    rule = inlined(scaled, FACTOR=4.0)
    kept_with(rule)["test"] = specialise(uses_method, "collected", method=rule)
    assert call(kept_with(rule)["test"], np.zeros(1), 1.0) == 4.0
    gone = weakref.ref(rule), weakref.ref(kept_with(rule)["test"])
    del rule
    gc.collect()
    assert [each() for each in gone] == [None, None]
