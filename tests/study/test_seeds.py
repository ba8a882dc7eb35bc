"""The seeds of one purpose are never those of another, and no seed is made elsewhere."""

import ast
import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

import trueonline
from trueonline.inputs.seeds import SEEDS, SHARED_SEEDS, seed_of

FEWEST = {"k": 2, "b": 1}  # the smallest values of parts that cannot be 0


def states(purpose):
    """What NumPy makes of the seeds of a purpose with small parts."""
    parts = (range(FEWEST.get(name, 0), FEWEST.get(name, 0) + 4) for name in SEEDS[purpose][1])
    seeds = [seed_of(purpose, *some) for some in product(*parts)]
    return [np.random.SeedSequence(seed).generate_state(4).tobytes() for seed in seeds]


def test_purposes_share_no_seeds():
    made = {purpose: set(states(purpose)) for purpose in SEEDS}
    assert {pair for pair in combinations(SEEDS, 2) if made[pair[0]] & made[pair[1]]} == SHARED_SEEDS
    assert np.random.SeedSequence([41, 3]).generate_state(1) == np.random.SeedSequence([41, 3, 0, 0]).generate_state(1)


def test_the_seeds_of_stored_results_do_not_change():
    constants = [20160817, 20160818, 41, 41, 31, 51, 61, 61, 71, 73, 2016, 20130612, 1, 2, 3]
    assert [seed_of(purpose, *range(len(names)))[0] for purpose, (_, names) in SEEDS.items()] == constants
    assert seed_of("trajectory of a sweep", 5, 7) == [20160817, 5, 7]
    assert seed_of("training episode", 3, 8, 9) == [1, 3, 8, 9], "a user's seed may have several numbers"
    with pytest.raises(ValueError, match="has the parts seed, run"):
        seed_of("trajectory of a sweep", 5)


def test_no_module_makes_a_seed_with_a_constant_of_its_own():
    """A list that begins with a number, given to NumPy as a seed."""
    package = Path(trueonline.__file__).parent
    users = [path for path in package.rglob("*.py") if re.search("default_rng|SeedSequence", path.read_text())]
    for path in users:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", "") in ("default_rng", "SeedSequence")
                and node.args
            ):
                begin = getattr(node.args[0], "elts", [None])[:1]
                assert not any(isinstance(each, ast.Constant) for each in begin), f"{path}: {ast.unparse(node)}"
