"""Weighted importance sampling: the theorem of forward and backward views, and the definitions against what it gives."""

import numpy as np
import pytest

from tests.forward.test_family_definitions import SEEDS, assert_same, drawn, followed, made, weights_0
from tests.oracles import weighted as naive
from trueonline import forward


@SEEDS
def test_forward_and_backward_view_of_the_theorem_are_the_same(seed):
    """For any matrices, vectors and numbers: no method is behind them."""
    rng = np.random.default_rng(seed)
    T, n = 12, 4
    steps = [
        naive.Step(rng.normal(size=(n, n)) / 2, *rng.normal(size=(2, n)), *rng.normal(size=2), *rng.normal(size=4))
        for _ in range(T)
    ]
    start = rng.normal(size=n)
    view = naive.BackwardView(start)
    found = np.array([view.step(step) for step in steps])
    assert_same(found, [naive.forward_view(steps[: t + 1], start) for t in range(T)])
    assert np.abs(np.diff(found, axis=0)).max() > 0.1


@SEEDS
@pytest.mark.parametrize(
    ("ours", "plain", "more"),
    [
        (forward.OnlineWISReturn, forward.OnlineLambdaReturn, {}),
        (forward.WISGTDSum, forward.GTDSum, {"second_step_size": 0.3}),
        (forward.OnlineWISGTDReturn, forward.OnlineGTDReturn, {"second_step_size": 0.3}),
    ],
)
def test_without_ratios_a_constant_step_size_stays_what_it_is(ours, plain, more, seed):
    """u = 1/η is a fixed point: (1 − ηφ²)/η + φ² = 1/η."""
    episodes, w_0 = drawn(seed, ratios=1.0, alphas=0.2), weights_0(seed)
    learner = made(ours, episodes, w_0, **more)
    found, usage = followed(learner, episodes, "weights", "usage")
    np.testing.assert_allclose(usage, 5.0, rtol=1e-12)
    assert_same(found, followed(made(plain, episodes, w_0, **more), episodes)[0])


@SEEDS
def test_with_a_constant_step_size_and_lambda_0_the_three_differ_by_the_correction_alone(seed):
    """Without β there is none, and with λ = 0 no target has a later ratio in it."""
    episodes, w_0 = drawn(seed, trace_decays=0.0), weights_0(seed)
    (weights,) = followed(made(forward.OnlineWISReturn, episodes, w_0), episodes)
    for definition in (forward.WISGTDSum, forward.OnlineWISGTDReturn):
        assert_same(followed(made(definition, episodes, w_0, second_step_size=0.0), episodes)[0], weights)
