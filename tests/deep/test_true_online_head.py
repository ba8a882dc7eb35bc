"""A network with a true online head: equal to linear methods where the body is frozen, and to its definition where it learns."""

import numpy as np
import pytest

import trueonline as to
from trueonline import deep
from trueonline.deep.checks.definition import HeadDefinition

KINDS = (deep.TrueOnlineHead, deep.TrueOnlineHeadQ, deep.TrueOnlineHeadSarsa)


def _net(n_outputs=1, seed=3):
    return deep.MLP(4, (9, 7), n_outputs, sparsity=0.3, seed=seed)


def _stream(seed=0, steps=60):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(steps + 1, 4)), rng.normal(size=steps), rng.random(steps) < 0.1


def _features(net, x):
    """The units of the last hidden layer (the outputs of a network with the identity on top), and a 1."""
    body = deep.MLP(4, (9, 7), 7)
    body.parameters = [*net.parameters[:4], np.eye(7), np.zeros(7)]
    return np.append(body(x), 1.0)


@pytest.mark.parametrize("swift", [False, True])
def test_with_a_frozen_body_the_head_is_the_linear_method_bit_for_bit(swift):
    X, rewards, _ = _stream()
    net = _net()
    *_, weights, bias = net.parameters
    make = to.SwiftTD if swift else to.TrueOnlineTD
    linear = make(8, 0.05, 0.8, 0.9, initial_weights=np.append(weights, bias))
    learner = deep.TrueOnlineHead(net, 0.9, 0.8, head_step_size=0.05, swift=swift, frozen=True)
    learner.start(X[0])
    linear.start(_features(net, X[0]))
    for t in range(60):
        more = {"trace_decay": 0.5} if t % 5 == 0 else {"discount": 0.7} if t % 7 == 0 else {}
        assert learner.update(rewards[t], X[t + 1], **more) == linear.update(rewards[t], _features(net, X[t + 1]), **more)
        assert (learner.weights[-8:] == linear.weights).all()
        assert (learner.trace[-8:] == linear.trace).all()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_with_a_frozen_body_an_agent_is_the_linear_agent(kind):
    X, rewards, ends = _stream(1)
    net = _net(3)
    *_, weights, bias = net.parameters
    make = to.control.TrueOnlineWatkinsQ if kind is deep.TrueOnlineHeadQ else to.control.TrueOnlineSarsa
    chosen = iter(np.random.default_rng(2).integers(3, size=200).tolist())
    log = []

    def policy(values, rng, t):
        log.append(int(values.argmax()) if len(log) % 3 else next(chosen))
        return log[-1]

    agent = kind(net, 0.9, 0.8, head_step_size=0.02, frozen=True, policy=policy)
    replay = iter(log)
    linear = make(
        8, 3, 0.02, 0.8, 0.9, policy=lambda q, rng, t: next(replay), initial_weights=np.vstack([weights.T, bias])
    )
    for each, seen in ((agent, np.array), (linear, lambda x: _features(net, x))):
        each.start(seen(X[0]))
        for t in range(60):
            if ends[t]:
                each.end(rewards[t])
                each.start(seen(X[t + 1]))
            else:
                each.step(rewards[t], seen(X[t + 1]))
    assert agent.weights[-24:].reshape(8, 3) == pytest.approx(linear.weights, rel=1e-12, abs=1e-14)


def test_with_a_learning_body_it_equals_its_definition():
    X, rewards, ends = _stream(3)
    learner = deep.TrueOnlineHead(_net(), 0.9, 0.8, 0.5, 0.7, head_step_size=0.03)
    truth = HeadDefinition(_net(), 0.9, 0.8, 0.5, 0.7, head_step_size=0.03)
    for t in range(60):
        step = (X[t], rewards[t], X[t + 1], bool(ends[t]))
        assert learner.learn(*step) == pytest.approx(truth.learn(*step), rel=1e-9)
    for ours, right in zip(learner.net.parameters, truth.value.network.parameters, strict=True):
        assert ours == pytest.approx(right, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_it_resumes_bit_for_bit(kind, tmp_path):
    X, rewards, _ = _stream(4)
    one = kind(_net(1 if kind is deep.TrueOnlineHead else 3), 0.9, 0.8, **({} if kind is KINDS[0] else {"seed": 1}))
    one.start(X[0])
    for t in range(20):
        (one.update if kind is KINDS[0] else one.step)(rewards[t], X[t + 1])
    one.save(tmp_path / "one.npz")
    other = to.load(tmp_path / "one.npz")
    for each in (one, other):
        for t in range(20, 40):
            (each.update if kind is KINDS[0] else each.step)(rewards[t], X[t + 1])
    assert (one.weights == other.weights).all()
    assert (one.trace == other.trace).all()
    one.reset()
    fresh = _net(one.net.n_outputs)
    assert all((a == b).all() for a, b in zip(one.net.parameters, fresh.parameters, strict=True))


def test_run_is_repeated_learn_and_changes_nothing_if_it_fails():
    X, rewards, ends = _stream(5)
    one, other = (deep.TrueOnlineHead(_net(), 0.9, 0.8) for _ in range(2))
    values = []
    for t in range(60):
        values.append(one.predict(X[t]))
        one.learn(X[t], rewards[t], X[t + 1], bool(ends[t]))
    assert other.run(X, rewards, terminated=ends).tolist() == values
    assert (one.weights == other.weights).all()
    *body, weights, bias = other.net.parameters
    other.net.parameters = [*body, np.full_like(weights, 1e308), bias]
    before, trace = other.weights, other.trace
    assert (before[-8:-1] == 1e308).all()
    with pytest.raises(ValueError, match=r"at transition 0: .*diverged"):
        other.run(X[:3], [1.0, 1.0])
    assert (other.weights == before).all()
    assert (other.trace == trace).all()


def test_run_of_an_agent_cuts_the_trace_where_learn_does():
    X, rewards, _ = _stream(6)
    rng = np.random.default_rng(6)
    actions, ends, greedy = rng.integers(0, 3, 60), rng.random(60) < 0.2, rng.random(60) < 0.6
    one, other = (deep.TrueOnlineHeadQ(_net(3), 0.9, 0.8) for _ in range(2))
    for first, last in ((0, 20), (20, 60)):
        deltas = [
            one.learn(X[t], actions[t], rewards[t], X[t + 1], bool(ends[t]), bool(greedy[t])) for t in range(first, last)
        ]
        part = slice(first, last)
        ran = other.run(X[first : last + 1], actions[part], rewards[part], ends[part], greedy[part], resume=first > 0)
        assert ran.tolist() == deltas
    assert (one.weights == other.weights).all()
    assert (one.trace == other.trace).all()


BAD = {
    "net must have a hidden layer": lambda: deep.TrueOnlineHead(deep.MLP(4, (), 1), 0.9, 0.8),
    "net must have 1 output": lambda: deep.TrueOnlineHead(_net(3), 0.9, 0.8),
    "head_step_size must be": lambda: deep.TrueOnlineHead(_net(), 0.9, 0.8, head_step_size=0.0),
    "frozen must be True or False": lambda: deep.TrueOnlineHeadQ(_net(3), 0.9, 0.8, frozen="yes"),
    "x must have n_features = 4": lambda: deep.TrueOnlineHead(_net(), 0.9, 0.8).learn(np.zeros(3), 0.0, np.zeros(4)),
    "action must be a whole number": lambda: deep.TrueOnlineHeadQ(_net(3), 0.9, 0.8).learn(
        np.ones(4), 3, 0.0, np.ones(4)
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_refused(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()
