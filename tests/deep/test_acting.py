"""Streaming agents in environments: parts, continuous actions, ties, files, and the command."""

import copy

import numpy as np
import pytest
from click.testing import CliRunner

import trueonline as to
from trueonline import deep
from trueonline.cli import main
from trueonline.deep.checks.definition import ACDefinition
from trueonline.deep.checks.small import NETWORKS

gym = pytest.importorskip("gymnasium")
PARTS = {"normalise": True, "scale_rewards": True, "time_limit": 20}


def _net(n_inputs, n_outputs, seed=3):
    return deep.MLP(n_inputs, (8, 8), n_outputs, sparsity=0.3, seed=seed)


def _agent(name, **more):
    if name == "gaussian":
        return deep.StreamAC(_net(5, 4), _net(5, 1), 0.9, 0.8, continuous=True, seed=1, **{**PARTS, **more})
    if name == "ac":
        return deep.StreamAC(_net(5, 3), _net(5, 1), 0.9, 0.8, seed=1, **{**PARTS, **more})
    kind = {"q": deep.StreamQ, "sarsa": deep.StreamSarsa}[name]
    policy = to.control.EpsilonGreedy(to.control.Linear(1.0, 0.1, 20))
    return kind(_net(5, 3), 0.9, 0.8, policy=policy, seed=1, **{**PARTS, **more})


def _normalised(seen):
    variance = seen.var(axis=0, ddof=1) if len(seen) > 1 else np.ones(seen.shape[1:])
    return (seen[-1] - seen.mean(axis=0)) / np.sqrt(variance + 1e-8)


def test_parts_equal_their_definitions():
    rng = np.random.default_rng(0)
    X, rewards, ends = rng.normal(3.0, 5.0, (30, 2)), rng.normal(2.0, 4.0, 30), rng.random(30) < 0.2
    moments, scale, u, sums = deep.RunningMoments(2), deep.RewardScale(0.9), 0.0, []
    for t in range(30):
        assert moments.observe(X[t]) == pytest.approx(_normalised(X[: t + 1]), rel=1e-10)
        u = 0.9 * u * (1 - ends[t]) + rewards[t]
        sums.append(u)
        spread = np.sqrt((np.var(sums, ddof=1) if t else 1.0) + 1e-8)
        assert scale.observe(rewards[t], ends[t]) == pytest.approx(rewards[t] / spread, rel=1e-10)
    assert moments([1.0, 2.0]) == pytest.approx((np.array([1.0, 2.0]) - X.mean(0)) / np.sqrt(X.var(0, ddof=1) + 1e-8))


@pytest.mark.parametrize("part", [*PARTS, "all"])
def test_an_agent_with_parts_is_one_without_that_is_given_what_they_make(part):
    mine = {"normalise": False, "scale_rewards": False, "time_limit": None}
    mine = PARTS if part == "all" else {**mine, part: PARTS[part]}
    n = 5 if mine["time_limit"] else 4
    one, other = (deep.StreamQ(_net(n, 3), 0.9, 0.8, seed=1, **more) for more in (mine, {}))
    moments, scale = deep.RunningMoments(4), deep.RewardScale(0.9)

    def seen(x, steps):
        x = moments.observe(x) if mine["normalise"] else x
        return np.append(x, -0.5 + steps / 20) if mine["time_limit"] else x

    def scaled(reward, end=False):
        return scale.observe(reward, end) if mine["scale_rewards"] else reward

    rng = np.random.default_rng(2)
    for _ in range(3):
        X = rng.normal(2.0, 3.0, (8, 4))
        assert one.start(X[0]) == other.start(seen(X[0], 0))
        for t in range(1, 7):
            assert one.step(X[t, 0], X[t]) == other.step(scaled(X[t, 0]), seen(X[t], t))
        one.truncate(2.0, X[7])
        other.truncate(scaled(2.0, True), seen(X[7], 7))
    assert (one.weights == other.weights).all()


@pytest.mark.parametrize("name", ["q", "sarsa", "ac", "gaussian"])
def test_an_agent_with_parts_resumes_bit_for_bit(name, tmp_path):
    X = np.random.default_rng(7).normal(size=(40, 4))
    one = _agent(name)
    one.start(X[0])
    for t in range(1, 15):
        one.step(float(X[t, 0]), X[t])
    one.save(tmp_path / "one.npz")
    other = to.load(tmp_path / "one.npz")
    for t in range(15, 20):
        assert np.array_equal(one.step(X[t, 0], X[t]), other.step(X[t, 0], X[t]))
    assert (one.weights == other.weights).all()
    with pytest.raises(ValueError, match="finite"):
        one.step(np.nan, X[0])
    with pytest.raises(ValueError, match="n_features = 4"):
        one.step(1.0, np.zeros(5))
    for agent in (one, other):  # the refused steps have changed nothing
        agent.end(1.0)
        agent.start(X[20])
    assert np.array_equal(one.inputs(X[21], 3), other.inputs(X[21], 3))
    assert (one.weights == other.weights).all()


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_gaussian_actions_equal_their_definition(network):
    def nets():
        return (deep.MLP(4, n_outputs=n, sparsity=0.3, seed=3, **network) for n in (4, 1))

    rng = np.random.default_rng(5)
    X, actions, rewards = rng.normal(size=(41, 4)), rng.normal(size=(40, 2)), rng.normal(size=40)
    ends = rng.random(40) < 0.1
    settings = (0.9, 0.8, 0.7, 0.4, 0.05, 0.3)
    learner, streamed = (deep.StreamAC(*nets(), *settings, continuous=True) for _ in range(2))
    truth = ACDefinition(*nets(), *settings, continuous=True)
    deltas = []
    for t in range(40):
        step = (X[t], actions[t], float(rewards[t]), X[t + 1], bool(ends[t]))
        deltas.append(learner.learn(*step))
        assert deltas[-1] == pytest.approx(truth.learn(*step), rel=1e-10)
    for ours, right in zip(learner.actor.parameters, truth.actor.network.parameters, strict=True):
        assert ours == pytest.approx(right, rel=1e-9, abs=1e-12)
    assert streamed.run(X, actions, rewards, ends).tolist() == deltas
    assert (streamed.weights == learner.weights).all()


def test_the_gaussian_slopes_are_those_of_finite_differences():
    from trueonline.deep.checks.definition import gaussian_slopes

    def objective(outputs, action, weight):
        mu, sigma = outputs[:2], np.log1p(np.exp(outputs[2:]))
        return np.sum(-((action - mu) ** 2) / (2 * sigma**2) + (weight - 1.0) * np.log(sigma))

    outputs, action = np.array([0.3, -1.0, 0.5, -2.0]), np.array([1.0, -0.7])
    step = 1e-6 * np.eye(4)
    numeric = [(objective(outputs + e, action, 0.3) - objective(outputs - e, action, 0.3)) / 2e-6 for e in step]
    assert gaussian_slopes(outputs, action, 0.3) == pytest.approx(numeric, rel=1e-6)


def test_continuous_actions_are_trained_within_bounds_and_resumed(tmp_path):
    env = gym.make("Pendulum-v1", max_episode_steps=20)

    def train(episodes, file):
        agent = deep.StreamAC(_net(4, 2), _net(4, 1), 0.9, 0.8, continuous=True, seed=1, **PARTS)
        return to.control.train(env, agent, np.asarray, episodes=episodes, checkpoint=tmp_path / file).returns.tolist()

    train(2, "parts.npz")
    assert train(5, "parts.npz") == train(5, "whole.npz")
    agent = to.load(tmp_path / "whole.npz")
    assert len(to.control.evaluate(env, agent, np.asarray, 2).returns) == 2
    with pytest.raises(ValueError, match=r"n_outputs=2$"):
        to.control.train(env, _agent("gaussian", time_limit=None), np.zeros, episodes=1)
    with pytest.raises(ValueError, match="are Discrete"):
        to.control.train("CartPole-v1", agent, np.asarray, episodes=1)
    with pytest.raises(ValueError, match=r"3 actions, but the environment 2: make its network with n_outputs=2$"):
        to.control.train("CartPole-v1", _agent("q"), np.asarray, episodes=1)


def test_actions_that_are_equal_up_to_rounding_keep_the_trace():
    for difference, kept in ((1e-14, True), (1e-4, False)):
        net = deep.MLP(1, (), 2)
        net.parameters = [np.array([[1.0], [1.0 - difference]]), np.zeros(2)]
        agent = deep.StreamQ(net, 0.9, 0.8, policy=lambda values, rng, t: 1)
        agent.start([1.0])
        agent.step(0.0, [0.0])
        agent.step(0.0, [0.0])
        assert bool(agent.trace.any() and agent.trace[1]) == kept


def test_the_policy_of_an_actor_cannot_be_replaced():
    with pytest.raises(AttributeError):
        _agent("ac").policy = to.control.Uniform()


BAD = {
    "normalise must be True or False": lambda: _agent("q", normalise=1),
    "time_limit must be a whole number": lambda: _agent("q", time_limit=0.5),
    "two outputs for each number": lambda: deep.StreamAC(_net(4, 3), _net(4, 1), 0.9, 0.8, continuous=True),
    "action must be 2 finite numbers": lambda: _agent("gaussian").learn(np.zeros(5), [1.0], 0.0, np.zeros(5)),
    "action must be 2 finite numbers, got": lambda: _agent("gaussian").learn(
        np.zeros(5), [1.0, np.nan], 0.0, np.zeros(5)
    ),
    "40 rows of 2 finite": lambda: _agent("gaussian").run(np.zeros((41, 5)), np.zeros((40, 3)), np.zeros(40)),
    "call gaussian": lambda: _agent("gaussian").probabilities(np.zeros(5)),
    "x must be finite": lambda: deep.RunningMoments(2).observe([0.0, np.inf]),
    r"x must not exceed 1e\+100": lambda: deep.RunningMoments(2).observe([0.0, 1e160]),
    r"x must not exceed 1e\+100 in": lambda: _agent("q", normalise=True).start([0.0, 1e160, 0.0, 0.0]),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_refused(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_observations_and_rewards_whose_squares_overflow_leave_no_mark():
    agent = deep.StreamQ(_net(4, 3), 0.9, 0.8, normalise=True, scale_rewards=True, seed=0)
    agent.start(np.ones(4))
    agent.step(1.0, np.zeros(4))
    before = copy.deepcopy(agent._dump())
    with pytest.raises(ValueError, match=r"reward must be a number of at most 1e\+100 in size"):
        agent.step(1e160, np.ones(4))
    with pytest.raises(ValueError, match=r"x_next must not exceed 1e\+100"):
        agent.step(1.0, np.full(4, -1e160))
    for key, array in agent._dump().items():
        assert np.array_equal(array, before[key]), key


def test_an_actor_that_diverges_is_noticed_before_anything_changes():
    agent = deep.StreamAC(deep.MLP(2, (), 2, sparsity=0.0), deep.MLP(2, (), 1), 0.9, 0.8, continuous=True)
    agent.actor.parameters = [np.zeros((2, 2)), np.array([0.0, -1e4])]  # a standard deviation of 0
    before = agent.weights
    with pytest.raises(ValueError, match="diverged"):
        agent.learn(np.ones(2), [1.0], 1.0, np.ones(2))
    assert (agent.weights == before).all()


@pytest.mark.parametrize("agent", ["stream-q", "stream-ac"])
def test_the_command_trains_and_resumes(agent, tmp_path):
    def train(episodes):
        arguments = ["train", "CartPole-v1", "--agent", agent, "--hidden", "16,16", "--evaluate", "1", "--no-film"]
        return CliRunner().invoke(main, [*arguments, "--episodes", str(episodes), "--out", str(tmp_path / "out")])

    for episodes in (2, 4):
        result = train(episodes)
        assert result.exit_code == 0, result.output
    assert "network of 16 and 16 units" in result.output
    assert to.load(tmp_path / "out" / "agent.npz").parts.time.limit == 500
    assert (tmp_path / "out" / "curve.png").exists()
    wrong = CliRunner().invoke(main, ["train", "CartPole-v1", "--agent", agent, "--method", "watkins_q"])
    assert "--agent and --method cannot be combined" in wrong.output
