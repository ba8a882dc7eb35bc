"""Results are stale when anything that a method refers to has changed."""

import types

import numpy as np

import trueonline as to
from trueonline.study.storage.fingerprint import fingerprints

TEXT = """
import trueonline as to
SHARE = {share}
@to.kernel
def part(delta):
    return delta{more}
@to.kernel
def mine(memory, x, reward, alpha):
    return 0.0, SHARE * part(reward), 0.0
"""


def rule(share=0.5, more=""):
    module = types.ModuleType("my_rules")
    exec(TEXT.format(share=share, more=more), vars(module))
    return module.mine


def fingerprint(method):
    return fingerprints([({"mine": method}, ())])[0]["mine"]


def test_a_global_number_or_a_helper_is_part_of_a_method():
    assert fingerprint(rule()) == fingerprint(rule())
    assert fingerprint(rule()) != fingerprint(rule(share=0.7))
    assert fingerprint(rule()) != fingerprint(rule(more=" * 2.0"))
    one, other = (to.study.SweptMethod(to.method(rule(share=share))) for share in (0.5, 0.7))
    assert fingerprint(one) != fingerprint(other)


def test_a_state_without_active_features_is_not_the_first_feature():
    class Problem:
        features = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        metric, lms_weights, discount = np.eye(2), np.ones(2), 0.9

        def trajectory(self, steps, seed):
            states = np.arange(steps + 1) % 3
            return states, np.ones(steps), np.full(steps, 0.9)

    class AStepAtATime(to.TrueOnlineTD):
        """Swept without the kernel of sweeps."""

    table = to.sweep(Problem(), {"true_online": None, "one": AStepAtATime}, [0.1], [0.5], runs=1, steps=9)
    first, second = table["error"].to_pylist()
    assert np.isclose(first, second, rtol=1e-12)
