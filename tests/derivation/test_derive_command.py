"""`trueonline derive`: what it prints, what it writes, and what it refuses."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trueonline.checks import verification
from trueonline.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "careful_return.py"
SPARSE = ("states of a table", "repeated features", "schedule, binary")
LAMBDA_RETURN = """
def target(k, h, R, V, gamma, lam):
    if k + 1 == h:
        return R[h] + gamma[h] * V(k, h)
    rest = target(k + 1, h, R, V, gamma, lam)
    return R[k + 1] + gamma[k + 1] * ((1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * rest)
"""


@pytest.fixture
def run(tmp_path):
    def run(text, *options):
        file = tmp_path / "view.py"
        file.write_text(text)
        return CliRunner().invoke(main, ["derive", str(file), *options])

    return run


def test_the_example_is_derived_and_checked(monkeypatch):
    """On streams of active features alone: docs/guides/derive.md has all of them, and each form is compiled anew."""
    monkeypatch.setattr(verification, "KINDS", tuple(kind for kind in verification.KINDS if kind.name in SPARSE))
    said = CliRunner().invoke(main, ["derive", str(EXAMPLE), "--trials", "1"])
    assert said.exit_code == 0
    assert "c_t = min(1, ρ_t)·γ_t·λ_t" in said.output
    assert "random streams: the weights of both views differ by at most" in said.output
    assert "CarefulReturn against CarefulReturnForwardView: exact" in said.output


def test_the_differential_example_is_derived_with_its_reward_rate():
    said = CliRunner().invoke(main, ["derive", str(EXAMPLE.with_name("differential_return.py")), "--trials", "0"])
    assert said.exit_code == 0, said.output
    assert "R̄_{t+1} = R̄_t + β_t·(R_{t+1} − R̄_t + γ_{t+1}·V_t(S_{t+1}) − V_t(S_t))" in said.output


def test_the_method_is_written_to_a_file(run, tmp_path):
    said = run(LAMBDA_RETURN, "--out", str(tmp_path / "method.py"), "--trials", "0", "--latex")
    assert said.exit_code == 0
    assert said.stdout.startswith(r"\begin{align*}")
    assert "exact" not in said.output
    assert "Checked at 100 steps of 4 random streams" in said.stderr
    spec = importlib.util.spec_from_file_location("method", tmp_path / "method.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.target.py_func.__name__ == "target"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", (), "there are none at all"),
        ("def a(k, h, R): return R[h]\ndef b(k, h, R): return R[h]", (), "there are a, b"),
        ("def a(k, h, R): return R[h]", ("--function", "c"), "there is no function c(k, h, …); there are a"),
        ("def a(k, h, R): return R[h + 1]", (), "beyond the horizon"),
        ("def a(", (), "cannot be run: SyntaxError"),
        ("1 / 0", (), "cannot be run: ZeroDivisionError"),
    ],
)
def test_what_cannot_be_derived_is_said_in_a_line(run, text, options, said):
    found = run(text, *options)
    assert found.exit_code == 1
    assert said in found.output
    assert "Traceback" not in found.output


def test_a_file_is_not_overwritten(run, tmp_path):
    said = run(LAMBDA_RETURN, "--out", str(tmp_path / "view.py"))
    assert (said.exit_code, "must be a new file" in said.output) == (1, True)
    assert (tmp_path / "view.py").read_text() == LAMBDA_RETURN
    assert run(LAMBDA_RETURN, "--out", str(tmp_path / "nowhere" / "view.py")).exit_code == 1


def test_no_file():
    found = CliRunner().invoke(main, ["derive", "nowhere.py"])
    assert (found.exit_code, found.output) == (1, "Error: there is no file nowhere.py\n")


def test_without_sympy_the_core_works_and_derive_says_what_it_needs():
    code = (
        "import sys; sys.modules['sympy'] = None\n"
        "import trueonline as to\n"
        "assert to.TrueOnlineTD(1, 0.1, 0.9, 1.0).steps == 0\n"
        "try:\n    to.derive\nexcept ImportError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "derive needs SymPy: pip install 'trueonline[derive]'\n"
