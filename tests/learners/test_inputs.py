"""Bad input: an error that says what, got and what to do, raised before anything changed."""

import re

import numpy as np
import pytest
from scipy import sparse

import trueonline as to
from trueonline.control import TrueOnlineSarsa

N = 4
# One class is behind all learners over a memory, and one behind all definitions.
LEARNERS = [to.TrueOnlineTD, to.OnlineLambdaReturn]
every_learner = pytest.mark.parametrize("learner_class", LEARNERS)
NAN, INF = float("nan"), float("inf")
MASKED = np.ma.masked_array(np.ones(N), [True, False, False, False])
GOOD = {"n_features": N, "step_size": 0.1, "trace_decay": 0.9, "discount": 0.9}


def started(learner_class=to.TrueOnlineTD):
    learner = learner_class(**GOOD)
    learner.start(0)
    learner.update(1.0, np.array([1, 2]))
    return learner


def state(learner):
    """Everything that determines what comes next."""
    parts = learner._dump()
    return {name: np.array(part, copy=True) for name, part in parts.items()}


def assert_unchanged(learner, before):
    after = state(learner)
    assert after.keys() == before.keys()
    for name, part in before.items():
        np.testing.assert_array_equal(after[name], part, err_msg=name)


PARAMETERS = [
    ("step_size", value, "step_size must be a finite number > 0, got")
    for value in (NAN, INF, 0, -0.1, True, "0.1", None, 10**400, [0.1], 1j)
]
PARAMETERS += [
    (name, value, f"{name} must be a number in [0, 1], got")
    for name in ("trace_decay", "discount")
    for value in (NAN, INF, -0.1, 1.1, True, np.True_, "0.9", None, np.array([0.5]))
]
PARAMETERS += [
    ("n_features", value, "n_features must be a whole number from 1 to")
    for value in (0, -3, 2.0, True, "4", None, 10**12)
]
PARAMETERS += [
    ("initial_weights", value, "initial_weights must be 4 finite numbers, got")
    for value in ([1.0], [1.0, 2.0, 3.0, NAN], "abcd", [True] * 4, np.zeros((2, 2)), 3.0, NAN)
]
PARAMETERS += [("initial_weights", MASKED, "initial_weights must not be masked")]


@pytest.mark.parametrize(("name", "value", "message"), PARAMETERS)
@every_learner
def test_bad_parameters(learner_class, name, value, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        learner_class(**{**GOOD, name: value})


FEATURES = [
    (None, "must be floats or integer indices"),
    ("abcd", "must be floats or integer indices"),
    ({1: 2}, "must be floats or integer indices"),
    ([1.0, 2.0, 3.0, 1j], "must be floats or integer indices"),
    (True, "got booleans"),
    (np.array([True] * N), r"got booleans; use np\.asarray\(.*, float\)"),
    (np.zeros((1, N)), "one-dimensional"),
    ([[1], [1, 2]], "must be an array of numbers"),
    (np.float64(2.0), "one-dimensional"),
    (np.zeros(N - 1), "n_features = 4 values, got 3"),
    (np.zeros(N + 1), "n_features = 4 values, got 5"),
    ([], "n_features = 4 values, got 0"),
    ([1.0, NAN, 0.0, 0.0], "must be finite, got nan at position 1"),
    ([1.0, 0.0, 0.0, -INF], "must be finite, got -inf at position 3"),
    ([0, N], "has index 4, but indices go from 0 to"),
    ([-1], "has index -1"),
    (N, "has index 4"),
    (np.array([2**63], np.uint64), "has index 9223372036854775808"),
    (2**70, "must be floats or integer indices"),
    ([1, 1], "has index 1 more than once"),
    (np.arange(40) % 39, "has index"),
    (([0], [1.0], [2.0]), r"must be \(indices, values\), got .*; give a vector as a list or an array"),
    ((0.5, 1.0), r"must be \(indices, values\), got \(0.5, 1.0\); give a vector as a list or an array"),
    (([True, False], [1.0, 1.0]), "got booleans"),
    (([0, 1], [1.0]), "one to one, got shapes"),
    (([0.0], [1.0]), "must be integers"),
    (([0], [NAN]), "must be finite"),
    (([0], ["a"]), "must be floats"),
    (([0, 0], [1.0, 2.0]), "index 0 more than once"),
    (([5], [1.0]), "has index 5"),
    (([[0]], [[1.0]]), "one to one"),
    (MASKED, "must not be masked, because the mask would be ignored"),
    ((np.ma.masked_array([0, 1], [True, False]), [1.0, 1.0]), "the indices of .* must not be masked"),
    (([0, 1], np.ma.masked_array([1.0, 1.0], [True, False])), "the values of .* must not be masked"),
]


@pytest.mark.parametrize(("x", "message"), FEATURES)
@every_learner
def test_bad_features(learner_class, x, message):
    learner = started(learner_class)
    before = state(learner)
    for attempt in (learner.start, learner.predict, lambda x: learner.update(1.0, x)):
        if x is None and attempt not in (learner.start, learner.predict):
            continue  # None ends the episode
        with pytest.raises(ValueError, match=message):
            attempt(x)
        assert_unchanged(learner, before)


TRANSITIONS = [
    *({"reward": bad} for bad in (NAN, INF, -INF, True, np.True_, "1", None, 1j, [1.0], 10**400)),
    *({"discount": bad} for bad in (NAN, INF, -0.1, 1.1, True, "0.9")),
    *({"trace_decay": bad} for bad in (NAN, INF, -0.1, 1.1, True, "0.9")),
]


@pytest.mark.parametrize("bad", TRANSITIONS, ids=str)
@every_learner
def test_bad_numbers_of_a_transition(learner_class, bad):
    """They are refused by every step alike, whatever came before."""
    learner = started(learner_class)
    (name,) = bad
    for state_next in (1, 2):
        before = state(learner)
        with pytest.raises(ValueError, match=rf"{name} must be a (finite number|number in \[0, 1\]), got"):
            learner.update(**{"reward": 1.0, "x_next": 3, **bad})
        assert_unchanged(learner, before)
        learner.update(1.0, state_next)


EYE, ONES = np.eye(N), np.ones(N - 1)
STREAMS = [
    ((EYE, ONES[:-1]), {}, "2 rewards for 4 rows"),
    ((EYE, np.ones(N)), {}, "4 rewards for 4 rows"),
    ((EYE, ["a"] * 3), {}, "rewards must be a one-dimensional array of numbers"),
    ((EYE, [True] * 3), {}, "rewards must be a one-dimensional array of numbers"),
    ((EYE, [ONES]), {}, "rewards must be a one-dimensional array of numbers"),
    ((EYE, [1.0, NAN, 1.0]), {}, "rewards must be finite, got nan at position 1"),
    (([], []), {}, "the stream is empty"),
    ((EYE[:1], []), {}, "the stream is empty"),
    ((EYE[:0], []), {}, "the stream is empty"),
    ((np.zeros(N), ONES), {}, "one row of features per step"),
    ((np.zeros((N, N, N)), ONES), {}, "one row of features per step"),
    ((np.zeros((N, 3)), ONES), {}, "n_features = 4 values, got 3"),
    ((EYE > 0, ONES), {}, "got booleans"),
    ((EYE.astype(str), ONES), {}, "must be floats or integer indices"),
    ((np.full((N, 1), N), ONES), {}, r"X\[0\] has index 4"),
    (([0, 1, 2, -1], ONES), {}, r"X\[3\] has index -1"),
    ((np.array([[0, 1], [1, 2], [3, 3], [0, 1]]), ONES), {}, r"X\[2\] has index 3 more than once"),
    (([[0], [1, 2], [9], []], ONES), {}, r"X\[2\] has index 9"),
    ((np.array([[2**63]] * 4, np.uint64), ONES), {}, "X has index 9223372036854775808"),
    (((np.zeros((4, 1), int), np.full((4, 1), NAN)), ONES), {}, r"the values of X\[0\] must be finite"),
    (((np.zeros((4, 1)), np.zeros((4, 1))), ONES), {}, "X as a pair must be 2-D integer indices"),
    (((np.zeros((4, 1), int), np.zeros((4, 2))), ONES), {}, "X as a pair must be 2-D integer indices"),
    ((sparse.csr_matrix((4, 3)), ONES), {}, "n_features = 4 columns"),
    ((sparse.csr_matrix(np.diag([1.0, 1.0, NAN, 1.0])), ONES), {}, r"X\[2\] must be finite"),
    ((np.diag([NAN, 1.0, 1.0, 1.0]), ONES), {}, r"X\[0\] must be finite, got nan at position 0"),
    ((EYE, ONES, [0.5]), {}, "discounts must be 3 numbers"),
    ((EYE, ONES, [0.5, 2.0, 0.5]), {}, r"discounts must lie in \[0, 1\], got 2.0 at position 1"),
    ((EYE, ONES, ["a"] * 3), {}, "discounts must be 3 numbers"),
    ((EYE, ONES), {"trace_decays": [0.5, NAN, 0.5]}, r"trace_decays must lie in \[0, 1\], got nan"),
    ((np.ma.masked_array(EYE, EYE > 0.0), ONES), {}, "X must not be masked"),
    (([MASKED, *EYE[1:]], ONES), {}, "X must not be masked"),
    ((EYE, np.ma.masked_array(ONES, [True, False, False])), {}, "rewards must not be masked"),
    ((EYE, ONES, np.ma.masked_array(ONES, [True, False, False])), {}, "discounts must not be masked"),
    ((EYE, ONES), {"starts": np.ma.masked_array([False] * 4, [True] * 4)}, "starts must not be masked"),
    ((EYE, ONES), {"starts": [0, 1, 0, 0]}, "starts must be 4 booleans"),
    ((EYE, ONES), {"starts": [False] * 3}, "starts must be 4 booleans"),
]


@pytest.mark.parametrize(("arguments", "options", "message"), STREAMS)
@every_learner
def test_bad_streams(learner_class, arguments, options, message):
    learner = started(learner_class)
    before = state(learner)
    with pytest.raises(ValueError, match=message):
        learner.run(*arguments, **options)
    assert_unchanged(learner, before)


def test_a_bad_dense_row_undoes_the_whole_run():
    learner, X = to.TrueOnlineTD(9, 0.05, 0.9, 0.9), np.random.default_rng(3).normal(size=(40, 9))
    learner.run(X, X[1:, 0])
    before = state(learner)
    for t, spoiler in ((0, NAN), (1, -INF), (20, INF), (39, NAN)):
        spoilt = X.copy()
        spoilt[t, 5] = spoiler
        with pytest.raises(ValueError, match=rf"X\[{t}\] must be finite"):
            learner.run(spoilt, np.ones(39))
        assert_unchanged(learner, before)


def test_replace_refuses_features_that_are_not_binary_also_beside_a_cut():
    learner = started(to.ReplaceTD)
    before = state(learner)

    def refused(message, call, *arguments, **named):
        with pytest.raises(ValueError, match=message):
            call(*arguments, **named)
        assert_unchanged(learner, before)

    for x in ([0.5, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], ([1], [0.5]), ([0, 2], [1.0, 3.0])):
        for call in (learner.start, learner.predict, lambda x: learner.update(1.0, x)):
            refused(r"must be binary .* for replacing traces, got .*; use an accumulating", call, x)
    for t in range(4):
        X = np.eye(N)
        X[t, t] = 0.5
        streams = [(X, None), (sparse.csr_matrix(X), None), ((np.arange(N)[:, None], np.diag(X)[:, None]), None)]
        for rows, starts in streams + [(X, np.arange(N) == cut) for cut in range(1, N)]:
            refused(rf"X\[{t}\] must be binary", learner.run, rows, ONES, starts=starts)


def test_update_before_start():
    for learner_class in LEARNERS:
        learner = learner_class(**GOOD)
        with pytest.raises(RuntimeError, match=r"no episode has begun: call start\(x\)"):
            learner.update(1.0, 0)
        learner.start(0)
        learner.update(1.0, None)
        with pytest.raises(RuntimeError, match="no episode has begun"):
            learner.update(1.0, 0)


@every_learner
def test_a_schedule_that_goes_wrong(learner_class):
    for value in (NAN, 0.0, "x", None, True):
        learner = learner_class(N, lambda t, value=value: 0.1 if t < 3 else value, 0.9, 0.9)
        learner.run([0, 1, 2, 3], [1.0, 1.0, 1.0])
        before = state(learner)
        for attempt in (lambda: learner.update(1.0, 0), lambda: learner.run([3, 0], [1.0])):  # noqa: B023
            with pytest.raises(ValueError, match=r"step_size\(3\) must be a finite number > 0, got"):
                attempt()
            assert_unchanged(learner, before)


# --- What users hit -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3])
def test_a_vector_of_integers_is_not_taken_for_indices(n):
    x = np.array([0, 1, 0][:n])
    for learner in (to.TrueOnlineTD(n, 0.1, 0.9, 0.9), to.OnlineLambdaReturn(n, 0.1, 0.9, 0.9)):
        with pytest.raises(
            ValueError, match=r"as many as there are features.*np\.asarray\(x, float\), or np\.flatnonzero\(x\)"
        ):
            learner.start(x)
        learner.start(x.astype(float))
        with pytest.raises(ValueError, match="as many as there are features"):
            learner.update(1.0, x)
        with pytest.raises(ValueError, match="as many as there are features"):
            learner.run(np.array([x, x]), [1.0])
        learner.update(1.0, np.flatnonzero(x))
        np.testing.assert_allclose(learner.weights, 0.1 * x)
    agent = to.control.TrueOnlineSarsa(n, 2, 0.1, 0.9, 0.9)
    with pytest.raises(ValueError, match="as many as there are features"):
        agent.start(x)


ALIASES = {
    "alpha": "step_size", "lr": "step_size", "lam": "trace_decay", "lambda_": "trace_decay", "λ": "trace_decay",
    "trace_decay_rate": "trace_decay", "gamma": "discount", "discount_rate": "discount", "initial_weight": "initial_weights",
    "num_features": "n_features",
}  # fmt: skip
ARGUMENTS = [
    (TrueOnlineSarsa, {"epsilon": 0.1}, r"TrueOnlineSarsa takes no argument 'epsilon': use policy=.*EpsilonGreedy"),
    (to.TrueOnlineTD, {"colour": "red"}, "TrueOnlineTD takes no argument 'colour'; it takes n_features, step_size"),
    (to.TrueOnlineTD, {"beta": 0.1}, r"TrueOnlineTD takes no argument 'beta'; it takes n_features.*meta_step_size$"),
    (to.GTD, {"beta": 0.1}, "GTD takes no argument 'beta': use second_step_size"),
    (to.GTD, {"eta": 0.1}, r"GTD takes no argument 'eta': use second_step_size=η·step_size"),
    (to.nonlinear.ForwardTD, {"alpha": 0.1}, "ForwardTD takes no argument 'alpha': use step_size"),
    (to.TrueOnlineTD, {}, "TrueOnlineTD: missing a required argument: 'n_features'"),
    *(
        (kind, {name: 0.5}, f"{kind.__name__} takes no argument '{name}': use {meant}")
        for kind in (to.TrueOnlineTD, to.OnlineLambdaReturn, TrueOnlineSarsa)
        for name, meant in ALIASES.items()
    ),
]


@pytest.mark.parametrize(("kind", "given", "message"), ARGUMENTS)
def test_arguments_by_other_names_are_recognised(kind, given, message):
    with pytest.raises(TypeError, match=message):
        kind(**given)


OF_OTHERS = [
    (
        to.TrueOnlineTD,
        {"initial_step_size": 0.5},
        "TrueOnlineTD takes no initial_step_size: its step-sizes do not come from",
    ),
    (to.WISTD, {"bound": 1.0}, "WISTD takes neither bound nor meta_step_size"),
    (to.WISTD, {"initial_step_size": 0.0}, "initial_step_size must be"),
    (to.WISGTD, {}, "WISGTD needs second_step_size"),
    (to.SwiftTD, {"theta": 0.1}, "SwiftTD takes no argument 'theta': use meta_step_size"),
]


@pytest.mark.parametrize(("kind", "given", "message"), OF_OTHERS)
def test_arguments_of_other_methods_are_refused(kind, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kind(**GOOD, **given)


def test_many_predictions_at_once_are_those_of_predict():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 6))
    for learner in (to.TrueOnlineTD(6, 0.1, 0.9, 0.9), to.OnlineLambdaReturn(6, 0.1, 0.9, 0.9)):
        learner.run(X, rng.normal(size=19))
        for many in (X, [np.flatnonzero(x > 0.5) for x in X]):
            np.testing.assert_allclose(learner.predict_many(many), [learner.predict(x) for x in many], rtol=1e-12)
        with pytest.raises(ValueError, match=r"X\[2\]|finite"):
            learner.predict_many(np.where(np.arange(20)[:, None] == 2, np.nan, X))


def test_parts_of_a_transition_that_a_method_does_not_ask_for_are_refused():
    for learner in (to.TrueOnlineTD(3, 0.1, 0.9, 0.9), to.OnlineLambdaReturn(3, 0.1, 0.9, 0.9)):
        learner.start(0)
        with pytest.raises(TypeError, match="takes no ratio"):
            learner.update(1.0, 1, ratio=0.5)
        with pytest.raises(TypeError, match="takes no ratios"):
            learner.run([0, 1], [1.0], ratios=[0.5])
        assert learner.steps == 0
    with pytest.raises(TypeError, match="EmphaticTD takes no x_expected: it takes ratio and interest"):
        to.EmphaticTD(3, 0.1, 0.9, 0.9).update(1.0, 1, x_expected=0)


def test_more_features_than_the_memory_holds_are_refused(monkeypatch):
    zeros = np.zeros
    monkeypatch.setattr(np, "zeros", lambda n, *a, **k: zeros(2**59 if np.prod(n) > 1e7 else n, *a, **k))
    for make, message in (
        (lambda: to.TrueOnlineTD(10**9, 0.1, 0.9, 0.9), r"n_features=1,000,000,000 would take 32.0 GB of memory"),
        (lambda: TrueOnlineSarsa(10**9, 2, 0.1, 0.9, 0.9), "n_features=1,000,000,000 and n_actions=2 would take 64.0 GB"),
        (lambda: to.OnlineLambdaReturn(2 * 10**9, 0.1, 0.9, 0.9), r"n_features=2,000,000,000 would take 32.0 GB"),
        (lambda: to.features.TileCoder(0, 1, bins=10**6, tilings=2**16, size=2**31 - 2), "bins=.* would take"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_indices_of_a_stream_are_told_apart_however_far_they_lie():
    X = np.array([[1, 1 + 2048, 1 + 3 * 2048], [1, 1 + 2048, 2], [5, 1, 1 + 2048]])
    learner = to.TrueOnlineTD(10_000, step_size=0.1, trace_decay=0.9, discount=0.9)
    assert np.isfinite(learner.run(X, np.ones(2))).all()
    before = learner.weights
    for column in (0, 1):
        X[2, 2] = X[2, column]
        with pytest.raises(ValueError, match=r"X\[2\]"):
            learner.run(X, np.ones(2))
    np.testing.assert_array_equal(learner.weights, before)


# --- After input that was refused, and after divergence --------------------------------------------

KINDS_OF_MEMORY = (
    (to.TrueOnlineTD, {}),
    (to.TrueOnlineTD, {"meta_step_size": 0.01}),
    (to.GTD, {"second_step_size": 0.1}),
    (to.ProvisionalTD, {}),
    (to.WISTD, {}),
    (to.SwiftTD, {}),
)


@pytest.mark.parametrize(("kind", "more"), KINDS_OF_MEMORY)
def test_a_refused_dense_run_leaves_a_sparse_learner_as_it_was(kind, more):
    X = np.ones((6, 6))
    X[3, 2] = np.nan
    results = []
    for refused in (False, True):
        learner = kind(n_features=6, step_size=0.05, trace_decay=0.8, discount=0.9, **more)
        learner.start(np.array([4, 2]))
        for k in range(3):
            learner.update(1.0, np.array([2 + k % 2, 5]))
        if refused:
            with pytest.raises(ValueError, match="finite"):
                learner.run(X, np.ones(5))
        results.append([learner.update(1.0, np.array([0, 3])), *learner.weights, learner.update(-1.0, np.array([5, 2]))])
    assert results[0] == results[1]


def test_another_form_of_features_after_divergence_warns_of_nothing():
    learner = to.WISTD(n_features=3, step_size=1e3, trace_decay=0.9, discount=1.0)
    X = np.array([[0, 1], [1, 2]] * 200)
    for _ in range(2):  # pytest makes errors of warnings
        learner.run(X, np.ones(399))
        learner.run(np.ones((3, 3)), np.ones(2))
    assert learner.diverged
