"""Results are stale when anything that a method refers to has changed."""

import types

import trueonline as to
from trueonline.study.fingerprint import fingerprint

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


def test_a_global_number_or_a_helper_is_part_of_a_method():
    assert fingerprint(rule()) == fingerprint(rule())
    assert fingerprint(rule()) != fingerprint(rule(share=0.7))
    assert fingerprint(rule()) != fingerprint(rule(more=" * 2.0"))
    assert fingerprint(to.method(rule())) != fingerprint(to.method(rule(share=0.7)))
