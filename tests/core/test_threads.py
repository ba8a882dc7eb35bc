"""Threads: one object in several of them, and arrays that another thread writes to during a call."""

import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

import trueonline as to
from trueonline import control
from trueonline.core.compiling.sources import parsed
from trueonline.core.thread_guard import ThreadGuarded, guarded

N = 1000
OUTSIDE = 2**40


@pytest.fixture(autouse=True)
def _short_turns():
    """Threads take turns as often as possible."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@contextmanager
def _writing(array, others):
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


def _in_threads(function, threads=4):
    with ThreadPoolExecutor(threads) as pool:
        for each in [pool.submit(function, number) for number in range(threads)]:
            each.result()


def _assert_whole(learner):
    """The learner can be used, and its state is one that could have been saved."""
    assert np.isfinite(learner.weights).all()
    again = learner.__reduce_ex__(4)[0](type(learner))
    again.__setstate__(learner.__getstate__())
    np.testing.assert_array_equal(again.weights, learner.weights)


def _learner():
    return to.TrueOnlineTD(N, 0.01, 0.9, 0.9)


@pytest.mark.parametrize("call", ["run", "predict_many"])
def test_a_stream_that_changes_during_a_call_is_refused_or_learned_from(call):
    rng = np.random.default_rng(0)
    good = np.array([rng.choice(N, 9, replace=False) for _ in range(3001)])
    X, learner, rewards = good.copy(), _learner(), np.ones(3000)
    learner.run(good, rewards)
    with _writing(X, (good, OUTSIDE, good[::-1], -1)):
        for _ in range(8):
            try:
                learner.run(X, rewards) if call == "run" else learner.predict_many(X)
            except ValueError:
                continue
    _assert_whole(learner)


@pytest.mark.parametrize("call", ["update", "predict", "start", "pairs", "step"])
def test_features_that_change_during_a_call_are_refused_or_learned_from(call):
    x, good = np.arange(40), np.arange(40)
    learner = control.TrueOnlineSarsa(N, 3, 0.01, 0.9, 0.9) if call == "step" else _learner()
    learner.start(good)
    values = np.ones(40)
    calls = {
        "update": lambda: learner.update(1.0, x),
        "pairs": lambda: learner.update(1.0, (x, values)),
        "predict": lambda: learner.predict(x),
        "start": lambda: (learner.start(x), learner.update(1.0, good)),
        "step": lambda: learner.step(1.0, x),
    }
    with _writing(x, (good, OUTSIDE, good[::-1], -1)):
        for _ in range(500):
            try:
                calls[call]()
            except ValueError:
                continue
    if call != "step":
        _assert_whole(learner)


@pytest.mark.parametrize(
    "x", [3, np.arange(9), (np.arange(9), np.ones(9)), np.full(N, 0.01)], ids=["state", "indices", "pair", "dense"]
)
def test_no_step_of_several_threads_is_lost(x):
    learner, steps = _learner(), 400
    learner.start(x)

    def learn(number):
        for _ in range(steps):
            learner.update(0.1, x, discount=0.5 if number else None)
            learner.predict(x)

    _in_threads(learn)
    assert learner.steps == 4 * steps
    _assert_whole(learner)


def test_runs_of_several_threads_follow_one_another():
    X, rewards = np.arange(2001) % N, np.ones(2000)
    learner, alone = _learner(), _learner()
    _in_threads(lambda _: learner.run(X, rewards, starts=X < 0))
    for _ in range(4):
        alone.run(X, rewards, starts=X < 0)
    np.testing.assert_array_equal(learner.weights, alone.weights)


def test_weights_are_read_between_two_steps():
    """A table whose entries are all set to the same value at each step."""
    n = 200_000
    learner = to.TrueOnlineTD(n, 1.0 / n, 0.0, 0.0)
    ones, wrong, stop = np.ones(n), [], threading.Event()
    learner.start(ones)

    def read():
        while not stop.is_set():
            weights = learner.weights
            wrong.append(not np.allclose(weights, weights[0]))

    reader = threading.Thread(target=read)
    reader.start()
    for t in range(300):
        learner.update(float(t), ones)
    stop.set()
    reader.join()
    assert wrong
    assert not any(wrong)


def test_a_call_from_within_a_call_does_not_wait():
    seen = []
    learner = to.TrueOnlineTD(3, lambda t: seen.append(learner.predict(0)) or 0.1, 0.9, 0.9)
    learner.start(0)
    learner.update(1.0, 1)
    learner.run([0, 1], [1.0])
    assert len(seen) >= 2


class Counter(ThreadGuarded):
    """Something whose calls must not overlap."""

    def __init__(self):
        self.inside = self.calls = 0

    @guarded
    def call(self):
        self.inside += 1
        time.sleep(0.0)
        assert self.inside == 1
        self.calls += 1
        self.inside -= 1

    @guarded
    def fail(self):
        raise KeyError


def test_guarded_calls_do_not_overlap():
    counter = Counter()
    _in_threads(lambda _: [counter.call() for _ in range(300)], threads=8)
    assert counter.calls == 2400


def test_a_call_that_fails_leaves_the_object_to_others():
    counter = Counter()
    with pytest.raises(KeyError):
        counter.fail()
    _in_threads(lambda _: counter.call())
    assert counter.calls == 4


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer that interrupts")
def test_a_signal_handler_waits_too_while_its_thread_waits():
    counter, running = Counter(), threading.Event()

    class Slow(Counter):
        @guarded
        def long(self):
            self.inside += 1
            running.set()
            time.sleep(0.3)
            self.inside -= 1

    counter = Slow()
    before = signal.signal(signal.SIGALRM, lambda *_: counter.call())
    worker = threading.Thread(target=counter.long)
    try:
        worker.start()
        running.wait()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        counter.call()  # the main thread waits here, and its handler comes
    finally:
        worker.join()
        signal.signal(signal.SIGALRM, before)
    assert counter.calls == 2


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_all_protocols_can_be_shared(protocol):
    assert pickle.loads(pickle.dumps(Counter(), protocol)).call() is None


class Calling(ThreadGuarded):
    """Something whose calls call another object, when all threads are in one."""

    def __init__(self, all_inside):
        self.all_inside, self.other, self.errors = all_inside, None, []

    @guarded
    def call(self):
        self.all_inside.wait()
        try:
            self.other.look()
        except RuntimeError as error:
            self.errors.append(str(error))

    @guarded
    def look(self):
        pass


@pytest.mark.parametrize("length", [2, 3])
def test_calls_that_wait_for_each_other_in_a_circle_end(length):
    all_inside = threading.Barrier(length)
    ring = [Calling(all_inside) for _ in range(length)]
    for each, following in zip(ring, ring[1:] + ring[:1], strict=True):
        each.other = following
    _in_threads(lambda number: ring[number].call(), threads=length)
    errors = [error for each in ring for error in each.errors]
    assert errors
    assert all("would wait for ever" in error for error in errors)
    for each in ring:
        each.look()  # nobody waits any more


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_call_is_said_in_the_child():
    inside, leave = threading.Event(), threading.Event()

    class Slow(Counter):
        @guarded
        def long(self):
            inside.set()
            leave.wait()

    busy, idle = Slow(), Slow()
    worker = threading.Thread(target=busy.long)
    worker.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        try:
            idle.call()
            busy.call()
        except RuntimeError as error:
            os._exit(7 if "forked" in str(error) and idle.calls == 1 else 8)
        os._exit(9)
    _, status = os.waitpid(child, 0)
    leave.set()
    worker.join()
    assert os.waitstatus_to_exitcode(status) == 7
    busy.call()


def test_threads_parse_texts_while_finalizers_let_others_in():
    """Python counts the depth of syntax trees for all threads together, and then raises SystemError."""

    class Circle:
        def __init__(self):
            self.itself = self

        def __del__(self):
            time.sleep(0)

    def parse(_):
        for _ in range(20):
            Circle()
            parsed("\n".join(f"x_{number} = f(a, [b, c + {number}])" for number in range(1000)))

    _in_threads(parse)
