"""A step-size for each feature: the condition and the method, and the usage of weighted importance sampling."""

import pickle
from functools import cache

import numpy as np
import pytest

import trueonline as to
from trueonline.derivation import ForwardViewError, NotDerivableError, derive
from trueonline.derivation.views import (
    differential_lambda_return,
    feature_ratio_step,
    feature_step,
    lambda_return,
    off_policy_lambda_return,
    ratio_step,
    usage,
    watkins,
)

N, T = 6, 30


@cache
def derived(view, step):
    return derive(view, step)


@pytest.fixture
def stream():
    """Features, rewards, discounts, trace decays, ratios, and step-sizes of all features, of two episodes."""
    rng = np.random.default_rng(3)
    discounts, trace_decays = rng.uniform(0.5, 1.0, (2, T))
    discounts[T // 2] = 0.0
    return (
        rng.normal(size=(T + 1, N)),
        rng.normal(size=T),
        discounts,
        trace_decays,
        2 * rng.random(T),
        rng.uniform(0.01, 0.3, (T, N)),
    )


def learned(learner, stream):
    """The weights after every step."""
    X, rewards, discounts, trace_decays, ratios, _ = stream
    learner.start(X[0])
    weights = []
    for t in range(T):
        learner.update(rewards[t], X[t + 1], discounts[t], trace_decays[t], ratio=ratios[t])
        weights.append(learner.weights)
    return np.array(weights)


def forward(stream, step_sizes):
    """The off-policy λ-return from scratch at every horizon, from its definition. `step_sizes(h)` are those of horizon h."""
    X, rewards, discounts, trace_decays, ratios, _ = stream
    thetas, start, values = [np.zeros(N)], 0, []

    def target(k, h):
        v = discounts[k] * (thetas[k] @ X[k + 1])
        if k + 1 == h:
            return rewards[k] + v
        go_on = discounts[k] * trace_decays[k] * ratios[k + 1]
        return rewards[k] + v + go_on * (target(k + 1, h) - thetas[k] @ X[k + 1])

    for h in range(1, T + 1):
        theta, alphas = thetas[start].copy(), step_sizes(h)
        for k in range(start, h):
            theta = theta + ratios[k] * (target(k, h) - theta @ X[k]) * alphas[k] * X[k]
        thetas.append(theta)
        values.append(theta)
        start = h if discounts[h - 1] == 0.0 else start
    return np.array(values)


# --- The method -----------------------------------------------------------------------------------


def test_the_matrix_takes_the_place_of_the_step_size():
    found = dict(derived(off_policy_lambda_return, feature_ratio_step).equations())
    assert found["A_t"] == "diag(α_{t,1}, …, α_{t,n})"
    assert found["e_t"] == "c_t·(e_{t−1} − ρ_t·(φ_tᵀe_{t−1})·A_t·φ_t) + ρ_t·A_t·φ_t"
    assert found["θ_{t+1}"] == "θ_t + d_t·e_t + ρ_t·(V_{t−1}(S_t) − V_t(S_t))·A_t·φ_t"
    plain = dict(derived(off_policy_lambda_return, ratio_step).equations())
    assert [found[part] for part in ("c_t", "d_t")] == [plain[part] for part in ("c_t", "d_t")]
    assert (
        r"\mathbf{A}_t &= \operatorname{diag}(\alpha_{t,1}, \dots, \alpha_{t,n})"
        in derived(lambda_return, feature_step).latex()
    )


def test_the_learner_equals_its_forward_view():
    """On all kinds of streams, with other step-sizes at each step on some of them."""
    report = derived(off_policy_lambda_return, feature_ratio_step).verify(trials=2)
    assert len(report.rows) == 10
    assert report.max_error < 1e-12


def test_a_reward_rate_goes_with_step_sizes_of_features():
    differential = derived(differential_lambda_return, feature_step)
    assert differential.checked.exact
    assert [left for left, _ in differential.equations()][-1] == "R̄_{t+1}"


@pytest.mark.slow
def test_it_does_in_compiled_code():
    differential = derived(differential_lambda_return, feature_step)
    assert differential.verify(trials=2, kinds=[kind for kind in differential.kinds() if kind.name == "dense"]).exact


def test_the_learner_equals_the_definition_written_by_hand(stream):
    alphas = stream[-1]
    learner = derived(off_policy_lambda_return, feature_ratio_step).learner(N, lambda t: alphas[t], 0.9, 0.9)
    np.testing.assert_allclose(learned(learner, stream), forward(stream, lambda h: alphas), rtol=1e-10, atol=1e-12)


def test_a_run_is_its_updates(stream):
    X, rewards, discounts, trace_decays, ratios, alphas = stream
    make = derived(off_policy_lambda_return, feature_ratio_step).learner
    ran, updated = (make(N, lambda t: alphas[t % T], 0.9, 0.9) for _ in range(2))
    starts = np.zeros(T + 1, bool)
    values = ran.run(X, rewards, discounts, trace_decays=trace_decays, ratios=ratios, starts=starts)
    weights = learned(updated, stream)
    np.testing.assert_allclose(ran.weights, weights[-1], rtol=1e-12, atol=1e-14)
    assert values[0] == 0.0
    np.testing.assert_allclose(values[1:], (weights[:-1] * X[1:-1]).sum(axis=1), rtol=1e-10, atol=1e-12)
    starts[5] = True  # a truncated episode: the transition into row 5 is not learned from
    ran.run(X, rewards, ratios=ratios, starts=starts)
    updated.start(X[0])
    for t in range(T):
        if starts[t + 1]:
            updated.start(X[t + 1])
        else:
            updated.update(rewards[t], X[t + 1], ratio=ratios[t])
    assert ran.steps == updated.steps == 2 * T - 1
    np.testing.assert_allclose(ran.weights, updated.weights, rtol=1e-10, atol=1e-12)


def test_step_sizes_can_be_read_and_saved(stream, tmp_path):
    alphas = stream[-1]
    make = derived(off_policy_lambda_return, feature_ratio_step).learner
    learner = make(N, alphas[0], 0.9, 0.9)
    learned(learner, stream)
    learner.save(tmp_path / "learner.npz")
    for other in (make.load(tmp_path / "learner.npz"), pickle.loads(pickle.dumps(learner))):
        np.testing.assert_array_equal(other.step_sizes, alphas[0])
        np.testing.assert_array_equal(learned(other, stream), learned(pickle.loads(pickle.dumps(learner)), stream))
    scheduled = make(N, lambda t: alphas[t], 0.9, 0.9)
    np.testing.assert_array_equal(scheduled.step_sizes, alphas[0])


def test_help_says_what_a_step_size_may_be():
    own, one = (derived(lambda_return, step).learner.__doc__ for step in (feature_step, None))
    assert (
        "step_size : float, array_like or callable\n    α > 0, or one for each feature, or a schedule of either t → α_t"
        in own
    )
    assert "step_size : float or callable" in one


def test_it_keeps_the_contract():
    learner = derived(off_policy_lambda_return, feature_ratio_step).learner
    assert "saved equals continued" in to.check_learner(learner).kept


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([0.1, 0.2], r"step_size must be a number, or 6 numbers, one for each feature, got float64 of shape \(2,\)"),
        (np.zeros(N), r"step_size\[0\] must be a finite number > 0, got 0"),
        ([0.1, 0.1, np.nan, 0.1, 0.1, 0.1], r"step_size\[2\] must be a finite number > 0"),
        (["a"] * N, "one for each feature"),
        (-1.0, "step_size must be a finite number > 0"),
    ],
)
def test_bad_step_sizes_are_refused(stream, bad, said):
    make = derived(off_policy_lambda_return, feature_ratio_step).learner
    with pytest.raises(ValueError, match=said):
        make(N, bad, 0.9, 0.9)
    learner = make(N, lambda t: 0.1 if t < 3 else bad, 0.9, 0.9)
    with pytest.raises(ValueError, match=said.replace("step_size", r"step_size\(3\)", 1)):
        learner.run(stream[0], stream[1])
    assert learner.steps == 0


def test_other_learners_have_one_step_size():
    with pytest.raises(ValueError, match="step_size"):
        to.TrueOnlineTD(N, np.full(N, 0.1), 0.9, 0.9)
    with pytest.raises(ValueError, match="takes neither bound nor meta_step_size: give each feature its own"):
        derived(lambda_return, feature_step).learner(N, 0.1, 0.9, 0.9, bound=1.0)
    with pytest.raises(ForwardViewError, match="agents have one step-size for all features"):
        derived(lambda_return, feature_step).agent  # noqa: B018


@pytest.mark.parametrize(
    ("view", "step", "said"),
    [
        (lambda_return, lambda k, i, alpha: alpha[k], r"has a number for each feature: write alpha\[j, i\]"),
        (lambda_return, lambda k, i, alpha: alpha, r"must be alpha\[k, i\] times what all features share"),
        (lambda_return, lambda k, i, alpha: alpha[k, i] ** 2, r"must be alpha\[k, i\] times what all features share"),
        (lambda_return, lambda k, i, rho: rho[k], r"must be alpha\[k, i\] times what all features share"),
        (lambda_return, lambda k, i, alpha: alpha[k, i] * i, r"depends on i beside alpha\[k, i\]"),
        (lambda_return, lambda k, i, alpha: alpha[k, 3], r"has a number for each feature"),
        (lambda_return, lambda k, i, alpha: alpha[k, i] * (2 if i == 3 else 1), "may not depend on whether i is 3"),
        (lambda_return, lambda k, i, alpha, rho: alpha[k, i] * rho[k, i], "rho, .* does not have a number for each"),
        (lambda_return, lambda k, alpha: alpha[k, 3], "alpha, .* does not have a number for each"),
        (lambda k, h, R, alpha: alpha[k, 0] * R[k + 1], None, "alpha, .* does not have a number for each"),
        (lambda k, h, R, alpha: alpha[k] * R[k + 1], feature_step, "leave alpha out of the target"),
        (watkins, feature_step, "for agents, which have one step-size"),
    ],
)
def test_what_a_step_size_of_a_feature_may_not_be(view, step, said):
    with pytest.raises(ForwardViewError, match=said):
        derive(view, step)


def test_it_is_checked_at_every_time():
    with pytest.raises(NotDerivableError, match="that of k = 63 differs"):
        derive(lambda_return, lambda k, i, alpha: alpha[k, i] * int(k != 63))


def test_the_usage_grows_by_a_product():
    """That of weighted importance sampling. So the same theorem gives its recursion: v_t is ρ_t times its trace."""
    found = dict(derive(usage).equations())
    assert (found["c_t"], found["d_t"]) == ("ρ_{t−1}·γ_t·λ_t", "−1 + ρ_t")
