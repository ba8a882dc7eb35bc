"""Kernels as one flat text: it does what its pieces do, in the order in which Python does it."""
# ruff: noqa: F841, SIM108, B007

import gc
import math
import weakref
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from trueonline.core import family
from trueonline.core.compiling import kernels
from trueonline.core.compiling.compose import compose
from trueonline.core.compiling.kernels import call, inlined, kept_with, kernel, outlined, overloads, specialise
from trueonline.core.memory import decay, imprint, learn, recall
from trueonline.methods.accumulate_td import accumulate_td

pytestmark = pytest.mark.usefixtures("small_heap")

CONSTANT = 3
NEG, TWO = -3, 2


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


def p_early_returns(log, x):
    return early(x) + early(x - 20.0) * early(x * 5.0)


def p_order_in_a_tuple(log, x):
    a, b, c = log[0], push(log, x), log[0]
    return a + 10.0 * b + 100.0 * c


def p_short_circuit(log, x):
    found = 0.0
    if x > 100.0 and push(log, 1.0) > 0.0:
        found = 1.0
    if x < 100.0 or push(log, 2.0) > 0.0:
        found += 2.0
    chosen = push(log, 3.0) if x > 100.0 else 7.0
    return found + chosen + log[0]


def p_arguments_stay(log, x):
    y = changes_its_argument(x)
    z = changes_its_argument(y)
    return x + 10.0 * y + 100.0 * z


def p_names_like_those_of_the_text(log, x):
    int64 = 2.0
    count = push(log, x)
    return int64 * count


def p_carried_over(log, x):
    old, total = 0.0, 0.0
    for i in range(4):
        pair = Pair(old, float(i))
        old = x + i
        total = total * 10.0 + pair.a
    return total


def p_folded(log, x):
    if CONSTANT == 3 and not False:
        result = x if CONSTANT > 2 else log[0]
    else:
        result = -1.0
    return result * 1 + 0


def p_builtins_of_numbers(log, x):
    return (
        min(x, 3.0)
        + 10.0 * max(x, 3.0)
        + 100.0 * int(x)
        + min(max(x, 0.0), 2.0)
        + (0.0 if math.isnan(min(x, math.nan)) else 5.0)
    )


def p_loops(log, x):
    total, i = 0.0, 0
    while i < 5:
        i += 1
        if i == 2:
            continue
        if i == 4:
            break
        total += early(i * x)
    return total + from_a_loop(x)


def p_assigned_at_once(log, x):
    a, b = 1.0, x
    a, b = b, a
    log[1], log[2] = log[2] + a, log[1] + b
    return log[1] * 10.0 + log[2] + a


@numba.njit
def pointer(log, v):
    log[3] += v
    return 1.0


@kernel
def bad(x):
    t = x
    u = [t for _ in range(2)]
    return u[0]


@kernel
def good(x):
    t = x * 2.0
    return t + 1.0


@kernel
def twice(x):
    r = x
    r += 1.0
    return r


@kernel
def inplace(a, x):
    a += x


def p_neg_pow(log, x):
    return NEG**2 + x**NEG - (NEG**TWO) - NEG


def p_tuple_swap(log, x):
    pair = Pair(x, 2.0)
    pair, y = Pair(5.0, 6.0), pair.a
    return y + pair.b


def p_target_order(log, x):
    log[int(push(log, 1.0))] = log[0]
    return log[0]


def p_reuse(log, x):
    a = bad(x) + good(x)
    return a + 10 * x


def p_idle_kernel(log, x):
    inplace(log, x)
    return log[0]


def p_idle_pointer(log, x):
    u = pointer(log, x)
    return log[0]


def p_alias(log, x):
    added, scaled = log + 0, log * 1
    added[0] = scaled[0] = 9.0
    return log[0]


def p_zero_inf(log, x):
    return 0 * (x * math.inf)


def p_negzero(log, x):
    return math.copysign(1.0, 0 + -0.0 * abs(x))


def p_boolint(log, x):
    return ~((x > 0.0) * 1)


def p_aug_sub(log, x):
    log[0] += push(log, x)
    return log[0]


def p_nested(log, x):
    return good(twice(good(x)) + twice(good(x) * (push(log, x) if x > 0 else good(2.0)))) + (
        push(log, 1.0) or push(log, 2.0)
    )


def p_slice(log, x):
    log[int(push(log, 1.0)) : 4] = x
    return log[0]


def p_loop_pair(log, x):
    for i in range(5):
        if i == 1:
            p = Pair(i, x)
    return p.a


@kernel
def opaque(pair):
    for i in range(3):
        if i == 1:
            return Pair(pair.b + i, pair.a)
    return Pair(pair.b, pair.a)


@kernel
def opaque2(pair):
    for i in range(3):
        if i == 1:
            return 2.0, Pair(pair.b + i, pair.a)
    return 1.0, Pair(pair.b, pair.a)


def p_opaque_loop(log, x):
    pair = opaque(Pair(x, 2.0))
    t = 0.0
    for i in range(3):
        t = 10 * t + pair.a
        pair = Pair(pair.b, pair.a + 1.0)
        t = 10 * t + pair.a
    return t


def p_opaque2(log, x):
    pair = Pair(x, 2.0)
    y, pair = opaque2(pair)
    return pair.a + 10 * pair.b + y


def p_nested_and_tuples(log, x):
    pair = swapped(Pair(early(x) + early(x - 20.0) * early(x * 5.0), 2.0))
    total = 0.0
    for _ in range(3):
        pair = Pair(pair.b, pair.a + 1.0)
        total = total * 10.0 + pair.a
    return total + apart(pair, x) + apart(swapped(pair), x)


def p_named_tuple_by_name(log, x):
    pair = Pair(b=push(log, x), a=push(log, 2.0 * x))
    return pair.a - 3.0 * pair.b + apart(Pair(b=pair.a, a=x), x)


PROGRAMS = [value for name, value in globals().items() if name.startswith("p_")]


def plain(function):
    """The function as Python runs it, without a compiler."""
    names = dict(globals())
    for name, piece in globals().items():
        if isinstance(piece, Dispatcher):
            names[name] = type(function)(piece.py_func.__code__, names, name)
    return type(function)(function.__code__, names, function.__name__)


def composed(program):
    """The composed text as a Python function: what is tested is the text, so Numba need not compile it."""
    text = compose(program, (numba.typeof(np.zeros(1)), numba.float64), kernels._Knowledge)
    names = {name: plain(each.py_func) if isinstance(each, Dispatcher) else each for name, each in text.names.items()}
    names["either"] = lambda test, a, b: a if test else b
    exec(text.text, names)
    return names[text.name]


def check_same(found, program, *values):
    for x in values:
        logs = np.zeros(20), np.zeros(20)
        np.testing.assert_equal(found(logs[0], x), plain(program)(logs[1], x))
        np.testing.assert_array_equal(*logs)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_text_does_what_python_does(program):
    check_same(composed(program), program, -3.0, 0.5, 2.5, 1000.0)


def test_a_text_is_compiled():
    entry = specialise(p_nested_and_tuples, "test")
    check_same(lambda log, x: call(entry, log, x), p_nested_and_tuples, -3.0, 2.5, 30.0)


def test_a_text_has_no_pieces_left():
    entry = specialise(p_order_in_a_tuple, "flat")
    composed = kernels.compose(entry.template, tuple(map(numba.typeof, (np.zeros(2), 1.0))), kernels._Knowledge)
    assert "push" not in composed.text
    assert list(composed.options) == [composed.name]


def stub(x):
    raise NotImplementedError


@overloads(stub)
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


@kernel
def clipped(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * min(max(delta, -1.0), 1.0))
    return v, delta, v_next


def test_rules_that_share_a_kernel_have_in_common_what_is_the_same():
    common = family._lined_up(family._uses(accumulate_td, 0), family._uses(clipped, 1))
    assert all(set(each.then) == {0, 1} for each in common)
    recalled = common[0].then
    assert set(recalled[1]) - set(recalled[0]) == {
        "chosen_learn_memory_a = transition.alpha * min(max(delta, -1.0), 1.0)"
    }
