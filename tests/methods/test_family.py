"""Off-policy learners and Monte Carlo: what they are the same as at the limits.

`tests/test_catalog.py` compares them with their definitions.
"""

from functools import partial

import numpy as np
import pytest

import trueonline as to
from trueonline.forward import OnlineGTDReturn

GRADIENT = {"second_step_size": 0.3}


@pytest.mark.parametrize("kind", [to.GTD, to.TrueOnlineGTD])
def test_with_a_second_step_size_that_varies_it_equals_its_definition(kind):
    varying = partial(kind, second_step_size=lambda t: 0.5 / (1 + t % 7))
    assert to.verify(varying, trials=2, kinds=["active indices", "large step-size"]).max_error < 1e-11


def test_what_is_missing_is_asked_for():
    with pytest.raises(TypeError, match=r"needs second_step_size.*; give the rest with functools\.partial\(GTD, …\)"):
        to.check_learner(to.GTD)
    with pytest.raises(ValueError, match="a learner with bound or meta_step_size has no definition here"):
        to.verify(partial(to.TrueOnlineTD, bound=1.0))


def stream(seed, n=6, T=60):
    rng = np.random.default_rng(seed)
    discounts = rng.random(T)
    discounts[T // 2] = 0.0
    return rng.normal(size=(T + 1, n)) / 2, rng.normal(size=T), discounts


def test_steps_and_runs_are_the_same_with_all_that_may_vary():
    X, rewards, discounts = stream(3)
    rng = np.random.default_rng(3)
    ratios, interests, starts = rng.random(60) * 2, rng.random(60), rng.random(61) < 0.05
    beta = lambda t: 0.3 / (1 + t)  # noqa: E731
    settings = {"n_features": 6, "step_size": lambda t: 0.1 / (1 + t / 50), "trace_decay": 0.8, "discount": 0.9}
    for make, more in (
        (partial(to.TrueOnlineGTD, second_step_size=beta), {}),
        (to.TrueOnlineEmphaticTD, {"interests": interests}),
    ):
        ran, stepped = make(**settings), make(**settings)
        ran.run(X, rewards, discounts, starts=starts, ratios=ratios, **more)
        stepped.start(X[0])
        for t in range(60):
            if starts[t + 1]:
                stepped.start(X[t + 1])
                continue
            interest = {"interest": interests[t]} if more else {}
            stepped.update(rewards[t], X[t + 1], discounts[t], ratio=ratios[t], **interest)
        np.testing.assert_allclose(ran.weights, stepped.weights, rtol=1e-11, atol=1e-13)


def test_a_second_step_size_is_saved_unless_it_is_code(tmp_path):
    path = tmp_path / "learner.npz"
    to.GTD(3, 0.1, 0.9, 0.9, second_step_size=np.float32(0.5)).save(path)
    assert to.load(path).second_step_size == 0.5
    to.GTD(3, 0.1, 0.9, 0.9, second_step_size=lambda t: 0.5).save(path)
    with pytest.raises(ValueError, match="load it with second_step_size=schedule"):
        to.load(path)
    assert to.load(path, second_step_size=lambda t: 0.7).second_step_size(0) == 0.7


def test_bad_input_changes_nothing():
    learner = to.TrueOnlineGTD(3, 0.1, 0.9, 0.95, second_step_size=lambda t: 0.1 if t < 1 else np.nan)
    learner.start(0)
    learner.update(1.0, 1, ratio=0.5)
    emphatic = to.EmphaticTD(3, 0.1, 0.9, 0.95)
    emphatic.start(0)
    before = [each._memory.numbers.copy() for each in (learner, emphatic)]
    with pytest.raises(ValueError, match=r"second_step_size\(1\) must be a finite number ≥ 0, got nan"):
        learner.update(1.0, 2)
    for bad in ({"interest": -1.0}, {"interest": np.nan}, {"ratio": -0.5}, {"ratio": np.inf}):
        with pytest.raises(ValueError, match="must be a finite number ≥ 0"):
            emphatic.update(1.0, 1, **bad)
    for bad in (-0.1, np.nan, "1", True):
        with pytest.raises(ValueError, match="second_step_size must be"):
            to.GTD(3, 0.1, 0.9, 0.95, second_step_size=bad)
    for each, numbers in zip((learner, emphatic), before, strict=True):
        np.testing.assert_array_equal(each._memory.numbers, numbers)


@pytest.mark.parametrize("form", [lambda: 0, lambda: np.ones(1)], ids=["state", "dense"])
def test_true_online_gtd_stays_exact_where_traces_grow(form):
    """With ργλ = 3 an error in fᵀg would grow ninefold a step, and fᵀg threefold. So hᵀg and fᵀg are computed anew at times.

    The last steps correct with them: just after they are new, and a step later.
    """
    rewards = np.random.default_rng(1).normal(size=40)
    settings = {"step_size": 0.3, "trace_decay": 1.0, "discount": 1.0, "second_step_size": 0.9}
    learner, definition = (kind(1, **settings) for kind in (to.TrueOnlineGTD, OnlineGTDReturn))
    for each in (learner, definition):
        each.start(form())
        for t in range(40):
            each.update(float(rewards[t]), form(), 1.0, 1.0 if t < 37 else 0.9, ratio=3.0)
    np.testing.assert_allclose(learner.weights, definition.weights, rtol=1e-12)
    np.testing.assert_allclose(learner.second_weights, definition.second_weights, rtol=1e-12)


def test_second_step_sizes_are_asked_for_where_something_is_learned():
    """Not at a row where the stream begins anew: no transition leads into it."""
    asked = []
    learner = to.GTD(3, 0.1, 0.9, 0.9, second_step_size=lambda t: asked.append(t) or 0.1)
    learner.run(np.eye(3)[[0, 1, 2, 0, 1]], np.ones(4), starts=[False, True, False, False, True])
    assert asked == [0, 1]


def test_a_kind_of_gtd_is_held_to_the_definition_of_gtd():
    class Mine(to.GTD):
        pass

    assert to.verify(partial(Mine, **GRADIENT), trials=1, kinds=["states of a table"]).definition == "GTDSum"
