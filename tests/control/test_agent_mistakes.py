"""Mistakes that other agents made: these do not make them, and `verify` finds each."""

from typing import Any

import numpy as np
import pytest

import trueonline as to
from tests.control.agent_streams import SARSA_OF, SARSAS, every_agent, every_watkins, slipped
from tests.oracles import control as naive
from trueonline import forward


@pytest.mark.parametrize("agent_class", SARSAS)
def test_sarsa_bootstraps_from_the_action_that_is_executed(agent_class):
    for seed in range(5):
        calls = []

        def policy(values, rng, t, calls=calls):
            calls.append(int(rng.integers(3)))
            return calls[-1]

        agent = agent_class(2, 3, 0.5, 0.0, 1.0, policy, seed=seed, initial_weights=[[0, 0, 0], [10, 20, 30]])
        first = agent.start(0)
        action = agent.step(0.0, 1)
        assert calls == [first, action], "one choice for each state, and it is the one that is returned"
        assert agent.action == action
        assert agent.weights[0, first] == 0.5 * (10, 20, 30)[action]
        agent.end(100.0)
        assert agent.weights[1, action] == 0.5 * ((10, 20, 30)[action] + 100.0), "the executed action is taught"
        assert len(calls) == 2, "at the end nothing is chosen"
        assert agent.action is None


@every_agent
def test_truncation_is_not_termination(agent_class):
    """Q = 1, max Q' = Q' = 10, R = 0 and γ = 0.9: δ = 0.9·10 − 1 where the episode is cut, and 0 − 1 where it ends."""

    def new():
        agent = agent_class(2, 1, 0.5, 0.9, 0.9, initial_weights=[[1], [10]])
        agent.start(0)
        return agent

    cut, ended, at_zero = new(), new(), new()
    cut.truncate(0.0, 1)
    ended.end(0.0)
    at_zero.step(0.0, 1, discount=0.0)
    np.testing.assert_allclose(cut.weights[:, 0], [5.0, 10.0])
    np.testing.assert_allclose(ended.weights[:, 0], [0.5, 10.0])
    np.testing.assert_allclose(at_zero.weights[:, 0], [0.5, 10.0])
    for agent in (cut, ended):
        assert agent.action is None
        for attempt in (lambda: agent.step(0.0, 1), lambda: agent.end(0.0), lambda: agent.truncate(0.0, 1)):  # noqa: B023
            with pytest.raises(RuntimeError, match="no episode has begun"):
                attempt()


@every_agent
def test_no_trace_outlives_an_episode_that_is_left(agent_class):
    """What comes after a start is learned as by a new agent with the same weights: no trace, and no Q_old."""
    rng = np.random.default_rng(3)
    X = [rng.choice(8, 3, replace=False) for _ in range(30)]
    agent = agent_class(8, 3, 0.1, 0.9, 0.95, lambda values, rng, t: 1)
    agent.start(X[0])
    for x in X[1:11]:
        agent.step(1.0, x)
    before = agent.weights
    agent.start(X[10])
    np.testing.assert_array_equal(agent.trace, 0.0)
    other = agent_class(8, 3, 0.1, 0.9, 0.95, lambda values, rng, t: 1, initial_weights=before)
    other.start(X[10])
    for x in X[11:]:
        agent.step(-1.0, x)
        other.step(-1.0, x)
        np.testing.assert_allclose(agent.weights, other.weights, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(agent.trace, other.trace, rtol=1e-12, atol=1e-14)
    assert np.abs(agent.weights - before).max() > 0.01


def chain(agent_class, actions, initial, *, lam=1.0, n_actions=2) -> Any:
    """0 → 1 → 2 → 3 → the end with reward 1, taking these actions; γ = 1, α = ½."""
    agent = agent_class(4, n_actions, 0.5, lam, 1.0, lambda q, rng, t: actions[t], initial_weights=initial)
    agent.start(0)
    for state in (1, 2, 3):
        agent.step(0.0, state)
    agent.end(1.0)
    return agent


@every_watkins
def test_the_trace_is_cut_when_the_next_action_is_not_greedy(agent_class):
    """In state 2 the best action is 1, worth 4: taking action 0 there cuts (0, 0) and (1, 0) off from what follows."""
    initial = [[0, 0], [0, 0], [0, 4], [0, 0]]
    cut = chain(agent_class, [0, 0, 0, 0], initial).weights
    # Into 2: δ = 4 teaches (1, 0) and, with λ = 1, (0, 0). The reward at the end teaches (2, 0) and (3, 0) alone.
    np.testing.assert_allclose(cut, [[2.0, 0.0], [2.0, 0.0], [0.5, 4.0], [0.5, 0.0]])
    # Greedy all the way: the last reward, δ = 1, and the drop of 4 on leaving 2 reach back to 0.
    whole = chain(agent_class, [0, 0, 1, 0], initial).weights
    assert whole[0, 0] != pytest.approx(2.0)
    np.testing.assert_allclose(whole, chain(SARSA_OF[agent_class], [0, 0, 1, 0], initial).weights)


@every_watkins
def test_the_trace_is_not_cut_by_the_action_that_is_left(agent_class):
    """The action taken in state 1 is not greedy there: that cuts off state 0, but not state 1 itself."""
    initial = [[0, 0], [0, 4], [0, 0], [0, 0]]
    weights = chain(agent_class, [0, 0, 0, 0], initial).weights
    # δ = 4 into 1; δ = 0 in between; δ = 1 at the end teaches (1, 0), (2, 0) and (3, 0), and (0, 0) no more.
    np.testing.assert_allclose(weights, [[2.0, 0.0], [0.5, 4.0], [0.5, 0.0], [0.5, 0.0]])


@every_watkins
def test_a_first_action_that_is_not_greedy_cuts_nothing(agent_class):
    initial = [[0, 4], [0, 0], [0, 0], [0, 0]]
    weights = chain(agent_class, [0, 0, 0, 0], initial).weights
    np.testing.assert_allclose(weights, [[0.5, 4.0], [0.5, 0.0], [0.5, 0.0], [0.5, 0.0]])


@every_watkins
@pytest.mark.parametrize(("better", "tied"), [(0.0, True), (1e-13, True), (0.9e-10, True), (1e-8, False), (1e-3, False)])
def test_an_action_that_ties_for_the_best_is_greedy(agent_class, better, tied):
    initial = [[0, 0], [0, better], [0, 0], [0, 0]]
    weights = chain(agent_class, [0, 0, 0, 0], initial).weights
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
