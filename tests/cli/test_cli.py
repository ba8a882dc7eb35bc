"""The command."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import trueonline
from trueonline.checks import verification
from trueonline.cli import METHODS, main


def invoke(*arguments):
    return CliRunner().invoke(main, arguments)


def test_help_helps():
    result = invoke("--help")
    assert result.exit_code == 0
    assert "verify" in result.stdout
    for name in METHODS:
        assert name in invoke("verify", "--help").stdout


def test_version():
    assert trueonline.__version__ in invoke("--version").stdout


def test_verify_prints_a_table_with_a_verdict_for_each_method(monkeypatch):
    """On streams of active features alone: those in other forms, each compiled anew, are in the tests of the methods."""
    sparse = ("states of a table", "repeated features", "schedule, binary")
    monkeypatch.setattr(verification, "KINDS", tuple(kind for kind in verification.KINDS if kind.name in sparse))
    result = invoke("verify", "--trials", "1", "--steps", "20")
    assert result.exit_code == 0
    tables = [table.splitlines() for table in result.stdout.strip("\n").split("\n\n")]
    assert [name for lines in tables for name in lines[0].split()] == list(METHODS)
    for lines in tables:
        verdict = next(line for line in lines if line.startswith("verdict"))
        assert set(verdict.split()) == {"verdict", "exact"}
        assert len({len(line) for line in lines}) == 1, "all lines of a table are as wide"
        assert all(any(line.startswith(kind) for line in lines) for kind in sparse)


def test_verify_says_how_far_from_their_online_forward_view_methods_are():
    """That of methods that are told of two policies is another one than that of true online TD(λ)."""
    result = invoke("verify", "true_online", "accumulate", "gtd", "true_online_gtd", "--trials", "1", "--json")
    errors = {name: report["forward_error"] for name, report in json.loads(result.stdout).items()}
    assert max(errors["true_online"], errors["true_online_gtd"]) < 1e-10
    assert min(errors["accumulate"], errors["gtd"]) > 1e-3


def test_verify_takes_names_and_gives_json():
    result = invoke("verify", "replace", "--trials", "1", "--steps", "5", "--json")
    found = json.loads(result.stdout)
    assert list(found) == ["replace"]
    assert found["replace"]["exact"] is True
    assert 0.0 <= found["replace"]["max_error"] < 1e-10
    assert set(found["replace"]["streams"]) == {kind.name for kind in verification.KINDS if kind.binary}


def test_verify_fails_when_a_method_is_not_exact(monkeypatch):
    monkeypatch.setitem(verification.DEFINITIONS, trueonline.AccumulateTD, trueonline.OnlineLambdaReturn)
    result = invoke("verify", "accumulate", "--trials", "1")
    assert result.exit_code == 1
    assert "NOT EXACT" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "td"], "unknown method 'td'; known are accumulate, replace, true_online"),
        (["verify", "--trials", "0"], "0 is not in the range"),
        (["verify", "--steps", "x"], "'x' is not a valid integer"),
        (["learn"], "No such command 'learn'"),
    ],
)
def test_bad_arguments(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_help_imports_neither_numpy_nor_numba():
    code = "import sys, trueonline.cli; sys.exit(any(name in sys.modules for name in ('numpy', 'numba', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_installed_command_runs():
    result = subprocess.run([sys.executable, "-m", "trueonline", "--help"], capture_output=True, text=True, check=True)
    assert "verify" in result.stdout
