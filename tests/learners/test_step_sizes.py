"""Step-size adaptation: what it does, by equations with dense vectors, and that it does nothing when it is off."""

from functools import partial

import numpy as np
import pytest

import trueonline as to

N, T = 5, 50
SETTINGS = {"n_features": N, "step_size": 0.3, "trace_decay": 0.8, "discount": 0.9}
GTD = partial(to.GTD, second_step_size=0.2)
TRUE_ONLINE_GTD = partial(to.TrueOnlineGTD, second_step_size=0.2)
METHODS = {
    "accumulate": to.AccumulateTD,
    "replace": to.ReplaceTD,
    "true_online": to.TrueOnlineTD,
    "monte_carlo": to.MonteCarlo,
    "emphatic": to.EmphaticTD,
    "true_online_emphatic": to.TrueOnlineEmphaticTD,
    "gtd": GTD,
    "true_online_gtd": TRUE_ONLINE_GTD,
    "provisional_td": to.ProvisionalTD,
    "provisional_q": to.ProvisionalQ,
}
OFF_POLICY = METHODS.keys() - {"accumulate", "replace", "true_online", "monte_carlo"}
EMPHATIC = {"emphatic", "true_online_emphatic"}
ON_POLICY = METHODS.keys() - OFF_POLICY
PROVISIONAL = {"provisional_td", "provisional_q"}
ACCUMULATING = {"accumulate", "emphatic", "gtd", *PROVISIONAL}
# One method of each kind of memory. The others, whose kernels take long to compile, are for `make test-slow`.
QUICK = {"accumulate", "true_online", "gtd", "provisional_td"}
EVERY = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]


def stream(seed, name="", size=1.5):
    """Sparse rows, which are binary for `replace`, and all that may vary."""
    rng = np.random.default_rng(seed)
    active = rng.random((T + 1, N)) < 0.5
    X = active.astype(float) if name == "replace" else active * rng.normal(size=(T + 1, N)) * size
    gammas = rng.uniform(0.3, 1.0, size=T)
    gammas[T // 2] = 0.0
    ratios = rng.uniform(0.0, 1.5, size=T) if name in OFF_POLICY else np.ones(T)
    interests = rng.uniform(0.0, 2.0, size=T) if name in EMPHATIC else np.ones(T)
    return X, rng.normal(size=T), gammas, rng.random(T), ratios, interests


def learned(learner, name, X, rewards, gammas, lams, ratios, interests, form=lambda x: (np.flatnonzero(x), x[x != 0.0])):
    """The weights after every transition, and the step-sizes."""
    learner.start(form(X[0]))
    for t in range(T):
        more = {"ratio": ratios[t]} if name in OFF_POLICY else {}
        more |= {"interest": interests[t]} if name in EMPHATIC else {}
        learner.update(rewards[t], form(X[t + 1]), gammas[t], lams[t], **more)
        yield learner.weights, learner.step_sizes


def by_equations(name, theta, bound, w_0, X, rewards, gammas, lams, ratios, interests):
    """The same with dense vectors, and H by itself; and the step-sizes at every step."""
    w, h, v = w_0.copy(), np.zeros(N), np.zeros(N)
    e, f, g = np.zeros(N), np.zeros(N), np.zeros(N)  # f and g: traces of gradient methods
    beta, p, H, usual, largest, edge = np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(N), 0.0, np.log(1e30)
    gamma = lam = v_old = follow_on = 0.0
    rho_old = 1.0
    for t in range(T):
        x, x_next, rho = X[t], X[t + 1], ratios[t]
        value, value_next = w @ x, w @ x_next
        delta = rewards[t] + gammas[t] * value_next - value
        weighing = 1.0 if name == "provisional_q" else rho
        active, squares = x != 0.0, x @ x
        with np.errstate(divide="ignore"):  # no more than the whole bound, or 300 times a fair share of it
            most = np.log(bound * np.minimum(300.0 / squares, 1.0 / x**2) / 0.3) if theta > 0.0 else np.full(N, edge)
        beta = np.clip(beta, -edge, np.minimum(most, edge))
        D = np.diag(np.exp(beta))
        follow_on = (rho_old * gamma * follow_on if gamma else 0.0) + interests[t]
        M = lam * interests[t] + (1.0 - lam) * follow_on if gamma else interests[t]
        M = M if name in EMPHATIC else 1.0
        fresh = weighing * M * (x @ D @ x)
        c = (1.0 if name in ON_POLICY else rho) * gamma * (1.0 if name == "monte_carlo" else lam)
        along = max(0.0, c * (e @ x)) if name in ACCUMULATING else 0.0
        if along > bound:
            e, along = (e if name in PROVISIONAL else e * bound / along), bound
        alpha = min(0.3, (bound - along) / fresh) if fresh > 0.0 else 0.3
        second = min(0.2, bound / (x @ x)) if x.any() else 0.2
        excess = np.log(max(0.3 * (x @ D @ x) / bound, 1.0))
        before, largest = largest, max(abs(delta), largest + (abs(delta) - largest) / 1e4)
        gain = weighing * x * H
        size = np.abs(gain)
        usual = np.maximum(size, usual + 0.3 * np.exp(beta) * x**2 * (size - usual) / 1e4)
        p = gamma * lam * min(1.0, rho) * p + np.divide(gain, usual, where=usual > 0.0, out=np.zeros(N))
        within = (np.clip(delta, -before, before) if before else delta) / largest
        beta = beta + theta * within * p - 0.1 * theta * excess * active
        w_before, step = w, alpha * D @ x
        if name == "accumulate":
            e = c * e + step
            w = w + delta * e
        elif name == "replace":
            e = np.where(x == 1.0, step, c * e)
            w = w + delta * e
        elif name == "true_online":
            e = c * e + (1.0 - c * (e @ x)) * step
            w = w + (delta + value - v_old) * e - (value - v_old) * step
        elif name == "monte_carlo":
            e = c * e + (1.0 - c * (e @ x)) * step
            w = w + rewards[t] * e - value * step
        elif name == "emphatic":
            e = c * e + rho * M * step
            w = w + delta * e
        elif name == "true_online_emphatic":
            e = c * e + rho * M * (1.0 - c * (e @ x)) * step
            w = w + (delta + value - v_old) * e - rho * M * (value - v_old) * step
        elif name == "gtd":
            e, g = c * e + rho * step, c * g + rho * x
            w = w + delta * e - alpha * gammas[t] * (1.0 - lams[t]) * (h @ g) * D @ x_next
            h = h + second * (delta * g - (h @ x) * x)
        elif name == "true_online_gtd":
            e, f, g = c * e + rho * (1.0 - c * (e @ x)) * step, c * f + second * (rho - c * (f @ x)) * x, c * g + rho * x
            w = w + (delta + value - v_old) * e - rho * (value - v_old) * step
            w = w - alpha * gammas[t] * (1.0 - lams[t]) * (h @ g) * D @ x_next
            h = h + delta * f - second * (h @ x) * x
        elif name == "provisional_td":
            w = w + (rho - 1.0) * gamma * lam * v
            e = c * e + rho * step
            w = w + delta * e
            v = c * v + (delta + (1.0 - gammas[t]) * value_next) * e
        else:
            m = value - v_old if gamma > 0.0 else 0.0
            w = w + (rho - 1.0) * gamma * lam * v
            e = c * e + step
            w = w - m * step + (delta + m) * e
            v = c * v + (delta + m + (1.0 - gammas[t]) * value_next) * e - m * step
            value_next = w @ x_next
        H = H * np.maximum(0.0, 1.0 - x * e) + (w - w_before)
        v_old, gamma, lam, rho_old = value_next, gammas[t], lams[t], rho
        yield w, 0.3 * np.exp(beta), alpha, D


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("true_online", "dense"),
        ("true_online", "changing"),
        *((name, "pairs") for name in sorted(QUICK)),
        *(pytest.param(name, "pairs", marks=pytest.mark.slow) for name in METHODS if name not in QUICK),
        *(pytest.param(name, "dense", marks=pytest.mark.slow) for name in ("accumulate", "gtd")),
    ],
)
def test_is_what_the_equations_say(name, form):
    """Zeros in a dense row are features that are not active."""
    rng = np.random.default_rng(0)
    pair = lambda x: (np.flatnonzero(x), x[x != 0.0])  # noqa: E731
    spelt = {"dense": lambda x: x, "pairs": pair, "changing": lambda x: x if rng.random() < 0.5 else pair(x)}[form]
    for seed, theta, bound in ((0, 0.05, 0.6), (1, 0.0, 0.3), (2, 0.1, None)):
        given = stream(seed, name, size=1.5 if bound else 0.5)
        w_0 = np.random.default_rng(seed).normal(size=N)
        adaptation = {"meta_step_size": theta or None, "bound": bound}
        learner = METHODS[name](**SETTINGS, initial_weights=w_0, **adaptation)
        bounded = 0
        for (w, sizes), (w_too, sizes_too, alpha, _) in zip(
            learned(learner, name, *given, form=spelt), by_equations(name, theta, bound or 0.1, w_0, *given), strict=True
        ):
            np.testing.assert_allclose(w, w_too, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(w_too).max()))
            np.testing.assert_allclose(sizes, sizes_too, rtol=1e-10)
            bounded += alpha < 0.3
        assert learner.bounded == bounded
        assert bounded > 2
        assert (np.ptp(sizes) > 1e-3) == (theta > 0.0)


def test_true_online_td_equals_its_forward_view_with_a_matrix_of_step_sizes():
    """θ_{k+1} = θ_k + α_k D_k φ_k (U_k − φ_kᵀθ_k), towards the interim λ-returns at every horizon."""
    X, rewards, gammas, lams, *_ = stream(3)
    gammas[T // 2] = 0.9  # one episode
    used = list(by_equations("true_online", 0.05, 0.6, np.zeros(N), X, rewards, gammas, lams, np.ones(T), np.ones(T)))
    learner = to.TrueOnlineTD(**SETTINGS, meta_step_size=0.05, bound=0.6)
    weights = [np.zeros(N)]
    for h, (w, _) in enumerate(learned(learner, "true_online", X, rewards, gammas, lams, np.ones(T), np.ones(T)), 1):
        values = [weights[k] @ X[k + 1] for k in range(h)]  # V_k(S_{k+1}): what step k + 1 bootstraps from
        returns = [rewards[h - 1] + gammas[h - 1] * values[h - 1]]
        for k in range(h - 2, -1, -1):
            blend = (1.0 - lams[k]) * values[k] + lams[k] * returns[0]
            returns.insert(0, rewards[k] + gammas[k] * blend)
        theta = np.zeros(N)
        for k in range(h):
            _, _, alpha, D = used[k]
            theta = theta + alpha * D @ X[k] * (returns[k] - X[k] @ theta)
        np.testing.assert_allclose(w, theta, rtol=1e-10, atol=1e-11)
        weights.append(w)


def test_an_adapted_step_size_of_td_star_is_that_of_each_visit():
    """The trace carries the step-sizes, and δ* = δ / (1 − γ'eᵀφ')."""
    X, rewards, gammas, lams, *_ = stream(7, "replace")
    learner = to.TDStar(**SETTINGS, bound=0.4)
    learner.start(X[0])
    for t in range(T):
        before = learner.weights
        delta = learner.update(rewards[t], X[t + 1], gammas[t], lams[t])
        e = learner.trace
        wanted = delta / (1.0 - gammas[t] * (e @ X[t + 1])) * e
        np.testing.assert_allclose(learner.weights - before, wanted, rtol=1e-9, atol=1e-12)
        assert e @ X[t] <= 0.4 + 1e-12
    assert learner.bounded > 5


@pytest.mark.parametrize("name", EVERY)
def test_off_is_off(name):
    """Without it the same code runs as always; with help that has nothing to do, the same weights come out."""
    given = stream(4, name)
    off = METHODS[name](**SETTINGS)
    assert (off.bound, off.meta_step_size, off.bounded) == (None, None, 0)
    nothing = METHODS[name](**SETTINGS, bound=None, meta_step_size=None)
    assert nothing._entries is off._entries
    assert [part.nbytes for part in nothing._memory] == [part.nbytes for part in off._memory]
    varying = METHODS[name](**{**SETTINGS, "step_size": lambda t: 0.3})
    idle = METHODS[name](**SETTINGS, bound=1e9, meta_step_size=0.0)
    for (w, sizes), (w_too, _) in zip(learned(idle, name, *given), learned(varying, name, *given), strict=True):
        np.testing.assert_allclose(w, w_too, rtol=1e-11, atol=1e-12 * np.abs(w_too).max())
        np.testing.assert_array_equal(sizes, 0.3)
    assert idle.bounded == 0


def test_keeps_the_contract():
    assert len(to.check_learner(partial(to.TrueOnlineTD, bound=0.5, meta_step_size=0.01)).kept) == 10


SPIKE = [(([0], [1000.0]), 0.0), (([1], [0.01]), 1.0)]  # a large feature, then a small one, then the end
STILL = [(([0], [1.0]), 0.0)] * 3 + [(([0], [1.0]), 1.0)]
GROWTH = [(([0], [1.0]), 0.0), (([0], [1000.0]), 1.0)]  # the same feature, a thousand times as large


@pytest.mark.parametrize("name", [each for each, name in zip(EVERY, METHODS, strict=True) if name != "replace"])
def test_neither_the_state_nor_those_before_it_go_beyond_the_return(name):
    """The return is 1 throughout, and values begin at 0. Provisional methods do not shorten a trace that is too long."""
    for episode in (SPIKE, STILL) if name in PROVISIONAL else (SPIKE, STILL, GROWTH):
        learner = METHODS[name](2, 0.3, 1.0, 1.0, bound=1.0)
        learner.start(episode[0][0])
        for (_, reward), after in zip(episode, [x for x, _ in episode[1:]] + [None], strict=True):
            learner.update(reward, after)
        assert all(-1e-9 < learner.predict(x) < 1.0 + 1e-9 for x, _ in episode)


@pytest.mark.parametrize("name", ["accumulate", "gtd", pytest.param("emphatic", marks=pytest.mark.slow)])
def test_steps_without_features_cost_no_digits(name):
    learner = METHODS[name](1, 0.3, 0.9, 0.9, bound=0.2)
    learner.start((np.zeros(0, int), np.zeros(0)))
    learner.update(1000.0, ([0], [2e8]))
    learner.update(1000.0, None)
    assert learner.weights == pytest.approx(1e-6, rel=1e-12)


def test_damaged_step_sizes_are_refused_and_diverged_learners_are_not(tmp_path):
    learner = to.TrueOnlineTD(**SETTINGS, meta_step_size=0.05)
    learner.run(*stream(9)[:2])
    parts = learner._dump()
    for bad in ({"of_features": -parts["of_features"]}, {"rated": parts["rated"] + 3}, {"rated": parts["rated"][1:]}):
        with pytest.raises(ValueError, match=r"its (of_features|rated|tuning) does not fit"):
            learner._restore({**parts, **bad})
    with pytest.raises(ValueError, match="a version with another step-size adaptation"):
        learner._restore({name: part for name, part in parts.items() if name != "meta_head"})
    learner = to.AccumulateTD(1, 1.0, 1.0, 1.0, meta_step_size=0.05, initial_weights=[1e308])
    learner.start(([0], [1.0]))
    with np.errstate(all="ignore"):
        for sign in (-1.0, 1.0, -1.0):
            learner.update(sign * 1e308, ([0], [sign]))
    assert learner.diverged
    learner.save(tmp_path / "learner.npz")
    assert to.load(tmp_path / "learner.npz").diverged


def test_features_that_matter_get_larger_step_sizes():
    rng = np.random.default_rng(7)
    X = rng.choice([-1.0, 1.0], size=(20_001, 8))
    target = np.cumsum(
        0.05 * rng.normal(size=20_000)
    )  # the weight of the first feature wanders; the others are of no use
    rewards = target * X[:-1, 0] + 0.5 * rng.normal(size=20_000)
    adaptive, plain = (to.TrueOnlineTD(8, 0.01, 0.9, 0.0, meta_step_size=theta) for theta in (0.03, None))
    errors = [
        np.mean((learner.run(X, rewards)[5_000:] - target[5_000:] * X[5_000:-1, 0]) ** 2) for learner in (adaptive, plain)
    ]
    assert errors[0] < 0.5 * errors[1]
    assert adaptive.step_sizes[0] > 5 * adaptive.step_sizes[1:].max()


def burst(rewards, at, length, size, seed=0):
    """The rewards, with outliers of this size and either sign from `at` on."""
    rewards = rewards.copy()
    rewards[at : at + length] += size * np.random.default_rng(seed).choice([-1.0, 1.0], length)
    return rewards


@pytest.mark.parametrize("name", ["accumulate", "true_online"])
def test_no_error_moves_a_step_size_far(name):
    """|Δ ln r| ≤ θ/(1 − γλ) + 0.1θ ln 300, with features of size 1, which the cap of r does not lower a second time."""
    theta, gamma, lam = 0.1, 0.9, 0.8
    rng = np.random.default_rng(11)
    X = rng.choice([-1.0, 1.0], size=(3_001, 4))
    rewards = X[:-1].sum(axis=1) + rng.normal(size=3_000)
    for at, size in ((0, 1e2), (300, 1e4), (600, 1e8), (1_200, 1e6), (2_400, 1e12)):
        rewards = burst(rewards, at, 3, size)
    learner = METHODS[name](4, 0.1, lam, gamma, meta_step_size=theta)
    learner.start(X[0])
    logarithms = [np.log(learner.step_sizes)]
    for x, reward in zip(X[1:], rewards, strict=True):
        learner.update(reward, x)
        logarithms.append(np.log(learner.step_sizes))
    moves = np.abs(np.diff(logarithms, axis=0))[1:]  # the first applies the cap
    assert moves.max() <= theta * (1.0 / (1.0 - gamma * lam) + 0.1 * np.log(300.0))
    assert moves.max() > 0.1 * theta


@pytest.mark.parametrize("gamma", [0.0, 0.9])
@pytest.mark.parametrize("length", [1, 20])
def test_learning_is_as_good_as_before_20_000_steps_after_outliers(gamma, length):
    """Their size is 10² to 10⁶ times that of the usual rewards."""
    rng = np.random.default_rng(12)
    sizes, target = np.array([1.0, 30.0, 1.0]), np.array([15.0, -1.0, 0.5])
    X = rng.normal(size=(35_001, 3)) * sizes
    rewards = X[:-1] @ target + rng.normal(size=35_000)

    def errors(rewards):
        """The squared error of the weights, for each thousand of steps."""
        learner, found = to.TrueOnlineTD(3, 0.1, 0.9, gamma, meta_step_size=0.1), []
        for t in range(0, len(rewards), 250):
            learner.run(X[t : t + 251], rewards[t : t + 250])
            found.append(((sizes * (learner.weights - target)) ** 2).sum())
        return np.array(found).reshape(-1, 4).mean(axis=1)

    clean = errors(rewards)
    for at in (0, 10, 10_000):
        after = slice(at // 1_000 + 20, at // 1_000 + 25)
        usual = max(clean[5:10].mean(), clean[after].mean())
        for size in (1e2, 1e3, 1e4, 1e5, 1e6):
            assert errors(burst(rewards, at, length, size * rewards.std()))[after].mean() < 2.0 * usual, (at, size)


def test_refuses_what_makes_no_sense():
    for bad in (0.0, -1.0, np.nan, np.inf, True, "1"):
        with pytest.raises(ValueError, match="bound must be a finite number > 0"):
            to.TrueOnlineTD(**SETTINGS, bound=bad)
    for bad in (-0.1, np.nan, np.inf, True, "1"):
        with pytest.raises(ValueError, match="meta_step_size must be a finite number ≥ 0"):
            to.TrueOnlineTD(**SETTINGS, meta_step_size=bad)


def test_an_agent_adapts_as_a_learner_does_over_its_features(tmp_path):
    """ψ(s, a) has the state's feature i at i·actions + a. The rule is that of the learner, so one agent stands for all."""
    agent_class, learner_class = to.control.TrueOnlineSarsa, to.TrueOnlineTD
    X, rewards, *_ = stream(8, "replace")
    X[X.all(axis=1), 0] = 0.0  # indices of all features would be refused
    forms = [np.flatnonzero(x) for x in X]
    actions = np.random.default_rng(8).integers(3, size=T + 1)
    adaptation = {"bound": 0.5, "meta_step_size": 0.05}
    agent = agent_class(N, 3, 0.3, 0.8, 0.9, policy=lambda q, rng, t: int(actions[t]), **adaptation)
    learner = learner_class(3 * N, 0.3, 0.8, 0.9, **adaptation)
    agent.start(forms[0])
    learner.start(forms[0] * 3 + actions[0])
    for t in range(T):
        if t == T // 2:
            agent.save(tmp_path / "agent.npz")
            agent = to.load(tmp_path / "agent.npz", policy=agent.policy)
        agent.step(rewards[t], forms[t + 1])
        learner.update(rewards[t], forms[t + 1] * 3 + actions[t + 1])
        np.testing.assert_allclose(agent.weights.reshape(-1), learner.weights, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(agent.step_sizes.reshape(-1), learner.step_sizes, rtol=1e-12)
    assert agent.bounded == learner.bounded > 0
    assert "bound=0.5, meta_step_size=0.05" in repr(agent)
    plain = [agent_class(N, 3, 0.3, 0.8, 0.9, **off) for off in ({}, {"bound": None, "meta_step_size": None})]
    assert plain[0]._entries is plain[1]._entries is not agent._entries
