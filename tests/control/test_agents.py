"""What agents promise beside exactness: copies, resets, seeds, and features of every type."""

import copy
import subprocess
import sys

import numpy as np
import pytest

from tests.control.agent_streams import (
    METHODS,
    Seen,
    Stream,
    assert_alike,
    draw,
    follow,
    spelt,
    tell,
    wavering,
)
from trueonline.control import (
    EpsilonGreedy,
    Greedy,
    TrueOnlineSarsa,
)


def final(agent, stream: Stream, form: str = "dense") -> list[Seen]:
    return list(follow(agent, stream, form))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "swift"])
def test_traces_are_of_the_last_transition_and_copies_are_given(name):
    method = METHODS[name]
    agent = method.agent(3, 2, 0.5, 0.5, 1.0, lambda q, rng, t: t % 2, **method.options)
    assert agent.weights.shape == agent.trace.shape == (3, 2)
    agent.start(0)
    agent.step(1.0, 1)
    np.testing.assert_allclose(agent.trace, [[1, 0], [0, 0], [0, 0]])
    agent.step(1.0, 2)
    np.testing.assert_allclose(agent.trace, [[0.5, 0], [0, 1], [0, 0]])  # all values were 0, and tied
    for given in (agent.weights, agent.trace):
        with pytest.raises(ValueError, match="read-only"):
            given[:] = 99.0
    agent.values(0)[:] = 99.0
    assert agent.values(0).max() < 2.0


def test_reset_equals_new_but_for_the_random_numbers():
    stream = draw(3, "binary")
    agent = stream.agent(TrueOnlineSarsa, EpsilonGreedy(0.5))
    final(agent, stream, "indices")
    agent.reset()
    assert (agent.steps, agent.action) == (0, None)
    np.testing.assert_array_equal(agent.weights, stream.initial)
    np.testing.assert_array_equal(agent.trace, 0.0)
    with pytest.raises(RuntimeError, match="no episode has begun"):
        agent.step(1.0, 0)
    new = stream.agent(TrueOnlineSarsa, EpsilonGreedy(0.5))
    new.rng.bit_generator.state = agent.rng.bit_generator.state
    assert_alike(follow(agent, stream, "indices"), follow(new, stream, "indices"), tolerance=0.0)


def test_initial_weights_are_taken_and_left_alone():
    given = np.arange(6.0).reshape(3, 2)
    for spelling in (given, given.tolist(), given.astype(int), np.asfortranarray(given), given.astype("f4")):
        agent = TrueOnlineSarsa(3, 2, 0.5, 0.9, 0.9, Greedy(), initial_weights=spelling)
        np.testing.assert_array_equal(agent.weights, given)
        np.testing.assert_array_equal(agent.values(np.array([0, 2])), [4.0, 6.0])
        assert agent.start(1) == 1
        agent.end(100.0)
        assert agent.weights[1, 1] == 51.5
    np.testing.assert_array_equal(given, np.arange(6.0).reshape(3, 2))
    agent = TrueOnlineSarsa(3, 2, 0.5, 0.9, 0.9, initial_weights=given)
    given[:] = 7.0
    agent.reset()
    assert agent.weights[0, 0] == 0.0


def test_the_same_seed_gives_the_same_agent():
    stream = draw(8, "binary", steps=200)._replace(actions=3, initial=np.zeros((draw(8, "binary").n, 3)))

    def actions(seed):
        agent = stream._replace(seed=seed).agent(TrueOnlineSarsa, EpsilonGreedy(0.5))
        return [seen.action for seen in follow(agent, stream, "indices")]

    assert actions(1) == actions(1) != actions(2)
    assert actions(np.random.default_rng(1)) == actions(1)


@pytest.mark.parametrize("form", ["dense", "indices", "pairs"])
def test_an_agent_keeps_its_own_copy_of_where_it_stands(form):
    """An environment may write into the same arrays again and again."""
    stream = draw(5, "binary")
    agent, other = (stream.agent(TrueOnlineSarsa, wavering) for _ in range(2))
    rng = np.random.default_rng(0)
    for event in stream.events:
        x = None if event.x is None else spelt(event.x, form, rng)
        mine = copy.deepcopy(x)
        for each, given in ((agent, mine), (other, x)):
            tell(each, event, given, event.gamma, event.lam)
        for array in mine if isinstance(mine, tuple) else () if mine is None else (mine,):
            array[:] = 0
        np.testing.assert_array_equal(agent.weights, other.weights)


def test_features_that_are_read_only_or_from_the_middle_of_a_buffer_are_taken():
    indices, unaligned = np.array([1, 2]), np.zeros(33, np.uint8)[1:].view(np.float64)
    unaligned[2] = 1.0
    indices.flags.writeable = False
    assert not unaligned.flags.aligned
    for x in (indices, unaligned):
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
