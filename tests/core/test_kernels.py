"""Compiled entry points: specialised by method, never compiling behind the caller's back, safe in threads."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba.core.registry import cpu_target

from trueonline.core.compiling import kernel_cache
from trueonline.core.compiling.kernels import call, kernel, specialise


@pytest.fixture(autouse=True)
def _compiled_here(tmp_path, monkeypatch):
    """Nothing is loaded that an earlier run has compiled."""
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)


@kernel
def double(x):
    return 2.0 * x


@kernel
def triple(x):
    return 3.0 * x


method = double


def template(array):
    total = 0.0
    for i in range(array.size):
        total += method(array[i])
    return total


def test_a_name_that_a_template_does_not_have_is_refused():
    with pytest.raises(TypeError, match="template has no placeholder 'cached'"):
        specialise(template, "cached", cached=False, method=double)


def test_a_template_is_compiled_with_each_method():
    entries = [specialise(template, each.py_func.__name__, method=each) for each in (double, triple)]
    assert [call(entry, np.ones(4)) for entry in entries] == [8.0, 12.0]


def test_numba_is_as_it_was_after_a_kernel_was_compiled_or_refused():
    context = cpu_target.typing_context
    before = context.resolve_function_type
    assert call(specialise(template, "method"), np.ones(2)) == 4.0
    with pytest.raises(ValueError, match="cannot be compiled"):
        call(specialise(template, "method"), "text")
    assert gc.isenabled()
    assert context.resolve_function_type == before


def test_an_entry_point_never_compiles_by_itself():
    entry = specialise(template, "quiet", method=double)
    with pytest.raises(TypeError):
        entry(np.ones(3))
    call(entry, np.ones(3))
    assert entry(np.ones(3)) == 6.0
    for other in (np.ones(3, np.float32), np.ones((3, 3)), np.ones(6)[::2], [1.0], None, "x"):
        with pytest.raises(TypeError):
            entry(other)


def test_threads_may_need_different_types_at_the_same_time():
    entry = specialise(template, "threads", method=triple)
    given = [np.ones(5, dtype) for dtype in (np.float64, np.float32, np.int64)] * 4
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda array: call(entry, array), given))
    assert found == [15.0] * len(given)
    assert len(entry.overloads) == 3


@kernel
def spoken(x):
    print("half of", x)
    return 0.5 * x


@kernel
def speaking(x):
    return spoken(x)


def test_a_piece_may_print_whoever_calls_it(capfd):
    """Texts come from the environment of a piece, which is there although the piece is not compiled on its own."""

    @numba.njit
    def user(x):
        return speaking(x)

    assert [speaking(4.0), user(6.0), call(specialise(template, "spoken", method=spoken), np.ones(1))] == [2, 3, 0.5]
    assert capfd.readouterr().out.split("\n") == ["half of 4.0", "half of 6.0", "half of 1.0", ""]


@kernel
def is_even(n):
    return True if n == 0 else is_odd(n - 1)


@kernel
def is_odd(n):
    return False if n == 0 else is_even(n - 1)


def test_pieces_may_call_each_other():
    @numba.njit
    def user(n):
        return is_even(n)

    assert [user(n) for n in range(4)] == [True, False, True, False]


def parity(n):
    return method(n)


def test_pieces_that_call_each_other_are_not_kept_on_disk(tmp_path, monkeypatch):
    """Another process would call the addresses of this one."""
    monkeypatch.setattr("trueonline.core.compiling.kernel_cache.cache_folder", lambda: tmp_path)
    assert call(specialise(parity, "is_even", method=is_even), 4)
    assert not list(tmp_path.iterdir())
    assert call(specialise(parity, "abs", method=abs), 4) == 4
    assert len(list(tmp_path.iterdir())) == 1
