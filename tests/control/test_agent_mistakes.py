"""Ties, which cut no trace, and mistakes that other agents made: `verify` finds each."""

from typing import Any

import numpy as np
import pytest

import trueonline as to
from tests.control.agent_streams import every_watkins, slipped
from tests.oracles import control as naive
from trueonline import forward


def chain(agent_class, initial) -> Any:
    """0 → 1 → 2 → 3 → the end with reward 1, always by action 0; γ = λ = 1, α = ½."""
    agent = agent_class(4, 2, 0.5, 1.0, 1.0, lambda q, rng, t: 0, initial_weights=initial)
    agent.start(0)
    for state in (1, 2, 3):
        agent.step(0.0, state)
    agent.end(1.0)
    return agent


@every_watkins
@pytest.mark.parametrize(("better", "tied"), [(0.0, True), (1e-13, True), (0.9e-10, True), (1e-8, False), (1e-3, False)])
def test_an_action_that_ties_for_the_best_is_greedy(agent_class, better, tied):
    initial = [[0, 0], [0, better], [0, 0], [0, 0]]
    weights = chain(agent_class, initial).weights
    assert weights[0, 0] == pytest.approx(0.5 if tied else better / 2.0, abs=1e-9)


@every_watkins
def test_ties_of_large_values_are_relative(agent_class):
    for better, tied in ((1e-3, True), (1.0, False)):
        initial = [[0, 0], [1e8, 1e8 + better], [0, 0], [0, 0]]
        agent = agent_class(4, 2, 0.5, 1.0, 1.0, lambda q, rng, t: 0, initial_weights=initial)
        agent.start(0)
        agent.step(0.0, 1)
        before = agent.weights[0, 0]
        agent.end(0.0)
        assert bool(abs(agent.weights[0, 0] - before) > 1.0) is tied


@every_watkins
def test_a_tie_is_bootstrapped_from_the_best(agent_class):
    """max_a Q, not the value of the tied action: the forward view completes its returns with that."""
    better = np.float64(0.9e-10)
    agent = agent_class(2, 2, 1.0, 0.0, 1.0, lambda q, rng, t: 0, initial_weights=[[0, 0], [0, better]])
    agent.start(0)
    agent.step(0.0, 1)
    assert agent.weights[0, 0] == better


# --- Planted in an agent, each mistake is found by `verify` ---------------------------------------


class Planted:
    """An oracle as an agent for `verify`, with one mistake or none."""

    oracle: Any = naive.AccumulateSarsa
    varying: Any = naive.AccumulateSarsa
    binary = False
    mistake = ""

    def __init__(self, n_features, n_actions, step_size, *, trace_decay, discount, policy, seed):
        alpha = step_size if callable(step_size) else lambda t: step_size
        kind = self.varying if callable(step_size) else self.oracle
        self.n = n_features
        self.inner = kind(n_features, n_actions, alpha, policy, np.random.default_rng(seed))

    @property
    def weights(self):
        return self.inner.w.reshape(self.n, -1)

    def dense(self, x):
        result = np.zeros(self.n)
        if isinstance(x, tuple):
            result[x[0]] = x[1]
        elif np.asarray(x).dtype.kind == "i":
            result[x] = 1.0
        else:
            result[:] = x
        return result

    def start(self, x):
        e, decay, q_old = (getattr(self.inner, name, 0.0) for name in ("e", "decay", "q_old"))
        self.inner.start(self.dense(x))
        if self.mistake == "trace kept across a start" and np.any(e):
            self.inner.e, self.inner.decay, self.inner.q_old = e, decay, q_old

    def step(self, reward, x_next, discount, trace_decay):
        inner = self.inner
        if self.mistake == "γ of the state entered":
            inner.decay = inner.decay and discount * trace_decay
        if self.mistake == "bootstraps from an action sampled again":
            executed, learn = [], inner.learn

            def again(at):
                executed.append(at.following)
                learn(at._replace(following=int(np.random.default_rng(inner.t).integers(inner.actions))))

            inner.learn = again
            inner.step(reward, self.dense(x_next), discount, trace_decay)
            inner.learn = learn
        elif self.mistake == "cuts on the current action":
            current = naive.is_greedy(inner.values(inner.x), inner.action)
            inner.step(reward, self.dense(x_next), discount, trace_decay)
            inner.e = inner.trace if current else np.zeros(len(inner.w))
        else:
            inner.step(reward, self.dense(x_next), discount, trace_decay)
            if self.mistake == "never cuts":
                inner.e = inner.trace

    def truncate(self, reward, x_next, discount):
        if self.mistake == "truncation as termination":
            self.inner.policy(self.inner.values(self.dense(x_next)), self.inner.rng, self.inner.t + 1)
            self.inner.end(reward)
        else:
            self.inner.truncate(reward, self.dense(x_next), discount)

    def end(self, reward):
        self.inner.end(reward)


SARSA = {"oracle": naive.TrueOnlineSarsa, "varying": naive.TrueOnlineSarsaVarying}
WATKINS_Q = {"oracle": naive.WatkinsQ, "varying": naive.WatkinsQ}
TRUE_WATKINS = {"oracle": naive.TrueOnlineWatkinsQ, "varying": naive.TrueOnlineWatkinsQVarying}
MISTAKES = [
    ("trace kept across a start", SARSA, forward.OnlineSarsaReturn),
    ("truncation as termination", SARSA, forward.OnlineSarsaReturn),
    ("bootstraps from an action sampled again", SARSA, forward.OnlineSarsaReturn),
    ("γ of the state entered", SARSA, forward.OnlineSarsaReturn),
    ("never cuts", WATKINS_Q, forward.WatkinsQSum),
    ("never cuts", TRUE_WATKINS, forward.OnlineWatkinsReturn),
    ("cuts on the current action", WATKINS_Q, forward.WatkinsQSum),
    ("cuts on the current action", TRUE_WATKINS, forward.OnlineWatkinsReturn),
]


@pytest.mark.parametrize(("mistake", "kind", "definition"), MISTAKES)
def test_verify_finds_each_mistake_in_an_agent(mistake, kind, definition):
    right, wrong = (type("Planted", (Planted,), {**kind, "mistake": made}) for made in ("", mistake))
    assert to.verify(right, definition, trials=1, steps=30).max_error < 1e-11
    assert to.verify(wrong, definition, trials=1, steps=30).max_error > 1e-4


@pytest.mark.parametrize("slip", ["carries A*", "no γ", "max in S"])
def test_verify_finds_what_is_printed_in_algorithm_5(slip):
    wrong = type("Planted", (Planted,), {"oracle": slipped(slip), "varying": naive.TrueOnlineWatkinsQVarying})
    assert to.verify(wrong, forward.OnlineWatkinsReturn, kinds=["dense"], trials=1, steps=30).max_error > 1e-4
