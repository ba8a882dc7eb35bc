"""SwiftTD: equal to its equations and to the published package, over a list of features that come and go."""

import ast
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import trueonline as to
from tests.oracles.swift import Swift
from trueonline.core.memory.layout import COUNT, each
from trueonline.forward import SwiftTDEquations

SHARED = Path(__file__).parents[3] / "shared" / "data" / "swifttd_predictions.npz"
NAMES = {"eta": "bound", "decay": "decay", "meta_step_size": "meta_step_size", "eta_min": "min_step_size"}
SETTINGS = {"n_features": 12, "step_size": 0.05, "trace_decay": 0.9, "discount": 0.95}


@pytest.mark.skipif(
    not SHARED.exists(), reason="the predictions are not in ../shared/data, which is no part of the project"
)
@pytest.mark.parametrize("features", ["binary", "dense"])
def test_predictions_are_those_of_the_published_package(features):
    """`swifttd_predictions.npz`: what `step(x, reward)` of the package returned, in single precision."""
    with np.load(SHARED) as data:
        X, rewards, wanted, about = (data[f"{features}_{part}"] for part in ("x", "rewards", "predictions", "settings"))
    given = ast.literal_eval(str(about))
    n = 200 if features == "binary" else X.shape[1]
    named = {NAMES[name]: value for name, value in given.items() if name in NAMES}
    learner = to.SwiftTD(n, given["alpha"], given["lambda_"], given["gamma"], **named)
    predictions = [learner.predict(X[0])]
    learner.start(X[0])
    for x, reward in zip(X[1:], rewards[1:].tolist(), strict=True):
        predictions.append(learner.predict(x))
        learner.update(reward, x)
    assert np.abs(predictions - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize(
    "settings",
    [
        {"bound": 0.7, "decay": 0.9, "meta_step_size": 0.02, "min_step_size": 1e-4},
        {"bound": 0.01, "decay": 1.0, "meta_step_size": 0.01, "min_step_size": 1e-3},
    ],
)
def test_equals_its_definition_with_other_settings(settings):
    other = partial(to.SwiftTD, **settings)
    kinds = ["dense", "active indices", "(indices, values)", "repeated features", "step-size schedule"]
    report = to.verify(other, trials=2, kinds=kinds, steps=100)
    assert report.definition == "SwiftTDEquations"
    assert [row.stream for row in report.rows] == kinds[:-1]  # it takes no schedules
    assert report.exact
    another = partial(SwiftTDEquations, meta_step_size=0.5)
    assert not to.verify(other, another, trials=2, kinds=["repeated features"]).exact


def listed(learner):
    (one,) = each(learner._memory)
    return int(one.numbers[COUNT])


def test_features_leave_the_list_when_they_fade_and_return_with_what_they_learned():
    """In turn, 5 of 20 groups of features are active for 200 steps, with γλ = 0.855: then their trace is below 1e-13."""
    rng = np.random.default_rng(1)
    n, oracle = 400, Swift(np.zeros(400), 0.05, meta_step_size=0.01)
    learner = to.SwiftTD(n, 0.05, 0.9, 0.95, meta_step_size=0.01)
    sizes = []
    x = np.zeros(n)
    learner.start(np.flatnonzero(x))
    oracle.begin(x)
    for t in range(4000):
        group = (t // 200) * 7 % 20
        active = group * 20 + rng.choice(20, 4, replace=False)
        x, reward = np.zeros(n), float(rng.normal() + (active % 3 == 0).sum())
        x[active] = 1.0
        oracle.step(x, reward, 0.95, 0.9)
        learner.update(reward, np.sort(active))
        sizes.append(listed(learner))
    assert max(sizes[400:]) < 80, "only features of the groups of now and just before carry trace"
    assert (oracle.alpha != 0.05).sum() == n
    np.testing.assert_allclose(learner.weights, oracle.w, rtol=0.0, atol=1e-11 * np.abs(oracle.w).max())
    np.testing.assert_allclose(learner.step_sizes, oracle.alpha, rtol=1e-11)


def test_zeros_among_dense_features_carry_no_trace():
    learner = to.SwiftTD(**SETTINGS)
    x = np.zeros(12)
    x[3] = -1.5
    learner.start(x)
    learner.update(1.0, x)
    assert listed(learner) == 1
    assert np.flatnonzero(learner.weights).tolist() == [3]


def test_very_large_features_leave_positive_step_sizes():
    learner = to.SwiftTD(2, 0.1, 0.9, 0.9)
    learner.start([1e4, 0.0])
    for _ in range(20):
        learner.update(1.0, [1e4, 1.0])
    assert not learner.diverged
    assert learner.step_sizes.min() >= 1e-10
    assert learner.bounded == 20


def test_settings_are_saved(tmp_path):
    learner = to.SwiftTD(**SETTINGS, bound=0.2, decay=0.99, meta_step_size=0.02, min_step_size=1e-6)
    learner.save(tmp_path / "swift.npz")
    other = to.load(tmp_path / "swift.npz")
    assert repr(other) == repr(learner)
    assert "bound=0.2, decay=0.99, meta_step_size=0.02, min_step_size=1e-06" in repr(other)


def test_a_learner_that_diverged_is_saved_and_loaded(tmp_path):
    learner = to.SwiftTD(**SETTINGS)
    learner.start([0, 1])
    for sign in (1.0, -1.0) * 15:
        learner.update(sign * 1e308, (np.array([1, 2]), np.array([1e150, 1e160])))
    assert np.isnan(learner.step_sizes[1])
    learner.save(tmp_path / "swift.npz")
    np.testing.assert_array_equal(to.load(tmp_path / "swift.npz").step_sizes, learner.step_sizes)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("of_list", lambda old: -old),
        ("of_list", lambda old: old[:, :-1]),
        ("of_list", lambda old: old * np.nan),
        ("of_features", lambda old: old[:, :-1]),
        ("of_features", lambda old: 0.0 * old),
        ("of_features", lambda old: np.inf * old),
        ("seen", lambda old: old + 12),
        ("seen", lambda old: -old - 1),
        ("settings", lambda old: old - 7.5),
        ("settings", lambda old: old[:-1]),
    ],
)
def test_damaged_parts_are_refused(part, change):
    learner = to.SwiftTD(**SETTINGS)
    learner.start(0)
    for active in (range(6), range(6, 11)):  # the first six fade
        for i in 300 * [*active]:
            learner.update(1.0, i)
    parts = learner._dump()
    assert len(parts["seen"]) >= 6
    with pytest.raises((ValueError, KeyError)):
        to.SwiftTD(**SETTINGS)._restore({**parts, part: change(parts[part])})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bound": 0.0}, "bound must be a finite number > 0, got 0.0"),
        ({"bound": None}, "bound must be a finite number > 0, got None"),
        ({"decay": 1.5}, r"decay must be a number in \(0, 1\], got 1.5"),
        ({"meta_step_size": -1.0}, "meta_step_size must be a finite number ≥ 0, got -1.0"),
        ({"min_step_size": 0.2}, r"min_step_size must be a number in \(0, 0.1\], at most bound, got 0.2"),
        ({"step_size": lambda t: 0.1}, "step_size of SwiftTD must be a number.*got a schedule"),
    ],
)
def test_settings_without_meaning_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        to.SwiftTD(**{**SETTINGS, **settings})
