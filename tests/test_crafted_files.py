"""Saved files whose numbers were crafted: refused, or what they hold still works. Nothing crashes, and nothing hangs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crafted import KINDS

QUICK = ("provisional", "sarsa", "horde", "predictor")
ROOT = Path(__file__).parents[1]


def check(*kinds):
    """In another process: a crash must not end the tests."""
    command = [sys.executable, "-m", "tests.crafted", *kinds]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"crashed at {done.stderr[-300:]}"
    for kind, line in zip(kinds, done.stdout.splitlines(), strict=True):
        outcome = json.loads(line)
        assert outcome["kind"] == kind
        assert outcome["failures"] == []
        assert outcome["refused"] > 100
        assert outcome["works"] > 10, "nothing is tried if everything is refused"


def test_crafted_files_are_refused_or_work():
    check(*QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in QUICK])
def test_other_crafted_files_are_refused_or_work(kind):
    if kind.startswith("atari"):
        pytest.importorskip("ale_py")
    check(kind)
