"""Threads that share a horde or a mixture, and arrays that another thread writes to during a call."""

import copy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from trueonline.streams import Expert, FeatureSet, Horde, Mixture, Question

N, T = 500, 1000


@pytest.fixture(autouse=True)
def _short_turns():
    """Threads take turns as often as possible."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@contextmanager
def writing(array, *others):
    """Another thread writes these values into the array, one after the other, again and again."""
    stop = threading.Event()

    def write():
        while not stop.is_set():
            for other in others:
                array[...] = other

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def attempts(function, times):
    for _ in range(times):
        try:
            function()
        except ValueError:
            continue


def a_horde():
    """A horde, what it learns from, and calls of it."""
    rng = np.random.default_rng(0)
    X = np.array([rng.choice(N, 9, replace=False) for _ in range(T + 1)])
    C, starts = np.ones((T, 2)), np.arange(T + 1) == 0
    calls = [
        lambda it, X: it.run(X, C, starts=starts),
        lambda it, X: it.update(C[0], X[0]),
        lambda it, X: it.predict(X[0]),
    ]
    return Horde(N, [Question("a", 0.9), Question("b", 0.5, method="accumulate", step_size=0.01)]), X, calls


def a_mixture():
    """The same of a mixture."""
    experts = [Expert("hold"), Expert("hold", "tiles", step_size=0.3, trace_decay=0.9)]
    X, values = np.random.default_rng(0).integers(N, size=(T, 1)), np.sin(np.arange(float(T)))
    return Mixture([FeatureSet("tiles", N, 1)], experts, ["hold"]), X, [
        lambda it, X: it.run(X, values, values[:, None], 0.5)
    ]  # fmt: skip


def numbers(it):
    return it.weights("a") if isinstance(it, Horde) else it.weights


@pytest.mark.parametrize("made", [a_horde, a_mixture])
def test_indices_may_change_during_a_call(made):
    it, good, calls = made()
    calls[0](it, good)
    X = good.copy()
    with writing(X, good, 2**40, good[::-1], -(2**40)):
        for call in calls:
            attempts(lambda call=call: call(it, X), 40)
    again = made()[0]
    again.restore(it.state())
    assert np.isfinite(numbers(again)).all()


@pytest.mark.parametrize("made", [a_horde, a_mixture])
def test_threads_may_share_it(made):
    """All do the same, so whose turn it is makes no difference."""
    (it, X, calls), (alone, _, _) = made(), made()
    for each in (it, alone):
        calls[0](each, X)

    def work(it):
        for call in (calls[0], calls[-1]) * 10:
            call(it, X)

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(work, it) for _ in range(4)]:
            each.result()
    for _ in range(4):
        work(alone)
    np.testing.assert_array_equal(numbers(it), numbers(alone))
    again = copy.deepcopy(it)
    np.testing.assert_array_equal(calls[-1](again, X), calls[-1](it, X))
    assert np.isfinite(numbers(again)).all()
