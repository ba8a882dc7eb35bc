"""Threads that share a learner or an agent, and threads that write into the indices that a call reads."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import trueonline as to
from tests.hostile import FINE, REFUSED, PromiseError

PROMISE = "Threads that share a learner lose no step, and indices that change during a call are refused or learned from."
TRIALS = 300
N, STEPS = 50, 200
LEARNERS = ("TrueOnlineTD", "AccumulateTD", "EmphaticTD", "SwiftTD")


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns as often as possible
    try:
        return rng.choice([shared_updates, shared_agent, changing_indices])(rng)
    finally:
        sys.setswitchinterval(usual)


def learner_of(rng: random.Random) -> Any:
    return getattr(to, rng.choice(LEARNERS))(N, step_size=0.01, trace_decay=0.8, discount=0.9)


def rows(rng: random.Random, length: int) -> np.ndarray:
    """Indices of three active features."""
    return np.array([rng.sample(range(N), 3) for _ in range(length)])


def together(*works: Callable[[], None]) -> None:
    """Do the works in threads, all at once. An error in one of them is raised here."""
    errors: list[BaseException] = []

    def work(each: Callable[[], None]) -> None:
        try:
            each()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def shared_updates(rng: random.Random) -> str:
    learner, X, threads = learner_of(rng), rows(rng, STEPS), rng.randrange(2, 6)
    learner.start(X[0])

    def learn() -> None:
        for x in X:
            learner.update(1.0, x)
            _ = learner.weights

    together(*[learn] * threads)
    if learner.steps != threads * STEPS:
        raise PromiseError(f"{threads * STEPS - learner.steps} of {threads * STEPS} steps were lost")
    if not np.isfinite(learner.weights).all():
        raise PromiseError("the weights are not finite")
    return FINE


def shared_agent(rng: random.Random) -> str:
    kind = rng.choice([to.control.TrueOnlineSarsa, to.control.WatkinsQ])
    agent, X, threads = kind(N, 2, 0.01, 0.8, 0.9, seed=0), rows(rng, STEPS), rng.randrange(2, 6)
    agent.start(X[0])

    def act() -> None:
        for x in X:
            agent.step(1.0, x)

    together(*[act] * threads)
    if agent.steps != threads * STEPS or not np.isfinite(agent.weights).all():
        raise PromiseError(f"{agent.steps} of {threads * STEPS} steps, with weights {agent.weights}")
    return FINE


def changing_indices(rng: random.Random) -> str:
    learner, good = learner_of(rng), rows(rng, STEPS + 1)
    X, stop, refused = good.copy(), threading.Event(), []
    others = [good, rng.choice([N, 2**31, 2**40, -1, -(2**40)]), good[::-1]]

    def write() -> None:
        while not stop.is_set():
            for other in others:
                X[...] = other

    def learn() -> None:
        try:
            for _ in range(30):
                try:
                    learner.run(X, np.ones(STEPS))
                    learner.predict(X[0])
                except ValueError as error:
                    refused.append(str(error))
        finally:
            stop.set()

    together(write, learn)
    if not np.isfinite(learner.weights).all() or any(not why.strip() for why in refused):
        raise PromiseError("indices that changed during a call have done harm")
    return REFUSED if refused else FINE
