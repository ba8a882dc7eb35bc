"""The memory against eager vectors, through the operations that methods use."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueonline.core import memory
from trueonline.core.compiling.kernels import call, specialise
from trueonline.core.forms import view
from trueonline.core.memory import attach_one, decay, imprint, learn, recall, replace, scale, settle
from trueonline.core.memory.layout import COUNT, DENSE, SPARE, parts

N = 7
ONE = np.ones(1)


def operations(numbers, places, x, values, g, a, b, c, replacing, scaling):
    m = attach_one(numbers, places)
    features = view(x, values)
    found = recall(m, features, features)
    decay(m, g)
    scale(m, scaling)
    if replacing:
        replace(m, features)
    else:
        imprint(m, features, a, b)
    learn(m, c)
    scale(m, scaling)
    settle(m, features)
    return found


ENTRY = specialise(operations, "memory")


def one_step(numbers, places, x, values, g, a, b, c, replacing, scaling=1.0):
    return call(ENTRY, numbers, places, x, values, g, a, b, c, replacing, scaling)


def step(form, buffers, x, *numbers):
    indices = np.flatnonzero(x)
    given = {"dense": (x, None), "pairs": (indices, x[indices]), "active": (indices, np.ones(1))}[form]
    memory.lay_out(only(buffers), form == "dense")
    return one_step(*buffers, *given, *numbers)


def only(buffers):
    """The one memory in these buffers."""
    return memory.each(buffers)[0]


def assert_sound(buffers):
    """Every listed entry knows its place, no entry is listed twice, and slot 0 stays zero."""
    head = only(buffers).numbers
    _, z, y, slot, owner = parts(only(buffers))
    assert z[0] == 0.0
    assert y[0] == 0.0
    if not head[DENSE]:
        count = int(head[COUNT])
        np.testing.assert_array_equal(slot[owner[1 : count + 1]], np.arange(1, count + 1))
        assert np.count_nonzero(slot) == count


decays = st.sampled_from([0.0, 1e-9, 0.05, 0.5, 0.9, 1.0])
amounts = st.floats(-2.0, 2.0).map(lambda value: round(value, 3))
steps = st.tuples(
    st.sampled_from(["dense", "pairs", "active"]),
    st.lists(st.booleans(), min_size=N, max_size=N),
    st.booleans(),
    decays,
    amounts,
    amounts,
    amounts,
    st.booleans(),
    st.sampled_from([1.0, 0.9, -0.5, 0.0, 1e-130]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, min_size=1, max_size=40), st.booleans())
def test_any_sequence_of_operations_equals_eager_vectors(sequence, one_form):
    buffers = memory.allocate(N)
    e, w = np.zeros(N), np.zeros(N)
    values = np.linspace(-1.5, 2.0, N) + 0.1
    for own_form, mask, real, g, a, b, c, replacing, scaling in sequence:
        form = sequence[0][0] if one_form else own_form
        x = np.array(mask, float) * (values if real and form != "active" and not replacing else 1.0)
        expected = w @ x, e @ x, w @ x
        e, w = g * e, scaling * w
        if replacing:
            e[x == 1.0] = 1.0
        else:
            e, w = e + a * x, w + b * x
        w = scaling * (w + c * e)
        found = step(form, buffers, x, g, a, b, c, replacing, scaling)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(memory.trace(only(buffers)), e, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(memory.weights(only(buffers)), w, rtol=1e-11, atol=1e-11)
        assert_sound(buffers)


def test_faded_entries_leave_the_list():
    n, steps = 20_000, 5_000
    buffers = memory.allocate(n)
    rng = np.random.default_rng(1)
    longest = 0
    for _ in range(steps):
        one_step(*buffers, rng.choice(n, size=3, replace=False), ONE, 0.8, 1.0, 0.0, 0.01, False)
        longest = max(longest, int(only(buffers).numbers[COUNT]))
    # 0.8^206 < 1e-20: at most 3 · 206 entries matter, the list may double before it is looked through, and it is looked
    # through only when it is rebased, every 21 steps.
    assert longest <= 2 * 3 * (206 + 21) + SPARE + 3 * 21
    assert longest > 3 * 206 / 2, "entries must not leave while they matter"
    assert_sound(buffers)


def test_an_entry_that_cancels_to_zero_is_not_listed_twice():
    buffers = memory.allocate(3)
    x = np.array([1])
    one_step(*buffers, x, ONE, 1.0, 1.0, 0.0, 0.5, False)
    one_step(*buffers, x, ONE, 1.0, -1.0, 0.0, 0.5, False)  # e = 0 exactly, as the dutch trace at α = 2 has it
    one_step(*buffers, x, ONE, 1.0, 1.0, 0.0, 0.5, False)
    assert_sound(buffers)
    np.testing.assert_array_equal(memory.trace(only(buffers)), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(memory.weights(only(buffers)), [0.0, 1.0, 0.0])


def test_what_entries_left_behind_on_the_list_is_no_trace():
    buffers = memory.allocate(2)
    one_step(*buffers, np.array([1]), ONE, 0.5, 1.0, 0.0, 0.3, False)
    one_step(*buffers, np.array([], np.int64), ONE, 0.0, 1.0, 0.0, 0.5, False)  # e ← 0: the list is empty
    before = memory.weights(only(buffers))
    memory.lay_out(only(buffers), True)
    one_step(*buffers, np.array([1.0, 0.0]), None, 1.0, 1.0, 0.0, 0.7, False)
    np.testing.assert_allclose(memory.trace(only(buffers)), [1.0, 0.0])
    np.testing.assert_allclose(memory.weights(only(buffers)), before + np.array([0.7, 0.0]))


def test_divergence_stays_visible():
    buffers = memory.allocate(4)
    one_step(*buffers, np.array([0, 1]), ONE, 0.5, 1.0, 0.0, np.inf, False)
    for _ in range(200):  # long enough for many rebases
        one_step(*buffers, np.array([2]), ONE, 0.5, 1.0, 0.0, 0.1, False)
    assert not np.isfinite(memory.weights(only(buffers))[:2]).any()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda saved: saved.update(u=saved["u"][1:]),
        lambda saved: saved.update(head=saved["head"][1:]),
        lambda saved: saved.update(z=saved["z"][1:]),
        lambda saved: saved.update(y=saved["y"][1:]),
        lambda saved: saved.update(owner=saved["owner"] + N),
        lambda saved: saved.update(owner=saved["owner"] * 0),
        lambda saved: saved.update(owner=saved["owner"].astype(float)),
    ],
)
def test_parts_that_do_not_fit_are_refused(spoil):
    buffers = memory.allocate(N)
    one_step(*buffers, np.array([1, 4]), ONE, 0.5, 1.0, 0.0, 0.1, False)
    saved = memory.dump(only(buffers))
    spoil(saved)
    with pytest.raises(ValueError, match=r"its \w+ does not fit"):
        memory.rebuild(only(memory.allocate(N)), saved)


def test_vectors_begin_at_cache_lines():
    for n in (1, 7, 8, 9, 1000):
        u, z, y, *_ = parts(only(memory.allocate(n)))
        assert (u.ctypes.data % 64, z[1:].ctypes.data % 64, y[1:].ctypes.data % 64) == (0, 0, 0)
        assert (len(u), len(z), len(y)) == (n, n + 1, n + 1)
