"""Expected Sarsa(λ), Tree Backup(λ) and GQ(λ): their equations, where they meet other agents, their target policies, and Baird."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import trueonline as to
from tests.oracles import off_policy_control as naive
from trueonline import control

KINDS = {"expected sarsa": control.ExpectedSarsa, "tree backup": control.TreeBackupQ, "gq": control.GQ}
each_agent = pytest.mark.parametrize("kind", KINDS)
N, ACTIONS = 6, 3


class Fixed:
    """A policy that does not look at values."""

    def __init__(self, *chances):
        self.chances = np.array(chances)

    def __call__(self, values, rng, t):
        return int(rng.choice(len(self.chances), p=self.chances))

    def probabilities(self, values, t):
        return self.chances


def made(kind, alpha=0.1, lam=0.8, **more):
    second = {"second_step_size": 0.05} if kind == "gq" else {}
    return KINDS[kind](N, ACTIONS, alpha, lam, 0.9, **{"policy": control.EpsilonGreedy(0.5), "seed": 3, **second, **more})


def stream(rng, form, steps=60):
    """(x, reward, γ, λ) of each state entered: ends by None and by γ = 0, and cuts, after which an episode begins."""

    def features():
        x = rng.normal(size=N) / 2 if form == "dense" else np.zeros(N)
        if form == "sparse":
            x[rng.choice(N, 2, replace=False)] = 1.0
        return x

    begins = True
    for _ in range(steps):
        reward, gamma, lam = (
            (None if begins else rng.normal()),
            rng.choice([0.0, 0.7, 1.0], p=[0.1, 0.5, 0.4]),
            rng.random(),
        )
        begins = not begins and rng.random() < 0.1
        yield (None if begins else features()), reward, gamma, lam


def learned(agent, given, form):
    """The weights after every transition."""
    found = []
    for x, reward, gamma, lam in given:
        there = np.flatnonzero(x) if x is not None and form == "sparse" else x
        if reward is None:
            agent.start(there)
            continue
        if x is None:
            agent.end(reward)
        else:
            agent.step(reward, there, gamma, lam)
        found.append(agent.weights)
    return found


@each_agent
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_agents_equal_their_equations_at_every_step(kind, form, epsilon):
    rng, policy, actions = np.random.default_rng(1), control.EpsilonGreedy(0.5), np.random.default_rng(3)
    given = list(stream(rng, form))
    expected = naive.follow(
        given,
        N,
        ACTIONS,
        lambda q: policy(q, actions, 0),
        lambda q: naive.epsilon_greedy(q, 0.5),
        epsilon,
        kind,
        0.1,
        0.05,
    )
    found = learned(made(kind, target_epsilon=epsilon), given, form)
    assert len(found) > 40
    assert_allclose(found, list(expected), rtol=1e-9, atol=1e-12)


def test_tree_backup_is_its_forward_view_where_weights_do_not_change():
    """G_t = R + γ(V̄ + λπ(A'|S')(G_{t+1} − Q(S', A'))), with fixed weights: for α → 0, w = w_0 + α Σ (G_t − Q_t)ψ_t."""
    rng, alpha, w = np.random.default_rng(2), 1e-7, np.random.default_rng(5).normal(size=(N, ACTIONS))
    agent = made("tree backup", alpha, initial_weights=w, target_epsilon=0.4)
    X, rewards = rng.normal(size=(12, N)), rng.normal(size=12)
    actions = [agent.start(X[0])] + [agent.step(r, x) for r, x in zip(rewards, X[1:], strict=False)]
    agent.end(rewards[-1])
    q = X @ w
    pi = np.array([naive.epsilon_greedy(row, 0.4) for row in q])
    total, G = np.zeros((N, ACTIONS)), rewards[-1]
    for t in reversed(range(12)):
        if t < 11:
            a = actions[t + 1]
            G = rewards[t] + 0.9 * (pi[t + 1] @ q[t + 1] + 0.8 * pi[t + 1, a] * (G - q[t + 1, a]))
        total[:, actions[t]] += (G - q[t, actions[t]]) * X[t]
    assert_allclose((agent.weights - w) / alpha, total, rtol=1e-4, atol=1e-4)


def trajectory(agent, seed=4, steps=80):
    rng = np.random.default_rng(seed)
    agent.start(int(rng.integers(N)))
    for _ in range(steps):
        agent.step(float(rng.normal()), int(rng.integers(N)))
    return agent.weights


# --- Baird's counterexample, as control -----------------------------------------------------------


def on_baird(make, alpha, steps=20_000, **more):
    """The largest weight after many steps. Dashed costs 1, solid nothing, so that solid is always best."""
    problem = to.problems.baird()
    first = np.zeros((8, 2))
    first[:, 1] = problem.initial_weights
    agent = make(8, 2, alpha, 0.0, 0.99, Fixed(6 / 7, 1 / 7), seed=1, initial_weights=first, **more)
    rng, action = np.random.default_rng(0), agent.start(problem.features[0])
    for _ in range(steps):
        state = 6 if action == 1 else int(rng.integers(6))
        action = agent.step(0.0 if action == 1 else -1.0, problem.features[state])
    assert (problem.features @ agent.weights).argmax(axis=1).all()
    return np.abs(agent.weights).max()


def test_gq_stays_stable_where_q_learning_diverges():
    """With λ = 0 and a greedy target, Expected Sarsa(λ), Tree Backup(λ) and Watkins's Q(λ) are the same."""
    assert on_baird(control.ExpectedSarsa, 0.01) > 1e4
    assert on_baird(control.GQ, 0.01, second_step_size=0.04) < 10.0


@pytest.mark.parametrize(("alpha", "lam", "diverges"), [(0.5, 0.9, True), (0.5, 0.3, False), (0.1, 0.9, False)])
def test_gq_diverges_with_large_step_sizes_as_its_equations_do(alpha, lam, diverges):
    """On CliffWalking, with η = 1: the equations themselves, which `naive` computes, have weights of 10⁸ after 250 steps."""
    gymnasium = pytest.importorskip("gymnasium")
    env, rows = gymnasium.make("CliffWalking-v1"), np.eye(48)
    agent = control.GQ(48, 4, alpha, lam, 0.99, control.EpsilonGreedy(0.1), seed=0)
    state, _ = env.reset(seed=0)
    actions, given, found = [agent.start(int(state))], [(rows[state], None, 0.0, 0.0)], []
    while len(found) < 1_000 and (not found or np.abs(found[-1]).max() < 1e8):
        state, reward, terminated, _, _ = env.step(actions[-1])
        if terminated:
            agent.end(float(reward))
            given.append((None, float(reward), 0.0, 0.0))
        else:
            actions.append(agent.step(float(reward), int(state)))
            given.append((rows[state], float(reward), 0.99, lam))
        found.append(agent.weights)
        if terminated:
            state, _ = env.reset()
            actions.append(agent.start(int(state)))
            given.append((rows[state], None, 0.0, 0.0))
    again = iter(actions)
    expected = naive.follow(
        given, 48, 4, lambda q: next(again), lambda q: naive.epsilon_greedy(q, 0.1), 0.0, "gq", alpha, alpha
    )
    largest = 0.0
    for ours, right in zip(found, expected, strict=True):
        largest = max(largest, np.abs(right).max())
        assert_allclose(ours, right, rtol=0.0, atol=1e-10 * largest)
    assert (largest > 1e8) == diverges


# --- Policies, files and input --------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        control.Greedy(),
        control.EpsilonGreedy(0.3),
        control.EpsilonGreedy(lambda t: 0.2),
        control.Softmax(0.5),
        control.Uniform(),
    ],
    ids=lambda policy: type(policy).__name__,
)
@pytest.mark.parametrize(
    "values", [[0.0, 1.0, -1.0], [2.0, 2.0, 0.0], [np.nan, 1.0, np.nan], [np.inf, 0.0, 1.0]], ids=str
)
def test_probabilities_are_how_often_actions_are_chosen(policy, values):
    rng, values = np.random.default_rng(0), np.array(values)
    with np.errstate(invalid="ignore"):
        counted = np.bincount([policy(values, rng, 0) for _ in range(4_000)], minlength=3) / 4_000
        said = policy.probabilities(values, 0)
    assert said.sum() == pytest.approx(1.0)
    if not np.isnan(values).any():
        assert_allclose(said, counted, atol=0.04)


def test_a_loaded_agent_resumes(tmp_path):
    def go_on(agent):
        rng = np.random.default_rng(8)
        for _ in range(20):
            agent.step(float(rng.normal()), int(rng.integers(N)))
        return agent.weights

    agent = made("gq", target_epsilon=0.25)
    trajectory(agent)
    agent.save(tmp_path / "agent.npz")
    loaded, pickled = to.load(tmp_path / "agent.npz"), pickle.loads(pickle.dumps(agent))
    assert loaded.target_epsilon == pickled.target_epsilon == 0.25
    wanted = go_on(agent)
    assert_array_equal(go_on(loaded), wanted)
    assert_array_equal(go_on(pickled), wanted)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="target_epsilon must be"):
        made("tree backup", target_epsilon=1.5)
    with pytest.raises(
        TypeError, match=r"the policy of GQ must say its probabilities: give it a method probabilities\(values, t\)"
    ):
        made("gq", policy=lambda q, rng, t: 0)
    made("tree backup", policy=lambda q, rng, t: 0).start(0)
    agent = made("expected sarsa", policy=Fixed(1.0, 0.0, 0.0))
    agent.policy.probabilities = lambda values, t: np.array([0.0, 1.0, 0.0])
    with pytest.raises(
        ValueError, match=r"the policy chose action 0, whose probability must be in \(0, 1\], and it says 0\.0"
    ):
        agent.start(0)
    with pytest.raises(ValueError, match="takes neither bound nor meta_step_size"):
        made("gq", bound=0.1)
