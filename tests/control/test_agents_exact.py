"""Agents equal their equations, their definitions and their forward views at every step."""

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
from trueonline.control import EpsilonGreedy, Greedy, Softmax, Uniform


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
