"""Every section of `make bench` runs: scaled down, and without its numbers. `make test-apart` has these tests."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.__main__ import SECTIONS

ROOT = Path(__file__).parent.parent
# `gpu` and `atari_prediction` have tests of their own: one needs a GPU, and the other recordings. `peers` needs packages of others.
ELSEWHERE = ("gpu", "atari_prediction", "peers")


@pytest.mark.parametrize("section", SECTIONS)
def test_what_a_section_imports_is_there(section):
    assert callable(import_module(f"benchmarks.{section}").measure)


@pytest.mark.apart
@pytest.mark.parametrize("section", [name for name in SECTIONS if name not in ELSEWHERE])
def test_a_section_runs(section):
    command = [sys.executable, "-m", "benchmarks", section, "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "All targets" in done.stdout


SMALL = ["--seeds", "1", "--steps", "400", "--processes", "1", "--tasks", "CartPole-v1"]


@pytest.mark.apart
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["deep_heads", *SMALL], "| CartPole-v1, return of all |"),
        (["versions", sys.executable, "--rounds", "1", "--quick"], "study: sweep"),
    ],
    ids=["deep_heads", "versions"],
)
def test_a_study_that_is_no_section_runs(command, said, tmp_path):
    command = [sys.executable, "-m", f"benchmarks.{command[0]}", *command[1:], "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert said in done.stdout
