"""Algorithm 5 as it is printed is not equal to its forward view; this package's is."""

from typing import Any

import numpy as np
import pytest

from tests.control.agent_streams import TOLERANCE, WATKINS, draw, expected, off, slipped
from tests.oracles import control as naive


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


def test_where_the_next_step_starts_by_hand():
    """Q(1, ·) = (0, 4), and action 0 is taken in state 1: the reward that follows is for (1, 0), not for (1, 1)."""
    for agent_class in WATKINS:
        agent = agent_class(2, 2, 0.5, 1.0, 0.5, lambda q, rng, t: 0, initial_weights=[[0, 0], [0, 4]])
        agent.start(0)
        agent.step(1.0, 1)  # δ = 1 + ½·4 − 0 = 3
        np.testing.assert_allclose(agent.weights, [[1.5, 0.0], [0.0, 4.0]])
        agent.end(2.0)
        np.testing.assert_allclose(agent.weights, [[1.5, 0.0], [1.0, 4.0]])
