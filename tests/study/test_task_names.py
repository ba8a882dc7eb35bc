"""The name of a task: a hash of everything that determines its result, so that no result is taken for another."""

import ast
import os
import shutil
import threading

import numpy as np
import pytest

import trueonline as to
from tests.study.own_rules import late_decay
from tests.study.small_cases import MRP, SEEN, Eager, Ring, names, own_accumulate, small
from trueonline import study
from trueonline.core.compiling import identity, sources, user_file

pytestmark = pytest.mark.usefixtures("small_heap")


class First(Eager):
    pass


class Second(Eager):
    """The same with another text."""


@pytest.mark.parametrize(
    "changed",
    [
        small(seed=4),
        small(steps=21),
        small(runs=3),
        small(step_sizes=(0.1, 0.30000000000000004)),
        small(step_sizes=(0.3, 0.1)),
        small(trace_decays=(0.5, 0.91)),
        small(trace_decays=(0.5,)),
        small(step_sizes=(0.1,), trace_decays=(0.3, 0.5, 0.9)),
        small(SEEN["binary"]),
        small(MRP.with_features(np.eye(10)[::-1])),
        small(MRP.with_features(2.0 * np.eye(10))),
        small(to.problems.random_mrp(10, 3, 0.1, seed=2)),
        small(to.problems.random_mrp(10, 3, 0.2, seed=1)),
        small(to.problems.random_mrp(10, 3, 0.1, seed=1, discount=0.98)),
        small(methods={"accumulate": own_accumulate, "replace": late_decay, "true_online": First}),
    ],
    ids=lambda case: None,
)
def test_names_change_with_what_determines_the_result(changed):
    assert set(names(small())).isdisjoint(names(changed))


def test_names_do_not_change_with_labels_or_from_time_to_time():
    again = small(to.problems.random_mrp(10, 3, 0.1, seed=1), labels={"problem": "another word"})
    assert names(small()) == names(again)
    assert len(set(names(small()))) == 3
    assert all(name.startswith(f"{method}-") for name, method in zip(names(again), study.METHODS, strict=True))


def test_names_change_with_the_source_of_a_method_and_with_the_package_below_it(monkeypatch):
    methods = [None, "a class", First, Second, Eager, late_decay, own_accumulate]
    methods[:2] = [to.catalog.METHODS["accumulate"].resolve("rule"), to.TrueOnlineTD]

    def found():
        return {names(small(methods={"mine": method}))[0] for method in methods}

    before = found()
    assert len(before) == len(methods)
    monkeypatch.setattr(identity, "package_code", lambda *modules: "hash-of-other-code")
    assert before.isdisjoint(found())


# --- This package ---------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of this package, which tasks are named by."""
    shutil.copytree(sources.PACKAGE, tmp_path / "trueonline", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sources, "PACKAGE", tmp_path / "trueonline")
    sources._file.cache_clear()
    yield tmp_path / "trueonline"
    sources._file.cache_clear()
    sources._module.cache_clear()


def edited(path, edit):
    tree = ast.parse(path.read_text("utf-8"))
    edit(tree)
    path.write_text(f"# other words\n\n{ast.unparse(tree)}\n", "utf-8")


def change_words(tree):
    """Give everything another docstring and other annotations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if ast.get_docstring(node) is not None:
                del node.body[0]
            node.body.insert(0, ast.Expr(ast.Constant("Other words.")))
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Name("Other")
        if isinstance(node, ast.FunctionDef):
            node.returns = ast.Name("Other")
            for each in (*node.args.args, *node.args.kwonlyargs):
                each.annotation = ast.Name("Other")


def change_operator(tree):
    arithmetic = ast.Add | ast.Sub | ast.Mult
    first = next(node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, arithmetic))
    first.op = ast.Sub() if isinstance(first.op, ast.Add) else ast.Add()


def newly_named():
    sources._module.cache_clear()
    return names(small(methods={"true_online": None, "gtd": study.SweptMethod("gtd")}))


def test_no_comment_docstring_or_annotation_of_this_package_changes_a_name(copied):
    before = newly_named()
    for path in copied.rglob("*.py"):
        edited(path, change_words)
    assert newly_named() == before


def test_an_operator_changes_the_names_of_what_it_may_change_the_results_of(copied):
    of_some = ("core/memory/meta_gradient.py", "core/memory/usage.py")  # memories that neither of the two methods has
    memory = [f"core/memory/{path.name}" for path in copied.glob("core/memory/*.py") if " * " in path.read_text("utf-8")]
    expected = {
        "methods/true_online_td.py": (True, False),
        "methods/gtd.py": (False, True),
        **dict.fromkeys((*memory, "problems/chain.py", "problems/finite_mrp.py"), (True, True)),
        **dict.fromkeys(("study/kernels/sweep_body.py", "study/cases.py"), (True, True)),
        **dict.fromkeys(("problems/off_policy_problem.py", "learners/memory_learner.py"), (False, False)),
        **dict.fromkeys(of_some, (False, False)),
        **dict.fromkeys(("features/fourier.py", "forward/lambda_returns.py", "study/summary.py"), (False, False)),
    }
    assert len(memory) > 2
    before, found = newly_named(), {}
    for file in expected:
        text = (copied / file).read_bytes()
        edited(copied / file, change_operator)
        found[file] = tuple(name != old for name, old in zip(newly_named(), before, strict=True))
        (copied / file).write_bytes(text)
    assert found == expected


def test_a_row_of_the_catalogue_changes_names_of_its_method_alone(copied):
    before = newly_named()
    path = copied / "catalog.py"
    path.write_text(f"{path.read_text('utf-8')}\nMORE = 1\n", "utf-8")
    assert newly_named() == before


# --- Methods of the user --------------------------------------------------------------------------


def test_a_file_beside_that_of_a_method_counts(tmp_path):
    """It is imported for what it does, and is forgotten afterwards (`core.compiling.user_file`)."""
    rule = "import effects\nimport trueonline as to\n@to.kernel\ndef mine(memory, reward): return 0.0, 0.0, 0.0\n"
    (tmp_path / "rule.py").write_text(rule)
    found = []
    for gain in (1, 1, 10):
        (tmp_path / "effects.py").write_text(f"GAIN = {gain}\n")
        user_file._LOADED.clear()  # as in another process
        identity.APART.clear()
        found += names(small(methods=dict([user_file.load_name("rule.py:mine", tmp_path)])))
    assert found[0] == found[1] != found[2]


def test_results_that_nobody_could_tell_apart_are_not_kept(tmp_path):
    class Reading(Eager):
        weights_in = open(__file__, encoding="utf-8")  # noqa: SIM115  (nobody can tell what will be read from it)

    settings = {"step_sizes": [0.1], "trace_decays": [0.5], "runs": 1, "steps": 5}
    with pytest.raises(ValueError, match=r"results of mine cannot be kept .*TextIOWrapper.* Give a version"):
        to.sweep(MRP, {"mine": Reading}, **settings, out=tmp_path)
    assert not list(tmp_path.iterdir())
    assert to.sweep(MRP, {"mine": Reading}, **settings).num_rows == 1
    for version in ("1", "1", "2"):
        to.sweep(MRP, {"mine": Reading}, **settings, out=tmp_path, version=version)
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    Reading.weights_in.close()


def test_a_version_stands_for_the_unknown_part_alone(tmp_path):
    """A name says nothing of it, not even where in memory it is."""

    def made(gain):
        class Mine(Eager):
            factor, guard = gain, threading.Lock()

        return Mine

    settings = {"step_sizes": [0.1], "trace_decays": [0.5], "runs": 1, "steps": 5, "out": tmp_path, "version": "1"}
    for gain in (1.0, 1.0, 0.5):
        to.sweep(MRP, {"mine": made(gain)}, **settings)
    assert len(list(tmp_path.glob("*.parquet"))) == 2


def test_a_problem_of_the_user_is_known_by_its_trajectories():
    class Shifted(to.problems.FiniteMRP):
        shift = 0.0

        def trajectory(self, steps, seed):
            states, rewards, discounts = super().trajectory(steps, seed)
            return states, rewards + self.shift, discounts

    one, other = (Shifted(MRP.transitions, MRP.rewards, MRP.reward_std, MRP.features, MRP.discount) for _ in range(2))
    other.__dict__["shift"] = 1.0
    assert names(small(one)) != names(small(other))


def test_nothing_of_others_in_the_folder_is_removed(tmp_path):
    (tmp_path / "scratch" / "run7").mkdir(parents=True)
    (tmp_path / "scratch" / "run7" / "notes").write_text("words")
    (tmp_path / "run7.parquet").write_text("mine")
    (tmp_path / ".mine.part").write_text("mine")
    os.utime(tmp_path / ".mine.part", (0, 0))
    to.sweep(MRP, "true_online", [0.1], [0.5], runs=1, steps=5, out=tmp_path)
    assert {"scratch", "run7.parquet", ".mine.part"} <= {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "scratch" / "run7" / "notes").exists()


def test_names_change_with_the_discount_that_learner_classes_are_made_with():
    one, other = Ring(), Ring()
    one.trajectory = other.trajectory = Ring().trajectory
    other.discount = 0.3
    assert names(small(one, {"mine": Eager})) != names(small(other, {"mine": Eager}))


def test_names_depend_on_the_code_that_a_package_imports_late():
    for package, module in (("control", "control.agent"), ("study", "study.cases")):
        _, imports = sources._module(f"trueonline.{package}")
        assert f"trueonline.{module}" in imports


def test_names_change_with_every_trajectory_of_the_block():
    one, other = Ring(), Ring()
    plain = Ring().trajectory

    def shifted(steps, seed):
        states, rewards, discounts = plain(steps, seed)
        return states, rewards + (seed[1] > 0), discounts

    one.trajectory, other.trajectory = plain, shifted
    assert names(small(one)) != names(small(other))
