"""Agents: exact at every step, free of the mistakes that others made, and as they were after bad input."""

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

import trueonline as to
from tests.oracles import control as naive
from trueonline import control, forward
from trueonline.cli import main
from trueonline.control import (
    AccumulateSarsa,
    EpsilonGreedy,
    Greedy,
    ReplaceSarsa,
    Softmax,
    TrueOnlineSarsa,
    TrueOnlineWatkinsQ,
    Uniform,
    WatkinsQ,
)
from trueonline.core import memory

TOLERANCE = 1e-10
AGENTS = [AccumulateSarsa, ReplaceSarsa, TrueOnlineSarsa, WatkinsQ, TrueOnlineWatkinsQ]
SARSAS = [AccumulateSarsa, ReplaceSarsa, TrueOnlineSarsa]
WATKINS = [WatkinsQ, TrueOnlineWatkinsQ]
every_agent = pytest.mark.parametrize("agent_class", AGENTS)
every_watkins = pytest.mark.parametrize("agent_class", WATKINS)


class Method(NamedTuple):
    """An agent class with its options, and its oracles for a constant step-size and for a schedule."""

    agent: Any
    options: dict[str, bool]
    oracle: Any
    varying: Any
    binary: bool = False
    forward: Any = None
    definition: Any = None


METHODS = {
    "accumulate": Method(
        AccumulateSarsa, {}, naive.AccumulateSarsa, naive.AccumulateSarsa, definition=forward.AccumulateSarsaSum
    ),
    "replace": Method(ReplaceSarsa, {}, naive.ReplaceSarsa, naive.ReplaceSarsa, True, definition=forward.ReplaceSarsaSum),
    "clearing": Method(
        ReplaceSarsa,
        {"clear_others": True},
        naive.ClearingSarsa,
        naive.ClearingSarsa,
        True,
        definition=forward.ClearingSarsaSum,
    ),
    "true online": Method(
        TrueOnlineSarsa,
        {},
        naive.TrueOnlineSarsa,
        naive.TrueOnlineSarsaVarying,
        forward=naive.ForwardSarsa,
        definition=forward.OnlineSarsaReturn,
    ),
    "watkins": Method(WatkinsQ, {}, naive.WatkinsQ, naive.WatkinsQ, definition=forward.WatkinsQSum),
    "true online watkins": Method(
        TrueOnlineWatkinsQ,
        {},
        naive.TrueOnlineWatkinsQ,
        naive.TrueOnlineWatkinsQVarying,
        forward=naive.ForwardWatkins,
        definition=forward.OnlineWatkinsReturn,
    ),
}
every_method = pytest.mark.parametrize("name", METHODS)


# --- Streams, and agents taken through them -------------------------------------------------------


class Event(NamedTuple):
    """What an agent is told: "start", "step", "cut" or "end"; γ = 0 may stand in any step."""

    what: str
    x: np.ndarray | None
    reward: float = 0.0
    gamma: float = 1.0
    lam: float = 1.0


class Stream(NamedTuple):
    n: int
    actions: int
    events: list[Event]
    step_size: Any
    gamma: float  # the agent's own
    lam: float
    initial: np.ndarray
    seed: int

    def alpha(self, t: int) -> float:
        return self.step_size(t) if callable(self.step_size) else self.step_size

    def agent(self, agent_class, policy, **options) -> Any:
        numbers = (self.n, self.actions, self.step_size, self.lam, self.gamma)
        return agent_class(*numbers, policy, seed=self.seed, initial_weights=self.initial, **options)

    def oracle(self, oracle_class, policy) -> naive.Oracle:
        rng = np.random.default_rng(self.seed)
        return oracle_class(self.n, self.actions, self.alpha, policy, rng, self.initial)


def features(rng: np.random.Generator, n: int, values: str) -> np.ndarray:
    x = np.zeros(n)
    if values == "states":
        x[rng.integers(n)] = 1.0
        return x
    active = rng.random(n) < rng.choice([0.1, 0.4, 1.0], p=[0.5, 0.4, 0.1])
    x[active] = 1.0 if values == "binary" else rng.normal(size=active.sum())
    return x


def draw(seed: int, values: str, *, schedule: bool = False, steps: int = 80, longest: int = 1000) -> Stream:
    """A random stream of several episodes; features linger, γ and λ differ from state to state in half of them."""
    rng = np.random.default_rng([20160801, seed])
    n, actions = int(rng.integers(1, 10)), int(rng.integers(1, 5))
    gamma, lam = (float(rng.choice([1.0, 0.95, 0.5, rng.random()])) for _ in range(2))
    own = rng.random() < 0.5
    linger = rng.choice([0.0, 0.6])
    x = features(rng, n, values)
    events, since = [Event("start", x)], 0
    largest = x @ x
    for _ in range(steps):
        x = x if rng.random() < linger else features(rng, n, values)
        largest = max(largest, x @ x)
        given = (gamma, lam)
        if own:
            given = (
                float(rng.choice([1.0, rng.random()])),
                float(rng.choice([1.0, 0.0, rng.random()], p=[0.4, 0.1, 0.5])),
            )
        if rng.random() < 0.05:
            given = (0.0, given[1])
        since += 1
        what = rng.choice(["step", "cut", "end"], p=[0.92, 0.04, 0.04]) if since < longest else "cut"
        events.append(Event(str(what), None if what == "end" else x, float(rng.normal()), *given))
        if what != "step":
            since = 0
            x = features(rng, n, values)
            largest = max(largest, x @ x)
            events.append(Event("start", x))
    shares = rng.uniform(0.02, 0.6, size=steps) / (largest or 1.0)
    step_size = (lambda t: float(shares[t])) if schedule else float(shares[0])
    initial = rng.choice([0.0, 1.0]) * rng.normal(size=(n, actions))
    return Stream(n, actions, events, step_size, gamma, lam, initial, seed)


def spelt(x: np.ndarray, form: str, rng: np.random.Generator) -> Any:
    """The same features in another form."""
    if form == "dense":
        return x
    if form == "indices":
        return rng.permutation(np.flatnonzero(x))
    if form == "states":
        return int(x.argmax())
    indices = rng.permutation(np.union1d(np.flatnonzero(x), rng.integers(len(x))))
    return indices, x[indices]  # pairs


def mixed(rng: np.random.Generator) -> Callable[[np.ndarray], Any]:
    """Features in every form, now and then in the next one: dense, then pairs, then indices, and dense again.

    A step is compiled for the form of the features left and that of those entered: going round, not to and fro, there are
    six such pairs instead of nine, and every form is left and entered from another all the same.
    """
    kind = 0

    def spell(x: np.ndarray) -> Any:
        nonlocal kind
        binary = np.isin(x, (0.0, 1.0)).all()
        if rng.random() < 0.5 and (kind != 1 or binary):
            kind = (kind + 1) % 3
        elif kind == 2 and not binary:
            kind = 0
        if kind == 0:
            ways = [lambda: x, lambda: list(x), lambda: np.repeat(x, 2)[::2]]  # the last is not contiguous
            ways += [lambda: x.astype("f4")] if binary else []
        elif kind == 1:
            ways = [lambda: spelt(x, "pairs", rng), lambda: (list(range(len(x))), list(x))]
        else:
            ways = [lambda: np.flatnonzero(x), lambda: np.flatnonzero(x)[::-1].astype(np.int32)]
            ways += [lambda: int(x.argmax()), x.argmax] if x.sum() == x.max() == 1.0 else []
        return ways[rng.integers(len(ways))]()

    return spell


FORMS = {
    "dense": "real",
    "indices": "binary",
    "pairs": "real",
    "states": "states",
    "mixed": "real",
    "mixed binary": "binary",
}


def values_for(form: str, binary: bool) -> str:
    return "binary" if binary and FORMS[form] == "real" else FORMS[form]


def wavering(values: np.ndarray, rng: np.random.Generator, t: int) -> int:
    """Greedy two thirds of the time. Close values count as equal, so that rounding decides nothing."""
    if rng.random() < 2 / 3:
        return int(np.flatnonzero(values >= values.max() - 1e-8 * max(1.0, abs(values.max())))[0])
    return int(rng.integers(len(values)))


def tell(agent: Any, event: Event, x: Any, gamma: float | None, lam: float | None) -> int | None:
    if event.what == "start":
        return agent.start(x)
    if event.what == "step":
        return agent.step(event.reward, x, gamma, lam)
    if event.what == "cut":
        return agent.truncate(event.reward, x, gamma)
    return agent.end(event.reward)


class Seen(NamedTuple):
    action: int | None
    weights: np.ndarray
    trace: np.ndarray


def follow(agent: Any, stream: Stream, form: str = "dense") -> Iterator[Seen]:
    """Take an agent of the package through a stream; what is as usual is left to it."""
    rng = np.random.default_rng(stream.seed)
    spell = mixed(rng) if form.startswith("mixed") else lambda x: spelt(x, form, rng)
    for event in stream.events:
        x = None if event.x is None else spell(event.x)
        gamma = None if event.gamma == stream.gamma else event.gamma
        lam = None if event.lam == stream.lam else event.lam
        action = tell(agent, event, x, gamma, lam)
        yield Seen(action, agent.weights, getattr(agent, "trace", agent.weights))


def expected(oracle: naive.Oracle, stream: Stream) -> Iterator[Seen]:
    shape = (stream.n, stream.actions)
    for event in stream.events:
        action = tell(oracle, event, event.x, event.gamma, event.lam)
        yield Seen(action, oracle.w.reshape(shape), oracle.trace.reshape(shape))


def off(actual: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """max_t ‖actual_t − wanted_t‖∞ / the largest wanted so far."""
    a, b = np.array(actual).reshape(len(actual), -1), np.array(wanted).reshape(len(wanted), -1)
    assert np.isfinite(b).all(), "the oracle itself diverged: nothing is tested"
    largest = np.maximum.accumulate(np.abs(b).max(axis=1))
    return float(np.max(np.abs(a - b).max(axis=1) / np.where(largest > 0.0, largest, 1.0)))


def assert_alike(actual: Iterator[Seen], wanted: Iterator[Seen], *, trace: bool = True, tolerance=TOLERANCE) -> None:
    found, right = list(actual), list(wanted)
    assert [seen.action for seen in found] == [seen.action for seen in right]
    assert off([seen.weights for seen in found], [seen.weights for seen in right]) <= tolerance
    if trace:
        assert off([seen.trace for seen in found], [seen.trace for seen in right]) <= tolerance
    assert np.abs(right[-1].weights - right[0].weights).max() > 1e-3, "nothing was learned: nothing is tested"


# --- Exactness ------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
def test_every_agent_equals_its_equations_at_every_step(name, form, schedule):
    method = METHODS[name]
    for seed in range(4):
        stream = draw(seed, values_for(form, method.binary), schedule=schedule)
        agent = stream.agent(method.agent, wavering, **method.options)
        oracle = stream.oracle(method.varying if schedule else method.oracle, wavering)
        assert_alike(follow(agent, stream, form), expected(oracle, stream))
        assert agent.steps == sum(event.what != "start" for event in stream.events)


@pytest.mark.parametrize("name", ["true online", "true online watkins"])
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
def test_true_online_agents_equal_their_forward_views_at_every_step(name, schedule):
    method = METHODS[name]
    for seed in range(8):
        stream = draw(seed, "real", schedule=schedule, steps=60, longest=25)
        agent = stream.agent(method.agent, wavering)
        oracle = stream.oracle(method.forward, wavering)
        assert_alike(follow(agent, stream), expected(oracle, stream), trace=False)


@every_method
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
def test_the_definitions_of_the_package_are_the_equations_too(name, schedule):
    method = METHODS[name]
    for seed in range(4):
        stream = draw(seed, values_for("dense", method.binary), schedule=schedule, steps=40, longest=20)
        definition = stream.agent(method.definition, wavering)
        oracle = stream.oracle(method.varying if schedule else method.oracle, wavering)
        found, right = (list(each) for each in (follow(definition, stream), expected(oracle, stream)))
        stays = [event.what != "cut" for event in stream.events]  # of a definition's truncate the action is not asked
        assert [s.action for s, asked in zip(found, stays, strict=True) if asked] == [
            s.action for s, asked in zip(right, stays, strict=True) if asked
        ]
        assert off([seen.weights for seen in found], [seen.weights for seen in right]) <= TOLERANCE


@every_method
def test_a_policy_of_the_package_makes_the_same_agent_of_the_oracle(name):
    method = METHODS[name]
    policies = [EpsilonGreedy(0.3), Greedy(), Softmax(0.5), Uniform(), EpsilonGreedy(lambda t: 1.0 / (1.0 + t))]
    for seed, policy in enumerate(policies):
        stream = draw(seed, "binary")
        agent = stream.agent(method.agent, policy, **method.options)
        assert_alike(follow(agent, stream, "indices"), expected(stream.oracle(method.oracle, policy), stream))


def test_a_long_sparse_run_stays_exact():
    """20,000 steps at λ = 0.95, some 800 of 1,200 entries traced: nothing adds up to more than rounding."""
    n, actions, steps = 400, 3, 20_000
    rng = np.random.default_rng(95)
    places = np.cumsum(rng.integers(-3, 4, size=steps + 1)) % n
    X = [(place + np.array([0, 1, 2, 17, 101])) % n for place in places]
    rewards = rng.normal(size=steps)
    agent = TrueOnlineSarsa(n, actions, 0.05, 0.95, 0.99, wavering, seed=1)
    w, e, chooses = np.zeros((n, actions)), np.zeros((n, actions)), np.random.default_rng(1)
    action, q_old = wavering(np.zeros(actions), chooses, 0), 0.0
    assert agent.start(X[0]) == action
    largest, worst, ends, decay = 0.0, 0.0, 0, 0.0
    for t in range(steps):
        ended = t % 4999 == 4998
        values = w[X[t + 1]].sum(axis=0)
        following = 0 if ended else wavering(values, chooses, t + 1)
        q, q_next = w[X[t], action].sum(), 0.0 if ended else values[following]
        delta = rewards[t] + 0.99 * q_next - q
        dutch = 1.0 - 0.05 * decay * e[X[t], action].sum()
        e *= decay
        e[X[t], action] += dutch
        w += 0.05 * (delta + q - q_old) * e
        w[X[t], action] -= 0.05 * (q - q_old)
        q_old, decay, action = q_next, 0.99 * 0.95, following
        if ended:
            agent.end(rewards[t])
            e[:], q_old, decay, ends = 0.0, 0.0, 0.0, ends + 1
            action = wavering(w[X[t + 1]].sum(axis=0), chooses, t + 1)
            assert agent.start(X[t + 1]) == action
        else:
            assert agent.step(rewards[t], X[t + 1]) == action
        if t % 100 == 99:
            largest = max(largest, np.abs(w).max())
            worst = max(worst, np.abs(agent.weights - w).max() / largest)
    assert worst <= 1e-10
    assert ends == 4
    assert largest > 0.1


# --- Algorithm 5 as it is printed -----------------------------------------------------------------


def slipped(slip: str) -> Any:
    return type("Slipped", (naive.TrueOnlineWatkinsQ,), {"slip": slip})


def largest_difference(oracle_class, policy, seeds=range(6), **changes) -> float:
    worst = 0.0
    for seed in seeds:
        stream = draw(seed, "real", steps=40, longest=20)
        stream = stream._replace(events=[event._replace(**changes) for event in stream.events])
        ran = [list(expected(stream.oracle(each, policy), stream)) for each in (oracle_class, naive.ForwardWatkins)]
        worst = max(worst, off(*([seen.weights for seen in each] for each in ran)))
    return worst


def replayed(seed: int = 5) -> Any:
    """A policy that looks at nothing, so that both sides take the same actions however their weights differ."""
    return lambda values, rng, t: int(np.random.default_rng([seed, t]).integers(len(values)))


@pytest.mark.parametrize("slip", ["carries A*", "no γ", "max in S"])
def test_what_is_printed_is_not_equal_to_the_forward_view(slip):
    """§6.2: the pseudo-code carries ψ(S', A*) even when A' ≠ A* was taken, and the δ of the text lacks γ and has S_t."""
    assert largest_difference(slipped(""), replayed()) <= TOLERANCE
    assert largest_difference(slipped(slip), replayed()) > 0.01


def test_what_is_printed_is_right_where_the_slips_do_not_show():
    """A greedy policy takes A*, so that it may be carried; and γ = 1 may be left out."""

    def first_best(values, rng, t):
        return int(np.flatnonzero(values >= values.max() - 1e-8 * max(1.0, abs(values.max())))[0])

    assert largest_difference(slipped("carries A*"), first_best) <= TOLERANCE
    assert largest_difference(slipped("no γ"), replayed(), gamma=1.0) <= TOLERANCE
    assert largest_difference(slipped("max in S"), replayed(), gamma=1.0) > 0.01


def test_where_the_next_step_starts_by_hand():
    """Q(1, ·) = (0, 4), and action 0 is taken in state 1: the reward that follows is for (1, 0), not for (1, 1)."""
    for agent_class in WATKINS:
        agent = agent_class(2, 2, 0.5, 1.0, 0.5, lambda q, rng, t: 0, initial_weights=[[0, 0], [0, 4]])
        agent.start(0)
        agent.step(1.0, 1)  # δ = 1 + ½·4 − 0 = 3
        np.testing.assert_allclose(agent.weights, [[1.5, 0.0], [0.0, 4.0]])
        agent.end(2.0)
        np.testing.assert_allclose(agent.weights, [[1.5, 0.0], [1.0, 4.0]])


# --- Mistakes that others made --------------------------------------------------------------------


@pytest.mark.parametrize("agent_class", SARSAS)
def test_sarsa_bootstraps_from_the_action_that_is_executed(agent_class):
    for seed in range(20):
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
@pytest.mark.parametrize("way", ["end", "cut", "start", "γ = 0"])
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
def test_no_trace_outlives_an_episode(agent_class, way, schedule):
    """What comes after is learned as by a new agent with the same weights: no trace, and no Q_old."""
    rng = np.random.default_rng(3)
    X = [rng.choice(8, 3, replace=False) for _ in range(30)]

    def choose(values, rng, t):
        return int(t % 2 + (t % 5 == 0))

    def new(**given):
        step_size = (lambda t: 0.1) if schedule else 0.1
        return agent_class(8, 3, step_size, 0.9, 0.95, choose, **given)

    agent = new()
    agent.start(X[0])
    for t in range(9):
        agent.step(1.0, X[t + 1])
    if way == "end":
        agent.end(5.0)
    elif way == "cut":
        agent.truncate(5.0, X[10])
    elif way == "γ = 0":
        agent.step(5.0, X[10], discount=0.0)
    else:
        agent.step(5.0, X[10])
    before, steps = agent.weights, agent.steps
    if way != "γ = 0":
        agent.start(X[10])
        np.testing.assert_array_equal(agent.trace, 0.0)
    other = new(initial_weights=before)
    other.policy = lambda values, rng, t: choose(values, rng, t + steps)
    other.start(X[10])
    for t in range(10, 29):
        assert agent.step(-1.0, X[t + 1]) == other.step(-1.0, X[t + 1])
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


SARSA_OF = {WatkinsQ: AccumulateSarsa, TrueOnlineWatkinsQ: TrueOnlineSarsa}


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
@pytest.mark.parametrize(
    ("better", "tied"),
    [(0.0, True), (1e-13, True), (0.9e-10, True), (1e-8, False), (1e-3, False)],
)
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


@every_watkins
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
def test_after_a_cut_nothing_changes_what_was_before_it(agent_class, schedule):
    """States that are never seen again: their weights stay as they were once a trace was cut, but for the last digit."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        initial = rng.normal(size=(60, 3))
        step_size = (lambda t: 0.3 / (1.0 + t)) if schedule else 0.3
        agent = agent_class(60, 3, step_size, 1.0, 1.0, EpsilonGreedy(0.4), seed=seed, initial_weights=initial)
        taken, cuts, fixed = [agent.start(0)], 0, None
        for state in range(1, 60):
            q = agent.values(state)
            taken.append(agent.step(float(rng.normal()), state))
            if fixed is not None:
                np.testing.assert_allclose(agent.weights[: len(fixed)], fixed, rtol=1e-14, atol=1e-16)
            if q[taken[-1]] < q.max():
                fixed = agent.weights[:state]
                cuts += 1
        assert 3 < cuts < 57
        assert not np.array_equal(agent.weights[: len(fixed)], initial[: len(fixed)])


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


@every_method
def test_verify_finds_no_mistake_in_the_agents(name):
    method = METHODS[name]

    class Own(method.agent):
        def __init__(self, *numbers, **given):
            method.agent.__init__(self, *numbers, **given, **method.options)

    report = to.verify(Own, method.definition, trials=1, seed=7)
    assert report.exact
    assert report.max_error < 1e-11
    if not method.options:
        assert to.verify(method.agent, trials=1, steps=5).definition == method.definition.__name__


def test_the_command_verifies_agents():
    result = CliRunner().invoke(main, ["verify", "watkins_q", "--trials", "1", "--steps", "20"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == ["watkins_q"]
    assert "WatkinsQSum" in result.stdout
    assert "verdict" in result.stdout
    assert "NOT EXACT" not in result.stdout
    names = ["true_online_sarsa", "replace_sarsa", "accumulate", "true_online_watkins_q"]
    result = CliRunner().invoke(main, ["verify", *names, "--trials", "1", "--steps", "10", "--json"])
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert list(found) == names
    assert all(report["exact"] for report in found.values())
    assert found["true_online_watkins_q"]["forward_error"] < 1e-10


# --- Reductions -----------------------------------------------------------------------------------


def final(agent, stream: Stream, form: str = "dense") -> list[Seen]:
    return list(follow(agent, stream, form))


@pytest.mark.parametrize("form", ["dense", "indices"])
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
def test_without_lambda_all_sarsas_are_alike(form, schedule):
    for seed in range(4):
        stream = draw(seed, "binary", schedule=schedule)
        events = [event._replace(lam=0.0) for event in stream.events]
        stream = stream._replace(events=events, lam=0.0)
        expected_ = final(stream.agent(AccumulateSarsa, wavering), stream, form)
        for name in ("replace", "clearing", "true online"):
            method = METHODS[name]
            agent = stream.agent(method.agent, wavering, **method.options)
            assert_alike(iter(final(agent, stream, form)), iter(expected_), trace=False)
        for pair in (WATKINS, SARSAS):
            one, other = (final(stream.agent(each, wavering), stream, form)[-1].weights for each in pair[:2])
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("agent_class", "learner_class"),
    [
        (AccumulateSarsa, to.AccumulateTD),
        (ReplaceSarsa, to.ReplaceTD),
        (TrueOnlineSarsa, to.TrueOnlineTD),
        (WatkinsQ, to.AccumulateTD),
        (TrueOnlineWatkinsQ, to.TrueOnlineTD),
    ],
)
@pytest.mark.parametrize("form", ["dense", "indices", "pairs", "states", "mixed"])
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
def test_with_one_action_an_agent_is_a_learner(agent_class, learner_class, form, schedule):
    for seed in range(2):
        stream = draw(seed, values_for(form, agent_class.binary), schedule=schedule)
        stream = stream._replace(actions=1, initial=stream.initial[:, :1])
        agent = stream.agent(agent_class, EpsilonGreedy(0.5))
        learner = learner_class(stream.n, stream.step_size, stream.lam, stream.gamma, stream.initial[:, 0])
        for event, seen in zip(stream.events, follow(agent, stream, form), strict=True):
            if event.what == "start":
                learner.start(event.x)
            else:
                learner.update(event.reward, event.x, event.gamma, event.lam)
            assert seen.action == (0 if event.what in ("start", "step") else None)
            np.testing.assert_allclose(seen.weights[:, 0], learner.weights, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(seen.trace[:, 0], learner.trace, rtol=1e-10, atol=1e-12)


@every_watkins
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
@pytest.mark.parametrize("form", ["dense", "indices"])
def test_watkins_with_a_greedy_policy_is_sarsa(agent_class, schedule, form):
    for seed in range(4):
        stream = draw(seed, "binary", schedule=schedule)
        greedy, sarsa = (
            stream.agent(each, lambda q, rng, t: int(q.argmax())) for each in (agent_class, SARSA_OF[agent_class])
        )
        for one, other in zip(follow(greedy, stream, form), follow(sarsa, stream, form), strict=True):
            assert one.action == other.action
            np.testing.assert_array_equal(one.weights, other.weights)
            np.testing.assert_array_equal(one.trace, other.trace)


@every_method
def test_sparse_equals_dense(name):
    method = METHODS[name]
    for seed in range(4):
        stream = draw(seed, "binary")
        dense, *sparse = (
            final(stream.agent(method.agent, wavering, **method.options), stream, form)
            for form in ("dense", "indices", "pairs", "mixed binary")
        )
        for other in sparse:
            assert_alike(iter(other), iter(dense), tolerance=1e-12)


@every_method
def test_traces_are_of_the_last_transition_and_copies_are_given(name):
    method = METHODS[name]
    agent = method.agent(3, 2, 0.5, 0.5, 1.0, lambda q, rng, t: t % 2, **method.options)
    assert agent.weights.shape == agent.trace.shape == (3, 2)
    agent.start(0)
    agent.step(1.0, 1)
    np.testing.assert_allclose(agent.trace, [[1, 0], [0, 0], [0, 0]])
    agent.step(1.0, 2)
    np.testing.assert_allclose(agent.trace, [[0.5, 0], [0, 1], [0, 0]])  # all values were 0, and tied
    for given in (agent.weights, agent.trace, agent.values(0)):
        given[:] = 99.0
    assert agent.weights.max() < 2.0
    assert agent.trace.max() == 1.0
    assert agent.values(0).max() < 2.0


@every_agent
def test_reset_equals_new_but_for_the_random_numbers(agent_class):
    stream = draw(3, "binary")
    agent = stream.agent(agent_class, EpsilonGreedy(0.5))
    final(agent, stream, "indices")
    agent.reset()
    assert (agent.steps, agent.action) == (0, None)
    np.testing.assert_array_equal(agent.weights, stream.initial)
    np.testing.assert_array_equal(agent.trace, 0.0)
    with pytest.raises(RuntimeError, match="no episode has begun"):
        agent.step(1.0, 0)
    new = stream.agent(agent_class, EpsilonGreedy(0.5))
    new.rng.bit_generator.state = agent.rng.bit_generator.state
    for one, other in zip(follow(agent, stream, "indices"), follow(new, stream, "indices"), strict=True):
        assert one.action == other.action
        np.testing.assert_array_equal(one.weights, other.weights)


@every_agent
def test_initial_weights_are_taken_and_left_alone(agent_class):
    given = np.arange(6.0).reshape(3, 2)
    for spelling in (given, given.tolist(), given.astype(int), np.asfortranarray(given), given.astype("f4")):
        agent = agent_class(3, 2, 0.5, 0.9, 0.9, Greedy(), initial_weights=spelling)
        np.testing.assert_array_equal(agent.weights, given)
        np.testing.assert_array_equal(agent.values(np.array([0, 2])), [4.0, 6.0])
        assert agent.start(1) == 1
        agent.end(100.0)
        assert agent.weights[1, 1] == 51.5
    np.testing.assert_array_equal(given, np.arange(6.0).reshape(3, 2))
    agent = agent_class(3, 2, 0.5, 0.9, 0.9, initial_weights=given)
    given[:] = 7.0
    agent.reset()
    assert agent.weights[0, 0] == 0.0


@every_agent
def test_the_same_seed_gives_the_same_agent(agent_class):
    stream = draw(8, "binary", steps=200)._replace(actions=3, initial=np.zeros((draw(8, "binary").n, 3)))

    def actions(seed):
        agent = stream._replace(seed=seed).agent(agent_class, EpsilonGreedy(0.5))
        return [seen.action for seen in follow(agent, stream, "indices")]

    assert actions(1) == actions(1) != actions(2)
    assert actions(np.random.default_rng(1)) == actions(1)


@every_agent
def test_an_agent_keeps_its_own_copy_of_where_it_stands(agent_class):
    """An environment may write into the same arrays again and again."""
    stream = draw(5, "binary")
    for form in ("dense", "indices", "pairs"):
        agent, other = (stream.agent(agent_class, wavering) for _ in range(2))
        rng = np.random.default_rng(0)
        for event in stream.events:
            x = None if event.x is None else spelt(event.x, form, rng)
            mine = copy.deepcopy(x)
            for each, given in ((agent, mine), (other, x)):
                tell(each, event, given, event.gamma, event.lam)
            for array in mine if isinstance(mine, tuple) else () if mine is None else (mine,):
                array[:] = 0
            np.testing.assert_array_equal(agent.weights, other.weights)


def test_read_only_features_are_taken():
    x = np.array([1, 2])
    x.flags.writeable = False
    agent, other = (TrueOnlineSarsa(4, 2, 0.5, 0.9, 0.9, seed=1) for _ in range(2))
    for each, given in ((agent, x), (other, x.copy())):
        each.start(given)
        each.step(1.0, given)
        each.end(1.0)
    np.testing.assert_array_equal(agent.weights, other.weights)


def test_features_from_the_middle_of_a_buffer_are_taken():
    x = np.zeros(33, np.uint8)[1:].view(np.float64)
    x[2] = 1.0
    assert not x.flags.aligned
    agent, other = (TrueOnlineSarsa(4, 2, 0.5, 0.9, 0.9, seed=1) for _ in range(2))
    for each, given in ((other, x.copy()), (agent, x)):
        each.start(given)
        each.step(1.0, given)
        each.end(1.0)
    np.testing.assert_array_equal(agent.weights, other.weights)
    assert agent.weights.any()


BYTES = """
import numpy as np, trueonline as to
x = np.array([0.0, 0.0, 1.0, 0.0])
native = np.frombuffer(x.tobytes())
network = np.frombuffer(x.astype(">f8").tobytes(), ">f8")
made = [to.TrueOnlineTD(4, 0.5, 0.9, 0.9, initial_weights=np.arange(4.0))]
made += [to.control.TrueOnlineSarsa(4, 1, 0.5, 0.9, 0.9, initial_weights=np.arange(4.0)[:, None])]
for each, value in zip(made, ("predict", "values"), strict=True):
    read = getattr(each, value)
    assert read(native) == 2.0
    assert read(network) == 2.0, read(network)
    assert read(x.astype(">f8")) == 2.0
    assert read(np.array([2], ">i8")) == 2.0
"""


def test_features_in_the_byte_order_of_the_network_are_read_rightly():
    """Whatever was given before: in a process of its own, because it depends on what came first."""
    subprocess.run([sys.executable, "-c", BYTES], check=True, capture_output=True)


# --- Saved, copied or pickled equals never stopped ------------------------------------------------


def halve(t):
    return 0.3 / (1.0 + 0.05 * t)


def fade(t):
    return 1.0 / (1.0 + 0.1 * t)


def own_policy(values, rng, t):
    return int(rng.permutation(len(values))[t % len(values)])


def through_file(agent, tmp_path):
    agent.save(tmp_path / "agent.npz")
    schedule = {"step_size": agent.step_size} if callable(agent.step_size) else {}
    code = agent.policy is own_policy or callable(getattr(agent.policy, "epsilon", None))
    return to.load(tmp_path / "agent.npz", **schedule, **({"policy": agent.policy} if code else {}))


def through_pickle(agent, tmp_path):
    return pickle.loads(pickle.dumps(agent))


def through_deepcopy(agent, tmp_path):
    return copy.deepcopy(agent)


every_way = pytest.mark.parametrize("through", [through_file, through_pickle, through_deepcopy])
POLICIES = {
    "default": None,
    "ε-greedy": EpsilonGreedy(0.4, tolerance=1e-3),
    "softmax": Softmax(0.3),
    "uniform": Uniform(),
    "greedy": Greedy(0.01),
    "own": own_policy,
    "schedule": EpsilonGreedy(fade),
}


def assert_same(one, other) -> None:
    assert (one.steps, one.action) == (other.steps, other.action)
    np.testing.assert_equal(one.rng.bit_generator.state, other.rng.bit_generator.state)
    parts, others = memory.dump(one._memory), memory.dump(other._memory)
    assert parts.keys() == others.keys()
    for name, part in parts.items():
        np.testing.assert_array_equal(part, others[name])


def assert_goes_on(agent, stream: Stream, form: str, through, tmp_path, at=(0, 1, 7, 30)) -> None:
    """From each of these times on a copy does as the agent does, bit for bit."""
    others: list[Any] = []
    rng = np.random.default_rng(2)
    ends = [number for number, event in enumerate(stream.events) if event.what != "step"][:4]
    for number, event in enumerate(stream.events):
        x = None if event.x is None else spelt(event.x, form, rng)
        chosen = [tell(each, event, x, event.gamma, event.lam) for each in (agent, *others)]
        assert len(set(chosen)) == 1
        for other in others:
            np.testing.assert_array_equal(other.weights, agent.weights)
            np.testing.assert_array_equal(other.trace, agent.trace)
        if number in at or number in ends:
            others = [*others[-1:], through(agent, tmp_path)]
            assert repr(others[-1]) == repr(agent)
            assert type(others[-1]) is type(agent)
            assert_same(others[-1], agent)
    for other in others:
        assert_same(other, agent)
        other.reset()
        np.testing.assert_array_equal(other.weights, stream.initial)


@every_way
@pytest.mark.parametrize("form", ["dense", "indices", "pairs"])
@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
@every_method
def test_an_agent_goes_on_bit_for_bit(name, schedule, form, through, tmp_path):
    method = METHODS[name]
    stream = draw(14, "binary")._replace(step_size=halve if schedule else 0.1)
    agent = stream.agent(method.agent, EpsilonGreedy(0.4), **method.options)
    assert_goes_on(agent, stream, form, through, tmp_path)


@every_way
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_goes_on(policy, through, tmp_path):
    stream = draw(14, "binary", steps=40)
    agent = stream.agent(TrueOnlineWatkinsQ, POLICIES[policy])
    assert_goes_on(agent, stream, "indices", through, tmp_path)


@every_way
@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_kind_of_random_state_goes_on(bits, through, tmp_path):
    stream = draw(14, "binary", steps=60)._replace(seed=np.random.Generator(getattr(np.random, bits)(6)))
    agent = stream.agent(TrueOnlineSarsa, EpsilonGreedy(0.5))
    agent.rng.integers(3, dtype=np.int32)  # leaves half of a 64-bit number over, which must be kept too
    assert_goes_on(agent, stream._replace(seed=6), "indices", through, tmp_path)
    assert type(agent.rng.bit_generator).__name__ == bits


@every_way
@every_method
def test_new_ended_and_diverged_agents_survive(name, through, tmp_path):
    method = METHODS[name]
    agent = method.agent(4, 2, 0.5, 0.9, 0.9, seed=3, **method.options)
    assert through(agent, tmp_path).steps == 0
    agent.start(1)
    agent.end(1.0)
    other = through(agent, tmp_path)
    with pytest.raises(RuntimeError, match="no episode has begun"):
        other.step(1.0, 2)
    np.testing.assert_array_equal(other.weights, agent.weights)
    assert other.start(2) == agent.start(2)
    huge = method.agent(1, 2, 1e300, 1.0, 1.0, lambda q, rng, t: 0, initial_weights=[[1e300, 0]], **method.options)
    huge.start(0)
    huge.step(-1e300, 0)
    huge.step(0.0, 0)
    assert huge.diverged
    huge.policy = Uniform()
    assert through(huge, tmp_path).diverged


def test_nothing_of_a_saved_agent_needs_pickle(tmp_path):
    agent = WatkinsQ(4, 2, 0.5, 0.9, 0.9, seed=np.random.Generator(np.random.MT19937(1)), initial_weights=np.ones((4, 2)))
    agent.start((np.array([1]), np.array([0.5])))
    agent.step(1.0, (np.array([2]), np.array([0.5])))
    agent.save(tmp_path / "agent.npz")
    with np.load(tmp_path / "agent.npz", allow_pickle=False) as file:
        assert {name: file[name].dtype.kind for name in file.files if name != "about"}.keys() >= {"u", "z", "here"}
        assert json.loads(str(file["about"]))["settings"]["rng"]["bit_generator"] == "MT19937"


def test_a_policy_that_is_code_must_be_handed_back(tmp_path):
    path = tmp_path / "a.npz"
    for policy in (own_policy, EpsilonGreedy(fade), Softmax(fade), type("Mine", (Greedy,), {})()):
        TrueOnlineSarsa(3, 2, 0.1, 0.9, 0.9, policy).save(path)
        with pytest.raises(ValueError, match=r"saved with a policy of your own.*which is code: load it with policy="):
            to.load(path)
        assert to.load(path, policy=policy).policy is policy
        with pytest.raises(ValueError, match="policy must be callable"):
            to.load(path, policy=3)
    TrueOnlineSarsa(3, 2, 0.1, 0.9, 0.9, Softmax(0.5)).save(path)
    with pytest.raises(ValueError, match=r"saved with the .*policy .*Softmax.*: load it without policy"):
        to.load(path, policy=own_policy)
    assert to.load(path).policy == Softmax(0.5)
    TrueOnlineSarsa(3, 2, halve, 0.9, 0.9).save(path)
    with pytest.raises(ValueError, match=r"saved with a step-size schedule, which is code: load it with step_size="):
        to.load(path)
    assert to.load(path, step_size=halve).step_size is halve


def test_a_learner_has_no_policy(tmp_path):
    path = tmp_path / "m.npz"
    to.TrueOnlineTD(3, 0.1, 0.9, 0.9).save(path)
    with pytest.raises(ValueError, match="holds a TrueOnlineTD, which has no policy: load it without policy"):
        to.load(path, policy=Greedy())


@pytest.fixture
def saved(tmp_path):
    agent = TrueOnlineSarsa(5, 3, 0.1, 0.9, 0.9, seed=1)
    agent.start(1)
    agent.step(1.0, 2)
    path = tmp_path / "a.npz"
    agent.save(path)
    return path


def edit(path, change=None, **arrays) -> None:
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    about = json.loads(str(parts["about"]))
    if change is not None:
        change(about)
    parts |= {"about": np.array(json.dumps(about)), **arrays}
    np.savez(path, **{name: part for name, part in parts.items() if part is not None})


def setting(name, value):
    return lambda about: about["settings"].update({name: value})


def random_state(**values):
    return lambda about: about["settings"]["rng"].update(values)


@pytest.mark.parametrize(
    "change",
    [
        setting("rng", None),
        setting("rng", []),
        setting("rng", {}),
        random_state(bit_generator="Nope"),
        random_state(bit_generator="Generator"),
        random_state(bit_generator="MT19937"),
        random_state(state="x"),
        random_state(has_uint32="x"),
        setting("action", 3),
        setting("action", -1),
        setting("action", 1.0),
        setting("action", True),
        setting("action", "1"),
        setting("policy", "x"),
        setting("policy", {}),
        setting("policy", {"kind": "Nope"}),
        setting("policy", {"kind": ["Greedy"]}),
        setting("policy", {"kind": "EpsilonGreedy", "epsilon": 2}),
        setting("policy", {"kind": "EpsilonGreedy", "epsilon": 0.1, "more": 1}),
        setting("n_actions", 0),
        setting("n_actions", 4),
        setting("n_features", 4),
        setting("step_size", -1.0),
        setting("trace_decay", 2.0),
        setting("clear_others", True),
        lambda about: about["settings"].pop("rng"),
        lambda about: about["settings"].pop("action"),
        lambda about: about["settings"].pop("n_actions"),
        lambda about: about.update({"class": "TrueOnlineTD"}),
    ],
)
def test_damaged_settings_are_refused(saved, change):
    edit(saved, change)
    with pytest.raises(ValueError, match="is damaged"):
        to.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        random_state(bit_generator="BitGenerator"),
        random_state(state={"state": -1, "inc": 3}),
        random_state(state={"state": 2**200, "inc": 3}),
        random_state(uinteger=2**40),
        lambda about: about.pop("class"),
        lambda about: about.pop("settings"),
        lambda about: about.update({"settings": [1]}),
        lambda about: about.update({"class": ["x"]}),
    ],
)
def test_other_damage_is_refused_too(saved, change):
    edit(saved, change)
    with pytest.raises(ValueError, match=r"damaged|not a saved learner|holds a"):
        to.load(saved)


@pytest.mark.parametrize(
    "arrays",
    [
        {"here": None},
        {"here": np.array([99])},
        {"here": np.array([1, 1])},
        {"here": np.zeros(3)},
        {"u": None},
        {"u": np.zeros(5)},
        {"head": np.zeros(3)},
        {"owner": np.array([99])},
        {"initial_weights": np.zeros(15)},
    ],
)
def test_damaged_parts_are_refused(saved, arrays):
    edit(saved, **arrays)
    with pytest.raises(ValueError, match="is damaged"):
        to.load(saved)


def test_a_class_that_is_unknown_is_refused(saved):
    edit(saved, lambda about: about.update({"class": "Agent"}))
    with pytest.raises(ValueError, match=r"holds a Agent, which is none of .*TrueOnlineWatkinsQ"):
        to.load(saved)


# --- Policies -------------------------------------------------------------------------------------


def counts(policy, values, times=10_000, seed=0, t=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.array(values, float)
    return np.bincount([policy(values, rng, t) for _ in range(times)], minlength=len(values))


def assert_probabilities(found: np.ndarray, wanted: Any) -> None:
    """Every count is within 5σ of its expectation; what is impossible never happens."""
    wanted, times = np.array(wanted, float), found.sum()
    deviation = np.sqrt(times * wanted * (1.0 - wanted))
    assert np.all(np.abs(found - times * wanted) <= 5.0 * deviation)


def test_epsilon_greedy_explores_as_often_as_it_says():
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        wanted = np.full(4, epsilon / 4.0) + np.array([0, 0, 1.0 - epsilon, 0])
        assert_probabilities(counts(EpsilonGreedy(epsilon), [1.0, -2.0, 3.0, 2.9]), wanted)
    assert_probabilities(counts(EpsilonGreedy(0.2), [1.0, 1.0, 0.0]), [0.2 / 3 + 0.4, 0.2 / 3 + 0.4, 0.2 / 3])


def test_the_default_policy_is_epsilon_greedy_with_a_tenth():
    assert TrueOnlineSarsa(1, 2, 0.1, 0.9, 0.9).policy == EpsilonGreedy(0.1)


def test_ties_are_broken_evenly():
    assert_probabilities(counts(Greedy(), [2.0, 1.0, 2.0, 2.0]), [1 / 3, 0, 1 / 3, 1 / 3])
    assert_probabilities(counts(Greedy(), np.zeros(7)), np.full(7, 1 / 7))
    assert_probabilities(counts(Greedy(), [-5.0, -5.0 - 1e-10, -5.0 - 1e-8]), [0.5, 0.5, 0.0])  # relative: 5e-10
    assert_probabilities(counts(Greedy(), [1e12, 1e12 - 10.0, 1e12 - 1e3]), [0.5, 0.5, 0.0])
    assert_probabilities(counts(Greedy(), [0.0, -0.5e-10, -1e-9]), [0.5, 0.5, 0.0])  # absolute near 0
    assert_probabilities(counts(Greedy(0.1), [1.0, 0.95, 0.85]), [0.5, 0.5, 0.0])
    assert_probabilities(counts(Greedy(0.0), [1.0, 1.0, 1.0 - 1e-15]), [0.5, 0.5, 0.0])
    assert_probabilities(counts(EpsilonGreedy(0.0, tolerance=0.1), [1.0, 0.95, 0.85]), [0.5, 0.5, 0.0])


def test_uniform_does_not_look():
    assert_probabilities(counts(Uniform(), [5.0, -1e9, np.nan, 0.0, 0.0]), np.full(5, 0.2))


@pytest.mark.parametrize("temperature", [0.2, 1.0, 30.0])
def test_softmax_has_the_probabilities_of_its_formula(temperature):
    values = np.array([0.3, -0.2, 0.5, 0.5])
    shares = np.exp(values / temperature) / np.exp(values / temperature).sum()
    for shift in (0.0, 1e6):  # the same for any shift of the values, however large
        found = counts(Softmax(temperature), values + shift)
        assert_probabilities(found, shares)
        chi_squared = np.sum((found - found.sum() * shares) ** 2 / (found.sum() * shares))
        assert chi_squared < 28.0  # 3 degrees of freedom: beyond 28 in 4 of a million cases


def test_softmax_with_extreme_values():
    assert_probabilities(counts(Softmax(1e-300), [1.0, 2.0, 2.0], 2000), [0.0, 0.5, 0.5])
    assert_probabilities(counts(Softmax(1.0), [-1e308, 1e308], 100), [0.0, 1.0])
    assert_probabilities(counts(Softmax(1.0), [0.0, -np.inf], 100), [1.0, 0.0])


@pytest.mark.parametrize("policy", [Greedy(), EpsilonGreedy(0.3), Softmax(0.5), Uniform(), Greedy(0.0)], ids=repr)
@pytest.mark.parametrize(
    "values",
    [
        [np.nan, 1.0, 2.0],
        [1.0, np.nan, 2.0],
        [np.nan, np.nan, np.nan],
        [np.inf, 0.0, 1.0],
        [np.inf, np.inf, -np.inf],
        [-np.inf, -np.inf, -np.inf],
        [np.nan, np.inf, 0.0],
    ],
)
def test_values_that_are_not_finite_do_not_crash_a_policy(policy, values):
    found = counts(policy, values, 300)
    assert found.sum() == 300
    assert len(found) == 3
    if not np.isfinite(values).any():
        assert (found > 0).all() or values == [np.inf, np.inf, -np.inf]


def test_a_greedy_action_is_a_number():
    assert_probabilities(counts(Greedy(), [np.nan, 1.0, np.nan, 2.0], 100), [0, 0, 0, 1])
    assert_probabilities(counts(Greedy(), [-np.inf, -1e300], 100), [0, 1])


@every_agent
def test_an_agent_that_diverged_still_acts(agent_class):
    for policy in (Greedy(), EpsilonGreedy(0.2), Softmax(1.0), Uniform()):
        agent = agent_class(2, 3, 1e200, 1.0, 1.0, policy, seed=1, initial_weights=np.full((2, 3), 1e200))
        agent.start(0)
        for t in range(30):
            assert 0 <= agent.step(1e300, t % 2) < 3
        assert agent.diverged
        agent.end(1.0)


@every_agent
def test_schedules_are_told_how_many_transitions_there_were(agent_class):
    told: dict[str, list] = {"policy": [], "ε": [], "τ": [], "α": []}

    def note(name, value):
        return lambda t: told[name].append(t) or value

    def policy(values, rng, t):
        told["policy"].append(t)
        return EpsilonGreedy(note("ε", 0.5))(values, rng, t) and Softmax(note("τ", 0.5))(values, rng, t)

    agent = agent_class(2, 2, note("α", 0.1), 0.9, 0.9, policy, seed=0)
    agent.start(0)  # t = 0
    for _ in range(3):
        agent.step(1.0, 1)  # t = 1, 2, 3
    agent.truncate(1.0, 0)  # t = 4: an action to bootstrap from
    agent.start(0)  # t = 4
    agent.step(1.0, 1)  # t = 5
    agent.end(1.0)
    agent.values(0)
    agent.start(1)  # t = 6
    assert told["policy"] == told["ε"] == [0, 1, 2, 3, 4, 4, 5, 6]
    assert set(told["τ"]) <= set(told["policy"])
    assert told["α"] == [0, 1, 2, 3, 4, 5]
    assert agent.steps == 6


def test_the_greedy_action_is_taken_more_and_more_often():
    policy = EpsilonGreedy(lambda t: 1.0 / (1.0 + t))
    assert_probabilities(counts(policy, [0.0, 1.0], t=0), [0.5, 0.5])
    assert_probabilities(counts(policy, [0.0, 1.0], t=9), [0.05, 0.95])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EpsilonGreedy(1.1), r"epsilon must be a number in \[0, 1\], got 1.1"),
        (lambda: EpsilonGreedy(-0.1), "epsilon must be"),
        (lambda: EpsilonGreedy(np.nan), "epsilon must be"),
        (lambda: EpsilonGreedy(True), "epsilon must be"),
        (lambda: EpsilonGreedy("0.1"), "epsilon must be"),
        (lambda: EpsilonGreedy(0.1, tolerance=-1.0), "tolerance must be a finite number ≥ 0, got -1.0"),
        (lambda: Greedy(np.inf), "tolerance must be"),
        (lambda: Softmax(0.0), "temperature must be a finite number > 0, got 0.0"),
        (lambda: Softmax(np.inf), "temperature must be"),
        (lambda: TrueOnlineSarsa(2, 2, 0.1, 0.9, 0.9, "greedy"), r"policy must be callable as policy\(values, rng, t\)"),
    ],
)
def test_bad_policies_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- Bad input ------------------------------------------------------------------------------------

NAN = float("nan")
N = 6


def state_of(agent) -> tuple[bytes, Any]:
    """All that an agent is, bit for bit."""
    parts = {**memory.dump(agent._memory), "action": agent.action, "steps": agent.steps}
    return pickle.dumps({**parts, "here": agent._here, "rng": agent.rng.bit_generator.state}), agent.policy


BAD_FEATURES = [
    np.full(N, NAN),
    np.array([0.0, np.inf, 0.0, 0.0, 0.0, 0.0]),
    np.zeros(N - 1),
    np.zeros(N + 1),
    np.zeros((1, N)),
    np.array(2.0),
    np.array([0, N]),
    np.array([-1]),
    np.array([1, 1]),
    N,
    -1,
    True,
    1.0,
    np.zeros(N, bool),
    np.zeros(N, complex),
    "x",
    None,
    [None],
    ["1"],
    [[1], [2, 3]],
    {},
    (np.array([1]), np.array([NAN])),
    (np.array([1, 2]), np.array([1.0])),
    (np.array([1, 1]), np.array([1.0, 1.0])),
    (np.array([N]), np.array([1.0])),
    (np.array([-1]), np.array([1.0])),
    (np.array([0.5]), np.array([1.0])),
    (np.array([True]), np.array([1.0])),
    (np.array([1]), np.array([True])),
    (np.array([1]),),
    (np.array([1]), np.array([1.0]), np.array([1.0])),
    np.array([2**40]),
    np.array([2**63], np.uint64),
]
BAD_NUMBERS = [NAN, np.inf, -np.inf, "1", None, True, np.bool_(True), 1j, [1.0], np.array([1.0])]
BAD_UNITS = [NAN, -0.1, 1.1, np.inf, "1", True, 1j, [0.5]]


@every_method
@pytest.mark.parametrize("form", ["dense", "indices", "pairs"])
def test_bad_input_changes_nothing(name, form):
    method = METHODS[name]
    stream = draw(21, "binary", steps=25)
    stream = stream._replace(n=N, actions=3, initial=np.ones((N, 3)))
    rng = np.random.default_rng(0)
    events = [e._replace(x=None if e.x is None else features(rng, N, "binary")) for e in stream.events]
    agent, undisturbed = (stream.agent(method.agent, EpsilonGreedy(0.5), **method.options) for _ in range(2))
    x = spelt(np.eye(N)[2], form, rng)
    bad = BAD_FEATURES
    if method.binary:
        bad = [*bad, np.full(N, 0.5), (np.array([1]), np.array([2.0])), (np.array([1]), np.array([-1.0]))]
    attempts = [lambda given=given: agent.start(given) for given in bad]
    attempts += [lambda given=given: agent.values(given) for given in bad]
    attempts += [lambda given=given: agent.step(1.0, given) for given in bad]
    attempts += [lambda given=given: agent.truncate(1.0, given) for given in bad]
    attempts += [lambda given=given: agent.step(given, x) for given in BAD_NUMBERS]
    attempts += [lambda given=given: agent.truncate(given, x) for given in BAD_NUMBERS]
    attempts += [lambda given=given: agent.end(given) for given in BAD_NUMBERS]
    attempts += [lambda given=given: agent.step(1.0, x, given) for given in BAD_UNITS]
    attempts += [lambda given=given: agent.truncate(1.0, x, given) for given in BAD_UNITS]
    attempts += [lambda given=given: agent.step(1.0, x, 0.9, given) for given in BAD_UNITS]
    order = np.random.default_rng(1).permutation(len(attempts))
    tried = 0
    for number, event in enumerate(events):
        standing = agent.action is not None
        for attempt in (attempts[i] for i in order[number % 12 :: 12]) if standing else ():
            before = state_of(agent)
            with pytest.raises(ValueError) as caught:  # noqa: PT011
                attempt()
            assert str(caught.value), "what was wrong is said"
            assert state_of(agent) == before
            tried += 1
        x_given = None if event.x is None else spelt(event.x, form, rng)
        chosen = {tell(each, event, x_given, event.gamma, event.lam) for each in (agent, undisturbed)}
        assert len(chosen) == 1
        assert_same(agent, undisturbed)
    assert tried > len(attempts)


@every_method
def test_nothing_is_learned_before_a_start(name):
    method = METHODS[name]
    agent = method.agent(N, 2, 0.1, 0.9, 0.9, seed=1, **method.options)
    before = state_of(agent)
    for attempt in (lambda: agent.step(1.0, 0), lambda: agent.end(1.0), lambda: agent.truncate(1.0, 0)):
        with pytest.raises(RuntimeError, match=r"no episode has begun: call start\(x\) with its first features"):
            attempt()
        assert state_of(agent) == before
    assert agent.action is None


@every_agent
@pytest.mark.parametrize(
    "wrong", [3, -1, 1.0, True, np.bool_(False), None, "1", np.float64(0.0), np.nan, [1], np.array([1])]
)
def test_a_wrong_action_of_a_policy_changes_nothing(agent_class, wrong):
    stream = draw(21, "binary", steps=30)
    stream = stream._replace(actions=3, initial=np.ones((stream.n, 3)))
    x = np.array([0])
    mood = {"wrong": False}

    def policy(values, rng, t):
        return wrong if mood["wrong"] else wavering(values, rng, t)

    agent, undisturbed = (stream.agent(agent_class, each) for each in (policy, wavering))
    for one, other in zip(follow(agent, stream, "indices"), follow(undisturbed, stream, "indices"), strict=True):
        assert one.action == other.action
        np.testing.assert_array_equal(one.weights, other.weights)
        mood["wrong"] = True
        before = state_of(agent)
        attempts = [lambda: agent.start(x)]
        if agent.action is not None:
            attempts += [lambda: agent.step(1.0, x), lambda: agent.truncate(1.0, x)]
        for attempt in attempts:
            with pytest.raises(ValueError, match="the policy must choose an action from 0 to 2, it chose"):
                attempt()
            assert state_of(agent) == before
        mood["wrong"] = False


def test_actions_of_numpy_are_taken():
    for kind in (np.int64, np.int32, np.uint8):
        agent = TrueOnlineSarsa(2, 3, 0.1, 0.9, 0.9, lambda q, rng, t, kind=kind: kind(2))
        assert agent.start(0) == 2
        assert type(agent.step(1.0, 1)) is int


@every_agent
def test_a_policy_that_fails_changes_nothing(agent_class):
    mood = {"fails": False}

    def policy(values, rng, t):
        if mood["fails"]:
            raise KeyError("mine")
        return 1

    agent = agent_class(3, 2, 0.1, 0.9, 0.9, policy)
    agent.start(0)
    agent.step(1.0, 1)
    before = state_of(agent)
    mood["fails"] = True
    for attempt in (lambda: agent.start(2), lambda: agent.step(1.0, 2), lambda: agent.truncate(1.0, 2)):
        with pytest.raises(KeyError, match="mine"):
            attempt()
        assert state_of(agent) == before


@every_agent
@pytest.mark.parametrize("wrong", [NAN, 0.0, -1.0, "x", None, True])
def test_a_wrong_schedule_changes_nothing(agent_class, wrong):
    values = {"α": 0.1, "ε": 0.5}
    policy = EpsilonGreedy(lambda t: values["ε"])
    agent = agent_class(3, 2, lambda t: values["α"], 0.9, 0.9, policy, seed=1)
    agent.start(0)
    agent.step(1.0, 1)
    before = state_of(agent)
    values["α"] = wrong
    for attempt in (lambda: agent.step(1.0, 2), lambda: agent.truncate(1.0, 2), lambda: agent.end(1.0)):
        with pytest.raises(ValueError, match=r"step_size\(1\) must be a finite number > 0"):
            attempt()
        assert state_of(agent) == before
    values |= {"α": 0.1, "ε": 2.0 if wrong == 0.0 else wrong}
    for attempt in (lambda: agent.step(1.0, 2), lambda: agent.truncate(1.0, 2), lambda: agent.start(1)):
        with pytest.raises(ValueError, match=r"epsilon\([12]\) must be a number in \[0, 1\]"):
            attempt()
        assert state_of(agent) == before


@every_agent
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_features": 0}, "n_features must be a whole number from 1"),
        ({"n_features": 2.0}, "n_features must be"),
        ({"n_actions": 0}, "n_actions must be a whole number from 1"),
        ({"n_actions": -1}, "n_actions must be"),
        ({"n_actions": 2.0}, "n_actions must be"),
        ({"n_actions": True}, "n_actions must be"),
        ({"n_actions": "2"}, "n_actions must be"),
        ({"n_features": 2**30, "n_actions": 2}, "n_actions must be a whole number from 1 to 1"),
        ({"step_size": 0.0}, "step_size must be a finite number > 0, got 0.0"),
        ({"step_size": NAN}, "step_size must be"),
        ({"step_size": True}, "step_size must be"),
        ({"trace_decay": 1.1}, r"trace_decay must be a number in \[0, 1\], got 1.1"),
        ({"trace_decay": None}, "trace_decay must be"),
        ({"discount": -0.1}, "discount must be"),
        ({"policy": 3}, "policy must be callable"),
        ({"initial_weights": np.zeros(6)}, r"a row for each feature and a column for each action, \(3, 2\)"),
        ({"initial_weights": np.zeros((2, 3))}, "got shape \\(2, 3\\)"),
        ({"initial_weights": np.full((3, 2), NAN)}, "initial_weights must be"),
        ({"initial_weights": np.zeros((3, 2), bool)}, "initial_weights must be"),
        ({"initial_weights": "x"}, "initial_weights must"),
    ],
)
def test_bad_settings_are_refused(agent_class, change, message):
    good = {"n_features": 3, "n_actions": 2, "step_size": 0.1, "trace_decay": 0.9, "discount": 0.9}
    agent_class(**good)
    with pytest.raises(ValueError, match=message):
        agent_class(**{**good, **change})


def test_unknown_options_are_refused():
    for agent_class in AGENTS:
        with pytest.raises(TypeError, match=rf"{agent_class.__name__} has no option 'clear'"):
            agent_class(3, 2, 0.1, 0.9, 0.9, clear=True)
    with pytest.raises(TypeError, match="WatkinsQ has no option 'clear_others'"):
        WatkinsQ(3, 2, 0.1, 0.9, 0.9, clear_others=True)
    assert ReplaceSarsa(3, 2, 0.1, 0.9, 0.9, clear_others=True).clear_others is True
    assert ReplaceSarsa(3, 2, 0.1, 0.9, 0.9).clear_others is False


def test_the_module_says_what_it_has():
    assert set(control.__all__) == set(dir(control))
    for kind in (*AGENTS, control.Agent, control.Policy, EpsilonGreedy, Greedy, Softmax, Uniform):
        assert kind.__name__ in control.__all__
    with pytest.raises(AttributeError, match=r"trueonline\.control has no 'Sarsa'; it has AccumulateSarsa"):
        _ = control.Sarsa
