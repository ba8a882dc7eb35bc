"""The sweeps that the GPU is compared with do the same work as the sweeps of the package."""

import re
import shutil
import subprocess
from importlib import import_module

import numpy as np
import pytest

by_hand = import_module("benchmarks.gpu_by_hand")
in_jax = import_module("benchmarks.gpu_jax")
problems = import_module("benchmarks.gpu_problems")

pytestmark = pytest.mark.apart

CLOSE = 1e-9  # relative, for errors below 1,000


@pytest.fixture(scope="module")
def groups():
    """Two MRPs of each class with one run: some learners diverge on them."""
    return problems.groups((0, 1), runs=1)


@pytest.fixture(scope="module")
def expected(groups):
    return problems.on_cpu(groups)


def same(errors, expected):
    apart, cells = problems.largest_difference(errors, expected)
    assert list(errors) == list(expected)
    assert cells == 0
    assert apart < CLOSE


def test_groups_are_the_cases_of_the_study(groups):
    assert len(groups) == 9
    assert sum(group.steps * len(group.methods) for group in groups) == 2 * 504_000_000 // 50
    for group in groups:
        for at, case in enumerate(group.cases):
            states, rewards, discounts, _ = case.trajectory(0)
            assert np.array_equal(group.states[at, 0], states)
            assert np.array_equal(group.rewards[at, 0], rewards)
            assert np.array_equal(group.discounts[at, 0], discounts)
            root = np.diag(group.root[at]) if group.tabular else group.root[at]
            assert np.allclose(root.T @ root, case.problem.metric, rtol=1e-12, atol=1e-15)
            assert np.array_equal(np.triu(root), root)
    assert all(one.rewards is groups[i - i % 3].rewards for i, one in enumerate(groups))


def test_differences_are_seen():
    name = ("mrp", "tabular", "accumulate")
    expected = {name: np.array([1.0, 2e3, np.inf])}
    assert problems.largest_difference({name: np.array([1.0, 3e3, np.inf])}, expected) == (0.0, 0)
    assert problems.largest_difference({name: np.array([1.5, 2e3, 1.0])}, expected) == (0.5, 1)
    assert problems.largest_difference({name: np.array([np.nan, np.inf, np.inf])}, expected) == (np.inf, 1)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler g++")
def test_the_sweep_by_hand_is_the_sweep(groups, expected):
    """The arithmetic of the kernels, one lane at a time."""
    assert any(np.isinf(values).any() for values in expected.values())
    same(by_hand.on_cpu(groups), expected)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler g++")
def test_the_lanes_of_a_warp_share_their_work():
    """With 32 lanes, which share traces and rewards, on the smallest class."""
    small = problems.groups((1,), runs=1)[:3]
    same(by_hand.on_cpu(small, lanes=32), problems.on_cpu(small))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no CUDA compiler nvcc")
def test_no_register_is_spilled(tmp_path):
    command = ["nvcc", "-std=c++20", "-arch=sm_90", "-Xptxas", "-v", "-cubin", "-o", tmp_path / "kernels", by_hand.SOURCE]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    spilled = re.findall(r"(\d+) bytes spill stores", said)
    assert len(spilled) == 12  # three methods: tabular, and with 4, 5 and 7 dense features
    assert set(spilled) == {"0"}


def test_without_nvcc_the_message_says_what_to_install(groups, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="install the CUDA toolkit"):
        by_hand.measure(groups)


def test_what_the_sweep_by_hand_cannot_do_is_refused(groups):
    group = groups[0]
    discounts = group.discounts.copy()
    discounts[0, 0, 3] = 0.0
    ends = problems.Group(group.cases, group.features, group.states, group.rewards, discounts, group.root, group.target)
    with pytest.raises(ValueError, match="constant discount"):
        by_hand.on_cpu([ends])


@pytest.mark.skipif(not in_jax.available(), reason="JAX is not installed")
def test_the_sweep_in_jax_is_the_sweep(groups, expected):
    measured = in_jax.measure(groups, rounds=1)
    same(measured.errors, expected)
    assert len(measured.kernels) == len(measured.transfers) == 1
