"""The published program: its random numbers, its learner and its episodes.

The oracle is written from the rules in `published.py`. Random numbers are those of the C library.
"""

from __future__ import annotations

import ctypes
import platform

import numpy as np
import pytest

from tests.control.atari.consoles import LEARNERS, follow, recorded
from trueonline.control import atari
from trueonline.control.atari import published
from trueonline.control.atari.players import PublishedPlayer


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
@pytest.mark.parametrize("seed", [0, 1, 2, 7, 1234567, 2**31 - 1, 2**31, 2**31 + 12345, 2**32 - 1])
def test_random_numbers_are_those_of_the_c_library(seed):
    libc = ctypes.CDLL("libc.so.6")
    libc.srand(ctypes.c_uint(seed))
    expected = [libc.rand() for _ in range(4000)]
    state = published.seeded(seed)
    assert [int(published.rand(state)) for _ in range(4000)] == expected
    state = published.seeded(seed)
    assert [int(published.rand.py_func(state)) for _ in range(100)] == expected[:100]


# --- The published program ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played(background):
    """Three episodes by the program's protocol, with all that the player was told."""
    settings = atari.AtariSettings(protocol="published", step_size=2.0, trace_decay=0.95, seed=1, episodes=3)
    return recorded(settings, background)


class Program:
    """The published program's learner: eager, dense, one number after the other; from the rules in `published.py`.

    `skipped` counts the dutch increments left out, `silent` the steps without learning.
    """

    def __init__(self, method, features, actions, step_size, trace_decay, discount, epsilon, seed, *, scaled):
        self.method, self.scaled = method, scaled
        self.step_size, self.gamma, self.lam, self.one_in = step_size, discount, trace_decay, round(1 / epsilon)
        self.w, self.e = np.zeros((actions, features)), np.zeros((actions, features))
        self.random, self.largest = published.seeded(seed), 1
        for _ in range(published.SKIPPED):
            self.rand()
        self.skipped = self.silent = 0
        self.stopped = False

    def rand(self):
        return int(published.rand.py_func(self.random))

    def q(self, x):
        values = []
        for weights in self.w:
            total = 0.0
            for i in x:
                total += float(weights[i])
            values.append(total)
        return values

    def choose(self, q):
        tied = [a for a, value in enumerate(q) if abs(value - max(q)) < 1e-10]
        action = tied[self.rand() % len(tied)]
        if self.rand() % self.one_in == 0:
            action = self.rand() % len(q)
        return action

    def start(self, x):
        self.e[:] = 0.0
        q = self.q(x)
        self.x, self.action = x, self.choose(q)
        self.q_old = q[self.action]
        return self.action

    def end(self, reward):
        self.learn(reward, None)

    def step(self, reward, x_next):
        return self.learn(reward, x_next)

    def learn(self, reward, x_next):
        q = self.q(self.x)
        sound = all(abs(value) <= 1e8 for value in q)
        if not sound and self.method == "true_online":
            self.stopped = True
            return None
        action_next, value_next = 0, 0.0
        if x_next is not None:
            q_next = self.q(x_next)
            action_next = self.choose(q_next)
            value_next = q_next[action_next]
        self.largest = max(self.largest, len(self.x))
        alpha = self.step_size / self.largest if self.scaled else self.step_size
        delta = reward + self.gamma * value_next - q[self.action]
        here = self.action, self.x
        if not sound:
            self.silent += 1
        elif self.method == "true_online":
            along = 0.0
            for i in self.x:
                along += float(self.e[self.action, i])
            if 1 - alpha * along > 0.01:
                self.e[here] = self.e[here] + (1 - alpha * along)
            else:
                self.skipped += 1
            change = q[self.action] - self.q_old
            self.w += (alpha * (delta + change)) * self.e
            self.w[here] = self.w[here] - alpha * change
            self.decay()
        else:
            self.decay()
            self.e[here] = self.e[here] + 1.0 if self.method == "accumulate" else 1.0
            self.w += (alpha * delta) * self.e
        self.action, self.q_old = action_next, value_next
        self.x = self.x if x_next is None else x_next
        return action_next

    def decay(self):
        self.e *= self.gamma * self.lam
        self.e[self.e < 0.01] = 0.0


def made_up(seed, steps=400, features=12, episodes=4, reward=1.0):
    """A stream over few features, many of which are active again and again."""
    rng = np.random.default_rng(seed)

    def x():
        return np.sort(rng.choice(features, rng.integers(1, features // 2), replace=False))

    said = []
    for _ in range(episodes):
        said.append(("start", x()))
        said += [("step", float(rng.normal() * reward), x()) for _ in range(steps // episodes)]
        said.append(("end", float(rng.normal())))
    return said


@pytest.mark.parametrize("method", LEARNERS)
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("step_size", "trace_decay"), [(2.0, 0.99), (0.5, 0.9), (0.1, 0.0), (0.05, 1.0)])
def test_the_program_s_learner_is_repeated_on_streams_where_its_rules_matter(method, scaled, step_size, trace_decay):
    said = made_up(1)
    numbers = (step_size, trace_decay, 0.999, 0.01, 9)
    program, ours = (make(method, 12, 3, *numbers, scaled=scaled) for make in (Program, PublishedPlayer))
    weights = [], []
    for teller, player, seen in ((program, program, weights[0]), (ours, ours, weights[1])):
        answers = []
        for name, *arguments in said:
            answers.append(getattr(player, name)(*arguments))
            seen.append(player.w.copy() if player is ours else player.w.T.copy())
            if program.stopped and len(weights[0]) == len(seen):
                break
        teller.answers = answers
    if program.stopped:
        assert ours.diverged
        weights[0].pop(), weights[1].pop()
        program.answers.pop(), ours.answers.pop()
    assert ours.answers == program.answers
    for theirs, our in zip(*weights, strict=True):
        np.testing.assert_array_equal(our, theirs)


def test_the_dutch_increment_is_left_out_where_it_is_small_or_negative():
    """1 − α eᵀφ: on the second visit of both features 1 − 0.5·(γλ + γλ) = 0.001 for γλ = 0.999, on another 1 − 0.4995."""
    numbers = (0.5, 1.0, 0.999, 0.01, 3)
    program, ours = (make("true_online", 4, 1, *numbers, scaled=False) for make in (Program, PublishedPlayer))
    both, one = np.array([0, 1]), np.array([1, 2])
    said = [("start", both), ("step", 1.0, both), ("step", 1.0, one), ("step", 1.0, both), ("end", 1.0)]
    follow(program, said[:3])
    assert program.skipped == 1
    follow(program, said[3:])
    assert 1 <= program.skipped < 4
    follow(ours, said)
    np.testing.assert_array_equal(ours.w, program.w.T)
    np.testing.assert_array_equal(ours.e, program.e.T)


@pytest.mark.parametrize("method", ["accumulate", "replace"])
def test_where_values_have_diverged_the_program_does_not_learn_at_that_step(method):
    said = made_up(2, reward=1e6)
    numbers = (40.0, 0.9, 0.999, 0.01, 4)
    program, ours = (make(method, 12, 3, *numbers, scaled=False) for make in (Program, PublishedPlayer))
    silent = []
    for name, *arguments in said:
        before = ours.w.copy(), ours.e.copy(), program.silent
        assert getattr(program, name)(*arguments) == getattr(ours, name)(*arguments)
        np.testing.assert_array_equal(ours.w, program.w.T)
        if program.silent > before[2]:
            silent.append(name)
            np.testing.assert_array_equal(ours.w, before[0])
            np.testing.assert_array_equal(ours.e, before[1])
    assert 0 < len(silent) < len(said)
    assert not ours.diverged, "the program goes on"


def test_where_values_have_diverged_true_online_stops():
    said = made_up(2, reward=1e6)
    numbers = (40.0, 0.9, 0.999, 0.01, 4)
    program, ours = (make("true_online", 12, 3, *numbers, scaled=False) for make in (Program, PublishedPlayer))
    for name, *arguments in said:
        weights = ours.w.copy()
        theirs, our = getattr(program, name)(*arguments), getattr(ours, name)(*arguments)
        assert ours.diverged == program.stopped
        if program.stopped:
            break
        assert our == theirs
    assert program.stopped
    np.testing.assert_array_equal(ours.w, weights)


@pytest.mark.parametrize(("gap", "tied"), [(0.0, True), (5e-11, True), (5e-10, False)])
def test_the_program_takes_values_within_1e_10_for_equal(gap, tied):
    player = PublishedPlayer("true_online", 1, 3, 0.1, 0.9, 0.999, 1e-9, 1, scaled=True)
    player.w[0] = [1.0, 1.0 + gap, 0.5]
    assert {player.start(np.array([0])) for _ in range(60)} == ({0, 1} if tied else {1})


def test_the_program_s_rewards_are_measured_by_the_first_one(played):
    """Asterix gives 50 points at first; later ones are worth as many fiftieths."""
    rewards = [said[1] for said in played.player.said if said[0] in ("step", "end")]
    assert sum(rewards) * 50 == sum(score for score, _ in played.episodes)
    assert next(filter(None, rewards)) == 1.0
