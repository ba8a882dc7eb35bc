"""Programs of which a composed text once made something else than Python does."""
# ruff: noqa

import math
from typing import Any, NamedTuple
import numba, numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from trueonline.core import kernels
from trueonline.core.compose import compose
from trueonline.core.kernels import kernel, outlined

pytestmark = pytest.mark.usefixtures("small_heap")

NEG = -3
TWO = 2
FLAG = True


class Pair(NamedTuple):
    a: Any
    b: Any


@kernel
def push(log, value):
    count = int(log[0]) + 1
    log[0] = count
    log[count] = value
    return log[0]


@kernel
def loop_push(log, value):
    for i in range(3):
        if i == 1:
            log[0] += value
            return log[0]
    return 0.0


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
def const_arg(p):
    return 0.0 if FLAG else p


@kernel
def inplace(a, x):
    a += x


@kernel
def setit(a, x):
    a[:] = x
    return 1.0


@kernel
def last_of(n):
    for i in range(n):
        if i == 2:
            found = i
    return found


@kernel
def early2(x, y):
    if x > 1.0:
        if y > 2.0:
            return 1.0
        x = y
    else:
        y = x
        if y < 0.0:
            return x
    x += y
    return x - 2 * y


@kernel
def opt(x):
    if x > 1.0:
        return
    push_nothing = x


def p_neg_pow(log, x):
    return NEG**2 + x**NEG


def p_neg_pow2(log, x):
    return -(NEG**TWO) + (NEG - NEG) - NEG


def p_found(log, x):
    for i in range(10):
        if i == 2:
            best = i
    return best + x


def p_last_of(log, x):
    return last_of(7) + x


def p_arg(log, x):
    y = x
    x = 5.0
    return y


def p_arg2(log, x):
    z = log[0] + 7.0
    if x > 1.0:
        x = z
    return x


def p_arg3(log, x):
    for _ in range(3):
        x = twice(x)
    return x


def p_multi(log, x):
    log[1] = b = log[1] + x
    return b


def p_multi2(log, x):
    a = b = loop_push(log, x)
    return a + 10 * b


def p_multi3(log, x):
    a = b = np.zeros(3)
    a[0] = x
    return b[0]


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


def p_idle_view(log, x):
    v = log[2:5]
    v += x
    return log[0]


def p_idle_inplace(log, x):
    log += x
    return 0.0


def p_idle_kernel(log, x):
    inplace(log, x)
    return log[0]


def p_idle_pointer(log, x):
    u = pointer(log, x)
    return log[0]


def p_const_arg(log, x):
    return const_arg(loop_push(log, 1.0)) + x


def p_alias0(log, x):
    c = log + 0
    c[0] = 9.0
    return log[0]


def p_alias1(log, x):
    c = log * 1
    c[0] = 9.0
    return log[0]


def p_zero(log, x):
    return (0 * log).sum() + x


def p_zero_inf(log, x):
    return 0 * (x * math.inf)


def p_negzero(log, x):
    return math.copysign(1.0, 0 + -0.0 * abs(x))


def p_kw(log, x):
    pair = Pair(b=x, a=2.0)
    return pair.a - pair.b


def p_kw2(log, x):
    return push(log, value=x)


def p_boolint(log, x):
    return ~((x > 0.0) * 1)


def p_early2(log, x):
    return early2(x, 3.0) + 10 * early2(3.0, x) + 100 * early2(x, x)


def p_opt(log, x):
    opt(x)
    return x


def p_chain(log, x):
    return 1.0 if 0.0 <= push(log, x) <= push(log, 2.0) < 3.0 else 2.0


def p_while(log, x):
    n = 0
    while push(log, x) < 5.0 and n < 10:
        n += 1
    return n


def p_aug_sub(log, x):
    log[0] += push(log, x)
    return log[0]


def p_aug_idx(log, x):
    log[int(push(log, x))] += push(log, 1.0)
    return log[0]


def p_nested(log, x):
    return good(twice(good(x)) + twice(good(x) * (push(log, x) if x > 0 else good(2.0)))) + (
        push(log, 1.0) or push(log, 2.0)
    )


def p_retalias(log, x):
    y = ident(x)
    return y


@kernel
def ident(a):
    return a


def p_tupidx(log, x):
    i = 0
    i, log[i] = 2, x
    return i


def p_swaparr(log, x):
    i, j = 1, 2
    log[i], log[j] = log[j] + x, log[i]
    return 0.0


def p_slice(log, x):
    log[int(push(log, 1.0)) : 4] = x
    return log[0]


def p_for_else(log, x):
    for i in range(3):
        if i > x:
            break
    else:
        i = 7
    return i


def p_loop_pair(log, x):
    for i in range(5):
        if i == 1:
            p = Pair(i, x)
    return p.a


def p_nested_pair(log, x):
    p = Pair(Pair(x, 1.0), 2.0)
    for i in range(3):
        p = Pair(Pair(p.b, p.a.a), p.a.b + i)
    return p.a.a + 10 * p.a.b + 100 * p.b


def p_iter_change(log, x):
    n = 3
    s = 0.0
    for i in range(n):
        n = n + 1
        s += i
    return s + n


def p_none(log, x):
    u = inplace2(log, x)
    return 1.0 if u is None else 2.0


@kernel
def inplace2(log, x):
    log[1] = x


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


def p_opaque(log, x):
    pair = Pair(x, 2.0)
    pair = opaque(pair)
    return pair.a + 10 * pair.b


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


@outlined
def comp(x):
    u = [x for _ in range(2)]
    return u[0]


def p_outl(log, x):
    return comp(x) + comp(x)


PROGRAMS = [value for name, value in list(globals().items()) if name.startswith("p_")]


def plain(function):
    names = dict(globals())
    for name, value in globals().items():
        if isinstance(value, Dispatcher):
            names[name] = type(function)(value.py_func.__code__, names, name)
    return type(function)(function.__code__, names)


def composed(program):
    """The composed text as a Python function: what is tested is the text, so Numba need not compile it."""
    text = compose(program, (numba.typeof(np.zeros(1)), numba.float64), kernels._Knowledge)
    names = {name: plain(each.py_func) if isinstance(each, Dispatcher) else each for name, each in text.names.items()}
    exec(text.text, names)
    return names[text.name]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_text_does_what_python_does(program):
    for x in (0.5, 2.5):
        logs = np.zeros(12), np.zeros(12)
        np.testing.assert_equal(composed(program)(logs[0], x), plain(program)(logs[1], x))
        np.testing.assert_array_equal(*logs)
