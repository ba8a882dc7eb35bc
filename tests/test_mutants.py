"""`tools.mutants`: mistakes are chosen by the seed, stand in one place of the code, and are tried once."""

import ast
import sys

import pytest

from tools import mutants
from tools.environments import ROOT
from tools.mistakes import KINDS, choose, mutants_of

EVERY = '''
"""Text with x + 1."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    FIRST = (lambda items: items[0])(["a"])


def scaled(values: list[int], most: "int + 1" = 3) -> int:
    """Scale 1 + 2."""
    if not 0 < most:
        raise ValueError(f"{most + 1} is wrong")
    check(values)
    kept = values.copy()  # no mutant: the caller's list may change
    warn(kept, 1 + 1)
    head = kept[0] - most
    kept[:2] = φ(head, most)
    return -head if 0 <= head else sum(kept[i] for i in range(most)) + len(list(kept))


class Named:
    def __repr__(self) -> str:
        return self.names[0] + self.title
'''


def test_every_kind_of_mistake_is_one_place_of_code_that_behaves_differently():
    changes = {
        (mutant.kind, mutant.line, mutant.planted(EVERY.encode()).decode())
        for mutant in mutants_of("a.py", EVERY.encode())
    }
    assert {kind for kind, _, _ in changes} == set(KINDS)
    for _, line, changed in changes:
        before, after = EVERY.splitlines(), changed.splitlines()
        assert [i + 1 for i in range(len(before)) if before[i] != after[i]] == [line]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(EVERY))
    assert {line for _, line, _ in changes} == {11, 13, 15, 16, 17, 18}
    seen = {(kind, changed.splitlines()[line - 1].strip()) for kind, line, changed in changes}
    assert {
        ("check", "if False:"),
        ("check", "pass"),
        ("sign", "head = kept[0] + most"),
        ("index", "head = kept[0 + 1] - most"),
        ("bound", "kept[:2 - 1] = φ(head, most)"),
        ("swap", "kept[:2] = φ(most, head)"),
        ("drop", "pass"),
        ("copy", "return -head if 0 <= head else sum(kept[i] for i in range(most)) + len(kept)"),
        ("bound", "return -head if 0 < head else sum(kept[i] for i in range(most)) + len(list(kept))"),
    } <= seen


def test_the_choice_is_even():
    chosen = choose(ROOT, list(mutants.TESTS), 84, seed=0)
    assert len({mutant.name for mutant in chosen}) == 84
    assert {sum(mutant.folder == folder for mutant in chosen) for folder in mutants.TESTS} == {12}
    assert min(sum(mutant.kind == kind for mutant in chosen) for kind in KINDS) >= 84 // len(KINDS) - 4
    for mutant in chosen[::8]:  # some of each folder, of which there are seven
        source = (ROOT / "src" / "trueonline" / mutant.file).read_bytes()
        assert ast.dump(ast.parse(mutant.planted(source))) != ast.dump(ast.parse(source))
    assert all((ROOT / "tests" / name).exists() for names in mutants.TESTS.values() for name in names)


def test_an_unusable_mutant_is_replaced_by_the_next_of_its_kind():
    first = choose(ROOT, ["files"], 7, seed=0)
    assert choose(ROOT, ["files"], 7, seed=0) == first != choose(ROOT, ["files"], 7, seed=1)
    again = choose(ROOT, ["files"], 7, seed=0, refused=[first[0].name])
    assert again[1:] == first[1:]
    assert again[0].kind == first[0].kind


PLUS = "def plus(a, b):\n    return a + b\n\n\ndef minus(a, b):\n    return a - b\n"


@pytest.fixture
def tree(tmp_path):
    """A tree with one module and one file of tests."""
    package, tests = tmp_path / "tree" / "src" / "trueonline", tmp_path / "tree" / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "__init__.py").touch()
    (package / "files.py").write_text(PLUS)
    (tests / "test_files.py").touch()
    return tmp_path / "tree"


def test_a_mutant_that_hangs_is_stopped(tree, tmp_path):
    copy = mutants.Copy(tree, tmp_path / "work", limit=0.0)
    assert copy.run("-c", "while True: pass")[0] is None
    assert not mutants.RUNNING


def test_a_copy_is_what_is_imported_and_the_tree_stays_as_it_is(tree, tmp_path):
    copy = mutants.Copy(tree, tmp_path / "work", limit=1e6)
    (mutant,) = (each for each in mutants_of("files.py", PLUS.encode()) if each.line == 2)
    copy.write(mutant, mutant.planted(PLUS.encode()))
    status, output = copy.run("-c", "import trueonline.files as files; print(files.plus(3, 2)); raise SystemExit(7)")
    assert (status, output) == (7, "1\n")
    assert (tree / "src" / "trueonline" / "files.py").read_text() == PLUS


def test_what_tests_notice_is_told_and_finished_mutants_are_not_tried_again(tree, tmp_path, monkeypatch, capsys):
    """Of two tests, the first fails without a mistake too, and the second notices one of two mistakes."""
    calls = []

    def run(copy, *arguments):
        calls.append(arguments)
        plus = "a + b" in (copy.tree / "src" / "trueonline" / "files.py").read_text().partition("minus")[0]
        passing = {"tests/test_files.py::test_a": False, "tests/test_files.py::test_b[1 - 2]": plus}
        failed = [test for test, passes in passing.items() if f"--deselect={test}" not in arguments and not passes]
        named = [test for test in failed if not {*passing} & {*arguments} or test in arguments]
        return (1, f"F\nFAILED {named[0]}\n") if "pytest" in arguments and named else (0, "")

    monkeypatch.setattr(mutants.Copy, "run", run)
    monkeypatch.setattr(mutants, "TESTS", {"files": ("test_files.py",)})
    monkeypatch.setattr(mutants.os, "nice", lambda more: None)
    monkeypatch.setattr(mutants.signal, "signal", lambda *_: None)
    results = tmp_path / "results.jsonl"
    monkeypatch.setattr(sys, "argv", ["mutants", "--source", str(tree), "--out", str(results), "--number", "2"])
    mutants.main()
    told = capsys.readouterr().out
    assert "2 of 2 mutants" in told
    assert told.count("survives: ") == 1
    assert "survives: files.py:6, sign\n    return a - b → return a + b" in told

    *kept, survivor = sorted(results.read_text("utf-8").splitlines(), key=lambda line: '"survived"' in line)
    results.write_text("\n".join([*kept, survivor[:20]]), "utf-8")  # killed while it was written
    calls.clear()
    mutants.main()
    assert sum("pytest" in arguments for arguments in calls) == 1
    assert "2 of 2 mutants" in capsys.readouterr().out
