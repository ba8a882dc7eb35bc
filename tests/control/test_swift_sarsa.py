"""Swift-Sarsa: SwiftTD over ψ(s, a), held to its equations in every form of features."""

import numpy as np
import pytest

import trueonline as to
from tests.control.agent_streams import FORMS, TOLERANCE, assert_alike, draw, expected, follow, off, wavering
from tests.oracles import swift
from trueonline import forward
from trueonline.control import SwiftSarsa

SETTINGS = {"bound": 0.3, "decay": 0.99, "meta_step_size": 0.01}


class Oracle(swift.SwiftSarsa):
    settings = SETTINGS


@pytest.mark.parametrize("form", FORMS)
def test_equals_its_equations_at_every_step(form):
    for seed in range(3):
        stream = draw(seed, FORMS[form])
        agent = stream.agent(SwiftSarsa, wavering, **SETTINGS)
        assert_alike(follow(agent, stream, form), expected(stream.oracle(Oracle, wavering), stream))
        assert agent.step_sizes.shape == agent.weights.shape


def test_the_definition_is_the_equations_too():
    for seed in range(3):
        stream = draw(seed, "real", steps=40)
        definition = stream.agent(forward.SwiftSarsaEquations, wavering, **SETTINGS)
        found, right = list(follow(definition, stream)), list(expected(stream.oracle(Oracle, wavering), stream))
        assert off([seen.weights for seen in found], [seen.weights for seen in right]) <= TOLERANCE


def test_a_saved_agent_resumes_bit_for_bit(tmp_path):
    agent = SwiftSarsa(6, 3, 0.05, 0.9, 0.95, seed=0, **SETTINGS)
    rng = np.random.default_rng(1)
    agent.start(rng.choice(6, 2, replace=False))
    for _ in range(50):
        agent.step(float(rng.normal()), rng.choice(6, 2, replace=False))
    agent.save(tmp_path / "agent.npz")
    other = to.load(tmp_path / "agent.npz")
    assert repr(other) == repr(agent)
    for _ in range(50):
        x, reward = rng.choice(6, 2, replace=False), float(rng.normal())
        assert agent.step(reward, x) == other.step(reward, x)
    np.testing.assert_array_equal(agent.weights, other.weights)
    np.testing.assert_array_equal(agent.step_sizes, other.step_sizes)


def test_a_schedule_is_refused():
    with pytest.raises(ValueError, match=r"step_size of SwiftSarsa must be a number.*got a schedule"):
        SwiftSarsa(6, 3, lambda t: 0.1, 0.9, 0.95)
