"""Saved files whose numbers were crafted: refused, or what they hold still works. Nothing crashes, and nothing hangs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crafted import KINDS

QUICK = ("provisional", "sarsa", "horde", "predictor")
ROOT = Path(__file__).parents[1]


def check(*kinds, every=1):
    """In another process: a crash must not end the tests."""
    command = [sys.executable, "-m", "tests.crafted", f"--every={every}", *kinds]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"crashed at {done.stderr[-300:]}"
    for kind, line in zip(kinds, done.stdout.splitlines(), strict=True):
        outcome = json.loads(line)
        assert outcome["kind"] == kind
        assert outcome["failures"] == []
        assert outcome["refused"] * every > 100
        assert outcome["works"] > 0, "nothing is tried if everything is refused"


def test_some_crafted_files_are_refused_or_work():
    check(*QUICK, every=13)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_crafted_files_are_refused_or_work(kind):
    if kind.startswith("atari"):
        pytest.importorskip("ale_py")
    check(kind)
