"""What a learner does after input that it refused, and after it diverged."""

import warnings

import numpy as np
import pytest

import trueonline as to

LEARNERS = (
    (to.TrueOnlineTD, {}),
    (to.TrueOnlineTD, {"meta_step_size": 0.01}),
    (to.GTD, {"second_step_size": 0.1}),
    (to.ProvisionalTD, {}),
    (to.WISTD, {}),
    (to.SwiftTD, {}),
)


@pytest.mark.parametrize(("kind", "more"), LEARNERS)
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


@pytest.mark.parametrize("reward", [True, np.True_, 10**400])
def test_a_reward_is_refused_by_every_step_alike(reward):
    learner = to.TrueOnlineTD(n_features=3, step_size=0.1, trace_decay=0.9, discount=1.0)
    learner.start(0)
    for state in (1, 2, 0):
        with pytest.raises(ValueError, match="reward"):
            learner.update(reward, state)
        learner.update(1.0, state)


def test_another_form_of_features_after_divergence_warns_of_nothing():
    learner = to.WISTD(n_features=3, step_size=1e3, trace_decay=0.9, discount=1.0)
    X = np.array([[0, 1], [1, 2]] * 200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            learner.run(X, np.ones(399))
            learner.run(np.ones((3, 3)), np.ones(2))
    assert learner.diverged
