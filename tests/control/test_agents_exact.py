"""Agents equal their equations, their definitions and their forward views at every step."""

import numpy as np
import pytest

from tests.control.agent_streams import (
    EXACT,
    METHODS,
    TOLERANCE,
    assert_alike,
    draw,
    expected,
    follow,
    off,
    values_for,
    wavering,
)
from trueonline.control import EpsilonGreedy, Greedy, Softmax, TrueOnlineSarsa, Uniform


@pytest.mark.parametrize(("name", "schedule"), EXACT)
def test_agents_equal_their_equations_at_every_step_in_mixed_forms(name, schedule):
    """With their traces and actions. `tests/test_catalog.py` compares their weights with those of the definitions, form by form."""
    method, form = METHODS[name], "mixed binary" if METHODS[name].binary else "mixed"
    stream = draw(0, values_for(form, method.binary), schedule=schedule)
    agent = stream.agent(method.agent, wavering, **method.options)
    oracle = stream.oracle(method.oracle_for(schedule), wavering)
    assert_alike(follow(agent, stream, form), expected(oracle, stream))
    assert agent.steps == sum(event.what != "start" for event in stream.events)


@pytest.mark.parametrize(("name", "schedule"), EXACT)
def test_definitions_equal_the_equations_and_the_forward_views_at_every_step(name, schedule):
    method = METHODS[name]
    for oracle_class in filter(None, (method.oracle_for(schedule), method.forward)):
        for seed in range(3):
            stream = draw(seed, values_for("dense", method.binary), schedule=schedule, steps=40, longest=20)
            definition, oracle = stream.agent(method.definition, wavering), stream.oracle(oracle_class, wavering)
            found, right = (list(each) for each in (follow(definition, stream), expected(oracle, stream)))
            stays = [event.what != "cut" for event in stream.events]  # of a definition's truncate the action is not asked
            assert [s.action for s, asked in zip(found, stays, strict=True) if asked] == [
                s.action for s, asked in zip(right, stays, strict=True) if asked
            ]
            assert off([seen.weights for seen in found], [seen.weights for seen in right]) <= TOLERANCE


def test_a_policy_of_the_package_makes_the_same_agent_of_the_oracle():
    method = METHODS["true online watkins"]
    policies = [EpsilonGreedy(0.3), Greedy(), Softmax(0.5), Uniform(), EpsilonGreedy(lambda t: 1.0 / (1.0 + t))]
    for seed, policy in enumerate(policies):
        stream = draw(seed, "binary")
        agent = stream.agent(method.agent, policy, **method.options)
        assert_alike(follow(agent, stream, "indices"), expected(stream.oracle(method.oracle, policy), stream))


def test_a_long_sparse_run_stays_exact():
    """10,000 steps at λ = 0.95, some 800 of 1,200 entries traced: nothing adds up to more than rounding."""
    n, actions, steps = 400, 3, 10_000
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
        ended = t % 2499 == 2498
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
