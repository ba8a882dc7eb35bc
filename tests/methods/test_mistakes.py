"""Mistakes that other implementations made, as far as prediction goes: none of them is made here.

`tests/checks` plants each of them in a learner, and `verify` finds it.
"""

from typing import NamedTuple

import numpy as np
import pytest

import trueonline as to

BACKWARD = [to.AccumulateTD, to.ReplaceTD, to.TrueOnlineTD]
EVERY = [*BACKWARD, to.OnlineLambdaReturn, to.OfflineLambdaReturn]
every_learner = pytest.mark.parametrize("learner_class", EVERY)


def close(learner, wanted) -> None:
    np.testing.assert_allclose(learner.weights, wanted, rtol=1e-12, atol=1e-14)


# --- What a reward teaches ------------------------------------------------------------------------


class Walk(NamedTuple):
    """Transitions from state 0, with λ = 1 and γ = 1 where nothing else is said, and the weights that they lead to."""

    states: list[int]
    rewards: list[float]
    discounts: list[float]
    weights: list[float]
    trace_decays: tuple[float, ...] = (1.0,) * 4
    starts: tuple[int, ...] = ()


WALKS = {
    # The trace decays by the γ and the λ of the state being left, not of the one being entered: eligibilities ⅛, ¼ and 1.
    "γ of the state left": Walk([0, 1, 2, 3], [0, 0, 1], [0.5, 0.25, 0.0], [0.0625, 0.125, 0.5, 0.0]),
    "λ of the state left": Walk([0, 1, 2, 3], [0, 0, 1], [1.0, 1.0, 0.0], [0.0625, 0.125, 0.5, 0.0], (0.5, 0.25, 0.0)),
    "λ of the end": Walk([0, 1, 2, 3], [0, 0, 1], [1.0, 1.0, 0.0], [0.0625, 0.125, 0.5, 0.0], (0.5, 0.25, 1.0)),
    "after an end": Walk([0, 1, 2, 3, 3], [0, 0, 0, 1], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.5, 0.5]),
    "after a cut": Walk([0, 1, 2, 3, 3], [0, 7, 0, 1], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.5, 0.5], starts=(2,)),
}


@every_learner
@pytest.mark.parametrize("way", ["update", "run"])
@pytest.mark.parametrize("walk", WALKS)
def test_a_reward_teaches_the_states_that_led_to_it(learner_class, way, walk):
    states, rewards, discounts, weights, decays, starts = WALKS[walk]
    learner = learner_class(4, 0.5, trace_decay=0.9, discount=0.9)
    T = len(rewards)
    if way == "run":
        learner.run(states, rewards, discounts, trace_decays=decays[:T], starts=np.isin(np.arange(T + 1), starts))
    else:
        learner.start(states[0])
        for t in range(T):
            if t + 1 in starts:
                learner.start(states[t + 1])
            else:
                learner.update(rewards[t], None if t == T - 1 else states[t + 1], discounts[t], decays[t])
    close(learner, weights)


# --- Truncation is not termination ----------------------------------------------------------------


# --- Sparse real-valued features ------------------------------------------------------------------


@pytest.mark.parametrize("learner_class", [to.AccumulateTD, to.TrueOnlineTD])
def test_a_negative_feature_has_a_negative_trace(learner_class):
    learner = learner_class(3, 0.5, trace_decay=1.0, discount=0.5)
    learner.start((np.array([0]), np.array([-2.0])))
    learner.update(0.0, (np.array([1]), np.array([1.0])))
    learner.update(1.0, None)
    np.testing.assert_allclose(learner.trace, [-1.0, 1.0, 0.0])
    close(learner, [-0.5, 0.5, 0.0])


# --- A step-size bound that silently rescales -----------------------------------------------------


@pytest.mark.parametrize("learner_class", [to.AccumulateTD, to.TrueOnlineTD, to.OnlineLambdaReturn])
@pytest.mark.parametrize("scheduled", [False, True])
def test_a_step_size_is_taken_as_it_is_however_large(learner_class, scheduled):
    """α‖φ‖² = 10: far beyond what is stable, and exactly what was asked for."""
    x = np.array([1.0, -2.0])
    learner = learner_class(2, (lambda t: 2.0) if scheduled else 2.0, trace_decay=1.0, discount=1.0)
    learner.start(x)
    learner.update(1.0, 0.5 * x)
    close(learner, 2.0 * x)
    scale = 2.0 if scheduled and learner_class is not to.AccumulateTD else 1.0  # e⁺ carries α
    np.testing.assert_allclose(learner.trace, scale * x)
