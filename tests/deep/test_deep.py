"""Streaming deep RL equals its definitions, published numbers and finite differences, and refuses bad input."""

import copy
import pickle
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import trueonline as to
from trueonline import deep
from trueonline.checks.trials import KINDS
from trueonline.deep.checks import small
from trueonline.deep.checks.definition import Network
from trueonline.deep.checks.small import NETWORKS

GIVEN = Path(__file__).parents[3] / "shared" / "data" / "stream_x"
GIVEN = GIVEN if GIVEN.is_dir() else Path("/nowhere")
needs_numbers = pytest.mark.skipif(not GIVEN.is_dir(), reason="the recorded transitions are not here")
DENSE = KINDS[0]
KINDS_OF_STEPS = [DENSE, replace(DENSE, step_sizes=(0.001, 0.02))]  # most steps are bounded, and few
METHODS = ("stream_td", "stream_q", "stream_sarsa", "stream_ac")


def _net(n_inputs, n_outputs, options, seed=3):
    return deep.MLP(n_inputs, n_outputs=n_outputs, sparsity=0.3, seed=seed, **options)


def _given(name):
    numbers = np.load(GIVEN / f"{name}.npz")
    return numbers, {key: float(numbers[key]) for key in numbers if numbers[key].ndim == 0}


def _with(numbers, prefix, n_outputs):
    net = deep.MLP(5, (12, 12), n_outputs)
    net.parameters = [numbers[f"{prefix}before{i}"] for i in range(6)]
    return net


def _furthest(net, numbers, prefix):
    return max(np.abs(each - numbers[f"{prefix}after{i}"]).max() for i, each in enumerate(net.parameters))


@needs_numbers
def test_stream_q_gives_the_published_numbers():
    numbers, settings = _given("given_q")
    net = _with(numbers, "", 3)
    agent = deep.StreamQ(net, settings["gamma"], settings["lam"], settings["lr"], settings["kappa"])
    X = numbers["X"]
    for t in range(400):
        assert np.abs(agent.values(X[t]) - numbers["Q"][t]).max() < 1e-10
        step = (X[t], numbers["A"][t], numbers["R"][t], X[t + 1], numbers["D"][t], not numbers["G"][t])
        assert abs(agent.learn(*step) - numbers["delta"][t]) < 1e-10
    assert _furthest(net, numbers, "") < 1e-10


@needs_numbers
def test_stream_ac_gives_the_published_numbers():
    numbers, settings = _given("given_ac")
    actor, critic = _with(numbers, "actor_", 3), _with(numbers, "critic_", 1)
    kappas = (settings["kappa_policy"], settings["kappa_value"], settings["entropy"], settings["lr"])
    agent = deep.StreamAC(actor, critic, settings["gamma"], settings["lam"], *kappas)
    X = numbers["X"]
    for t in range(400):
        assert np.abs(agent.probabilities(X[t]) - numbers["pi"][t]).max() < 1e-10
        assert abs(agent.predict(X[t]) - numbers["V"][t]) < 1e-10
        agent.learn(X[t], numbers["A"][t], numbers["R"][t], X[t + 1], numbers["D"][t])
    assert _furthest(actor, numbers, "actor_") < 1e-10
    assert _furthest(critic, numbers, "critic_") < 1e-10


def _named(network):
    return "-".join(map(str, network.values()))


@pytest.mark.parametrize("network", NETWORKS, ids=_named)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_equals_its_definition_with_every_network(name, network):
    report = to.verify(partial(getattr(small, name), network=network), kinds=KINDS_OF_STEPS, trials=1, steps=20)
    assert report.exact, report


@pytest.mark.parametrize("name", METHODS)
def test_verify_notices_another_network(name):
    """The definition has the same parameters, but another slope of its units."""
    learner, definition = getattr(small, name), getattr(small, f"{name}_definition")
    one, other = ({"hidden": (8, 12), "activation": each} for each in ("leaky_relu", "relu"))
    report = to.verify(
        partial(learner, network=one), partial(definition, network=other), kinds=["dense"], trials=1, steps=5
    )
    assert not report.exact


@pytest.mark.parametrize("options", NETWORKS, ids=_named)
def test_the_definition_has_the_gradient_of_finite_differences(options):
    net, x = _net(3, 2, options), np.array([0.3, -1.2, 0.7])
    network = Network(net)
    _, jacobians = network.jacobians(x)
    for parameter, jacobian in zip(network.parameters, jacobians, strict=True):
        for place in np.ndindex(parameter.shape):
            middle, sides = parameter[place], []
            for step in (1e-6, -1e-6):
                parameter[place] = middle + step
                sides.append(network.outputs(x))
            parameter[place] = middle
            assert (sides[0] - sides[1]) / 2e-6 == pytest.approx(jacobian[(slice(None), *place)], abs=1e-7)


def _stream(rng, steps=50):
    return rng.normal(size=(steps + 1, 4)), rng.normal(size=steps), rng.random(steps) < 0.1


def _agents():
    net = {"hidden": (8, 8)}
    return {
        "StreamTD": deep.StreamTD(_net(4, 1, net), 0.9, 0.8),
        "StreamQ": deep.StreamQ(_net(4, 3, net), 0.9, 0.8, seed=1),
        "StreamSarsa": deep.StreamSarsa(_net(4, 3, net), 0.9, 0.8, seed=1),
        "StreamAC": deep.StreamAC(_net(4, 3, net), _net(4, 1, net, 4), 0.9, 0.8, seed=1),
    }


def test_run_is_repeated_learn_bit_for_bit():
    rng = np.random.default_rng(6)
    X, rewards, ends = _stream(rng)
    actions, greedy = rng.integers(3, size=51), rng.random(50) < 0.7
    streams = {  # the arguments of run, and those of learn that only some have, before and after x_next
        "StreamTD": ((X, rewards, None, ends), lambda t: (), lambda t: (ends[t],)),
        "StreamQ": ((X, actions[:-1], rewards, ends, greedy), lambda t: (actions[t],), lambda t: (ends[t], greedy[t])),
        "StreamSarsa": ((X, actions, rewards, ends), lambda t: (actions[t],), lambda t: (actions[t + 1], ends[t])),
        "StreamAC": ((X, actions[:-1], rewards, ends), lambda t: (actions[t],), lambda t: (ends[t],)),
    }
    for name, (whole, before, after) in streams.items():
        one, other = _agents()[name], _agents()[name]

        def learn(learner, t, before=before, after=after, predicts=name == "StreamTD"):
            value = learner.predict(X[t]) if predicts else None
            delta = learner.learn(X[t], *before(t), rewards[t], X[t + 1], *after(t))
            return delta if value is None else value

        assert one.run(*whole).tolist() == [learn(other, t) for t in range(50)]
        assert (one.weights == other.weights).all()
        assert (one.trace == other.trace).all()
        assert learn(one, 3) == learn(other, 3)  # the trace is continued in the same way
        assert (one.weights == other.weights).all()


def test_sparse_features_and_other_numbers_are_the_same_input():
    one, other = (_agents()["StreamTD"] for _ in range(2))
    one.learn(np.array([0.0, 1.0, 0.0, 1.0]), 1.0, np.array([0.0, 0.0, 2.5, 0.0]))
    other.learn([1, 3], 1, ([2], [2.5]))
    assert (one.weights == other.weights).all()
    one.run(np.eye(4)[[0, 2, 1]], [1.0, 2.0])
    other.run(np.array([[0], [2], [1]]), [1.0, 2.0])
    assert (one.weights == other.weights).all()


@pytest.mark.parametrize("name", ["StreamTD", "StreamQ", "StreamSarsa", "StreamAC"])
def test_a_loaded_learner_resumes_bit_for_bit(name, tmp_path):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 4))
    one = _agents()[name]
    one.start(X[0])
    proceed = one.step if hasattr(one, "step") else one.update
    for t in range(1, 20):
        proceed(float(X[t, 0]), X[t])
    one.save(tmp_path / "one.npz")
    other = to.load(tmp_path / "one.npz")
    assert repr(other) == repr(one)
    for each in (one, other):
        for t in range(20, 40):
            (each.step if hasattr(each, "step") else each.update)(float(X[t, 0]), X[t])
    assert (one.weights == other.weights).all()
    assert (one.trace == other.trace).all()
    one.reset()
    other.reset()
    assert (one.weights == _agents()[name].weights).all()
    assert (one.weights == other.weights).all()


def test_an_agent_learns_and_resumes_in_an_environment(tmp_path):
    gym = pytest.importorskip("gymnasium")
    env = gym.make("CartPole-v1", max_episode_steps=60)

    def train(episodes, file):
        agent = deep.StreamQ(_net(4, 2, {"hidden": (8, 8)}), 0.9, 0.8, seed=1)
        return to.control.train(env, agent, np.asarray, episodes=episodes, checkpoint=tmp_path / file).returns.tolist()

    train(5, "parts.npz")
    assert train(12, "parts.npz") == train(12, "whole.npz")


X0, X1 = np.zeros(4), np.ones(4)
BAD = {
    "x_next must be features, got None; at the end": lambda: _agents()["StreamTD"].learn(X0, 0.0, None),
    "terminated must be True or False": lambda: _agents()["StreamTD"].learn(X0, 0.0, X1, "False"),
    "terminated must be 2 booleans": lambda: _agents()["StreamTD"].run(np.zeros((3, 4)), np.zeros(2), None, [True]),
    r"X\[1\] must be finite, got nan at position 2": lambda: _agents()["StreamTD"].run(
        [[0.0] * 4, [0.0, 0.0, np.nan, 0.0]], [1.0]
    ),
    "x must have n_features = 4": lambda: _agents()["StreamTD"].learn(np.zeros(3), 0.0, X1),
    "x_next must be finite": lambda: _agents()["StreamQ"].learn(X0, 0, 0.0, X1 * np.nan),
    "reward must be a finite number": lambda: _agents()["StreamQ"].learn(X0, 0, np.inf, X1),
    "action must be a whole number from 0 to 2": lambda: _agents()["StreamAC"].learn(X0, 3, 0.0, X1),
    "action must be a whole number from 0 to 2, got 1.9": lambda: _agents()["StreamQ"].learn(X0, 1.9, 0.0, X1),
    "next_action must be a whole number from 0 to 2, got -1": lambda: _agents()["StreamSarsa"].learn(X0, 1, 0.0, X1, -1),
    "reward must be a finite number, got True": lambda: _agents()["StreamQ"].learn(X0, 1, True, X1),
    "greedy must be True or False": lambda: _agents()["StreamQ"].learn(X0, 1, 0.0, X1, greedy="no"),
    "next_action must be a whole number": lambda: _agents()["StreamSarsa"].learn(X0, 1, 0.0, X1, None),
    "actions must be 50 whole numbers": lambda: _agents()["StreamQ"].run(np.zeros((51, 4)), np.full(50, 3), np.zeros(50)),
    "net must have 1 output": lambda: deep.StreamTD(deep.MLP(4, (), 2), 0.9, 0.8),
    "net must be an MLP": lambda: deep.StreamQ(object(), 0.9, 0.8),
    "two networks": lambda: deep.StreamAC(*[deep.MLP(4)] * 2, 0.9, 0.8),
    "as many inputs": lambda: deep.StreamAC(deep.MLP(4), deep.MLP(5), 0.9, 0.8),
    "kappa must be": lambda: deep.StreamQ(deep.MLP(4), 0.9, 0.8, 1.0, 0.0),
    "discount must be": lambda: deep.StreamQ(deep.MLP(4), 1.9, 0.8),
    "activation must be one of": lambda: deep.MLP(4, activation="gelu"),
    "hidden must be a whole number": lambda: deep.MLP(4, (0,)),
    "hidden must list": lambda: deep.MLP(4, 32),
    "parameters must be 2 arrays": lambda: setattr(deep.MLP(4, ()), "parameters", []),
    r"of shape \(1, 4\)": lambda: setattr(deep.MLP(4, ()), "parameters", [np.zeros((4, 1)), np.zeros(1)]),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_refused(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_a_refused_transition_and_a_diverged_network_change_nothing():
    learner = deep.StreamTD(deep.MLP(2, (), sparsity=0.0, seed=0), 0.9, 0.8)
    learner.net.parameters = [np.full((1, 2), 1e308), np.zeros(1)]
    before = learner.weights
    for learn in (
        lambda: learner.learn(np.full(2, 10.0), 0.0, np.zeros(2)),
        lambda: learner.run(np.full((3, 2), 10.0), np.zeros(2)),
        lambda: learner.learn(np.zeros(2), np.nan, np.zeros(2)),
    ):
        with pytest.raises(ValueError, match=r"diverged|reward"):
            learn()
        assert (learner.weights == before).all()
        assert not learner.trace.any()
        assert learner.steps == 0


FLAT = {"hidden": (7,), "layer_norm": False}
GROWING = {  # without normalisation and with a small κ, steps overshoot
    "StreamTD": lambda: deep.StreamTD(_net(4, 1, FLAT), 0.99, 0.8, kappa=1e-3),
    "StreamQ": lambda: deep.StreamQ(_net(4, 3, FLAT), 0.99, 0.8, kappa=1e-3),
    "StreamSarsa": lambda: deep.StreamSarsa(_net(4, 3, FLAT), 0.99, 0.8, kappa=1e-3),
    "StreamAC": lambda: deep.StreamAC(_net(4, 3, FLAT), _net(4, 1, FLAT), 0.99, 0.8, kappa_value=1e-3),
    "TrueOnlineHead": lambda: deep.TrueOnlineHead(_net(4, 1, FLAT), 0.99, 0.8, head_step_size=1.0),
    "TrueOnlineHeadQ": lambda: deep.TrueOnlineHeadQ(_net(4, 3, FLAT), 0.99, 0.8, head_step_size=1.0),
}


@pytest.mark.parametrize("name", GROWING)
def test_a_network_that_grows_beyond_any_return_is_noticed_and_keeps_its_parameters(name, tmp_path):
    X, rewards, _ = _stream(np.random.default_rng(10), 2000)
    learner = GROWING[name]()

    def learn(t):
        action = () if name in ("StreamTD", "TrueOnlineHead") else (t % 3,)
        following = ((t + 1) % 3,) if name == "StreamSarsa" else ()
        return learner.learn(X[t], *action, rewards[t], X[t + 1], *following)

    with pytest.raises(ValueError, match=r"the network has diverged: .* use a larger kappa"):  # noqa: PT012
        for t in range(2000):
            before, trace, steps = learner.weights, learner.trace, learner.steps
            if t % 10 == 9:
                learner.save(tmp_path / "learner.npz")
                learner = to.load(tmp_path / "learner.npz")  # it keeps what divergence is judged by
            assert not learner.diverged
            assert abs(learn(t)) < 10 * 100 * np.abs(rewards).max()  # 10 times the largest |R|/(1 − γ)
    assert learner.diverged
    assert learner.steps == steps
    assert (learner.weights == before).all()
    assert (learner.trace == trace).all()
    learner.reset()
    assert not learner.diverged
    learn(0)


def test_without_a_discount_the_longest_episode_says_which_values_are_possible():
    critic, x = deep.StreamTD(deep.MLP(1, ()), 1.0, 0.8, kappa=1e9), np.ones(1)

    def is_learned(value, terminated=False):
        critic.net._w[1] = value  # the bias, as if it had been learned
        try:
            critic.learn(x, 1.0, x, terminated)
        except ValueError:
            return False
        return True

    assert [is_learned(value) for value in (0.0, 900.0, 1100.0)] == [True, True, False]  # an episode counts as 100 steps
    assert all(is_learned(0.0) for _ in range(298))
    assert is_learned(0.0, terminated=True)  # after 301 steps
    assert [is_learned(value) for value in (2900.0, 3100.0)] == [True, False]


def test_large_values_that_are_possible_are_no_divergence():
    net = deep.MLP(4, (8,), 1, sparsity=0.3, seed=0)
    net.parameters = [*net.parameters[:2], 1e9 * np.ones((1, 8)), np.array([1e9])]  # learned elsewhere from large rewards
    critic = deep.StreamTD(net, 0.99, 0.8)
    X, rewards, ends = _stream(np.random.default_rng(11), 200)
    critic.run(X, 1e9 * rewards, terminated=ends)
    assert not critic.diverged


def test_inputs_that_would_overflow_are_refused():
    critic = deep.StreamTD(deep.MLP(2, (), 1), 0.9, 0.8)
    critic.net.parameters = [np.zeros((1, 2)), np.zeros(1)]
    for refused in (
        lambda: critic.learn(np.full(2, 1e101), 1.0, np.ones(2)),
        lambda: critic.learn(np.ones(2), 1.0, np.full(2, 1e308)),
        lambda: critic.run(np.full((3, 2), 1e308), [1.0, 1.0]),
        lambda: critic.predict([1e308, 0.0]),
    ):
        with pytest.raises(ValueError, match=r"must not exceed 1e\+100 in size, got 1e\+.*: normalise the inputs"):
            refused()
    assert not critic.weights.any()
    assert not critic.diverged


@pytest.mark.parametrize("name", ["StreamTD", "StreamQ", "StreamSarsa", "StreamAC"])
def test_a_refused_reward_leaves_no_mark_in_a_file(name):
    learner = _agents()[name]
    action, following = ((), (1,))[name != "StreamTD"], ((), (2,))[name == "StreamSarsa"]
    learner.learn(X0, *action, 1.0, X1, *following)
    before = copy.deepcopy(learner._dump())
    with pytest.raises(ValueError, match="reward must be a finite number"):
        learner.learn(X0, *action, np.nan, X1, *following)
    for key, array in learner._dump().items():
        assert np.array_equal(array, before[key]), key


def test_sparse_initialisation():
    weights, biases, *_ = deep.MLP(25, (10,), seed=0).parameters
    assert ((weights == 0.0).sum(axis=1) == 23).all()  # ⌈0.9·25⌉
    assert np.abs(weights).max() <= 1 / 5
    assert not biases.any()


def test_run_begins_without_a_trace_unless_it_resumes():
    X, rewards, _ = _stream(np.random.default_rng(8))
    whole, pieces, apart = (_agents()["StreamTD"] for _ in range(3))
    whole.run(X, rewards)
    for learner, resume in ((pieces, True), (apart, False)):
        learner.run(X[:21], rewards[:20])
        learner.run(X[20:], rewards[20:], resume=resume)
    assert (pieces.weights == whole.weights).all()
    assert (apart.weights != whole.weights).any()
    pieces.update(1.0, X[0])  # from the last row of the stream
    whole.learn(X[-1], 1.0, X[0])
    assert (pieces.weights == whole.weights).all()


def test_a_network_that_never_learns_is_warned_about():
    with pytest.warns(UserWarning, match="two layers in a row") as seen:
        deep.StreamTD(deep.MLP(3, (8,), 1), 0.9, 0.8)
    assert [each.filename for each in seen] == [__file__]


def test_threads_may_share_an_agent():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(300, 4))
    shared, alone = (deep.StreamTD(_net(4, 1, {"hidden": (32, 32)}), 0.9, 0.8) for _ in range(2))
    readers = [threading.Thread(target=lambda: [shared.predict(x) for x in X]) for _ in range(2)]
    for reader in readers:
        reader.start()
    for learner in (shared, alone):
        for t in range(299):
            learner.learn(X[t], X[t, 0], X[t + 1])
    for reader in readers:
        reader.join()
    assert (shared.weights == alone.weights).all()


def test_a_network_waits_for_the_run_of_its_learner():
    rng = np.random.default_rng(9)
    X, ended = rng.normal(size=(30_001, 4)), threading.Event()
    shared, alone = (deep.StreamTD(_net(4, 1, {"hidden": (32, 32)}), 0.9, 0.8) for _ in range(2))

    def read():
        while not ended.is_set():
            shared.net(X[0])

    reader = threading.Thread(target=read)
    reader.start()
    for learner in (shared, alone):
        learner.run(X, X[1:, 0])
        ended.set()
    reader.join()
    assert (shared.weights == alone.weights).all()


@pytest.mark.parametrize("name", ["StreamQ", "StreamSarsa", "StreamAC"])
def test_run_copies_what_it_checks(name):
    X, agent = np.zeros((51, 4)), _agents()[name]
    actions = np.zeros(51 if name == "StreamSarsa" else 50, np.int64)
    assert not np.shares_memory(agent._streamed(actions, 50)[0], actions)
    assert not np.shares_memory(agent.net._stream(X), X)


def test_a_network_belongs_to_the_newest_learner():
    net = _net(4, 1, {})
    first = deep.StreamTD(net, 0.9, 0.8)
    second = deep.StreamTD(net, 0.9, 0.8)
    with pytest.raises(RuntimeError, match="belongs to another learner now"):
        first.learn(X0, 1.0, X1)
    second.learn(X0, 1.0, X1)
    copied = copy.deepcopy(second)
    assert copied.learn(X1, 1.0, X0) == second.learn(X1, 1.0, X0)


def test_an_agent_can_be_saved_after_run(tmp_path):
    agent = _agents()["StreamQ"]
    agent.start(X0)
    agent.run(np.ones((3, 4)), [0, 1], [1.0, 1.0])
    assert agent.action is None
    agent.save(tmp_path / "agent.npz")
    assert to.load(tmp_path / "agent.npz").learn(X0, 1, 0.5, X1) == agent.learn(X0, 1, 0.5, X1)


def test_sarsa_tells_its_policy_the_number_of_transitions_learned_from():
    seen = []
    agent = deep.StreamSarsa(_net(4, 3, {}), 0.9, 0.8, policy=lambda values, rng, t: seen.append(t) or 0)
    agent.start(X0)
    for _ in range(3):
        agent.step(1.0, X1)
    assert seen == [0, 1, 2, 3]


def test_learning_allocates_no_array():
    """Numba makes a small record for each array that a call takes, and frees it. `learn` gives it none."""
    from numba.core.runtime import _nrt_python, rtsys

    _nrt_python.memsys_enable_stats()
    rng = np.random.default_rng(0)

    def allocated(learn):
        learn()  # it may be compiled now
        before = rtsys.get_allocation_stats()
        learn()
        after = rtsys.get_allocation_stats()
        assert after.alloc - before.alloc == after.free - before.free
        return after.alloc - before.alloc

    def steps(n):
        X, rewards = rng.normal(size=(n + 1, 4)), rng.normal(size=n)
        return allocated(lambda: _agents()["StreamTD"].run(X, rewards))

    assert steps(10) == steps(1000) < 20
    for name, learner in _agents().items():
        action, following = ((), (1,))[name != "StreamTD"], ((), (2,))[name == "StreamSarsa"]
        assert allocated(partial(learner.learn, X0, *action, 1.0, X1, *following)) == 0


def test_several_agents_learn_in_several_threads():
    X, rewards, _ = _stream(np.random.default_rng(12), 500)

    def work(agent):
        for t in range(500):
            agent.learn(X[t], t % 3, rewards[t], X[t + 1])

    alone, together = ([_agents()[name] for name in ("StreamQ", "StreamAC") * 2] for _ in range(2))
    threads = [threading.Thread(target=work, args=(agent,)) for agent in together]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        work(one)
        assert (one.weights == other.weights).all()


@pytest.mark.parametrize("kind", [deep.StreamTD, deep.TrueOnlineHead])
def test_the_contract_of_all_learners_is_kept(kind):
    def make(n_features, step_size, trace_decay, discount):
        return kind(_net(n_features, 1, {"hidden": (8,)}), discount, trace_decay, step_size)

    contract = to.check_learner(make)
    assert not contract.missing
    assert "run equals updates" in contract.kept


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])
@pytest.mark.parametrize("of", [lambda learner: learner, lambda learner: learner.net])
def test_a_copy_learns_in_numbers_of_its_own(copied, of):
    """A compiled step knows the address of the numbers, which is another in a copy."""
    X, rewards, _ = _stream(np.random.default_rng(13))
    original = _agents()["StreamQ"]
    twin = copied(of(original))
    net = twin if isinstance(twin, deep.MLP) else twin.net
    shares = copied is copy.copy
    before = net(X[0])
    original.learn(X[0], 1, rewards[0], X[1])
    assert (net(X[0]) == before).all() != shares
    if not shares:
        net._learner.learn(X[0], 1, rewards[0], X[1])
        assert (net._learner.weights == original.weights).all()
