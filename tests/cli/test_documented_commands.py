"""Every command that README, the documentation, the examples and the help show can be typed: it exists, and so do its options."""

import re
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from trueonline.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]
GENERATED = {"_build", "gallery", "api", "commands", "jupyter_execute"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE_FILES = [
    path for path in sorted((ROOT / "examples").rglob("*")) if path.suffix in (".toml", ".service", ".sbatch")
]
HELP = [main.get_command(click.Context(main), name).help for name in COMMANDS]
TEXT = "\n".join(
    [*(path.read_text() for path in (*PAGES, *EXAMPLE_FILES) if not GENERATED & {*path.parts}), *HELP]
).replace("\\\n", " ")
# Where CI runs each command, target and module of the documentation: a file, and words in it.
RUN = {
    "trueonline asterix": ("tests/control/atari/test_asterix_command.py", '"asterix"'),
    "trueonline atari": ("tests/control/atari/test_asterix_command.py", '"atari"'),
    "trueonline derive": ("tests/derivation/test_derive_command.py", '"derive"'),
    "trueonline learn": ("tests/lab/explorables/test_learn_command.py", '"learn"'),
    "trueonline live": ("tests/streams/live/test_live_command.py", '"live"'),
    "trueonline predict": ("tests/test_platforms.py", '"predict"'),
    "trueonline reproduce": ("tests/lab/test_paper.py", '"reproduce"'),
    "trueonline sweep": ("tests/study/test_sweep_command.py", '"sweep"'),
    "trueonline train": ("tests/control/gym/test_train_command.py", '"train"'),
    "trueonline verify": ("tests/cli/test_cli.py", '"verify"'),
    "make bench": ("tests/test_benchmarks.py", '"-m", "benchmarks", section'),
    "make clean": (".github/workflows/weekly.yml", "make clean"),
    "make coverage": (".github/workflows/weekly.yml", "make coverage"),
    "make dist": (".github/workflows/tests.yml", "make dist"),
    "make docs": (".ci/run", "make docs"),
    "make docs-serve": ("tests/cli/test_documented_commands.py", '"--dry-run"'),  # it never ends
    "make format": ("Makefile", "ruff format --check ."),  # by `make test`
    "make peers": (".github/workflows/weekly.yml", "make peers"),
    "make reproduce": ("tests/lab/test_paper.py", '"reproduce"'),
    "make results": ("tests/test_stored_results.py", "benchmarks.store"),
    "make test": (".ci/run", "make test"),
    "make test-apart": (".ci/run", "make test-apart"),
    "make test-hostile": ("tests/test_hostile.py", "module.trial("),
    "make test-slow": (".github/workflows/weekly.yml", "make test-slow"),
    "make test-lowest": (".github/workflows/tests.yml", "make test-lowest"),
    "python -m benchmarks": ("tests/test_benchmarks.py", '"-m", "benchmarks", section'),
    "python -m benchmarks.deep_heads": ("tests/test_benchmarks.py", '"deep_heads"'),
    "python -m benchmarks.versions": ("tests/test_benchmarks.py", '"versions"'),
    "python -m tests.hostile": ("tests/test_hostile.py", "module.trial("),
    "python -m tests.lab.explorables.stills": ("tests/lab/explorables/test_pages.py", "stills.draw("),
    "python -m tools.generated": ("tests/test_catalog.py", "generated"),
    "python -m tools.mutants": ("tests/test_mutants.py", "mutants"),
    "python -m tools.new_method": ("tests/test_new_method.py", "new_method"),
    "python examples/careful_walk.py": ("tests/test_examples.py", '"careful_walk"'),
    "python examples/robustness.py": ("tests/streams/mixture/test_streams.py", '"robustness.py"'),
    "python examples/step_size_adaptation.py": ("tests/test_examples.py", '"step_size_adaptation"'),
    "python examples/stream_to_alert.py": ("tests/test_examples.py", '"stream_to_alert"'),
}
SHOWN = re.findall(r"^ *(?:[$!#] *)?trueonline ((?:[a-z]|--).*)$", TEXT, re.MULTILINE) + re.findall(
    r"`trueonline ([^`]+)`", TEXT
)
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = sorted(re.search(r"^.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())
MODULES = sorted({*re.findall(r"python -m ((?:benchmarks|tools|tests)[\w.]*)", TEXT)})
EXAMPLES = {*re.findall(r"python examples/[\w/]+\.py", TEXT)}


def words_of(line):
    """The words of a shell line before a comment, a pipe, a redirection or `&`."""
    shell = shlex.shlex(line, posix=True, punctuation_chars="|&>")
    shell.whitespace_split = True
    words = list(shell)
    return words[: next((n for n, word in enumerate(words) if set(word) <= set("|&>")), len(words))]


def refusal(line):
    """Why a line cannot be typed, or None. Nothing runs, and files need not exist."""
    name, *rest = words_of(line)
    if name.startswith("-") or name.isupper():
        return None  # an option of the program itself, or a place for a name
    if name not in COMMANDS:
        return f"no command {name}"
    command = main.get_command(click.Context(main), name)
    try:
        with click.Context(command, info_name=name) as context:
            given, _, _ = command.make_parser(context).parse_args([word for word in rest if word != "…"])
            for option in command.params:
                if isinstance(option.type, click.Choice) and isinstance(given.get(option.name), str):
                    option.type.convert(given[option.name], option, context)
    except click.UsageError as error:
        return error.format_message()
    return None


def test_a_command_with_a_mistake_is_noticed():
    assert "No such option" in refusal("predict log.csv --tim t")
    assert "is not one of" in refusal("reproduce asterix --scale huge | tail")
    assert refusal("teach") == "no command teach"
    assert refusal("predict log.csv --time t --target a > out.txt  # and a comment") is None


def test_every_command_line_of_the_documentation_can_be_typed():
    assert len(SHOWN) > 100
    assert {line: why for line in SHOWN if (why := refusal(line))} == {}


def test_everything_that_the_documentation_runs_is_run_by_ci():
    commands = {f"trueonline {words_of(line)[0]}" for line in SHOWN if words_of(line)[0] in COMMANDS}
    modules, targets = (f"python -m {name}" for name in MODULES), (f"make {target}" for target in TARGETS)
    assert {*commands, *targets, *modules, *EXAMPLES} == {*RUN}
    assert {what: file for what, (file, words) in RUN.items() if words not in (ROOT / file).read_text()} == {}


def test_targets_of_make_are_listed_at_its_head_and_those_that_are_named_exist():
    head = MAKEFILE.split("\n\n")[0]
    others = re.sub(r"\([^)]*\)", "", head[head.index("# Others:") :].replace("\n#", ""))
    listed = {*re.findall(r"#   make ([a-z-]+)", head), *re.findall(r"[a-z-]+", others.partition(":")[2])}
    assert listed == {*TARGETS}
    assert {*re.findall(r"`make ([a-z-]+)", TEXT)} <= listed
    done = subprocess.run(["make", "--dry-run", *TARGETS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_the_documentation_runs_exists(module):
    assert find_spec(f"{module}.__main__" if (ROOT / module.replace(".", "/")).is_dir() else module)
