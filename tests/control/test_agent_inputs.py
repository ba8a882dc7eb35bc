"""Bad input changes nothing in an agent, and the error says what was wrong."""

import pickle
from typing import Any

import numpy as np
import pytest

from tests.control.agent_streams import AGENTS, METHODS, assert_same, draw, features, spelt, tell
from tests.learners.test_inputs import FEATURES, N
from trueonline import control, forward
from trueonline.control import EpsilonGreedy, Greedy, ReplaceSarsa, Softmax, TrueOnlineSarsa, Uniform, WatkinsQ

NAN = float("nan")


def state_of(agent) -> tuple[bytes, Any]:
    """All that an agent is, bit for bit."""
    parts = {**agent._dump_memory(), "action": agent.action, "steps": agent.steps}
    return pickle.dumps({**parts, "here": agent._here, "rng": agent.rng.bit_generator.state}), agent.policy


BAD_FEATURES = [x for x, _ in FEATURES]
BAD_NUMBERS = [NAN, np.inf, -np.inf, "1", None, True, np.bool_(True), 1j, [1.0], np.array([1.0])]
BAD_UNITS = [NAN, -0.1, 1.1, np.inf, "1", True, 1j, [0.5]]


# One class is behind all agents. One of binary features and one of any stand for the others.
@pytest.mark.parametrize("name", ["replace", "true online watkins"])
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
    attempts = [(call, (given,)) for given in bad for call in (agent.start, agent.values)]
    attempts += [(call, (1.0, given)) for given in bad for call in (agent.step, agent.truncate)]
    attempts += [(call, (given, x)) for given in BAD_NUMBERS for call in (agent.step, agent.truncate)]
    attempts += [(agent.end, (given,)) for given in BAD_NUMBERS]
    attempts += [(call, (1.0, x, given)) for given in BAD_UNITS for call in (agent.step, agent.truncate)]
    attempts += [(agent.step, (1.0, x, 0.9, given)) for given in BAD_UNITS]
    order = np.random.default_rng(1).permutation(len(attempts))
    tried = 0
    for number, event in enumerate(events):
        standing = agent.action is not None
        for call, given in (attempts[i] for i in order[number % 12 :: 12]) if standing else ():
            before = state_of(agent)
            with pytest.raises(ValueError) as caught:  # noqa: PT011
                call(*given)
            assert str(caught.value), "what was wrong is said"
            assert state_of(agent) == before
            tried += 1
        x_given = None if event.x is None else spelt(event.x, form, rng)
        chosen = {tell(each, event, x_given, event.gamma, event.lam) for each in (agent, undisturbed)}
        assert len(chosen) == 1
        assert_same(agent, undisturbed)
    assert tried > len(attempts)


@pytest.mark.parametrize("definition", [*(each.definition for each in METHODS.values()), forward.TreeBackupQSum])
def test_a_definition_draws_nothing_for_what_it_refuses(definition):
    agent = definition(N, 3, 0.1, 0.9, 0.9, EpsilonGreedy(0.5), seed=1)
    before = agent.rng.bit_generator.state
    for call in (lambda: agent.step(1.0, 0), lambda: agent.end(1.0)):
        with pytest.raises(RuntimeError, match="no episode has begun"):
            call()
    assert agent.rng.bit_generator.state == before
    agent.start(0)
    before = agent.rng.bit_generator.state, agent.inner.steps, agent.weights.tobytes()
    for given in ((NAN, 1), (1.0, N), (1.0, 1, 2.0), (1.0, 1, 0.9, -1.0)):
        with pytest.raises(ValueError, match=r"must be|indices go"):
            agent.step(*given)
        assert (agent.rng.bit_generator.state, agent.inner.steps, agent.weights.tobytes()) == before


def refuse_all(agent, error, message, *attempts):
    """Each of the calls raises this error and changes nothing."""
    before = state_of(agent)
    for attempt in attempts:
        with pytest.raises(error, match=message):
            attempt()
        assert state_of(agent) == before


def test_nothing_is_learned_before_a_start():
    agent = TrueOnlineSarsa(N, 2, 0.1, 0.9, 0.9, seed=1)
    calls = lambda: agent.step(1.0, 0), lambda: agent.end(1.0), lambda: agent.truncate(1.0, 0)
    refuse_all(agent, RuntimeError, r"no episode has begun: call start\(x\) with its first features", *calls)
    assert agent.action is None
    for leave in (lambda: agent.end(1.0), lambda: agent.truncate(1.0, 1)):
        agent.start(0)
        leave()
        refuse_all(agent, RuntimeError, "no episode has begun", *calls)


@pytest.mark.parametrize(
    "wrong", [3, -1, 1.0, True, np.bool_(False), None, "1", np.float64(0.0), np.nan, [1], np.array([1])]
)
def test_a_wrong_action_of_a_policy_changes_nothing(wrong):
    choice = {"action": 1}
    agent = TrueOnlineSarsa(3, 3, 0.1, 0.9, 0.9, lambda values, rng, t: choice["action"])
    agent.start(0)
    agent.step(1.0, 1)
    choice["action"] = wrong
    calls = lambda: agent.start(2), lambda: agent.step(1.0, 2), lambda: agent.truncate(1.0, 2)
    refuse_all(agent, ValueError, "the policy must choose an action from 0 to 2, it chose", *calls)


def test_actions_of_numpy_are_taken():
    for kind in (np.int64, np.int32, np.uint8):
        agent = TrueOnlineSarsa(2, 3, 0.1, 0.9, 0.9, lambda q, rng, t, kind=kind: kind(2))
        assert agent.start(0) == 2
        assert type(agent.step(1.0, 1)) is int


def test_a_policy_that_fails_changes_nothing():
    actions = [0, 1]
    agent = TrueOnlineSarsa(3, 2, 0.1, 0.9, 0.9, lambda values, rng, t: actions.pop())
    agent.start(0)
    agent.step(1.0, 1)
    calls = lambda: agent.start(2), lambda: agent.step(1.0, 2), lambda: agent.truncate(1.0, 2)
    refuse_all(agent, IndexError, "pop from empty list", *calls)


@pytest.mark.parametrize("wrong", [NAN, 0.0, -1.0, "x", None, True])
def test_a_wrong_schedule_changes_nothing(wrong):
    values = {"α": 0.1, "ε": 0.5}
    policy = EpsilonGreedy(lambda t: values["ε"])
    agent = TrueOnlineSarsa(3, 2, lambda t: values["α"], 0.9, 0.9, policy, seed=1)
    agent.start(0)
    agent.step(1.0, 1)
    values["α"] = wrong
    calls = lambda: agent.step(1.0, 2), lambda: agent.truncate(1.0, 2)
    refuse_all(agent, ValueError, r"step_size\(1\) must be a finite number > 0", *calls, lambda: agent.end(1.0))
    values |= {"α": 0.1, "ε": 2.0 if wrong == 0.0 else wrong}
    refuse_all(agent, ValueError, r"epsilon\([12]\) must be a number in \[0, 1\]", *calls, lambda: agent.start(1))


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
        ({"seed": -1}, "seed must be a whole number ≥ 0, got -1"),
        ({"seed": [1, 2.5]}, "seed must be a whole number ≥ 0, got 2.5"),
        ({"initial_weights": np.zeros(6)}, r"a row for each feature and a column for each action, \(3, 2\)"),
        ({"initial_weights": np.zeros((2, 3))}, "got shape \\(2, 3\\)"),
        ({"initial_weights": np.full((3, 2), NAN)}, "initial_weights must be"),
        ({"initial_weights": np.zeros((3, 2), bool)}, "initial_weights must be"),
        ({"initial_weights": "x"}, "initial_weights must"),
    ],
)
def test_bad_settings_are_refused(change, message):
    good = {"n_features": 3, "n_actions": 2, "step_size": 0.1, "trace_decay": 0.9, "discount": 0.9}
    TrueOnlineSarsa(**good)
    with pytest.raises(ValueError, match=message):
        TrueOnlineSarsa(**{**good, **change})


def test_unknown_options_are_refused():
    for agent_class in AGENTS:
        with pytest.raises(TypeError, match=rf"{agent_class.__name__} takes no argument 'clear'"):
            agent_class(3, 2, 0.1, 0.9, 0.9, clear=True)
    with pytest.raises(TypeError, match="WatkinsQ takes no argument 'clear_others'"):
        WatkinsQ(3, 2, 0.1, 0.9, 0.9, clear_others=True)
    assert ReplaceSarsa(3, 2, 0.1, 0.9, 0.9, clear_others=True).clear_others is True
    assert ReplaceSarsa(3, 2, 0.1, 0.9, 0.9).clear_others is False


def test_the_module_says_what_it_has():
    assert set(control.__all__) == set(dir(control))
    for kind in (*AGENTS, control.Agent, control.Policy, EpsilonGreedy, Greedy, Softmax, Uniform):
        assert kind.__name__ in control.__all__
    with pytest.raises(AttributeError, match=r"trueonline\.control has no 'Sarsa'; it has TrueOnline.*AccumulateSarsa"):
        _ = control.Sarsa
