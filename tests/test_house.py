"""The order of the house: what stands in one place only, what may not know what, and lists of files that must follow a move."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tools import lowest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "trueonline"
SOURCES = sorted(PACKAGE.rglob("*.py"))


def imported(path):
    """The modules that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "oracles").glob("*.py")), ids=lambda path: path.stem)
def test_oracles_import_nothing_of_the_package(path):
    """An oracle that used the package would agree with its mistakes."""
    known = {"numpy", *sys.stdlib_module_names}
    assert [name for name in imported(path) if name.partition(".")[0] not in known and name != "tests.oracles"
            and not name.startswith("tests.oracles.")] == []  # fmt: skip


def test_exemptions_from_types_stand_in_one_place_and_name_what_is_there():
    assert [path for path in SOURCES if re.search(r"^# mypy:", path.read_text("utf-8"), re.MULTILINE)] == []
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    (exempt,) = (each["module"] for each in settings["overrides"] if each.get("disallow_untyped_defs") is False)
    places = [PACKAGE.parent.joinpath(*name.removesuffix(".*").split(".")) for name in exempt]
    assert [place for place in places if not (place.is_dir() or place.with_suffix(".py").is_file())] == []


def test_commands_are_one_file_each_and_short():
    from trueonline.cli import COMMANDS

    assert {name for name in COMMANDS if not (PACKAGE / "cli" / f"{name}.py").is_file()} == set()
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in (PACKAGE / "cli").glob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 200} == {}


def test_the_root_holds_the_catalogue_and_at_most_eight_other_modules():
    assert len({path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "catalog"}) <= 8


def test_a_folder_has_at_most_twelve_modules_unless_it_lists_one_kind_of_thing():
    lists = {"methods", "forward", "cli", "lab/experiments", "streams/sources"}
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in SOURCES} - lists
    sizes = {
        folder: len({*PACKAGE.joinpath(folder).glob("*.py")} - {PACKAGE / folder / "__init__.py"}) for folder in folders
    }
    assert {folder: size for folder, size in sizes.items() if size > 12} == {}


def test_files_that_are_tested_first_or_with_the_lowest_versions_are_there():
    """A file of tests that moves must not leave these lists silently."""
    named = re.search(r"^FIRST = \((.*?)^\)", (ROOT / "conftest.py").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    stems = {
        path.stem for folder in ("tests", "docs") for kind in ("py", "md") for path in (ROOT / folder).rglob(f"*.{kind}")
    }
    assert set(re.findall(r'"(\w+)"', named[1])) - stems == set()
    assert [name for name in lowest.TESTS if not (ROOT / "tests" / name).exists()] == []


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")), ids=lambda path: path.stem
)  # Sphinx checks the links of docs/
def test_links_lead_to_files_that_exist(page):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []


def test_paths_in_contributing_lead_somewhere():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = {name for name in re.findall(r"`([\w./-]+)`", text) if "/" in name or re.search(r"\.(py|md|toml)$", name)}
    named = {name for name in named if not re.search(r"[A-Z]{4}|^\.venv|^\.pytest_cache|^dist/", name)}
    places = (ROOT, PACKAGE, PACKAGE.parent, ROOT / "tests", ROOT / "tests" / "streams" / "sources")
    assert len(named) > 15
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []
