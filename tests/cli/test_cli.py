"""The command."""

import json
import subprocess
import sys
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

import trueonline
from trueonline import catalog
from trueonline.checks import verification
from trueonline.cli import COMMANDS, main
from trueonline.cli.errors import plain_errors


def invoke(*arguments):
    return CliRunner().invoke(main, arguments)


def test_every_command_is_listed_with_a_line_of_help():
    shown = invoke("--help").stdout
    for name in COMMANDS:
        assert f"\n  {name} " in shown
        assert invoke(name, "--help").exit_code == 0


def test_version_and_methods_are_told():
    assert trueonline.__version__ in invoke("--version").stdout
    told = invoke("verify", "--help").stdout
    assert all(name in told for name in catalog.METHODS)


def test_verify_prints_a_table_with_a_verdict_for_each_method(monkeypatch):
    """On streams of active features alone: those in other forms, each compiled anew, are in the tests of the methods."""
    sparse = ("states of a table", "repeated features", "schedule, binary")
    monkeypatch.setattr(verification, "KINDS", tuple(kind for kind in verification.KINDS if kind.name in sparse))
    result = invoke("verify", "--trials", "1", "--steps", "20")
    assert result.exit_code == 0
    tables = [table.splitlines() for table in result.stdout.strip("\n").split("\n\n")]
    assert [name for lines in tables for name in lines[0].split()] == list(catalog.METHODS)
    for lines in tables:
        verdict = next(line for line in lines if line.startswith("verdict"))
        assert set(verdict.split()) == {"verdict", "exact"}
        assert len({len(line) for line in lines}) == 1, "all lines of a table are as wide"
        assert all(any(line.startswith(kind) for line in lines) for kind in sparse)


def test_verify_takes_names_and_gives_json_with_the_distance_from_the_online_forward_view():
    """That of methods that are told of two policies is another one than that of true online TD(λ)."""
    exact, others = ["true_online", "true_online_gtd", "true_online_watkins_q"], ["accumulate", "gtd"]
    result = invoke("verify", *exact, *others, "--trials", "1", "--steps", "30", "--json")
    found = json.loads(result.stdout)
    errors = {name: report["forward_error"] for name, report in found.items()}
    assert list(errors) == [*exact, *others]
    assert all(report["exact"] is True and 0.0 <= report["max_error"] < 1e-10 for report in found.values())
    assert set(found["accumulate"]["streams"]) == {kind.name for kind in verification.KINDS}
    assert max(errors[name] for name in exact) < 1e-10
    assert min(errors[name] for name in others) > 1e-3


def test_verify_fails_when_a_method_is_not_exact(monkeypatch):
    wrong = replace(catalog.METHODS["accumulate"], definition=trueonline.OnlineLambdaReturn)
    monkeypatch.setattr(catalog, "METHODS", {**catalog.METHODS, "accumulate": wrong})
    result = invoke("verify", "accumulate", "--trials", "1")
    assert result.exit_code == 1
    assert "NOT EXACT" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "td"], "unknown method 'td'; known are accumulate, replace, true_online"),
        (["verify", "--trials", "0"], "0 is not in the range"),
        (["teach"], "No such command 'teach'"),
    ],
)
def test_bad_arguments(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_help_imports_neither_numpy_nor_numba():
    heavy = "any(name in sys.modules for name in ('numpy', 'numba', 'scipy', 'pyarrow', 'rich', 'ale_py'))"
    calls = "".join(f"main(['{name}', '--help'], standalone_mode=False); " for name in COMMANDS)
    code = (
        f"import sys; from trueonline.cli import main; main(['--help'], standalone_mode=False); {calls}sys.exit({heavy})"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL).returncode == 0


WITHOUT = (
    {
        "sweep spec.toml": "study",
        "reproduce --list": "report",
        "train CartPole-v1": "gym",
        "predict log.csv --rate 1 --target a": "streams",
        "predict arm --target force --samples 9 --out out.parquet": "streams",
    },
    {
        "sweep spec.toml --engine dask": "dask",
        "reproduce fig1 --runs 1": "report",
        "train CartPole-v1": "gym",
        "asterix --frames 10": "atari",
        "derive view.py": "derive",
        "live log.csv --rate 1 --target a": "live",
    },
)


@pytest.mark.parametrize(
    ("missing", "extras"),
    [
        (["pyarrow"], WITHOUT[0]),
        (["distributed", "matplotlib", "gymnasium", "ale_py", "sympy", "starlette"], WITHOUT[1]),  # a command needs one
    ],
)
def test_without_a_package_a_command_names_the_one_extra_that_it_needs(missing, extras, tmp_path):
    (tmp_path / "spec.toml").write_text('[[problems]]\nkind = "random_walk"')
    (tmp_path / "log.csv").write_text("a\n1\n")
    for (code, said), extra in zip(without(missing, extras, tmp_path), extras.values(), strict=True):
        assert code == 1
        assert f"pip install 'trueonline[{extra}]'" in said
        assert len(said.splitlines()) == 1


def test_verify_needs_no_extra(tmp_path):
    missing = ["pyarrow", "matplotlib", "scipy", "sympy", "gymnasium", "distributed", "starlette"]
    assert without(missing, ["verify replace --trials 1 --steps 3"], tmp_path) == [[0, ""]]


def without(missing, commands, folder):
    """The exit codes and the errors of commands in a process in which some packages cannot be imported."""
    code = f"""
import importlib.util, io, json, sys
from contextlib import redirect_stderr, redirect_stdout

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name in {missing!r} else found(name, *a)
from trueonline.cli import main
told = []
for command in {[*commands]!r}:
    with redirect_stderr(io.StringIO()) as said, redirect_stdout(io.StringIO()):
        try:
            main(command.split(), prog_name="trueonline")
        except SystemExit as end:
            told.append((end.code, said.getvalue()))
print(json.dumps(told))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    return json.loads(done.stdout)


def test_a_sweep_in_python_without_pyarrow_says_what_to_install():
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import trueonline as to\n"
        "try:\n    to.sweep\nexcept ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "sweeps and studies need PyArrow: pip install 'trueonline[study]'\n"


@pytest.mark.parametrize(
    ("module", "remedy"),
    [("trueonline.methods.mine", ""), ("my_helpers", ""), ("paho.mqtt", r"; .*pip install 'trueonline\[mqtt\]'")],
)
def test_what_no_extra_brings_asks_for_none(module, remedy):
    with pytest.raises(click.ClickException, match=rf"^No module named '{module}'{remedy}$"), plain_errors():
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def test_a_command_ends_without_a_last_collection():
    code = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0)); from trueonline.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"
