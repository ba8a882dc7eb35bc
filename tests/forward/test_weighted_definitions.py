"""Weighted importance sampling: the theorem of forward and backward views, and the definitions against what it gives."""

import numpy as np
import pytest

from tests.forward.test_family_definitions import SEEDS, assert_same, drawn, followed, made, weights_0
from trueonline import forward


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
