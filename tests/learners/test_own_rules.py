"""Rules of one's own: what belongs to a rule, and input that such a rule does not look at."""

import numpy as np
import pytest

import trueonline as to
from trueonline.core.memory import decay, imprint, learn, value

SETTINGS = {"n_features": 3, "step_size": 0.5, "trace_decay": 0.0, "discount": 1.0}


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
