"""Rules of one's own: what belongs to a rule, and input that such a rule does not look at."""

import copy
import pickle

import numpy as np
import pytest

import trueonline as to
from trueonline.core.memory import decay, imprint, learn, recall, value

SETTINGS = {"n_features": 3, "step_size": 0.5, "trace_decay": 0.0, "discount": 1.0}


def scaled_by(scale):
    @to.kernel
    def scaled(memory, x, reward, x_next, alpha, gamma_next):
        v, _, v_next = recall(memory, x, x_next)
        delta = reward + gamma_next * v_next - v
        decay(memory, 0.0)
        imprint(memory, x, 1.0, 0.0)
        learn(memory, scale * alpha * delta)
        return v, delta, v_next

    return scaled


@to.kernel
def towards_rewards(memory, x, reward, alpha):
    """It never looks at the features of the state entered."""
    v = value(memory, x)
    decay(memory, 0.0)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * (reward - v))
    return v, reward - v, 0.0


@pytest.mark.parametrize(("binary", "bad"), [(False, np.nan), (True, 0.5)])
def test_a_dense_row_that_the_rule_does_not_look_at_is_refused(binary, bad):
    learner = to.method(towards_rewards, binary=binary).learner(**SETTINGS)
    X = np.eye(3)[[0, 1, 2, 0]].copy()
    X[1, 1] = bad
    with pytest.raises(ValueError, match=r"X\[1\] must be"):
        learner.run(X, [1.0, 1.0, 1.0])
    assert learner.steps == 0
    assert not learner.weights.any()


def test_what_a_rule_closes_over_belongs_to_it(tmp_path):
    whole, tenth = to.method(scaled_by(1.0)), to.method(scaled_by(0.1))
    learner = whole.learner(**SETTINGS)
    learner.start(0)
    for same in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert type(same) is whole.learner
        same.update(1.0, 1)
        assert same.weights[0] == 0.5
    learner.save(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match="the rule of scaled has changed since"):
        tenth.learner.load(tmp_path / "learner.npz")


def test_the_rule_for_schedules_belongs_to_a_method():
    rule = scaled_by(1.0)
    first, second = (to.method(rule, varying=scaled_by(scale)) for scale in (1.0, 0.1))
    assert first.digest != second.digest


def test_a_method_that_came_by_value_keeps_its_digest():
    method = to.method(scaled_by(0.3))
    learner = method.learner(**SETTINGS)
    pickled = pickle.dumps(learner)
    made = vars(__import__("trueonline.learners.own", fromlist=["_MADE"]))["_MADE"]
    del made[method.digest]  # as in another process
    again = pickle.loads(pickled)
    assert type(again) is not method.learner
    assert again._kind() == learner._kind()


def test_a_learner_with_a_second_step_size_shows_it():
    @to.kernel
    def two(memory, x, reward, alpha, beta):
        return 0.0, alpha + beta, 0.0

    assert repr(to.method(two).learner(**SETTINGS, second_step_size=0.1)).endswith("second_step_size=0.1)")


@pytest.mark.parametrize("wrong", [("discount",), "gamma", ("gamma", "lambda")])
def test_an_unknown_constant_is_refused(wrong):
    with pytest.raises(ValueError, match="constants must be a tuple of names among gamma, lam, alpha"):
        to.method(towards_rewards, constants=wrong)


def test_carried_numbers_are_shown_as_a_copy():
    @to.kernel
    def counting(memory, x, reward, carried):
        v = value(memory, x)
        carried[0] += 1.0
        return v, reward - v, 0.0

    learner = to.method(counting).learner(**SETTINGS)
    learner.start(0)
    learner.update(1.0, 1)
    before = learner.carried
    learner.update(1.0, 2)
    assert before.tolist() == [1.0, 0.0, 0.0]
    learner.carried[:] = 7.0
    assert learner.carried.tolist() == [2.0, 0.0, 0.0]
