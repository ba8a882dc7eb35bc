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


def test_indices_that_change_during_a_call_of_a_horde():
    rng = np.random.default_rng(0)
    good = np.array([rng.choice(N, 9, replace=False) for _ in range(T + 1)])
    horde = Horde(N, [Question("a", 0.9), Question("b", 0.5, method="accumulate", step_size=0.01)])
    X, x, C, starts = good.copy(), good[0].copy(), np.ones((T, 2)), np.arange(T + 1) == 0
    horde.run(good, C)
    with writing(X, good, 2**40, good[::-1], -(2**40)), writing(x, good[0], 2**40, good[1], -(2**40)):
        attempts(lambda: horde.run(X, C, starts=starts), 20)
        attempts(lambda: horde.update(C[0], x), 200)
        attempts(lambda: horde.predict(x), 200)
    again = Horde(N, horde.questions)
    again.restore(horde.state())
    assert np.isfinite(again.weights("a")).all()


def test_indices_that_change_during_a_call_of_a_mixture():
    experts = [Expert("hold"), Expert("hold", "tiles", step_size=0.3, trace_decay=0.9)]
    mixture = Mixture([FeatureSet("tiles", N, 1)], experts, ["hold"])
    good = np.random.default_rng(0).integers(N, size=(T, 1))
    X, values = good.copy(), np.sin(np.arange(float(T)))
    mixture.run(good, values, values[:, None], 0.5)
    with writing(X, good, 2**40, good[::-1], -(2**40)):
        attempts(lambda: mixture.run(X, values, values[:, None], 0.5), 40)
    again = Mixture([FeatureSet("tiles", N, 1)], experts, ["hold"])
    again.restore(mixture.state())
    assert np.isfinite(again.weights).all()


def in_threads(function, threads=4):
    with ThreadPoolExecutor(threads) as pool:
        for each in [pool.submit(function) for _ in range(threads)]:
            each.result()


def test_threads_may_share_a_horde():
    horde = Horde(N, [Question("a", 0.9), Question("b", 0.5)])
    rng = np.random.default_rng(0)
    x = [rng.choice(N, 9, replace=False) for _ in range(50)]
    horde.start(x[0])
    C = np.ones(2)

    def work():
        for t in range(500):
            horde.update(C, x[t % 50])
            horde.predict(x[t % 50])

    in_threads(work)
    assert horde.steps == 2000
    again = copy.deepcopy(horde)
    np.testing.assert_array_equal(again.predict(x[3]), horde.predict(x[3]))
    assert np.isfinite(again.update(C, x[4])).all()


def test_threads_may_share_a_mixture():
    experts = [Expert("hold"), Expert("hold", "tiles", step_size=0.3, trace_decay=0.9)]
    mixture = Mixture([FeatureSet("tiles", N, 1)], experts, ["hold"])
    X, values = np.arange(50)[:, None], np.sin(np.arange(50.0))
    in_threads(lambda: [mixture.run(X, values, values[:, None], 0.5) for _ in range(50)])
    assert mixture.samples == 4 * 50 * 50
    again = copy.deepcopy(mixture)
    np.testing.assert_array_equal(
        again.run(X, values, values[:, None], 0.5), mixture.run(X, values, values[:, None], 0.5)
    )
